"""Runs functions of loop.math over arrays, compiled for this machine or in the interpreter; and counts ulps."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from hilo.backend import cpu, jit, llvm
from hilo.backend.target import Target
from hilo.ir.dtypes import DType
from hilo.loop import interpret
from hilo.loop.builder import I64, PTR, Builder
from hilo.loop.element import Elem, held_type
from hilo.loop.nodes import Func, Node

Arr = np.ndarray
Build = Callable[..., Elem]
Native = Callable[..., Arr]


def parts(x: Elem) -> list[Node]:
    return [x.re] if x.im is None else [x.re, x.im]


def elems(dtype: DType, nodes: list[Node]) -> list[Elem]:
    if dtype.is_complex:
        return [Elem(dtype, re, im) for re, im in zip(nodes[::2], nodes[1::2])]
    return [Elem(dtype, n) for n in nodes]


def native(fn: Build, dtype: DType, operands: int = 1, *, lanes: int = 0, target: Target | None = None) -> Native:
    """`fn` as a compiled function of real arrays (bf16, f16: of their f32 values)."""
    target = target or Target.host()
    t = held_type(dtype)
    t = t.with_lanes(lanes or target.lanes(t))
    func = Func("f", [*((f"p{i}", PTR) for i in range(operands + 1)), ("n", I64)])
    b = Builder(func)

    def body(i: Node) -> None:
        at = b.mul(i, t.size)
        xs = [b.load(b.gep(p, at), t, align=t.size) for p in func.params[:operands]]
        b.store(b.gep(func.params[operands], at), fn(b, *(Elem(dtype, x) for x in xs)).re, align=t.size)

    b.for_(0, func.params[-1], t.lanes, body)
    b.ret()
    code = jit.load([cpu.compile(llvm.emit([func], target), target)], ["f"])
    call = code.function("f", *[ctypes.c_void_p] * (operands + 1), ctypes.c_int64)

    def run(*xs: Arr, code: Any = code) -> Arr:
        n = xs[0].size
        padded = -(-n // t.lanes) * t.lanes
        inputs = [np.concatenate([x.reshape(-1), np.ones(padded - n, x.dtype)]) for x in xs]
        out = np.empty(padded, xs[0].dtype)
        call(*(a.ctypes.data for a in (*inputs, out)), padded)
        return out[:n].reshape(xs[0].shape)

    return run


def interpreted(fn: Build, dtype: DType) -> Callable[..., Arr]:
    """`fn` run by the interpreter, all elements in one vector. Complex arrays are taken apart and put together."""

    def run(*xs: Arr) -> Arr:
        flat = [np.ascontiguousarray(p) for x in xs for p in ((x.real, x.imag) if dtype.is_complex else (x,))]
        out = interpret.apply(lambda b, *nodes: parts(fn(b, *elems(dtype, list(nodes)))), *flat)
        if not dtype.is_complex:
            return out[0]
        z = np.empty(xs[0].shape, dtype.np)
        z.real, z.imag = out
        return z

    return run


def ulps(got: Arr, want: Arr) -> Arr:
    """|got - want| in units of the last place of `got`'s type at `want`, which is of a wider type."""
    info = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
        exponent = np.floor(np.log2(np.maximum(np.abs(want), info.tiny)))
        d = np.abs(got.astype(want.dtype) - want) / np.exp2(exponent - info.nmant)
    same = (np.isnan(want) & np.isnan(got)) | (got == rounded) & ~np.isfinite(rounded)
    return np.where(same, 0, np.where(np.isnan(d), np.inf, d)).astype(np.float64)


def every_nth_f32(step: int) -> Arr:
    """f32 values of every sign, exponent and kind: each `step`-th bit pattern."""
    return np.arange(0, 1 << 32, step, dtype=np.uint32).view(np.float32)
