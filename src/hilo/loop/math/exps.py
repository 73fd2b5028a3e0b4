"""exp, expm1, logistic and tanh. Imports loop.

exp(x) = 2^n exp(r) with n = rint(x / log 2): r is x - n log 2 in two fused steps (the first is exact), exp(r) a
polynomial (tables.EXP: error under 2^-28 in f32, 2^-56 in f64). Adding the shifter 1.5 * 2^digits rounds x / log 2; the
product with 2^n, `scale`, is rounded once, also where the result is subnormal. Where 2^n itself is needed, the shifter
has the bias added: then one shift of the sum's low bits makes 2^n.
"""

from __future__ import annotations

from collections.abc import Callable
from math import frexp
from typing import Final

from hilo.loop.builder import Builder
from hilo.loop.math.floats import clamp, fmt, poly, two_sum
from hilo.loop.math.tables import EXP, EXPM1, LN2, LOG2E, TANH
from hilo.loop.nodes import Node

# The bounds beyond which results are 0 and inf.
_RANGE: Final = {"f32": (-104.0, 89.0), "f64": (-746.0, 710.0)}
# n of tanh is 1 from 3/2 / this on; a little less than 2 / log(2).
_TANH_STEP: Final = 2.729


def reduce(b: Builder, x: Node, shifter: Node, low: Node | None = None, c: float = 1.0) -> tuple[Node, Node]:
    """(t, r): t = shifter + rint(c x / log 2); c r = c x (+ low) - rint(c x / log 2) log 2; c is a power of two."""
    high, rest, _ = LN2[x.type.scalar]
    t = b.fma(x, LOG2E[x.type.scalar][0] * c, shifter)
    n = b.fsub(t, shifter)
    r = b.fma(n, -high / c, x)
    if low is not None:
        return t, b.fadd(r, b.fma(n, -rest, low))
    return t, b.fma(n, -rest / c, r)


def power_of_two(b: Builder, t: Node) -> Node:
    """2^k from the k + bias in the low bits of a sum with the shifter."""
    f = fmt(t)
    return b.bitcast(b.shl(b.bitcast(t, f.int), f.digits), t.type.scalar)


def exp(b: Builder, x: Node, low: Node | None = None, upper: bool = True, halve: bool = False) -> Node:
    """exp(x), or exp(x + low) for a `low` that is small beside 1. `upper=False`: x is known not to overflow.

    `halve`: exp(x) / 2, which overflows later.

    If x is y / 2^k, that product is left out: all that follows is done with y and with constants times powers of 2^k.
    Each rounds as it would (where a product rounds as well, x is so small that the result is 1).
    """
    s = x.type.scalar
    shifter = fmt(x).shifter
    x, c = (x, 1.0) if low is not None else _part(x)
    lo, hi = _RANGE[s]
    x = clamp(b, x, lo / c, (hi + halve) / c if upper else None)
    t, r = reduce(b, x, b.const(shifter, x.type), low, c)
    n = b.fsub(t, shifter + 1.0 if halve else shifter)
    factors = [a * c**k for k, a in enumerate([1.0, 1.0, *EXP[s]])]
    return b.scale(poly(b, r, factors), n)


def _part(x: Node) -> tuple[Node, float]:
    """(y, c), x = y c: c is a power of two, 2^-13 to 1, by which x was made from y."""
    if x.kind == "fmul":
        for y, factor in (x.args, x.args[::-1]):
            c = factor.const
            if isinstance(c, float) and 2.0**-13 <= c < 1.0 and frexp(c)[0] == 0.5:
                return y, c
    return x, 1.0


def exp_short(b: Builder, x: Node) -> Node:
    """exp(x) to 33 digits for f64 |x| <= 700, for results that are rounded to f32."""
    f = fmt(x)
    shifter = f.shifter + f.bias
    t = b.fma(x, LOG2E["f64"][0], shifter)
    r = b.fma(b.fsub(t, shifter), -LN2["f64"][0], x)
    return b.fmul(poly(b, r, [1.0, 1.0, *EXP["f32_in_f64"]]), power_of_two(b, t))


