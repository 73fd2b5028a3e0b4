"""`bitcast`: the bytes of an array in memory, seen as another array. The one instruction to which layouts matter.

Memory is the logical array with its axes in the layout's order, cut into tiles. Each layout is a list of steps from
the logical array to that; a bitcast takes the steps of the operand, and those of the result backwards. Imports its
siblings.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.formats.hlo_text.model import Instruction, Shape
from hilo.formats.hlo_text.shapes import tiles
from hilo.ir.op import Op
from hilo.ir.types import TensorType

if TYPE_CHECKING:
    from hilo.formats.hlo_text.lower import Body


class Step(NamedTuple):
    """From an array of shape `dims`: "transpose" (by `order`), "pad" (at the ends, to the next shape) or "reshape"."""

    kind: str
    dims: tuple[int, ...]
    order: tuple[int, ...] = ()


def bitcast(b: Body, i: Instruction) -> Op:
    """The operand's bytes under the declared shape."""
    (x,) = b.leaves(i, 1)
    source, target = b.operand(i).shape, i.declared
    t = i.tensor
    if not isinstance(x.type, TensorType) or not x.type.is_static or not t.is_static:
        raise i.error("a bitcast takes and gives arrays of fixed shapes")
    s = x.type
    if s is t and source.layout == target.layout:
        return b.op(i, "stablehlo.reshape", (x,))
    try:
        there, dims = _steps(source)
        back, end = _steps(target)
    except Error as e:
        raise i.error(e.message, type(e)) from None
    if prod(dims) * s.dtype.bits != prod(end) * t.dtype.bits:
        raise i.error(f"{s!r} and {t!r} do not have the same number of bytes in memory")
    made = _forward(b, i, x, there, dims)
    if s.dtype is not t.dtype:
        made = _other_elements(b, i, made, t)
    if not back and made.shape != end:
        return b.op(i, "stablehlo.reshape", (made,))
    if made.shape != end:
        made = b.helper(i, "stablehlo.reshape", (made,), result=TensorType(t.dtype, end))
    made = _backward(b, i, made, back)
    return made if made is not x else b.op(i, "stablehlo.reshape", (x,))


def _steps(s: Shape) -> tuple[list[Step], tuple[int, ...]]:
    """From the logical array to memory, and the shape of memory."""
    assert isinstance(s.type, TensorType)
    dims: tuple[int, ...] = s.type.shape
    steps: list[Step] = []
    if s.layout is None:
        return steps, dims
    order = tuple(reversed(s.layout.minor_to_major))
    if order != tuple(range(len(dims))):
        steps.append(Step("transpose", dims, order))
        dims = tuple(dims[a] for a in order)
    for tile in tiles(s.layout):
        dims = _tiled(steps, dims, tile)
    return steps, dims


def _tiled(steps: list[Step], dims: tuple[int, ...], tile: tuple[int, ...]) -> tuple[int, ...]:
    """Cut the last axes into tiles, which then come last."""
    k = len(tile)
    if len(dims) < k:
        steps.append(Step("reshape", dims))
        dims = (1,) * (k - len(dims)) + dims
    n = len(dims) - k
    whole = (*dims[:n], *(-(-d // m) * m for d, m in zip(dims[n:], tile, strict=True)))
    if whole != dims:
        steps.append(Step("pad", dims))
    split = (*dims[:n], *(p for d, m in zip(whole[n:], tile, strict=True) for p in (d // m, m)))
    steps.append(Step("reshape", whole))
    order = (*range(n), *range(n, n + 2 * k, 2), *range(n + 1, n + 2 * k, 2))
    steps.append(Step("transpose", split, order))
    return tuple(split[a] for a in order)


def _forward(b: Body, i: Instruction, x: Op, steps: list[Step], end: tuple[int, ...]) -> Op:
    for k, step in enumerate(steps):
        after = steps[k + 1].dims if k + 1 < len(steps) else end
        if step.kind == "transpose":
            x = b.helper(i, "stablehlo.transpose", (x,), permutation=step.order)
        elif step.kind == "reshape":
            x = b.helper(i, "stablehlo.reshape", (x,), result=TensorType(x.dtype, after))
        else:
            zero = b.constant(i, np.zeros((), x.dtype.np))
            high = tuple(m - d for d, m in zip(step.dims, after, strict=True))
            none = (0,) * len(high)
            x = b.helper(i, "stablehlo.pad", (x, zero), edge_padding_low=none, edge_padding_high=high,
                         interior_padding=none)  # fmt: skip
    return x


def _backward(b: Body, i: Instruction, x: Op, steps: list[Step]) -> Op:
    for step in reversed(steps):
        if step.kind == "transpose":
            inverse = tuple(int(a) for a in np.argsort(step.order))
            x = b.helper(i, "stablehlo.transpose", (x,), permutation=inverse)
        elif step.kind == "reshape":
            x = b.helper(i, "stablehlo.reshape", (x,), result=TensorType(x.dtype, step.dims))
        else:
            ones, zeros = (1,) * len(step.dims), (0,) * len(step.dims)
            x = b.helper(i, "stablehlo.slice", (x,), start_indices=zeros, limit_indices=step.dims, strides=ones)
    return x


def _other_elements(b: Body, i: Instruction, x: Op, t: TensorType) -> Op:
    """Memory as a row of elements of another type."""
    old, new = x.dtype, t.dtype
    if old.is_complex != new.is_complex or (min(old.bits, new.bits) < 8):
        raise i.error(f"a bitcast between {old} and {new} is not supported", Unsupported)
    n = x.tensor.size
    if old.bits == new.bits:
        return b.helper(i, "stablehlo.bitcast_convert", (x,), result=TensorType(new, x.shape))
    count = n * old.bits // new.bits
    if new.bits < old.bits:
        row = b.helper(i, "stablehlo.reshape", (x,), result=TensorType(old, (n,)))
        parts = TensorType(new, (n, old.bits // new.bits))
        return b.helper(i, "stablehlo.bitcast_convert", (row,), result=parts)
    groups = TensorType(old, (count, new.bits // old.bits))
    row = b.helper(i, "stablehlo.reshape", (x,), result=groups)
    return b.helper(i, "stablehlo.bitcast_convert", (row,), result=TensorType(new, (count,)))
