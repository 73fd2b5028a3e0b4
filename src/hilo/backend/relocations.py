"""What the relocations of ELF object files put where, for each kind of machine. Imports record alone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final

import numpy as np

from hilo.record import record


@record(frozen=True)
class Kind:
    """`of`: the address of the symbol, of the stub that jumps to it ("jump"), of its slot in the table of addresses,
    or of that table. It counts from the place itself ("here"), between pages of 4096 bytes ("page"), from the table,
    or not at all. `form`: how it is written there: as a number, or into an instruction."""

    of: str
    origin: str
    form: str


@record(frozen=True, eq=False)
class Machine:
    """A kind of machine by its `number` in object files. `stub`: code that jumps to an address, of 16 bytes."""

    name: str
    number: int
    kinds: dict[int, Kind]
    stub: Callable[[int], bytes]


def _numbers(*wanted: tuple[tuple[int, ...], str, str, str]) -> dict[int, Kind]:
    return {number: Kind(of, origin, form) for numbers, of, origin, form in wanted for number in numbers}


X86: Final = Machine("x86-64", 62, _numbers(
    ((1,), "address", "", "i64"),
    ((10, 11), "address", "", "i32"),
    ((24,), "address", "here", "i64"),
    ((2, 4), "jump", "here", "i32"),
    ((9, 41, 42), "slot", "here", "i32"),
    ((26,), "table", "here", "i32"),
    ((29,), "table", "here", "i64"),
    ((25,), "address", "table", "i64"),
), lambda to: b"\xff\x25\x00\x00\x00\x00" + struct.pack("<Q2x", to))  # fmt: skip

# The low 12 bits of an address, in units of the bytes that are read or written.
ARM: Final = Machine("AArch64", 183, _numbers(
    ((257,), "address", "", "i64"),
    ((258,), "address", "", "i32"),
    ((260,), "address", "here", "i64"),
    ((261,), "address", "here", "i32"),
    ((314,), "jump", "here", "i32"),
    ((275, 276), "address", "page", "page"),
    ((277, 278), "address", "", "low 1"),
    ((284,), "address", "", "low 2"),
    ((285,), "address", "", "low 4"),
    ((286,), "address", "", "low 8"),
    ((299,), "address", "", "low 16"),
    ((282, 283), "jump", "here", "branch"),
    ((311,), "slot", "page", "page"),
    ((312,), "slot", "", "low 8"),
), lambda to: struct.pack("<IIQ", 0x58000050, 0xD61F0200, to))  # fmt: skip

MACHINES: Final = {"x86_64": X86, "aarch64": ARM}  # by the first part of a triple
PAGE: Final = 4096


class TooFar(ValueError):
    """Code does not reach what it needs."""


def size_of(kind: Kind) -> int:
    """Bytes that are written."""
    return 8 if kind.form == "i64" else 4


def written(kind: Kind, value: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The bytes of `value` (i64), a row each; `before` are the bytes that were there.

    Raises `TooFar` for a value that there is no room for.
    """
    form, _, unit = kind.form.partition(" ")
    if form == "i64":
        return value.astype("<i8").view(np.uint8).reshape(-1, 8)
    if form == "i32":
        _check(value, 32)
        return value.astype("<i4").view(np.uint8).reshape(-1, 4)
    word = np.ascontiguousarray(before).view("<u4").reshape(-1).astype(np.int64)
    if form == "page":
        pages = value // PAGE
        _check(pages, 21)
        word = (word & 0x9F00001F) | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif form == "branch":
        _check(value, 28)
        word = (word & 0xFC000000) | (value >> 2 & 0x3FFFFFF)
    else:
        low = value % PAGE
        if (low % int(unit)).any():
            raise TooFar(f"an address that is no multiple of {unit}")
        word = (word & 0xFFC003FF) | low // int(unit) << 10
    return word.astype("<u4").view(np.uint8).reshape(-1, 4)


def _check(value: np.ndarray, bits: int) -> None:
    if not ((value >= -(1 << bits - 1)) & (value < 1 << bits - 1)).all():
        raise TooFar("object file whose code does not reach what it needs")
