"""The tables of a file under construction: strings, attributes, types, each once. Imports its siblings, mlir_text, ir.

Entries are numbered as they are first used. With every entry goes the version that it needs; `need` gathers them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from hilo.errors import Error, Unsupported
from hilo.formats.bytecode import tables
from hilo.formats.bytecode.opset import MINIMUM, Version
from hilo.formats.bytecode.types import DYNAMIC, buffer, limits, read_quantized, spelled
from hilo.formats.bytecode.values import (
    Dense,
    DenseArray,
    Enum,
    Float,
    FunctionType,
    Integer,
    Struct,
    Symbol,
    Text,
    Unit,
)
from hilo.formats.bytecode.wire import Sink
from hilo.ir.dtypes import DType, from_mlir
from hilo.ir.module import Loc
from hilo.ir.op import Attrs
from hilo.ir.types import TOKEN, Dim, FutureType, OpaqueType, TensorType, TupleType, Type

_MAX_DEPTH: Final = 200
_SCALAR_CODES: Final = {name: code for code, name in tables.VHLO_SCALARS.items()}
_ENUM_CODES: Final = {kind: code for code, kind in tables.VHLO_ENUMS.items()}
_ENUM_NUMBERS: Final = {kind: {name: n for n, name in values.items()} for kind, values in tables.ENUM_VALUES.items()}
_STRUCT_CODES: Final = {kind: (code, fields) for code, (kind, fields) in tables.VHLO_STRUCTS.items()}


class Need(NamedTuple):
    """The lowest version that has something, and what that is."""

    version: Version
    what: str


NOTHING: Final = Need(MINIMUM, "")


class Numbered:
    """Entries of one kind in the order of their numbers: (dialect, bytes, whether the dialect encoded them)."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, bytes, bool]] = []
        self.needs: list[Need] = []
        self.index: dict[Any, int] = {}


