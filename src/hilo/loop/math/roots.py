"""sqrt, rsqrt and cbrt. Imports loop."""

from __future__ import annotations

from typing import Final

from hilo.loop.builder import Builder
from hilo.loop.math.floats import fmt, inf, two_product
from hilo.loop.nodes import Node


def sqrt(b: Builder, x: Node) -> Node:
    return b.sqrt(x)


def rsqrt(b: Builder, x: Node) -> Node:
    """1 / sqrt(x): -inf for -0."""
    return b.fdiv(b.const(1.0, x.type), b.sqrt(x))


# 4/3 of the bits of 1.0, tuned (by search) so that |1 - x y^3| of the first guess y stays below 0.106
_GUESS: Final = {"f32": 0x54A20000, "f64": 0x553EE00000000000}


def cbrt(b: Builder, x: Node) -> Node:
    """c = x y^2 with y = x^(-1/3), and one correction with the exact remainder x - c^3.

    y is guessed by dividing the exponent (the bits, as an integer, by 3) and improved without divisions: with
    h = 1 - x y^3, x^(-1/3) = y (1 - h)^(-1/3) = y (1 + h/3 + 2/9 h^2 + 14/81 h^3 + ...).
    """
    s, f = x.type.scalar, fmt(x)
    a = b.fabs(x)
    subnormal = b.cmp("olt", a, f.tiny)
    up = 3 * ((f.digits + 3) // 3)
    a = b.select(subnormal, b.fmul(a, 2.0**up), a)
    bits = b.bitcast(a, f.int)
    if s == "f32":
        third = b.convert("fptosi", b.fmul(b.convert("sitofp", bits, "f32"), 1 / 3), "i32")
    else:  # the upper half is enough for a guess
        upper = b.mul(b.lshr(bits, 32), 0x55555556)
        third = b.and_(upper, -(1 << 32))
    y = b.bitcast(b.sub(b.const(_GUESS[s], bits.type), third), s)
    for _ in range(2):
        h = b.fma(b.fneg(b.fmul(b.fmul(a, y), y)), y, 1.0)
        y = b.fma(b.fmul(y, h), b.fma(b.fma(h, 14 / 81, 2 / 9), h, 1 / 3), y)
    c = b.fmul(b.fmul(a, y), y)
    square, lost = two_product(b, c, c)
    rest = b.fma(b.fneg(lost), c, b.fma(b.fneg(square), c, a))
    c = b.fma(b.fmul(rest, b.fmul(y, y)), 1 / 3, c)
    c = b.select(subnormal, b.fmul(c, 2.0 ** -(up // 3)), c)
    special = b.or_(b.cmp("oeq", x, 0.0), b.not_(b.cmp("olt", b.fabs(x), inf)))
    return b.select(special, x, b.copysign(c, x))

