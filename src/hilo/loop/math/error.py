"""erf, erfc and erf_inv. Imports loop.

Up to 1, erf is an odd polynomial. Beyond, in f32, it is 1 - 2^q(|x|), where q is a polynomial for log2(erfc): an error
there counts only by erfc(1) = 0.16. In f64 and for erfc: erfc(x) = exp(-x^2) g(t) / (1 + 2 x), where g is a polynomial
in t = (x - 4) / (x + 4), and x^2 is carried in two parts.

erfc in f32 has one division: erfc(x) = exp(-x^2) u (1 + R(u)) with u = 3/4 / (x + 3/2). With e = expm1(-x^2) this is
u + u (e + R + e R), whose second term is rounded to less than the last place of the sum. What rounding took from u
enters the exponent, times the logarithm's slope there, which is about linear in u.

erf_inv(x) = x g(w) with w = -log(1 - x^2): g is sqrt(pi) / 2 + w H(w) with a polynomial H up to w = 6.25, and a
polynomial in sqrt(w) beyond (after Giles, "Approximating the erfinv function"; forms and coefficients are our own).
1 - x^2 is one fused operation.
"""

from __future__ import annotations

from math import pi, sqrt

from hilo.loop.builder import Builder
from hilo.loop.math.exps import exp_in_two, power_of_two, reduce
from hilo.loop.math.floats import clamp, fmt, inf, nan, poly, poly_between, two_product, two_sum
from hilo.loop.math.logs import exponent, log_sum, to_float
from hilo.loop.math.tables import (
    ERF,
    ERF_INV_CENTER,
    ERF_INV_END,
    ERF_INV_TAIL,
    ERFCX,
    ERFCX_BESIDE,
    ERFCX_FOLLOWS,
    EXP,
    EXP2,
    LOG2_ERFC,
)
from hilo.loop.nodes import Node

_END = {"f32": 10.2, "f64": 27.5}  # where erfc rounds to 0


def _small(b: Builder, x: Node) -> Node:
    """erf(x) for |x| <= 1."""
    return b.fma(x, poly(b, b.fmul(x, x), ERF[x.type.scalar]), x)


def erf(b: Builder, x: Node) -> Node:
    a = b.fabs(x)
    one = b.const(1.0, x.type)
    if x.type.scalar == "f32":
        f = fmt(x)
        q = poly(b, clamp(b, a, None, 4.0), LOG2_ERFC["f32"])  # erf(3.92) rounds to 1
        t = b.fadd(q, f.shifter + f.bias)
        p = poly(b, b.fsub(q, b.fsub(t, f.shifter + f.bias)), [1.0, *EXP2["f32"]])
        large = b.fma(b.fneg(p), power_of_two(b, t), 1.0)
    else:
        large = b.fsub(one, _tail(b, clamp(b, a, None, 7.0)))
    return b.copysign(b.select(b.cmp("olt", a, 1.0), _small(b, x), large), x)


def erfc(b: Builder, x: Node) -> Node:
    """1 - erf(x) without cancellation."""
    a = clamp(b, b.fabs(x), None, _END[x.type.scalar])
    y = _erfc32(b, a) if x.type.scalar == "f32" else _tail(b, a)
    y = b.select(b.cmp("olt", x, 0.0), b.fsub(b.const(2.0, x.type), y), y)
    if x.type.scalar == "f32":
        return y
    small = b.fma(b.fneg(x), poly(b, b.fmul(a, a), ERF["f64"]), b.fsub(b.const(1.0, x.type), x))
    return b.select(b.cmp("olt", a, 1.0), small, y)


