"""The complex functions, in f64 with care for overflow and cancellation; c64 is rounded once. Imports loop.

Zeros, infinities and NaN follow C's Annex G, but that exponential, expm1 and logistic are NaN in both parts where the
imaginary part is infinite or NaN. The inverse functions are Kahan's ("Branch cuts for complex elementary
functions"): branch cuts follow the sign of a zero part. The angle of two complex numbers is in complex_angle.py.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Final

from hilo.ir import dtypes
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.math import exps, inverse, logs, roots, trig
from hilo.loop.math.floats import inf, nan, two_product, two_sum
from hilo.loop.math.hypot import hypot, scaled_to_one
from hilo.loop.nodes import Node

Parts = tuple[Node, Node]
_BIG: Final = 700.0  # exp of it is finite
_EXP_BIG: Final = 1.0142320547350045e304
_FAR: Final = 2.0**60
_LN2: Final = 0.6931471805599453


def on_parts(f: Callable[..., Parts]) -> Callable[..., Elem]:
    """`f` on pairs of f64 nodes (re, im) as a function of complex elements."""

    def apply(b: Builder, *xs: Elem) -> Elem:
        dtype = xs[0].dtype
        pairs = []
        for x in xs:
            assert x.im is not None
            pairs.append((b.convert("fpext", x.re, "f64"), b.convert("fpext", x.im, "f64")))
        re, im = f(b, *pairs)
        if dtype is dtypes.c64:
            re, im = b.convert("fptrunc", re, "f32"), b.convert("fptrunc", im, "f32")
        return Elem(dtype, re, im)

    apply.__name__ = f.__name__
    apply.__doc__ = f.__doc__
    return apply


def _const(b: Builder, value: float, like: Node) -> Node:
    return b.const(value, like.type)


def _finite(b: Builder, x: Node) -> Node:
    return b.cmp("olt", b.fabs(x), inf)


def _endless(b: Builder, z: Parts) -> Node:
    """Whether a part is infinite."""
    return b.or_(b.cmp("oeq", b.fabs(z[0]), inf), b.cmp("oeq", b.fabs(z[1]), inf))


def _divide(b: Builder, x: Parts, y: Parts) -> Parts:
    from hilo.loop.arith.complexes import divide

    q = divide(b, Elem(dtypes.c128, *x), Elem(dtypes.c128, *y))
    assert q.im is not None
    return q.re, q.im


def _multiply(b: Builder, x: Parts, y: Parts) -> Parts:
    from hilo.loop.arith.complexes import multiply

    q = multiply(b, Elem(dtypes.c128, *x), Elem(dtypes.c128, *y))
    assert q.im is not None
    return q.re, q.im


# ---- exponentials


def _annex_g_exp(b: Builder, z: Parts) -> Parts:
    """e^z; of an infinite x and a y that is not finite, 0 or inf + NaN i."""
    x, y = z
    big = b.cmp("ogt", x, _BIG)
    e = exps.exp(b, b.select(big, b.fsub(x, _BIG), x))
    scale = b.select(big, _const(b, _EXP_BIG, x), _const(b, 1.0, x))
    s, c = trig.sin_cos(b, y)
    re, im = b.fmul(b.fmul(e, c), scale), b.fmul(b.fmul(e, s), scale)
    im = b.select(b.cmp("oeq", y, 0.0), y, im)  # not inf * 0
    endless = b.not_(_finite(b, y))
    zero = _const(b, 0.0, x)
    gone = b.and_(endless, b.cmp("oeq", x, -inf))
    re = b.select(b.and_(endless, b.cmp("oeq", x, inf)), x, b.select(gone, zero, re))
    return re, b.select(gone, zero, im)


def _exp_parts(b: Builder, z: Parts) -> Parts:
    re, im = _annex_g_exp(b, z)
    turning, none = _finite(b, z[1]), _const(b, nan, re)
    return b.select(turning, re, none), b.select(turning, im, none)


exp = on_parts(_exp_parts)


@on_parts
def expm1(b: Builder, z: Parts) -> Parts:
    """expm1(x) cos(y) - 2 sin(y/2)^2, exp(x) sin(y): no cancellation that the parts' own rounding does not explain."""
    x, y = z
    re, im = _exp_parts(b, z)
    half, _ = trig.sin_cos(b, b.fmul(y, 0.5))
    small = b.fma(exps.expm1(b, x), trig.cos(b, y), b.fmul(b.fmul(half, -2.0), half))
    direct = b.or_(b.cmp("ogt", x, _BIG), b.not_(_finite(b, y)))
    direct = b.or_(direct, b.cmp("uno", x, x))
    return b.select(direct, b.fsub(re, 1.0), small), im


