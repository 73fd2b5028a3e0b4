"""Machine code as text: what `x86.encode` makes, read back by the same tables. Imports x86.

For people who want to see what the machine gets, products from text and compiled functions alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from struct import iter_unpack, unpack_from
from typing import Any, Final

from hilo.backend.x86 import syntax
from hilo.backend.x86.assembler import LARGEST
from hilo.backend.x86.instructions import (
    ARITHMETIC,
    CONDITIONS,
    FETCHES,
    PAIRS,
    PLAIN,
    SHIFTS,
    TRIPLES,
    UNARY,
    VECTOR,
)
from hilo.errors import Error

_CODES: Final = {number: name for name, number in reversed(CONDITIONS.items())}
_NUMBERED: Final = (0x70, 0x71, 0x72, 0x73, 0xC2, 0xC4, 0xC5, 0xC6)  # of map 0F: have an immediate
_REGISTERS_ONLY: Final = ("vmovhlps", "vmovlhps")
_MEMORY_ONLY: Final = ("vmovlps", "vmovhps")
_EXCHANGES: Final = {0x86: "xchg", 0xC0: "xadd_lock", 0xB0: "cmpxchg_lock"}  # of bytes; one more: of the other sizes
Names = Callable[[int], str]


class Instruction:
    """The instruction at a place.

    size    bytes
    text    in AT&T's syntax, "" for one that does nothing
    target  the place that it jumps to, calls or addresses, if it is said as a distance
    jumps   whether that is code of the same function
    """

    def __init__(self, code: bytes, at: int, names: Names) -> None:
        """Raises `Error` for bytes that `x86.encode` makes not."""
        self.code, self.start, self.at, self.names = code, at, at, names
        self.target: int | None = None
        self.jumps = False
        self.rex, self.wide_index = 0, 0
        self.distance = -1  # the place of one that an address has
        try:
            self.text = self._read()
        except (IndexError, KeyError, StopIteration, TypeError, ValueError):
            shown = code[at : at + 12].hex(" ")
            raise Error(f"machine code that is not known: {shown}") from None
        self.size = self.at - at

    # ---- parts
    def byte(self) -> int:
        self.at += 1
        return self.code[self.at - 1]

    def number(self, size: int) -> int:
        """A signed number of `size` bytes."""
        self.at += size
        if self.at > len(self.code):
            raise IndexError
        return int.from_bytes(self.code[self.at - size : self.at], "little", signed=True)

    def operands(self, unit: int = 1, numbered: int = 0) -> tuple[int, Any]:
        """What ModRM and what follows it say: the register, and a register or memory. `numbered`: bytes of an immediate
        behind them, which a distance counts from."""
        modrm = self.byte()
        reg, mod, low = modrm >> 3 & 7 | (self.rex & 4) << 1, modrm >> 6, modrm & 7
        if mod == 3:
            return reg, low | (self.rex & 1) << 3
        base: int | None = low | (self.rex & 1) << 3
        index, scale = None, 1
        if low == 4:
            sib = self.byte()
            number = sib >> 3 & 7 | (self.rex & 2) << 2 | self.wide_index
            index = number if number != 4 or self.wide_index else None
            scale, base = 1 << (sib >> 6), sib & 7 | (self.rex & 1) << 3
            if mod == 0 and sib & 7 == 5:
                return reg, (None, index, scale if index is not None else 1, self.number(4))
            if index is None:
                scale = 1
        elif mod == 0 and low == 5:
            distance = self.number(4)
            self.target = self.at + numbered + distance
            return reg, self.names(self.target)
        disp = 0 if mod == 0 else self.number(1) * unit if mod == 1 else self.number(4)
        return reg, (base, index, scale, disp)

    def jump(self, mnemonic: str, size: int) -> str:
        distance = self.number(size)
        self.target, self.jumps = self.at + distance, mnemonic != "callq"
        return f"{mnemonic} {self.names(self.target)}"

    # ---- instructions
    def _read(self) -> str:
        code, at = self.code, self.at
        if code[at] == 0x62 or code[at] in (0xC4, 0xC5):
            if code.startswith(PLAIN["vzeroupper"], at):
                self.at += 3
                return "vzeroupper"
            return self._vector()
        for name, whole in PLAIN.items():
            if code.startswith(whole, at) and name != "nop":
                self.at += len(whole)
                return syntax.general(name, 8)
        front = set()
        while code[self.at] in (0x66, 0x2E, 0xF0, 0xF2, 0xF3):
            front.add(self.byte())
        if code[self.at] & 0xF0 == 0x40:
            self.rex = self.byte()
        size = 8 if self.rex & 8 else 2 if 0x66 in front else 4
        opcode = self.byte()
        if opcode == 0x90:
            return "" if front else "nop"
        return self._two(self.byte(), size, front) if opcode == 0x0F else self._one(opcode, size, front)

    def _one(self, opcode: int, size: int, front: set[int]) -> str:
        """An instruction with an opcode of one byte; those of bytes are even."""
        small = 1 if not opcode & 1 else size
        most = min(small, 4)
        if opcode < 0x40:
            return self._arithmetic(opcode, small, front)
        if opcode in (0x80, 0x81, 0x83):
            length = 1 if opcode != 0x81 else most
            n, place = self.operands(numbered=length)
            name = next(k for k, v in ARITHMETIC.items() if v == n & 7) + ("_lock" if 0xF0 in front else "")
            return self._numbered(name, small, place, self.number(length))
        if opcode in (0x84, 0x85):
            reg, place = self.operands()
            return self._pair("test", small, reg, place)
        if opcode in (0x86, 0x87):
            return syntax.general("xchg", small, *self.operands())
        if opcode in (0x88, 0x89):
            reg, place = self.operands()
            return self._pair("mov" if isinstance(place, int) else "mov_store", small, reg, place)
        if opcode in (0x8A, 0x8B):
            return syntax.general("mov", small, *self.operands())
        if opcode in (0xA8, 0xA9):
            return syntax.general("test", small, 0, None, self.number(most))
        if opcode in (0xC6, 0xC7):
            _, place = self.operands(numbered=most)
            return self._numbered("mov", small, place, self.number(most))
        if opcode in (0xC0, 0xC1, 0xD0, 0xD1, 0xD2, 0xD3):
            n, place = self.operands(numbered=opcode < 0xD0)
            imm = self.number(1) if opcode < 0xD0 else 1 if opcode < 0xD2 else None
            return self._numbered(next(k for k, v in SHIFTS.items() if v == n & 7), small, place, imm)
        if opcode in (0xF6, 0xF7):
            tests = self.code[self.at] >> 3 & 7 == 0
            n, place = self.operands(numbered=most if tests else 0)
            if tests:
                return self._numbered("test", small, place, self.number(most))
            return self._numbered(next(k for k, v in UNARY.items() if v == (0xF7, n & 7)), small, place, None)
        if opcode in (0xFE, 0xFF):
            n, place = self.operands()
            name = {0: "inc", 1: "dec", 2: "call", 4: "jmp"}[n & 7]
            return self._numbered(name, 8 if n & 6 else small, place, None)
        return self._without_operands(opcode, size)

    def _without_operands(self, opcode: int, size: int) -> str:
        """One whose opcode holds a register or condition, and a few others."""
        register = opcode & 7 | (self.rex & 1) << 3
        if 0x50 <= opcode < 0x60:
            return syntax.general("push" if opcode < 0x58 else "pop", 8, register)
        if 0xB0 <= opcode < 0xC0:
            size = 1 if opcode < 0xB8 else size
            return syntax.general("movabs" if size == 8 else "mov", size, register, None, self.number(size))
        if 0x70 <= opcode < 0x80:
            return self.jump("j" + _CODES[opcode & 15], 1)
        if opcode in (0x69, 0x6B):
            length = 1 if opcode == 0x6B else min(size, 4)
            reg, place = self.operands(numbered=length)
            return syntax.general("imul", size, reg, place, self.number(length))
        if opcode in (0x63, 0x8D):
            return syntax.general("movsl" if opcode == 0x63 else "lea", size, *self.operands())
        mnemonic, length = {0xEB: ("jmp", 1), 0xE9: ("jmp", 4), 0xE8: ("callq", 4)}[opcode]
        return self.jump(mnemonic, length)

    def _arithmetic(self, opcode: int, size: int, front: set[int]) -> str:
        name = next(k for k, v in ARITHMETIC.items() if v == opcode >> 3)
        if opcode & 4:
            return syntax.general(name, size, 0, None, self.number(min(size, 4)))
        reg, place = self.operands()
        if opcode & 2:
            return syntax.general(name, size, reg, place)
        end = "" if isinstance(place, int) else "_lock" if 0xF0 in front else "_store"
        return self._pair(name + end, size, reg, place)

    def _two(self, opcode: int, size: int, front: set[int]) -> str:
        """An instruction whose opcode is 0F and another byte."""
        if 0x80 <= opcode < 0x90:
            return self.jump("j" + _CODES[opcode & 15], 4)
        if 0xC8 <= opcode < 0xD0:
            return syntax.general("bswap", size, opcode & 7 | (self.rex & 1) << 3)
        n, place = self.operands()
        if opcode == 0x1F:
            return ""
        if 0x40 <= opcode < 0x50:
            return syntax.general("cmov" + _CODES[opcode & 15], size, n, place)
        if 0x90 <= opcode < 0xA0:
            return self._numbered("set" + _CODES[opcode & 15], 1, place, None)
        if opcode & 0xFE in _EXCHANGES:
            return syntax.general(_EXCHANGES[opcode & 0xFE], size if opcode & 1 else 1, n, place)
        if opcode in (0x18, 0x0D):
            return syntax.general(next(k for k, v in FETCHES.items() if v == (opcode, n & 7)), 8, None, place)
        counts = b"\xf3" if 0xF3 in front else b""
        name = next(k for k, v in PAIRS.items() if v == (counts, bytes((0x0F, opcode))))
        return syntax.general(name, size, n, place)

    def _pair(self, name: str, size: int, reg: int, place: Any) -> str:
        """With the destination, which may be memory, in the last field."""
        return syntax.general(name, size, place, reg) if isinstance(place, int) else (
            syntax.general(name, size, reg, place))  # fmt: skip

    def _numbered(self, name: str, size: int, place: Any, imm: int | None) -> str:
        """With one operand, and perhaps an immediate."""
        if isinstance(place, int):
            return syntax.general(name, size, place, None, imm)
        return syntax.general(name, size, None, place, imm)

    def _vector(self) -> str:
        """One with a VEX or EVEX prefix."""
        front = self.byte()
        mask = length = high = 0
        zero = for_all = False
        if front == 0x62:
            p, q, r = self.byte(), self.byte(), self.byte()
            space, w, v = p & 7, q >> 7, ~q >> 3 & 15 | (~r & 8) << 1
            self.rex = (~p >> 7 & 1) << 2 | (~p >> 6 & 1) << 1 | ~p >> 5 & 1
            high, length, mask = ~p & 16, r >> 5 & 3, r & 7
            zero, for_all = bool(r >> 7), bool(r & 16)
        else:
            p = self.byte()
            q, space = (self.byte(), p & 31) if front == 0xC4 else (p & 0x7F, 1)
            self.rex = (~p >> 7 & 1) << 2 | ((~p >> 6 & 1) << 1 | ~p >> 5 & 1 if front == 0xC4 else 0)
            w, v, length = q >> 7, ~q >> 3 & 15, q >> 2 & 1
        opcode = self.byte()
        in_register, field = self.code[self.at] >> 6 == 3, self.code[self.at] >> 3 & 7
        key = space, q & 3, opcode, front == 0x62, w
        triple = next((k for k, form in TRIPLES.items() if front == 0xC4 and form == (q & 3, space, opcode)), None)
        if triple is not None:
            reg, rm = self.operands()
            return syntax.general(triple, 8 if w else 4, reg, rm, None, v)
        name = next(n for n in _named(key) if _is_meant(n, in_register, field))
        _, _, _, _, _, unit, how = VECTOR[name]
        numbered = space == 3 or (space == 1 and opcode in _NUMBERED)
        if for_all:
            unit = 8 if w else 4
        elif front == 0x62:
            unit = 8 if how == "dup" and not length else unit >> 2 - length if unit > 0 else -unit
        else:
            unit = 1
        if how == "vsib":
            self.wide_index = v & 16
        reg, rm = self.operands(unit, int(numbered))
        reg |= high
        if isinstance(rm, int) and front == 0x62:
            rm |= (self.rex & 2) << 3
        if how == "mr" and isinstance(rm, int):
            reg, rm = rm, reg
        elif how[:1] == "/":
            reg = v
        imm = self.byte() if numbered else None
        first = v if how in ("", "l1") or (how == "s" and isinstance(rm, int)) else None
        name = name.removesuffix("_imm")
        return syntax.vector(name, length, reg, first, rm, mask, zero, imm, for_all)


def _is_meant(name: str, in_register: bool, field: int) -> bool:
    """Whether an instruction fits what ModRM says, of those that share an opcode."""
    how = VECTOR[name][6]
    if how[:1] == "/":
        return int(how[1]) == field
    if in_register:
        return not name.endswith("_store") and name not in _MEMORY_ONLY
    return not name.endswith("_general") and name not in _REGISTERS_ONLY


@cache
def _names_by_key() -> dict[tuple[int, int, int, bool, int], list[str]]:
    found: dict[tuple[int, int, int, bool, int], list[str]] = {}
    for name in VECTOR.names():
        pp, space, opcode, vex, evex, _, _ = VECTOR[name]
        for is_evex, w in ((False, vex), (True, evex)):
            if w is not None:
                found.setdefault((space, pp, opcode, is_evex, w), []).append(name)
    return found


def _named(key: tuple[int, int, int, bool, int]) -> list[str]:
    return _names_by_key()[key]


def disassembled(file: bytes) -> str:
    """The functions of an object file that `x86.assembler` made, in AT&T's syntax, with labels, and their constants."""
    from hilo.backend.loader import RELOCATION, SECTION, SYMBOL

    (start,) = unpack_from("<Q", file, 40)
    sections = [SECTION.unpack_from(file, start + SECTION.size * i) for i in range(1, 5)]
    (_, _, _, _, at, size, *_), relocations, symbols, names = sections
    code = file[at : at + size]
    texts = file[names[4] : names[4] + names[5]]
    table = list(iter_unpack(SYMBOL.format, file[symbols[4] : symbols[4] + symbols[5]]))
    name_of = [texts[s[0] : texts.index(b"\0", s[0])].decode() for s in table]
    entries = iter_unpack(RELOCATION.format, file[relocations[4] : relocations[4] + relocations[5]])
    outside = {place: name_of[symbol] for place, _, symbol, _ in entries}
    functions = sorted((s[4], s[5], n, bool(s[1] >> 4)) for s, n in zip(table, name_of, strict=True) if s[3])
    known = {begin: name for begin, _, name, _ in functions}
    end = max((begin + length for begin, length, _, _ in functions), default=0)
    end += -end % LARGEST  # where constants start
    parts = []
    for begin, length, name, public in functions:
        parts += [*([f".globl {name}"] if public else []), f"{name}:"]
        parts += _function(code, begin, begin + length, known, outside, end)
    places = sorted(p for p in known if p >= end)
    for place, following in pairwise([*places, len(code)]):
        data = code[place:following]
        parts += [f"{known[place]}:", *(f"    .byte {data[i : i + 16].hex(' ')}" for i in range(0, len(data), 16))]
    return "\n".join(parts) + "\n"


