"""CHLO functions and predicates: erf, hyperbolic and inverse functions, gamma functions, conj, is_inf ...

Imports ir, loop.

Special functions of bf16 and f16 are computed in f32 or wider and rounded once.
"""

from __future__ import annotations

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import from_numpy, i1
from hilo.ir.op import Array, Op
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type, UnrankedType
from hilo.ops import numeric, numeric_complex, numeric_special
from hilo.ops.checks import tensor
from hilo.ops.constant import constant
from hilo.ops.decompose import everywhere
from hilo.ops.elementwise_arith import by_kind
from hilo.ops.elementwise_base import arith, examples, flops, math, pointwise, same_types, unary
from hilo.ops.numeric import Arr


@op("erf", dialect="chlo")
class erf:
    """The error function. Floats."""

    infer = unary("f")
    evaluate = numeric_special.on_floats(numeric_special.erf)
    scalar = math("erf")
    sharding = pointwise
    cost = flops(40)
    examples = examples("f")


@op("erfc", dialect="chlo")
class erfc:
    """1 - erf(x), accurate where that is small. Floats."""

    infer = unary("f")
    evaluate = numeric_special.on_floats(numeric_special.erfc)
    scalar = math("erfc")
    sharding = pointwise
    cost = flops(40)
    examples = examples("f")


@op("erf_inv", dialect="chlo")
class erf_inv:
    """The inverse of erf on [-1, 1]: +-inf at the ends, NaN beyond. Floats."""

    infer = unary("f")
    evaluate = numeric_special.on_floats(numeric_special.erf_inv)
    scalar = math("erf_inv")
    sharding = pointwise
    cost = flops(40)
    examples = examples("f")


@op("lgamma", dialect="chlo")
class lgamma:
    """The logarithm of the gamma function's absolute value; inf at 0, -1, -2 ... Floats."""

    infer = unary("f")
    evaluate = numeric.elementwise(numeric_special.lgamma)
    scalar = math("lgamma")
    sharding = pointwise
    cost = flops(40)
    examples = examples("f")


@op("digamma", dialect="chlo")
class digamma:
    """The derivative of lgamma; NaN at 0, -1, -2 ... Floats."""

    infer = unary("f")
    evaluate = numeric.elementwise(numeric_special.digamma)
    scalar = math("digamma")
    sharding = pointwise
    cost = flops(40)
    examples = examples("f")


@op("sinh", dialect="chlo")
class sinh:
    """The hyperbolic sine. Floats, complex."""

    infer = unary("fc")
    evaluate = numeric.elementwise(np.sinh)
    scalar = math("sinh")
    sharding = pointwise
    cost = flops(40)
    examples = examples("fc")


@op("cosh", dialect="chlo")
class cosh:
    """The hyperbolic cosine. Floats, complex."""

    infer = unary("fc")
    evaluate = numeric.elementwise(np.cosh)
    scalar = math("cosh")
    sharding = pointwise
    cost = flops(40)
    examples = examples("fc")


@op("tan", dialect="chlo")
class tan:
    """The tangent. Floats, complex."""

    infer = unary("fc")
    evaluate = numeric.elementwise(np.tan)
    scalar = math("tan")
    sharding = pointwise
    cost = flops(40)
    examples = examples("fc")


@op("asin", dialect="chlo")
class asin:
    """The inverse sine; NaN beyond [-1, 1]. Floats, complex."""

    infer = unary("fc")
    evaluate = numeric.elementwise(np.arcsin)
    scalar = math("asin")
    sharding = pointwise
    cost = flops(40)
    examples = examples("fc")


@op("acos", dialect="chlo")
class acos:
    """The inverse cosine; NaN beyond [-1, 1]. Floats, complex."""

    infer = unary("fc")
    evaluate = numeric.elementwise(np.arccos)
    scalar = math("acos")
    sharding = pointwise
    cost = flops(40)
    examples = examples("fc")


@op("atan", dialect="chlo")
class atan:
    """The inverse tangent. Floats, complex."""

    infer = unary("fc")
    evaluate = numeric.elementwise(np.arctan)
    scalar = math("atan")
    sharding = pointwise
    cost = flops(40)
    examples = examples("fc")


@op("asinh", dialect="chlo")
class asinh:
    """The inverse hyperbolic sine. Floats, complex."""

    infer = unary("fc")
    evaluate = numeric.elementwise(np.arcsinh)
    scalar = math("asinh")
    sharding = pointwise
    cost = flops(40)
    examples = examples("fc")


