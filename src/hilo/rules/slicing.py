"""Rules about slice, concatenate, pad, and dynamic slices and gathers whose indices are known."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from hilo.ir.dtypes import DType, i32
from hilo.ir.op import Array, Op
from hilo.ir.types import TensorType
from hilo.rewrite import Literal, RuleSet, Var
from hilo.rewrite.ops import (
    broadcast_in_dim,
    concatenate,
    dynamic_slice,
    dynamic_update_slice,
    gather,
    pad,
    reshape,
    slice_,
)
from hilo.rewrite.pattern import constant
from hilo.rewrite.rules import arg

x, y, v = Var("x"), Var("y"), Var("v")
b, e, s = Var("b"), Var("e"), Var("s")  # start_indices, limit_indices, strides
b2, s2 = Var("b2"), Var("s2")
p = Var("p")
SLICING = RuleSet("slicing")


def _slice(x: Op, starts: tuple[int, ...], limits: tuple[int, ...], strides: tuple[int, ...] | None = None) -> Op:
    return slice_(x, start_indices=starts, limit_indices=limits, strides=strides or (1,) * len(starts))


def _sliced(t: DType, *shape: int) -> Op:
    """An example: x[1:4:2, 0:2] and so on."""
    n = len(shape)
    return _slice(arg(t, *shape), (1,) * n, shape, (2,) * n)


# ---- slice
@SLICING.rule(slice_(x), example=lambda t: [_slice(arg(t, 3, 2), (0, 0), (3, 2)), _slice(arg(t, 1), (0,), (1,), (4,))])
def slice_of_everything(op: Op, x: Op) -> Op | None:
    return x if x.type is op.type else None


@SLICING.rule(
    slice_(slice_(x, start_indices=b, strides=s), start_indices=b2, strides=s2),
    example=lambda t: [_slice(_sliced(t, 9, 4), (1, 0), (4, 1), (2, 1)), _slice(_sliced(t, 9), (2,), (2,), (3,))],
)
def slices_merge(op: Op, x: Op, b: tuple[int, ...], s: tuple[int, ...], b2: tuple[int, ...], s2: tuple[int, ...]) -> Op:
    """x[b::s][b2::s2] is x[b + s * b2 :: s * s2]; the limits follow from the shape, so that they stay inside x."""
    strides = tuple(a * c for a, c in zip(s, s2))
    starts = tuple(min(i + a * j, n) for i, a, j, n in zip(b, s, b2, x.shape))
    limits = tuple(i + (n - 1) * a + 1 if n else i for i, n, a in zip(starts, op.shape, strides))
    return _slice(x, starts, limits, strides)


@SLICING.rule(
    slice_(concatenate.any.named("c"), start_indices=b, limit_indices=e, strides=s),
    example=lambda t: [
        _slice(concatenate(arg(t, 2, 3), arg(t, 2, 2), arg(t, 2, 4), dimension=1), (0, lo), (2, hi))
        for lo, hi in ((3, 5), (5, 8), (1, 4), (4, 4))
    ],
)
def slice_of_concatenate(c: Op, b: tuple[int, ...], e: tuple[int, ...], s: tuple[int, ...]) -> Op | None:
    """Only the operands that the slice touches are needed."""
    d: int = c.attrs["dimension"]
    starts = [0, *accumulate(o.shape[d] for o in c.operands)]
    touched = [i for i, o in enumerate(c.operands) if starts[i] < e[d] and starts[i] + o.shape[d] > b[d] and o.shape[d]]
    if len(touched) == len(c.operands) or not touched:
        return None
    shift = starts[touched[0]]
    parts = [c.operands[i] for i in touched]
    source = parts[0] if len(parts) == 1 else concatenate(*parts, dimension=d)
    return _slice(source, (*b[:d], b[d] - shift, *b[d + 1 :]), (*e[:d], e[d] - shift, *e[d + 1 :]), s)


@SLICING.rule(
    slice_(broadcast_in_dim(x, broadcast_dimensions=p), start_indices=b, limit_indices=e, strides=s),
    example=lambda t: [
        _slice(
            broadcast_in_dim(arg(t, 5, 1), broadcast_dimensions=(1, 2), type=TensorType(t, (4, 5, 3))),
            (1, 2, 0),
            (3, 5, 2),
            (1, 2, 1),
        ),
        _slice(broadcast_in_dim(arg(t), broadcast_dimensions=(), type=TensorType(t, (4,))), (1,), (3,)),
    ],
)
def slice_of_broadcast(
    op: Op, x: Op, p: tuple[int, ...], b: tuple[int, ...], e: tuple[int, ...], s: tuple[int, ...]
) -> Op:
    """Slice what is broadcast, in the dims that it has, and broadcast to the smaller shape."""
    real = [d if n != 1 else None for d, n in zip(p, x.shape)]
    if all(d is None or (b[d], e[d], s[d]) == (0, n, 1) for d, n in zip(real, x.shape)):
        return broadcast_in_dim(x, broadcast_dimensions=p, type=op.type)
    starts = tuple(0 if d is None else b[d] for d in real)
    limits = tuple(1 if d is None else e[d] for d in real)
    strides = tuple(1 if d is None else s[d] for d in real)
    return broadcast_in_dim(_slice(x, starts, limits, strides), broadcast_dimensions=p, type=op.type)


# ---- concatenate
@SLICING.rule(
    concatenate,
    example=lambda t: [
        concatenate(arg(t, 2), dimension=0),
        concatenate(arg(t, 0, 2), arg(t, 3, 2), arg(t, 0, 2), dimension=0),
    ],
)
def concatenate_of_empty(op: Op) -> Op | None:
    """Empty operands add nothing; a single operand is the result."""
    d: int = op.attrs["dimension"]
    kept = [o for o in op.operands if o.shape[d]] or [op.operands[0]]
    if len(kept) == 1:
        return kept[0]
    return concatenate(*kept, dimension=d) if len(kept) < len(op.operands) else None


@SLICING.rule(
    concatenate, example=lambda t: [concatenate(arg(t, 2), concatenate(arg(t, 1), arg(t, 3), dimension=0), dimension=0)]
)
def concatenates_flatten(op: Op, uses: dict[Op, int]) -> Op | None:
    """A concatenation inside another one along the same dim, and used only there, is taken apart."""
    d: int = op.attrs["dimension"]
    nested = [o.kind is op.kind and o.attrs["dimension"] == d and uses.get(o, 0) <= 1 for o in op.operands]
    if not any(nested):
        return None
    flat = [q for o, inside in zip(op.operands, nested) for q in (o.operands if inside else (o,))]
    return concatenate(*flat, dimension=d)


@SLICING.rule(
    concatenate,
    example=lambda t: [concatenate(*(_slice(a, (i,), (i + 2,)) for i in (1, 3)), dimension=0) for a in (arg(t, 6),)],
)
def concatenate_of_adjacent_slices(op: Op) -> Op | None:
    """x[a:b] followed by x[b:c] is x[a:c]."""
    d: int = op.attrs["dimension"]
    merged: list[Op] = []
    for o in op.operands:
        if merged and (both := _joined(merged[-1], o, d)) is not None:
            merged[-1] = both
        else:
            merged.append(o)
    if len(merged) == len(op.operands):
        return None
    return merged[0] if len(merged) == 1 else concatenate(*merged, dimension=d)


def _joined(first: Op, second: Op, d: int) -> Op | None:
    """The slice that is `first` followed by `second` along `d`, if both are neighbouring pieces of one value."""
    if first.kind.name != "slice" or second.kind.name != "slice" or first.operands[0] is not second.operands[0]:
        return None
    a, c = first.attrs, second.attrs
    if a["strides"] != c["strides"] or a["strides"][d] != 1 or a["limit_indices"][d] != c["start_indices"][d]:
        return None
    for i in range(len(a["strides"])):
        if i != d and (a["start_indices"][i], a["limit_indices"][i]) != (c["start_indices"][i], c["limit_indices"][i]):
            return None
    return _slice(first.operands[0], a["start_indices"], c["limit_indices"], a["strides"])


# ---- pad
@SLICING.rule(
    pad(x, v).named("pad"),
    example=lambda t: [
        pad(arg(t, 4, 5), arg(t), edge_padding_low=lo, edge_padding_high=hi, interior_padding=inner)
        for lo, hi, inner in (((0, 0), (0, 0), (0, 0)), ((-1, 0), (-2, 0), (0, 0)))
    ],
)
def pad_without_padding(op: Op, x: Op) -> Op | None:
    """Padding by nothing is nothing; by negative amounts, a slice."""
    low, high = op.attrs["edge_padding_low"], op.attrs["edge_padding_high"]
    if (
        any(op.attrs["interior_padding"][d] for d in range(x.tensor.rank) if x.shape[d] > 1)
        or max((*low, *high), default=0) > 0
    ):
        return None
    if op.type is x.type:
        return x if not any(low) and not any(high) else None
    starts = tuple(-n for n in low)
    limits = tuple(n + h for n, h in zip(x.shape, high))
    if any(a > c for a, c in zip(starts, limits)):
        return None
    return _slice(x, starts, limits)


# ---- known indices
@SLICING.rule(
    dynamic_slice,
    example=lambda t: [
        dynamic_slice(arg(t, 4, 5), *(constant(Array(np.int32(i))) for i in at), slice_sizes=(2, 3))
        for at in ((1, 2), (-3, 99), (0, 0))
    ],
)
def dynamic_slice_at_known_place(op: Op) -> Op | None:
    """The start is clamped so that the slice fits."""
    x, *starts = op.operands
    if any(i.kind.name != "constant" for i in starts):
        return None
    return _slice_at(x, [int(i.attrs["value"].scalar) for i in starts], op.attrs["slice_sizes"])


def _slice_at(x: Op, starts: list[int], sizes: tuple[int, ...]) -> Op:
    at = tuple(min(max(i, 0), n - size) for i, n, size in zip(starts, x.shape, sizes))
    return _slice(x, at, tuple(i + size for i, size in zip(at, sizes)))


@SLICING.rule(dynamic_slice, example=lambda t: [dynamic_slice(arg(t, 4, 1), arg(i32), arg(i32), slice_sizes=(4, 1))])
def dynamic_slice_of_everything(op: Op) -> Op | None:
    """Clamping leaves only one place for a slice of full size."""
    return op.operands[0] if op.operands[0].type is op.type else None


@SLICING.rule(
    dynamic_update_slice,
    example=lambda t: [
        dynamic_update_slice(arg(t, 4, 2), arg(t, 4, 2), arg(i32), arg(i32)),
        dynamic_update_slice(arg(t, 4), arg(t, 0), arg(i32)),
    ],
)
def dynamic_update_of_everything(op: Op) -> Op | None:
    """An update of full size is the result; an empty one changes nothing."""
    x, update = op.operands[:2]
    return update if update.type is x.type else x if update.tensor.size == 0 else None


@SLICING.rule(
    gather(x, Literal(y)),
    example=lambda t: [
        gather(
            arg(t, 4, 5),
            constant(Array(np.array(at, np.int32))),
            offset_dims=(0,),
            collapsed_slice_dims=(0,),
            start_index_map=(0,),
            index_vector_dim=0,
            slice_sizes=(1, 5),
        )
        for at in ([2], [-1], [9])
    ],
)
def gather_at_known_place(op: Op, x: Op, y: Op) -> Op | None:
    """A gather of one slice at a known (clamped) place is that slice, if it does not reorder dims."""
    a = op.attrs
    index: Array = y.attrs["value"]
    if (
        index.data.size != len(a["start_index_map"])
        or a["operand_batching_dims"]
        or op.tensor.size != _product(a["slice_sizes"])
    ):
        return None
    starts = [0] * x.tensor.rank
    for d, i in zip(a["start_index_map"], index.data.reshape(-1).tolist()):
        starts[d] = i
    return reshape(_slice_at(x, starts, a["slice_sizes"]), type=op.type)


def _product(sizes: tuple[int, ...]) -> int:
    return int(np.prod(sizes, dtype=np.int64))
