"""Contractions as plain sums: a body that row kernels compute, whatever the sizes. Imports ir, ops.

Slower than the kernels of contractions, which want to know sizes; used where those cannot be known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilo.ir.dtypes import DType, f32, i1
from hilo.ir.module import Function, parameter, region, topological
from hilo.ir.op import Array, Op
from hilo.ir.types import TensorType
from hilo.ops.constant import constant
from hilo.ops.convert import convert
from hilo.ops.elementwise_arith import add, multiply
from hilo.ops.elementwise_bits import and_, or_
from hilo.ops.reduce import reduce
from hilo.ops.shape import broadcast_in_dim


def made(o: Op, build: Callable[..., Op]) -> Function:
    """The function of `o`'s distinct operands that `build`, called with all of them, gives."""
    distinct = {x: parameter(i, x.type, x.loc) for i, x in enumerate(dict.fromkeys(o.operands))}
    result = build(*(distinct[x] for x in o.operands))
    return Function(o.kind.name, distinct.values(), topological([result], distinct.values()), [result], loc=o.loc)


def dot_as_sum(o: Op) -> Function:
    """A `dot_general` or `dot`: the operands spread over [batch, m, n, k], multiplied, summed along k."""
    a = o.attrs
    x, y = (v.tensor for v in o.operands)
    if o.kind.name == "dot":
        xb, yb, xc, yc = (), (), (x.rank - 1,), (0,)
    else:
        xb, yb, xc, yc = (a[f"{s}_{k}_dimensions"] for k in ("batching", "contracting") for s in ("lhs", "rhs"))
    m = [d for d in range(x.rank) if d not in (*xb, *xc)]
    n = [d for d in range(y.rank) if d not in (*yb, *yc)]
    shape = [*(x.shape[d] for d in (*xb, *m)), *(y.shape[d] for d in n), *(x.shape[d] for d in xc)]
    first, last = len(xb) + len(m), len(xb) + len(m) + len(n)
    left = {**{d: i for i, d in enumerate((*xb, *m))}, **{d: last + i for i, d in enumerate(xc)}}
    right = {**{d: i for i, d in enumerate(yb)}, **{d: first + i for i, d in enumerate(n)},
             **{d: last + i for i, d in enumerate(yc)}}  # fmt: skip

    def build(lhs: Op, rhs: Op) -> Op:
        spread = [_spread(v, places, shape, _sum_type(o.dtype)) for v, places in ((lhs, left), (rhs, right))]
        return _sum(spread[0], spread[1], range(last, len(shape)), o.tensor)

    return made(o, build)


def _full(dtype: DType, value: Any, shape: Any) -> Op:
    scalar = constant(value=Array(np.asarray(value, dtype.np)))
    return scalar if not shape else broadcast_in_dim(scalar, broadcast_dimensions=(), type=TensorType(dtype, shape))


def _sum_type(dtype: DType) -> DType:
    """The element type that products are summed in."""
    return f32 if dtype.is_float and dtype.bits < 32 else dtype


def _converted(x: Op, to: DType) -> Op:
    return x if x.dtype is to else convert(x, type=TensorType(to, x.shape))


def _spread(x: Op, places: dict[int, int], shape: list[Any], to: DType) -> Op:
    dims = tuple(places[d] for d in range(x.tensor.rank))
    wide = broadcast_in_dim(x, broadcast_dimensions=dims, type=TensorType(x.dtype, shape))
    return _converted(wide, to)


def _sum(x: Op, y: Op, dims: range, out: TensorType) -> Op:
    """The products of x and y, summed along `dims`."""
    dtype = x.dtype
    zero = _full(dtype, 0, ())
    is_bool = dtype is i1
    product = and_(x, y) if is_bool else multiply(x, y)
    scalar = TensorType(dtype)
    body = region((scalar, scalar), lambda a, b: or_(a, b) if is_bool else add(a, b))
    if not dims:
        return _converted(product, out.dtype)
    return _converted(reduce(product, zero, dimensions=tuple(dims), body=body), out.dtype)


