"""Machine code of single instructions is what LLVM's assembler makes of their lines, byte by byte."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from x86_lines import by_llvm

from hilo.backend.x86 import encode, syntax, text
from hilo.backend.x86.assembler import Assembler, fill
from hilo.backend.x86.disassemble import Instruction
from hilo.backend.x86.instructions import (
    ARITHMETIC,
    CONDITIONS,
    FETCHES,
    PLAIN,
    SHIFTS,
    TRIPLES,
    UNARY,
    VECTOR,
    WIDE_NAMES,
)

SLOT = 16  # bytes from one instruction to the next
#: All that changes how an address is written: rsp and r12, rbp and r13, none; no displacement, one that 8 bits hold as
#: it is, or in units of any size, and others.
PLACES = [
    (0, None, 1, 0), (4, None, 1, 8), (5, None, 1, 0), (13, 9, 8, 0), (12, None, 1, 256), (3, 13, 4, -64),
    (None, 2, 8, 64), (None, None, 1, 4096), (15, 15, 2, -8192), (6, 12, 1, 100000), (4, 5, 1, -8),
    (12, 12, 4, 127 * 64), "name",
]  # fmt: skip
# Registers from 8 to 15 as the last operand: LLVM exchanges operands to save a byte, which changes what NaNs come out.
LAST = {"x": (0, 7, 17, 31), "y": (1, 6, 25, 30), "z": (2, 12, 21, 28), "k": (1, 6), "l": (0, 3, 9, 13),
        "q": (1, 5, 8), "b": (0, 3, 6, 12), "w": (1, 7, 14)}  # fmt: skip
FIRST = {"x": (5, 15, 16), "y": (3, 9, 23), "z": (4, 11, 27), "k": (2, 5), "l": (2, 7, 10), "q": (3, 6, 12)}

SYNONYMS = ("c", "nc", "z", "nz")

ONE_SOURCE = (
    "vmov", "vbroadcast", "vpbroadcast", "vcvt", "vpmov", "vpabs", "vpopcnt", "vplzcnt", "vpconflict", "vsqrtp",
    "vrcp14p", "vrsqrt14p", "vgetexpp", "vgetmantp", "vroundp", "vrndscalep", "vreducep", "vucomi", "vcomi", "vptest",
    "vpshufd", "vpshufh", "vpshufl", "vexpand", "vpexpand", "vfpclass", "vpextr", "kmov", "knot", "kortest", "ktest",
    "kshift",
)  # fmt: skip
TWO_SOURCES = ("vmovhlps", "vmovlhps", "vmovlp", "vmovhp", "vcvtss2sd", "vcvtsd2ss", "vcvtne2ps2bf16", "vptestm",
               "vptestnm", "vcvtsi2", "vcvtusi2")  # fmt: skip
NO_MASK = (
    "vmovnt", "vmovd", "vmovq", "vmovhlps", "vmovlhps", "vmovlp", "vmovhp", "vucomi", "vcomi", "vpsadbw", "vpslldq",
    "vpsrldq", "vpmovm2", "vpmovb2", "vpmovw2", "vpmovd2", "vpmovq2", "vinsertps", "vpinsr", "vpextr", "vextractps",
    "vcvtsi", "vcvtusi",
)  # fmt: skip
MASKED_THOUGH = ("vmovdq", "vmovddup", "vpmovqd", "vpmovqw", "vpmovqb", "vpmovdw", "vpmovdb")
IMMEDIATE = ("vshuf", "vpshufd", "vpshufhw", "vpshuflw", "vpinsrw", "vpextrw", "vpslldq", "vpsrldq", "vprold",
             "vprolq", "vprord", "vprorq", "vcmp")  # fmt: skip
NOT_128 = ("vpermd", "vpermq", "vpermps", "vpermpd", "vshuff", "vshufi", "vinsertf", "vinserti", "vextractf",
           "vextracti", "vperm2", "vbroadcastsd", "vbroadcastf", "vbroadcasti")  # fmt: skip
NO_REGISTER = ("vmovnt", "vmovlp", "vmovhp")
NOT_FOR_ALL = ("vmov", "vpmov", "vcvtph2ps", "vpalignr", "vpslldq", "vpsrldq")


def shapes(key: str) -> Iterator[tuple[Any, ...]]:
    """Name, length, kinds of operands, number of sources, immediate, register and memory as source, of a form."""
    _, space, _, vex, evex, unit, how = VECTOR[key]
    name, by_number = key.removesuffix("_imm"), key.endswith("_imm")
    imm = 5 if by_number or space == 3 or name.startswith(IMMEDIATE) else None
    scalar = unit < 0 and how != "vsib" and syntax.kinds(name, 2, by_number)[0] in "xlqk"
    scalar = scalar and not name.startswith(("vextractf", "vextracti"))
    lone = scalar or how in ("l0", "l1") or name.startswith(("vpinsr", "vpextr")) or (unit == 0 and vex is not None)
    for length in range(1) if lone else range(2 if evex is None else 3):
        large = name.endswith(("32x8", "64x4"))
        if (length == 0 and name.startswith(NOT_128) and name != "vbroadcasti32x2") or (large and length < 2):
            continue
        kinds = syntax.kinds(name, length, by_number)
        sources = 1 if name.startswith(ONE_SOURCE) and not name.startswith(TWO_SOURCES) else 2
        if how in ("mr", "vsib") or how[:1] == "/" or (by_number and name.startswith("vperm")):
            sources = 1
        of_masks = name in ("kmovb", "kmovw", "kmovd", "kmovq") or (name[0] == "k" and name.endswith("_store"))
        memory = (unit != 0 or of_masks) and not name.startswith(("vmovhlps", "vmovlhps"))
        memory = memory and (length == 2 or name not in ("vpslldq", "vpsrldq"))
        whole = name.startswith("vbroadcast") and unit in (-16, -32)
        register = not (name.endswith("_store") or how == "vsib" or whole or name.startswith(NO_REGISTER))
        yield name, length, kinds, sources, imm, register, memory


def calls(key: str) -> Iterator[tuple[Any, ...]]:
    """What `encode.vector` may be asked for."""
    _, _, _, _, evex, unit, how = VECTOR[key]
    for name, length, (to, last), sources, imm, register, memory in shapes(key):
        middle = to if to in "xyz" else last if last in "xyz" else "k"
        masks = evex is not None and (not name.startswith(NO_MASK) or name.startswith(MASKED_THOUGH)) and to not in "lq"
        stores = how == "mr" and key.endswith("_store")
        lasts: list[Any] = list(LAST[last or "x"]) if register else []
        if how == "vsib":
            lasts = [(b, i, s, d) for b, i, s, d in product((0, 13), (16, 9), (1, 8), (0, 64, 1000))]
        elif memory:
            lasts += PLACES
        for n, rm in enumerate(lasts):
            reg = FIRST[last if stores and last in "xyz" else to][n % len(FIRST[to])]
            in_memory = not isinstance(rm, int)
            by_two = name in ("vmovss", "vmovsd") and not in_memory
            first = FIRST[middle][-1 - n % len(FIRST[middle])] if sources == 2 or by_two else None
            if evex is None and name not in WIDE_NAMES:
                reg, first, rm = reg & 15, first and first & 15, rm if in_memory else rm & 7
            mask = 3 if how == "vsib" else 0
            yield name, length, reg, first, rm, mask, False, imm, False
            if masks and how != "vsib":
                zero = to in "xyz" and not (in_memory and how == "mr") and n % 2 == 0
                yield name, length, reg, first, rm, 1 + n % 7, zero, imm, False
            for_all = unit in (32, 64) and (how in ("", "rm") or how[0] == "/") and evex is not None
            for_all = for_all and not name.startswith(NOT_FOR_ALL) and not name.endswith(("b", "w", "wd"))
            if in_memory and for_all:
                yield name, length, reg, first, rm, mask, False, imm, True


def agree(lines: list[str], codes: list[bytes]) -> None:
    """LLVM makes of each line what is its code, and so does `x86.text`; the code says what the line did."""
    made = by_llvm([part for line in lines for part in (line, f".p2align {SLOT.bit_length() - 1}")])
    for i, (line, code) in enumerate(zip(lines, codes, strict=True)):
        assert made[SLOT * i : SLOT * (i + 1)] == code + fill(SLOT - len(code)), line
        assembler = Assembler()
        text.assemble(assembler, [line])
        assert assembler.code == code, line
        read = Instruction(code, 0, lambda place: "name")
        assert (read.text, read.size) == (line, len(code))


@pytest.mark.parametrize("letter", ["k", "va", "vb", "vc", "vd", "ve", "vf", "vg", "vi", "vm", "vp", "vr", "vs", "vx"])
def test_vectors(letter: str) -> None:
    keys = [key for key in VECTOR.names() if key.startswith(letter)]
    if letter == "vm":
        keys += [key for key in VECTOR.names() if key[:2] in ("vu", "vo")]
    asked = list(dict.fromkeys(c for key in keys for c in calls(key)))
    # To and from memory there are vmovq_store and vmovq_load.
    asked = [c for c in asked if c[0] not in ("vmovq", "vmovq_general") or isinstance(c[4], int)]
    assert {c[0] for c in asked} >= {key.removesuffix("_imm") for key in keys}
    agree([syntax.vector(*c) for c in asked], [encode.vector(*c) for c in asked])


def general_calls() -> Iterator[tuple[Any, ...]]:
    """What `encode.general` may be asked for."""
    sizes = {1: (0, 3, 6, 12), 2: (1, 7, 14), 4: (0, 2, 5, 9), 8: (0, 4, 8, 13)}
    numbers = {1: (1, -5), 2: (3, -3, 1000), 4: (4, -128, 128, 1 << 30), 8: (1, 127, -129, 1 << 30)}
    for size, registers in sizes.items():
        places: list[Any] = [*registers, *PLACES]
        for n, rm in enumerate(places):
            reg, place = registers[n % len(registers)], (None, rm) if not isinstance(rm, int) else (rm, None)
            first = registers[-1 - n % len(registers)]
            for name in (*ARITHMETIC, "test", "mov"):
                yield name, size, reg, rm
                if not isinstance(rm, int) and name != "test":
                    yield f"{name}_store", size, reg, rm
                for imm in numbers[size]:
                    yield name, size, *place, imm
            for name in SHIFTS:
                yield name, size, *place
                yield name, size, *place, 1
                yield name, size, *place, 5
            for name in UNARY:
                yield name, size, *place
            if not isinstance(rm, int):
                yield from ((name, size, reg, rm) for name in ("xchg", "xadd_lock", "cmpxchg_lock", "or_lock"))
                yield "add_lock", size, None, rm, 3
                yield from ((name, 8, None, rm) for name in FETCHES)
            if size == 1:
                yield from ((f"set{c}", 1, *place) for c in CONDITIONS if c not in SYNONYMS)
                continue
            yield from ((name, size, reg, rm) for name in ("imul", "popcnt", "tzcnt", "lzcnt", "bsf", "bsr"))
            yield from ((f"cmov{c}", size, reg, rm) for c in CONDITIONS if c not in SYNONYMS)
            yield from (("imul", size, reg, rm, imm) for imm in numbers[size])
            yield from ((name, size, reg, rm) for name in ("movzb", "movsb"))
            if size > 2:
                yield from ((name, size, reg, rm) for name in ("movzw", "movsw"))
                yield from ((name, size, reg, rm, None, first) for name in TRIPLES)
            if size == 8:
                yield "movsl", size, reg, rm
                yield from ((name, size, *place) for name in ("call", "jmp"))
                if isinstance(rm, int):
                    yield from ((name, size, rm) for name in ("push", "pop", "bswap"))
                    yield "movabs", size, rm, None, -(1 << 40)
                    yield "mov", size, rm, None, 1 << 40
                else:
                    yield "lea", size, reg, rm


def test_general() -> None:
    asked: list[Any] = list(dict.fromkeys([*general_calls(), *((name, 8) for name in PLAIN)]))
    codes = [encode.general(*c) for c in asked]
    agree([syntax.general(*c) for c in asked], codes)
