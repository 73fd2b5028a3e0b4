"""Rules that may change values: each runs only where `fast_math` names its permission (see `options.FAST_MATH`)."""

from __future__ import annotations

import numpy as np

from hilo.ir.dtypes import DType, i1, i32
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.rewrite import Const, RuleSet, Splat, Var
from hilo.rewrite.ops import (
    add,
    and_,
    broadcast_in_dim,
    compare,
    convert,
    divide,
    dot_general,
    exponential,
    exponential_minus_one,
    gather,
    iota,
    log,
    log_plus_one,
    multiply,
    reshape,
    select,
    sqrt,
    subtract,
)
from hilo.rewrite.pattern import splat
from hilo.rewrite.rules import arg

x, y, c, d = Var("x"), Var("y"), Var("c"), Var("d")
r = Var("r", "f")
FAST = RuleSet("fast")


# ---- finite: no NaN, no infinity
@FAST.rule(subtract(r, r), multiply(r, Const(0.0)), multiply(r, Const(-0.0)), changes_values="finite")
def zero_of_finite(op: Op) -> Op:
    """x - x and x * 0 are 0 for finite x (up to its sign)."""
    return splat(0.0, op.tensor)


@FAST.rule(add(r, Const(0.0)), subtract(r, Const(-0.0)), changes_values="finite")
def add_zero(r: Op) -> Op:
    """x + 0.0 is x, but for the sign of zero."""
    return r


@FAST.rule(divide(r, r), changes_values="finite")
def one_of_finite(op: Op) -> Op:
    """x / x is 1 where x is finite and not 0."""
    return splat(1.0, op.tensor)


# ---- functions: inverse functions cancel
@FAST.rule(log(exponential(r)), log_plus_one(exponential_minus_one(r)), exponential(log(r)),
exponential_minus_one(log_plus_one(r)),
           changes_values="functions")  # fmt: skip
def inverse_functions(r: Op) -> Op:
    return r


@FAST.rule(multiply(sqrt(r), sqrt(r)), changes_values="functions")
def square_of_root(r: Op) -> Op:
    return r


# ---- reciprocal
@FAST.rule(
    divide(r, Splat(c)),
    changes_values="reciprocal",
    example=lambda t: [divide(arg(t, 5), splat(3, TensorType(t, (5,))))],
)
def division_by_constant(r: Op, c: Op) -> Op | None:
    """x / c is x * (1 / c), rounded twice, where 1 / c is a normal number."""
    value = np.float64(c.attrs["value"].scalar)
    with np.errstate(all="ignore"):
        inverse = np.asarray(1.0 / value).astype(c.dtype.np)
    if c.dtype.bits < 16 or not np.isfinite(inverse) or abs(float(inverse)) < 1e-30:
        return None
    return multiply(r, splat(inverse, c.tensor))


# ---- reassociate
@FAST.rule(add(add(r, Splat(c)).once(), Splat(d)), changes_values="reassociate")
def constants_of_sums(r: Op, c: Op, d: Op) -> Op:
    """(x + c) + d is x + (c + d)."""
    return add(r, add(c, d))


@FAST.rule(multiply(multiply(r, Splat(c)).once(), Splat(d)), changes_values="reassociate")
def constants_of_products(r: Op, c: Op, d: Op) -> Op:
    """(x * c) * d is x * (c * d)."""
    return multiply(r, multiply(c, d))


# ---- gather
def _one_hot(t: DType) -> list[Op]:
    """Rows and columns of tables by index, written as products with one-hot matrices; some indices are out of range."""
    wide = TensorType(i32, (2, 3, 4))
    index = broadcast_in_dim(arg(i32, 2, 3), broadcast_dimensions=(0, 1), type=wide)
    hot = convert(compare(index, iota(iota_dimension=2, type=wide), comparison_direction="EQ"), type=wide.with_dtype(t))
    numbers = {"lhs_contracting_dimensions": (2,), "rhs_contracting_dimensions": (0,)}
    rows = dot_general(hot, arg(t, 4, 5), **numbers, type=TensorType(t, (2, 3, 5)))
    tall = TensorType(i32, (4, 3))
    index = broadcast_in_dim(arg(i32, 3), broadcast_dimensions=(1,), type=tall)
    hot = convert(compare(iota(iota_dimension=0, type=tall), index, comparison_direction="EQ"), type=tall.with_dtype(t))
    numbers = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}
    return [rows, dot_general(arg(t, 2, 4, 5), hot, **numbers, type=TensorType(t, (2, 5, 3)))]


_equal = convert(compare(x, y, comparison_direction="EQ")).named("hot")


@FAST.rule(dot_general(_equal, r), dot_general(r, _equal), changes_values="gather", example=_one_hot)
def one_hot_product(op: Op, hot: Op, x: Op, y: Op, r: Op) -> Op | None:
    """(index == iota) @ table picks rows of the table, and 0 where the index is out of range; infinities are not
    seen. Likewise columns, by table @ (iota == index)."""
    if y.kind.name != "iota":
        x, y = y, x
    if y.kind.name != "iota" or x.kind.name != "broadcast_in_dim":
        return None
    if not y.dtype.is_int or r.dtype is not op.dtype:
        return None
    a, index, axis, left = op.attrs, x.operands[0], y.attrs["iota_dimension"], op.operands[0] is hot
    summed = (a["lhs_contracting_dimensions"], a["rhs_contracting_dimensions"])
    of_hot, of_table = summed if left else summed[::-1]
    kept = tuple(i for i in range(hot.tensor.rank) if i != axis)
    if a["lhs_batching_dimensions"] or of_hot != (axis,) or x.attrs["broadcast_dimensions"] != kept:
        return None
    if index.shape != tuple(hot.shape[i] for i in kept):
        return None
    n, others = len(kept), r.tensor.rank - 1
    first = 0 if left else others  # of the result's axes that are the index's
    rows = gather(
        r,
        reshape(index, type=index.tensor.with_shape((*index.shape, 1))),
        offset_dims=tuple(range(n, n + others) if left else range(others)),
        collapsed_slice_dims=of_table,
        start_index_map=of_table,
        index_vector_dim=n,
        slice_sizes=tuple(1 if i in of_table else size for i, size in enumerate(r.shape)),
    )
    count = r.shape[of_table[0]]
    inside = compare(index, splat(0, index.tensor), comparison_direction="GE")
    if count < 1 << (index.dtype.bits - (index.dtype.kind == "i")):  # else every index is below
        inside = and_(inside, compare(index, splat(count, index.tensor), comparison_direction="LT"))
    axes = tuple(range(first, first + n))
    mask = broadcast_in_dim(inside, broadcast_dimensions=axes, type=op.tensor.with_dtype(i1))
    return select(mask, rows, splat(0.0, op.tensor))