def exp_in_two(b: Builder, x: Node, low: Node) -> tuple[Node, Node, Callable[[Node], Node]]:
    """exp(x + low) for f64 x <= 0, down to -757, unrounded: (high, low, scaled), high about 1.

    exp is scaled(high + low).
    """
    shifter = fmt(x).shifter
    n = b.fsub(b.fma(x, LOG2E["f64"][0], shifter), shifter)
    r, r_low = two_sum(b, b.fma(n, -LN2["f64"][0], x), b.fma(n, -LN2["f64"][1], low))
    high, rest = two_sum(b, b.const(1.0, x.type), r, ordered=True)
    rest = b.fadd(b.fma(b.fmul(r, r), poly(b, r, EXP["f64"]), r_low), rest)
    return high, rest, lambda y: b.scale(y, n)


def expm1(b: Builder, x: Node, upper: bool = True) -> Node:
    """exp(x) - 1 = 2^n expm1(r) + (2^n - 1), with halves so that n = 128 (1024) has a place."""
    s = x.type.scalar
    f = fmt(x)
    c = clamp(b, x, -(f.digits + 3.0), _RANGE[s][1] if upper else None)
    t, r = reduce(b, c, b.const(f.shifter + f.bias - 1, x.type))
    m = b.fma(b.fmul(r, r), poly(b, r, EXPM1[s]), r)
    half = power_of_two(b, t)
    y = b.fma(half, m, b.fsub(half, 0.5))
    # x itself where it is that small: keeps -0 and subnormals
    return b.select(b.cmp("olt", b.fabs(x), f.half_ulp), x, b.fadd(y, y))


def logistic(b: Builder, x: Node) -> Node:
    """1 / (1 + exp(-x)); with e = exp(-|x|), which cannot overflow: 1 / (1 + e), or e / (1 + e) for negative x."""
    e = exp(b, b.fneg(b.fabs(x)), upper=False)
    top = b.select(b.cmp("olt", x, 0.0), e, b.const(1.0, x.type))
    d = b.fadd(e, 1.0)
    lost = b.fsub(e, b.fsub(d, 1.0))  # what rounding took from 1 + e; it counts where e is small, and so d about 1
    y = b.fdiv(top, d)
    return b.fma(b.fneg(lost), y, y)


def tanh(b: Builder, x: Node) -> Node:
    return _tanh32(b, x) if x.type.scalar == "f32" else _tanh64(b, x)


def _tanh32(b: Builder, x: Node) -> Node:
    """(T + t) / (1 + T t), where T is tanh of n log(2) / 2, that is (2^n - 1) / (2^n + 1), and t tanh of the rest.

    n is 0 up to 0.55, where tanh is 1/2: below, t is the result, and 1 is what it is divided by; above, what rounding
    took from the parts of the fraction counts little. There the rest is 0.18 to 0.55; it grows with n, as tanh needs
    it less. The denominator is the numerator and 1 - t, so that most of an error is in both.
    """
    f = fmt(x)
    c = clamp(b, b.fabs(x), None, 10.0)  # tanh(9.02) rounds to 1
    none = f.shifter + f.bias - 1  # the sum for n = 0
    t = clamp(b, b.fma(c, _TANH_STEP, b.const(none - 1, x.type)), none, None)
    rest = b.fma(b.fsub(t, none), -LN2["f32"][0] / 2, c)
    z = b.fmul(rest, rest)
    low = b.fma(b.fmul(z, rest), poly(b, z, TANH["f32"]), rest)
    half = power_of_two(b, t)
    top = b.fma(low, b.fadd(half, 0.5), b.fsub(half, 0.5))
    y = b.fdiv(top, b.fadd(top, b.fsub(b.const(1.0, x.type), low)))
    return b.copysign(y, x)


def _tanh64(b: Builder, x: Node) -> Node:
    """m / (m + 2) with m = expm1(2 |x|)."""
    a = clamp(b, b.fabs(x), None, 20.0)  # tanh(19.1) rounds to 1
    m = expm1(b, b.fadd(a, a), upper=False)
    return b.copysign(b.fdiv(m, b.fadd(m, 2.0)), x)