@on_parts
def logistic(b: Builder, z: Parts) -> Parts:
    """1 / (1 + exp(-z)); near the pole at pi i, 1 + exp(-x) cos(y) = 2 exp(-x) cos(y/2)^2 - expm1(-x)."""
    x, y = z
    minus = b.fneg(x)
    re, im = _exp_parts(b, (minus, b.fneg(y)))
    half = trig.cos(b, b.fmul(y, 0.5))
    e = exps.exp(b, minus)
    sum_ = b.fsub(b.fmul(b.fmul(b.fadd(e, e), half), half), exps.expm1(b, minus))
    below = b.cmp("olt", b.fabs(x), 40.0)
    one = b.fadd(re, 1.0)
    q = _divide(b, (_const(b, 1.0, x), _const(b, 0.0, x)), (b.select(below, sum_, one), im))
    tail = _exp_parts(b, z)  # what is left of e^z / (1 + e^z) for x below -40
    left = b.cmp("olt", x, -40.0)
    return b.select(left, tail[0], q[0]), b.select(left, tail[1], q[1])


# ---- logarithms and powers


def log_abs(b: Builder, x: Node, y: Node) -> Node:
    """log(sqrt(x^2 + y^2)): log(max) + log1p((min / max)^2) / 2; near the unit circle log1p(x^2 + y^2 - 1) / 2."""
    ax, ay = b.fabs(x), b.fabs(y)
    swap = b.cmp("ogt", ay, ax)
    large, small = b.select(swap, ay, ax), b.select(swap, ax, ay)
    q = b.fdiv(small, large)
    q = b.select(b.cmp("ogt", small, 0.0), q, b.fabs(small))  # 0 / 0
    away = b.fma(logs.log1p(b, b.fmul(q, q)), 0.5, logs.log(b, large))
    p, p_low = two_product(b, large, large)
    r, r_low = two_product(b, small, small)
    s, s_low = two_sum(b, b.fsub(p, 1.0), r)
    excess = b.fadd(s, b.fadd(s_low, b.fadd(p_low, r_low)))
    near = b.and_(b.cmp("ogt", excess, -0.5), b.cmp("olt", excess, 2.0))
    near = b.and_(near, b.cmp("ogt", large, 0.5))
    out = b.select(near, b.fmul(logs.log1p(b, excess), 0.5), away)
    out = b.select(b.cmp("uno", x, y), _const(b, nan, x), out)
    return b.select(_endless(b, (x, y)), _const(b, inf, x), out)


def _log_parts(b: Builder, z: Parts) -> Parts:
    return log_abs(b, *z), inverse.atan2(b, z[1], z[0])


log = on_parts(_log_parts)


@on_parts
def log1p(b: Builder, z: Parts) -> Parts:
    """log(1 + z); near |1 + z| = 1 the real part is log1p(2 x + x^2 + y^2) / 2, the sum in two parts."""
    x, y = z
    u = b.fadd(x, 1.0)
    p, p_low = two_product(b, x, x)
    r, r_low = two_product(b, y, y)
    s, s_low = two_sum(b, b.fadd(x, x), p)
    t, t_low = two_sum(b, s, r)
    excess = b.fadd(t, b.fadd(b.fadd(s_low, t_low), b.fadd(p_low, r_low)))
    near = b.and_(b.cmp("ogt", excess, -0.75), b.cmp("olt", excess, 3.0))
    re = b.select(near, b.fmul(logs.log1p(b, excess), 0.5), log_abs(b, u, y))
    return re, inverse.atan2(b, y, u)


