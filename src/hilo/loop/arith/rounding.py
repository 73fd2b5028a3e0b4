"""Narrow floats in registers and in memory: rounding to bf16 and f16 with integer arithmetic, bits of elements.

No hardware conversion is used: those flush subnormals, or do not exist. bf16 and f16 are held as f32 (loop.element).
Imports loop.
"""

from __future__ import annotations

from hilo.ir import dtypes
from hilo.ir.dtypes import DType
from hilo.loop.builder import Builder
from hilo.loop.element import Elem, held_type
from hilo.loop.nodes import Node

_INF32 = 0x7F80_0000


def int_of(x: Node) -> str:
    """The integer type of a float node's width."""
    return "i32" if x.type.scalar == "f32" else "i64"


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
    return _round_bf16(b, x, any_nan) if dtype is dtypes.bf16 else _round_f16(b, x)


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


def _round_f16(b: Builder, x: Node) -> Node:
    """Adding and taking away 2**(e + 13) leaves 10 bits behind the leading one; e is at least the least normal's."""
    size = b.fabs(x)
    exponent = b.smin(b.smax(b.and_(b.bitcast(size, "i32"), _INF32), 113 << 23), 143 << 23)  # above 2**16 all is inf
    magic = b.bitcast(b.add(exponent, 13 << 23), "f32")
    rounded = b.fsub(b.fadd(size, magic), magic)
    rounded = b.select(b.cmp("ogt", rounded, 65504.0), b.const(float("inf"), x.type), rounded)
    return b.copysign(rounded, x)


# ---- bits
def to_bits(b: Builder, x: Elem) -> Node:
    """The bits of a float or integer (not complex, not i1) as they lie in memory, in an integer of the type's width."""
    t = x.dtype
    if t.is_int:
        return x.re
    if t is dtypes.bf16:
        return b.convert("itrunc", b.lshr(b.bitcast(x.re, "i32"), 16), "i16")
    if t is dtypes.f16:
        return _f16_bits(b, x.re)
    return b.bitcast(x.re, int_of(x.re))


def from_bits(b: Builder, bits: Node, dtype: DType) -> Elem:
    """The element of a float or integer type with these bits; inverse of `to_bits`."""
    if dtype.is_int:
        return Elem(dtype, bits)
    if dtype is dtypes.bf16:
        return Elem(dtype, b.bitcast(b.shl(b.convert("zext", bits, "i32"), 16), "f32"))
    if dtype is dtypes.f16:
        return Elem(dtype, _from_f16_bits(b, bits))
    return Elem(dtype, b.bitcast(bits, held_type(dtype).scalar))


def _f16_bits(b: Builder, x: Node) -> Node:
    bits = b.bitcast(x, "i32")
    size = b.and_(bits, 0x7FFF_FFFF)
    whole = b.lshr(size, 13)
    normal = b.sub(whole, 112 << 10)
    tiny = b.sub(b.bitcast(b.fadd(b.fabs(x), 0.5), "i32"), 0x3F00_0000)  # |x| * 2**24, in the low bits of |x| + 1/2
    out = b.select(b.cmp("slt", size, 113 << 23), tiny, normal)
    out = b.select(b.cmp("sge", size, _INF32), b.sub(whole, 224 << 10), out)
    return b.convert("itrunc", b.or_(out, b.and_(b.lshr(bits, 16), 0x8000)), "i16")


def _from_f16_bits(b: Builder, bits: Node) -> Node:
    wide = b.convert("zext", bits, "i32")
    low = b.shl(b.and_(wide, 0x7FFF), 13)
    exponent = b.and_(low, 31 << 23)
    normal = b.add(low, b.select(b.cmp("eq", exponent, 31 << 23), b.const(224 << 23, low.type), 112 << 23))
    tiny = b.fsub(b.bitcast(b.add(low, 113 << 23), "f32"), 2.0**-14)
    size = b.select(b.cmp("eq", exponent, 0), tiny, b.bitcast(normal, "f32"))
    return b.bitcast(b.or_(b.bitcast(size, "i32"), b.shl(b.and_(wide, 0x8000), 16)), "f32")


def from_memory(b: Builder, dtype: DType, parts: tuple[Node, ...]) -> Elem:
    """The element whose parts (complex: re and im) were loaded: bf16 and f16 as i16, i1 as a mask bit or a byte."""
    if dtype.is_complex:
        return Elem(dtype, *parts)
    x = parts[0]
    if dtype is dtypes.i1:
        return Elem(dtype, x if x.type.scalar == "i1" else b.cmp("ne", x, 0))
    return from_bits(b, x, dtype) if dtype in (dtypes.bf16, dtypes.f16) else Elem(dtype, x)


def to_memory(b: Builder, x: Elem) -> tuple[Node, ...]:
    """What is to be stored of an element: inverse of `from_memory` (i1 stays a mask bit)."""
    if x.im is not None:
        return x.re, x.im
    return (to_bits(b, x) if x.dtype in (dtypes.bf16, dtypes.f16) else x.re,)


def number(b: Builder, value: float, dtype: DType, lanes: int = 1) -> Elem:
    """The constant `value` (exact in `dtype`; complex: the real part)."""
    t = held_type(dtype, lanes)
    return Elem(dtype, b.const(value, t), b.const(0.0, t) if dtype.is_complex else None)


def zero(b: Builder, dtype: DType, lanes: int = 1) -> Elem:
    """0 (false) of any compiled type."""
    return number(b, 0, dtype, lanes)
