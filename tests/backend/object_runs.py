"""Running object files: linked with a driver in C, run here, or by qemu where they are for AArch64."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hilo.backend.target import Target
from hilo.ir.module import Module
from hilo.options import Options
from hilo.pipeline import optimize, portable_code

# Of other machines; here it is the system's compiler, and nothing in between.
COMPILERS = {"aarch64": ("aarch64-linux-gnu-gcc", "aarch64-none-linux-gnu-gcc")}
EMULATORS = {"aarch64": ("qemu-aarch64-static", "qemu-aarch64")}
# Reads numbers of bytes (of the arguments and results of each run), then arguments; writes results.
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef BACKWARDS /* the last piece first */
static int pieces;
typedef void function(void **bufs, int64_t begin, int64_t end);
static void backwards(struct hilo_ctx *ctx, function *fn, void **bufs, int64_t units, int64_t n) {
    (void)ctx;
    for (int64_t i = (units - 1) / n * n; i >= 0; i -= n, pieces++) fn(bufs, i, units - i < n ? units : i + n);
}
static int32_t run(void **args, void **results, void *arena) {
    struct hilo_ctx ctx = {backwards, CONSTANTS, 0, 4, 0, 0, 0};
    return hilo_main(&ctx, args, results, arena);
}
#else
#define run hilo_main_run
#endif

static void *take(int64_t bytes) { return memset(aligned_alloc(64, (bytes + 127) / 64 * 64), 0x5a, bytes + 64); }

int main(void) {
    int64_t runs, sizes[ARGS + RESULTS + 1];
    void *args[ARGS + 1], *results[RESULTS + 1], *arena = take(ARENA);
    if (fread(&runs, 8, 1, stdin) != 1) return 90;
    if (fread(sizes, 8, ARGS + RESULTS, stdin) != ARGS + RESULTS) return 90;
    for (int i = 0; i < ARGS; i++) args[i] = take(sizes[i]);
    for (int i = 0; i < RESULTS; i++) results[i] = take(sizes[ARGS + i]);
    while (runs-- > 0) {
        for (int i = 0; i < ARGS; i++)
            if (fread(args[i], 1, sizes[i], stdin) != (size_t)sizes[i]) return 91;
        int32_t code = run(args, results, arena);
        if (code) return code;
        for (int i = 0; i < RESULTS; i++) fwrite(results[i], 1, sizes[ARGS + i], stdout);
    }
#ifdef BACKWARDS
    return pieces > 1 ? 0 : 92; /* there must be something to do in pieces */
#endif
    return 0;
}
"""


def tools(arch: str) -> tuple[str, list[str]] | None:
    """The C compiler for a kind of machine, and what runs its programs; None if they are not here."""
    if arch == Target.host().arch:
        compiler = shutil.which("gcc") or shutil.which("cc")
        return (compiler, []) if compiler else None
    compiler, emulator = (next(filter(None, map(shutil.which, names.get(arch, ()))), None)
                          for names in (COMPILERS, EMULATORS))  # fmt: skip
    return (compiler, [emulator]) if compiler and emulator else None


needs_emulator = pytest.mark.skipif(
    tools("aarch64") is None,
    reason="needs qemu-aarch64 and a C compiler for AArch64 (Debian: qemu-user-static, gcc-aarch64-linux-gnu)",
)


def whole_numbers(module: Module) -> list[np.ndarray]:
    """Arguments of small whole numbers, whose products and sums are exact in all types, in whatever order."""
    rng = np.random.default_rng(5)
    arrays = []
    for p in module["main"].params:
        t = p.tensor
        low, high = (0, 255) if t.dtype.name == "u8" else (-128, 127) if t.dtype.name == "i8" else (-3, 3)
        x = rng.integers(low, high, t.shape, endpoint=True)
        arrays.append(np.asarray(x + 1j * x[::-1] if t.dtype.kind == "c" else x).astype(t.dtype.np))
    return arrays


class Program:
    """`module`, compiled for `target`, as a program of its own in `folder`.

    `backwards`: parallel loops go from the last piece to the first.
    """

    def __init__(self, module: Module, folder: Path, target: str, *, backwards: bool = False,
                 **options: Any) -> None:  # fmt: skip
        found = tools(Target.named(target).arch)
        assert found is not None
        compiler, self.emulator = found
        how = Options.from_env(**options)
        f = optimize(module, "main", how)
        code, header = (portable_code(f, stage, Target.named(target), how) for stage in ("object", "header"))
        assert isinstance(code, bytes)
        (folder / "program.o").write_bytes(code)
        (folder / "program.h").write_text(str(header))
        (folder / "driver.c").write_text('#include "program.h"\n' + DRIVER)
        names = [f"-D{n}=HILO_MAIN_{n}" for n in ("ARGS", "RESULTS", "ARENA")]
        if backwards:
            has = "hilo_main_constants[" in str(header)
            names += ["-DBACKWARDS", f"-DCONSTANTS={'(void **)hilo_main_constants' if has else '0'}"]
        self.path = folder / "program"
        static = ["-static"] if self.emulator else []
        command = [compiler, "-O1", *static, "-Wall", "-Wextra", "-Werror", "-Wno-type-limits", *names, "driver.c",
                   "program.o", "-o", "program", "-lm"]  # fmt: skip
        subprocess.run(command, cwd=folder, check=True)
        main = module["main"]
        self.arguments = [p.tensor for p in main.params]
        self.results = [r.tensor for r in main.results]

    def __call__(self, *runs: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """The results of each run on arrays."""
        sizes = [t.nbytes for t in (*self.arguments, *self.results)]
        data = [struct.pack(f"<{1 + len(sizes)}q", len(runs), *sizes)]
        data += [np.ascontiguousarray(x, dtype=t.dtype.np).tobytes()
                 for arrays in runs for x, t in zip(arrays, self.arguments, strict=True)]  # fmt: skip
        done = subprocess.run([*self.emulator, str(self.path)], input=b"".join(data), capture_output=True, check=False)
        assert done.returncode == 0, (done.returncode, done.stderr)
        at = 0
        out: list[list[np.ndarray]] = []
        for _ in runs:
            out.append([])
            for t in self.results:
                out[-1].append(np.frombuffer(done.stdout, t.dtype.np, t.size, at).reshape(t.shape))
                at += t.nbytes
        assert at == len(done.stdout)
        return out