@on_parts
def power(b: Builder, x: Parts, y: Parts) -> Parts:
    """exp(y log(x)); anything to the power 0 is 1, and 0 to a power with positive real part is 0."""
    re, im = _annex_g_exp(b, _multiply(b, y, _log_parts(b, x)))
    zero = b.and_(b.cmp("oeq", x[0], 0.0), b.cmp("oeq", x[1], 0.0))
    zero = b.and_(zero, b.cmp("ogt", y[0], 0.0))
    one = b.and_(b.cmp("oeq", y[0], 0.0), b.cmp("oeq", y[1], 0.0))
    none = _const(b, 0.0, re)
    re, im = b.select(zero, none, re), b.select(zero, none, im)
    return b.select(one, _const(b, 1.0, re), re), b.select(one, none, im)


# ---- roots


def _sqrt_parts(b: Builder, z: Parts) -> Parts:
    """t = sqrt((|x| + |z|) / 2) and y / (2 t), in the order that x's sign asks for."""
    x, y = z
    (sx, sy), scale = scaled_to_one(b, x, y, even=True)
    ax = b.fabs(sx)
    t = b.fmul(b.sqrt(b.fmul(b.fadd(ax, hypot(b, sx, sy)), 0.5)), scale)
    other = b.fdiv(b.fabs(y), b.fadd(t, t))  # of y as it was: scaled down it may underflow
    other = b.select(b.cmp("oeq", t, 0.0), _const(b, 0.0, x), other)
    left = b.cmp("slt", b.bitcast(x, "i64"), 0)
    re, im = b.select(left, other, t), b.select(left, t, other)
    infinite_x, infinite_y = b.cmp("oeq", b.fabs(x), inf), b.cmp("oeq", b.fabs(y), inf)
    zero = b.select(b.cmp("uno", y, y), y, _const(b, 0.0, x))
    endless = _const(b, inf, x)
    re = b.select(infinite_x, b.select(left, zero, endless), re)
    im = b.select(infinite_x, b.select(left, endless, zero), im)
    re, im = b.select(infinite_y, endless, re), b.select(infinite_y, endless, im)
    return re, b.copysign(im, y)


sqrt = on_parts(_sqrt_parts)


@on_parts
def rsqrt(b: Builder, z: Parts) -> Parts:
    """1 / sqrt(z)."""
    return _divide(b, (_const(b, 1.0, z[0]), _const(b, 0.0, z[0])), _sqrt_parts(b, z))


@on_parts
def cbrt(b: Builder, z: Parts) -> Parts:
    """The principal root: the argument is divided by three."""
    x, y = z
    (sx, sy), scale = scaled_to_one(b, x, y, even=False)
    size = b.select(_endless(b, z), _const(b, inf, x), b.fmul(roots.cbrt(b, hypot(b, sx, sy)), scale))
    s, c = trig.sin_cos(b, b.fdiv(inverse.atan2(b, y, x), 3.0))
    zero = b.and_(b.cmp("oeq", x, 0.0), b.cmp("oeq", y, 0.0))
    return b.select(zero, x, b.fmul(size, c)), b.select(zero, y, b.fmul(size, s))


# ---- circular and hyperbolic functions


def _cosh_sinh(b: Builder, y: Node) -> tuple[Node, Node, Node]:
    """(cosh, sinh, scale): both are to be multiplied by the scale, which keeps them finite a little longer."""
    a = b.fabs(y)
    big = b.cmp("ogt", a, _BIG)
    low = b.select(big, b.fsub(a, _BIG), a)
    half = b.fmul(exps.exp(b, low), 0.5)
    c = b.select(big, half, inverse.cosh(b, low))
    s = b.copysign(b.select(big, half, inverse.sinh(b, low)), y)
    return c, s, b.select(big, _const(b, _EXP_BIG, y), _const(b, 1.0, y))


