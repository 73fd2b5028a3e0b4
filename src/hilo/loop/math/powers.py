"""power: x^y = exp(y log|x|), signed for odd integers y. Imports loop.

The error of y log|x| is an absolute one of up to 745 times the relative error of the logarithm. For f32 everything is
done in f64. For f64 the logarithm is a sum of two f64 with about 65 digits: with 1 + f = (1 + s) / (1 - s),
log(1 + f) = 2 s (1 + s^2/3 + s^4 P(s^2)), where s and s^2/3 are carried in two parts.
"""

from __future__ import annotations

from hilo.loop.builder import Builder
from hilo.loop.math.exps import exp, exp_short
from hilo.loop.math.floats import FORMATS, clamp, inf, nan, poly, two_product, two_sum, xor_sign
from hilo.loop.math.logs import exponent, log_sum, split, to_float
from hilo.loop.math.tables import ATANH_LOG, LN2
from hilo.loop.nodes import Node


def power(b: Builder, x: Node, y: Node) -> Node:
    """x^y with all of IEEE 754's special cases: x^0 = 1^y = 1, (-1)^inf = 1, 0^-1 = inf (signed for odd y), ..."""
    magnitude = _power32(b, b.fabs(x), y) if x.type.scalar == "f32" else _power64(b, b.fabs(x), y)
    integer = b.cmp("oeq", b.ftrunc(y), y)
    half = b.fmul(y, 0.5)
    odd = b.and_(integer, b.cmp("une", b.ftrunc(half), half))
    f = FORMATS[x.type.scalar]
    sign = b.select(odd, b.bitcast(x, f.int), b.const(0, x.type.with_scalar(f.int)))
    r = xor_sign(b, magnitude, sign)
    undefined = b.and_(b.not_(integer), b.and_(b.cmp("olt", x, 0.0), b.cmp("ogt", x, -inf)))
    r = b.select(undefined, b.const(nan, x.type), r)
    return b.select(b.or_(b.cmp("oeq", y, 0.0), b.cmp("oeq", x, 1.0)), b.const(1.0, x.type), r)


def _ends(b: Builder, a: Node, log_a: Node) -> Node:
    """log(0) = -inf, log(inf) = inf, log(NaN) = NaN."""
    log_a = b.select(b.cmp("oeq", a, 0.0), b.const(-inf, a.type), log_a)
    return b.select(b.cmp("olt", a, inf), log_a, a)


def _power32(b: Builder, a: Node, y: Node) -> Node:
    """a^y for f32 a >= 0. An infinite y is taken as the greatest finite number: the same results, and 1^inf = 1."""
    wide = b.convert("fpext", a, "f64")
    e = exponent(b, b.bitcast(wide, "i64"), "f64", 52)
    f = b.fsub(b.bitcast(b.sub(b.bitcast(wide, "i64"), b.shl(e, 52)), "f64"), 1.0)
    log_a = _ends(b, wide, log_sum(b, to_float(b, e), f, "f32_in_f64"))
    product = b.fmul(b.convert("fpext", clamp(b, y, -3e38, 3e38), "f64"), log_a)
    t = clamp(b, product, -200.0, 200.0)  # far beyond what f32 can hold
    return b.convert("fptrunc", exp_short(b, t), "f32")


def _power64(b: Builder, a: Node, y: Node) -> Node:
    """a^y for f64 a >= 0."""
    high, low = log_in_two(b, a)
    high = _ends(b, a, high)
    y = clamp(b, y, -1.7e308, 1.7e308)
    t = b.fmul(y, high)
    rest = b.fma(y, low, b.fma(y, high, b.fneg(t)))
    within = b.cmp("olt", b.fabs(t), 800.0)
    return exp(b, t, b.select(within, rest, b.const(0.0, a.type)))


def log_in_two(b: Builder, a: Node) -> tuple[Node, Node]:
    """log(a) as a sum of two f64, for finite a > 0."""
    e, f = split(b, a)
    g = b.fadd(f, 2.0)
    lost = b.fsub(f, b.fsub(g, 2.0))
    inverse = b.fdiv(b.const(1.0, a.type), g)
    s = b.fmul(f, inverse)
    s_low = b.fmul(b.fma(b.fneg(s), lost, b.fma(b.fneg(s), g, f)), inverse)
    z, z_low = two_product(b, s, s)
    z_low = b.fma(b.fadd(s, s), s_low, z_low)
    third = 1 / 3  # and 1/3 - third is third 2^-54
    w, w_low = two_product(b, z, b.const(third, a.type))
    w_low = b.fadd(w_low, b.fmul(b.fma(z, 2.0**-54, z_low), third))
    u, u_low = two_sum(b, b.const(1.0, a.type), w, ordered=True)
    u_low = b.fadd(u_low, b.fma(b.fmul(z, z), poly(b, z, ATANH_LOG["f64"]), w_low))
    u, u_low = two_sum(b, u, u_low, ordered=True)
    twice = b.fadd(s, s)
    m, m_low = two_product(b, twice, u)
    m_low = b.fadd(m_low, b.fma(twice, u_low, b.fmul(b.fadd(s_low, s_low), u)))
    p, p_low = two_product(b, e, b.const(LN2["f64"][0], a.type))
    high, low = two_sum(b, p, m)
    low = b.fadd(low, b.fadd(b.fma(e, LN2["f64"][1], p_low), m_low))
    return two_sum(b, high, low, ordered=True)
