"""Values in memory that find no register: the instructions that load and store them. Imports x86.machine,
x86.constants, x86.instructions.

A value gets a slot of the function's stack memory. An instruction that may read its last operand from memory reads the
slot; elsewhere the value goes through a register that lives for one instruction. Constants have no slots: they are read
from where they are, or made again.
"""

from __future__ import annotations

from typing import Any, Final

from hilo.backend.x86 import constants as fixed
from hilo.backend.x86.allocate import SLOT
from hilo.backend.x86.instructions import VECTOR
from hilo.backend.x86.machine import (
    CALL,
    DIVIDE,
    ENTER,
    FRAME,
    GENERAL,
    MOVE,
    NO,
    RETURN,
    VEC,
    Address,
    Draft,
    Instruction,
)
from hilo.backend.x86.machine import MASK as MASKS

_READS: Final = frozenset(("cmp", "test", "push", "vucomiss", "vucomisd", "vcomiss", "vcomisd", "vptest"))
_EXTENDS: Final = ("movzb", "movzw", "movsb", "movsw", "movsl", "popcnt", "lzcnt", "tzcnt")
_WRITES: Final = frozenset(("mov", "lea", "shlx", "shrx", "sarx", "bzhi", "andn", *_EXTENDS))
_FROM_MEMORY: Final = frozenset(("add", "sub", "and", "or", "xor", "cmp", "imul", "mov", *_EXTENDS))
_BOTH: Final = ("vfm", "vfn", "vpternlog", "vpermt2", "vpermi2", "vpdp", "vdpbf16", "vpgather", "vgather", "vpmadd52",
                "vpshldv", "vpshrdv", "vfixup")  # fmt: skip
_SAME: Final = ("vxorps", "kxorq", "kxnorq", "vpternlogd")  # constants, if made of one register
NEAR: Final = 4  # instructions for which a value that was loaded or stored stays in its register
_MASKED: Final = ("vcmp", "vpcmp", "vptest", "vblendm", "vpblendm")  # a mask leaves nothing as it was
_NO_MEMORY: Final = ("vmovd", "vmovq", "vmovhlps", "vmovlhps", "vcvtsi", "vcvtusi", "vpinsr", "k", "vpmov", "vpextr")


def effects(instruction: Instruction) -> tuple[bool, bool]:
    """Whether an instruction reads, and writes, its register `reg`."""
    form, name = instruction[0], instruction[0][1]
    if form[0] == MOVE:
        return False, True
    if form[0] == VEC:
        if name.endswith("_store") or name in _READS or name[:5] in ("korte", "ktest", "vpsca", "vscat"):
            return True, False
        if name.startswith(_BOTH):
            return True, True
        return instruction[5] != NO and not form[5] and not name.startswith(_MASKED), True
    if name.endswith("_store") or name in _READS:
        return True, False
    if name in _WRITES or name[:3] == "set" or (name == "imul" and form[4] is not None):
        return False, True
    return True, True


def from_memory(instruction: Instruction) -> bool:
    """Whether the last operand, a register, may be memory instead."""
    form, name = instruction[0], instruction[0][1]
    if form[0] != VEC:
        return name in _FROM_MEMORY or (name[:4] == "cmov" and form[2] >= 4)
    if name.startswith(_NO_MEMORY) or name.endswith(("_general", "_store")):
        return False
    how = VECTOR[name][6]
    return how in ("", "rm", "s", "l0") and not (form[4] is not None and name + "_imm" in VECTOR)


def element_size(name: str) -> int:
    """The size of the lanes that an instruction may read as one for all; 0 if it cannot."""
    _, _, _, _, wide, unit, how = VECTOR[name]
    if wide is None or unit != 64 or how not in ("", "rm") or name.startswith("vmov"):
        return 0
    return 8 if wide else 4


def load(draft: Draft, register: int, place: Address) -> None:
    kind = draft.classes[register]
    if kind == GENERAL:
        draft.g("mov", 8, register, place)
    elif kind == MASKS:
        draft.v("kmovq", 0, register, NO, place)
    else:
        draft.v("vmovaps", 2, register, NO, place)


def store(draft: Draft, register: int, place: Address) -> None:
    kind = draft.classes[register]
    if kind == GENERAL:
        draft.g("mov_store", 8, register, place)
    elif kind == MASKS:
        draft.v("kmovq_store", 0, register, NO, place)
    else:
        draft.v("vmovaps_store", 2, register, NO, place)


def rewrite(draft: Draft, spilled: set[int], recipes: dict[int, Any], kept: set[int]) -> None:
    """Change `draft.code` so that the registers `spilled` are not needed. Registers that live for a few instructions
    only are added to `kept`."""
    work = _Rewriting(draft, spilled, recipes, kept)
    code, draft.code = draft.code, []
    for instruction in code:
        work.instruction(instruction)


