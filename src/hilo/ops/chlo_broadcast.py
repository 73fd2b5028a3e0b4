"""CHLO's broadcast_* ops: an elementwise op after broadcasting its operands against each other. Imports ir.

Operands of equal rank broadcast along axes of size 1. Operands of different rank: `broadcast_dimensions` says which
axes of the result those of the smaller one are; without it they are the last ones. They expand to broadcast_in_dim
and the op.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import f32, i1, i32
from hilo.ir.op import Op, OpDef
from hilo.ir.registry import op
from hilo.ir.types import Dim, TensorType, Type, UnrankedType
from hilo.ops import chlo, chlo_series, compare, elementwise_arith, elementwise_bits, elementwise_math
from hilo.ops.checks import ascending, in_range, same_dim, tensors, unique
from hilo.ops.complex import complex_
from hilo.ops.numeric import Arr
from hilo.ops.shape import axis_names, broadcast_in_dim

Dims = tuple[int, ...] | None


def axes_of(t: TensorType, rank: int, broadcast_dimensions: Dims) -> tuple[int, ...]:
    """The axes of a result of `rank` axes that the axes of `t` are."""
    if t.rank == rank:
        return tuple(range(rank))
    return tuple(range(rank - t.rank, rank)) if broadcast_dimensions is None else tuple(broadcast_dimensions)


def broadcast_shape(types: tuple[TensorType, ...], dims: Dims) -> tuple[Any, ...]:
    """The shape that operands of these types have in common after broadcasting; `VerifyError` if there is none."""
    rank = max(t.rank for t in types)
    if dims is not None:
        least = min(t.rank for t in types)
        require(len(dims) == least, "", "broadcast_dimensions {dims} must name {n} axes, as the smaller operand has",
                dims=dims, n=least)  # fmt: skip
        ok = in_range(dims, rank) and unique(dims) and ascending(dims)
        require(
            ok, "", "broadcast_dimensions {dims} must be ascending axes of a rank-{rank} result", dims=dims, rank=rank
        )
        require(
            least < rank or dims == tuple(range(rank)),
            "",
            "broadcast_dimensions {dims} of operands of equal rank",
            dims=dims,
        )
    shape: list[Any] = [1] * rank
    for t in types:
        for n, at in zip(t.shape, axes_of(t, rank, dims)):
            if n == 1:
                continue
            require(shape[at] == 1 or same_dim(shape[at], n), "", "operands {types} do not broadcast", types=types)
            shape[at] = n if shape[at] == 1 or isinstance(shape[at], Dim) else shape[at]
    return tuple(shape)


def broadcast(x: Arr, shape: tuple[int, ...], dims: Dims) -> Arr:
    """The array `x` in `shape`."""
    if x.ndim < len(shape) and dims is not None:
        x = x.reshape([x.shape[dims.index(d)] if d in dims else 1 for d in range(len(shape))])
    return np.broadcast_to(x, shape)


def broadcast_op(x: Op, shape: tuple[int, ...], dims: Dims) -> Op:
    """The value `x` in `shape`."""
    if x.shape == shape:
        return x
    return broadcast_in_dim(
        x, broadcast_dimensions=axes_of(x.tensor, len(shape), dims), type=TensorType(x.dtype, shape)
    )


def sharding(*types: TensorType, out: TensorType, broadcast_dimensions: Dims = None, **_: Any) -> str:
    """Axes of size 1 that are repeated have names of their own; the others are the result's."""
    names = axis_names(out.rank)
    spare = iter(axis_names(out.rank + sum(t.rank for t in types))[out.rank :])
    ins = []
    for t in types:
        axes = axes_of(t, out.rank, broadcast_dimensions)
        ins.append("".join(next(spare) if n == 1 and out.shape[a] != 1 else names[a] for n, a in zip(t.shape, axes)))
    return f"{','.join(ins)}->{names}"


def _pieces(inner: OpDef) -> dict[str, Any]:
    """The pieces of the broadcast form of `inner`."""

    def infer(*types: Type, broadcast_dimensions: Dims = None, **attrs: Any) -> Type:
        if any(isinstance(t, UnrankedType) for t in types):  # of the shape nothing is known; element types are checked
            scalars = [TensorType(t.dtype) if isinstance(t, UnrankedType | TensorType) else t for t in types]
            return UnrankedType(tensors((inner.infer(*scalars, **{**inner.attrs, **attrs}),))[0].dtype)
        ts = tensors(types)
        shape = broadcast_shape(ts, broadcast_dimensions)
        return inner.infer(*(t.with_shape(shape) for t in ts), **{**inner.attrs, **attrs})

    def evaluate(*xs: Arr, broadcast_dimensions: Dims = None, **attrs: Any) -> Any:
        shape = broadcast_shape(tuple(TensorType(f32, x.shape) for x in xs), broadcast_dimensions)
        assert inner.evaluate is not None
        return inner.evaluate(*(broadcast(x, shape, broadcast_dimensions) for x in xs), **attrs)

    def expand(*xs: Op, broadcast_dimensions: Dims = None, **attrs: Any) -> Op:
        shape = broadcast_shape(tuple(x.tensor for x in xs), broadcast_dimensions)
        return inner(*(broadcast_op(x, shape, broadcast_dimensions) for x in xs), **attrs)

    return {"infer": infer, "evaluate": evaluate, "expand": expand, "sharding": sharding}


