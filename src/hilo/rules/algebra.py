"""Arithmetic identities that keep every bit under IEEE 754, for narrow floats and for integers that wrap around.

What is missing here is missing on purpose: x + 0.0 (it turns -0.0 into 0.0), x * 0.0 and x - x of floats (NaN,
infinity), anything on complex numbers that a part's sign or NaN could betray.
"""

from __future__ import annotations

from math import inf

import numpy as np

from hilo.ir.dtypes import DType, dtype
from hilo.ir.module import region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.rewrite import Const, RuleSet, Splat, Var
from hilo.rewrite.ops import (
    abs_,
    add,
    and_,
    divide,
    exponential,
    maximum,
    minimum,
    multiply,
    negate,
    not_,
    or_,
    power,
    reduce,
    remainder,
    subtract,
    xor,
)
from hilo.rewrite.pattern import splat
from hilo.rewrite.rules import arg

x, y, c, d = Var("x"), Var("y"), Var("c"), Var("d")
n = Var("n", "iu")  # an integer
r = Var("r", "f")  # a float
b = Var("b", "biu")  # bits: an integer or a boolean


def _has_negatives(op: Op) -> bool:
    """False for f8E8M0FNU, whose negation is NaN."""
    return op.dtype is not _UNSIGNED_FLOAT


_UNSIGNED_FLOAT = dtype("f8E8M0FNU")
ALGEBRA = RuleSet("algebra")
ALGEBRA.add(
    add(x, Const(0)) >> x,
    add(x, Const(-0.0)) >> x,
    subtract(x, Const(0)) >> x,
    subtract(x, Const(0.0)) >> x,
    subtract(n, n) >> Const(0),
    subtract(Const(0), x) >> (lambda x: negate(x)),
    subtract(Const(-0.0), x) >> (lambda x: negate(x)),
    multiply(x, Const(1)) >> x,
    multiply(x, Const(1.0)) >> x,
    multiply(x, Const(0)) >> Const(0),
    multiply(x, Const(-1, "i")) >> (lambda x: negate(x)),
    multiply(x, Const(-1.0)) >> (lambda x: negate(x)),
    divide(x, Const(1)) >> x,
    divide(x, Const(1.0)) >> x,
    divide(x, Const(-1.0)) >> (lambda x: negate(x)),
    remainder(x, Const(1)) >> Const(0),
    add(add(n, Splat(c)).once(), Splat(d)) >> (lambda n, c, d: add(n, add(c, d))),  # integers wrap around: any order
    add(subtract(n, Splat(c)).once(), Splat(d)) >> (lambda n, c, d: add(n, subtract(d, c))),
    multiply(multiply(n, Splat(c)).once(), Splat(d)) >> (lambda n, c, d: multiply(n, multiply(c, d))),
    power(x, Const(1)) >> x,
    power(x, Const(1.0)) >> x,
    power(x, Const(2)) >> (lambda x: multiply(x, x)),
    power(x, Const(2.0)) >> (lambda x: multiply(x, x)),
    negate(negate(x)).where(_has_negatives) >> x,
    abs_(abs_(x).named("a")) >> (lambda a: a),
    abs_(negate(x)).where(lambda x: x.dtype.is_float and _has_negatives(x)) >> (lambda x: abs_(x)),
    add(x, negate(y)).where(lambda x: not x.dtype.is_complex and _has_negatives(x)) >> (lambda x, y: subtract(x, y)),
    subtract(x, negate(y)).where(lambda x: not x.dtype.is_complex and _has_negatives(x)) >> (lambda x, y: add(x, y)),
    multiply(negate(r), Splat(c)).where(_has_negatives) >> (lambda r, c: multiply(r, negate(c))),
    divide(negate(r), Splat(c)).where(_has_negatives) >> (lambda r, c: divide(r, negate(c))),
    maximum(x, x) >> x,
    minimum(x, x) >> x,
    maximum(x, Const(-inf)) >> x,
    minimum(x, Const(inf)) >> x,
    maximum(maximum(x, y).named("m"), y) >> (lambda m: m),
    minimum(minimum(x, y).named("m"), y) >> (lambda m: m),
    and_(x, x) >> x,
    or_(x, x) >> x,
    xor(b, b) >> Const(0, "biu"),
    and_(x, Const(0, "biu")) >> Const(0, "biu"),
    and_(x, Const(-1, "biu")) >> x,
    or_(x, Const(0, "biu")) >> x,
    or_(x, Const(-1, "biu")) >> Const(-1, "biu"),
    xor(x, Const(0, "biu")) >> x,
    xor(x, Const(-1, "biu")) >> (lambda x: not_(x)),
    not_(not_(x)) >> x,
)


@ALGEBRA.rule(
    divide(r, Splat(c)), example=lambda t: [divide(arg(t, 9), splat(v, TensorType(t, (9,)))) for v in (0.25, 2.0, -8.0)]
)
def division_by_power_of_two(r: Op, c: Op) -> Op | None:
    """x / 2^k is x * 2^-k: both round the same real number, once, if 2^-k is exact; it is kept normal, for speed."""
    value = float(c.attrs["value"].scalar)
    mantissa, exponent = np.frexp(value)
    if abs(mantissa) != 0.5 or not abs(exponent) < 14 or c.dtype.bits < 16:
        return None
    return multiply(r, splat(1.0 / value, c.tensor))


def _sum_of(t: DType) -> Op:
    s = TensorType(t)
    return reduce(arg(t, 3, 4), splat(0.0, s), dimensions=(1,), body=region([s, s], lambda a, b: add(a, b)))


@ALGEBRA.rule(
    add(r, Const(0.0)),
    example=lambda t: [add(v, splat(0.0, v.tensor)) for v in (_sum_of(t), abs_(arg(t, 5)), exponential(arg(t, 5)))],
)
def add_zero_to_what_is_never_negative_zero(r: Op) -> Op | None:
    """x + 0.0 differs from x only where x is -0.0."""
    return r if never_negative_zero(r) else None


def never_negative_zero(x: Op, depth: int = 4) -> bool:
    """Whether no element of the float `x` can be -0.0 (False: not known)."""
    name = x.kind.name
    if name in ("abs", "exponential", "logistic"):
        return True
    if name == "constant":
        array = x.attrs["value"]
        return array.is_splat and not np.signbit(np.float64(array.scalar))
    if name == "convert":
        return x.operands[0].dtype.kind in "biu"
    if name == "reduce":  # a sum of which one term is 0.0: only a sum of nothing but -0.0 is -0.0
        from hilo.ops.regions import sole_op

        return (
            sole_op(x.attrs["body"]) == "add" and len(x.operands) == 2 and never_negative_zero(x.operands[1], depth - 1)
        )
    if depth == 0:
        return False
    if name in ("reshape", "transpose", "broadcast_in_dim", "slice", "reverse", "sqrt"):
        return never_negative_zero(x.operands[0], depth - 1)
    if name in ("add", "maximum"):
        return any(never_negative_zero(o, depth - 1) for o in x.operands)
    return False
