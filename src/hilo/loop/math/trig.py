"""sin, cos and tan. Imports loop.

|x| = n pi/2 + r with |r| <= pi/4, then a polynomial in r^2 for the sine or the cosine of r, chosen and signed by
n mod 4.

Up to a bound (_FAST) n pi/2 is taken off in three fused steps, pi/2 in three parts: the first step is exact, since x
and n C1 are multiples of the same small power of two and their difference is below 1; in the others the error is
relative to the result, as an fma rounds once. If any lane is beyond, `huge` replaces the results of those lanes, in a
branch that ordinary data never takes: x / (pi/2) mod 4 from the digits of 2/pi that matter (Payne and Hanek), in f64.
"""

from __future__ import annotations

from typing import Final

from hilo.loop.builder import F64, Builder
from hilo.loop.helpers import called
from hilo.loop.math.floats import any_lane, fmt, inf, nan, poly, two_product, two_sum, xor_sign
from hilo.loop.math.tables import COS, PI_2, SIN, TWO_OVER_PI
from hilo.loop.nodes import Node

_FAST: Final = {"f32": 2.0**17, "f64": 2.0**30}
TWO_OVER_PI_HEAD: Final = 0.6366197723675814
_PIECE: Final = 48  # bits of 2/pi in one number of the table
_PIECES: Final = 5  # 53 digits, 62 more for the x nearest to a multiple of pi/2, 48 + 2 for alignment


def sin(b: Builder, x: Node) -> Node:
    r, low, n = reduce(b, x)
    y = b.select(b.cmp("eq", b.and_(n, 1), 0), sin_of(b, r, low), cos_of(b, r, low))
    sign = b.xor(b.shl(n, fmt(x).bits - 2), b.bitcast(x, fmt(x).int))
    return xor_sign(b, y, sign)


def cos(b: Builder, x: Node) -> Node:
    r, low, n = reduce(b, x)
    y = b.select(b.cmp("eq", b.and_(n, 1), 0), cos_of(b, r, low), sin_of(b, r, low))
    return xor_sign(b, y, b.shl(b.add(n, 1), fmt(x).bits - 2))


def sin_cos(b: Builder, x: Node) -> tuple[Node, Node]:
    """Both from one reduction."""
    r, low, n = reduce(b, x)
    s, c = sin_of(b, r, low), cos_of(b, r, low)
    even = b.cmp("eq", b.and_(n, 1), 0)
    top = fmt(x).bits - 2
    sign = b.xor(b.shl(n, top), b.bitcast(x, fmt(x).int))
    return xor_sign(b, b.select(even, s, c), sign), xor_sign(b, b.select(even, c, s), b.shl(b.add(n, 1), top))


def tan(b: Builder, x: Node) -> Node:
    """sin / cos, both from one reduction; f32 in f64, and in f64 the quotient is corrected by its remainder."""
    if x.type.scalar == "f32":
        return b.convert("fptrunc", _tan64(b, b.convert("fpext", x, "f64"), "f32_in_f64", 2.0**25), "f32")
    return _tan64(b, x, "f64", _FAST["f64"])


def _tan64(b: Builder, x: Node, table: str, fast: float) -> Node:
    r, low, n = reduce(b, x, fast)
    s, c = sin_parts(b, r, low, table), cos_parts(b, r, low, table)
    even = b.cmp("eq", b.and_(n, 1), 0)
    (th, tl), (bh, bl) = ((b.select(even, p, q) for p, q in zip(u, v)) for u, v in ((s, c), (c, s)))
    if table == "f32_in_f64":
        q = b.fdiv(b.fadd(th, tl), b.fadd(bh, bl))
    else:
        th, tl = two_sum(b, th, tl, ordered=True)
        bh, bl = two_sum(b, bh, bl, ordered=True)
        q = b.fdiv(th, bh)
        rest = b.fsub(b.fadd(b.fma(b.fneg(q), bh, th), tl), b.fmul(q, bl))
        q = b.fadd(q, b.fdiv(rest, bh))
    sign = b.xor(b.shl(n, 63), b.bitcast(x, "i64"))
    return xor_sign(b, q, sign)


def sin_of(b: Builder, r: Node, low: Node | None) -> Node:
    """sin(r + low) for |r| <= pi/4 and a `low` that is tiny beside r."""
    high, rest = sin_parts(b, r, low, r.type.scalar)
    return b.fadd(high, rest)


def cos_of(b: Builder, r: Node, low: Node | None) -> Node:
    high, rest = cos_parts(b, r, low, r.type.scalar)
    return b.fadd(high, rest)


def sin_parts(b: Builder, r: Node, low: Node | None, table: str) -> tuple[Node, Node]:
    """sin(r + low) as r and the rest."""
    z = b.fmul(r, r)
    rest = b.fmul(b.fmul(z, poly(b, z, SIN[table])), r)
    return r, rest if low is None else b.fadd(rest, b.fma(b.fmul(z, low), -0.5, low))


def cos_parts(b: Builder, r: Node, low: Node | None, table: str) -> tuple[Node, Node]:
    """cos(r + low) as 1 - r^2/2, rounded, and the rest."""
    z = b.fmul(r, r)
    rest = b.fmul(b.fmul(z, z), poly(b, z, COS[table]))
    high = b.fma(z, -0.5, 1.0)
    lost = b.fma(z, -0.5, b.fsub(b.const(1.0, r.type), high))  # what rounding `high` took
    if r.type.scalar == "f64":  # and what rounding r^2 took, and low
        more = b.fma(r, r, b.fneg(z))
        lost = b.fma(more, -0.5, lost)
        if low is not None:
            lost = b.fma(b.fneg(r), low, lost)
    return high, b.fadd(rest, lost)


