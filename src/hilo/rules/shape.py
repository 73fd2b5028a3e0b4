"""Rules about shape: transpose, reshape, broadcast, reverse. The canonical form prefers reshape (which is free) to
the others, and one op to a chain of them."""

from __future__ import annotations

from hilo.ir.dtypes import f32
from hilo.ir.op import Op
from hilo.ir.types import TensorType, Type
from hilo.rewrite import RuleSet, Var
from hilo.rewrite.ops import bitcast_convert, broadcast_in_dim, iota, reshape, reverse, transpose
from hilo.rewrite.rules import arg
from hilo.rules.units import inserted_units

x, p, q, t = Var("x"), Var("p"), Var("q"), Var("t")
SHAPE = RuleSet("shape")


def _f32(*shape: int) -> TensorType:
    return TensorType(f32, shape)


# ---- transpose
@SHAPE.rule(transpose(x, permutation=p), x=_f32(2, 3), p=(0, 1))
def transpose_of_nothing(x: Op, p: tuple[int, ...]) -> Op | None:
    return x if p == tuple(range(len(p))) else None


@SHAPE.rule(transpose(transpose(x, permutation=p), permutation=q), x=_f32(2, 3, 4), p=(1, 2, 0), q=(0, 2, 1))
def transposes_merge(x: Op, p: tuple[int, ...], q: tuple[int, ...]) -> Op:
    return transpose(x, permutation=tuple(p[i] for i in q))


@SHAPE.rule(transpose(x, permutation=p), x=_f32(2, 1, 3), p=(1, 0, 2))
def transpose_of_unit_dims_is_reshape(op: Op, x: Op, p: tuple[int, ...]) -> Op | None:
    """A transpose that keeps the order of all dims other than those of size 1 moves nothing."""
    moved = [d for d in p if x.shape[d] != 1]
    return reshape(x, type=op.type) if moved == sorted(moved) or op.tensor.size == 0 else None


@SHAPE.rule(
    transpose(broadcast_in_dim(x, broadcast_dimensions=p), permutation=q),
    example=lambda t: [
        transpose(
            broadcast_in_dim(arg(t, 2, 3), broadcast_dimensions=(0, 2), type=TensorType(t, (2, 4, 3))),
            permutation=(2, 1, 0),
        )
    ],
)
def transpose_of_broadcast(op: Op, x: Op, p: tuple[int, ...], q: tuple[int, ...]) -> Op:
    return broadcast_in_dim(x, broadcast_dimensions=tuple(q.index(d) for d in p), type=op.type)


# ---- reshape
@SHAPE.rule(reshape(x, type=t), x=_f32(2, 3), t=_f32(2, 3))
def reshape_of_nothing(op: Op, x: Op) -> Op | None:
    return x if x.type is op.type else None


@SHAPE.rule(
    reshape(reshape(x)),
    example=lambda t: [reshape(reshape(arg(t, 2, 3), type=TensorType(t, (6,))), type=TensorType(t, (3, 2)))],
)
def reshapes_merge(op: Op, x: Op) -> Op:
    return reshape(x, type=op.type)


@SHAPE.rule(
    reshape(broadcast_in_dim(x, broadcast_dimensions=p).named("b")),
    example=lambda t: [
        reshape(
            broadcast_in_dim(arg(t, 3), broadcast_dimensions=(1,), type=TensorType(t, (2, 3))),
            type=TensorType(t, (2, 1, 3)),
        )
    ],
)
def reshape_of_broadcast(op: Op, b: Op, x: Op, p: tuple[int, ...]) -> Op | None:
    """A reshape that puts in dims of size 1 after a broadcast: the broadcast can do that. (Of a scalar: any
    reshape.)"""
    if x.tensor.rank == 0:
        return broadcast_in_dim(x, broadcast_dimensions=(), type=op.type)
    where = inserted_units(b.shape, op.shape)
    return None if where is None else broadcast_in_dim(x, broadcast_dimensions=tuple(where[d] for d in p), type=op.type)


# ---- broadcast
@SHAPE.rule(
    broadcast_in_dim(x, broadcast_dimensions=p),
    example=lambda t: [
        broadcast_in_dim(arg(t, 3, 1, 2), broadcast_dimensions=(0, 1, 3), type=TensorType(t, (3, 1, 1, 2))),
        broadcast_in_dim(arg(t, 3, 2), broadcast_dimensions=(0, 1), type=TensorType(t, (3, 2))),
    ],
)
def broadcast_of_same_size(op: Op, x: Op, p: tuple[int, ...]) -> Op | None:
    """A broadcast that repeats nothing is a reshape if it also keeps the order of dims, else a transpose and a
    reshape."""
    if x.tensor.size != op.tensor.size:
        return None
    if x.type is op.type and p == tuple(range(len(p))):
        return x
    moved = [d for d, n in zip(p, x.shape) if n != 1]
    if moved == sorted(moved) or x.tensor.size == 0:
        return reshape(x, type=op.type)
    order = tuple(sorted(range(len(p)), key=lambda i: p[i]))
    return reshape(transpose(x, permutation=order), type=op.type)


