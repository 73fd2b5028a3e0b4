"""Rules that may change values: each runs only where `fast_math` names its permission (see `options.FAST_MATH`)."""

from __future__ import annotations

import numpy as np

from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.rewrite import Const, RuleSet, Splat, Var
from hilo.rewrite.examples import arg
from hilo.rewrite.ops import (
    add,
    divide,
    exponential,
    exponential_minus_one,
    log,
    log_plus_one,
    multiply,
    sqrt,
    subtract,
)  # fmt: skip
from hilo.rewrite.pattern import splat

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
