"""Shared by tests: values at the edges of element types, comparing bits, and running elementwise ops as loop IR.

The same function can run under the loop IR's interpreter or be compiled for the host by LLVM.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  # registers bfloat16 with numpy
import numpy as np

from hilo.ir.dtypes import DType
from hilo.ir.module import parameter
from hilo.ir.op import Op, OpDef
from hilo.ir.quantized import QuantizedType
from hilo.ir.types import TensorType
from hilo.loop import arith, interpret
from hilo.loop.builder import Builder
from hilo.loop.nodes import I64, PTR, Func

Arr = np.ndarray[Any, Any]
_FLOATS = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 0.1, 0.49999997, 7.75, 100.0, 127.5, 128.0, 255.5, 256.0, 257.0, 32767.5,
           65504.0,
           65520.0, 65536.0, 8388609.0, 2.0**24 + 2, 2147483648.0, 4294967296.0, 9.223372036854775807e18,
           1.8446744073709552e19, 1e30, 1.3 * 2.0**115, 3e-5, 6e-8,
           1e-20, 1e-41, 1e300, 1e-310, np.inf, np.nan]  # fmt: skip


def edges(t: DType, seed: int = 0, more: int = 8) -> Arr:
    """Values of `t` where things go wrong: ends of the range, zeros, subnormals, inf, NaN, ties; `more` random ones."""
    if isinstance(t, QuantizedType):
        return edges(t.storage, seed, more)
    rng = np.random.default_rng(seed)
    if t.kind == "b":
        return np.array([False, True])
    if t.is_int:
        info = (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.kind == "i" else (0, (1 << t.bits) - 1)
        near = [
            info[0],
            info[0] + 1,
            info[1],
            info[1] - 1,
            info[1] // 2,
            info[1] // 3,
            0,
            1,
            2,
            3,
            5,
            7,
            8,
            10,
            31,
            32,
            63,
            64,
            100,
        ]
        signs = [1, -1] if t.kind == "i" else [1]
        values = {v * s for v in near for s in signs if info[0] <= v * s <= info[1]}
        values |= {(1 << k) + d for k in (8, 16, 24, 31, 32, 53, 62) for d in (-1, 0, 1) if (1 << k) + d <= info[1]}
        middles = [(1 << k) + (1 << (k - n)) for k, n in ((15, 11), (15, 8), (30, 8), (62, 8), (62, 24), (54, 8))]
        values |= {m + d for m in middles for d in (-1, 0, 1, 0x400) if m + d <= info[1]}  # ties of f16, bf16, f32
        raw = rng.integers(0, 1 << 63, more, dtype=np.int64).astype(np.uint64) * np.uint64(2) + np.uint64(1)
        exact = np.array([v & ((1 << 64) - 1) for v in sorted(values)], np.uint64)
        return np.concatenate([exact, raw]).astype(t.np)
    if t.is_complex:
        parts = edges(t.part, seed, 3)[seed % 5 :: 7]
        re, im = np.meshgrid(parts, parts)
        out = np.empty(re.size, t.np)
        out.real, out.imag = re.reshape(-1), im.reshape(-1)
        return out
    with np.errstate(all="ignore"):
        values = np.array([*_FLOATS, *rng.standard_normal(more), *np.exp(rng.uniform(-80, 80, more))]).astype(t.np)
    ints = np.dtype(f"u{t.itemsize}")
    mantissa = {"bf16": 7, "f16": 10, "f32": 23, "f64": 52}[t.name]
    inf = int(np.array(np.inf, t.np).view(ints))
    bits = [0, 1, 2, (1 << mantissa) - 1, 1 << mantissa, (1 << mantissa) + 1, inf - 1, inf]
    values = np.concatenate([values, np.array(bits, ints).view(t.np)])
    return np.unique(np.concatenate([values, -values]).view(ints)).view(t.np)


def pairs(x: Arr, y: Arr) -> list[Arr]:
    """Every value of x with every value of y, as two flat arrays."""
    i, j = np.meshgrid(np.arange(x.size), np.arange(y.size), indexing="ij")
    return [x[i.reshape(-1)], y[j.reshape(-1)]]


def differences(got: Arr, want: Arr) -> Arr:
    """Where two arrays of one type differ in their bits; any NaN equals any NaN."""
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    assert got.shape == want.shape, (got.shape, want.shape)
    if got.dtype.kind == "c":
        return differences(got.real, want.real) | differences(got.imag, want.imag)
    raw = [np.ascontiguousarray(a).reshape(a.shape).view(f"u{a.dtype.itemsize}") for a in (got, want)]
    same = raw[0] == raw[1]
    if got.dtype.kind == "f" or got.dtype.name.startswith(("bfloat", "float")):
        with np.errstate(all="ignore"):  # signaling NaNs
            same = same | (np.isnan(got) & np.isnan(want))
    return ~np.asarray(same)


def same_bits(got: Arr, want: Arr, *inputs: Arr, what: object = "") -> None:
    """Fail, showing the first few values, unless the arrays have the same bits (NaNs are equal)."""
    bad = np.asarray(differences(got, want)).reshape(-1)
    if bad.any():
        flat = [np.asarray(a).reshape(-1) for a in (got, want, *inputs)]
        at = np.flatnonzero(bad)[:6]
        lines = [
            f"f({', '.join(repr(x[i]) for x in flat[2:])}) = {flat[0][i]!r}, not {flat[1][i]!r}"
            for i in at
        ]
        raise AssertionError(f"{what}: {bad.sum()} of {bad.size} differ: " + "; ".join(lines))


def ulps(got: Arr, want: Arr) -> Arr:
    """The distance of two float arrays in units of the last place; NaNs are 0 apart, infinitely far from all else."""
    if got.dtype.kind == "c":
        return np.maximum(ulps(got.real, want.real), ulps(got.imag, want.imag))
    ints = f"i{got.dtype.itemsize}"
    a, b = (np.ascontiguousarray(v).view(ints).astype(object) for v in (got, want))
    low = 1 << (8 * got.dtype.itemsize - 1)
    a, b = (np.where(v < 0, -(v + low), v) for v in (a, b))
    far = np.abs(a - b).astype(np.float64)
    nans = np.isnan(got).astype(int) + np.isnan(want).astype(int)
    return np.where(nans == 2, 0.0, np.where(nans == 1, np.inf, far))


def made(kind: OpDef, types: Sequence[TensorType], attrs: dict[str, Any]) -> Op:
    """The op on parameters of these types."""
    return kind(*(parameter(i, t) for i, t in enumerate(types)), **attrs)


def scalar_func(name: str, op: Op, lanes: int) -> Func:
    """`void name(ptr operand..., ptr result, i64 n)`: an elementwise op over n elements, a multiple of `lanes`."""
    func = Func(name, [*((f"x{i}", PTR) for i in range(len(op.operands))), ("out", PTR), ("n", I64)])
    b = Builder(func)
    *xs, out, n = func.params
    assert op.kind.scalar is not None

    def turn(i: Any) -> None:
        elems = [arith.load_elem(b, p, b.mul(i, x.dtype.itemsize), x.dtype, lanes) for p, x in zip(xs, op.operands)]
        value = op.kind.scalar(b, op.type, *elems, **op.attrs.own())  # type: ignore[misc]
        assert value.dtype is op.dtype, (op, value)
        arith.store_elem(b, out, b.mul(i, op.dtype.itemsize), value, lanes)

    b.for_(0, n, lanes, turn)
    b.ret()
    return func


def padded(arrays: Iterable[Arr], lanes: int) -> tuple[list[Arr], int]:
    """Flat copies, filled up to a multiple of `lanes` elements with their first ones."""
    flat = [np.ascontiguousarray(a).reshape(-1) for a in arrays]
    n = -(-flat[0].size // lanes) * lanes
    return [np.resize(a, n) for a in flat], n


def interpreted(func: Func, op: Op, arrays: Sequence[Arr], lanes: int) -> Arr:
    """What the loop IR's interpreter computes for the function of `scalar_func`."""
    xs, n = padded(arrays, lanes)
    out = np.zeros(n, op.dtype.np)
    interpret.run(func, *xs, out, n)
    return out[: arrays[0].size]


class Native:
    """Functions of `scalar_func` compiled together for a target that this machine can run."""

    def __init__(self, funcs: Sequence[Func], target: str = "host") -> None:
        from hilo.backend import cpu, jit, llvm
        from hilo.backend.target import Target

        t = Target.named(target)
        self.code = jit.load([cpu.compile(llvm.emit(list(funcs), t), t)], [f.name for f in funcs])

    def run(self, name: str, op: Op, arrays: Sequence[Arr], lanes: int) -> Arr:
        xs, n = padded(arrays, lanes)
        out = np.zeros(n, op.dtype.np)
        types = [*[ctypes.c_void_p] * (len(xs) + 1), ctypes.c_int64]
        self.code.function(name, *types)(*(a.ctypes.data for a in (*xs, out)), n)
        return out[: arrays[0].size]
