"""Complex arithmetic on elements: products and quotients with no harmful overflow or cancellation. Imports loop.

c64 is computed in f64, where products of f32 values are exact, and rounded once; c128 with fused multiply-adds (Kahan's
algorithm) and powers of two as scales.
"""

from __future__ import annotations

from math import inf, nan

from hilo.ir import dtypes
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.nodes import Node


def parts(x: Elem) -> tuple[Node, Node]:
    assert x.im is not None
    return x.re, x.im


def wide_parts(b: Builder, x: Elem) -> tuple[Node, Node]:
    """The parts as f64."""
    re, im = parts(x)
    return b.convert("fpext", re, "f64"), b.convert("fpext", im, "f64")


def rounded(b: Builder, x: Elem, re: Node, im: Node) -> Elem:
    """An element of x's type from f64 parts."""
    if x.dtype is dtypes.c128:
        return Elem(x.dtype, re, im)
    return Elem(x.dtype, b.convert("fptrunc", re, "f32"), b.convert("fptrunc", im, "f32"))


def difference_of_products(b: Builder, x: Elem, p: Node, q: Node, r: Node, s: Node) -> Node:
    """p q - r s of f64 nodes without loss by cancellation; `x` says whether they hold f32 values."""
    right = b.fmul(r, s)
    plain = b.fsub(b.fmul(p, q), right)
    if x.dtype is dtypes.c64:
        return plain
    lost = b.fma(b.fneg(r), s, right)
    exact = b.fadd(b.fma(p, q, b.fneg(right)), lost)
    return b.select(b.cmp("ord", exact, exact), exact, plain)


def multiply(b: Builder, x: Elem, y: Elem) -> Elem:
    """(ac - bd, ad + bc)."""
    (p, q), (r, s) = wide_parts(b, x), wide_parts(b, y)
    re = difference_of_products(b, x, p, r, q, s)
    return rounded(b, x, re, difference_of_products(b, x, p, s, b.fneg(q), r))


def square(b: Builder, x: Elem) -> Elem:
    """((re - im)(re + im), 2 re im)."""
    re, im = wide_parts(b, x)
    both = b.fmul(re, im)
    real = b.fmul(b.fsub(re, im), b.fadd(re, im))
    if x.dtype is dtypes.c128:  # zero times an overflow
        p, q = b.fmul(re, 0.5), b.fmul(im, 0.5)
        real = b.select(b.cmp("uno", real, real), b.fmul(b.fsub(p, q), b.fadd(p, q)), real)
    return rounded(b, x, real, b.fadd(both, both))


def _exponent(b: Builder, x: Node) -> Node:
    """The unbiased exponent of a non-negative f64, brought into [-1022, 1022]: 2**e and 2**-e are normal numbers."""
    e = b.lshr(b.bitcast(x, "i64"), 52)
    return b.sub(b.smin(b.smax(e, 1), 2045), 1023)


def _power_of_two(b: Builder, k: Node) -> Node:
    """2**k for k in [-1022, 1023]."""
    return b.bitcast(b.shl(b.add(k, 1023), 52), "f64")


def _larger(b: Builder, x: Node, y: Node) -> Node:
    """The larger of two magnitudes; NaNs do not matter."""
    return b.select(b.cmp("ogt", x, y), x, y)


def divide(b: Builder, x: Elem, y: Elem) -> Elem:
    """x / y; infinities and zeros as in C's Annex G."""
    (p, q), (r, s) = wide_parts(b, x), wide_parts(b, y)
    if x.dtype is dtypes.c64:
        norm = b.fadd(b.fmul(r, r), b.fmul(s, s))
        re = b.fdiv(difference_of_products(b, x, p, r, b.fneg(q), s), norm)
        im = b.fdiv(difference_of_products(b, x, q, r, p, s), norm)
    else:
        re, im, norm = _scaled_quotient(b, x, p, q, r, s)
    re, im = _special_quotients(b, (p, q, r, s), norm, re, im)
    return rounded(b, x, re, im)


def _scaled_quotient(b: Builder, x: Elem, p: Node, q: Node, r: Node, s: Node) -> tuple[Node, Node, Node]:
    """The quotient of c128 numbers scaled to size 1, scaled back with one rounding; and the scaled divisor's norm."""
    top = _exponent(b, _larger(b, b.fabs(p), b.fabs(q)))
    bottom = _exponent(b, _larger(b, b.fabs(r), b.fabs(s)))
    p, q = _scaled(b, p, q, top)
    r, s = _scaled(b, r, s, bottom)
    norm = b.fma(r, r, b.fmul(s, s))
    k = b.sub(top, bottom)
    half = b.ashr(k, 1)
    up = _power_of_two(b, half), _power_of_two(b, b.sub(k, half))

    def back(v: Node) -> Node:
        return b.fmul(b.fmul(b.fdiv(v, norm), up[0]), up[1])

    re = back(difference_of_products(b, x, p, r, b.fneg(q), s))
    return re, back(difference_of_products(b, x, q, r, p, s)), norm