def _sin_parts(b: Builder, z: Parts) -> Parts:
    """sin(x) cosh(y), cos(x) sinh(y)."""
    x, y = z
    s, c = trig.sin_cos(b, x)
    ch, sh, scale = _cosh_sinh(b, y)
    re = b.select(b.cmp("oeq", x, 0.0), x, b.fmul(b.fmul(s, ch), scale))
    im = b.select(b.cmp("oeq", y, 0.0), b.select(_finite(b, x), b.fmul(c, y), y), b.fmul(b.fmul(c, sh), scale))
    endless = b.and_(b.not_(_finite(b, x)), b.cmp("oeq", b.fabs(y), inf))
    return re, b.select(endless, b.fabs(y), im)  # of either sign


def _cos_parts(b: Builder, z: Parts) -> Parts:
    """cos(x) cosh(y), -sin(x) sinh(y)."""
    x, y = z
    s, c = trig.sin_cos(b, x)
    ch, sh, scale = _cosh_sinh(b, y)
    re = b.fmul(b.fmul(c, ch), scale)
    zero = b.or_(b.cmp("oeq", x, 0.0), b.cmp("oeq", y, 0.0))
    flat = b.fmul(b.copysign(b.const(1.0, x.type), x), b.copysign(_const(b, 0.0, x), y))
    im = b.fneg(b.select(zero, flat, b.fmul(b.fmul(s, sh), scale)))
    endless = b.and_(b.not_(_finite(b, x)), b.cmp("oeq", b.fabs(y), inf))
    return b.select(endless, b.fabs(y), re), im


def _turned(f: Callable[[Builder, Parts], Parts]) -> Callable[[Builder, Parts], Parts]:
    """-i f(i z): how sinh, tan, asinh and atan come from sin, tanh, asin and atanh."""

    def g(b: Builder, z: Parts) -> Parts:
        re, im = f(b, (b.fneg(z[1]), z[0]))
        return im, b.fneg(re)

    return g


def _tanh_parts(b: Builder, z: Parts) -> Parts:
    """Kahan's form, with t = tan(y), s = sinh(x): (c s sqrt(1 + s^2) + i t) / (1 + c s^2), where c = 1 + t^2."""
    x, y = z
    one = _const(b, 1.0, x)
    far = b.cmp("ogt", b.fabs(x), 22.0)
    t = trig.tan(b, y)
    s = inverse.sinh(b, b.select(far, b.copysign(_const(b, 22.0, x), x), x))
    c = b.fma(t, t, 1.0)
    s2 = b.fmul(s, s)
    below = b.fma(c, s2, 1.0)
    re = b.fdiv(b.fmul(b.fmul(c, s), b.sqrt(b.fadd(s2, 1.0))), below)
    im = b.fdiv(t, below)
    # far: +-1 and 4 sin(y) cos(y) exp(-2 |x|); of an infinite x only the sign of sin(2 y) is left
    sin_y, cos_y = trig.sin_cos(b, y)
    e = exps.exp(b, b.fneg(b.fabs(x)))
    wave = b.fmul(b.fmul(b.fmul(b.fmul(sin_y, cos_y), 4.0), e), e)
    wave = b.select(_finite(b, y), wave, b.copysign(_const(b, 0.0, x), y))
    lost = b.and_(b.not_(_finite(b, y)), _finite(b, x))
    wave = b.select(lost, _const(b, nan, x), wave)
    re = b.select(far, b.select(lost, _const(b, nan, x), b.copysign(one, x)), re)
    re = b.select(b.and_(b.cmp("oeq", x, 0.0), b.not_(_finite(b, y))), x, re)
    im = b.select(far, wave, im)
    return re, b.select(b.cmp("oeq", y, 0.0), y, im)


def _cosh_parts(b: Builder, z: Parts) -> Parts:
    return _cos_parts(b, (b.fneg(z[1]), z[0]))


sin, cos, tanh = on_parts(_sin_parts), on_parts(_cos_parts), on_parts(_tanh_parts)
sinh, cosh, tan = on_parts(_turned(_sin_parts)), on_parts(_cosh_parts), on_parts(_turned(_tanh_parts))


# ---- their inverses


def _roots_around_one(b: Builder, z: Parts) -> tuple[Parts, Parts]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    x, y = z
    minus = _sqrt_parts(b, (b.fsub(_const(b, 1.0, x), x), b.fneg(y)))
    return minus, _sqrt_parts(b, (b.fadd(x, 1.0), y))


