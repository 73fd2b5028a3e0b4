"""Element types by PJRT's numbers. Imports ir and errors."""

from __future__ import annotations

from typing import Final

from hilo.errors import Unsupported
from hilo.ir.dtypes import DType

#: PJRT_Buffer_Type of each element type, by hilo's name of it.
CODES: Final[dict[str, int]] = {
    "i1": 1, "i8": 2, "i16": 3, "i32": 4, "i64": 5, "u8": 6, "u16": 7, "u32": 8, "u64": 9, "f16": 10, "f32": 11,
    "f64": 12, "bf16": 13, "c64": 14, "c128": 15, "f8E5M2": 16, "f8E4M3FN": 17, "f8E4M3B11FNUZ": 18, "f8E5M2FNUZ": 19,
    "f8E4M3FNUZ": 20, "i4": 21, "u4": 22, "i2": 24, "u2": 25, "f8E4M3": 26, "f8E3M4": 27, "f8E8M0FNU": 28,
    "f4E2M1FN": 29, "f6E2M3FN": 32, "f6E3M2FN": 33,
}  # fmt: skip
TOKEN_CODE: Final = 23


def code(dtype: DType, what: str) -> int:
    """PJRT's number of an element type; of a quantized one, that of the integers that are stored. `what` is for the
    message of `Unsupported`."""
    found = CODES.get(getattr(dtype, "storage", dtype).name)
    if found is None:
        raise Unsupported(f"{what}: PJRT has no element type {dtype}")
    return found