@op("acosh", dialect="chlo")
class acosh:
    """The inverse hyperbolic cosine; NaN below 1. Floats, complex."""

    infer = unary("fc")
    evaluate = numeric.elementwise(np.arccosh)
    scalar = math("acosh")
    sharding = pointwise
    cost = flops(40)
    examples = examples("fc")


@op("atanh", dialect="chlo")
class atanh:
    """The inverse hyperbolic tangent; +-inf at +-1, NaN beyond. Floats, complex."""

    infer = unary("fc")
    evaluate = numeric.elementwise(np.arctanh)
    scalar = math("atanh")
    sharding = pointwise
    cost = flops(40)
    examples = examples("fc")


@op("square", dialect="chlo")
class square:
    """The operand times itself; complex: `((x - y)(x + y), 2xy)`. Integers, floats, complex."""

    infer = unary("iufc")
    evaluate = by_kind(
        i=numeric.exact_int(np.square), f=numeric.arithmetic(np.square), c=numeric.elementwise(numeric_complex.square)
    )
    scalar = arith("square")
    sharding = pointwise
    examples = examples("iufc")


@op("conj", dialect="chlo")
class conj:
    """The complex conjugate; floats stay. Floats, complex."""

    infer = unary("fc")

    @staticmethod
    def evaluate(x: Arr) -> Arr:
        return np.conj(x) if from_numpy(x.dtype).is_complex else x

    scalar = arith("conj")
    sharding = pointwise
    examples = examples("fc")


def _predicate(x: Type) -> Type:
    return same_types((x,), "f").with_dtype(i1)


@op("is_inf", dialect="chlo")
class is_inf:
    """Whether the operand is inf or -inf; gives booleans. Floats."""

    infer = _predicate

    @staticmethod
    @numeric.quiet
    def evaluate(x: Arr) -> Arr:
        return np.isinf(x)

    scalar = arith("is_inf")
    sharding = pointwise
    examples = examples("f")


@op("is_pos_inf", dialect="chlo")
class is_pos_inf:
    """Whether the operand is inf; gives booleans. Floats."""

    infer = _predicate

    @staticmethod
    @numeric.quiet
    def evaluate(x: Arr) -> Arr:
        return np.isinf(x) & ~np.signbit(x)

    scalar = arith("is_pos_inf")
    sharding = pointwise
    examples = examples("f")


@op("is_neg_inf", dialect="chlo")
class is_neg_inf:
    """Whether the operand is -inf; gives booleans. Floats."""

    infer = _predicate

    @staticmethod
    @numeric.quiet
    def evaluate(x: Arr) -> Arr:
        return np.isinf(x) & np.signbit(x)

    scalar = arith("is_neg_inf")
    sharding = pointwise
    examples = examples("f")


@op("next_after", dialect="chlo")
class next_after:
    """The next value after `x` towards `y` (it may be subnormal); `y` where they are equal, NaN where one is.

    Floats.
    """

    @staticmethod
    def infer(x: Type, y: Type) -> Type:
        return same_types((x, y), "f")

    evaluate = numeric_special.next_after
    scalar = arith("next_after")
    sharding = pointwise
    examples = examples("f", 2)


@op("constant", dialect="chlo")
class chlo_constant:
    """A tensor known when the program is compiled: `value`, an `Array`."""

    @staticmethod
    def infer(*, value: Array) -> Type:
        return value.type

    @staticmethod
    def evaluate(*, value: Array) -> Arr:
        return value.data

    @staticmethod
    def expand(*, value: Array) -> Op:
        return constant(value=value)

    sharding = "->i"
    examples = [((), {"value": Array(np.arange(3, dtype=np.float32))}), ((), {"value": Array(np.int32(4))})]


@op("constant_like", dialect="chlo")
class constant_like:
    """`value` (a rank-0 `Array`) everywhere in the operand's shape. Any element type."""

    @staticmethod
    def infer(x: Type, *, value: Array) -> Type:
        t = x if isinstance(x, UnrankedType) else tensor(x)
        require(value.data.ndim == 0, "", "value must have rank 0, not {v}", v=value.type)
        return t.with_dtype(value.type.dtype)

    @staticmethod
    def evaluate(x: Arr, *, value: Array) -> Arr:
        return np.broadcast_to(value.data, x.shape).copy()

    @staticmethod
    def expand(x: Op, *, value: Array) -> Op:
        return everywhere(value, x.shape)

    sharding = pointwise
    examples = [
        ((TensorType(i1, (2, 3)),), {"value": Array(np.float32(1.5))}),
        ((TensorType(i1),), {"value": Array(np.int8(-1))}),
    ]