def _scaled(b: Builder, re: Node, im: Node, exponent: Node) -> tuple[Node, Node]:
    down = _power_of_two(b, b.sub(0, exponent))
    return b.fmul(re, down), b.fmul(im, down)


def _special_quotients(
    b: Builder, of: tuple[Node, Node, Node, Node], norm: Node, re: Node, im: Node
) -> tuple[Node, Node]:
    """Where both parts came out as NaN: what infinities and zeros give."""
    p, q, r, s = of

    def all_of(*tests: Node) -> Node:
        out = tests[0]
        for t in tests[1:]:
            out = b.and_(out, t)
        return out

    def finite(x: Node) -> Node:
        return b.cmp("olt", b.fabs(x), inf)

    def infinite(x: Node) -> Node:
        return b.cmp("oeq", b.fabs(x), inf)

    def boxed(x: Node) -> Node:
        return b.copysign(b.select(infinite(x), b.const(1.0, x.type), 0.0), x)

    lost = b.and_(b.cmp("uno", re, re), b.cmp("uno", im, im))
    known = b.or_(b.cmp("ord", p, p), b.cmp("ord", q, q))
    by_zero = all_of(lost, b.cmp("oeq", norm, 0.0), known)
    huge = b.copysign(b.const(inf, r.type), r)
    of_infinity = all_of(lost, b.or_(infinite(p), infinite(q)), finite(r), finite(s))
    by_infinity = all_of(lost, b.or_(infinite(r), infinite(s)), finite(p), finite(q))
    bp, bq, br, bs = (boxed(v) for v in of)

    def dot(u: Node, v: Node, w: Node, z: Node) -> Node:
        return b.fadd(b.fmul(u, v), b.fmul(w, z))

    re = b.select(by_zero, b.fmul(huge, p), re)
    im = b.select(by_zero, b.fmul(huge, q), im)
    re = b.select(of_infinity, b.fmul(dot(bp, r, bq, s), inf), re)
    im = b.select(of_infinity, b.fmul(dot(bq, r, b.fneg(bp), s), inf), im)
    p, q = b.fmul(p, 0.5), b.fmul(q, 0.5)  # so that their sum does not overflow
    re = b.select(by_infinity, b.fmul(dot(p, br, q, bs), 0.0), re)
    return re, b.select(by_infinity, b.fmul(dot(q, br, b.fneg(p), bs), 0.0), im)


def modulus(b: Builder, x: Elem) -> Elem:
    """sqrt(re^2 + im^2) without overflow; inf if a part is infinite."""
    size, up = _size(b, x)
    if up is not None:
        size = b.fmul(size, up)
    re, im = wide_parts(b, x)
    endless = b.or_(b.cmp("oeq", b.fabs(re), inf), b.cmp("oeq", b.fabs(im), inf))
    size = b.select(endless, b.const(inf, size.type), size)
    return Elem(x.dtype.part, b.convert("fptrunc", size, x.re.type.scalar))


def _size(b: Builder, x: Elem) -> tuple[Node, Node | None]:
    """The modulus in f64, of c128 scaled to about 1, and the scale (None: 1)."""
    re, im = wide_parts(b, x)
    if x.dtype is dtypes.c64:
        return b.sqrt(b.fadd(b.fmul(re, re), b.fmul(im, im))), None
    e = _exponent(b, _larger(b, b.fabs(re), b.fabs(im)))
    re, im = _scaled(b, b.fabs(re), b.fabs(im), e)
    first = b.cmp("ogt", re, im)
    large, small = b.select(first, re, im), b.select(first, im, re)
    return b.sqrt(b.fma(large, large, b.fmul(small, small))), _power_of_two(b, e)


def sign(b: Builder, x: Elem) -> Elem:
    """x / |x|; 0 for 0, (NaN, NaN) if a part is infinite or NaN."""
    size, up = _size(b, x)
    re, im = wide_parts(b, x)
    if up is not None:
        e = _exponent(b, _larger(b, b.fabs(re), b.fabs(im)))
        re_, im_ = _scaled(b, re, im, e)
    else:
        re_, im_ = re, im
    none = b.and_(b.cmp("oeq", re, 0.0), b.cmp("oeq", im, 0.0))
    bad = b.not_(b.and_(b.cmp("olt", b.fabs(re), inf), b.cmp("olt", b.fabs(im), inf)))
    out = []
    for v in (re_, im_):
        q = b.select(none, b.const(0.0, v.type), b.fdiv(v, size))
        out.append(b.select(bad, b.const(nan, v.type), q))
    return rounded(b, x, *out)


def before(b: Builder, x: Elem, y: Elem, strict: str, loose: str) -> Node:
    """Lexicographic order by (re, im): `strict` on the real parts, or equal ones and `loose` on the imaginary ones."""
    (p, q), (r, s) = parts(x), parts(y)
    return b.or_(b.cmp(strict, p, r), b.and_(b.cmp("oeq", p, r), b.cmp(loose, q, s)))
