"""Changing element types in registers: convert, reduce_precision, bits between types of other widths. Imports loop."""

from __future__ import annotations

from hilo.ir import dtypes
from hilo.ir.dtypes import DType
from hilo.loop.arith.rounding import container, from_bits, int_of, round_result, to_bits, wrap_int
from hilo.loop.builder import Builder
from hilo.loop.element import Elem, held_type
from hilo.loop.nodes import Node

_EXACT = 1 << 53  # integers up to here are exact in f64


def convert(b: Builder, x: Elem, dtype: DType) -> Elem:
    """`x` as type `dtype`: rounded once; floats to integers cut off, saturating, NaN 0; integers wrap; to i1: not 0."""
    s = x.dtype
    if s is dtype:
        return x
    if dtype.is_complex:
        re = convert(b, Elem(s.part, x.re), dtype.part).re
        im = convert(b, Elem(s.part, x.im), dtype.part).re if x.im is not None else b.const(0.0, re.type)
        return Elem(dtype, re, im)
    if s.is_complex:  # only the real part counts
        return convert(b, Elem(s.part, x.re), dtype)
    if dtype.kind == "b":
        return Elem(dtype, b.cmp("une" if s.is_float else "ne", x.re, 0))
    if s.is_float:
        if dtype.is_float:
            exact = s.bits <= 16 and dtype is dtypes.f32
            return Elem(dtype, x.re if exact else round_result(b, x.re, dtype, any_nan=True))
        return Elem(dtype, float_to_int(b, x.re, dtype))
    if dtype.is_float:
        return Elem(dtype, int_to_float(b, x, dtype))
    held = held_type(dtype)
    how = "itrunc" if held.bits <= x.re.type.bits else "sext" if s.kind == "i" else "zext"
    return Elem(dtype, wrap_int(b, b.convert(how, x.re, held.scalar), dtype))


def int_to_float(b: Builder, x: Elem, dtype: DType) -> Node:
    """An integer or boolean as float type `dtype`, rounded once, as it is held."""
    t, v = x.dtype, x.re
    held = held_type(dtype).scalar
    if t.kind == "b":
        return round_result(b, b.select(v, b.const(1.0, held_type(dtype, v.type.lanes)), 0.0), dtype)
    how = "sitofp" if t.kind == "i" else "uitofp"
    if t.bits <= 16:
        v, how = b.convert("sext" if t.kind == "i" else "zext", v, "i32"), "sitofp"
    if t.bits <= 16 or dtype.bits >= 32:
        return round_result(b, b.convert(how, v, held), dtype)
    if t.bits == 32:
        return round_result(b, b.convert(how, v, "f64"), dtype)
    negative = b.cmp("slt", v, 0) if t.kind == "i" else None
    size = v if negative is None else b.select(negative, b.sub(0, v), v)
    lost = b.shl(b.convert("zext", b.cmp("ne", b.and_(size, 0x7FF), 0), "i64"), 11)
    sticky = b.or_(b.and_(size, ~0x7FF), lost)  # exact in f64, and rounds like the integer to anything much narrower
    wide = b.convert("uitofp", b.select(b.cmp("ult", size, _EXACT), size, sticky), "f64")
    return round_result(b, wide if negative is None else b.select(negative, b.fneg(wide), wide), dtype)


def float_to_int(b: Builder, x: Node, dtype: DType) -> Node:
    """f32 or f64 cut off to an integer type; out of range the nearest end, NaN 0.

    No out-of-range conversion happens.
    """
    bits, signed = dtype.bits, dtype.kind == "i"
    least = -(1 << (bits - 1)) if signed else 0
    most = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    x = b.select(b.cmp("olt", x, float(least)), b.const(float(least), x.type), x)
    if bits <= 16:  # both ends are exact floats
        x = b.select(b.cmp("ogt", x, float(most)), b.const(float(most), x.type), x)
        x = b.select(b.cmp("ord", x, x), x, 0.0)
        return b.convert("itrunc", b.convert("fptosi", x, "i32"), container(bits))
    inside = b.select(b.cmp("olt", x, float(most + 1)), x, 0.0)
    out = b.convert("fptosi" if signed else "fptoui", inside, f"i{bits}")
    return b.select(b.cmp("oge", x, float(most + 1)), b.const(most, out.type), out)


