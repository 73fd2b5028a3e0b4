"""Elements: what one element (or one vector of elements) of a tensor is inside a kernel. Imports loop, ir.dtypes."""

from __future__ import annotations

from typing import Final

from hilo.ir.dtypes import ALL, DType
from hilo.loop.nodes import Node, VType


def _held(t: DType) -> str:
    if t.part.is_float:
        return "f64" if t.part.bits == 64 else "f32"
    return "i1" if t.kind == "b" else f"i{max(t.bits, 8)}"


_HELD: Final = {t.name: _held(t) for t in ALL}


class Elem:
    """A value of element type `dtype` in registers: `re`, and `im` for complex types.

    How types are held: i1 as a mask bit, integers as iN (signedness lives in `dtype`), those narrower than a byte as
    the i8 of the same value (every op wraps its result), f32 and f64 as themselves, narrower floats as f32 that is
    exactly representable in the narrow type (every op rounds its result), c64 and c128 as two floats. `re` may be a
    scalar or a vector of any number of lanes.
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
