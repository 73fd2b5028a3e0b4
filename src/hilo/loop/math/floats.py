"""What the functions of loop.math share: facts about f32 and f64 by type, polynomials, and common steps.

`x` is a node of type f32 or f64 with any number of lanes everywhere. Imports loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan
from typing import Final

from hilo.loop.builder import Builder
from hilo.loop.lanes import any_lane
from hilo.loop.nodes import Node
from hilo.record import record

__all__ = ["FORMATS", "Format", "any_lane", "clamp", "fmt", "inf", "nan", "poly", "poly_between", "two_product",
           "two_sum", "xor_sign"]  # fmt: skip


@record(frozen=True)
class Format:
    """A binary float format. `int`: the integer type of its width; `digits`: fraction bits (23, 52); `bias`: 127, 1023.

    `shifter` = 1.5 * 2^digits: adding it rounds to an integer, which then stands in the low bits of the sum.
    """

    int: str
    bits: int
    digits: int
    bias: int

    @property
    def shifter(self) -> float:
        return 1.5 * 2.0**self.digits

    @property
    def tiny(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def half_ulp(self) -> float:
        return 2.0 ** -(self.digits + 1)

    @property
    def sign(self) -> int:
        """The sign bit."""
        return -(1 << (self.bits - 1))

    @property
    def one(self) -> int:
        """The bits of 1.0."""
        return self.bias << self.digits


FORMATS: Final = {"f32": Format("i32", 32, 23, 127), "f64": Format("i64", 64, 52, 1023)}


def fmt(x: Node) -> Format:
    return FORMATS[x.type.scalar]


def poly(b: Builder, x: Node, c: Sequence[float]) -> Node:
    """c[0] + c[1] x + c[2] x^2 ..., by Horner's rule with fused multiply-adds."""
    r = b.const(c[-1], x.type)
    for k in reversed(c[:-1]):
        r = b.fma(r, x, k)
    return r


def poly_between(b: Builder, small: Node, x: Node, low: Sequence[float], high: Sequence[float]) -> Node:
    """The polynomial `low` of x where `small`, else `high`: one evaluation with selected coefficients."""
    n = max(len(low), len(high))
    low, high = [*low, *[0.0] * (n - len(low))], [*high, *[0.0] * (n - len(high))]
    at = [b.select(small, b.const(p, x.type), b.const(q, x.type)) for p, q in zip(low, high)]
    r = at[-1]
    for k in reversed(at[:-1]):
        r = b.fma(r, x, k)
    return r


def clamp(b: Builder, x: Node, lo: float | None, hi: float | None) -> Node:
    """x within [lo, hi]; NaN stays NaN. Written so that each bound is one min or max instruction."""
    if hi is not None:
        x = b.select(b.cmp("olt", b.const(hi, x.type), x), b.const(hi, x.type), x)
    if lo is not None:
        x = b.select(b.cmp("ogt", b.const(lo, x.type), x), b.const(lo, x.type), x)
    return x


def xor_sign(b: Builder, x: Node, sign: Node) -> Node:
    """x, negated where the sign bit of the integer `sign` is set (its other bits are ignored)."""
    f = fmt(x)
    return b.bitcast(b.xor(b.bitcast(x, f.int), b.and_(sign, f.sign)), x.type.scalar)


def two_sum(b: Builder, x: Node, y: Node, *, ordered: bool = False) -> tuple[Node, Node]:
    """x + y as an exact sum of the rounded sum and its error. `ordered`: |x| >= |y| (or x = 0) is known."""
    s = b.fadd(x, y)
    t = b.fsub(s, x)
    if ordered:
        return s, b.fsub(y, t)
    return s, b.fadd(b.fsub(x, b.fsub(s, t)), b.fsub(y, t))


def two_product(b: Builder, x: Node, y: Node) -> tuple[Node, Node]:
    """x * y as an exact sum of the rounded product and its error (where nothing underflows)."""
    p = b.fmul(x, y)
    return p, b.fma(x, y, b.fneg(p))
