"""atan2 of complex numbers, -i log((x + i y) / sqrt(x^2 + y^2)), by principal branches. Imports loop.

With u = x + i y and v = x - i y this is -i log(u / sqrt(u v)): the real part is half the angle of u / v, or half a turn
from there; the imaginary part is log|v / u| / 2. Signs of zeros do not count. NaN in both parts unless all is finite,
and for two zeros; where u or v is 0 only the imaginary part is infinite.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import pi

from hilo.ir import dtypes
from hilo.loop.arith.complexes import difference_of_products
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.math import inverse, logs
from hilo.loop.math.complexes import Parts, log_abs, on_parts
from hilo.loop.math.floats import inf, nan
from hilo.loop.nodes import Node

_LN2 = 0.6931471805599453
_NONE = -5000  # the exponent of 0, below that of all products


@on_parts
def atan2(b: Builder, y: Parts, x: Parts) -> Parts:
    """-i log((x + i y) / sqrt(x^2 + y^2)); u, v and the sums of products are each scaled to about 1."""
    sine, outer = _sum_of_products(b, x[0], y[0], x[1], y[1]), _sum_of_products(b, x[0], y[1], b.fneg(x[1]), y[0])
    square, _ = _sum_of_products(b, x[0], x[1], y[0], y[1])
    (u, i), (v, j) = _factors(b, y, x)
    k = b.sub(b.add(sine[1], 1), b.add(i, j))
    size = inverse.atan2(b, _ldexp(b, sine[0], k), _exact_sum(b, u[0], v[0], u[1], v[1]))
    re = _on_branch(b, b.fmul(b.fabs(size), 0.5), u, v, sine[0], square)
    pole = b.not_(b.and_(_nonzero(b, *u), _nonzero(b, *v)))
    re = b.select(pole, b.const(0.0, re.type), re)
    im = _imaginary(b, (u, i), (v, j), outer)
    bad = _any(b, [b.not_(_nonzero(b, *x, *y)), *(b.not_(b.cmp("olt", b.fabs(w), inf)) for w in (*x, *y))])
    lost = b.const(nan, re.type)
    return b.select(bad, lost, re), b.select(bad, lost, im)


def _factors(b: Builder, y: Parts, x: Parts) -> tuple[tuple[Parts, Node], tuple[Parts, Node]]:
    """x + i y and x - i y, each as (w, e) for w 2^e."""
    large = _any(b, [b.cmp("ogt", b.fabs(w), 2.0**1000) for w in (*x, *y)])
    down = b.select(large, b.const(0.25, x[0].type), 1.0)  # so that sums of two parts are finite
    x, y = ((b.fmul(re, down), b.fmul(im, down)) for re, im in (x, y))
    u, i = _scaled(b, b.fsub(x[0], y[1]), b.fadd(x[1], y[0]))
    v, j = _scaled(b, b.fadd(x[0], y[1]), b.fsub(x[1], y[0]))
    up = b.select(large, b.const(2, i.type), 0)
    return (u, b.add(i, up)), (v, b.add(j, up))


def _nonzero(b: Builder, *parts: Node) -> Node:
    """Whether any of them is."""
    return _any(b, [b.cmp("une", x, 0.0) for x in parts])


def _any(b: Builder, tests: Sequence[Node]) -> Node:
    return reduce(b.or_, tests)


def _imaginary(b: Builder, u: tuple[Parts, Node], v: tuple[Parts, Node], outer: tuple[Node, Node]) -> Node:
    """log|v / u| / 2, where |v|^2 = |u|^2 + 4 `outer`; of two logarithms where |u| and |v| are far apart."""
    (u_, i), (v_, j) = u, v
    p, q = (b.fma(w[0], w[0], b.fmul(w[1], w[1])) for w in (u_, v_))
    value, k = outer
    first = b.cmp("ogt", value, 0.0)  # |u| is the smaller one
    least, e = b.select(first, p, q), b.select(first, i, j)
    ratio = b.fdiv(_ldexp(b, b.fabs(value), b.sub(b.add(k, 2), b.add(e, e))), least)
    close = b.copysign(b.fmul(logs.log1p(b, ratio), 0.25), value)
    gap = b.sub(j, i)
    apart = b.fma(logs.to_float(b, gap), _LN2, b.fsub(log_abs(b, *v_), log_abs(b, *u_)))
    near = b.and_(b.cmp("slt", gap, 100), b.cmp("sgt", gap, -100))
    return b.select(near, close, b.fmul(apart, 0.5))


def _on_branch(b: Builder, size: Node, u: Parts, v: Parts, inner: Node, square: Node) -> Node:
    """The angle of u / sqrt(u v), which is +-`size` or half a turn from there.

    The sum of the angles of u and v is that of u v but for a whole turn. `inner` has the sign of sin(angle of u / v),
    `square` that of the imaginary part of u v: they decide where rounding could.
    """
    first, second = (inverse.atan2(b, b.fadd(w[1], 0.0), w[0]) for w in (u, v))
    angle, total = b.fmul(b.fsub(first, second), 0.5), b.fadd(first, second)
    above = b.and_(b.cmp("ogt", total, 2.5), b.cmp("olt", square, 0.0))
    below = b.and_(b.cmp("olt", total, -2.5), b.cmp("oge", square, 0.0))
    beyond = b.or_(b.or_(above, below), b.cmp("ogt", b.fabs(total), 3.5))
    turn = b.copysign(b.const(pi, angle.type), angle)
    angle = b.select(beyond, b.fsub(angle, turn), angle)
    far = b.fabs(angle)
    negative = b.select(b.cmp("ogt", far, 3.0), b.cmp("ogt", inner, 0.0), b.cmp("olt", angle, 0.0))
    negative = b.select(b.cmp("olt", far, 0.1), b.cmp("olt", inner, 0.0), negative)
    size = b.select(b.cmp("ogt", far, pi / 2), b.fsub(b.const(pi, size.type), size), size)
    return b.select(negative, b.fneg(size), size)


def _exact_sum(b: Builder, p: Node, q: Node, r: Node, s: Node) -> Node:
    """p q + r s without loss by cancellation."""
    return difference_of_products(b, Elem(dtypes.c128, p, q), p, q, b.fneg(r), s)


def _sum_of_products(b: Builder, p: Node, q: Node, r: Node, s: Node) -> tuple[Node, Node]:
    """(t, e) with p q + r s = t 2^e, where no product over- or underflows; a product 2^-200 of the other is small."""
    (p, i), (q, j), (r, k), (s, m) = (_mantissa(b, w) for w in (p, q, r, s))
    left, right = b.add(i, j), b.add(k, m)
    e = b.smax(right, b.sub(left, 200))
    p = _ldexp(b, p, b.sub(left, e))
    r = _ldexp(b, r, b.sub(right, e))
    return _exact_sum(b, p, q, r, s), e


def _scaled(b: Builder, x: Node, y: Node) -> tuple[Parts, Node]:
    """((x / 2^e, y / 2^e), e) with the larger one in [1, 2)."""
    _, i = _mantissa(b, x)
    _, j = _mantissa(b, y)
    e = b.smax(i, j)
    return (_ldexp(b, x, b.sub(0, e)), _ldexp(b, y, b.sub(0, e))), e


def _mantissa(b: Builder, x: Node) -> tuple[Node, Node]:
    """(m, e) with x = m 2^e and |m| in [1, 2), for finite x; (0, _NONE) for 0."""
    small = b.cmp("olt", b.fabs(x), 2.0**-900)
    raised = b.fmul(x, b.select(small, b.const(2.0**120, x.type), 1.0))
    bits = b.bitcast(raised, "i64")
    e = b.sub(b.and_(b.lshr(bits, 52), 0x7FF), b.select(small, b.const(1143, bits.type), 1023))
    m = b.bitcast(b.or_(b.and_(bits, -0x7FF0_0000_0000_0001), 1023 << 52), "f64")
    none = b.cmp("oeq", x, 0.0)
    return b.select(none, x, m), b.select(none, b.const(_NONE, e.type), e)


def _ldexp(b: Builder, x: Node, k: Node) -> Node:
    """x 2^k in two steps, whose powers are normal numbers; k beyond +-2044 counts as that."""
    k = b.smin(b.smax(k, -2044), 2044)
    half = b.ashr(k, 1)
    for n in (half, b.sub(k, half)):
        x = b.fmul(x, b.bitcast(b.shl(b.add(n, 1023), 52), "f64"))
    return x
