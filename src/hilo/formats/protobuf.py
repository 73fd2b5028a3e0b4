"""Protocol buffers: reading and writing fields and their values, without any schema. Imports errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import pack, unpack
from typing import Final

from hilo.errors import Error

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5  # wire types; the two of groups are history
Value = int | bytes


def fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """(number, value) of each field of a message, in order: ints for numbers (fixed ones: their bits), bytes for texts
    and messages. Raises `Error` for what is no message."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise _broken(at)
        if kind == VARINT:
            value, at = _varint(data, at)
            yield number, value
            continue
        if kind == BYTES:
            size, at = _varint(data, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise _broken(at)
        if size > len(data) - at:
            raise _broken(at)
        piece = data[at : at + size]
        at += size
        yield number, piece if kind == BYTES else int.from_bytes(piece, "little")


def signed(value: Value) -> int:
    """A number of type int32 or int64, which may be negative."""
    n = number(value)
    return n - (1 << 64) if n >> 63 else n


def number(value: Value) -> int:
    """A number as it stands. Raises `Error` for bytes."""
    if isinstance(value, bytes):
        raise _broken(0)
    return value


def numbers(value: Value) -> list[int]:
    """One or, packed, several numbers of a repeated field of type int64."""
    if not isinstance(value, bytes):
        return [signed(value)]
    found, at = [], 0
    while at < len(value):
        n, at = _varint(value, at)
        found.append(signed(n))
    return found


def double(value: Value) -> float:
    """A number of type double."""
    return unpack("<d", number(value).to_bytes(8, "little"))[0]


def single(value: Value) -> float:
    """A number of type float."""
    return unpack("<f", (number(value) & (1 << 32) - 1).to_bytes(4, "little"))[0]


def message(value: Value) -> bytes:
    """A message's bytes. Raises `Error` for a number."""
    if not isinstance(value, bytes):
        raise _broken(0)
    return value


def text(value: Value) -> str:
    """A text. Raises `Error` for a number, or bytes that are no UTF-8."""
    try:
        return message(value).decode()
    except UnicodeDecodeError:
        raise _broken(0) from None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at `at`, less than 2**64, and where it ends."""
    n = shift = 0
    while at < len(data):
        byte = data[at]
        at += 1
        n |= (byte & 127) << shift
        if byte < 128:
            return n & (1 << 64) - 1, at
        shift += 7
        if shift > 63:
            break
    raise _broken(at)


def _broken(at: int) -> Error:
    return Error(f"this is no protocol buffer message of the expected kind (at byte {at})")


# -- writing ------------------------------------------------------------------------------------


_SMALL: Final = [bytes((n,)) for n in range(128)]


def varint(n: int) -> bytes:
    """An integer of 64 bits, negative ones in two's complement."""
    if 0 <= n < 128:
        return _SMALL[n]
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


_TAGS: Final = [varint(field << 3 | BYTES) for field in range(128)]  # no message here has as many fields


def put(field: int, value: int) -> bytes:
    """A field of type int64, bool or enum; nothing for 0, which is what is not there."""
    return varint(field << 3) + varint(value) if value else b""


def put_bytes(field: int, value: bytes | str) -> bytes:
    """A field of type bytes or string, or a message."""
    data = value.encode(errors="replace") if isinstance(value, str) else value
    n = len(data)
    return _TAGS[field] + (_SMALL[n] if n < 128 else varint(n)) + data


def put_numbers(field: int, values: Iterable[int]) -> bytes:
    """A repeated field of type int64, bool or enum, packed; nothing if there are none."""
    data = b"".join(map(varint, values))
    return put_bytes(field, data) if data else b""


def put_float(field: int, value: float) -> bytes:
    """A field of type float."""
    return varint(field << 3 | FIXED32) + pack("<f", value)


def put_double(field: int, value: float) -> bytes:
    """A field of type double; nothing for 0, which is what is not there."""
    return varint(field << 3 | FIXED64) + pack("<d", value) if value else b""
