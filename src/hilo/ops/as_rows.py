"""Contractions, windows and convolutions as plain sums: a body that row kernels compute, whatever the sizes.

Slower than their own kernels, which want to know sizes; used where those cannot be known. Imports ir, loop, ops.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hilo.ir.dims import Undecided
from hilo.ir.dtypes import DType, f32, i1
from hilo.ir.module import Function, parameter, region, topological
from hilo.ir.op import Array, Op
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.ops.checks import tensor
from hilo.ops.compare import select
from hilo.ops.constant import constant
from hilo.ops.convert import convert
from hilo.ops.convolution import windows as convolution_windows
from hilo.ops.elements import Indices, Operand, all_in_range, choose
from hilo.ops.elementwise_arith import add, multiply
from hilo.ops.elementwise_bits import and_, or_
from hilo.ops.reduce import reduce
from hilo.ops.shape import broadcast_in_dim, reshape
from hilo.ops.sharding import unsharded
from hilo.ops.window_axes import Axis, axes


@op("windows", dialect="hilo", typed=True)
class windows:
    """All windows of a tensor: element [o..., k...] of the result is element k of window o, or else `init`.

    Operands: the tensor, a rank-0 value. `axes`: how the windows lie along each axis. Made for what reduces them.
    """

    @staticmethod
    def infer(x: Type, init: Type, *, axes: tuple[Axis, ...], type: Type) -> Type:  # noqa: A002
        return tensor(type)

    @staticmethod
    def evaluate(x: np.ndarray, init: np.ndarray, *, axes: tuple[Axis, ...], type: TensorType) -> np.ndarray:  # noqa: A002
        counts = [a.count(n) for a, n in zip(axes, x.shape, strict=True)]
        out = np.full([*counts, *(a.size for a in axes)], init, x.dtype)
        for k in np.ndindex(*(a.size for a in axes)):
            each = [a.elements(i, c, n) for a, i, c, n in zip(axes, k, counts, x.shape, strict=True)]
            there, source = np.ix_(*(e[0] for e in each)), np.ix_(*(e[1] for e in each))
            out[(*there, *k)] = x[source]
        return out

    @staticmethod
    def element(
        b: Builder, out: TensorType, index: Indices, x: Operand, init: Operand, *, axes: tuple[Axis, ...], **_: Any
    ) -> Elem:
        rank = len(axes)
        at: list[Index] = []
        tests: list[tuple[Index, Any, Any]] = []
        for a, o, k, n in zip(axes, index[:rank], index[rank:], x.type.shape, strict=True):
            place = o * a.stride + k * a.dilation - a.low
            tests.append((place, 0, a.spread(n)))
            if a.base > 1:
                tests.append((place % a.base, 0, 1))
                place = place // a.base
            at.append(place)
        return choose(b, all_in_range(b, tests), lambda: x(at), lambda: init(()))

    sharding = staticmethod(unsharded)
    examples = [
        ((TensorType(f32, (5,)), TensorType(f32)), {"axes": (Axis(3, 2, 1, 1),), "type": TensorType(f32, (3, 3))}),
        ((TensorType(f32, (3,)), TensorType(f32)), {"axes": (Axis(2, 1, 0, 1, 2),), "type": TensorType(f32, (5, 2))}),
    ]


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
        return _sum(spread[0], spread[1], None, range(last, len(shape)), o.tensor)

    return made(o, build)


def windows_as_reduce(o: Op) -> Function:
    """A `reduce_window` of one input: its windows, reduced."""
    a = o.attrs
    body = a["body"]
    if len(body.results) != 1 or len(o.operands) != 2:
        raise Undecided("a reduce_window of several inputs")
    names = ("window_dimensions", "window_strides", "padding", "base_dilations", "window_dilations")
    moved = axes(*(a[k] for k in names))

    def build(x: Op, init: Op) -> Op:
        rank = len(moved)
        t = TensorType(x.dtype, [*o.shape, *(w.size for w in moved)])
        return reduce(windows(x, init, axes=moved, type=t), init, dimensions=tuple(range(rank, 2 * rank)), body=body)

    return made(o, build)


def convolution_as_sum(o: Op) -> Function:
    """A convolution [b, 0, f]x[0, i, o]->[b, 0, f]: windows of lhs times rhs, summed; padding is left out."""
    a = o.attrs
    if a["feature_group_count"] != 1 or a["batch_group_count"] != 1:
        raise Undecided("a convolution with groups")
    spatial = convolution_windows(o.operands[1].tensor, a)
    n = len(spatial)
    moved = (Axis(), *spatial, Axis())
    features = o.operands[0].shape[-1]
    shape = [*o.shape, *(w.size for w in spatial), features]  # b, spatial, o, window, i
    sizes = [o.shape[0], *o.shape[1:-1], features, 1, *(w.size for w in spatial), 1]

    def build(lhs: Op, rhs: Op) -> Op:
        acc = _sum_type(o.dtype)

        def all_windows(x: Op, init: Op) -> Op:
            full = windows(x, init, axes=moved, type=TensorType(x.dtype, sizes))
            narrow = reshape(full, type=TensorType(x.dtype, [*sizes[: n + 2], *sizes[n + 3 : -1]]))
            places = [*range(n + 1), len(shape) - 1, *range(n + 2, 2 * n + 2)]
            return broadcast_in_dim(narrow, broadcast_dimensions=tuple(places), type=TensorType(x.dtype, shape))

        x = all_windows(lhs, _full(lhs.dtype, 0, ()))
        there = all_windows(_full(i1, True, lhs.shape), _full(i1, False, ()))
        places = [*range(n + 2, 2 * n + 2), len(shape) - 1, n + 1]
        y = broadcast_in_dim(rhs, broadcast_dimensions=tuple(places), type=TensorType(rhs.dtype, shape))
        return _sum(_converted(x, acc), _converted(y, acc), there, range(n + 2, len(shape)), o.tensor)

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


def _sum(x: Op, y: Op, there: Op | None, dims: range, out: TensorType) -> Op:
    """The products of x and y (where `there`), summed along `dims`."""
    dtype = x.dtype
    zero = _full(dtype, 0, ())
    is_bool = dtype is i1
    product = and_(x, y) if is_bool else multiply(x, y)
    if there is not None:
        product = select(there, product, broadcast_in_dim(zero, broadcast_dimensions=(), type=product.tensor))
    scalar = TensorType(dtype)
    body = region((scalar, scalar), lambda a, b: or_(a, b) if is_bool else add(a, b))
    if not dims:
        return _converted(product, out.dtype)
    return _converted(reduce(product, zero, dimensions=tuple(dims), body=body), out.dtype)


