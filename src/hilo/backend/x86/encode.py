"""Machine code of single instructions of x86-64 with AVX-512. Imports x86.instructions alone.

Registers are numbers; the instruction says of which kind: general 0..15 (rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15),
vector 0..31, mask 0..7. A memory operand is (base, index, scale, displacement), base and index a register or None, or a
text: something that has a name, whose place counts from the end of the instruction. Such an instruction has four zero
bytes where the assembler puts the distance: in front of the immediate, which is the end of the code.

Operands stand as in Intel's manuals: destination first. What is stored comes first, too, then the memory.
What was made once is looked up.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

from hilo.backend.x86.instructions import (
    ARITHMETIC,
    BY_NUMBER,
    CONDITIONS,
    FETCHES,
    PAIRS,
    PLAIN,
    SHIFTS,
    TRIPLES,
    UNARY,
    VECTOR,
    WIDE_NAMES,
)

Memory = tuple["int | None", "int | None", int, int]
Place = int | Memory | str  # a register, memory, or what has a name

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15 = range(16)
KEPT: Final = 1 << 15  # instructions that are kept
_SCALES: Final = {1: 0, 2: 0x40, 4: 0x80, 8: 0xC0}
_BYTES: Final = [bytes((i,)) for i in range(256)]


@lru_cache(KEPT)
def vector(name: str, length: int, reg: int, first: int | None, rm: Place, mask: int = 0, zero: bool = False,
           imm: int | None = None, broadcast: bool = False) -> bytes:  # fmt: skip
    """An instruction with a VEX or EVEX prefix, of `length` 0, 1, 2: 128, 256, 512 bits, those of its widest operand (0
    for scalars; of no matter for masks).

    reg        the destination, or what is stored (`name` ends in _store then, but for what always stores: vextract ...,
               vpmov ..., vcvtps2ph), or what is compared (vucomiss)
    first      the second operand of three, if there are three
    rm         the last one
    mask, zero      only lanes of this mask register are written; the others become 0
    broadcast  the memory operand is one lane, for all

    EVEX is used where it is needed, and VEX, which is shorter, elsewhere. Raises `ValueError` for what there is not.
    """
    pp, space, opcode, vex, evex, unit, how = VECTOR[f"{name}_imm" if imm is not None and name in BY_NUMBER else name]
    v = 0 if first is None else first
    if how:
        if how == "mr":
            if isinstance(rm, int):
                reg, rm = rm, reg
        elif how == "rm":
            if first is not None:
                raise ValueError(f"{name} has one source")
        elif how == "l0":
            length = 0
        elif how == "l1":
            length = 1
        elif how[0] == "/":
            v, reg = reg, int(how[1])
            if not isinstance(rm, int):  # VEX takes registers alone
                vex = None
    elif first is None:
        raise ValueError(f"{name} has two sources")
    end = b"" if imm is None else _BYTES[imm & 255]
    last = rm if isinstance(rm, int) else 0
    if vex is not None and length < 2 and not mask and not broadcast and reg < 16 and v < 16 and last < 16:
        x, b, place = _place(reg, rm, 1)
        low = (v << 3 ^ 0x78) | length << 2 | pp
        if vex or x or b or space != 1:
            return bytes((0xC4, (reg & 8) << 4 ^ x ^ b ^ 0xE0 | space, vex << 7 | low, opcode)) + place + end
        return bytes((0xC5, (reg & 8) << 4 ^ 0x80 | low, opcode)) + place + end
    if evex is None:
        if name in WIDE_NAMES and not (mask or broadcast):
            if how == "mr" and isinstance(rm, int):
                reg, rm = rm, reg  # as it was
            return vector(WIDE_NAMES[name], length, reg, first, rm, mask, zero, imm, broadcast)
        raise ValueError(f"{name} has no such form")
    if broadcast:
        unit = 8 if evex else 4
    elif how == "dup" and not length:
        unit = 8
    else:
        unit = unit >> 2 - length if unit > 0 else -unit
    x, b, place = _place(reg, rm, unit)
    if how == "vsib":
        v = rm[1] & 16  # type: ignore[index,operator]
    return bytes((
        0x62,
        ((reg & 8) << 4 | (last & 16) << 2 | reg & 16) ^ x ^ b ^ 0xF0 | space,
        (evex << 7 | (v & 15) << 3 ^ 0x7C) | pp,
        zero << 7 | length << 5 | broadcast << 4 | (v & 16 ^ 16) >> 1 | mask,
        opcode,
    )) + place + end  # fmt: skip


def _place(reg: int, rm: Place, unit: int) -> tuple[int, int, bytes]:
    """The bits X and B of a prefix, at their places there, and ModRM and what follows."""
    if isinstance(rm, int):
        return 0, (rm & 8) << 2, _BYTES[0xC0 | (reg & 7) << 3 | rm & 7]
    if isinstance(rm, str):
        return 0, 0, _BYTES[(reg & 7) << 3 | 5] + b"\0\0\0\0"
    base, index, _, _ = rm
    return (index & 8) << 3 if index else 0, (base & 8) << 2 if base else 0, memory(reg & 7, rm, unit)


def memory(reg: int, place: Memory, unit: int = 1) -> bytes:
    """The bytes that say `place`, with `reg` in the field of the register: ModRM, SIB, displacement; one of 8 bits
    counts `unit` bytes."""
    base, index, scale, disp = place
    if base is None:
        scaled = 0x25 if index is None else 5 | (index & 7) << 3 | _SCALES[scale]
        return bytes((reg << 3 | 4, scaled)) + disp.to_bytes(4, "little", signed=True)
    low = base & 7
    if disp == 0 and low != 5:
        mod, end = reg << 3, b""
    else:
        eighth = disp // unit
        if -128 <= eighth < 128 and eighth * unit == disp:
            mod, end = reg << 3 | 0x40, _BYTES[eighth & 255]
        else:
            mod, end = reg << 3 | 0x80, disp.to_bytes(4, "little", signed=True)
    if index is not None:
        return bytes((mod | 4, _SCALES[scale] | (index & 7) << 3 | low)) + end
    if low == 4:
        return bytes((mod | 4, 0x24)) + end
    return _BYTES[mod | low] + end


@lru_cache(KEPT)
def general(name: str, size: int, reg: int | None = None, rm: Place | None = None, imm: int | None = None,
            first: int | None = None) -> bytes:  # fmt: skip
    """An instruction on general registers, with operands of `size` bytes.

    add or adc sbb and sub xor cmp test mov    reg, rm (register or memory); with `imm`: reg, or memory as `rm` if reg
        is None; with _store: memory `rm`, and reg, what is stored
    rol ror shl shr sar      reg (or memory as `rm`), by `imm` or by cl
    not neg inc dec mul imul1 div idiv     reg, or memory as `rm` (those from mul on: of rdx:rax)
    lea imul popcnt tzcnt lzcnt bsf bsr cmov*     reg, rm; imul with `imm`, too
    movzb movzw movsb movsw movsl     reg, of `size` bytes, from an 8, 16, 32-bit rm
    shlx shrx sarx bzhi bextr     reg, rm, by `first`;    andn pdep pext    reg, first, rm
    mulx    reg (high), first (low), rm
    set*     reg, or memory as `rm`;     bswap push pop    reg
    xchg     reg, memory;     xadd_lock, add_lock and the like, cmpxchg_lock     memory `rm`, reg
    call jmp     reg, or memory as `rm`;     prefetch*     memory as `rm`
    ret cdq cqo ud2 vzeroupper mfence rep_movsb ...     nothing

    Raises `OverflowError` for an immediate that does not fit.
    """
    stem, _, kind = name.partition("_")
    if stem in ARITHMETIC:
        n = ARITHMETIC[stem]
        front = b"\xf0" if kind == "lock" else b""
        if imm is None:
            opcode = n << 3 | (size > 1)
            if isinstance(rm, int):
                return _coded(b"", size, _BYTES[opcode], rm, reg)
            return _coded(front, size, _BYTES[opcode if kind else opcode | 2], reg, rm)
        place = rm if reg is None else reg
        if size > 1 and -128 <= imm < 128:
            return _one(size, 0x83, n, place, front) + _BYTES[imm & 255]
        end = _immediate(imm, size)
        if reg == RAX:
            return _wide(size) + _BYTES[n << 3 | 4 | (size > 1)] + end
        return _one(size, 0x81, n, place, front) + end
    if name == "movabs":
        assert reg is not None and imm is not None  # noqa: PT018
        return bytes((0x48 | reg >> 3, 0xB8 | reg & 7)) + _number(imm, 8)
    if stem == "mov":
        return _mov(size, reg, rm, imm, bool(kind))
    if name in PAIRS:
        front, opcode = PAIRS[name]
        if imm is not None:
            small = -128 <= imm < 128
            end = _BYTES[imm & 255] if small else _immediate(imm, size)
            return _coded(b"", size, b"\x6b" if small else b"\x69", reg, rm) + end
        return _coded(front, size, opcode, reg, rm, name in ("movzb", "movsb"))
    if name in TRIPLES:
        assert reg is not None and first is not None and rm is not None  # noqa: PT018
        pp, space, opcode = TRIPLES[name]
        return _vex(pp, space, opcode, size, reg, first, rm)
    place = rm if reg is None else reg
    if name == "test":
        if imm is None:
            opcode = b"\x85" if size > 1 else b"\x84"
            return _coded(b"", size, opcode, rm, reg) if isinstance(rm, int) else _coded(b"", size, opcode, reg, rm)
        end = _immediate(imm, size)
        if reg == RAX:
            return _wide(size) + (b"\xa9" if size > 1 else b"\xa8") + end
        return _one(size, 0xF7, 0, place) + end
    if name in SHIFTS:
        opcode = 0xD3 if imm is None else 0xD1 if imm == 1 else 0xC1
        code = _one(size, opcode, SHIFTS[name], place)
        return code if imm is None or imm == 1 else code + _BYTES[imm & 255]
    if name in UNARY:
        opcode, n = UNARY[name]
        return _one(size, opcode, n, place)
    if name in PLAIN:
        return PLAIN[name]
    if name in FETCHES:
        opcode, n = FETCHES[name]
        return _coded(b"", 4, bytes((0x0F, opcode)), n, place)
    return _rare(name, size, reg, rm, place)


def _rare(name: str, size: int, reg: int | None, rm: Place | None, place: Place | None) -> bytes:
    """The rest of `general`."""
    if name[:4] == "cmov":
        return _coded(b"", size, bytes((0x0F, 0x40 | CONDITIONS[name[4:]])), reg, rm)
    if name[:3] == "set":
        return _coded(b"", 4, bytes((0x0F, 0x90 | CONDITIONS[name[3:]])), 0, place, True)
    if name in ("push", "pop"):
        assert reg is not None
        return (b"\x41" if reg > 7 else b"") + _BYTES[(0x50 if name == "push" else 0x58) | reg & 7]
    if name == "bswap":
        assert reg is not None
        return _rex(size, 0, 0, reg >> 3, False) + bytes((0x0F, 0xC8 | reg & 7))
    if name in ("call", "jmp"):
        return _coded(b"", 4, b"\xff", 2 if name == "call" else 4, place)
    opcode = {"xchg": b"\x87", "xadd_lock": b"\x0f\xc1", "cmpxchg_lock": b"\x0f\xb1"}[name]
    if size == 1:
        opcode = opcode[:-1] + _BYTES[opcode[-1] - 1]
    return _coded(b"" if name == "xchg" else b"\xf0", size, opcode, reg, rm)


def _mov(size: int, reg: int | None, rm: Place | None, imm: int | None, store: bool) -> bytes:
    if imm is None:
        if isinstance(rm, int):
            return _coded(b"", size, b"\x89" if size > 1 else b"\x88", rm, reg)
        opcode = 0x88 | (size > 1) if store else 0x8A | (size > 1)
        return _coded(b"", size, _BYTES[opcode], reg, rm)
    if reg is None or (size == 8 and -(1 << 31) <= imm < 1 << 31):
        place = rm if reg is None else reg
        return _one(size, 0xC7, 0, place) + _immediate(imm, size)
    opcode = (0xB8 if size > 1 else 0xB0) | reg & 7
    front = b"\x66" if size == 2 else b""
    return front + _rex(size, 0, 0, reg >> 3, size == 1 and reg > 3) + _BYTES[opcode] + _number(imm, size)


def _number(value: int, size: int) -> bytes:
    """A number of `size` bytes, signed or not. Raises `OverflowError` for one that has more."""
    return value.to_bytes(size, "little", signed=value < 0)


def _immediate(value: int, size: int) -> bytes:
    """The immediate of an instruction on `size` bytes: four at most, which one on eight extends by the sign."""
    return value.to_bytes(4, "little", signed=True) if size == 8 else _number(value, size)


def _rex(size: int, r: int, x: int, b: int, low: bool) -> bytes:
    """The prefixes of an instruction; `low`: it works on the lowest byte of rsp, rbp, rsi or rdi."""
    rex = (size == 8) << 3 | r << 2 | x << 1 | b
    return _BYTES[0x40 | rex] if rex or low else b""


def _wide(size: int) -> bytes:
    """The prefix of an instruction on rax and its parts that has no ModRM."""
    return b"\x66" if size == 2 else b"\x48" if size == 8 else b""


def _one(size: int, opcode: int, n: int, place: Any, front: bytes = b"") -> bytes:
    """An instruction with one operand, whose opcode goes on in the field of the other; that of bytes is one less."""
    if size == 1:
        return _coded(front, 4, _BYTES[opcode - 1], n, place, True)
    return _coded(front, size, _BYTES[opcode], n, place)


def _coded(front: bytes, size: int, opcode: bytes, reg: Any, rm: Any, narrow: bool = False) -> bytes:
    """An instruction with ModRM; `narrow`: `rm` is a byte."""
    if size == 2:
        front = b"\x66" + front
    if isinstance(rm, int):
        low = (size == 1 and (reg > 3 or rm > 3)) or (narrow and rm > 3)
        return front + _rex(size, reg >> 3, 0, rm >> 3, low) + opcode + _BYTES[0xC0 | (reg & 7) << 3 | rm & 7]
    low = size == 1 and reg in range(4, 8)
    if isinstance(rm, str):
        return front + _rex(size, reg >> 3, 0, 0, low) + opcode + _BYTES[(reg & 7) << 3 | 5] + b"\0\0\0\0"
    base, index, _, _ = rm
    rex = _rex(size, reg >> 3, index >> 3 if index is not None else 0, base >> 3 if base is not None else 0, low)
    return front + rex + opcode + memory(reg & 7, rm)


def _vex(pp: int, space: int, opcode: int, size: int, reg: int, first: int, rm: Place) -> bytes:
    """A general instruction with three operands."""
    x, b, place = _place(reg, rm, 1)
    w = (size == 8) << 7
    return bytes((0xC4, (reg & 8) << 4 ^ x ^ b ^ 0xE0 | space, w | first << 3 ^ 0x78 | pp, opcode)) + place
