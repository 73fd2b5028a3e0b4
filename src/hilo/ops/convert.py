"""Changing element types: convert, bitcast_convert, reduce_precision. Imports ir, loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import (
    COMMON,
    DType,
    bf16,
    c64,
    c128,
    f16,
    f32,
    f64,
    from_numpy,
    i1,
    i8,
    i16,
    i32,
    i64,
    u8,
    u32,
    u64,
)
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops import numeric
from hilo.ops.checks import result_is, same_dim, same_shape, tensor
from hilo.ops.elementwise_base import examples, lowering, pointwise, same_types
from hilo.ops.numeric import Arr
from hilo.ops.sharding import axis_names


@op("convert", typed=True)
class convert:
    """The operand's values in another element type. Any element types. Spec: convert.

    Floats and integers round once, to nearest, ties to even. Floats become integers by cutting off the fraction; out of
    range they go to the nearest end, NaN to 0. Integers wrap. To booleans: whether non-zero. Of complex numbers, only
    the real part goes to other types.
    """

    @staticmethod
    def infer(x: Type, *, type: Type) -> Type:  # noqa: A002
        return result_is(type, tensor(x).shape, None, "C1")

    @staticmethod
    def evaluate(x: Arr, *, type: TensorType) -> Arr:  # noqa: A002
        return numeric.convert(x, type.dtype)

    @staticmethod
    def scalar(b: Any, out: TensorType, x: Any, **_: Any) -> Any:
        return lowering("arith", "convert")(b, x, out.dtype)

    sharding = pointwise
    examples = lambda: [
        ((TensorType(a, (3,)),), {"type": TensorType(b, (3,))}) for a in COMMON for b in COMMON
    ] + [
        ((TensorType(i32),), {"type": TensorType(f32)}),
        ((TensorType(f64, (0, 2)),), {"type": TensorType(bf16, (0, 2))}),
        ((TensorType(f64, (19,)),), {"type": TensorType(f16, (19,))}),
    ]  # fmt: skip


def bit_string(x: Arr) -> Arr:
    """The bits of each element, lowest first, along a new last axis."""
    t = from_numpy(x.dtype)
    raw = np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8)
    return np.unpackbits(raw, axis=-1, bitorder="little")[..., : t.bits]


def from_bit_string(bits: Arr, t: DType) -> Arr:
    """The elements whose bits stand along the last axis, lowest first."""
    shape = bits.shape[:-1]
    raw = np.packbits(bits, axis=-1, bitorder="little")
    return np.ascontiguousarray(raw).view(t.np).reshape(shape)


@op("bitcast_convert", typed=True)
class bitcast_convert:
    """The operand's bits as another element type. Any element types (complex only to complex). Spec: bitcast_convert.

    Element types of other widths split or join along the last axis, lowest bits first: f32[2] -> i8[2,4] -> f32[2].
    """

    @staticmethod
    def infer(x: Type, *, type: Type) -> Type:  # noqa: A002
        s, t = tensor(x), tensor(type)
        require(
            s.dtype.is_complex == t.dtype.is_complex,
            "C2",
            "complex numbers only become complex numbers: {s} to {t}",
            s=s,
            t=t,
        )
        old, new = s.dtype.bits, t.dtype.bits
        if old == new:
            require(same_shape(s.shape, t.shape), "C1", "{s} and {t} must have one shape", s=s, t=t)
        elif new < old:
            whole = old % new == 0 and t.rank == s.rank + 1
            fits = whole and same_shape(s.shape, t.shape[:-1]) and same_dim(t.shape[-1], old // new)
            require(fits, "C1", "{s} becomes {n} elements along a new last axis, not {t}", s=s, n=old // new, t=t)
        else:
            whole = new % old == 0 and s.rank == t.rank + 1
            fits = whole and same_shape(s.shape[:-1], t.shape) and same_dim(s.shape[-1], new // old)
            require(fits, "C1", "the last axis of {s} must hold the {n} elements of one of {t}", s=s, n=new // old, t=t)
        return t

    @staticmethod
    def evaluate(x: Arr, *, type: TensorType) -> Arr:  # noqa: A002
        s, t = from_numpy(x.dtype), type.dtype
        if s.bits == t.bits and s.bits >= 8:
            return np.ascontiguousarray(x).reshape(x.shape).view(t.np)
        return from_bit_string(bit_string(x).reshape(*type.shape, t.bits), t)

    @staticmethod
    def element(b: Any, out: TensorType, index: Any, x: Any, *, type: TensorType, **_: Any) -> Any:  # noqa: A002
        return lowering("arith", "bitcast_element")(b, out, index, x)

    @staticmethod
    def sharding(x: TensorType, out: TensorType, **_: Any) -> str:
        """A split or joined last axis stays whole."""
        names = axis_names(max(x.rank, out.rank))
        return f"{names[: x.rank]}->{names[: out.rank]}"

    examples = lambda: [
        ((TensorType(a, sa),), {"type": TensorType(b, sb)})
        for a, sa, b, sb in [
            (f32, (5,), i32, (5,)), (bf16, (5,), i16, (5,)), (f64, (), u64, ()), (i8, (7,), u8, (7,)),
            (i1, (3,), i1, (3,)),
            (c64, (3,), c64, (3,)), (f32, (2,), i8, (2, 4)), (i8, (2, 4), f32, (2,)), (u64, (3,), f16, (3, 4)),
            (bf16, (3, 2), u32, (3,)), (f64, (0,), i16, (0, 4)), (c64, (3, 2), c128, (3,)), (c128, (), c64, (2,)),
            (i64, (1,), f32, (1, 2)), (i1, (2, 8), u8, (2,)), (i16, (2,), i1, (2, 16)),
        ]
    ]  # fmt: skip


@op("reduce_precision")
class reduce_precision:
    """Round to a float of `exponent_bits` and `mantissa_bits` and back. Floats. Spec: reduce_precision.

    Ties go to even. Too large becomes infinity, below the smallest normal number of that format zero; NaN stays.
    """

    @staticmethod
    def infer(x: Type, *, exponent_bits: int, mantissa_bits: int) -> Type:
        t = same_types((x,), "f")
        require(exponent_bits >= 1, "C2", "exponent_bits is {n}, but must be at least 1", n=exponent_bits)
        for rule, name, n in (("I2", "exponent_bits", exponent_bits), ("I3", "mantissa_bits", mantissa_bits)):
            require(n < 1 << 31, rule, "{name} is {n}, which no si32 holds", name=name, n=n)
        require(mantissa_bits >= 0, "C3", "mantissa_bits is {n}, but must be at least 0", n=mantissa_bits)
        return t

    @staticmethod
    def evaluate(x: Arr, *, exponent_bits: int, mantissa_bits: int) -> Arr:
        return numeric.reduce_precision(x, exponent_bits, mantissa_bits)

    @staticmethod
    def scalar(b: Any, out: TensorType, x: Any, *, exponent_bits: int, mantissa_bits: int, **_: Any) -> Any:
        return lowering("arith", "reduce_precision")(b, x, exponent_bits, mantissa_bits)

    sharding = pointwise
    examples = lambda: [
        *examples("f", exponent_bits=5, mantissa_bits=7)(),
        *examples("f", exponent_bits=8, mantissa_bits=23)(),
        *examples("f", exponent_bits=4, mantissa_bits=0)(),
        *examples("f", exponent_bits=1, mantissa_bits=3)(),
    ]