def reduce(b: Builder, x: Node, fast: float | None = None) -> tuple[Node, Node | None, Node]:
    """(r, low, n): |x| = (n + 4 k) pi/2 + r + low; n is an integer, right mod 4. `low` (f64 only) is tiny."""
    s, f = x.type.scalar, fmt(x)
    a = b.fabs(x)
    c = PI_2[s]
    t = b.fma(a, TWO_OVER_PI_HEAD, f.shifter)
    n = b.fsub(t, f.shifter)
    r1 = b.fma(n, -c[0], a)
    r2 = b.fma(n, -c[1], r1)
    values: list[Node]
    if s == "f32":
        values = [b.fma(n, -c[2], r2), b.bitcast(t, f.int)]
    else:  # keep what rounding r took
        product, lost = two_product(b, n, b.const(c[1], x.type))
        high, low = two_sum(b, r1, b.fneg(product))
        low = b.fma(n, -c[2], b.fsub(low, lost))
        r, low = two_sum(b, high, low, ordered=True)
        values = [r, low, b.bitcast(t, f.int)]

    def far() -> list[Node]:
        found = called(b, "trig.far", _far, [a], len(values))
        return [b.select(beyond, x, y) for x, y in zip(found, values)]

    beyond = b.cmp("ogt", a, fast or _FAST[s])
    values = list(b.if_(any_lane(b, beyond), far, lambda: values, rare=True))
    return values[0], values[1] if s == "f64" else None, values[-1]


def _far(b: Builder, a: Node) -> list[Node]:
    """`huge` as `reduce` needs it: (r, n) for f32, (r, low, n) for f64.

    A vector of f32 is done in two turns, since its lanes as f64 fill two registers: that halves the code.
    """
    t = a.type
    if t.scalar == "f64":
        return list(huge(b, a))
    half = t.with_lanes(t.lanes if t.lanes % 2 else t.lanes // 2)
    size = half.lanes * half.size
    source, *places = (b.alloca(t.lanes * t.size) for _ in range(3))
    b.store(source, a)

    def turn(at: Node) -> None:
        r, _, n = huge(b, b.convert("fpext", b.load(b.gep(source, at), half), "f64"))
        b.store(b.gep(places[0], at), b.convert("fptrunc", r, "f32"))
        b.store(b.gep(places[1], at), b.convert("itrunc", n, "i32"))

    b.for_(0, t.lanes * t.size, size, turn)
    return [b.load(places[0], t), b.load(places[1], t.with_scalar("i32"))]


def huge(b: Builder, a: Node) -> tuple[Node, Node, Node]:
    """(r, low, n) for f64 a >= 0 of any size (inf and NaN give NaN).

    a = m 2^E with an integer m of 53 bits; 2/pi is a sum of integers of 48 bits, p[k] 2^(-48 (k + 1)). Products with
    pieces before k0 = floor((E - 2) / 48) are multiples of 4 and drop out; five pieces from there are enough. They are
    read from a table on the stack. Each product is split exactly into two f64, of which only the value mod 4 is kept.
    """
    lanes = a.type.lanes
    table = b.alloca(8 * len(TWO_OVER_PI))
    for i, piece in enumerate(TWO_OVER_PI):
        b.store(b.gep(table, 8 * i), b.const(piece, F64))
    biased = b.and_(b.lshr(b.bitcast(a, "i64"), 52), 0x7FF)
    e = b.sub(biased, 1023 + 52)
    # k0 = (E - 2) // 48 for E >= 2, else 0; by a multiplication, right for all E up to 971
    k0 = b.lshr(b.mul(b.smax(b.sub(e, 2), 0), 1366), 16)
    # a 2^(-48 (k0 + 1)): the exponent is lowered in two steps of half, both exact
    down = b.mul(b.add(k0, 1), -_PIECE // 2)
    half = b.bitcast(b.shl(b.add(down, 1023), 52), "f64")
    scaled = b.fmul(b.fmul(a, half), half)
    zero = b.const(0.0, a.type)
    total, rest = zero, zero
    offsets = b.mul(k0, 8)
    for j in range(_PIECES):
        at = b.gep(table, 8 * j)
        if lanes == 1:
            piece = b.load(b.gep(at, offsets), a.type, align=8)
        else:
            piece = b.gather(at, offsets, a.type)
        high, low = two_product(b, b.fmul(scaled, 2.0 ** (-_PIECE * j)), piece)
        for part in (high, low):
            if j < 3:  # later ones are below 4
                part = b.fma(b.rint(b.fmul(part, 0.25)), -4.0, part)
            total, lost = two_sum(b, total, part)
            rest = b.fadd(rest, lost)
            if j < 3:
                total = b.fma(b.rint(b.fmul(total, 0.25)), -4.0, total)
    total, rest = two_sum(b, total, rest)
    n = b.rint(total)
    f, rest = two_sum(b, b.fsub(total, n), rest)
    high, low = two_product(b, f, b.const(PI_2["f64"][0], a.type))
    low = b.fma(f, PI_2["f64"][1], b.fma(rest, PI_2["f64"][0], low))
    r, low = two_sum(b, high, low, ordered=True)
    bits = b.bitcast(b.fadd(n, 1.5 * 2.0**52), "i64")
    finite = b.cmp("olt", a, inf)
    return b.select(finite, r, b.const(nan, a.type)), b.select(finite, low, zero), bits


