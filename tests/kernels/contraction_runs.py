"""Running lowered kernels through ctypes: shared by the contraction tests."""

from __future__ import annotations

import ctypes
import itertools
import mmap
from collections.abc import Sequence

import numpy as np

from hilo.backend import cpu, jit, llvm
from hilo.backend.target import Target
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels.lowered import Lowered
from hilo.loop.nodes import Func


def aligned(nbytes: int, align: int = 64, skew: int = 0) -> np.ndarray:
    """`nbytes` bytes at an address that is `skew` past a multiple of `align`."""
    raw = np.empty(nbytes + 2 * align + skew, np.uint8)
    at = -raw.ctypes.data % align + skew
    return raw[at : at + nbytes]


class Kernel:
    """A compiled kernel. Call it with operand arrays and a list of result types."""

    def __init__(self, lowered: Lowered, target: Target) -> None:
        self.lowered = lowered
        funcs: dict[str, Func] = {}
        names = []
        for i, phase in enumerate(lowered.phases):
            phase.func.name = f"phase{i}"
            names.append(phase.func.name)
            funcs[phase.func.name] = phase.func
            funcs.update({h.name: h for h in phase.helpers})
        text = llvm.emit(list(funcs.values()), target)
        self.code = jit.load([cpu.compile(text, target)], names)
        self.functions = [self.code.function(n, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64) for n in names]

    def prepare(
        self, operands: Sequence[np.ndarray], results: Sequence[TensorType]
    ) -> tuple[list[np.ndarray], ctypes.Array]:
        outs = []
        for t in results:
            memory = aligned(max(1, t.nbytes))
            memory[...] = 0xA5
            outs.append(memory[: t.nbytes].view(t.dtype.np).reshape(t.shape))
        scratch = aligned(self.lowered.scratch)
        scratch[...] = 0x5A
        arrays = [*operands, *outs, scratch]
        self.keep = arrays
        return outs, (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])

    def run(self, bufs: ctypes.Array, pieces: int = 1) -> None:
        for phase, f in zip(self.lowered.phases, self.functions, strict=True):
            cuts = [phase.units * i // pieces for i in range(pieces + 1)]
            for lo, hi in reversed(list(itertools.pairwise(cuts))):
                f(bufs, lo, hi)

    def __call__(
        self, operands: Sequence[np.ndarray], results: Sequence[TensorType], pieces: int = 1
    ) -> list[np.ndarray]:
        outs, bufs = self.prepare(operands, results)
        self.run(bufs, pieces)
        return outs


def place(a: np.ndarray) -> np.ndarray:
    """A copy that ends at the end of a page, with a page after it that may not be touched; aligned to its elements."""
    page = mmap.PAGESIZE
    whole = -(-a.nbytes // page) * page
    memory = mmap.mmap(-1, whole + page)
    raw = np.frombuffer(memory, np.uint8)
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.mprotect(ctypes.c_void_p(raw.ctypes.data + whole), ctypes.c_size_t(page), 0) == 0
    out = raw[whole - a.nbytes : whole].view(a.dtype).reshape(a.shape)
    out[...] = a
    return out


def random(t: TensorType, rng: np.random.Generator) -> np.ndarray:
    d = t.dtype
    if d.kind == "b":
        return rng.integers(0, 2, t.shape).astype(np.bool_)
    if d.is_int:
        info = np.iinfo(d.np)
        return rng.integers(info.min, info.max, t.shape, dtype=d.np, endpoint=True)
    if d.is_complex:
        return (rng.standard_normal(t.shape) + 1j * rng.standard_normal(t.shape)).astype(d.np)
    return rng.standard_normal(t.shape).astype(d.np)


def operand_types(op: Op) -> list[TensorType]:
    return [o.tensor for o in op.operands]
