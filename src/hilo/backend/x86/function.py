"""Whole functions: from loop IR to machine code; how they begin, end and call, after System V's conventions. Imports
x86.select, x86.allocate, x86.encode, x86.assembler.

The frame, from rsp up: what is passed to callees on the stack, then all memory of the function (`FRAME`), then, where
that is aligned to more than 16 bytes, the caller's rsp.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hilo.backend.nesting import run
from hilo.backend.x86 import constants
from hilo.backend.x86.allocate import KEPT, SLOT, Allocation, allocate, passed
from hilo.backend.x86.calls import receive
from hilo.backend.x86.encode import general, vector
from hilo.backend.x86.machine import (
    CALL,
    COLD,
    DIVIDE,
    ENTER,
    FRAME,
    GEN,
    HEAD,
    INCOMING,
    JUMP,
    LABEL,
    MASK,
    MOVE,
    NO,
    RETURN,
    TAIL,
    VEC,
    WARM,
    Instruction,
)
from hilo.backend.x86.select import Selector, class_of

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.backend.x86.assembler import Assembler
    from hilo.loop.nodes import Func

RAX, RDX, RSP, R11 = 0, 2, 4, 11
ALIGN = -1  # where a loop begins
LOOPS = 32  # what loops are aligned to
MANY = 1 << 16  # instructions that are kept
# Bytes; what the last instruction refers to by name, and how many bytes are behind that; or no bytes, the name of a
# function, and -1 - the register that its address comes into.
Code = tuple[bytes, str | None, int]
_KNOWN: dict[Any, Code] = {}  # instructions that were made once


# ---- selection
def compile_function(func: Func, target: Target, asm: Assembler, private: bool, defined: set[str]) -> None:
    """Add the machine code of a function."""
    if len(_KNOWN) > MANY:
        _KNOWN.clear()
    s = Selector(func, target)
    receive(s)
    run(s.block(func.body))
    if not func.body.nodes or func.body.nodes[-1].kind != "ret":
        s.code.append((RETURN, ()))
    s.code = list(flat(s.code))
    allocation = allocate(s, s.constants)
    _Writer(s, allocation, asm, defined).write(func, private)


def flat(code: list[Any]) -> Iterator[Instruction]:
    """The instructions, with those that were put in front of structures."""
    for x in code:
        if x.__class__ is list:
            yield from x
        else:
            yield x


# ---- machine code
class _Writer:
    """Writes the code of one function to an assembler."""

    def __init__(self, s: Selector, allocation: Allocation, asm: Assembler, defined: set[str]) -> None:
        self.s, self.allocation, self.asm, self.defined = s, allocation, asm, defined
        self.place = allocation.place
        self.out: list[Any] = []  # bytes, and what goes to the assembler itself
        self.wide = any(i[0].__class__ is tuple and i[0][0] == VEC and i[0][2] for i in s.code)
        self.saves = self.slots_of_saves()
        self.aligned = s.alignment > 16
        unit = max(s.alignment, 16)
        self.outgoing = max((-(-passed(i[3])[1] // unit) * unit for i in s.code if i[0] == CALL), default=0)
        self.pushed = [r for r in range(16) if allocation.used[0] & KEPT[0] & 1 << r]
        size = self.outgoing + s.frame_size
        if self.aligned:
            size = -(-size // s.alignment) * s.alignment
            self.keeps = size
            size += s.alignment
        elif size or any(i[0] == CALL for i in s.code):
            size = -(-size // 16) * 16 + (0 if len(self.pushed) % 2 else 8)
        self.size = size
        if self.outgoing:
            self.place[FRAME] = (RSP, self.outgoing)
        above = 8 * len(self.pushed) + 8
        self.place[INCOMING] = (self.keeps, above, INCOMING) if self.aligned else (RSP, self.size + above)

    def slots_of_saves(self) -> dict[int, Any]:
        s, slots = self.s, {}
        for registers in self.allocation.across.values():
            for v in registers:
                if v not in slots:
                    size = SLOT[s.classes[v]]
                    at = -(-s.frame_size // size) * size
                    s.frame_size = at + size
                    s.alignment = max(s.alignment, size)
                    slots[v] = at
        return slots

    def write(self, func: Func, private: bool) -> None:
        asm = self.asm
        name = func.name
        asm.function(name, private)
        warm: list[list[Any]] = []
        parts: list[list[Any]] = [self.out]
        place = self.place
        for at, instruction in enumerate(self.s.code):
            form = instruction[0]
            if form.__class__ is tuple:
                _, a, b, c, d, e = instruction
                key = (form, place[a], place[b], place[c], place[d], place[e])
                code = _KNOWN.get(key)
                if code is None:
                    code = _KNOWN[key] = encoded(key)
                self.out.append(code if code[1] is not None else code[0])
            elif form in (LABEL, JUMP):
                self.out.append(instruction)
            elif form == COLD:
                warm.append(self.out)
                self.out = []
                parts.append(self.out)
            elif form == WARM:
                self.out = warm.pop()
            elif form == HEAD:
                if at in self.allocation.inner and not warm:
                    self.out.append((ALIGN,))
            elif form != TAIL:
                self.special(at, instruction)
        self.hand_over([x for part in parts for x in part], name)

    def hand_over(self, out: list[Any], name: str) -> None:
        """Give all to the assembler, as few times as possible. In `out` are bytes, `Code` that refers to a name, and
        what the assembler does itself."""
        asm, run_of = self.asm, []
        for x in out:
            if x.__class__ is bytes:
                run_of.append(x)
                continue
            if x[0].__class__ is bytes and x[2] >= 0:
                code, to, tail = x
                run_of.append(code)
                if to.startswith(constants.MARK):
                    to = asm.constant(constants.data(to))
                asm.emit(b"".join(run_of), to, tail)
                run_of = []
                continue
            if run_of:
                asm.emit(b"".join(run_of))
                run_of = []
            if x[0].__class__ is bytes:
                asm.address(x[1], -1 - x[2], outside=x[1] not in self.defined)
            elif x[0] == ALIGN:
                asm.align(LOOPS)
            elif x[0] == LABEL:
                asm.label((name, x[1]))
            else:
                asm.jump((name, x[1]), x[2])
        if run_of:
            asm.emit(b"".join(run_of))

    # ---- beginning, end, calls, divisions
    def g(self, name: str, size: int, *operands: Any, **more: Any) -> None:
        self.out.append(general(name, size, *operands, **more))

    def special(self, at: int, instruction: Instruction) -> None:
        kind = instruction[0]
        if kind == ENTER:
            self.enter(instruction)
        elif kind == RETURN:
            self.leave(instruction[1])
        elif kind == DIVIDE:
            self.divide(instruction)
        else:
            self.call(at, instruction)

    def enter(self, instruction: Instruction) -> None:
        for r in self.pushed:
            self.g("push", 8, r)
        if self.aligned:
            self.g("mov", 8, R11, RSP)
        if self.size:
            self.g("sub", 8, RSP, imm=self.size)
        if self.aligned:
            self.g("and", 8, RSP, imm=-self.s.alignment)
            self.g("mov_store", 8, R11, (RSP, None, 1, self.keeps))
        moves = {}
        for r, t, where in zip(*instruction[1:3], passed(instruction[2])[0], strict=True):
            if r != NO:
                kind = class_of(t)
                moves[kind, self.place[r]] = (kind, where)
        self.moved(moves)

    def leave(self, values: tuple[int, ...]) -> None:
        moves = {}
        for i, v in enumerate(values):
            kind = self.s.classes[v]
            moves[kind, i] = (kind, self.place[v])
        self.moved(moves)
        if self.wide and self.s.func.ret.lanes == 1:
            self.g("vzeroupper", 0)
        if self.aligned:
            self.g("mov", 8, RSP, (RSP, None, 1, self.keeps))
        elif self.size:
            self.g("add", 8, RSP, imm=self.size)
        for r in reversed(self.pushed):
            self.g("pop", 8, r)
        self.g("ret", 0)

    def divide(self, instruction: Instruction) -> None:
        _, size, kind, r, a, b = instruction
        r, a, b = (self.place[x] for x in (r, a, b))
        if a != RAX:
            self.g("mov", size, RAX, a)
        if kind[0] == "s":
            self.g("cqo" if size == 8 else "cdq", 0)
        elif kind != "uhigh":
            self.g("xor", 4, RDX, RDX)
        self.g("mul" if kind == "uhigh" else "idiv" if kind[0] == "s" else "div", size, b)
        source = RAX if kind[1:] == "div" else RDX
        if r != source:
            self.g("mov", 8, r, source)

    def call(self, at: int, instruction: Instruction) -> None:
        _, callee, arguments, types, results, t = instruction
        across = self.allocation.across[at]
        for v in across:
            self.store(self.s.classes[v], self.place[v], (RSP, None, 1, self.outgoing + self.saves[v]))
        moves: dict[Any, Any] = {}
        numbers: list[tuple[int, int]] = []
        for v, where in zip(arguments, passed(types)[0], strict=True):
            if v.__class__ is tuple:
                numbers.append((where, v[0]))  # type: ignore[arg-type]
            elif v != NO:
                kind = self.s.classes[v]
                moves[kind, where] = (kind, self.place[v])
        wide = t.lanes > 1 or any(x.lanes > 1 for x in types)
        if isinstance(callee, int):
            moves[0, R11] = (0, self.place[callee])
        self.moved(moves)
        for r, value in numbers:
            if value:
                self.g("mov", 4 if value > 0 else 8, r, imm=value)
            else:
                self.g("xor", 4, r, r)
        if self.wide and not wide:
            self.g("vzeroupper", 0)
        if isinstance(callee, int):
            self.g("call", 8, R11)
        else:
            self.out.append((b"\xe8\0\0\0\0", callee, 0))
        moves = {}
        for i, v in enumerate(results):
            kind = self.s.classes[v]
            moves[kind, self.place[v]] = (kind, i)
        self.moved(moves)
        for v in across:
            self.load(self.s.classes[v], self.place[v], (RSP, None, 1, self.outgoing + self.saves[v]))

    # ---- moves
    def moved(self, moves: dict[Any, Any]) -> None:
        """Move registers (class, number), all at once."""
        moves = {to: source for to, source in moves.items() if to != source}
        while moves:
            read = set(moves.values())
            ready = [to for to in moves if to not in read]
            for to in ready:
                self.move(to, moves.pop(to))
            if not ready:  # a circle
                to, source = next(iter(moves.items()))
                kind = to[0]
                if kind == 0:
                    self.g("xchg", 8, source[1], to[1])
                else:
                    for a, b in ((to, source), (source, to), (to, source)):
                        self.out.append(vector("vpxorq", 2, a[1], a[1], b[1]))
                del moves[to]
                moves = {t: (to if s == source else source if s == to else s) for t, s in moves.items()}
                moves = {t: s for t, s in moves.items() if t != s}

    def move(self, to: Any, source: Any) -> None:
        if to[0] == 0:
            self.g("mov", 8, to[1], source[1])
        else:
            self.out.append(vector("vmovaps", 2, to[1], None, source[1]))

    def load(self, kind: int, r: int, place: Any) -> None:
        if kind == 0:
            self.g("mov", 8, r, place)
        elif kind == MASK:
            self.out.append(vector("kmovq", 0, r, None, place))
        else:
            self.out.append(vector("vmovups", 2, r, None, place))

    def store(self, kind: int, r: int, place: Any) -> None:
        if kind == 0:
            self.g("mov_store", 8, r, place)
        elif kind == MASK:
            self.out.append(vector("kmovq_store", 0, r, None, place))
        else:
            self.out.append(vector("vmovups_store", 2, r, None, place))


def encoded(key: Any) -> Code:
    """The machine code of a plain instruction over the machine's registers."""
    form, reg, first, rm, index, mask = key
    kind, name, size = form[:3]
    if kind == MOVE:
        return (moved(name, size, reg, rm) if reg != rm else b""), None, 0
    memory = form[3]
    place, to = rm, None
    if memory.__class__ is str:
        place = to = memory
    elif memory is not None:
        scale, disp = memory
        if rm.__class__ is tuple:
            if len(rm) == 3:  # where rsp was
                return general("mov", 8, reg, (RSP, None, 1, rm[0])) + general("add", 8, reg, None, rm[1]), None, 0
            rm, disp = rm[0], disp + rm[1]
        place = (rm, index, scale, disp)
    imm = form[4]
    if name == "lea" and to is not None and not to.startswith(constants.MARK):
        return b"", to, -1 - reg
    if kind == GEN:
        code = general(name, size, reg, place, imm, first)
        tail = 0 if imm is None else 1 if -128 <= imm < 128 or size == 1 else min(size, 4)
        return code, to, tail
    code = vector(name, size, reg, first, place, mask or 0, form[5], imm, form[6])
    return code, to, 0 if imm is None else 1


def moved(kind: int, size: int, to: int, source: int) -> bytes:
    """The instruction that moves a register."""
    if kind == 0:
        return general("mov", 8 if size >= 8 else 4, to, source)
    if kind == MASK:
        return vector("kmovq", 0, to, None, source)
    return vector("vmovaps", 0 if size <= 16 else 1 if size == 32 else 2, to, None, source)
