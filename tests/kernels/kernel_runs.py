"""Run a lowered kernel on numpy arrays through ctypes, units in pieces, and compare with the interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hilo import kernels
from hilo.backend import cpu, jit, llvm
from hilo.backend.target import Target
from hilo.ir.dtypes import DType
from hilo.ir.interpret import evaluate
from hilo.ir.module import parameter, region
from hilo.ir.op import Array, Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType, result_types
from hilo.ops.fusion import fusion
from hilo.record import replace

TARGETS = ["x86-avx512", "x86-avx2", "x86-sse2"]


def aligned(shape: Sequence[int], dtype: np.dtype, align: int = 64) -> np.ndarray:
    """An array of garbage whose address is a multiple of `align`."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    raw = np.full(size + align, 0xA5, np.uint8)
    at = -raw.ctypes.data % align
    return raw[at : at + size].view(dtype).reshape(shape)


class Kernel:
    """A compiled kernel of one op."""

    def __init__(self, op: Op, target: Target) -> None:
        self.op = op
        self.lowered = kernels.lower(op, target)
        funcs = list({id(p.func): p.func for p in self.lowered.phases}.values())  # one may serve several phases
        for i, f in enumerate(funcs):
            f.name = f"phase{i}"
        helpers = {h.name: h for p in self.lowered.phases for h in p.helpers}
        self.text = llvm.emit([*helpers.values(), *funcs], target)
        self.code = jit.load([cpu.compile(self.text, target)], [f.name for f in funcs]) if funcs else None

    def __call__(self, *arrays: np.ndarray, pieces: int = 3) -> list[np.ndarray]:
        """The results; the units of a phase run in `pieces` calls, the last one first."""
        results = [aligned(t.shape, t.dtype.np) for t in result_types(self.op.type) if isinstance(t, TensorType)]
        scratch = aligned([self.lowered.scratch], np.dtype(np.uint8))
        self.run([*arrays, *self.lowered.tables, *results, scratch], pieces)
        return results

    def run(self, buffers: Sequence[np.ndarray], pieces: int = 1) -> None:
        self.run_at([x.ctypes.data for x in buffers], pieces)

    def run_at(self, addresses: Sequence[int], pieces: int = 1) -> None:
        bufs = (ctypes.c_void_p * len(addresses))(*addresses)
        for p in self.lowered.phases:
            assert self.code is not None
            f = self.code.function(p.func.name, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
            step = max(1, -(-p.units // pieces))
            for begin in reversed(range(0, p.units, step)):
                f(ctypes.addressof(bufs), begin, min(begin + step, p.units))


def random_array(rng: np.random.Generator, t: TensorType) -> np.ndarray:
    """Values of moderate size, so that sums and exponentials stay finite."""
    kind = t.dtype.kind
    if kind == "b":
        return np.asarray(rng.integers(0, 2, t.shape)).astype(np.bool_)
    if kind in "iu":
        return np.asarray(rng.integers(0 if kind == "u" else -20, 20, t.shape)).astype(t.dtype.np)
    if kind == "c":
        return np.asarray(rng.normal(size=t.shape) + 1j * rng.normal(size=t.shape), t.dtype.np)
    return np.asarray(rng.normal(size=t.shape)).astype(t.dtype.np)


def unaligned(x: np.ndarray) -> np.ndarray:
    """The same values at an address that is only a multiple of the element's size."""
    place = aligned([x.size + 1], x.dtype)[1:].reshape(x.shape)
    place[...] = x
    return place


def with_small_caches(name: str) -> Target:
    """A target whose caches hold next to nothing: kernels fetch ahead, and store past the caches."""
    return replace(Target.named(name), l1=1 << 8, l2=1 << 9, l3=1 << 10)


def check(
    op: Op, target: str | Target, seed: int = 0, tolerance: float = 2e-6, arrays: Sequence[np.ndarray] | None = None
) -> Kernel:
    """Compile the kernel of `op`, run it on random arrays, compare with the interpreter."""
    rng = np.random.default_rng(seed)
    if arrays is None:
        arrays = [unaligned(random_array(rng, o.tensor)) for o in op.operands]
    kernel = Kernel(op, Target.named(target) if isinstance(target, str) else target)
    got = kernel(*arrays)
    want = evaluate(op, arrays)
    for g, w in zip(got, want if isinstance(want, tuple) else (want,), strict=True):
        compare(g, w, tolerance)
    return kernel


def compare(got: np.ndarray, want: np.ndarray, tolerance: float) -> None:
    """Equal types and values; floats within `tolerance` (0: the same bits but for NaN), wider for narrow floats."""
    assert got.dtype == want.dtype
    assert got.shape == want.shape
    if got.dtype.kind in "biu" or tolerance == 0:
        np.testing.assert_array_equal(got, want)
        return
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    eps = {2: 2e-2 if "bfloat" in got.dtype.name else 2e-3}.get(got.dtype.itemsize, tolerance)
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=eps, atol=eps)


# ---- building ops
def s(name: str) -> Callable[..., Op]:
    """The constructor of a StableHLO op."""
    return lookup(f"stablehlo.{name}")


def constant(value: Any, dtype: DType, shape: Sequence[int] = ()) -> Op:
    return s("constant")(value=Array(np.asarray(value, dtype.np), shape))


def broadcast(x: Op, shape: Sequence[int], dims: Sequence[int]) -> Op:
    return s("broadcast_in_dim")(x, broadcast_dimensions=tuple(dims), type=TensorType(x.dtype, shape))


def reduce(x: Op, dims: Sequence[int], kind: str = "add", init: Any = 0, first: Op | None = None) -> Op:
    """Reduce `dims` of `x` with the op `kind`."""
    t = TensorType(x.dtype)
    body = region([t, t], lambda a, b: s(kind)(a, b))
    first = constant(init, x.dtype) if first is None else first
    return s("reduce")(x, first, dimensions=tuple(dims), body=body)


def fused(types: Sequence[TensorType], build: Callable[..., Any], kind: str = "loop") -> Op:
    """A fusion whose body `build(*params)` gives."""
    params = [parameter(i, t) for i, t in enumerate(types)]
    return fusion(*params, body=region(types, build), kind=kind)
