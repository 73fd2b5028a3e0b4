"""Code of functions, one after the other: labels, jumps, constants, what is outside. Imports x86.objects.

Instructions are added to one run of bytes. What is not known while that happens (how long a jump is, how much room is
in front of a label, how far away a constant is) is noted beside it and filled in at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable
from typing import Final

from hilo.backend.x86.instructions import CONDITIONS
from hilo.backend.x86.objects import ABSOLUTE, PLT, object_file
from hilo.errors import Error

ALIGNMENT: Final = 32  # of functions
LARGEST: Final = 64  # what a constant may want
_ALWAYS, _ALIGN = -1, -2  # in the place of a jump's condition
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
        self.functions: list[tuple[str, bool]] = []
        # Places are given as bytes of `code` in front of them, and how many of `_steps`.
        self._steps: list[tuple[int, Hashable, int]] = []  # place; a label and a condition, or what to and _ALIGN
        self._labels: list[tuple[Hashable, int, int]] = []
        self._ends: list[tuple[int, int]] = []  # of functions
        self._references: list[tuple[int, int, Hashable, int]] = []  # of 4 bytes: what is there, bytes up to the end
        self._addresses: list[tuple[int, int, str]] = []  # of 8 bytes
        self._constants: dict[tuple[bytes, int], str] = {}

    def emit(self, code: bytes, to: Hashable = None, tail: int = 0) -> None:
        """Add instructions. The last one may have a memory operand of the name `to`, and `tail` bytes of immediates."""
        self.code += code
        if to is not None:
            self._references.append((len(self.code) - tail - 4, len(self._steps), to, tail))

    def function(self, name: str, private: bool = False, align: int = ALIGNMENT) -> None:
        """A function starts here; the one before ends. `private`: no other file sees it."""
        if self.functions:
            self._ends.append((len(self.code), len(self._steps)))
        self.align(align)
        self.label(name)
        self.functions.append((name, private))

    def label(self, name: Hashable) -> None:
        """What follows is called `name`."""
        self._labels.append((name, len(self.code), len(self._steps)))

    def align(self, to: int) -> None:
        """What follows starts at a multiple of `to` bytes, a power of two up to 64."""
        self._steps.append((len(self.code), to, _ALIGN))

    def jump(self, to: Hashable, condition: str | None = None) -> None:
        """Jump to a label, if the condition holds (e ne l le g ge b be a ae s ns p np o no). As short as it can be."""
        self._steps.append((len(self.code), to, _ALWAYS if condition is None else CONDITIONS[condition]))

    def call(self, name: str) -> None:
        """Call a function, of this file or another one."""
        self.emit(bytes((_CALL, 0, 0, 0, 0)), name)

    def address(self, name: str, reg: int, outside: bool = False) -> None:
        """The address of a function, label or constant into a general register; `outside`: of another file's symbol."""
        if not outside:
            self.emit(bytes((0x48 | (reg & 8) >> 1, 0x8D, (reg & 7) << 3 | 5, 0, 0, 0, 0)), name)
            return
        self.code += bytes((0x48 | reg >> 3, 0xB8 | reg & 7)) + bytes(8)
        self._addresses.append((len(self.code) - 8, len(self._steps), name))

    def constant(self, data: bytes, align: int = 0) -> str:
        """The name of a place with these bytes, behind the code; `align`: as large as they are if not given."""
        key = data, align or min(1 << (max(len(data), 1) - 1).bit_length(), LARGEST)
        name = self._constants.get(key)
        if name is None:
            name = self._constants[key] = f".C{len(self._constants)}"
        return name

    def finish(self) -> bytes:
        """The object file. Raises `Error` for a label or constant that there is not (functions may be elsewhere)."""
        sizes = [0 if step[2] == _ALIGN else 2 for step in self._steps]
        try:
            shifts, places = self._laid_out(sizes)
        except KeyError as e:
            raise Error(f"code that jumps to {e.args[0]!r}, which there is not") from None
        code = self._joined(sizes, shifts, places)
        ends = [at + shifts[step] for at, step in self._ends] + [len(code)]
        functions = [(name, places[name], end - places[name], private)
                     for (name, private), end in zip(self.functions, ends, strict=False)]  # fmt: skip
        if self._constants:
            code += bytes(-len(code) % LARGEST)
        for (data, align), name in sorted(self._constants.items(), key=lambda c: -c[0][1]):
            code += bytes(-len(code) % align)
            places[name] = len(code)
            code += data
        outside: list[tuple[int, str, int, int]] = []
        put = struct.Struct("<i").pack_into
        for at, step, to, tail in self._references:
            at += shifts[step]
            if to in places:
                put(code, at, places[to] - at - 4 - tail)
            elif code[at - 1] == _CALL:
                outside.append((at, str(to), PLT, -4))
            else:
                raise Error(f"code that refers to {to!r}, which there is not")
        outside += [(at + shifts[step], name, ABSOLUTE, 0) for at, step, name in self._addresses]
        return object_file(code, LARGEST, functions, outside)

    def _laid_out(self, sizes: list[int]) -> tuple[list[int], dict[Hashable, int]]:
        """How far what follows each step, and the beginning, moves; where the labels are. `sizes` of jumps are those of
        short ones first; jumps that do not reach become near ones, until all do."""
        steps = self._steps
        while True:
            shift, shifts = 0, [0]
            for (at, to, condition), size in zip(steps, sizes, strict=True):
                shift += size if condition != _ALIGN else -(at + shift) % to  # type: ignore[operator]
                shifts.append(shift)
            places = {name: at + shifts[step] for name, at, step in self._labels}
            far = [i for i, (at, to, condition) in enumerate(steps)
                   if sizes[i] == 2 and not -128 <= places[to] - at - shifts[i + 1] < 128]  # fmt: skip
            if not far:
                return shifts, places
            for i in far:
                sizes[i] = 5 if steps[i][2] == _ALWAYS else 6

    def _joined(self, sizes: list[int], shifts: list[int], places: dict[Hashable, int]) -> bytearray:
        """The code with jumps and what aligns."""
        code, source, done = bytearray(), self.code, 0
        for (at, to, condition), size, shift in zip(self._steps, sizes, shifts[1:], strict=True):
            code += source[done:at]
            done = at
            if condition == _ALIGN:
                code += fill(at + shift - len(code))
                continue
            distance = places[to] - at - shift
            if size == 2:
                code += bytes((0xEB if condition == _ALWAYS else 0x70 | condition, distance & 255))
            else:
                code += b"\xe9" if condition == _ALWAYS else bytes((0x0F, 0x80 | condition))
                code += distance.to_bytes(4, "little", signed=True)
        code += source[done:]
        return code


def fill(size: int) -> bytes:
    """Instructions that do nothing, of so many bytes."""
    whole, rest = divmod(size, _LONGEST)
    end = _FILL[rest] if rest < len(_FILL) else b"\x66" * (rest - len(_FILL) + 1) + _FILL[-1]
    return (b"\x66" * (_LONGEST - len(_FILL) + 1) + _FILL[-1]) * whole + end
