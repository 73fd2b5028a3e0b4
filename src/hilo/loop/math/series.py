"""Functions by series: the scaled Bessel function i1e, Hurwitz' zeta function, polygamma. All in f64.

i1e sums Chebyshev series (tools/fit_bessel.py made their coefficients) by Clenshaw's recurrence. zeta sums ten
terms and Euler and Maclaurin's formula for the rest; left of 0 it goes by its values in (0, 1), since what the periodic
reflection formula adds is the same for all arguments that differ by whole numbers. Imports loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, inf, nan
from typing import Final

from hilo.loop.builder import Builder
from hilo.loop.math.gamma import digamma
from hilo.loop.math.inverse import in_f64
from hilo.loop.math.powers import power
from hilo.loop.nodes import I64, Node

TERMS: Final = 10  # of zeta, before the formula for the rest
_BERNOULLI: Final = (
    (1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798), (-174611, 330),
    (854513, 138), (-236364091, 2730),
)  # fmt: skip
REST: Final = tuple(p / q / factorial(2 * k) for k, (p, q) in enumerate(_BERNOULLI, 1))
_NEAR: Final = (
    0.25419728307660605,
    -0.18614670648327067,
    0.047922338053106146,
    -0.009789076216141408,
    0.0016662238479520602,
    -0.0002433240014250099,
    3.1112561153598404e-05,
    -3.537110387592967e-06,
    3.6188997442071134e-07,
    -3.365006741839022e-08,
    2.8669319308345316e-09,
    -2.253506636201581e-10,
    1.6438659802941666e-11,
    -1.118540536749965e-12,
    7.130945299391151e-14,
    -4.276171214786366e-15,
    2.420398868895772e-16,
    -1.2971583981874101e-17,
    6.600653920913005e-19,
    -3.1971676761297026e-20,
    1.4774880887915234e-21,
)
_MIDDLE: Final = (
    0.16978541821375384,
    -0.04081701544471595,
    0.005471504822387463,
    -3.7199867430543946e-05,
    -0.00043501169617069646,
    0.000251098738494547,
    -0.00010387010560561069,
    3.633595171172561e-05,
    -1.1283779531380381e-05,
    3.177177262795525e-06,
    -8.207879854204014e-07,
    1.9608259818179285e-07,
    -4.357416283937996e-08,
    9.050622962020252e-09,
    -1.764216796822223e-09,
    3.238856123342663e-10,
    -5.6178391818434265e-11,
    9.23249404283715e-12,
    -1.4413186299625083e-12,
    2.1424611174509566e-13,
    -3.038877038591557e-14,
    4.121171205140304e-15,
    -5.353393026179594e-16,
    6.672258557181179e-17,
    -7.991588912221358e-18,
)
_FAR: Final = (
    0.38928811750914005,
    -0.009761097491361469,
    -0.00011058893876262371,
    -3.882564808877691e-06,
    -2.512236237870209e-07,
    -2.6314688468895196e-08,
    -3.835380385964237e-09,
    -5.589743462196584e-10,
    -1.8974958123505413e-11,
    3.2526035830154884e-11,
    1.4125807436613782e-11,
    2.0356285441470896e-12,
    -7.198551776245908e-13,
    -4.0835511110921974e-13,
    -2.1015418427726643e-14,
    4.272440016711951e-14,
    1.0420276984128802e-14,
    -3.8144030724370075e-15,
    -1.8803547755107825e-15,
    3.3082023109209285e-16,
    2.96262899764595e-16,
    -3.209525921993424e-17,
    -4.6503053684893586e-17,
    4.414348323071708e-18,
    7.517296310842105e-18,
    -9.314178867326884e-19,
)


def _chebyshev(b: Builder, t: Node, coefficients: Sequence[float]) -> Node:
    """The sum of c[k] T_k(t)."""
    double = b.fadd(t, t)
    one, two = b.const(0.0, t.type), b.const(0.0, t.type)
    for c in reversed(coefficients[1:]):
        one, two = b.fadd(b.fma(double, one, b.fneg(two)), c), one
    return b.fadd(b.fma(t, one, b.fneg(two)), coefficients[0])


@in_f64
def bessel_i1e(b: Builder, x: Node) -> Node:
    """exp(-|x|) I1(x), the scaled modified Bessel function of order 1."""
    a = b.fabs(x)
    far = b.cmp("ogt", a, 8.0)
    small = b.cmp("olt", a, 2.0)
    near = b.fmul(a, _chebyshev(b, b.fsub(b.select(small, a, b.const(1.0, x.type)), 1.0), _NEAR))
    middle = _chebyshev(b, b.fdiv(b.fsub(a, 5.0), 3.0), _MIDDLE)
    at = b.select(far, a, b.const(16.0, x.type))
    large = b.fdiv(_chebyshev(b, b.fsub(b.fdiv(b.const(16.0, x.type), at), 1.0), _FAR), b.sqrt(at))
    return b.copysign(b.select(far, large, b.select(small, near, middle)), x)


def _alike(b: Builder, x: Node, y: Node) -> tuple[Node, Node]:
    """Both with as many lanes as the wider one has, as loops carry them."""
    lanes = max(x.type.lanes, y.type.lanes)
    return b.splat(x, lanes), b.splat(y, lanes)


def _zeta(b: Builder, x: Node, q: Node) -> Node:
    """The sum of (q + k)^-x over k = 0, 1 ... for x > 1 and q > 0."""
    minus = b.fneg(x)

    def term(_: Node, at: Node, total: Node) -> tuple[Node, ...]:
        return b.fadd(at, 1.0), b.fadd(total, power(b, at, minus))

    at, total = b.for_(0, TERMS, 1, term, (q, b.const(0.0, q.type)))
    last = power(b, at, minus)
    inverse = b.fdiv(b.const(1.0, q.type), at)
    square = b.fmul(inverse, inverse)
    rest = b.fadd(b.fdiv(at, b.fsub(x, 1.0)), 0.5)
    factor = b.fmul(x, inverse)
    for k, c in enumerate(REST):
        rest = b.fma(factor, c, rest)
        grown = b.fmul(b.fadd(x, 2.0 * k + 1.0), b.fadd(x, 2.0 * k + 2.0))
        factor = b.fmul(factor, b.fmul(grown, square))
    tail = b.select(b.cmp("oeq", last, 0.0), b.const(0.0, q.type), b.fmul(last, rest))
    return b.select(b.cmp("oeq", q, inf), b.const(0.0, q.type), b.fadd(total, tail))


@in_f64
def zeta(b: Builder, x: Node, q: Node) -> Node:
    """Hurwitz' zeta function: inf for x = 1, NaN below; for q <= 0 defined for whole x, with poles at whole q."""
    x, q = _alike(b, x, q)
    negative = b.cmp("olt", q, 0.0)
    one, nothing = b.const(1.0, q.type), b.const(0.0, q.type)
    whole = b.floor(q)
    fraction = b.select(negative, b.fsub(q, whole), one)
    positive = b.select(negative, fraction, q)
    main = _zeta(b, x, positive)
    turned = b.fsub(_zeta(b, x, b.fsub(one, b.select(negative, fraction, nothing))),
                    _zeta(b, x, b.fsub(one, b.select(negative, q, nothing))))  # fmt: skip
    half = b.fmul(x, 0.5)
    even = b.cmp("oeq", b.floor(half), half)
    left = b.fadd(main, b.select(even, turned, b.fneg(turned)))
    r = b.select(negative, left, main)
    at_pole = b.and_(b.cmp("ole", q, 0.0), b.cmp("oeq", whole, q))
    r = b.select(at_pole, b.select(even, b.const(inf, q.type), b.const(nan, q.type)), r)
    lost = b.and_(b.cmp("ole", q, 0.0), b.cmp("une", b.floor(x), x))
    lost = b.or_(b.or_(lost, b.cmp("olt", x, 1.0)), b.cmp("uno", x, q))
    r = b.select(lost, b.const(nan, q.type), r)
    return b.select(b.and_(b.cmp("oeq", x, 1.0), b.cmp("ord", q, q)), b.const(inf, q.type), r)


@in_f64
def polygamma(b: Builder, n: Node, x: Node) -> Node:
    """The n-th derivative of digamma: (-1)^(n+1) n! zeta(n + 1, x); NaN for n that is negative or no whole number."""
    n, x = _alike(b, n, x)
    one = b.const(1.0, x.type)

    def times(k: Node, product: Node, factor: Node) -> tuple[Node, ...]:
        here = b.cmp("ole", factor, n)
        return b.select(here, b.fmul(product, factor), product), b.fadd(factor, 1.0)

    product, _ = b.for_(b.const(1, I64), b.const(171, I64), b.const(1, I64), times, (one, one))
    product = b.select(b.cmp("ogt", n, 170.0), b.const(inf, x.type), product)
    half = b.fmul(n, 0.5)
    even = b.cmp("oeq", b.floor(half), half)
    value = b.fmul(product, zeta(b, b.fadd(n, 1.0), x))
    value = b.select(even, b.fneg(value), value)
    value = b.select(b.cmp("oeq", n, 0.0), digamma(b, x), value)
    valid = b.and_(b.cmp("oge", n, 0.0), b.cmp("oeq", b.floor(n), n))
    return b.select(valid, value, b.const(nan, x.type))
