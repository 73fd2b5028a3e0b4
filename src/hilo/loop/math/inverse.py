"""atan2, asin, acos, atan, and sinh, cosh, asinh, acosh, atanh. Imports loop.

Near 0 the odd ones are odd polynomials; elsewhere they come from sqrt, exp, log1p and atan2 in forms that do not
cancel. f32 is computed in f64 wherever that is not sinh or cosh.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi
from typing import Final

from hilo.loop.builder import Builder
from hilo.loop.math.exps import exp
from hilo.loop.math.floats import inf, nan, poly
from hilo.loop.math.logs import log, log1p
from hilo.loop.math.tables import ASIN, ASINH, ATAN, ATANH, LN2, PI_2, SINH
from hilo.loop.nodes import Node

_PI_LOW: Final = 2 * PI_2["f64"][1]


def in_f64(f: Callable[..., Node]) -> Callable[..., Node]:
    """`f`, computed in f64 for f32 arguments."""

    def g(b: Builder, *xs: Node) -> Node:
        if xs[0].type.scalar == "f64":
            return f(b, *xs)
        return b.convert("fptrunc", f(b, *(b.convert("fpext", x, "f64") for x in xs)), "f32")

    g.__doc__ = f.__doc__
    g.__name__ = f.__name__
    return g


def _odd(b: Builder, x: Node, table: tuple[float, ...]) -> Node:
    """x + x^3 P(x^2)."""
    z = b.fmul(x, x)
    return b.fma(b.fmul(z, x), poly(b, z, table), x)


def atan2(b: Builder, y: Node, x: Node) -> Node:
    """The angle of (x, y), in [-pi, pi]; the signs of zeros count."""
    if x.type.scalar == "f64":
        return _atan2(b, y, x, "f64")
    y, x = b.convert("fpext", y, "f64"), b.convert("fpext", x, "f64")
    return b.convert("fptrunc", _atan2(b, y, x, "f32_in_f64"), "f32")


def _atan2(b: Builder, y: Node, x: Node, table: str) -> Node:
    ax, ay = b.fabs(x), b.fabs(y)
    steep = b.cmp("ogt", ay, ax)
    n, d = b.select(steep, ax, ay), b.select(steep, ay, ax)
    q = b.fdiv(n, d)
    q = b.select(b.cmp("oeq", n, inf), b.const(1.0, x.type), q)
    q = b.select(b.cmp("oeq", d, 0.0), b.const(0.0, x.type), q)
    r = _odd(b, q, ATAN[table])
    # steep: pi/2 - r; x negative: pi minus that
    left = b.cmp("slt", b.bitcast(x, "i64"), 0)
    zero = b.const(0.0, x.type)
    base = b.select(steep, b.const(pi / 2, x.type), b.select(left, b.const(pi, x.type), zero))
    low = b.select(steep, b.const(_PI_LOW / 2, x.type), b.select(left, b.const(_PI_LOW, x.type), zero))
    r = b.select(b.xor(steep, left), b.fneg(r), r)
    r = b.copysign(b.fadd(base, b.fadd(r, low)), y)
    return b.select(b.cmp("uno", x, y), b.fadd(x, y), r)


def atan(b: Builder, x: Node) -> Node:
    return atan2(b, x, b.const(1.0, x.type))


def _asin_half(b: Builder, a: Node) -> tuple[Node, Node, Node]:
    """(whether |x| <= 1/2, asin(|x|) there, 2 asin(sqrt((1 - |x|) / 2)) elsewhere); the latter is acos(|x|)."""
    small = b.cmp("ole", a, 0.5)
    half = b.fmul(b.fsub(b.const(1.0, a.type), a), 0.5)
    v = b.select(small, a, b.sqrt(half))
    z = b.select(small, b.fmul(a, a), half)
    cubic = b.fmul(b.fmul(z, v), poly(b, z, ASIN["f64"]))
    # what rounding the root took
    inverse = b.fdiv(b.const(0.5, a.type), v)
    lost = b.select(b.cmp("ogt", half, 0.0), b.fmul(b.fma(b.fneg(v), v, half), inverse), b.const(0.0, a.type))
    return small, b.fadd(v, cubic), b.fmul(b.fadd(v, b.fadd(cubic, lost)), 2.0)


@in_f64
def asin(b: Builder, x: Node) -> Node:
    small, near, far = _asin_half(b, b.fabs(x))
    far = b.fadd(b.fsub(b.const(pi / 2, x.type), far), _PI_LOW / 2)
    return b.copysign(b.select(small, near, far), x)


@in_f64
def acos(b: Builder, x: Node) -> Node:
    small, near, far = _asin_half(b, b.fabs(x))
    near = b.fsub(b.const(pi / 2, x.type), b.fsub(b.copysign(near, x), _PI_LOW / 2))
    left = b.fsub(b.const(pi, x.type), b.fsub(far, _PI_LOW))
    return b.select(small, near, b.select(b.cmp("olt", x, 0.0), left, far))


def sinh(b: Builder, x: Node) -> Node:
    a = b.fabs(x)
    h = exp(b, a, halve=True)
    far = b.fsub(h, b.fdiv(b.const(0.25, x.type), h))
    return b.copysign(b.select(b.cmp("olt", a, 1.0), _odd(b, a, SINH[x.type.scalar]), far), x)


def cosh(b: Builder, x: Node) -> Node:
    h = exp(b, b.fabs(x), halve=True)
    return b.fadd(h, b.fdiv(b.const(0.25, x.type), h))


@in_f64
def asinh(b: Builder, x: Node) -> Node:
    """log1p(a + a^2 / (1 + sqrt(1 + a^2))), and log(a) + log 2 where a^2 would overflow."""
    a = b.fabs(x)
    great = b.cmp("ogt", a, 2.0**28)
    c = b.select(great, b.const(1.0, x.type), a)
    z = b.fmul(c, c)
    y = log1p(b, b.fadd(c, b.fdiv(z, b.fadd(b.sqrt(b.fadd(z, 1.0)), 1.0))))
    y = b.select(great, b.fadd(log(b, a), LN2["f64"][0]), y)
    return b.copysign(b.select(b.cmp("olt", a, 0.5), _odd(b, a, ASINH["f64"]), y), x)


@in_f64
def acosh(b: Builder, x: Node) -> Node:
    """log1p(t + sqrt(2 t + t^2)) with t = x - 1, and log(x) + log 2 where t^2 would overflow; NaN below 1."""
    great = b.cmp("ogt", x, 2.0**28)
    t = b.fsub(b.select(great, b.const(1.0, x.type), x), 1.0)
    y = log1p(b, b.fadd(t, b.sqrt(b.fma(t, t, b.fadd(t, t)))))
    y = b.select(great, b.fadd(log(b, x), LN2["f64"][0]), y)
    return b.select(b.cmp("oge", x, 1.0), y, b.const(nan, x.type))


@in_f64
def atanh(b: Builder, x: Node) -> Node:
    """log1p(2 a / (1 - a)) / 2: inf at 1, NaN beyond."""
    a = b.fabs(x)
    y = b.fmul(log1p(b, b.fdiv(b.fadd(a, a), b.fsub(b.const(1.0, x.type), a))), 0.5)
    return b.copysign(b.select(b.cmp("olt", a, 0.5), _odd(b, a, ATANH["f64"]), y), x)


