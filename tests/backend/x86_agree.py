"""Running loop-IR functions through hilo's generator for x86-64 and through LLVM, side by side.

Shared by the tests of this folder.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hilo.backend import cpu, jit, llvm, x86
from hilo.backend.target import Target
from hilo.loop.nodes import Func

HOST = Target.host()
HERE = HOST.arch == "x86_64" and HOST.has_masks and HOST.vector_bytes == 64


def function(funcs: Sequence[Func], data: bytes, name: str) -> Callable[..., Any]:
    """A function of an object file, to be called with pointers (arrays), integers and floats."""
    (f,) = (f for f in funcs if f.name == name)
    ctype = {"ptr": ctypes.c_void_p, "i64": ctypes.c_int64, "i32": ctypes.c_int32, "i16": ctypes.c_int16,
             "i8": ctypes.c_int8, "i1": ctypes.c_bool, "f32": ctypes.c_float, "f64": ctypes.c_double,
             "void": None}  # fmt: skip
    code = jit.load([data], [name])
    call = code.function(name, *[ctype[p.type.scalar] for p in f.params], restype=ctype[f.ret.scalar])

    def run(*args: Any) -> Any:
        values: list[Any] = []
        alive: list[Any] = [code]
        for a in args:
            if isinstance(a, list):
                a = np.array([x.ctypes.data for x in a], np.uint64)
            if isinstance(a, np.ndarray):
                alive.append(a)
                a = a.ctypes.data
            values.append(a)
        return call(*values)

    return run


def both(funcs: Sequence[Func], name: str | None = None) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A function as hilo's generator and as LLVM makes it."""
    name = name or funcs[-1].name
    for f in funcs:
        assert x86.covers(f, HOST), f"{f.name} is not covered"
    own = function(funcs, x86.compile(funcs, HOST), name)
    return own, function(funcs, cpu.compile(llvm.emit(funcs, HOST), HOST), name)


def copied(args: Sequence[Any]) -> list[Any]:
    def copy(a: Any) -> Any:
        return [x.copy() for x in a] if isinstance(a, list) else a.copy() if isinstance(a, np.ndarray) else a

    return [copy(a) for a in args]


def agree(funcs: Sequence[Func] | Func, *args: Any, name: str | None = None) -> list[Any]:
    """Run a function in both ways on copies of the arguments (arrays, lists of arrays, numbers); results and all arrays
    must have the same bits. Gives the arrays as they are afterwards."""
    funcs = [funcs] if isinstance(funcs, Func) else funcs
    runs = []
    for call in both(funcs, name):
        mine = copied(args)
        result = call(*mine)
        flat = [x for a in mine for x in (a if isinstance(a, list) else [a])]
        runs.append((result, [x for x in flat if isinstance(x, np.ndarray)]))
    (own, arrays), (expected, others) = runs
    if expected is not None:
        assert np.array(own).tobytes() == np.array(expected).tobytes(), (own, expected)
    for i, (a, b) in enumerate(zip(arrays, others, strict=True)):
        if a.tobytes() != b.tobytes():
            where = np.flatnonzero(a.reshape(-1).view(np.uint8) != b.reshape(-1).view(np.uint8))[:8] // a.itemsize
            raise AssertionError(f"array {i} differs at {where}: {a.reshape(-1)[where]} is not {b.reshape(-1)[where]}")
    return arrays
