"""Narrow types in registers and in memory: rounding floats by integer arithmetic, wrapping integers, elements' bits.

No hardware conversion is used: those flush subnormals, or do not exist. Floats of up to 16 bits are held as f32,
integers narrower than a byte as i8 (loop.element). Imports loop.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from hilo.ir import dtypes
from hilo.ir.dtypes import DType, Format
from hilo.loop.builder import Builder
from hilo.loop.element import Elem, held_type
from hilo.loop.nodes import Node

_INF32: Final = 0x7F80_0000


def int_of(x: Node) -> str:
    """The integer type of a float node's width."""
    return "i32" if x.type.scalar == "f32" else "i64"


# ---- rounding
def round_result(b: Builder, x: Node, dtype: DType, *, any_nan: bool = False) -> Node:
    """`x` (f32 or f64) rounded once to float type `dtype`, as it is held.

    `any_nan`: x may be a NaN that no arithmetic on `dtype` values made, whose payload must not turn into a number.
    """
    if dtype is dtypes.f64:
        return b.convert("fpext", x, "f64")
    if dtype is dtypes.f32:
        return b.convert("fptrunc", x, "f32")
    if x.type.scalar == "f64":
        x, any_nan = odd_f32(b, x), True
    if dtype is dtypes.bf16:
        return _round_bf16(b, x, any_nan)
    assert dtype.format is not None
    return _round_power(b, x) if dtype.format.special == "e8m0" else _round_to(b, x, dtype.format)


def odd_f32(b: Builder, x: Node) -> Node:
    """f64 -> f32, rounded to odd: an inexact value gets a last bit of one, so that rounding it again rounds once."""
    y = b.convert("fptrunc", x, "f32")
    back = b.convert("fpext", y, "f64")
    bits = b.bitcast(y, "i32")
    down = b.select(b.cmp("ogt", b.fabs(back), b.fabs(x)), b.sub(bits, 1), bits)
    return b.bitcast(b.select(b.cmp("une", back, x), b.or_(down, 1), bits), "f32")


def _round_bf16(b: Builder, x: Node, any_nan: bool) -> Node:
    bits = b.bitcast(x, "i32")
    up = b.add(b.add(bits, b.and_(b.lshr(bits, 16), 1)), 0x7FFF)
    out = b.bitcast(b.and_(up, -0x10000), "f32")
    if not any_nan:
        return out
    quiet = b.bitcast(b.and_(b.or_(bits, 0x40_0000), -0x10000), "f32")
    return b.select(b.cmp("uno", x, x), quiet, out)


def _round_to(b: Builder, x: Node, f: Format) -> Node:
    """To a format of less exponents than f32.

    Adding and taking away 2**(e + 23 - mantissa) leaves the format's bits behind the leading one of |x| < 2**(e + 1); e
    is at least the least normal number's exponent, and at most one that is out of range. That makes NaNs quiet.
    """
    size = b.fabs(x)
    low, high = 128 - f.bias, 128 - f.bias + (1 << f.exponent)
    exponent = b.smin(b.smax(b.and_(b.bitcast(size, "i32"), _INF32), low << 23), high << 23)
    magic = b.bitcast(b.add(exponent, (23 - f.mantissa) << 23), "f32")
    rounded = b.fsub(b.fadd(size, magic), magic)
    beyond = {"ieee": float("inf"), "finite": f.largest}.get(f.special, float("nan"))
    rounded = b.select(b.cmp("ogt", rounded, f.largest), b.const(beyond, x.type), rounded)
    out = b.copysign(rounded, x)
    if f.special == "finite":
        return b.select(b.cmp("uno", x, x), b.const(-0.0, x.type), out)
    return out if f.has_negative_zero else b.fadd(out, 0.0)


def _round_power(b: Builder, x: Node) -> Node:
    """To f8E8M0FNU: the nearest power of two from 2**-127 to 2**127, ties upwards; NaN for what is not positive.

    The value in halves of 2**-127 decides below 2**-126, where f32 has no leading one; no power is there but 2**-127.
    """
    bits = b.bitcast(x, "i32")
    up = b.and_(b.add(bits, 0x40_0000), _INF32)  # a mantissa of half and more carries
    up = b.select(b.cmp("slt", bits, 0x60_0000), b.const(0x40_0000, bits.type), up)
    good = b.and_(b.cmp("ogt", x, 0.0), b.cmp("slt", up, _INF32))
    return b.select(good, b.bitcast(up, "f32"), b.const(float("nan"), x.type))


def wrap_int(b: Builder, x: Node, dtype: DType) -> Node:
    """The low bits of an i8 as an integer type narrower than a byte is held; other integer types as they are."""
    if not dtype.is_narrow:
        return x
    low = b.and_(x, (1 << dtype.bits) - 1)
    top = 1 << (dtype.bits - 1)
    return b.sub(b.xor(low, top), top) if dtype.kind == "i" else low


def container(bits: int) -> str:
    """The loop-IR integer type for so many bits: a byte at least, but for one."""
    return "i1" if bits == 1 else f"i{max(8, bits)}"


# ---- bits
def to_bits(b: Builder, x: Elem) -> Node:
    """The bits of a float or integer (not complex, not i1) as they lie in memory; 0 above the type's width."""
    t = x.dtype
    if t.is_int:
        return b.and_(x.re, (1 << t.bits) - 1) if t.is_narrow else x.re
    if t is dtypes.bf16:
        return b.convert("itrunc", b.lshr(b.bitcast(x.re, "i32"), 16), "i16")
    if t.bits >= 32:
        return b.bitcast(x.re, int_of(x.re))
    assert t.format is not None
    if t.format.special == "e8m0":
        return b.convert("itrunc", b.lshr(b.bitcast(x.re, "i32"), 23), "i8")
    return _format_bits(b, x.re, t.format, container(t.bits))


