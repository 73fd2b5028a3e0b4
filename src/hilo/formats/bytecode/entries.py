"""The attributes and types of a file, decoded when they are asked for. Imports its siblings, mlir_text and ir.

Entries refer to each other by number. Each is decoded once; one that leads to itself, nests too deeply, or would expand
to more than a million others (by sharing) is an `Error`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from hilo.errors import Error, Unsupported
from hilo.formats.bytecode.container import Entry, File
from hilo.formats.bytecode.values import Element, Text, Value
from hilo.formats.bytecode.wire import Reader
from hilo.ir.dtypes import DType, from_mlir
from hilo.ir.module import Loc
from hilo.ir.types import OpaqueType, Type

MAX_DEPTH = 64
_MAX_LOC_DEPTH = 48
_MAX_WEIGHT = 1 << 20
_BUSY: Any = object()
Decode: TypeAlias = "Callable[[EntryReader], Value]"
Codes: TypeAlias = "dict[int, Decode]"


class EntryReader(Reader):
    """A reader of one entry: numbers, and the other entries that they refer to."""

    __slots__ = ("table",)

    def __init__(self, table: Table, at: int, size: int) -> None:
        super().__init__(table.file.data, at, at + size, table.file.loc)
        self.table = table

    def string(self) -> str:
        return self.table.file.string(self)

    def attr(self) -> Value:
        return self.table.attr(self.varint(), self)

    def type(self) -> Any:
        return self.table.type(self.varint(), self)

    def attrs(self) -> tuple[Value, ...]:
        return tuple([self.table.attr(i, self) for i in self.varints(self.count())])

    def types(self) -> tuple[Any, ...]:
        return tuple([self.table.type(i, self) for i in self.varints(self.count())])

    def optional(self) -> Value | None:
        index, present = self.flagged()
        return self.table.attr(index, self) if present else None

    def text_attr(self) -> str:
        """An attribute that must be a string."""
        value = self.attr()
        if not isinstance(value, str):
            raise self.error("an attribute should be a string here")
        return value

    def loc_attr(self) -> Loc:
        """A location inside another; chains of calls are cut off where they get too long."""
        if self.table.depth > _MAX_LOC_DEPTH:
            self.varint()
            return Loc("unknown")
        value = self.attr()
        if not isinstance(value, Loc):
            raise self.error("an attribute should be a location here")
        return value


class Table:
    """`attr(i)` and `type(i)` of a file."""

    def __init__(self, file: File, attr_codes: dict[str, Codes], type_codes: dict[str, Codes]) -> None:
        self.file = file
        self._attr_codes = attr_codes
        self._type_codes = type_codes
        self._attrs: list[Any] = [None] * len(file.attrs)
        self._types: list[Any] = [None] * len(file.types)
        self._weights: dict[tuple[int, bool], int] = {}
        self._weight = 0  # of the entry that is being decoded
        self.depth = 0

    def attr(self, i: int, r: Reader) -> Value:
        """Attribute `i`; `r` is where it is asked for."""
        if i >= len(self._attrs):
            raise r.error(f"attribute {i} of {len(self._attrs)}")
        value = self._attrs[i]
        if value is None or value is _BUSY:
            value = self._decode(self._attrs, i, self.file.attrs[i], True, r)
        else:
            self._weight += self._weights[i, True]
        return value

    def type(self, i: int, r: Reader) -> Any:
        """Type `i`: a `Type`, a `DType` for scalars, or a `FunctionType`."""
        if i >= len(self._types):
            raise r.error(f"type {i} of {len(self._types)}")
        value = self._types[i]
        if value is None or value is _BUSY:
            value = self._decode(self._types, i, self.file.types[i], False, r)
        else:
            self._weight += self._weights[i, False]
        return value

    def begin(self) -> None:
        """What follows is not part of an entry."""
        self._weight = 0

    def _decode(self, values: list[Any], i: int, entry: Entry, is_attr: bool, r: Reader) -> Any:
        if values[i] is _BUSY:
            raise r.error("an attribute or type that is part of itself")
        if self.depth >= MAX_DEPTH:
            raise r.error(f"attributes or types nested more than {MAX_DEPTH} deep")
        outer, self._weight = self._weight, 1
        values[i], value = _BUSY, None
        self.depth += 1
        try:
            value = self._decode_custom(entry, is_attr) if entry.is_custom else self._decode_text(entry, is_attr)
        finally:
            self.depth -= 1
            values[i] = value
        weight = self._weights[i, is_attr] = self._weight
        if weight > _MAX_WEIGHT:
            raise r.error("an attribute or type that expands to more than a million others")
        self._weight = outer + weight
        return value

    def _decode_custom(self, entry: Entry, is_attr: bool) -> Any:
        r = EntryReader(self, entry.at, entry.size)
        what = "attribute" if is_attr else "type"
        codes = (self._attr_codes if is_attr else self._type_codes).get(entry.dialect)
        if codes is None:
            raise r.error(f"{what}s of the dialect '{entry.dialect}' in an encoding of its own", Unsupported)
        code = r.varint()
        decode = codes.get(code)
        if decode is None:
            raise r.error(f"unknown {entry.dialect} {what} code {code}", Unsupported)
        value = decode(r)
        if r.left:
            raise r.error(f"{r.left} bytes are left over in the {what}")
        return value

    def _decode_text(self, entry: Entry, is_attr: bool) -> Any:
        start, end = entry.at, entry.at + entry.size - 1
        if entry.size < 1 or self.file.data[end]:
            raise Error("MLIR bytecode: the text of an attribute or type does not end with a zero byte",
                        loc=self.file.loc)  # fmt: skip
        text = self.file.data[start:end].decode(errors="surrogateescape")
        self._weight += len(text)
        if not is_attr:
            return parse_type(text, self.file.loc)
        check_attribute(text, self.file.loc)
        return Text(text)


def check_attribute(text: str, loc: object) -> None:
    """Raise `Error` unless `text` is one attribute, so that it can stand in a text as it is."""
    from hilo.formats.mlir_text.attributes import raw_attribute
    from hilo.formats.mlir_text.cursor import Cursor
    from hilo.formats.mlir_text.lexer import Source

    try:
        c = Cursor(Source(text, ""))
        raw_attribute(c)
        if c.tokens[c.at]:
            raise c.expected("the end of the attribute")
    except Error as e:
        raise type(e)(f"the attribute '{text[:80]}': {e.message}", loc=loc) from None


def parse_type(text: str, loc: object) -> Element:
    """The type that is written as `text`."""
    from hilo.formats.mlir_text.cursor import Cursor
    from hilo.formats.mlir_text.lexer import Source
    from hilo.formats.mlir_text.types import parse_type as parse

    try:
        c = Cursor(Source(text, ""))
        t = parse(c)
        if c.tokens[c.at]:
            raise c.expected("the end of the type")
    except Error as e:
        raise type(e)(f"the type '{text[:80]}': {e.message}", loc=loc) from None
    return element(t)


def element(t: Type) -> Element:
    """The `DType` of an opaque scalar type that has one."""
    return (from_mlir(t.text) or t) if isinstance(t, OpaqueType) else t


def complex_of(part: Any, r: Reader) -> DType:
    """`complex<part>`"""
    dtype = from_mlir(f"complex<{part.mlir}>") if isinstance(part, DType) else None
    if dtype is None:
        raise r.error(f"complex<{part!r}> is no element type that is known here", Unsupported)
    return dtype
