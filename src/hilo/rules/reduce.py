"""Rules about reduce and map: reductions of nothing, scaled ones, and scalar functions mapped over tensors."""

from __future__ import annotations

import numpy as np

from hilo.ir.dtypes import DType, bf16, f32, f64
from hilo.ir.module import region
from hilo.ir.op import Op
from hilo.ir.types import Results, TensorType
from hilo.ops.regions import sole_op, widened
from hilo.rewrite import PACK, RuleSet, Var
from hilo.rewrite.ops import (
    add,
    broadcast_in_dim,
    exponential,
    map_,
    maximum,
    multiply,
    reduce,
    reshape,
    subtract,
    transpose,
)
from hilo.rewrite.pattern import COMMUTATIVE, splat
from hilo.rewrite.rules import arg

REDUCE = RuleSet("reduce")
x, d = Var("x"), Var("d")


def _reduce_units(t: DType) -> list[Op]:
    s = TensorType(t)
    one = [
        reduce(arg(t, 3, 1), arg(t), dimensions=d, body=region([s, s], f))
        for f in (add, maximum, multiply)
        for d in ((1,), ())
    ]
    two = reduce(
        arg(t, 3, 1),
        arg(t, 3, 1),
        arg(t),
        arg(t),
        dimensions=(1,),
        body=region([s] * 4, lambda a, b, c, d: (add(a, c), multiply(b, d))),
    )
    return [*one, two]


@REDUCE.rule(reduce, example=_reduce_units)
def reduce_of_single_elements(op: Op) -> Op | None:
    """Each result combines the init value with one element: an elementwise op, if the body is."""
    body = op.attrs["body"]
    n = len(body.results)
    x = op.operands[0]
    if any(x.shape[d] != 1 for d in op.attrs["dimensions"]) or x.tensor.size == 0 or len(op.operands) != 2 * n:
        return None
    types = op.type.types if isinstance(op.type, Results) else (op.type,)
    shape = types[0].shape if isinstance(types[0], TensorType) else ()
    if any(p.type is not TensorType(o.dtype) for p, o in zip(body.params[n:], op.operands)):
        return None  # the body works in a wider type
    wide = widened(body, shape)
    if wide is None:
        return None
    inits = [broadcast_in_dim(i, broadcast_dimensions=(), type=i.tensor.with_shape(shape)) for i in op.operands[n:]]
    elements = [reshape(o, type=o.tensor.with_shape(shape)) for o in op.operands[:n]]
    from hilo.rewrite.bodies import instantiate

    results = instantiate(wide, [*inits, *elements])[1]
    return PACK.make(results) if isinstance(op.type, Results) else results[0]


def _reduce_transposed(t: DType) -> list[Op]:
    s = TensorType(t)
    x = transpose(arg(t, 3, 4, 2), permutation=(2, 0, 1))
    return [
        reduce(x, arg(t), dimensions=d, body=region([s, s], lambda a, b, f=f: f(a, b)))
        for f in (add, maximum)
        for d in ((0,), (0, 2), (0, 1, 2), (1, 2))
    ]


def order_is_free(name: str, t: DType) -> bool:
    """Whether a reduction by this op may take its elements in any order: always the same, or a sum (see numerics)."""
    if f"stablehlo.{name}" not in COMMUTATIVE:
        return False
    return t.kind in "biu" or name in ("maximum", "minimum") or name == "add"


@REDUCE.rule(reduce, among=("transpose",), reorders_sums=True, example=_reduce_transposed)
def reduce_of_transpose(op: Op) -> Op | None:
    """A reduction by an op that commutes sees no transpose, if the dims that are left keep their order."""
    if len(op.operands) != 2 or op.operands[0].kind.name != "transpose":
        return None
    if not order_is_free(sole_op(op.attrs["body"]), op.dtype):
        return None
    p = op.operands[0].attrs["permutation"]
    dims = op.attrs["dimensions"]
    left = [i for d, i in enumerate(p) if d not in dims]
    if left != sorted(left):
        return None
    changed = op.attrs.replace(dimensions=tuple(sorted(p[d] for d in dims)))
    return op.kind.make((op.operands[0].operands[0], op.operands[1]), changed)


def _softmax_examples(t: DType) -> list[Op]:
    s = TensorType(t)

    def distances(x: Op, shape: tuple[int, ...]) -> Op:
        low = splat(-np.inf, s)
        most = reduce(x, low, dimensions=(1,), body=region([s, s], lambda a, b: maximum(a, b)))
        same = reshape(x, type=TensorType(t, shape)) if shape != x.shape else x
        return subtract(same, broadcast_in_dim(most, broadcast_dimensions=(len(shape) - 2,), type=same.tensor))

    return [
        exponential(distances(multiply(arg(t, 3, 4), splat(c, TensorType(t, (3, 4)))), shape))
        for c in (0.125, 2.0**-12, 1.0)
        for shape in ((3, 4), (1, 3, 4))
    ]


@REDUCE.rule(
    exponential(subtract(x, broadcast_in_dim(reduce.any.once().named("m"), broadcast_dimensions=d)).once().named("s")),
    example=_softmax_examples,
)
def exponential_of_scaled_distance(op: Op, x: Op, m: Op, s: Op) -> Op | None:
    """exp(x c - max(x c)) is exp((x - max(x)) c) for a c = 2^-k, with which products are exact: the greatest is found
    without a product, and the one that is left costs nothing (loop.math).

    Differences are those of subnormals, whose exponential is 1, and those beyond the type's range: c times that is so
    far from 0 still that the exponential is 0 (or infinite), except in f16.
    """
    product = x.operands[0] if x.kind.name == "reshape" else x
    if product.kind.name != "multiply" or len(m.operands) != 2 or m.operands[0] is not product:
        return None
    (y, c), least = product.operands, m.operands[1]
    if sole_op(m.attrs["body"]) != "maximum" or op.dtype not in (f32, f64, bf16):
        return None
    if _value(least) != -np.inf or not 2.0**-13 <= (factor := _value(c)) < 1.0 or np.frexp(factor)[0] != 0.5:
        return None
    spread = s.operands[1].with_operands((m.with_operands((y, least)),))
    near = y if x is product else x.with_operands((y,))
    return op.with_operands((multiply(subtract(near, spread), splat(factor, op.tensor)),))


def _value(x: Op) -> float:
    """What the constant `x` is everywhere; NaN if it is none, or has several values."""
    if x.kind.name != "constant" or not x.attrs["value"].is_splat:
        return np.nan
    return float(x.attrs["value"].scalar)


def _map_examples(t: DType) -> list[Op]:
    s = TensorType(t)
    return [map_(arg(t, 5), arg(t, 5), dimensions=(0,), body=region([s, s], lambda a, b: subtract(multiply(a, b), a)))]


@REDUCE.rule(map_, example=_map_examples)
def map_of_elementwise(op: Op) -> Op | None:
    """A scalar function of elementwise ops, mapped over tensors, is those ops on tensors."""
    body = op.attrs["body"]
    if len(body.params) != len(op.operands) or any(
        p.type is not TensorType(o.dtype) for p, o in zip(body.params, op.operands)
    ):
        return None  # captures
    wide = widened(body, op.operands[0].shape)
    if wide is None or len(wide.results) != 1 or wide.results[0].type is not op.type:
        return None
    from hilo.rewrite.bodies import instantiate

    return instantiate(wide, op.operands)[1][0]
