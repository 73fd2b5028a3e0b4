"""Operations of f32 and f64 nodes (narrow floats are held as f32): extrema, sign, fmod, rounding, total order.

Imports loop.
"""

from __future__ import annotations

from math import copysign, inf, nan

from hilo.loop.arith.rounding import int_of
from hilo.loop.builder import Builder
from hilo.loop.lanes import any_lane
from hilo.loop.nodes import Node


def maximum(b: Builder, x: Node, y: Node) -> Node:
    """IEEE maximum: NaN wins, -0 < +0."""
    return _extremum(b, x, y, largest=True)


def minimum(b: Builder, x: Node, y: Node) -> Node:
    """IEEE minimum: NaN wins, -0 < +0."""
    return _extremum(b, x, y, largest=False)


def _extremum(b: Builder, x: Node, y: Node, *, largest: bool) -> Node:
    if x.const is not None:
        x, y = y, x
    c = y.const
    if (
        c is not None and c == c
    ):  # one comparison, which is false for NaN, does it; only zeros of the other sign need care
        take_equal = (copysign(1, c) > 0) == largest
        taken = b.cmp(("ole" if take_equal else "olt") if largest else ("oge" if take_equal else "ogt"), x, y)
        return b.select(taken, y, x)
    i = int_of(x)
    out = b.select(b.cmp("ogt" if largest else "olt", x, y), x, y)  # y is NaN: y
    both = b.binary("and" if largest else "or", b.bitcast(x, i), b.bitcast(y, i))  # equal: decides the sign of zeros
    out = b.select(b.cmp("oeq", x, y), b.bitcast(both, x.type.scalar), out)
    return b.select(b.cmp("uno", x, x), x, out)


def sign(b: Builder, x: Node) -> Node:
    """+-1; zeros and NaN stay."""
    same = b.or_(b.cmp("oeq", x, 0.0), b.cmp("uno", x, x))
    return b.select(same, x, b.copysign(b.const(1.0, x.type), x))


def round_afz(b: Builder, x: Node) -> Node:
    """To the nearest integer, halves away from zero; the fraction is exact."""
    whole = b.ftrunc(x)
    up = b.cmp("oge", b.fabs(b.fsub(x, whole)), 0.5)
    return b.select(up, b.fadd(whole, b.copysign(b.const(1.0, x.type), x)), whole)


def is_finite(b: Builder, x: Node) -> Node:
    return b.cmp("olt", b.fabs(x), inf)


def total_order(b: Builder, x: Node) -> Node:
    """An integer that orders (signed) as IEEE totalOrder does."""
    bits = b.bitcast(x, int_of(x))
    width = bits.type.bits
    return b.xor(bits, b.and_(b.ashr(bits, width - 1), (1 << (width - 1)) - 1))


# ---- remainder
def fmod(b: Builder, x: Node, y: Node) -> Node:
    """The exact remainder of truncating division, with x's sign; NaN for infinite x, zero y and NaNs.

    Long division: as long as r >= y, take off q times t = y * 2**k, where k is such that q = trunc(r / t) has less bits
    than the type. r - q t is exact, and so is correcting a q that division rounded up. Most turns are the only one.
    """
    lanes = max(x.type.lanes, y.type.lanes)
    x, y = b.splat(x, lanes), b.splat(y, lanes)
    bad = b.not_(b.and_(is_finite(b, x), b.and_(b.cmp("une", y, 0.0), b.cmp("ord", y, y))))
    divisor = b.select(bad, b.const(1.0, y.type), b.fabs(y))
    infinite = b.cmp("oeq", divisor, inf)
    start = b.select(b.or_(bad, infinite), b.const(0.0, x.type), b.fabs(x))
    divisor = b.select(infinite, b.const(1.0, y.type), divisor)
    digits = 24 if x.type.scalar == "f32" else 53
    exponent = _exponent(b, divisor)

    def step(r: Node) -> tuple[Node, ...]:
        k = b.smin(b.smax(b.sub(b.sub(_exponent(b, r), exponent), digits - 3), 0), 254 if digits == 24 else 2046)
        t = _scale(b, divisor, k)
        q = b.ftrunc(b.fdiv(r, t))
        r = b.fma(b.fneg(q), t, r)
        return (b.select(b.cmp("olt", r, 0.0), b.fadd(r, t), r),)

    (r,) = b.while_((start,), lambda r: any_lane(b, b.cmp("oge", r, divisor)), step)
    r = b.select(infinite, b.fabs(x), r)
    return b.select(bad, b.const(nan, x.type), b.copysign(r, x))


def _exponent(b: Builder, x: Node) -> Node:
    """The biased exponent of a finite, non-negative x as an integer; below 1 for subnormals."""
    f32 = x.type.scalar == "f32"
    digits, least = (23, 2.0**-126) if f32 else (52, 2.0**-1022)
    tiny = b.cmp("olt", x, least)
    up = b.select(tiny, b.fmul(x, 2.0 ** (digits + 1)), x)
    e = b.lshr(b.bitcast(up, int_of(x)), digits)
    return b.select(tiny, b.sub(e, digits + 1), e)


def _scale(b: Builder, x: Node, k: Node) -> Node:
    """x * 2**k for k >= 0, in two exact steps (a subnormal x may need more than the largest power of two)."""
    digits, bias = (23, 127) if x.type.scalar == "f32" else (52, 1023)
    half = b.lshr(k, 1)
    for part in (half, b.sub(k, half)):
        x = b.fmul(x, b.bitcast(b.shl(b.add(part, bias), digits), x.type.scalar))
    return x
