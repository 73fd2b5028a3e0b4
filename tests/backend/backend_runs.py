"""Running loop-IR functions through the backends: shared by the tests of this folder."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hilo.backend import c, cpu, jit, llvm
from hilo.backend.target import Target
from hilo.loop.nodes import Func

TARGETS = ("host", "x86-avx512", "x86-avx2", "x86-sse2", "arm-neon-dotprod", "arm-neon")


def usable() -> list[Target]:
    """The named targets whose code runs on this machine."""
    host = Target.host()
    return [t for t in map(Target.named, TARGETS) if host.includes(t)]


def compile_llvm(funcs: list[Func], target: Target) -> Callable[[str], Any]:
    code = jit.load(
        [cpu.compile(llvm.emit(funcs, target), target)], [f.name for f in funcs if not f.attrs.get("private")]
    )
    by_name = {f.name: f for f in funcs}

    def get(name: str) -> Any:
        return code.function(name, *[ctypes.c_void_p] * len(by_name[name].params))

    return get


def compile_c(funcs: list[Func], folder: Path) -> Callable[[str], Any]:
    source, library = folder / "k.c", folder / "k.so"
    source.write_text(c.emit(funcs))
    flags = ["-std=c11", "-O2", "-ffp-contract=off", "-Wall", "-Wno-unused", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    by_name = {f.name: f for f in funcs}

    def get(name: str) -> Any:
        f = getattr(loaded, name)
        f.argtypes = [ctypes.c_void_p] * len(by_name[name].params)
        f.restype = None
        return f

    return get