def _examples(inner: OpDef) -> list[Any]:
    """The first example's types, broadcast in every way."""
    (t, *_), attrs = inner.examples[0]
    d = t.dtype
    shapes: list[tuple[tuple[int, ...], tuple[int, ...], Dims]] = [
        ((2, 3), (2, 3), None), ((2, 3), (), None), ((), (4,), None), ((3,), (2, 3), None), ((2,), (2, 3), (0,)),
        ((2, 1, 3), (2, 4, 1), None), ((1,), (0,), None), ((), (), None),
    ]  # fmt: skip
    return [((TensorType(d, a), TensorType(d, b)), {**attrs, "broadcast_dimensions": dims}) for a, b, dims in shapes]


def _define(inner: OpDef, name: str | None = None) -> OpDef:
    """The op `chlo.broadcast_<name>` for the two-operand op `inner`."""
    what = name or inner.name
    pieces: dict[str, Callable[..., Any]] = {k: staticmethod(v) for k, v in _pieces(inner).items()}
    body = {
        **pieces,
        "attrs": {"broadcast_dimensions": None},
        "examples": _examples(inner),
        "__doc__": f"`{inner.full_name}` after broadcasting its operands, along broadcast_dimensions if given.",
    }
    return op(f"broadcast_{what}", dialect="chlo")(type(f"broadcast_{what}", (), body))


broadcast_add = _define(elementwise_arith.add)
broadcast_and = _define(elementwise_bits.and_)
broadcast_atan2 = _define(elementwise_math.atan2)
broadcast_compare = _define(compare.compare)
broadcast_complex = _define(complex_)
broadcast_divide = _define(elementwise_arith.divide)
broadcast_maximum = _define(elementwise_arith.maximum)
broadcast_minimum = _define(elementwise_arith.minimum)
broadcast_multiply = _define(elementwise_arith.multiply)
broadcast_next_after = _define(chlo.next_after)
broadcast_or = _define(elementwise_bits.or_)
broadcast_polygamma = _define(chlo_series.polygamma)
broadcast_power = _define(elementwise_arith.power)
broadcast_remainder = _define(elementwise_arith.remainder)
broadcast_shift_left = _define(elementwise_bits.shift_left)
broadcast_shift_right_arithmetic = _define(elementwise_bits.shift_right_arithmetic)
broadcast_shift_right_logical = _define(elementwise_bits.shift_right_logical)
broadcast_subtract = _define(elementwise_arith.subtract)
broadcast_xor = _define(elementwise_bits.xor)
broadcast_zeta = _define(chlo_series.zeta)


@op("broadcast_select", dialect="chlo")
class broadcast_select:
    """`stablehlo.select` after broadcasting its three operands, smaller ranks along the last axes. Any element type."""

    @staticmethod
    def infer(pred: Type, on_true: Type, on_false: Type) -> Type:
        ts = tensors((pred, on_true, on_false))
        shape = broadcast_shape(ts, None)
        return compare.select.infer(*(t.with_shape(shape) for t in ts))

    @staticmethod
    def evaluate(pred: Arr, on_true: Arr, on_false: Arr) -> Arr:
        return np.asarray(np.where(pred, on_true, on_false))

    @staticmethod
    def expand(pred: Op, on_true: Op, on_false: Op) -> Op:
        shape = broadcast_shape((pred.tensor, on_true.tensor, on_false.tensor), None)
        chosen = (broadcast_op(x, shape, None) for x in (on_true, on_false))
        return compare.select(pred if pred.tensor.rank == 0 else broadcast_op(pred, shape, None), *chosen)

    sharding = sharding
    examples = [
        ((TensorType(i1, (2, 1)), TensorType(f32, (3,)), TensorType(f32)), {}),
        ((TensorType(i1), TensorType(i32, (3,)), TensorType(i32, (2, 3))), {}),
        ((TensorType(i1), TensorType(i32), TensorType(i32)), {}),
    ]
