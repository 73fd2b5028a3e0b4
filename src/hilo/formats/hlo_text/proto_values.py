"""Shapes, literals, shardings and places in XLA's messages, as what HLO as data has. Imports its siblings and ir."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from hilo.errors import Error, Unsupported
from hilo.formats.hlo_text.locations import MAX_CHAIN
from hilo.formats.hlo_text.messages import AS_BYTES, AS_NUMBERS, TOKEN_TYPE, TUPLE_TYPE, TYPES
from hilo.formats.hlo_text.model import Layout, Shape, tuple_of
from hilo.formats.protobuf import Value, fields, message, number, numbers, signed, text
from hilo.ir.dtypes import DType, dtype
from hilo.ir.module import Loc
from hilo.ir.op import Array
from hilo.ir.types import TOKEN, UNKNOWN, TensorType, bounded

_DTYPES: Final[dict[int, DType]] = {n: dtype(name) for name, n in TYPES.items()}
_OTHER_TYPES: Final = {14: "opaque", 30: "s1", 31: "u1", 34: "buffer"}
_MAX_RANK: Final = 1024
_MAX_DEPTH: Final = 64  # tuples in tuples
_DYNAMIC: Final = -(1 << 63)  # the size of a dimension that is not known


class Message:
    """A message's fields by number, each with its values in order."""

    __slots__ = ("_found",)

    def __init__(self, data: Value) -> None:
        """Raises `Error` for what is no message."""
        self._found: dict[int, list[Value]] = {}
        for field, value in fields(message(data)):
            self._found.setdefault(field, []).append(value)

    def __contains__(self, field: int) -> bool:
        return field in self._found

    def all(self, field: int) -> list[Value]:
        return self._found.get(field, [])

    def messages(self, field: int) -> list[Message]:
        return [Message(v) for v in self.all(field)]

    def message(self, field: int) -> Message:
        """The message in a field, an empty one if there is none. (Several would be merged; nobody writes them.)"""
        found = self._found.get(field)
        return Message(found[-1]) if found else _EMPTY

    def int(self, field: int) -> int:
        """A signed number; 0 if it is not there."""
        found = self._found.get(field)
        return signed(found[-1]) if found else 0

    def bits(self, field: int) -> int:
        found = self._found.get(field)
        return number(found[-1]) if found else 0

    def text(self, field: int) -> str:
        """A text; bytes that are no UTF-8 are kept as Python's escapes."""
        found = self._found.get(field)
        return message(found[-1]).decode(errors="surrogateescape") if found else ""

    def numbers(self, field: int) -> tuple[int, ...]:
        """A repeated field of signed numbers."""
        return tuple(n for v in self._found.get(field, ()) for n in numbers(v))


_EMPTY: Final = Message(b"")


# -- shapes -------------------------------------------------------------------------------------


def read_shape(m: Message, depth: int = 0) -> Shape:
    """A ShapeProto. Raises `Error` for one that is malformed, `Unsupported` for types that hilo lacks."""
    kind = m.bits(2)
    if kind == TUPLE_TYPE:
        if depth > _MAX_DEPTH:
            raise Error(f"tuples are nested more than {_MAX_DEPTH} levels deep")
        return tuple_of([read_shape(p, depth + 1) for p in m.messages(4)])
    if kind == TOKEN_TYPE:
        return Shape(TOKEN)
    if kind not in _DTYPES:
        if kind in _OTHER_TYPES:
            raise Unsupported(f"values of type {_OTHER_TYPES[kind]} are not supported")
        raise Error(f"there is no element type {kind}")
    sizes, dynamic = m.numbers(3), m.numbers(6)
    if len(sizes) > _MAX_RANK:
        raise Error(f"a shape of more than {_MAX_RANK} dimensions")
    dims = []
    for k, n in enumerate(sizes):
        is_dynamic = k < len(dynamic) and dynamic[k]
        if n < 0 and not (n == _DYNAMIC and is_dynamic):
            raise Error(f"{n} is no dimension size")
        dims.append((UNKNOWN if n < 0 else bounded(n)) if is_dynamic else n)
    t = TensorType(_DTYPES[kind], dims)
    if 5 not in m:
        return Shape(t)
    layout = _layout(m.message(5), t.rank)
    return Shape(t, None if layout.is_default else layout)


def _layout(m: Message, rank: int) -> Layout:
    order = m.numbers(1)
    if sorted(order) != list(range(rank)):
        raise Error(f"the layout {list(order)[:16]} does not list the {rank} dimensions")
    tiles = "".join(f"({','.join(map(str, tile.numbers(1)))})" for tile in m.messages(6))
    extras = [f"T{tiles}" if tiles else "", *(f"{k}({n})" for k, f in (("E", 7), ("S", 8)) if (n := m.int(f)))]
    return Layout(order, "".join(extras))


# -- literals -----------------------------------------------------------------------------------


def read_literal(m: Message, shape: Shape) -> list[Array]:
    """The arrays of a LiteralProto: one, or those of a tuple in order. `shape` is what the constant is declared as."""
    if shape.is_tuple:
        parts = m.messages(10)
        if len(parts) != len(shape.parts):
            raise Error(f"{len(parts)} literals for a tuple of {len(shape.parts)}")
        return [a for part, s in zip(parts, shape.parts, strict=True) for a in read_literal(part, s)]
    t = shape.type
    if not isinstance(t, TensorType) or not t.is_static:
        raise Error(f"a value of type {t!r} has no literal")
    own = read_shape(m.message(1))
    if own.type is not t:
        raise Error(f"the literal is {own.type!r}, but {t!r} is declared")
    values = _elements(m, t)
    if values.size != t.size:
        raise Error(f"{values.size} elements in the literal of {t!r}")
    if own.layout is None:
        return [Array(values.reshape(t.shape))]
    slowest_first = own.layout.minor_to_major[::-1]
    physical = values.reshape([t.shape[d] for d in slowest_first])
    return [Array(np.ascontiguousarray(physical.transpose(np.argsort(slowest_first))))]


