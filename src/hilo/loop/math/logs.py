"""log and log1p. Imports loop.

x = 2^e (1 + f) with 1 + f between sqrt(1/2) and sqrt(2): log(x) = e log 2 + f + f^2 P(f), the constant in two parts
(tables.LOG: error under 2^-27 in f32, 2^-56 in f64). For log1p, f = x 2^-e + (2^-e - 1) is one fused operation, so that
no digit of a small x is lost and no division is needed.
"""

from __future__ import annotations

from hilo.loop.builder import Builder
from hilo.loop.math.floats import fmt, inf, nan, poly
from hilo.loop.math.tables import LN2, LOG
from hilo.loop.nodes import Node

_SQRT_HALF_BITS = {"f32": 0x3F3504F3, "f64": 0x3FE6A09E667F3BCD}


def exponent(b: Builder, bits: Node, scalar: str, digits: int) -> Node:
    """The integer e such that the number with these bits is 2^e times one in [sqrt(1/2), sqrt(2))."""
    return b.ashr(b.sub(bits, _SQRT_HALF_BITS[scalar]), digits)


def to_float(b: Builder, e: Node) -> Node:
    """A small integer as a float (in f64 by way of the shifter: few machines convert i64)."""
    if e.type.scalar == "i32":
        return b.convert("sitofp", e, "f32")
    shifter = 1.5 * 2.0**52
    return b.fsub(b.bitcast(b.add(e, 0x4338 << 48), "f64"), shifter)


def log_sum(b: Builder, e: Node, f: Node, table: str) -> Node:
    """e log 2 + log1p(f)."""
    ln2 = LN2[f.type.scalar]
    rest = b.fma(b.fmul(f, f), poly(b, f, LOG[table]), b.fmul(e, ln2[1]))
    return b.fma(e, ln2[0], b.fadd(f, rest))


def split(b: Builder, x: Node) -> tuple[Node, Node]:
    """(e, f) as floats, for finite x > 0: x = 2^e (1 + f)."""
    s, fm = x.type.scalar, fmt(x)
    subnormal = b.cmp("olt", x, fm.tiny)
    bits = b.bitcast(b.select(subnormal, b.fmul(x, 2.0**fm.digits), x), fm.int)
    e = exponent(b, bits, s, fm.digits)
    f = b.fsub(b.bitcast(b.sub(bits, b.shl(e, fm.digits)), s), 1.0)
    e = to_float(b, e)
    return b.select(subnormal, b.fsub(e, float(fm.digits)), e), f


def log(b: Builder, x: Node, table: str = "") -> Node:
    e, f = split(b, x)
    r = log_sum(b, e, f, table or x.type.scalar)
    r = b.select(b.cmp("oeq", x, 0.0), b.const(-inf, x.type), r)
    r = b.select(b.cmp("oeq", x, inf), x, r)
    return b.select(b.cmp("oge", x, 0.0), r, b.const(nan, x.type))


def log1p(b: Builder, x: Node) -> Node:
    s, fm = x.type.scalar, fmt(x)
    u = b.fadd(x, 1.0)
    bits = b.bitcast(u, fm.int)
    e = exponent(b, bits, s, fm.digits)
    shifted = b.shl(e, fm.digits)
    scale = b.bitcast(b.sub(b.const(fm.one, bits.type), shifted), s)  # 2^-e
    f = b.fma(x, scale, b.fsub(scale, 1.0))
    # for great x, 1 + x is x and 2^-e may be subnormal
    f = b.select(b.cmp("ogt", x, 2.0**64), b.fsub(b.bitcast(b.sub(bits, shifted), s), 1.0), f)
    r = log_sum(b, to_float(b, e), f, s)
    r = b.select(b.cmp("olt", b.fabs(x), fm.half_ulp), x, r)  # keeps -0 and subnormals
    r = b.select(b.cmp("oeq", x, -1.0), b.const(-inf, x.type), r)
    r = b.select(b.cmp("oeq", x, inf), x, r)
    return b.select(b.cmp("oge", x, -1.0), r, b.const(nan, x.type))


