"""Code of functions, one after the other: labels, jumps, constants, what is outside. Imports x86.objects.

Instructions are added to one run of bytes. What is not known while that happens (how long a jump is, how much room is
in front of a label, how far away a constant is) is noted beside it and filled in at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

from hilo.backend.x86.instructions import CONDITIONS
from hilo.backend.x86.objects import ABSOLUTE, PLT, Symbol, object_file
from hilo.errors import Error

ALIGNMENT: Final = 32  # of functions
_LARGEST: Final = 64  # what a constant may want
_JUMP, _ALIGN, _LABEL, _END = range(4)
_CALL: Final = 0xE8  # an opcode, which no byte in front of a distance that belongs to an address is
_LONGEST: Final = 15  # bytes of an instruction
_FILL: Final = (  # instructions that do nothing, by their length
    b"", b"\x90", b"\x66\x90", b"\x0f\x1f\x00", b"\x0f\x1f\x40\x00", b"\x0f\x1f\x44\x00\x00",
    b"\x66\x0f\x1f\x44\x00\x00", b"\x0f\x1f\x80\x00\x00\x00\x00", b"\x0f\x1f\x84\x00\x00\x00\x00\x00",
    b"\x66\x0f\x1f\x84\x00\x00\x00\x00\x00", b"\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00",
)  # fmt: skip


class Assembler:
    """Functions that become one object file. Labels are any hashable values, functions and constants are texts; all
    share one space of names.

    code       what was added so far, without jumps and what aligns
    functions  their names, and whether they are private
    """

    def __init__(self) -> None:
        self.code = bytearray()
        self._events: list[tuple[int, int, Hashable, int]] = []  # place, what, label or alignment, condition
        self._references: list[tuple[int, Hashable, int]] = []  # place of 4 bytes, what is there, bytes up to the end
        self._addresses: list[tuple[int, str]] = []  # place of 8 bytes, what is there
        self.functions: list[tuple[str, bool]] = []
        self._near: set[int] = set()  # jumps that are not short
        self._constants: dict[tuple[bytes, int], str] = {}

    def emit(self, code: bytes, to: Hashable = None, tail: int = 0) -> None:
        """Add instructions. The last one may have a memory operand of the name `to`, and `tail` bytes of immediates."""
        self.code += code
        if to is not None:
            self._references.append((len(self.code) - tail - 4, to, tail))

    def function(self, name: str, private: bool = False, align: int = ALIGNMENT) -> None:
        """A function starts here; the one before ends. `private`: no other file sees it."""
        self.label((_END, len(self.functions)))
        self.align(align)
        self.label(name)
        self.functions.append((name, private))

    def label(self, name: Hashable) -> None:
        """What follows is called `name`."""
        self._events.append((len(self.code), _LABEL, name, 0))

    def align(self, to: int) -> None:
        """What follows starts at a multiple of `to` bytes, a power of two up to 64."""
        self._events.append((len(self.code), _ALIGN, to, 0))

    def jump(self, to: Hashable, condition: str | None = None) -> None:
        """Jump to a label, if the condition holds (e ne l le g ge b be a ae s ns p np o no). As short as it can be."""
        self._events.append((len(self.code), _JUMP, to, -1 if condition is None else CONDITIONS[condition]))

    def call(self, name: str) -> None:
        """Call a function, of this file or another one."""
        self.emit(bytes((_CALL, 0, 0, 0, 0)), name)

    def address(self, name: str, reg: int, outside: bool = False) -> None:
        """The address of a function, label or constant into a general register; `outside`: of another file's symbol."""
        if not outside:
            self.emit(bytes((0x48 | (reg & 8) >> 1, 0x8D, (reg & 7) << 3 | 5, 0, 0, 0, 0)), name)
            return
        self.code += bytes((0x48 | reg >> 3, 0xB8 | reg & 7)) + bytes(8)
        self._addresses.append((len(self.code) - 8, name))

    def constant(self, data: bytes, align: int = 0) -> str:
        """The name of a place with these bytes, behind the code; `align`: as large as they are if not given."""
        key = data, align or min(1 << (max(len(data), 1) - 1).bit_length(), _LARGEST)
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = f".C{len(self._constants)}"
        return name

    def finish(self) -> bytes:
        """The object file. Raises `Error` for a label or constant that there is not (functions may be elsewhere)."""
        try:
            starts, places = self._laid_out()
        except KeyError as e:
            raise Error(f"code that jumps to {e.args[0]!r}, which there is not") from None
        code, shifts = self._joined(starts, places)
        ends = [places[_END, i] for i in range(1, len(self.functions))] + [len(code)]
        functions = [Symbol(name, places[name], end - places[name], private)
                     for (name, private), end in zip(self.functions, ends, strict=False)]  # fmt: skip
        if self._constants:
            code += bytes(-len(code) % _LARGEST)
        for (data, align), name in sorted(self._constants.items(), key=lambda c: -c[0][1]):
            code += bytes(-len(code) % align)
            places[name] = len(code)
            code += data
        outside: list[tuple[int, str, int, int]] = []
        put = struct.Struct("<i").pack_into
        for at, (_, to, tail) in zip(moved(self._references, shifts), self._references, strict=True):
            if to in places:
                put(code, at, places[to] - at - 4 - tail)
            elif code[at - 1] == _CALL:
                outside.append((at, str(to), PLT, -4))
            else:
                raise Error(f"code that refers to {to!r}, which there is not")
        for at, (_, name) in zip(moved(self._addresses, shifts), self._addresses, strict=True):
            outside.append((at, name, ABSOLUTE, 0))
        return object_file(bytes(code), _LARGEST, functions, outside)

    def _laid_out(self) -> tuple[list[int], dict[Hashable, int]]:
        """Where the room for each event starts, and where the labels are. Jumps are short first; those that do not
        reach become near ones, until all do."""
        events = self._events
        near: set[int] = set()
        while True:
            shift, starts, places = 0, [], {}
            for i, (at, what, name, condition) in enumerate(events):
                at += shift
                starts.append(at)
                if what == _LABEL:
                    places[name] = at
                elif what == _ALIGN:
                    shift += -at % name  # type: ignore[operator]
                else:
                    shift += 2 if i not in near else 5 if condition < 0 else 6
            grown = [i for i, (_, what, name, _) in enumerate(events)
                     if what == _JUMP and i not in near and not -128 <= places[name] - starts[i] - 2 < 128]  # fmt: skip
            if not grown:
                self._near = near
                return starts, places
            near.update(grown)

    def _joined(self, starts: list[int], places: dict[Hashable, int]) -> tuple[bytearray, list[tuple[int, int]]]:
        """The code with jumps and what aligns; and from which place on it moved how far."""
        code, source, done = bytearray(), self.code, 0
        shifts = [(0, 0)]
        for i, (at, what, name, condition) in enumerate(self._events):
            if what == _LABEL:
                continue
            code += source[done:at]
            done = at
            if what == _ALIGN:
                code += fill(-len(code) % name)  # type: ignore[operator]
            elif i not in self._near:
                code += bytes((0xEB if condition < 0 else 0x70 | condition, (places[name] - starts[i] - 2) & 255))
            else:
                code += b"\xe9" if condition < 0 else bytes((0x0F, 0x80 | condition))
                code += (places[name] - len(code) - 4).to_bytes(4, "little", signed=True)
            shifts.append((at, len(code) - at))
        code += source[done:]
        return code, shifts


def moved(places: Sequence[tuple[Any, ...]], shifts: list[tuple[int, int]]) -> Iterator[int]:
    """Where places, which come first in each tuple, and in order, are in the end."""
    number, last = 0, len(shifts) - 1
    for at, *_ in places:
        while number < last and shifts[number + 1][0] <= at:
            number += 1
        yield at + shifts[number][1]


def fill(size: int) -> bytes:
    """Instructions that do nothing, of so many bytes."""
    whole, rest = divmod(size, _LONGEST)
    end = _FILL[rest] if rest < len(_FILL) else b"\x66" * (rest - len(_FILL) + 1) + _FILL[-1]
    return (b"\x66" * (_LONGEST - len(_FILL) + 1) + _FILL[-1]) * whole + end