@SHAPE.rule(
    broadcast_in_dim(broadcast_in_dim(x, broadcast_dimensions=p), broadcast_dimensions=q),
    example=lambda t: [
        broadcast_in_dim(
            broadcast_in_dim(arg(t, 3, 1), broadcast_dimensions=(1, 2), type=TensorType(t, (2, 3, 1))),
            broadcast_dimensions=(2, 0, 1),
            type=TensorType(t, (3, 4, 2)),
        )
    ],
)
def broadcasts_merge(op: Op, x: Op, p: tuple[int, ...], q: tuple[int, ...]) -> Op:
    return broadcast_in_dim(x, broadcast_dimensions=tuple(q[d] for d in p), type=op.type)


@SHAPE.rule(
    broadcast_in_dim(reshape(x).named("r"), broadcast_dimensions=q),
    example=lambda t: [
        broadcast_in_dim(
            reshape(arg(t, 3), type=TensorType(t, (3, 1))), broadcast_dimensions=(0, 1), type=TensorType(t, (3, 4))
        ),
        broadcast_in_dim(
            reshape(arg(t, 1, 1), type=TensorType(t, ())), broadcast_dimensions=(), type=TensorType(t, (3, 4))
        ),
    ],
)
def broadcast_of_units(op: Op, x: Op, r: Op, q: tuple[int, ...]) -> Op | None:
    """Broadcasting a value to which dims of size 1 were added: broadcast the value itself (softmax's keepdims)."""
    where = inserted_units(x.shape, r.shape)
    if where is not None:
        return broadcast_in_dim(x, broadcast_dimensions=tuple(q[d] for d in where), type=op.type)
    return None


@SHAPE.rule(
    broadcast_in_dim(transpose(x, permutation=p), broadcast_dimensions=q),
    example=lambda t: [
        broadcast_in_dim(
            transpose(arg(t, 3, 2), permutation=(1, 0)), broadcast_dimensions=(0, 2), type=TensorType(t, (2, 4, 3))
        )
    ],
)
def broadcast_of_transpose(op: Op, x: Op, p: tuple[int, ...], q: tuple[int, ...]) -> Op:
    """Dim i of x is dim j of its transpose where p[j] = i."""
    return broadcast_in_dim(x, broadcast_dimensions=tuple(q[p.index(i)] for i in range(len(p))), type=op.type)


@SHAPE.rule(
    broadcast_in_dim(iota(iota_dimension=q).named("i"), broadcast_dimensions=p),
    example=lambda t: [
        broadcast_in_dim(
            iota(iota_dimension=1, type=TensorType(t, (1, 3))),
            broadcast_dimensions=(0, 2),
            type=TensorType(t, (4, 2, 3)),
        )
    ],
)
def broadcast_of_iota(op: Op, i: Op, p: tuple[int, ...], q: int) -> Op | None:
    """A broadcast iota counts along the dim that its own became, unless that was a single 0 that is repeated."""
    return iota(iota_dimension=p[q], type=op.type) if op.shape[p[q]] == i.shape[q] else None


@SHAPE.rule(
    reshape(iota(iota_dimension=q).named("i")),
    example=lambda t: [
        reshape(iota(iota_dimension=1, type=TensorType(t, (2, 3))), type=TensorType(t, (2, 1, 3))),
        reshape(iota(iota_dimension=1, type=TensorType(t, (1, 3, 1))), type=TensorType(t, (3,))),
    ],
)
def reshape_of_iota(op: Op, i: Op, q: int) -> Op | None:
    """Dims of size 1 come and go around the dim that counts."""
    if i.shape[q] == 1 or [n for n in i.shape if n != 1] != [n for n in op.shape if n != 1]:
        return None
    before = sum(n != 1 for n in i.shape[:q])
    counting = [d for d, n in enumerate(op.shape) if n != 1][before]
    return iota(iota_dimension=counting, type=op.type)


# ---- reverse
@SHAPE.rule(
    reverse(x, dimensions=p),
    example=lambda t: [reverse(arg(t, 2, 1), dimensions=(1,)), reverse(arg(t, 2, 1), dimensions=(1, 0))],
)
def reverse_of_unit_dims(x: Op, p: tuple[int, ...]) -> Op | None:
    kept = tuple(d for d in p if x.shape[d] > 1)
    return None if len(kept) == len(p) else reverse(x, dimensions=kept) if kept else x


@SHAPE.rule(reverse(reverse(x, dimensions=p), dimensions=q), x=_f32(2, 3, 4), p=(0, 1), q=(1, 2))
def reverses_merge(x: Op, p: tuple[int, ...], q: tuple[int, ...]) -> Op:
    """Reversing a dim twice does nothing."""
    left = tuple(sorted({*p} ^ {*q}))
    return reverse(x, dimensions=left) if left else x


# ---- bitcast
@SHAPE.rule(bitcast_convert(x, type=t), x=_f32(2, 3), t=_f32(2, 3))
def bitcast_of_nothing(op: Op, x: Op) -> Op | None:
    return x if x.type is op.type else None


@SHAPE.rule(
    bitcast_convert(bitcast_convert(x)),
    example=lambda t: [
        bitcast_convert(bitcast_convert(arg(t, 2), type=TensorType(f32, (2,))), type=TensorType(t, (2,)))
    ],
)
def bitcasts_merge(op: Op, x: Op) -> Op | None:
    """Bits keep their order whatever the types between; the ends may differ in width by one dim at most."""
    source: Type = x.type
    assert isinstance(source, TensorType)
    if source is op.type:
        return x
    same_width = source.dtype.bits == op.dtype.bits and source.shape == op.shape
    return bitcast_convert(x, type=op.type) if same_width else None
