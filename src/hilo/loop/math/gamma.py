"""lgamma and digamma, computed in f64 (f32 rounds at the end). Imports loop.

Both have a polynomial on an interval of length 1 around their zeros, which recurrence reaches from [0, 8.5) (by a
product, whose logarithm is taken once, or a sum of fractions over one denominator), and a series in 1/x beyond.
Negative x are reflected. Errors are about 2 ulp for positive x, also near the zeros 1, 2 and 1.46. Near the zeros
at negative x, where a sum of two rounded terms vanishes, the error is an absolute one of a few 2^-52.
"""

from __future__ import annotations

from math import log as ln
from math import pi
from typing import Final

from hilo.loop.builder import Builder
from hilo.loop.math.floats import inf, nan, poly
from hilo.loop.math.inverse import in_f64
from hilo.loop.math.logs import log
from hilo.loop.math.powers import log_in_two
from hilo.loop.math.tables import COS, DIGAMMA, DIGAMMA_FAR, DIGAMMA_ROOT, LGAMMA, SIN, STIRLING
from hilo.loop.nodes import Node

_STEPS: Final = 6
_HALF_LOG_2PI: Final = 0.9189385332046728


def _sin_cos_pi(b: Builder, x: Node) -> tuple[Node, Node]:
    """sin(pi r) and cos(pi r) for the r in [-1/2, 1/2] that differs from x by an integer."""
    r = b.fsub(x, b.rint(x))
    a = b.fabs(r)
    swap = b.cmp("ogt", a, 0.25)
    t = b.fmul(b.select(swap, b.fsub(b.const(0.5, x.type), a), a), pi)
    z = b.fmul(t, t)
    s = b.fma(b.fmul(z, t), poly(b, z, SIN["f64"]), t)
    c = b.fma(b.fmul(z, z), poly(b, z, COS["f64"]), b.fma(z, -0.5, 1.0))
    return b.copysign(b.select(swap, c, s), r), b.select(swap, s, c)


@in_f64
def lgamma(b: Builder, x: Node) -> Node:
    """log |gamma(x)|: inf at 0, -1, -2 ... and at both infinities."""
    reflect = b.cmp("olt", x, -0.5)
    y = b.select(reflect, b.fneg(x), x)
    main = _lgamma(b, y)
    # gamma(x) gamma(-x) = -pi / (x sin(pi x))
    sine, _ = _sin_cos_pi(b, y)
    other = b.fsub(b.fsub(b.const(ln(pi), x.type), log(b, b.fmul(y, b.fabs(sine)))), main)
    r = b.select(reflect, b.select(b.cmp("oeq", sine, 0.0), b.const(inf, x.type), other), main)
    r = b.select(b.cmp("oeq", b.fabs(x), inf), b.const(inf, x.type), r)
    return b.select(b.cmp("oeq", x, 0.0), b.const(inf, x.type), r)


def _lgamma(b: Builder, x: Node) -> Node:
    """For x >= -1/2: the argument is brought into [5/4, 9/4) by factors, or is great enough for Stirling."""
    one = b.const(1.0, x.type)
    low, below = b.cmp("olt", x, 0.25), b.cmp("olt", x, 1.25)
    far = b.cmp("oge", x, 8.5)
    product = b.select(low, b.fmul(b.fabs(x), b.fadd(x, 1.0)), b.select(below, x, one))
    t = b.select(low, b.fadd(x, 2.0), b.select(below, b.fadd(x, 1.0), x))
    for _ in range(_STEPS + 1):
        down = b.cmp("oge", t, 2.25)
        t = b.select(down, b.fsub(t, 1.0), t)
        product = b.select(down, b.fmul(product, t), product)
    argument = b.select(far, x, b.select(b.cmp("olt", product, 1e-300), b.const(1e-300, x.type), product))
    high, rest = log_in_two(b, argument)
    # a product that underflows is |x| itself, nearly
    tiny = b.cmp("olt", b.fabs(x), 1e-290)
    high = b.select(tiny, log(b, b.fabs(x)), high)
    # t - 2, exact where lgamma is near a zero
    v = b.select(low, x, b.select(below, b.fsub(x, 1.0), b.fsub(t, 2.0)))
    near = b.fmul(b.fma(v, v, v), poly(b, v, LGAMMA["f64"]))
    moved = b.select(below, b.fsub(b.fsub(near, rest), high), b.fadd(b.fadd(near, rest), high))
    # (x - 1/2) (log(x) - 1) + log(2 pi) / 2 - 1/2 + series
    inverse = b.fdiv(one, x)
    series = b.fmul(inverse, poly(b, b.fmul(inverse, inverse), STIRLING["f64"]))
    h = b.fsub(x, 0.5)
    tail = b.fma(h, rest, b.fadd(series, _HALF_LOG_2PI - 0.5))
    return b.select(far, b.fma(h, b.fsub(high, 1.0), tail), moved)


@in_f64
def digamma(b: Builder, x: Node) -> Node:
    """The derivative of lgamma: NaN at 0, -1, -2 ... and at -inf."""
    negative = b.cmp("olt", x, 0.0)
    y = b.select(negative, b.fsub(b.const(1.0, x.type), x), x)
    main = _digamma(b, y)
    sine, cosine = _sin_cos_pi(b, x)
    reflected = b.fsub(main, b.fdiv(b.fmul(cosine, pi), sine))
    r = b.select(negative, reflected, main)
    pole = b.and_(b.cmp("ole", x, 0.0), b.cmp("oeq", b.ftrunc(x), x))
    return b.select(pole, b.const(nan, x.type), r)


def _digamma(b: Builder, x: Node) -> Node:
    """For x > 0: brought into [1, 2) by fractions, or by the asymptotic series."""
    one = b.const(1.0, x.type)
    below = b.cmp("olt", x, 1.0)
    far = b.cmp("oge", x, 8.0)
    # the sum of 1 / (t - k) as n / d; below 1 it is -1 / x
    n, d = b.const(0.0, x.type), one
    t = x
    for _ in range(_STEPS):
        down = b.cmp("oge", t, 2.0)
        t = b.select(down, b.fsub(t, 1.0), t)
        n = b.select(down, b.fma(n, t, d), n)
        d = b.select(down, b.fmul(d, t), d)
    n = b.select(far, b.const(-0.5, x.type), b.select(below, b.const(-1.0, x.type), n))
    d = b.select(b.or_(far, below), x, d)
    t = b.select(below, b.fadd(x, 1.0), t)
    fraction = b.fdiv(n, d)
    root = DIGAMMA_ROOT["f64"]
    near = b.fmul(b.fsub(b.fsub(t, root[0]), root[1]), poly(b, b.fsub(t, 1.5), DIGAMMA["f64"]))
    inverse = b.fdiv(one, b.select(far, x, one))
    z = b.fmul(inverse, inverse)
    asymptotic = b.fma(z, poly(b, z, DIGAMMA_FAR["f64"]), log(b, x))
    return b.fadd(b.select(far, asymptotic, near), fraction)