def _asin_parts(b: Builder, z: Parts) -> Parts:
    (p, q), (r, s) = _roots_around_one(b, z)
    re = inverse.atan2(b, z[0], b.fsub(b.fmul(p, r), b.fmul(q, s)))
    re = b.select(_far(b, z), inverse.atan2(b, z[0], b.fabs(z[1])), re)
    re = b.select(b.cmp("oeq", z[0], 0.0), z[0], re)
    return re, _imaginary(b, z, inverse.asinh(b, b.fsub(b.fmul(p, s), b.fmul(q, r))))


def _acos_parts(b: Builder, z: Parts) -> Parts:
    (p, q), (r, s) = _roots_around_one(b, z)
    half = inverse.atan2(b, p, r)
    re = b.select(_far(b, z), inverse.atan2(b, b.fabs(z[1]), z[0]), b.fadd(half, half))
    re = b.select(b.cmp("oeq", z[0], 0.0), _const(b, pi / 2, re), re)
    return re, b.fneg(_imaginary(b, z, inverse.asinh(b, b.fsub(b.fmul(p, s), b.fmul(q, r)))))


def _far(b: Builder, z: Parts) -> Node:
    """Where 1 does not count beside z^2: asin(z) is the angle of (|y|, x) and log(2 |z|), which cannot overflow."""
    return b.or_(b.cmp("ogt", b.fabs(z[0]), _FAR), b.cmp("ogt", b.fabs(z[1]), _FAR))


def _imaginary(b: Builder, z: Parts, near: Node) -> Node:
    """The imaginary part, with the sign of z's; `near`: what it is where z is not far."""
    return b.copysign(b.select(_far(b, z), b.fadd(log_abs(b, *z), _LN2), near), z[1])


def _acosh_parts(b: Builder, z: Parts) -> Parts:
    """i acos(z), or -i acos(z): the real part is not negative."""
    re, im = _acos_parts(b, z)
    return b.fabs(im), b.select(b.cmp("uno", z[1], z[1]), re, b.copysign(re, z[1]))


def _atanh_parts(b: Builder, z: Parts) -> Parts:
    """log1p(4 |x| / ((1 - |x|)^2 + y^2)) / 4 and atan2(2 y, (1 - |x|)(1 + |x|) - y^2) / 2; far out 1 / z and +-pi/2."""
    x, y = z
    ax, ay = b.fabs(x), b.fabs(y)
    m = b.fsub(_const(b, 1.0, x), ax)
    far = _far(b, z)
    # y^2 beside (1 - |x|)^2; at +-1 it may underflow, where 4 |x| / y^2 is 4 / y / y
    below = b.fma(m, m, b.fmul(ay, ay))
    re = b.fmul(logs.log1p(b, b.fdiv(b.fmul(ax, 4.0), below)), 0.25)
    edge = b.and_(b.cmp("oeq", m, 0.0), b.cmp("olt", ay, 2.0**-500))
    re = b.select(edge, b.fmul(b.fsub(_const(b, _LN2, x), logs.log(b, ay)), 0.5), re)
    im = b.fmul(inverse.atan2(b, b.fadd(ay, ay), b.fma(b.fneg(ay), ay, b.fmul(m, b.fadd(ax, 1.0)))), 0.5)
    distant, _ = _divide(b, (_const(b, 1.0, x), _const(b, 0.0, x)), (ax, ay))
    distant = b.select(b.cmp("oeq", ay, inf), _const(b, 0.0, x), distant)
    re = b.select(far, distant, re)
    im = b.select(far, _const(b, pi / 2, x), im)
    lost = b.or_(b.cmp("uno", y, y), b.and_(b.cmp("uno", x, x), _finite(b, y)))
    im = b.select(lost, _const(b, nan, x), im)
    re = b.select(b.cmp("oeq", x, 0.0), x, re)
    return b.copysign(re, x), b.copysign(im, y)


asin, acos, acosh, atanh = map(on_parts, (_asin_parts, _acos_parts, _acosh_parts, _atanh_parts))
asinh, atan = on_parts(_turned(_asin_parts)), on_parts(_turned(_atanh_parts))
