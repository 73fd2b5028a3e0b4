"""Ops whose shapes are operands: dynamic_reshape, dynamic_pad, real_dynamic_slice ... Imports ir, loop, ops.

Where the result's type is static, its sizes are known and the operands that hold sizes are not needed; starts and
padding may still be known only at run time. What can be computed from constants becomes the static op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from hilo.errors import VerifyError, require
from hilo.ir.dims import larger
from hilo.ir.dtypes import f32, i1, i32, i64
from hilo.ir.interpret import evaluate as evaluate_op
from hilo.ir.module import topological
from hilo.ir.op import PARAMETER, Op
from hilo.ir.registry import op
from hilo.ir.types import UNKNOWN, Dim, TensorType, Type
from hilo.loop import index as indices
from hilo.loop.builder import I1, Builder, Node
from hilo.loop.element import Elem
from hilo.loop.index import Index, from_node, node
from hilo.ops.checks import in_range, result_is, tensor, unique
from hilo.ops.concat_pad import pad
from hilo.ops.elements import Indices, Operand, choose
from hilo.ops.gather import gather
from hilo.ops.shape import broadcast_in_dim, iota, reshape
from hilo.ops.sharding import unsharded
from hilo.ops.slicing import slice_

LIMIT: Final = 200  # ops that are looked at for a constant
FAR: Final = 1 << 40  # sizes and starts beyond it mean nothing: cut, so that no sum overflows


def known(x: Op) -> np.ndarray | None:
    """The value of `x` if it depends on constants and static sizes only, else None."""
    values: dict[Op, Any] = {}
    for o in topological([x])[-LIMIT:]:
        if o.kind.name == "get_dimension_size" and isinstance(n := o.operands[0].shape[o.attrs["dimension"]], int):
            values[o] = np.asarray(n, np.int32)
        elif o.kind is PARAMETER or o.kind.effect or any(v not in values for v in o.operands):
            continue
        elif isinstance(o.type, TensorType) and 0 <= o.type.size <= LIMIT:
            values[o] = evaluate_op(o, [values[v] for v in o.operands])
    return values.get(x)


def numbers(t: Type, n: int, what: str, rule: str) -> TensorType:
    """`t`, known to be a vector of `n` integers afterwards."""
    t = tensor(t)
    ok = t.rank == 1 and t.dtype.is_int and t.shape[0] == n
    require(ok, rule, "{what} must be a vector of {n} integers, not {t}", what=what, n=n, t=t)
    return t


def int_tuple(x: np.ndarray) -> tuple[int, ...]:
    """The integers of an array within +-FAR."""
    return tuple(max(-FAR, min(FAR, int(v))) for v in x.reshape(-1))


def _sizes(t: TensorType, value: np.ndarray) -> TensorType:
    """The result type with its unknown sizes filled in."""
    return t if t.is_static else t.with_shape(int_tuple(value))


def _number(b: Builder, x: Operand, d: int) -> Node:
    """Number `d` of a vector of integers as an i64 within +-FAR."""
    e = x([indices.constant(d)])
    v = e.re if e.re.type.bits == 64 else b.convert("zext" if e.dtype.kind == "u" else "sext", e.re, "i64")
    if e.dtype.kind == "u" and e.dtype.bits == 64:
        v = b.select(b.cmp("ult", v, FAR), v, FAR)
    return b.smax(b.smin(v, FAR), -FAR)


@op("dynamic_reshape", typed=True)
class dynamic_reshape:
    """`reshape` to the shape that the second operand holds. Spec: dynamic_reshape."""

    @staticmethod
    def infer(x: Type, output_shape: Type, *, type: Type) -> Type:  # noqa: A002
        x, t = tensor(x), tensor(type)
        numbers(output_shape, t.rank, "output_shape", "C4")
        return reshape.infer(x, type=t)

    @staticmethod
    def evaluate(x: np.ndarray, output_shape: np.ndarray, *, type: TensorType) -> np.ndarray:  # noqa: A002
        return np.reshape(x, _sizes(type, output_shape).shape)

    @staticmethod
    def expand(x: Op, output_shape: Op, *, type: TensorType) -> Op | None:  # noqa: A002
        return reshape(x, type=type) if type.is_static and x.tensor.is_static else None

    sharding = staticmethod(unsharded)
    examples = [((TensorType(f32, (2, 3)), TensorType(i32, (1,))), {"type": TensorType(f32, (6,))})]


@op("dynamic_broadcast_in_dim", typed=True)
class dynamic_broadcast_in_dim:
    """`broadcast_in_dim` to the shape that the second operand holds. Spec: dynamic_broadcast_in_dim."""

    attrs = {"known_expanding_dimensions": None, "known_nonexpanding_dimensions": None}

    @staticmethod
    def infer(
        x: Type,
        output_dimensions: Type,
        *,
        broadcast_dimensions: tuple[int, ...],
        known_expanding_dimensions: tuple[int, ...] | None,
        known_nonexpanding_dimensions: tuple[int, ...] | None,
        type: Type,  # noqa: A002
    ) -> Type:
        x, t = tensor(x), tensor(type)
        numbers(output_dimensions, t.rank, "output_dimensions", "C7")
        grow, stay = known_expanding_dimensions or (), known_nonexpanding_dimensions or ()
        require(unique([*grow, *stay]), "C8", "known dimensions {a}, {b} name an axis twice", a=grow, b=stay)
        require(in_range(grow, x.rank), "C9", "known_expanding_dimensions {d} are not all axes of {x}", d=grow, x=x)
        require(in_range(stay, x.rank), "C10", "known_nonexpanding_dimensions {d} are not all axes of {x}", d=stay, x=x)
        return broadcast_in_dim.infer(x, broadcast_dimensions=broadcast_dimensions, type=t)

    @staticmethod
    def evaluate(x: np.ndarray, output_dimensions: np.ndarray, *, broadcast_dimensions: tuple[int, ...],
                 type: TensorType, **_: Any) -> np.ndarray:  # noqa: A002  # fmt: skip
        assert broadcast_in_dim.evaluate is not None
        t = _sizes(type, output_dimensions)
        return broadcast_in_dim.evaluate(x, broadcast_dimensions=broadcast_dimensions, type=t)

    @staticmethod
    def expand(x: Op, output_dimensions: Op, *, broadcast_dimensions: tuple[int, ...], type: TensorType,  # noqa: A002
               **_: Any) -> Op | None:  # fmt: skip
        if not (type.is_static and x.tensor.is_static):
            return None
        return broadcast_in_dim(x, broadcast_dimensions=broadcast_dimensions, type=type)

    sharding = staticmethod(unsharded)
    examples = [((TensorType(f32, (1, 3)), TensorType(i64, (3,))),
                 {"broadcast_dimensions": (2, 1), "type": TensorType(f32, (2, 3, 4))})]  # fmt: skip


@op("dynamic_iota", typed=True)
class dynamic_iota:
    """`iota` of the shape that the operand holds. Spec: dynamic_iota."""

    @staticmethod
    def infer(output_shape: Type, *, iota_dimension: int, type: Type) -> Type:  # noqa: A002
        t = tensor(type)
        numbers(output_shape, t.rank, "output_shape", "C2")
        return iota.infer(iota_dimension=iota_dimension, type=t)

    @staticmethod
    def evaluate(output_shape: np.ndarray, *, iota_dimension: int, type: TensorType) -> np.ndarray:  # noqa: A002
        assert iota.evaluate is not None
        return iota.evaluate(iota_dimension=iota_dimension, type=_sizes(type, output_shape))

    @staticmethod
    def expand(output_shape: Op, *, iota_dimension: int, type: TensorType) -> Op | None:  # noqa: A002
        return iota(iota_dimension=iota_dimension, type=type) if type.is_static else None

    sharding = staticmethod(unsharded)
    examples = [((TensorType(i32, (2,)),), {"iota_dimension": 1, "type": TensorType(f32, (2, 3))})]


@op("dynamic_pad", typed=True)
class dynamic_pad:
    """`pad` by numbers that operands hold: edge_padding_low, edge_padding_high, interior_padding. Spec: dynamic_pad."""

    @staticmethod
    def infer(x: Type, value: Type, low: Type, high: Type, interior: Type, *, type: Type) -> Type:  # noqa: A002
        x, v, t = tensor(x), tensor(value), tensor(type)
        ok = v.dtype is x.dtype and t.dtype is x.dtype and v.rank == 0
        require(ok, "C1", "{x}, padding value {v} and result {t} need one element type", x=x, v=v, t=t)
        for what, p in (("edge_padding_low", low), ("edge_padding_high", high), ("interior_padding", interior)):
            numbers(p, x.rank, what, "C2")
        require(low is high is interior, "C2", "paddings have several types: {p}", p=(low, high, interior))
        require(t.rank == x.rank, "C4", "the result {t} must have the rank of {x}", t=t, x=x)
        return t

    @staticmethod
    def evaluate(x: np.ndarray, value: np.ndarray, low: np.ndarray, high: np.ndarray, interior: np.ndarray, *,
                 type: TensorType) -> np.ndarray:  # noqa: A002  # fmt: skip
        lows, highs, steps = int_tuple(low), int_tuple(high), [max(i, 0) + 1 for i in int_tuple(interior)]
        shape = type.shape
        if not type.is_static:
            spread = [(n - 1) * s + 1 if n else 0 for n, s in zip(x.shape, steps, strict=True)]
            shape = tuple(max(0, lo + n + hi) for lo, n, hi in zip(lows, spread, highs, strict=True))
        to, source = [], []
        for m, n, lo, step in zip(shape, x.shape, lows, steps, strict=True):
            place = np.arange(m) - lo
            there = (place >= 0) & (place % step == 0) & (place // step < n)
            to.append(np.flatnonzero(there))
            source.append(place[there] // step)
        out = np.full(shape, value, x.dtype)
        out[np.ix_(*to)] = x[np.ix_(*source)]
        return out

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices, x: Operand, value: Operand, low: Operand, high: Operand,
                interior: Operand, **_: Any) -> Elem:  # fmt: skip
        at: list[Index] = []
        inside = b.const(1, I1)
        for d, (ix, n) in enumerate(zip(index, x.type.shape, strict=True)):
            place = b.sub(node(b, ix), _number(b, low, d))
            step = b.add(b.smax(_number(b, interior, d), 0), 1)
            there = b.smax(place, 0)
            quotient = b.binary("udiv", there, step)
            for test in (b.cmp("sge", place, 0), b.cmp("eq", b.mul(quotient, step), there), b.cmp("slt", quotient, n)):
                inside = b.and_(inside, test)
            at.append(from_node(b, b.smin(quotient, larger(n - 1, 0)), 0, larger(n, 1)))
        return choose(b, inside, lambda: x(at), lambda: value(()))

    @staticmethod
    def expand(x: Op, value: Op, low: Op, high: Op, interior: Op, *, type: TensorType) -> Op | None:  # noqa: A002
        found = [known(p) for p in (low, high, interior)]
        if not type.is_static or any(p is None for p in found):
            return None
        names = ("edge_padding_low", "edge_padding_high", "interior_padding")
        attrs = {k: int_tuple(p) for k, p in zip(names, found, strict=True) if p is not None}
        return as_declared(lambda: pad(x, value, **attrs), type)

    sharding = staticmethod(unsharded)
    examples = [((TensorType(f32, (2, 3)), TensorType(f32), *[TensorType(i32, (2,))] * 3),
                 {"type": TensorType(f32, (4, 20))}),
                ((TensorType(i32, (0,)), TensorType(i32), *[TensorType(i64, (1,))] * 3),
                 {"type": TensorType(i32, (3,))})]  # fmt: skip


@op("real_dynamic_slice", typed=True)
class real_dynamic_slice:
    """`slice` by numbers that operands hold: start_indices, limit_indices, strides.

    What would be read outside of the operand (a program's mistake) is the nearest element. Spec: none, a dialect's op.
    """

    @staticmethod
    def infer(x: Type, start: Type, limit: Type, strides: Type, *, type: Type) -> Type:  # noqa: A002
        x, t = tensor(x), tensor(type)
        for what, p in (("start_indices", start), ("limit_indices", limit), ("strides", strides)):
            numbers(p, x.rank, what, "I2")
        require(t.dtype is x.dtype and t.rank == x.rank, "C1", "the result {t} of a slice of {x}", t=t, x=x)
        return t

    @staticmethod
    def evaluate(x: np.ndarray, start: np.ndarray, limit: np.ndarray, strides: np.ndarray, *,
                 type: TensorType) -> np.ndarray:  # noqa: A002  # fmt: skip
        columns = list(zip(int_tuple(start), int_tuple(limit), int_tuple(strides), strict=True))
        shape = type.shape if type.is_static else tuple(max(0, -(-(e - s) // max(k, 1))) for s, e, k in columns)
        at = [np.clip(s + np.clip(np.arange(m) * k, -FAR, FAR), 0, max(n - 1, 0))
              for (s, _, k), m, n in zip(columns, shape, x.shape, strict=True)]  # fmt: skip
        return x[np.ix_(*at)] if x.size else np.zeros(shape, x.dtype)

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices, x: Operand, start: Operand, limit: Operand,
                strides: Operand, **_: Any) -> Elem:  # fmt: skip
        at = []
        for d, (ix, n) in enumerate(zip(index, x.type.shape, strict=True)):
            offset = b.smax(b.smin(b.mul(node(b, ix), _number(b, strides, d)), FAR), -FAR)
            place = b.add(offset, _number(b, start, d))
            at.append(from_node(b, b.smax(b.smin(place, larger(n - 1, 0)), 0), 0, larger(n, 1)))
        return x(at)

    @staticmethod
    def expand(x: Op, start: Op, limit: Op, strides: Op, *, type: TensorType) -> Op | None:  # noqa: A002
        found = [known(p) for p in (start, limit, strides)]
        if not type.is_static or any(p is None for p in found):
            return None
        names = ("start_indices", "limit_indices", "strides")
        attrs = {k: int_tuple(p) for k, p in zip(names, found, strict=True) if p is not None}
        return as_declared(lambda: slice_(x, **attrs), type)

    sharding = staticmethod(unsharded)
    examples = [((TensorType(f32, (5, 9)), *[TensorType(i32, (2,))] * 3), {"type": TensorType(f32, (2, 4))}),
                ((TensorType(i1, (3,)), *[TensorType(i64, (1,))] * 3), {"type": TensorType(i1, (0,))})]  # fmt: skip


@op("dynamic_gather", typed=True)
class dynamic_gather:
    """`gather` whose slice_sizes are the third operand. Spec: dynamic_gather, with the constraint numbers of gather."""

    attrs = dict(gather.attrs)

    @staticmethod
    def infer(x: Type, start_indices: Type, slice_sizes: Type, *, type: Type, **attrs: Any) -> Type:  # noqa: A002
        x, t = tensor(x), tensor(type)
        numbers(slice_sizes, x.rank, "slice_sizes", "C20")
        require(t.dtype is x.dtype, "C23", "the result has another element type: {t} from {x}", t=t, x=x)
        known_sizes = t.is_static and x.is_static
        sizes = _slices(x.rank, t, attrs) if known_sizes else (UNKNOWN,) * x.rank
        return result_is(t, tensor(gather.infer(x, start_indices, slice_sizes=sizes, **attrs)).shape, None, "C22")

    @staticmethod
    def evaluate(x: np.ndarray, start_indices: np.ndarray, slice_sizes: np.ndarray, *, type: TensorType,  # noqa: A002
                 **attrs: Any) -> np.ndarray:  # fmt: skip
        assert gather.evaluate is not None
        sizes = _slices(x.ndim, type, attrs) if type.is_static else int_tuple(slice_sizes)
        return gather.evaluate(x, start_indices, slice_sizes=sizes, **attrs)

    @staticmethod
    def expand(x: Op, start_indices: Op, slice_sizes: Op, *, type: TensorType, **attrs: Any) -> Op | None:  # noqa: A002
        if not (type.is_static and x.tensor.is_static and start_indices.tensor.is_static):
            return None
        return gather(x, start_indices, slice_sizes=_slices(x.tensor.rank, type, attrs), **attrs)

    sharding = staticmethod(unsharded)
    examples = [
        ((TensorType(f32, (3, 4, 2)), TensorType(i32, (2, 3, 2)), TensorType(i64, (3,))),
         {"offset_dims": (2, 3), "collapsed_slice_dims": (0,), "start_index_map": (1, 0), "index_vector_dim": 2,
          "type": TensorType(f32, (2, 3, 2, 2))}),
    ]  # fmt: skip


def _slices(rank: int, t: TensorType, attrs: dict[str, Any]) -> tuple[int, ...]:
    """The slice sizes that give a result of type `t`: its offset axes, and 1 for what is dropped."""
    dropped = (*attrs["collapsed_slice_dims"], *attrs["operand_batching_dims"])
    sizes = iter([t.shape[d] for d in attrs["offset_dims"] if d < t.rank])
    return tuple(1 if d in dropped else next(sizes, 1) for d in range(rank))


@op("set_dimension_size", typed=True)
class set_dimension_size:
    """The first `size` elements along the axis `dimension`; the rest of the operand is no longer part of it.

    Operands: a tensor, the size (rank-0 i32). Spec: none; it is in the dialect.
    """

    @staticmethod
    def infer(x: Type, size: Type, *, dimension: int, type: Type) -> Type:  # noqa: A002
        x, s, t = tensor(x), tensor(size), tensor(type)
        require(0 <= dimension < x.rank, "C1", "dimension {d} is not an axis of {x}", d=dimension, x=x)
        require(s.rank == 0 and s.dtype.is_int, "I2", "the size must be a rank-0 integer, not {s}", s=s)
        return result_is(t, [Dim() if d == dimension else n for d, n in enumerate(x.shape)], x.dtype, "C2")

    @staticmethod
    def evaluate(x: np.ndarray, size: np.ndarray, *, dimension: int, type: TensorType) -> np.ndarray:  # noqa: A002
        declared = type.shape[dimension]
        n = declared if isinstance(declared, int) else max(0, min(int(size), x.shape[dimension]))
        return x[(slice(None),) * dimension + (slice(0, n),)]

    @staticmethod
    def expand(x: Op, size: Op, *, dimension: int, type: TensorType) -> Op | None:  # noqa: A002
        if not type.is_static or not x.tensor.is_static:
            return None
        return slice_(x, start_indices=(0,) * type.rank, limit_indices=type.shape, strides=(1,) * type.rank)

    sharding = staticmethod(unsharded)
    examples = [((TensorType(f32, (2, 5)), TensorType(i32)), {"dimension": 1, "type": TensorType(f32, (2, 5))})]


def as_declared(make: Callable[[], Op], t: TensorType) -> Op | None:
    """What `make` gives if it is valid and of the declared type; where numbers contradict it the op stays as it is."""
    try:
        x = make()
    except VerifyError:
        return None
    return x if x.type is t else None
