"""Attributes as bytecode has them: with their types, before anyone knows which op they belong to. Imports ir.

The forms: `bool`, `str`, `Attrs` (dictionaries), tuples (arrays), `Type`, `DType` and `Loc` stand for themselves; the
classes here for the rest. They are the meeting point of the builtin, the VHLO and the StableHLO encodings.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from hilo.errors import Error
from hilo.ir.dtypes import DType
from hilo.ir.op import Array, Attrs
from hilo.ir.types import Type
from hilo.record import record

Value: TypeAlias = Any  # one of the forms above
Element: TypeAlias = "DType | Type"  # an element type: those without a `DType` (index, quantized, none) are opaque


@record(frozen=True)
class Integer:
    """`value : type`"""

    value: int
    type: Element


@record(frozen=True)
class Float:
    """A number by the bits of its type, so that NaNs and zeros keep theirs."""

    bits: int
    type: DType

    @property
    def value(self) -> float:
        import numpy as np

        return float(np.array(self.bits, f"u{self.type.itemsize}").view(self.type.np)[()])


@record(frozen=True)
class Dense:
    """Elements of a tensor: little-endian bytes in row-major order, or of one element for all."""

    type: Any  # a TensorType, or an opaque vector
    data: bytes

    def array(self) -> Array:
        from hilo.formats.mlir_text.dense import from_bytes
        from hilo.ir.types import TensorType

        if not isinstance(self.type, TensorType) or not self.type.is_static:
            raise Error("a dense attribute needs a tensor type of static shape")
        is_empty = not self.type.size and len(self.data) == self.type.dtype.itemsize  # one value for no elements
        try:
            return from_bytes(b"" if is_empty else self.data, self.type)
        except ValueError as e:  # more than numpy can index
            raise Error(f"a dense attribute of type {self.type!r}: {e}") from None


@record(frozen=True)
class DenseArray:
    """`array<type: ...>`"""

    type: Element
    items: tuple[Any, ...]


@record(frozen=True)
class Enum:
    """A value of one of StableHLO's enums."""

    kind: str
    name: str


@record(frozen=True)
class Struct:
    """One of StableHLO's structs: the values of its fields, in the order of `STRUCTS` in `tables`."""

    kind: str
    fields: Attrs


@record(frozen=True)
class Symbol:
    """`@name`; nested ones are joined by `::@`."""

    name: str


@record(frozen=True)
class Text:
    """An attribute that the file holds as MLIR text."""

    text: str


@record(frozen=True)
class FunctionType:
    """`(operands) -> results`"""

    operands: tuple[Any, ...]
    results: tuple[Any, ...]


class Unit:
    """The attribute that says something by being there."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unit)

    def __hash__(self) -> int:
        return 7


UNIT = Unit()
