"""Elementwise arithmetic: add, subtract, multiply, divide, remainder, power, extrema, abs, negate, sign.

Imports ir, loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.errors import Unsupported
from hilo.ir.dtypes import from_numpy
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.later import Later
from hilo.ops import numeric
from hilo.ops.elementwise_base import arith, binary, examples, flops, lowering, pointwise, same_types, unary
from hilo.ops.numeric import Arr

if TYPE_CHECKING:
    from hilo.ops import numeric_complex
else:
    numeric_complex = Later("hilo.ops.numeric_complex")


def by_kind(**functions: Callable[..., Arr]) -> Callable[..., Arr]:
    """An `evaluate` that chooses by the first operand's kind: b, i, u, f, c (`i` serves `u` where there is none)."""

    def evaluate(*xs: Arr, **_: Any) -> Arr:
        kind = from_numpy(xs[0].dtype).kind
        fn = functions.get(kind) or functions["i" if kind == "u" else kind]
        with np.errstate(all="ignore"):
            return np.asarray(fn(*xs))

    return evaluate


@op("add")
class add:
    """The sum of `lhs` and `rhs`: integers wrap, booleans OR, floats round to nearest. Any element type. Spec: add."""

    infer = binary("biufc")
    evaluate = by_kind(
        b=np.logical_or, i=numeric.exact_int(np.add), f=numeric.arithmetic(np.add), c=numeric.arithmetic(np.add)
    )
    scalar = arith("add")
    sharding = pointwise
    examples = examples("biufc", 2)


@op("subtract")
class subtract:
    """`lhs - rhs`; integers wrap. Integers, floats, complex. Spec: subtract."""

    infer = binary("iufc")
    evaluate = by_kind(
        i=numeric.exact_int(np.subtract), f=numeric.arithmetic(np.subtract), c=numeric.arithmetic(np.subtract)
    )
    scalar = arith("subtract")
    sharding = pointwise
    examples = examples("iufc", 2)


@op("multiply")
class multiply:
    """The product of `lhs` and `rhs`: integers wrap, booleans AND. Any element type.

    Complex products are `(ac - bd, ad + bc)`, each part rounded once. Spec: multiply.
    """

    infer = binary("biufc")
    evaluate = by_kind(b=np.logical_and, i=numeric.exact_int(np.multiply), f=numeric.arithmetic(np.multiply),
                       c=numeric.elementwise(numeric_complex.multiply))  # fmt: skip
    scalar = arith("multiply")
    sharding = pointwise
    examples = examples("biufc", 2)


@op("divide")
class divide:
    """`lhs / rhs`. Integers truncate; by zero they give -1 (unsigned: all ones), and INT_MIN / -1 wraps.

    Complex quotients are scaled against overflow. Integers, floats, complex. Spec: divide.
    """

    infer = binary("iufc")
    evaluate = by_kind(i=numeric.exact_int(numeric.int_divide), f=numeric.arithmetic(np.divide),
                       c=numeric.elementwise(numeric_complex.divide))  # fmt: skip
    scalar = arith("divide")
    sharding = pointwise
    cost = flops(4)
    examples = examples("iufc", 2)


@op("remainder")
class remainder:
    """What truncating division leaves, with the sign of `lhs`; exact (C's fmod).

    By zero, integers give `lhs`, floats NaN. Integers, floats. Complex operands verify but do not run: the spec leaves
    their meaning open. Spec: remainder.
    """

    infer = binary("iufc")

    @staticmethod
    def evaluate(x: Arr, y: Arr) -> Arr:
        t = from_numpy(x.dtype)
        if t.is_complex:
            raise Unsupported("remainder of complex numbers has no defined meaning")
        return numeric.arithmetic(np.fmod)(x, y) if t.is_float else numeric.exact_int(numeric.int_remainder)(x, y)

    scalar = arith("remainder")
    sharding = pointwise
    cost = flops(20)
    examples = examples("iuf", 2)


@op("maximum")
class maximum:
    """The larger of `lhs` and `rhs`: NaN wins, -0 < +0; booleans OR; complex lexicographic. Any element type.

    Spec: maximum.
    """

    infer = binary("biufc")
    evaluate = numeric.maximum
    scalar = arith("maximum")
    sharding = pointwise
    examples = examples("biufc", 2)


@op("minimum")
class minimum:
    """The smaller of `lhs` and `rhs`: NaN wins, -0 < +0; booleans AND; complex lexicographic. Any element type.

    Spec: minimum.
    """

    infer = binary("biufc")
    evaluate = numeric.minimum
    scalar = arith("minimum")
    sharding = pointwise
    examples = examples("biufc", 2)


@op("power")
class power:
    """`lhs` to the power of `rhs`. Integers wrap; negative exponents give 1 for 1, +-1 for -1 and 0 for all others.

    Integers, floats, complex. Spec: power.
    """

    infer = binary("iufc")
    evaluate = by_kind(i=numeric.exact_int(numeric.int_power), f=numeric.elementwise(numeric.power),
                       c=numeric.elementwise(numeric_complex.power))  # fmt: skip

    @staticmethod
    def scalar(b: Any, out: TensorType, x: Any, y: Any, **_: Any) -> Any:
        return lowering("arith", "int_power")(b, x, y) if x.dtype.is_int else lowering("math", "power")(b, x, y)

    sharding = pointwise
    cost = flops(50)
    examples = examples("iufc", 2)


@op("abs")
class abs_:
    """The absolute value; of complex numbers the modulus, a float. INT_MIN stays. Signed integers, floats, complex.

    Spec: abs.
    """

    @staticmethod
    def infer(x: Type) -> Type:
        t = same_types((x,), "ifc", "C2")
        return t.with_dtype(t.dtype.part)

    @staticmethod
    @numeric.quiet
    def evaluate(x: Arr) -> Arr:
        t = from_numpy(x.dtype)
        if t.is_complex:
            w = numeric.widen(x)
            return numeric.narrow(np.hypot(w.real, w.imag), t.part)
        return numeric.exact_int(np.abs)(x) if t.is_int else np.asarray(np.abs(x), x.dtype)

    scalar = arith("abs")
    sharding = pointwise
    examples = examples("ifc")


@op("negate")
class negate:
    """The negative; integers wrap (of unsigned ones, too). Integers, floats, complex. Spec: negate."""

    infer = unary("iufc")
    evaluate = by_kind(i=numeric.exact_int(np.negative), f=lambda x: np.negative(x), c=lambda x: np.negative(x))
    scalar = arith("negate")
    sharding = pointwise
    examples = examples("iufc")


def _sign_float(x: Arr) -> Arr:
    return np.where(np.isnan(x) | (x == 0), x, np.copysign(np.ones((), x.dtype), x)).astype(x.dtype)


@op("sign")
class sign:
    """-1, 0 or 1 with the sign of the operand; keeps NaN and -0. Complex: `x / abs(x)`.

    Signed integers, floats, complex. Spec: sign.
    """

    infer = unary("ifc")
    evaluate = by_kind(
        i=numeric.exact_int(np.sign), f=numeric.quiet(_sign_float), c=numeric.elementwise(numeric_complex.sign)
    )
    scalar = arith("sign")
    sharding = pointwise
    examples = examples("ifc")