def _erfc32(b: Builder, x: Node) -> Node:
    """erfc(x) for f32 x from 0 to 10.2."""
    square, lost = two_product(b, x, x)
    d = b.fadd(x, 1.5)
    u = b.fdiv(b.const(0.75, x.type), d)
    u_low = b.fma(b.fneg(u), b.fsub(x, b.fsub(d, 1.5)), b.fma(b.fneg(u), d, 0.75))
    t = b.fsub(u, 0.1875)
    low = b.fma(u_low, poly(b, t, ERFCX_FOLLOWS["f32"]), b.fneg(lost))
    shifter = b.const(fmt(x).shifter, x.type)
    n, r = reduce(b, b.fneg(square), shifter, low)
    e = b.fma(b.fmul(r, r), poly(b, r, EXP["f32"]), r)
    rest = poly(b, t, ERFCX_BESIDE["f32"])
    return b.scale(b.fma(u, b.fadd(e, b.fma(e, rest, rest)), u), b.fsub(n, shifter))


def _tail(b: Builder, x: Node) -> Node:
    """erfc(x) for f64 x from 1 to 27.5."""
    square, lost = two_product(b, x, x)
    high, low, scaled = exp_in_two(b, b.fneg(square), b.fneg(lost))
    t = b.fdiv(b.fsub(x, 4.0), b.fadd(x, 4.0))
    first = ERFCX["f64"][0]
    slope = poly(b, t, ERFCX["f64"][1:])
    p = b.fma(t, slope, first)
    p_low = b.fma(t, slope, b.fsub(b.const(first, t.type), p))
    twice = b.fadd(x, x)
    d, d_low = two_sum(b, twice, b.const(1.0, x.type), ordered=True)
    # (high + low) (p + p_low) / (d + d_low), one rounding's worth of error
    n, n_low = two_product(b, high, p)
    n_low = b.fma(high, p_low, b.fma(low, p, n_low))
    inverse = b.fdiv(b.const(1.0, x.type), d)
    q = b.fmul(n, inverse)
    rest = b.fma(b.fneg(q), d_low, b.fadd(b.fma(b.fneg(q), d, n), n_low))
    return scaled(b.fma(rest, inverse, q))


def erf_inv(b: Builder, x: Node) -> Node:
    """The y with erf(y) = x: inf at 1, NaN beyond."""
    s, fm = x.type.scalar, fmt(x)
    u = b.fma(b.fneg(x), x, 1.0)
    bits = b.bitcast(u, fm.int)
    e = exponent(b, bits, s, fm.digits)
    f = b.fsub(b.bitcast(b.sub(bits, b.shl(e, fm.digits)), s), 1.0)
    f = b.select(b.cmp("eq", e, 0), b.fneg(b.fmul(x, x)), f)  # no digit of a small x is lost
    w = b.fneg(log_sum(b, to_float(b, e), f, s))
    center = b.cmp("olt", w, 6.25)
    v = b.sqrt(w)
    if s == "f32":
        v = b.fsub(v, 3.25)
        tail = ERF_INV_TAIL[s]
        first, rest = b.const(tail[0], x.type), tail[1:]
        slope = poly_between(b, center, b.select(center, b.fsub(w, 3.125), v), ERF_INV_CENTER[s], rest)
    else:
        end = b.cmp("ogt", v, 4.0)
        v = b.fsub(v, b.select(end, b.const(5.0, x.type), b.const(3.25, x.type)))
        first = b.select(end, b.const(ERF_INV_END[s][0], x.type), b.const(ERF_INV_TAIL[s][0], x.type))
        slope = poly(b, b.fsub(w, 3.125), ERF_INV_CENTER[s])
        slope = b.select(center, slope, poly_between(b, end, v, ERF_INV_END[s][1:], ERF_INV_TAIL[s][1:]))
    first, v = b.select(center, b.const(sqrt(pi) / 2, x.type), first), b.select(center, w, v)
    g = b.fma(v, slope, first)
    g_low = b.fma(v, slope, b.fsub(first, g))
    y, low = two_product(b, x, g)
    y = b.fadd(y, b.fma(x, g_low, low))
    y = b.select(b.cmp("olt", b.fabs(x), 1e-30), b.fmul(x, g), y)  # where the error of a product is no number
    a = b.fabs(x)
    y = b.select(b.cmp("oeq", a, 1.0), b.copysign(b.const(inf, x.type), x), y)
    return b.select(b.cmp("ole", a, 1.0), y, b.const(nan, x.type))
