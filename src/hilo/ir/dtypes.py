"""Element types: one interned `DType` per StableHLO element type. Imports record."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hilo.record import record


@record(frozen=True)
class Format:
    """How the bits of a float type are read: sign, `exponent` bits (less `bias`), `mantissa` bits.

    `special`: "ieee" (the largest exponent means infinity and NaN), "fn" (all ones is NaN, no infinity), "fnuz" (NaN in
    the place of -0, no infinity), "finite" (neither: what is too large becomes the largest number, NaN -0), "e8m0" (an
    exponent alone: positive powers of two, and NaN).
    """

    exponent: int
    mantissa: int
    bias: int
    special: str = "ieee"

    @property
    def largest(self) -> float:
        """The largest finite number."""
        top = (1 << self.exponent) - 1 - self.bias - (self.special in ("ieee", "e8m0"))
        return (2.0 - 2.0 ** (-self.mantissa) * (2 if self.special == "fn" else 1)) * 2.0**top

    @property
    def least_normal(self) -> float:
        return 2.0 ** (1 - self.bias)

    @property
    def has_inf(self) -> bool:
        return self.special == "ieee"

    @property
    def has_negative_zero(self) -> bool:
        return self.special not in ("fnuz", "e8m0")


class DType:
    """An element type, e.g. `f32`. Compare with `is`.

    `name` is hilo's spelling (i1, i8..i64, u8..u64, f16, bf16, f32, f64, c64, c128, f8E4M3FN ...), `mlir` MLIR's
    (i1, i32, ui8, complex<f32> ...). `kind` is one of "b" (i1), "i" signed, "u" unsigned, "f" float, "c" complex.
    `bits` is the width of a value (c64: 64), `np` the numpy dtype that holds it, `part` the float type of a complex
    type's parts (itself otherwise), `format` how a float type's bits are read (None for other types).

    In memory a type narrower than a byte takes one byte: its value is in the low bits, the others are 0 when hilo
    writes them, and count for nothing when it reads them.
    """

    __slots__ = ("_extension", "bits", "format", "is_complex", "is_float", "is_int", "is_narrow", "itemsize", "kind",
                 "mlir", "name", "np", "part")  # fmt: skip
    name: Final[str]
    mlir: Final[str]
    kind: Final[str]
    bits: Final[int]
    np: Final[np.dtype]
    part: DType
    format: Final[Format | None]
    is_float: Final[bool]
    is_complex: Final[bool]
    is_int: Final[bool]  # signed or unsigned, not i1
    is_narrow: Final[bool]  # narrower than a byte, but not i1
    itemsize: Final[int]  # bytes of one element in memory

    def __init__(self, name: str, mlir: str, kind: str, bits: int, np_type: object, part: DType | None = None,
                 format: Format | None = None) -> None:  # noqa: A002  # fmt: skip
        self.name = name
        self.mlir = mlir
        self.kind = kind
        self.bits = bits
        self._extension = np_type if isinstance(np_type, str) else ""  # a name in ml_dtypes, loaded when asked for
        if not self._extension:
            self.np = np.dtype(np_type)  # type: ignore[call-overload]
        self.part = part or self
        self.format = format
        self.is_float, self.is_complex, self.is_int = kind == "f", kind == "c", kind in "iu"
        self.is_narrow, self.itemsize = 1 < bits < 8, max(1, bits // 8)

    def __getattr__(self, name: str) -> Any:
        if name != "np":
            raise AttributeError(name)
        import ml_dtypes

        self.np = np.dtype(getattr(ml_dtypes, self._extension))  # type: ignore[misc]
        return self.np

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return dtype, (self.name,)


i1 = DType("i1", "i1", "b", 1, np.bool_)
i2 = DType("i2", "i2", "i", 2, "int2")
i4 = DType("i4", "i4", "i", 4, "int4")
i8 = DType("i8", "i8", "i", 8, np.int8)
i16 = DType("i16", "i16", "i", 16, np.int16)
i32 = DType("i32", "i32", "i", 32, np.int32)
i64 = DType("i64", "i64", "i", 64, np.int64)
u2 = DType("u2", "ui2", "u", 2, "uint2")
u4 = DType("u4", "ui4", "u", 4, "uint4")
u8 = DType("u8", "ui8", "u", 8, np.uint8)
u16 = DType("u16", "ui16", "u", 16, np.uint16)
u32 = DType("u32", "ui32", "u", 32, np.uint32)
u64 = DType("u64", "ui64", "u", 64, np.uint64)
bf16 = DType("bf16", "bf16", "f", 16, "bfloat16", format=Format(8, 7, 127))
f16 = DType("f16", "f16", "f", 16, np.float16, format=Format(5, 10, 15))
f32 = DType("f32", "f32", "f", 32, np.float32, format=Format(8, 23, 127))
f64 = DType("f64", "f64", "f", 64, np.float64, format=Format(11, 52, 1023))
c64 = DType("c64", "complex<f32>", "c", 64, np.complex64, f32)
c128 = DType("c128", "complex<f64>", "c", 128, np.complex128, f64)


def _narrow(name: str, np_type: object, exponent: int, mantissa: int, bias: int, special: str = "ieee") -> DType:
    bits = exponent + mantissa + (special != "e8m0")
    return DType(name, name, "f", bits, np_type, format=Format(exponent, mantissa, bias, special))


NARROW_FLOATS: Final = (
    _narrow("f4E2M1FN", "float4_e2m1fn", 2, 1, 1, "finite"),
    _narrow("f6E2M3FN", "float6_e2m3fn", 2, 3, 1, "finite"),
    _narrow("f6E3M2FN", "float6_e3m2fn", 3, 2, 3, "finite"),
    _narrow("f8E3M4", "float8_e3m4", 3, 4, 3),
    _narrow("f8E4M3", "float8_e4m3", 4, 3, 7),
    _narrow("f8E4M3B11FNUZ", "float8_e4m3b11fnuz", 4, 3, 11, "fnuz"),
    _narrow("f8E4M3FN", "float8_e4m3fn", 4, 3, 7, "fn"),
    _narrow("f8E4M3FNUZ", "float8_e4m3fnuz", 4, 3, 8, "fnuz"),
    _narrow("f8E5M2", "float8_e5m2", 5, 2, 15),
    _narrow("f8E5M2FNUZ", "float8_e5m2fnuz", 5, 2, 16, "fnuz"),
    _narrow("f8E8M0FNU", "float8_e8m0fnu", 8, 0, 127, "e8m0"),
)
COMMON: Final = (i1, i8, i16, i32, i64, u8, u16, u32, u64, bf16, f16, f32, f64, c64, c128)
ALL: Final = (*COMMON, i2, i4, u2, u4, *NARROW_FLOATS)
_BY_NAME: Final = {t.name: t for t in ALL}
_BY_MLIR: Final = {t.mlir: t for t in ALL}
_BY_NP: Final = {t.np: t for t in ALL if not t._extension}


def dtype(name: str) -> DType:
    """The type with hilo's name `name`; KeyError if there is none."""
    return _BY_NAME[name]


def from_mlir(text: str) -> DType | None:
    """The type spelled `text` in MLIR, or None. `si8` is accepted for `i8`."""
    return _BY_MLIR.get(text)


def from_numpy(np_type: object) -> DType:
    """The type that a numpy dtype (any byte order is *not* accepted) stands for; KeyError if there is none."""
    asked = np.dtype(np_type)  # type: ignore[call-overload]
    found = _BY_NP.get(asked)
    if found is None:  # perhaps one of ml_dtypes'
        _BY_NP.update((t.np, t) for t in ALL if t._extension)
        found = _BY_NP[asked]
    return found