class Tables:
    """Numbers for strings, attributes and types. `ranges`: locations may say where something ends."""

    def __init__(self, ranges: bool = True) -> None:
        self.ranges = ranges
        self.strings: dict[str, int] = {}
        self.attrs = Numbered()
        self.types = Numbered()
        self.need = NOTHING
        self._depth = 0

    def require(self, version: Version, what: str) -> None:
        if version > self.need.version:
            self.need = Need(version, what)

    def string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def _enter(self, table: Numbered, key: Any, encode: Callable[[Sink], tuple[str, bool]]) -> int:
        index = table.index.get(key)
        if index is None:
            outer, self.need = self.need, NOTHING
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise Error(f"attributes or types nested more than {_MAX_DEPTH} deep")
            sink = Sink()
            dialect, is_custom = encode(sink)
            self._depth -= 1
            index = table.index[key] = len(table.entries)
            table.entries.append((dialect, bytes(sink), is_custom))
            table.needs.append(self.need)
            self.need = outer
        self.require(*table.needs[index])
        return index

    # -- attributes of the builtin dialect ------------------------------------------------------

    def builtin_string(self, text: str) -> int:
        def encode(s: Sink) -> tuple[str, bool]:
            s.varint(2)
            s.varint(self.string(text))
            return "builtin", True

        return self._enter(self.attrs, ("string", text), encode)

    def dictionary(self, items: Iterable[tuple[str, int]]) -> int:
        """A builtin dictionary of attributes that have their numbers."""
        pairs = tuple((self.builtin_string(k), v) for k, v in sorted(items))

        def encode(s: Sink) -> tuple[str, bool]:
            s.varint(1)
            s.varint(len(pairs))
            for k, v in pairs:
                s.varint(k)
                s.varint(v)
            return "builtin", True

        index = self._enter(self.attrs, ("dictionary", pairs), encode)
        for _, v in pairs:
            self.require(*self.attrs.needs[v])
        return index

    def text(self, text: str) -> int:
        """Any attribute as MLIR text, under the dialect that it names."""
        dialect = text[1:].partition(".")[0].partition("<")[0] if text[:1] in "#!" else "builtin"

        def encode(s: Sink) -> tuple[str, bool]:
            s.extend(text.encode(errors="surrogateescape") + b"\0")
            return dialect, False

        return self._enter(self.attrs, ("text", text), encode)

    def loc(self, loc: Any) -> int:
        """A location; what is no `Loc` is unknown."""
        key = _loc_key(loc if isinstance(loc, Loc) else _UNKNOWN, self.ranges, 0)
        return self._enter(self.attrs, key, lambda s: self._encode_loc(s, key))

    def _loc_of(self, key: tuple[Any, ...]) -> int:
        return self._enter(self.attrs, key, lambda s: self._encode_loc(s, key))

    def _encode_loc(self, s: Sink, key: tuple[Any, ...]) -> tuple[str, bool]:
        match key:
            case ("file", file, line, col, end):
                name = self.builtin_string(file)
                s.varint(11 if end is None else 22)
                s.varint(name)
                numbers = (line, col, *end) if end is not None else (line, col)
                if end is not None:
                    s.varint(len(numbers))
                for n in numbers:
                    s.varint(n)
            case ("name", name, child):
                numbers = (self.builtin_string(name), self._loc_of(child))
                s.varint(14)
                s.varint(numbers[0])
                s.varint(numbers[1])
            case ("callsite", callee, caller):
                numbers = (self._loc_of(callee), self._loc_of(caller))
                s.varint(10)
                s.varint(numbers[0])
                s.varint(numbers[1])
            case ("fused", children, metadata):
                numbers = [self._loc_of(c) for c in children]
                extra = self.text(metadata) if metadata else None
                s.varint(12 if extra is None else 13)
                s.varint(len(numbers))
                for n in numbers:
                    s.varint(n)
                if extra is not None:
                    s.varint(extra)
            case _:
                s.varint(15)
        return "builtin", True

    # -- attributes of VHLO ---------------------------------------------------------------------

    def attr(self, value: Any) -> int:
        """An attribute in VHLO's encoding. Raises `Unsupported` for what it cannot hold in any version."""
        if isinstance(value, Symbol):
            value = value.name
        if isinstance(value, Text | Unit):
            self.require(tables.OTHER_DIALECTS_SINCE, "an attribute of another dialect")
            return self.text(value.text if isinstance(value, Text) else "unit")
        return self._enter(self.attrs, _key(value), lambda s: self._encode(s, value))

    def _encode(self, s: Sink, value: Any) -> tuple[str, bool]:
        match value:
            case bool():
                self._numbers(s, 2, int(value))
            case str():
                self._numbers(s, 14, self.string(value))
            case tuple():
                self._numbers(s, 1, len(value), *map(self.attr, value))
            case Attrs():
                pairs = [(self.attr(k), self.attr(v)) for k, v in sorted(value.items())]
                self._numbers(s, 6, len(pairs), *(n for pair in pairs for n in pair))
            case Enum():
                self._numbers(s, _ENUM_CODES[value.kind], _ENUM_NUMBERS[value.kind][value.name])
            case Integer():
                self._numbers(s, 9, self.type(value.type))
                s.wide(value.value, value.type.bits if isinstance(value.type, DType) else 64)
            case Float():
                self._numbers(s, 8, self.type(value.type))
                s.wide(value.bits, value.type.bits)
            case Dense():
                self._numbers(s, 15, self.type(value.type))
                s.blob(value.data)
            case Struct():
                self._struct(s, value)
            case FunctionType() | Type() | DType():
                self._numbers(s, 17, self.type(value))
            case _:
                raise Unsupported(f"an attribute of the kind {type(value).__name__} has no portable encoding")
        return "vhlo", True

    def _numbers(self, s: Sink, *numbers: int) -> None:
        if numbers[0] in tables.VHLO_ATTR_SINCE:
            what = "a result_accuracy" if numbers[0] < 21 else "groups along the axes of a mesh"
            self.require(tables.VHLO_ATTR_SINCE[numbers[0]], what)
        for n in numbers:
            s.varint(n)

    def _struct(self, s: Sink, value: Struct) -> None:
        if value.kind not in _STRUCT_CODES:
            raise Unsupported(f"the attribute {value.kind} has no portable encoding")
        code, fields = _STRUCT_CODES[value.kind]
        self._numbers(s, code)
        for name, letter in fields.items():
            self._field(s, letter, value.fields[name])

    def _field(self, s: Sink, letter: str, v: Any) -> None:
        match letter:
            case "i":
                s.signed(v)
            case "I":
                s.signeds(v)
            case "d":
                s.double(v)
            case "a":
                s.varint(self.attr(v))
            case "O":
                s.varint(v is not None)
                if v is not None:
                    s.varint(self.attr(v))
            case "q":
                s.flagged(self.attr(v) if v is not None else 0, v is not None)

    # -- types ----------------------------------------------------------------------------------

    def type(self, t: Any) -> int:
        """A type in VHLO's encoding."""
        return self._enter(self.types, t, lambda s: self._encode_type(s, t))

    def builtin_type(self, text: str) -> int:
        """A type in the builtin dialect, as MLIR text."""

        def encode(s: Sink) -> tuple[str, bool]:
            s.extend(text.encode() + b"\0")
            return "builtin", False

        return self._enter(self.types, ("text", text), encode)

    def _encode_type(self, s: Sink, t: Any) -> tuple[str, bool]:
        match t:
            case TensorType():
                self._tensor(s, t)
            case TupleType():
                self._type_numbers(s, 23, t, len(t.types), *map(self.type, t.types))
            case FunctionType():
                operands, results = ([self.type(x) for x in types] for types in (t.operands, t.results))
                self._type_numbers(s, 8, t, len(operands), *operands, len(results), *results)
            case DType(kind="q"):
                self._quantized(s, OpaqueType(t.mlir))
            case DType(kind="c"):
                self._type_numbers(s, 1, t, self.type(t.part))
            case DType():
                self._type_numbers(s, _SCALAR_CODES[t.mlir], t)
            case OpaqueType() if t.text in _SCALAR_CODES or t is TOKEN:
                self._type_numbers(s, _SCALAR_CODES[t.text], t)
            case OpaqueType() if (element := from_mlir(t.text)) is not None:
                return self._encode_type(s, element)
            case OpaqueType() if t.text.startswith("!quant."):
                self._quantized(s, t)
            case FutureType():
                self._type_numbers(s, 42, t, len(t.types), *map(self.type, t.types))
            case OpaqueType() if t.text.startswith("memref<") and isinstance(b := buffer(t.text), TensorType):
                element = self.type(b.dtype)
                self._type_numbers(s, 41, t)
                s.signeds(tuple(DYNAMIC if isinstance(d, Dim) else d for d in b.shape))
                s.varint(element)
            case _:
                raise Unsupported(f"the type {spelled(t)} has no portable encoding")
        return "vhlo", True

    def _type_numbers(self, s: Sink, code: int, t: Any, *numbers: int) -> None:
        if code in tables.VHLO_TYPE_SINCE:
            self.require(tables.VHLO_TYPE_SINCE[code], f"the type {spelled(t)}")
        for n in (code, *numbers):
            s.varint(n)

    def _tensor(self, s: Sink, t: TensorType) -> None:
        element: Any = t.dtype
        encoding: int | None = None
        if t.encoding is not None:
            text, _, rest = ("", "", t.encoding) if t.encoding[:1] == "#" else t.encoding.partition(", ")
            element = OpaqueType(text) if text else element
            encoding = self.attr(Text(rest)) if rest else None
        if any(isinstance(d, Dim) and d.bound is not None for d in t.shape):
            bounds = tuple(d.bound if isinstance(d, Dim) and d.bound is not None else DYNAMIC for d in t.shape)
            encoding = self.attr(Struct("type_extensions", Attrs(bounds=bounds)))
        index = self.type(element)
        s.varint(20 if encoding is None else 21)
        if encoding is not None:
            s.varint(encoding)
        s.signeds(tuple(DYNAMIC if isinstance(d, Dim) else d for d in t.shape))
        s.varint(index)

    def _quantized(self, s: Sink, t: OpaqueType) -> None:
        q = read_quantized(t.text)
        storage = from_mlir(f"i{q.storage[1:]}")
        if storage is None or not limits(q.storage)[0] <= q.low <= q.high <= limits(q.storage)[1]:
            raise Unsupported(f"the type {t.text} has no portable encoding")
        parts = int(q.storage[0] == "i"), self.type(storage), self.type(q.expressed)
        if q.axis is None:
            self._type_numbers(s, 24, t, *parts)
            s.double(q.scales[0])
            for n in (q.zero_points[0], q.low, q.high):
                s.signed(n)
            return
        self._type_numbers(s, 30, t, *parts, q.axis)
        s.signed(q.low)
        s.signed(q.high)
        s.varint(len(q.scales))
        for x in q.scales:
            s.double(x)
        s.signeds(q.zero_points)


_UNKNOWN: Final = Loc("unknown")


def _loc_key(loc: Loc, ranges: bool, depth: int) -> tuple[Any, ...]:
    """The structure of a location; what nests too deeply is cut off."""
    if depth > _MAX_DEPTH // 4:
        return ("unknown",)
    if loc.kind == "file":
        end = tuple(loc.extra) if ranges and isinstance(loc.extra, tuple) and len(loc.extra) == 2 else None
        return ("file", loc.file, loc.line, loc.col, end)
    children = tuple(_loc_key(c, ranges, depth + 1) for c in loc.children)
    if loc.kind == "name":
        return ("name", loc.name, children[0] if children else ("unknown",))
    if loc.kind == "callsite" and len(children) == 2:
        return ("callsite", *children)
    return ("fused", children, str(loc.extra or "")) if loc.kind == "fused" else ("unknown",)


def _key(value: Any) -> Any:
    """A key that keeps `True`, `1`, "x" and tuples of different kinds apart."""
    if isinstance(value, tuple):
        return (tuple, *map(_key, value))
    if isinstance(value, DenseArray | Dense | Integer | Float | Struct):
        return value
    return (type(value), value)
