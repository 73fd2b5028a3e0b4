"""What the relocations of ELF object files put where, for each kind of machine. Imports record alone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cached_property
from typing import Final

from hilo.record import record

#: What a relocation says: the address of the symbol, of the stub that jumps to it ("jump"), of its slot in the table
#: of addresses, or of that table; that it counts from the place itself ("here"), between pages of 4096 bytes ("page"),
#: from the table, or not at all; how it is written there: as a number, or into an instruction.
Kind = tuple[str, str, str]


@record(frozen=True, eq=False)
class Machine:
    """A kind of machine by its `number` in object files. `kinds` of relocations by their numbers. `stub`: code that
    jumps to an address, of 16 bytes."""

    name: str
    number: int
    kinds: dict[int, Kind]
    stub: Callable[[int], bytes]

    @cached_property
    def slots(self) -> frozenset[int]:
        """The kinds that need a symbol's slot."""
        return frozenset(number for number, (of, _, _) in self.kinds.items() if of == "slot")


X86: Final = Machine("x86-64", 62, {
    1: ("address", "", "i64"), 10: ("address", "", "i32"), 11: ("address", "", "i32"), 24: ("address", "here", "i64"),
    2: ("jump", "here", "i32"), 4: ("jump", "here", "i32"), 9: ("slot", "here", "i32"), 41: ("slot", "here", "i32"),
    42: ("slot", "here", "i32"), 26: ("table", "here", "i32"), 29: ("table", "here", "i64"),
    25: ("address", "table", "i64"),
}, lambda to: b"\xff\x25\x00\x00\x00\x00" + struct.pack("<Q2x", to))  # fmt: skip

# The low 12 bits of an address, in units of the bytes that are read or written.
ARM: Final = Machine("AArch64", 183, {
    257: ("address", "", "i64"), 258: ("address", "", "i32"), 260: ("address", "here", "i64"),
    261: ("address", "here", "i32"), 314: ("jump", "here", "i32"), 275: ("address", "page", "page"),
    276: ("address", "page", "page"), 277: ("address", "", "low 1"), 278: ("address", "", "low 1"),
    284: ("address", "", "low 2"), 285: ("address", "", "low 4"), 286: ("address", "", "low 8"),
    299: ("address", "", "low 16"), 282: ("jump", "here", "branch"), 283: ("jump", "here", "branch"),
    311: ("slot", "page", "page"), 312: ("slot", "", "low 8"),
}, lambda to: struct.pack("<IIQ", 0x58000050, 0xD61F0200, to))  # fmt: skip

MACHINES: Final = {"x86_64": X86, "aarch64": ARM}  # by the first part of a triple
PAGE: Final = 4096


class TooFar(ValueError):
    """Code does not reach what it needs."""


def size_of(kind: Kind) -> int:
    """Bytes that are written."""
    return 8 if kind[2] == "i64" else 4


def written(kind: Kind, value: int, before: int) -> int:
    """The number that says `value` in the place of `before`, which was there.

    Raises `TooFar` for a value that there is no room for.
    """
    form, _, unit = kind[2].partition(" ")
    if form == "i64":
        return value & (1 << 64) - 1
    if form == "i32":
        return _checked(value, 32) & (1 << 32) - 1
    if form == "page":
        pages = _checked(value // PAGE, 21)
        return (before & 0x9F00001F) | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    if form == "branch":
        return (before & 0xFC000000) | (_checked(value, 28) >> 2 & 0x3FFFFFF)
    low = value % PAGE
    if low % int(unit):
        raise TooFar(f"an address that is no multiple of {unit}")
    return (before & 0xFFC003FF) | low // int(unit) << 10


def _checked(value: int, bits: int) -> int:
    if not -(1 << bits - 1) <= value < 1 << bits - 1:
        raise TooFar("object file whose code does not reach what it needs")
    return value