def _function(code: bytes, begin: int, end: int, known: dict[int, str], outside: dict[int, str],
              last: int) -> list[str]:  # fmt: skip
    """The lines of a function; `known` gets the labels and constants that it has."""
    at = begin
    while at < end:
        instruction = Instruction(code, at, str)
        target = instruction.target
        if target is not None and target not in known and not _elsewhere(instruction, outside):
            known[target] = f".L{len(known)}" if target < last else f".C{target - last}"
        at += instruction.size
    lines, at = [], begin
    while at < end:
        if at in known and at != begin:
            lines.append(f"{known[at]}:")
        instruction = Instruction(code, at, lambda place: known.get(place, str(place)))
        text, symbol = instruction.text, _elsewhere(instruction, outside)
        if symbol:  # a call, or an address
            head, register = text.partition(" ")[0], text.rpartition(" ")[2]
            text = f"{head} {symbol}" if instruction.target is not None else f"{head} ${symbol}, {register}"
        if text:
            lines.append(f"    {text}")
        at += instruction.size
    return lines


def _elsewhere(instruction: Instruction, outside: dict[int, str]) -> str:
    """The symbol of another file that an instruction refers to, or ""."""
    places = range(instruction.start, instruction.start + instruction.size)
    return next((outside[p] for p in places if p in outside), "")
