"""Elements: what one element (or one vector of elements) of a tensor is inside a kernel. Imports loop, ir.dtypes."""

from __future__ import annotations

from hilo.ir.dtypes import DType
from hilo.loop.nodes import Node, VType

_HELD: dict[str, str] = {
    "i1": "i1", "i8": "i8", "u8": "i8", "i16": "i16", "u16": "i16", "i32": "i32", "u32": "i32", "i64": "i64",
    "u64": "i64", "bf16": "f32", "f16": "f32", "f32": "f32", "f64": "f64", "c64": "f32", "c128": "f64",
}  # fmt: skip


class Elem:
    """A value of element type `dtype` in registers: `re`, and `im` for complex types.

    How types are held: i1 as a mask bit, integers as iN (signedness lives in `dtype`), f32 and f64 as themselves,
    bf16 and f16 as f32 that is exactly representable in the narrow type (every op rounds its result),
    c64 and c128 as two floats. `re` may be a scalar or a vector of any number of lanes.
    """

    __slots__ = ("dtype", "im", "re")

    def __init__(self, dtype: DType, re: Node, im: Node | None = None) -> None:
        self.dtype = dtype
        self.re = re
        self.im = im

    @property
    def lanes(self) -> int:
        return self.re.type.lanes

    def __repr__(self) -> str:
        return f"<Elem {self.dtype} {self.re!r}>"


def held_type(dtype: DType, lanes: int = 1) -> VType:
    """The loop-IR type that holds (each part of) an element of `dtype`."""
    return VType(_HELD[dtype.name], lanes)
