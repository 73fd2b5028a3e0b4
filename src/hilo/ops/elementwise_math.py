"""Elementwise functions of floats and complex numbers: roots, exponentials, trigonometry, rounding. Imports ir, loop.

The reference evaluates in a wider type and rounds once; native code (`loop.math`) is within 2 ulp of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.ir.dtypes import from_numpy
from hilo.ir.registry import op
from hilo.later import Later
from hilo.ops import numeric
from hilo.ops.elementwise_base import (
    ACCURACY,
    arith,
    binary,
    examples,
    flops,
    math,
    pointwise,
    unary,
    unary_function,
)
from hilo.ops.numeric import Arr

if TYPE_CHECKING:
    from hilo.ops import numeric_complex
else:
    numeric_complex = Later("hilo.ops.numeric_complex")


def real_or_complex(real: Callable[..., Arr], cplx: Callable[..., Arr]) -> Callable[..., Arr]:
    """The reference of a function with separate formulas for floats and complex numbers."""
    on_real, on_complex = numeric.elementwise(real), numeric.elementwise(cplx)

    def evaluate(*xs: Arr, **_: Any) -> Arr:
        return (on_complex if from_numpy(xs[0].dtype).is_complex else on_real)(*xs)

    return evaluate


@op("cbrt")
class cbrt:
    """The cube root; of complex numbers the principal one. Floats, complex. Spec: cbrt."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = real_or_complex(np.cbrt, numeric_complex.cbrt)
    scalar = math("cbrt")
    sharding = pointwise
    cost = flops(20)
    examples = examples("fc")


@op("sqrt")
class sqrt:
    """The square root, correctly rounded for floats; NaN below 0, -0 for -0. Floats, complex. Spec: sqrt."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = numeric.elementwise(np.sqrt)
    scalar = math("sqrt")
    sharding = pointwise
    cost = flops(4)
    examples = examples("fc")


@op("rsqrt")
class rsqrt:
    """1 / sqrt(x); +-inf for +-0. Floats, complex. Spec: rsqrt."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = real_or_complex(lambda x: 1 / np.sqrt(x), numeric_complex.rsqrt)
    scalar = math("rsqrt")
    sharding = pointwise
    cost = flops(8)
    examples = examples("fc")


@op("exponential")
class exponential:
    """e to the power of the operand. Floats, complex. Spec: exponential."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = real_or_complex(np.exp, numeric_complex.exponential)
    scalar = math("exponential")
    sharding = pointwise
    cost = flops(12)
    examples = examples("fc")


@op("exponential_minus_one")
class exponential_minus_one:
    """exp(x) - 1, accurate near 0. Floats, complex. Spec: exponential_minus_one."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = real_or_complex(np.expm1, numeric_complex.exponential_minus_one)
    scalar = math("exponential_minus_one")
    sharding = pointwise
    cost = flops(16)
    examples = examples("fc")


@op("log")
class log:
    """The natural logarithm; -inf at 0, NaN below. Floats, complex. Spec: log."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = numeric.elementwise(np.log)
    scalar = math("log")
    sharding = pointwise
    cost = flops(16)
    examples = examples("fc")


@op("log_plus_one")
class log_plus_one:
    """log(1 + x), accurate near 0. Floats, complex. Spec: log_plus_one."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = real_or_complex(np.log1p, numeric_complex.log_plus_one)
    scalar = math("log_plus_one")
    sharding = pointwise
    cost = flops(18)
    examples = examples("fc")


@op("logistic")
class logistic:
    """1 / (1 + exp(-x)). Floats, complex. Spec: logistic."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = real_or_complex(lambda x: 1 / (1 + np.exp(-x)), numeric_complex.logistic)
    scalar = math("logistic")
    sharding = pointwise
    cost = flops(20)
    examples = examples("fc")


@op("tanh")
class tanh:
    """The hyperbolic tangent. Floats, complex. Spec: tanh."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = numeric.elementwise(np.tanh)
    scalar = math("tanh")
    sharding = pointwise
    cost = flops(16)
    examples = examples("fc")


@op("sine")
class sine:
    """The sine, with full range reduction. Floats, complex. Spec: sine."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = numeric.elementwise(np.sin)
    scalar = math("sine")
    sharding = pointwise
    cost = flops(24)
    examples = examples("fc")


@op("cosine")
class cosine:
    """The cosine, with full range reduction. Floats, complex. Spec: cosine."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = numeric.elementwise(np.cos)
    scalar = math("cosine")
    sharding = pointwise
    cost = flops(24)
    examples = examples("fc")


@op("tan")
class tan:
    """The tangent, with full range reduction. Floats, complex. Spec: tan."""

    attrs = ACCURACY
    infer = unary_function("fc")
    evaluate = numeric.elementwise(np.tan)
    scalar = math("tan")
    sharding = pointwise
    cost = flops(32)
    examples = examples("fc")


@op("atan2")
class atan2:
    """The angle of the point (rhs, lhs), in [-pi, pi]. Floats, complex. Spec: atan2."""

    infer = binary("fc")
    evaluate = real_or_complex(np.arctan2, numeric_complex.atan2)
    scalar = math("atan2")
    sharding = pointwise
    cost = flops(30)
    examples = examples("fc", 2)


def _round_afz(x: Arr) -> Arr:
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)


@op("floor")
class floor:
    """The largest integer not above the operand. Floats. Spec: floor."""

    infer = unary("f")
    evaluate = numeric.arithmetic(np.floor)
    scalar = arith("floor")
    sharding = pointwise
    examples = examples("f")


@op("ceil")
class ceil:
    """The smallest integer not below the operand. Floats. Spec: ceil."""

    infer = unary("f")
    evaluate = numeric.arithmetic(np.ceil)
    scalar = arith("ceil")
    sharding = pointwise
    examples = examples("f")


@op("round_nearest_even")
class round_nearest_even:
    """The nearest integer, halves to the even one. Floats. Spec: round_nearest_even."""

    infer = unary("f")
    evaluate = numeric.arithmetic(np.rint)
    scalar = arith("round_nearest_even")
    sharding = pointwise
    examples = examples("f")


@op("round_nearest_afz")
class round_nearest_afz:
    """The nearest integer, halves away from zero. Floats. Spec: round_nearest_afz."""

    infer = unary("f")
    evaluate = numeric.arithmetic(_round_afz)
    scalar = arith("round_nearest_afz")
    sharding = pointwise
    examples = examples("f")
