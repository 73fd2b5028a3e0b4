"""Numbers of element types in native conventions (`hilo_type` in native/hilo_custom_call.h). Imports ir."""

from __future__ import annotations

from typing import Final

from hilo.errors import Unsupported
from hilo.ir.dtypes import DType

NUMBERS: Final = {
    "i1": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "u8": 6, "u16": 7, "u32": 8, "u64": 9, "f16": 10, "f32": 11,
    "f64": 12, "c64": 15, "bf16": 16, "c128": 18, "f8E5M2": 19, "f8E4M3FN": 20, "i4": 21, "u4": 22,
    "f8E4M3B11FNUZ": 23, "f8E5M2FNUZ": 24, "f8E4M3FNUZ": 25, "i2": 26, "u2": 27, "f8E4M3": 28, "f8E3M4": 29,
    "f4E2M1FN": 32, "f8E8M0FNU": 33, "f6E2M3FN": 1001, "f6E3M2FN": 1002,
}  # fmt: skip
OURS: Final = 1000  # from here on, XLA has no number


def number(t: DType, what: str, *, packed: bool = True) -> int:
    """The number of `t`. `packed`: as XLA has it, which packs what is narrower than a byte: `Unsupported` there."""
    n = NUMBERS.get(t.name)
    if n is None or (packed and (n > OURS or (t.bits < 8 and t.name != "i1"))):
        raise Unsupported(f"{what} has element type {t}, which the calling convention does not have")
    return n