class _Rewriting:
    """The code of a function, with some values in memory."""

    def __init__(self, draft: Draft, spilled: set[int], recipes: dict[int, Any], kept: set[int]) -> None:
        self.draft, self.spilled, self.recipes, self.kept = draft, spilled, recipes, kept
        self.at: dict[int, int] = {}  # slots: offsets in the function's memory
        self.recent: dict[int, tuple[int, int]] = {}  # values that are in a register, too: which one, and since when

    # ---- values
    def slot(self, register: int) -> Address:
        draft, at = self.draft, self.at.get(register)
        if at is None:
            size = SLOT[draft.classes[register]]
            at = -(-draft.frame_size // size) * size
            draft.frame_size = at + size
            draft.alignment = max(draft.alignment, size)
            self.at[register] = at
        return Address(FRAME, NO, 1, at)

    def short(self, v: int) -> int:
        """A register that holds the value for a few instructions."""
        t = self.draft.new(self.draft.classes[v])
        self.kept.add(t)
        return t

    def fetched(self, v: int) -> int:
        """A register with a value that is in memory."""
        draft = self.draft
        held = self.recent.get(v)
        if held is not None and len(draft.code) - held[1] < NEAR:
            return held[0]
        t = self.short(v)
        if v in self.recipes:
            first = len(draft.classes)
            fixed.make(draft, t, self.recipes[v])
            self.kept.update(range(first, len(draft.classes)))
        else:
            load(draft, t, self.slot(v))
        self.hold(v, t)
        return t

    def put(self, v: int, t: int) -> None:
        """Store a value, which is in register `t`."""
        store(self.draft, t, self.slot(v))
        self.hold(v, t)

    def hold(self, v: int, t: int) -> None:
        if self.draft.classes[v] != MASKS and t in self.kept:
            self.recent[v] = t, len(self.draft.code)
        else:
            self.recent.pop(v, None)

    # ---- instructions
    def instruction(self, instruction: Instruction) -> None:
        form, spilled = instruction[0], self.spilled
        if form.__class__ is not tuple:
            if form in (ENTER, RETURN, DIVIDE, CALL):
                self.special(instruction)
            else:
                self.draft.code.append(instruction)
            self.recent.clear()
            return
        _, reg, first, rm, index, mask = instruction
        if not (reg in spilled or first in spilled or rm in spilled or index in spilled or mask in spilled):
            self.draft.code.append(instruction)
        elif reg in spilled and reg in self.recipes and effects(instruction)[1]:
            return  # where a constant is made
        elif form[0] == MOVE:
            self.move(reg, rm)
        else:
            self.plain(instruction)

    def move(self, reg: int, rm: int) -> None:
        if reg in self.spilled:
            self.put(reg, self.fetched(rm) if rm in self.spilled else rm)
        elif rm in self.recipes:
            fixed.make(self.draft, reg, self.recipes[rm])
        else:
            load(self.draft, reg, self.slot(rm))

    def plain(self, instruction: Instruction) -> None:
        form, reg, first, rm, index, mask = instruction
        spilled, recipes = self.spilled, self.recipes
        reads, writes = effects(instruction)
        if rm in spilled and form[3] is None and rm not in (reg, first, mask) and from_memory(instruction):
            if rm not in recipes:
                form, rm = (*form[:3], (1, self.slot(rm).disp), *form[4:]), FRAME
            elif form[0] == VEC and (memory := _constant(form, recipes[rm])) is not None:
                form, rm = (*form[:3], recipes[rm][2], *form[4:6], memory), NO
        temporary: dict[int, int] = {}
        if reg == first == rm and form[1] in _SAME:  # a constant, whatever was there
            sources: tuple[int, ...] = ()
        else:
            sources = (first, rm, index, mask)
        for v in sources:
            if v in spilled and v not in temporary:
                temporary[v] = self.fetched(v)
        if reg in spilled and reg not in temporary:
            temporary[reg] = self.fetched(reg) if reads and sources else self.short(reg)
        self.draft.code.append((form, *[temporary.get(v, v) for v in (reg, first, rm, index, mask)]))
        if reg in spilled and writes:
            t = temporary[reg]
            for v in [v for v, (held, _) in self.recent.items() if held == t]:  # it was another value's, too
                del self.recent[v]
            self.put(reg, t)

    def special(self, instruction: Instruction) -> None:
        """What is no plain instruction."""
        kind, rest = instruction[0], list(instruction[1:])
        behind: list[tuple[int, int]] = []

        def read(v: Any) -> Any:
            return self.fetched(v) if isinstance(v, int) and v in self.spilled else v

        def written(v: int) -> int:
            if v not in self.spilled:
                return v
            t = self.short(v)
            behind.append((t, v))
            return t

        if kind == ENTER:
            rest[0] = tuple([written(v) for v in rest[0]])
        elif kind == RETURN:
            rest[0] = tuple([read(v) for v in rest[0]])
        elif kind == DIVIDE:
            rest[3], rest[4], rest[2] = read(rest[3]), read(rest[4]), written(rest[2])
        else:
            rest[0], rest[1] = read(rest[0]), tuple([read(v) for v in rest[1]])
            rest[3] = tuple([written(v) for v in rest[3]])
        self.draft.code.append((kind, *rest))
        for t, v in behind:
            store(self.draft, t, self.slot(v))


def _constant(form: Any, recipe: Any) -> bool | None:
    """Whether a constant is one element for all lanes, where an instruction may read it from memory; else None."""
    kind, length, name = recipe
    if kind == "load" and length >= form[2]:
        return False
    if kind == "scalar" and form[1].endswith(("ss", "sd")):
        return False
    if kind == "splat" and (len(name) - len(fixed.MARK)) // 2 == element_size(form[1]):
        return True
    return None