def reduce_precision(b: Builder, x: Elem, exponent_bits: int, mantissa_bits: int) -> Elem:
    """Round to a float with these bits and back: too large is inf, below its least normal number 0; NaN stays."""
    t = x.dtype
    if t.bits < 16:  # as if it were f32, then to what there is of the type
        wide = reduce_precision(b, Elem(dtypes.f32, x.re), exponent_bits, mantissa_bits)
        return convert(b, wide, t)
    assert t.format is not None
    mantissa, exponent = t.format.mantissa, t.format.exponent
    if mantissa_bits >= mantissa and exponent_bits >= exponent:
        return x
    bits = to_bits(b, x)
    size = b.and_(bits, (1 << (t.bits - 1)) - 1)
    minus = b.xor(bits, size)
    if mantissa_bits < mantissa:
        drop = mantissa - mantissa_bits
        size = b.add(b.add(size, (1 << (drop - 1)) - 1), b.and_(b.lshr(size, drop), 1))
        size = b.and_(size, -(1 << drop))
    if exponent_bits < exponent:
        bias, new = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        largest = (bias + new) << mantissa | ((1 << mantissa) - 1)
        size_ = b.select(b.cmp("sgt", size, largest), b.const(((1 << exponent) - 1) << mantissa, size.type), size)
        size = b.select(b.cmp("slt", size, (bias - new + 1) << mantissa), 0, size_)
    out = from_bits(b, b.or_(size, minus), t)
    return Elem(t, b.select(b.cmp("uno", x.re, x.re), x.re, out.re))


def bitcast(b: Builder, x: Elem, dtype: DType) -> Elem:
    """The bits of `x` as a type of the same width."""
    if x.dtype is dtype:
        return x
    if dtype.is_complex or dtype.kind == "b":
        return join(b, split(b, x, dtype.bits), dtype)
    return from_bits(b, to_bits(b, x), dtype)


def low_bits(b: Builder, x: Node, bits: int) -> Node:
    """An integer in the container of `bits` bits (a byte at least) with what is above them cleared."""
    x = b.convert("itrunc", x, container(bits))
    return b.and_(x, (1 << bits) - 1) if 1 < bits < 8 else x


def split(b: Builder, x: Elem, bits: int) -> list[Node]:
    """The bits of `x`, lowest first, in pieces of (at most) `bits` bits, which lie in containers; 1 gives i1."""
    if x.im is not None:
        part = x.dtype.part
        return [piece for v in (x.re, x.im) for piece in split(b, Elem(part, v), min(bits, part.bits))]
    if x.dtype.kind == "b":
        return [x.re]
    whole = to_bits(b, x)
    if bits >= x.dtype.bits:
        return [whole]
    return [low_bits(b, b.lshr(whole, at), bits) for at in range(0, x.dtype.bits, bits)]


def join(b: Builder, pieces: list[Node], dtype: DType) -> Elem:
    """The element whose bits are those of `pieces`, lowest first (inverse of `split`)."""
    if dtype.is_complex:
        half = len(pieces) // 2
        re, im = (join(b, p, dtype.part) for p in (pieces[:half], pieces[half:]))
        return Elem(dtype, re.re, im.re)
    if dtype.kind == "b":
        return Elem(dtype, pieces[0])
    if len(pieces) == 1:
        return from_bits(b, pieces[0], dtype)
    bits, scalar = dtype.bits // len(pieces), container(dtype.bits)
    whole = b.convert("zext", pieces[0], scalar)
    for k, p in enumerate(pieces[1:], 1):
        whole = b.or_(whole, b.shl(b.convert("zext", p, scalar), k * bits))
    return from_bits(b, whole, dtype)


def next_after(b: Builder, x: Elem, y: Elem) -> Elem:
    """The value next to x towards y, in their own type; y if they are equal, NaN if one is."""
    t = x.dtype
    bits = to_bits(b, x)
    outwards = b.cmp("ogt", b.fabs(y.re), b.fabs(x.re))  # same sign: away from zero; else towards it
    i = int_of(x.re)
    same_sign = b.cmp("sge", b.xor(b.bitcast(x.re, i), b.bitcast(y.re, i)), 0)
    step = b.select(b.and_(outwards, same_sign), b.const(1, bits.type), -1)
    moved = from_bits(b, b.add(bits, step), t).re
    least = from_bits(b, b.const(1, bits.type), t).re
    assert t.format is not None
    if t.format.special == "fnuz":  # below the least number there is no zero with a sign, but NaN
        to_zero = b.and_(b.cmp("oeq", b.fabs(x.re), least), b.cmp("eq", step, -1))
        moved = b.select(to_zero, 0.0, moved)
    if t.format.special != "e8m0":
        moved = b.select(b.cmp("oeq", x.re, 0.0), b.copysign(least, y.re), moved)
    out = b.select(b.cmp("oeq", x.re, y.re), y.re, moved)
    bad = b.or_(b.cmp("uno", x.re, x.re), b.cmp("uno", y.re, y.re))
    return Elem(t, b.select(bad, b.fadd(x.re, y.re), out))