def from_bits(b: Builder, bits: Node, dtype: DType) -> Elem:
    """The element of a float or integer type with these bits; inverse of `to_bits`. Ignores bits above the width."""
    if dtype.is_int:
        return Elem(dtype, wrap_int(b, bits, dtype))
    if dtype is dtypes.bf16:
        return Elem(dtype, b.bitcast(b.shl(b.convert("zext", bits, "i32"), 16), "f32"))
    if dtype.bits >= 32:
        return Elem(dtype, b.bitcast(bits, held_type(dtype).scalar))
    assert dtype.format is not None
    wide = b.convert("zext", bits, "i32")
    if dtype.format.special == "e8m0":
        return Elem(dtype, _from_power_bits(b, wide))
    return Elem(dtype, _from_format_bits(b, wide, dtype.format))


def _from_power_bits(b: Builder, bits: Node) -> Node:
    value = b.select(b.cmp("eq", bits, 0), b.const(0x40_0000, bits.type), b.shl(bits, 23))
    return b.bitcast(b.select(b.cmp("eq", bits, 255), b.const(0x7FC0_0000, bits.type), value), "f32")


def _format_bits(b: Builder, x: Node, f: Format, scalar: str) -> Node:
    """The bits of an f32 that is exactly a value of the format."""
    m, bias = f.mantissa, f.bias
    bits = b.bitcast(x, "i32")
    size = b.and_(bits, 0x7FFF_FFFF)
    whole = b.lshr(size, 23 - m)
    normal = b.sub(whole, (127 - bias) << m)
    start = 151 - bias - m  # the exponent of a number whose last bit counts the format's smallest ones
    tiny = b.sub(b.bitcast(b.fadd(b.fabs(x), 2.0 ** (start - 127)), "i32"), start << 23)  # in the low bits of the sum
    out = b.select(b.cmp("slt", size, (128 - bias) << 23), tiny, normal)
    if f.special == "ieee":
        out = b.select(b.cmp("sge", size, _INF32), b.sub(whole, (256 - (1 << f.exponent)) << m), out)
    elif f.special == "fn":
        out = b.select(b.cmp("uno", x, x), b.const((1 << (f.exponent + m)) - 1, out.type), out)
    width = f.exponent + m
    out = b.or_(out, b.and_(b.lshr(bits, 31 - width), 1 << width))
    if f.special == "fnuz":
        out = b.select(b.cmp("uno", x, x), b.const(1 << width, out.type), out)
    return b.convert("itrunc", out, scalar)


def _from_format_bits(b: Builder, wide: Node, f: Format) -> Node:
    """The f32 with the bits `wide` (an i32) of the format."""
    m, bias, width = f.mantissa, f.bias, f.exponent + f.mantissa
    low = b.shl(b.and_(wide, (1 << width) - 1), 23 - m)
    mask = ((1 << f.exponent) - 1) << 23
    exponent = b.and_(low, mask)
    offset = (127 - bias) << 23
    plain = b.const(offset, low.type)
    if f.special == "ieee":
        plain = b.select(b.cmp("eq", exponent, mask), b.const((256 - (1 << f.exponent)) << 23, low.type), plain)
    normal = b.add(low, plain)
    tiny = b.fsub(b.bitcast(b.add(low, offset + (1 << 23)), "f32"), f.least_normal)
    size = b.select(b.cmp("eq", exponent, 0), b.bitcast(tiny, "i32"), normal)
    if f.special == "fn":
        size = b.select(b.cmp("eq", low, ((1 << width) - 1) << (23 - m)), b.const(0x7FC0_0000, low.type), size)
    out = b.or_(size, b.shl(b.and_(wide, 1 << width), 31 - width))
    if f.special == "fnuz":
        out = b.select(b.cmp("eq", wide, 1 << width), b.const(0x7FC0_0000, low.type), out)
    return b.bitcast(out, "f32")


# ---- memory
@cache
def is_encoded(dtype: DType) -> bool:
    """Whether elements have other bits in memory than in registers: floats below 32 bits, integers below a byte."""
    return (dtype.is_float and dtype.bits < 32) or dtype.is_narrow


def from_memory(b: Builder, dtype: DType, parts: tuple[Node, ...]) -> Elem:
    """The element whose parts (complex: re, im) were loaded: encoded types as integers, i1 as a mask bit or a byte."""
    if dtype.is_complex:
        return Elem(dtype, *parts)
    x = parts[0]
    if dtype is dtypes.i1:
        return Elem(dtype, x if x.type.scalar == "i1" else b.cmp("ne", x, 0))
    return from_bits(b, x, dtype) if is_encoded(dtype) else Elem(dtype, x)


def to_memory(b: Builder, x: Elem) -> tuple[Node, ...]:
    """What is to be stored of an element: inverse of `from_memory` (i1 stays a mask bit)."""
    if x.im is not None:
        return x.re, x.im
    return (to_bits(b, x) if is_encoded(x.dtype) else x.re,)


def number(b: Builder, value: float, dtype: DType, lanes: int = 1) -> Elem:
    """The constant `value` (exact in `dtype`; complex: the real part)."""
    t = held_type(dtype, lanes)
    return Elem(dtype, b.const(value, t), b.const(0.0, t) if dtype.is_complex else None)


def zero(b: Builder, dtype: DType, lanes: int = 1) -> Elem:
    """0 (false) of any type; of f8E8M0FNU, which has none, what it is held as does not matter."""
    return number(b, 0, dtype, lanes)
