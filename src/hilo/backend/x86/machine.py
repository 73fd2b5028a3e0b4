"""A function under construction: instructions over virtual registers. Imports nothing of hilo.

A register is an int. Numbers from FIRST on are virtual, in order of their making, and have a class (GENERAL, VECTOR or
MASK) in `Draft.classes`; numbers below are the machine's (general 0..15, vector 0..31, mask 0..7: the class follows
from the instruction), but for a few names for what has no place yet (NO, FRAME, INCOMING).

An instruction is a tuple (form, reg, first, rm, index, mask): all that is not a register is in the `form`, a tuple that
begins with what encodes it:

  (VEC, name, length, memory, imm, zero, broadcast)   as `encode.vector` takes them; length 0, 1, 2: 128, 256, 512 bits
  (GEN, name, size, memory, imm)                       as `encode.general` takes them; size in bytes
  (MOVE, class, size)                                  reg = rm, `size` bytes at the most; gone if both are one place

`memory` is None if `rm` is a register; (scale, disp) if `rm` is the base and `index` the index of an address; or the
label of a constant. Where a register is not needed stands NO. All else that a function consists of:

  (LABEL, name), (JUMP, name, condition or None)
  (HEAD, loop), (TAIL, loop)                           the first and the last place of a loop
  (COLD,), (WARM,)                                     what is between hardly ever runs
  (DIVIDE, size, kind, result, a, b)                   kind: sdiv udiv srem urem; uhigh: a product's upper half
  (ENTER, registers, types)                            the function starts; where parameters go that are in registers
  (RETURN, registers)                                  the function ends
  (CALL, symbol or register, arguments, types, results, type)   see function.py; an argument is a register, a
                                                       number in a tuple, or NO for one that is on the stack already
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Final

GENERAL, VECTOR, MASK = 0, 1, 2  # classes of registers
FIRST: Final = 64  # the first virtual register
NO: Final = 63  # no register
FRAME: Final = 62  # as a base: the function's memory on the stack
INCOMING: Final = 61  # as a base: the parameters that the caller left on the stack
OUTGOING: Final = 60  # as a base: what the next call finds on the stack
FOREVER: Final = 1 << 30  # uses of what never dies

VEC, GEN, MOVE, LABEL, JUMP, HEAD, TAIL, COLD, WARM, CALL, RETURN, ENTER, DIVIDE = range(13)

Form = tuple[Any, ...]
Instruction = tuple[Any, ...]


class Address(tuple[int, int, int, int]):
    """base + index * scale + disp: a memory operand, or an integer that is not computed yet."""

    __slots__ = ()

    def __new__(cls, base: int = NO, index: int = NO, scale: int = 1, disp: int = 0) -> Address:
        return tuple.__new__(cls, (base, index, scale, disp))

    base: int = property(itemgetter(0))  # type: ignore[assignment]
    index: int = property(itemgetter(1))  # type: ignore[assignment]
    scale: int = property(itemgetter(2))  # type: ignore[assignment]
    disp: int = property(itemgetter(3))  # type: ignore[assignment]


Memory = Address | str  # an address, or the label of a constant


class Draft:
    """The instructions of a function, and what is known of its virtual registers.

    `left` counts the uses of a register's value that are still to come, `home` is the loop that it was made in: a value
    without uses left, made in the loop that is being written, dies, and its register may take the next one.
    """

    def __init__(self) -> None:
        self.code: list[Instruction] = []
        self.classes: list[int] = [GENERAL] * FIRST
        self.left: list[int] = [FOREVER] * FIRST
        self.home: list[int] = [-1] * FIRST
        self.region = 0  # the loop that is being written
        self.regions = 0
        self.labels = 0
        self.frame_size = 0  # bytes of stack memory that are taken, and how it is aligned
        self.alignment = 8

    # ---- registers and labels
    def new(self, kind: int) -> int:
        """A fresh virtual register of a class."""
        self.classes.append(kind)
        self.left.append(0)
        self.home.append(self.region)
        return len(self.classes) - 1

    def dies(self, register: int) -> bool:
        """Whether nothing reads a register from here on, so that it may be written."""
        return not self.left[register] and self.home[register] == self.region

    def label(self) -> str:
        self.labels += 1
        return f".{self.labels}"

    # ---- instructions
    def v(self, name: str, length: int, reg: int, first: int, rm: int | Memory, mask: int = NO, zero: bool = False,
          imm: int | None = None, broadcast: bool = False) -> None:  # fmt: skip
        """Append an instruction on vector or mask registers (`encode.vector`)."""
        if rm.__class__ is int:
            self.code.append(((VEC, name, length, None, imm, zero, broadcast), reg, first, rm, NO, mask))
        elif rm.__class__ is str:
            self.code.append(((VEC, name, length, rm, imm, zero, broadcast), reg, first, NO, NO, mask))
        else:
            base, index, scale, disp = rm  # type: ignore[misc]
            self.code.append(((VEC, name, length, (scale, disp), imm, zero, broadcast), reg, first, base, index, mask))

    def g(self, name: str, size: int, reg: int, rm: int | Memory = NO, imm: int | None = None, first: int = NO) -> None:
        """Append an instruction on general registers (`encode.general`)."""
        if rm.__class__ is int:
            self.code.append(((GEN, name, size, None, imm), reg, first, rm, NO, NO))
        elif rm.__class__ is str:
            self.code.append(((GEN, name, size, rm, imm), reg, first, NO, NO, NO))
        else:
            base, index, scale, disp = rm  # type: ignore[misc]
            self.code.append(((GEN, name, size, (scale, disp), imm), reg, first, base, index, NO))

    def move(self, to: int, source: int, size: int = 64) -> None:
        """Append `to = source`, registers of one class; `size`: bytes of the value, if they are known."""
        if to != source:
            self.code.append(((MOVE, self.classes[to], size), to, NO, source, NO, NO))

    def mark(self, label: str) -> None:
        self.code.append((LABEL, label))

    def jump(self, label: str, condition: str | None = None) -> None:
        self.code.append((JUMP, label, condition))