def _elements(m: Message, t: TensorType) -> np.ndarray:
    """The elements in the order of memory."""
    d = t.dtype
    if d.name in AS_NUMBERS:
        pieces = [_varints(v) for v in m.all(AS_NUMBERS[d.name])]
        whole = np.concatenate(pieces) if pieces else np.zeros(0, np.uint64)
        return whole != 0 if d.name == "i1" else whole.astype(d.np)
    if d.name not in AS_BYTES:
        raise Unsupported(f"constants of {d} are not supported")
    data = b"".join(map(message, m.all(AS_BYTES[d.name])))
    if not d.is_narrow:
        if len(data) % d.itemsize:
            raise Error(f"{len(data)} bytes are no elements of {d}")
        return np.frombuffer(data, d.np)
    bits = np.frombuffer(data, np.uint8) & np.uint8((1 << d.bits) - 1)
    if d.kind == "i":
        sign = 1 << (d.bits - 1)
        return ((bits.astype(np.int16) ^ sign) - sign).astype(np.int8).astype(d.np)
    return bits.astype(d.np) if d.kind == "u" else bits.view(d.np)


def _varints(value: Value) -> np.ndarray:
    """u64[n]: the numbers of a packed field, or the one of a plain one."""
    if not isinstance(value, bytes):
        return np.array([value], np.uint64)
    data = np.frombuffer(value, np.uint8)
    ends = np.flatnonzero(data < 128)
    if not data.size:
        return np.zeros(0, np.uint64)
    if not ends.size or ends[-1] != data.size - 1:
        raise Error("a number in a literal is cut off")
    starts = np.concatenate(([0], ends[:-1] + 1))
    lengths = ends - starts + 1
    if lengths.max() > 10:
        raise Error("a number in a literal has more than 64 bits")
    found = np.zeros(ends.size, np.uint64)
    for k in range(int(lengths.max())):
        more = np.flatnonzero(lengths > k)
        found[more] |= (data[starts[more] + k] & np.uint8(127)).astype(np.uint64) << np.uint64(7 * k)
    return found


# -- shardings ----------------------------------------------------------------------------------


_ONE_WORD: Final = {0: "replicated", 4: "manual", 5: "unknown", 6: "unreduced"}


def read_sharding(m: Message, depth: int = 0) -> str:
    """An OpSharding as HLO text has it; "" for kinds that have no place there."""
    kind = m.bits(1)
    if kind == 2:  # a tuple's
        parts = [read_sharding(p, depth + 1) for p in m.messages(5)] if depth < _MAX_DEPTH else []
        return f"{{{', '.join(parts)}}}" if parts and all(parts) else ""
    if kind in _ONE_WORD:
        return f"{{{_ONE_WORD[kind]}}}" if 14 not in m else ""
    devices = ",".join(map(str, m.numbers(4)))
    if kind == 1:
        return f"{{maximal device={devices}}}"
    if kind != 3:
        return ""
    if reshape := m.numbers(9):
        order = m.numbers(10)
        turned = f"T({','.join(map(str, order))})" if order != tuple(range(len(reshape))) and order else ""
        devices = f"<=[{','.join(map(str, reshape))}]{turned}"
    last = " last_tile_dim_replicate" if m.bits(6) else ""
    if kinds := m.numbers(8):
        last = f" last_tile_dims={{{', '.join(_ONE_WORD.get(k, 'replicated') for k in kinds)}}}"
    return f"{{devices=[{','.join(map(str, m.numbers(3)))}]{devices}{last}}}"


# -- places -------------------------------------------------------------------------------------


def read_frames(m: Message) -> dict[int, Loc]:
    """Places by the numbers, from 1, of a StackFrameIndexProto; a frame is called at the place of its parent."""
    files = [text(v) for v in m.all(1)]
    spots: list[Loc | None] = []
    for p in m.messages(3):
        file = _nth(files, p.int(1))
        spots.append(Loc("file", file=file, line=p.int(3), col=p.int(4)) if file else None)
    rows = [(f.int(1), f.int(2)) for f in m.messages(4)]
    found: dict[int, Loc] = {}
    for n in range(1, len(rows) + 1):
        chain: list[Loc] = []
        row = rows[n - 1]
        for _ in range(MAX_CHAIN):  # parents may go in a circle
            if (spot := _nth(spots, row[0])) is not None:
                chain.append(spot)
            if (row := _nth(rows, row[1])) is None:
                break
        loc: Loc | None = None
        for spot in reversed(chain):
            loc = spot if loc is None else Loc("callsite", children=(spot, loc))
        if loc is not None:
            found[n] = loc
    return found


def _nth(items: Sequence[Any], n: int) -> Any:
    """Item `n`, from 1; None if there is none."""
    return items[n - 1] if 1 <= n <= len(items) else None


def read_metadata(m: Message, frames: dict[int, Loc], name: str) -> Loc:
    """An OpMetadata as a location; the instruction's own name where it has none."""
    place: Loc | None = None
    if file := m.text(3):
        place = Loc("file", file=file, line=m.int(4), col=m.int(18))
    elif frame := m.int(15):
        place = frames.get(frame)
    label = m.text(2)
    if not label and place is not None:
        return place
    return Loc("name", name=label or name, children=(place,) if place else ())
