"""Bytes to numbers and back: varints, zigzag, blobs, floats. Imports errors.

A `Reader` never looks beyond its end: what is cut short, or counts more items than bytes are left, is an `Error`.
"""

from __future__ import annotations

import struct

from hilo.errors import Error

_DOUBLE = struct.Struct("<q")
_AS_FLOAT = struct.Struct("<d")


class Reader:
    """A position (`at`) in `data`, up to `end`. `loc` is the file's name for errors."""

    __slots__ = ("at", "data", "end", "loc")

    def __init__(self, data: bytes, at: int, end: int, loc: object) -> None:
        self.data = data
        self.at = at
        self.end = end
        self.loc = loc

    def error(self, message: str, kind: type[Error] = Error) -> Error:
        return kind(f"MLIR bytecode, byte {self.at}: {message}", loc=self.loc)

    def cut(self) -> Error:
        return self.error("the data ends early")

    @property
    def left(self) -> int:
        return self.end - self.at

    def byte(self) -> int:
        at = self.at
        if at >= self.end:
            raise self.cut()
        self.at = at + 1
        return self.data[at]

    def varint(self) -> int:
        """An unsigned number of up to 64 bits: the trailing zeros of the first byte say how many bytes follow."""
        at = self.at
        if at >= self.end:
            raise self.cut()
        first = self.data[at]
        if first & 1:
            self.at = at + 1
            return first >> 1
        size = (first & -first).bit_length() if first else 9
        if at + size > self.end:
            raise self.cut()
        self.at = at + size
        if first:
            return int.from_bytes(self.data[at : at + size], "little") >> size
        return int.from_bytes(self.data[at + 1 : at + 9], "little")

    def flagged(self) -> tuple[int, bool]:
        """A number whose lowest bit is a flag."""
        n = self.varint()
        return n >> 1, bool(n & 1)

    def signed(self) -> int:
        """A zigzag number in the range of 64 bits."""
        n = self.varint()
        return (n >> 1) ^ -(n & 1)

    def count(self) -> int:
        """How many items follow, each of at least a byte."""
        n = self.varint()
        if n > self.end - self.at:
            raise self.error(f"{n} items are announced, but {self.left} bytes are left")
        return n

    def varints(self, n: int) -> list[int]:
        """The next `n` numbers."""
        data, end, at = self.data, self.end, self.at
        found: list[int] = []
        for _ in range(n):
            if at < end and data[at] & 1:
                found.append(data[at] >> 1)
                at += 1
            else:
                self.at = at
                found.append(self.varint())
                at = self.at
        self.at = at
        return found

    def signeds(self) -> tuple[int, ...]:
        """A list of zigzag numbers."""
        return tuple([(n >> 1) ^ -(n & 1) for n in self.varints(self.count())])

    def blob(self) -> bytes:
        size = self.count()
        at = self.at
        self.at = at + size
        return self.data[at : at + size]

    def part(self, size: int) -> Reader:
        """A reader of the next `size` bytes, which are skipped here."""
        if size > self.end - self.at:
            raise self.cut()
        at = self.at
        self.at = at + size
        return Reader(self.data, at, at + size, self.loc)

    def wide(self, bits: int) -> int:
        """An integer of a known width, as an unsigned number of `bits` bits."""
        mask = (1 << bits) - 1
        if bits <= 8:
            return self.byte() & mask
        if bits <= 64:
            return self.signed() & mask
        value = 0
        for i in range(self.count()):
            value |= (self.signed() & (2**64 - 1)) << (64 * i)
        return value & mask

    def double(self) -> float:
        """An f64 by its bits."""
        return _AS_FLOAT.unpack(_DOUBLE.pack(_signed64(self.signed())))[0]


def _signed64(n: int) -> int:
    return n - (1 << 64) if n >> 63 and n >= 0 else n


def zigzag(n: int) -> int:
    """A number of 64 bits (signed) as an unsigned one."""
    return ((n << 1) ^ (n >> 63)) & (2**64 - 1)


def varint(n: int) -> bytes:
    """The bytes of an unsigned number of up to 64 bits."""
    if n < 128:
        return bytes((n << 1 | 1,))
    size = (n.bit_length() + 6) // 7
    if size > 8:
        return b"\0" + n.to_bytes(8, "little")
    return ((n << 1 | 1) << (size - 1)).to_bytes(size, "little")


class Sink(bytearray):
    """Bytes under construction, with the inverses of what a `Reader` does."""

    def varint(self, n: int) -> None:
        if n < 128:
            self.append(n << 1 | 1)
        else:
            self += varint(n)

    def flagged(self, n: int, flag: object) -> None:
        self.varint(n << 1 | bool(flag))

    def signed(self, n: int) -> None:
        self.varint(zigzag(n))

    def signeds(self, numbers: tuple[int, ...]) -> None:
        self.varint(len(numbers))
        for n in numbers:
            self.signed(n)

    def blob(self, data: bytes) -> None:
        self.varint(len(data))
        self += data

    def wide(self, n: int, bits: int) -> None:
        """An integer of a known width of at most 64 bits; narrower ones count as unsigned."""
        n &= (1 << bits) - 1
        if bits <= 8:
            self.append(n)
        else:
            self.signed(n if bits < 64 else _signed64(n))

    def double(self, x: float) -> None:
        self.signed(_DOUBLE.unpack(_AS_FLOAT.pack(x))[0])

    def section(self, ident: int, payload: bytes | bytearray) -> None:
        self.append(ident)
        self.varint(len(payload))
        self += payload
