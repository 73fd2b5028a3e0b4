"""Running programs that were compiled for AArch64: linked with a driver in C, run by qemu."""

from __future__ import annotations

import shutil
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hilo
from hilo.ir.module import Module
from hilo.options import Options

COMPILERS = ("aarch64-linux-gnu-gcc", "aarch64-none-linux-gnu-gcc")
EMULATORS = ("qemu-aarch64-static", "qemu-aarch64")
# Reads numbers of bytes (of the arguments and results of each run), then arguments; writes results.
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
        int32_t code = RUN(args, results, arena);
        if (code) return code;
        for (int i = 0; i < RESULTS; i++) fwrite(results[i], 1, sizes[ARGS + i], stdout);
    }
    return 0;
}
"""


def found(names: Sequence[str]) -> str | None:
    return next(filter(None, map(shutil.which, names)), None)


needs_emulator = pytest.mark.skipif(
    not (found(COMPILERS) and found(EMULATORS)),
    reason="needs qemu-aarch64 and a C compiler for AArch64 (Debian: qemu-user-static, gcc-aarch64-linux-gnu)",
)


class Program:
    """`module`, compiled for `target`, as a program of its own in `folder`."""

    def __init__(self, module: Module, folder: Path, target: str = "arm-neon", **options: Any) -> None:
        how: dict[str, Any] = {"target": target, "options": Options.from_env(**options)}
        code, header = hilo.inspect(module, "object", **how), hilo.inspect(module, "header", **how)
        assert isinstance(code, bytes)
        (folder / "program.o").write_bytes(code)
        (folder / "program.h").write_text(str(header))
        (folder / "driver.c").write_text('#include "program.h"\n' + DRIVER)
        names = [f"-D{n}=HILO_MAIN_{n}" for n in ("ARGS", "RESULTS", "ARENA")]
        self.path = folder / "program"
        command = [found(COMPILERS) or "", "-O1", "-static", "-Wall", "-Wextra", "-Werror", "-Wno-type-limits", *names,
                   "-DRUN=hilo_main_run", "driver.c", "program.o", "-o", "program", "-lm"]  # fmt: skip
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
        done = subprocess.run([found(EMULATORS) or "", str(self.path)], input=b"".join(data), capture_output=True,
                              check=False)  # fmt: skip
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
