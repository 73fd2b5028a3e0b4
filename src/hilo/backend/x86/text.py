"""Assembly in AT&T's syntax as calls of the assembler. Imports x86.

What `backend.x86_*` write: an instruction or directive in a line, operands separated by a comma and a blank, with none
within an address. What a line means is looked up when it was seen before, and so is every operand. That an instruction
has the operands that it takes is not checked, but for the number of a vector's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hilo.backend.x86.assembler import Assembler
from hilo.backend.x86.encode import Place, general, vector
from hilo.backend.x86.instructions import (
    ARITHMETIC,
    CONDITIONS,
    FETCHES,
    HALF_RESULTS,
    PAIRS,
    SHIFTS,
    TRIPLES,
    UNARY,
    VECTOR,
)
from hilo.errors import Error

_KEPT: Final = 1 << 15  # lines and operands that are kept
_GENERAL: Final = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di")
#: An operand: what it is (a letter), its value, the mask it is written under, are other lanes 0, to how many it goes.
#: Letters: x y z vectors, k masks, b w l q general registers by their size, i immediate, m memory, n a name's memory,
#: X Y Z memory by a vector of offsets.
_Operand = tuple[str, Place, int, bool, int]
_SIZES: Final = {"b": 1, "w": 2, "l": 4, "q": 8}
_STEMS: Final = {
    *ARITHMETIC, *SHIFTS, *UNARY, *PAIRS, *TRIPLES, *FETCHES, "mov", "movabs", "test", "push", "pop", "bswap", "xchg",
    "xadd", "cmpxchg", "jmp", "call", *(f"cmov{c}" for c in CONDITIONS), *(f"set{c}" for c in CONDITIONS),
}  # fmt: skip
_JUMPS: Final[dict[str, str | None]] = {"jmp": None, **{f"j{c}": c for c in CONDITIONS}}
_vector_code: Final = vector.__wrapped__  # lines are kept as a whole
_MEMORY: Final = "mnXYZ"
_COUNT_FIRST: Final = ("bzhi", "shlx", "sarx", "shrx", "bextr")  # what says how many bits is AT&T's first operand
_SHORT: Final = {*ARITHMETIC, "imul"}  # their immediates may be single bytes
_TO_MASKS: Final = ("vcmp", "vpcmp", "vptestm", "vptestnm", "vfpclass")  # their forms under VEX are not known here


_OPERANDS: Final[dict[str, _Operand]] = {}  # that were seen
_SEEN: Final[dict[str, bytes]] = {}  # lines that need nothing but their code
_MEANINGS: Final[dict[tuple[str, str], tuple[bool, str, int]]] = {}


def assemble(assembler: Assembler, lines: Iterable[str]) -> None:
    """Add what the lines say. Raises `Error` for what is not known here."""
    code, seen = assembler.code, _SEEN
    if len(seen) > _KEPT:
        seen.clear()
    public: set[str] = set()
    functions: set[str] = set()
    line = ""
    try:
        for line in lines:
            known = seen.get(line)
            if known is not None:
                code += known
                continue
            if (line[0] in ".jc" or line[-1] == ":") and _placed(assembler, line, public, functions):
                continue
            known, name, tail = _encoded(line)
            if name is None:
                code += known
                seen[line] = known
            else:
                assembler.emit(known, name, tail)
    except (KeyError, ValueError, TypeError, IndexError, OverflowError) as e:
        raise Error(f"assembly that is not known: {line!r}") from e


def _placed(assembler: Assembler, line: str, public: set[str], functions: set[str]) -> bool:
    """Do what a label, directive, jump or call says; not if it is another line."""
    what, _, rest = line.partition(" ")
    if line[-1] == ":":
        name = line[:-1]
        if name in functions:
            assembler.function(name, name not in public, 1)
        else:
            assembler.label(name)
    elif what in _JUMPS and rest[0] != "*":
        assembler.jump(rest, _JUMPS[what])
    elif what in ("call", "callq") and rest[0] != "*":
        assembler.call(rest)
    elif what == ".p2align":
        assembler.align(1 << int(rest))
    elif what == ".globl":
        public.add(rest)
    elif what == ".type":
        functions.add(rest.partition(",")[0])
    else:
        return what in (".text", ".size")
    return True


def _encoded(line: str) -> tuple[bytes, str | None, int]:
    """The code of a line, the name that it refers to, and the bytes behind the place for that."""
    mnemonic, _, rest = line.partition(" ")
    if mnemonic == "lock":
        stem, _, rest = rest.partition(" ")
        mnemonic = f"lock {stem}"
    elif not rest or mnemonic == "rep":
        return general("ret" if mnemonic == "retq" else line.replace(" ", "_"), 8), None, 0
    operands = [_OPERANDS.get(text) or _operand(text) for text in rest.split(", ")]
    kinds = "".join([o[0] for o in operands])
    meaning = _MEANINGS.get((mnemonic, kinds))
    if meaning is None:
        meaning = (_vector if mnemonic[0] in "vk" else _plain)(mnemonic, kinds)
        _MEANINGS[mnemonic, kinds] = meaning
    of_vectors, name, size = meaning
    imm: int | None = operands.pop(0)[1] if kinds[0] == "i" else None  # type: ignore[assignment]
    if not of_vectors:
        return _general(name, size, kinds, operands, imm)
    _, to, mask, zero, _ = operands[-1]
    _, source, _, _, broadcast = operands[0]
    first = operands[1][1] if len(operands) == 3 else None
    if kinds[-1] in _MEMORY:
        to, source = source, to
    if broadcast:
        size = _length(name, broadcast)
    code = _vector_code(name, size, to, first, source, mask, zero, imm, broadcast > 0)  # type: ignore[arg-type]
    if "n" in kinds:
        return code, str(source), 0 if imm is None else 1
    return code, None, 0


def _length(name: str, lanes: int) -> int:
    """Of an instruction whose operand in memory goes to so many lanes."""
    _, _, _, _, wide, unit, _ = VECTOR[name]
    return (lanes * (8 if wide else 4) * (64 // unit if unit > 0 else 1) // 16).bit_length() - 1


def _general(name: str, size: int, kinds: str, operands: list[_Operand],
             imm: int | None) -> tuple[bytes, str | None, int]:  # fmt: skip
    """The code of an instruction on general registers, as `_encoded` gives it."""
    to: Any = operands[-1][1]
    source: Any = operands[0][1]
    in_memory = kinds[-1] in _MEMORY
    if len(operands) == 3:
        first: Any = operands[1][1]
        if name in _COUNT_FIRST:
            source, first = first, source
        code = general(name, size, to, source, None, first)
    elif len(operands) == 1:
        if name in SHIFTS and imm is None:
            imm = 1
        source = to if name == "imul" else None
        code = general(name, size, None, to, imm) if in_memory else general(name, size, to, source, imm)
    elif name in SHIFTS:  # by cl
        code = general(name, size, None, to) if in_memory else general(name, size, to)
    else:
        code = general(name, size, source, to, imm) if in_memory else general(name, size, to, source, imm)
    if "n" not in kinds:
        return code, None, 0
    place = next(o[1] for o in operands if o[0] == "n")
    tail = 0
    if imm is not None and not (name in SHIFTS and imm == 1):
        tail = 1 if size == 1 or name in SHIFTS or (name in _SHORT and -128 <= imm < 128) else min(size, 4)
    return code, str(place), tail


def _vector(mnemonic: str, kinds: str) -> tuple[bool, str, int]:
    """What an instruction on vectors or masks with these kinds of operands is called here, and its length."""
    source, to = kinds.lstrip("i")[0], kinds[-1]
    widths = kinds.lower()
    length = 2 if "z" in widths else 1 if "y" in widths else 0
    if to in _MEMORY:
        end = "_store"
    elif to in "bwlq":
        end = "_from" if mnemonic[0] == "k" else "_general" if mnemonic in ("vmovd", "vmovq") else ""
        if "2si" in mnemonic or "2usi" in mnemonic:
            end = "q" if to == "q" else ""
    elif source in "bwlq":
        end = "_to" if mnemonic[0] == "k" else "_general" if mnemonic.startswith("vpbroadcast") else ""
    else:
        end = "_load" if mnemonic == "vmovq" else ""
    name = mnemonic + end
    if name not in VECTOR:
        name = mnemonic if mnemonic in VECTOR else mnemonic[:-1]
        if mnemonic[-1] in "xyz" and name != mnemonic:  # what memory does not tell
            length = "xyz".index(mnemonic[-1])
    if name in HALF_RESULTS and source in _MEMORY and name == mnemonic:
        length += 1
    if name not in VECTOR or (mnemonic.startswith(_TO_MASKS) and to != "k"):
        raise ValueError(mnemonic)
    return True, name, length


def _plain(mnemonic: str, kinds: str) -> tuple[bool, str, int]:
    """The same for other instructions, and the size of their operands."""
    mnemonic, lock = mnemonic.removeprefix("lock "), "_lock" if mnemonic[:5] == "lock " else ""
    stem, letter = mnemonic, kinds[-1]
    if mnemonic not in _STEMS and mnemonic[:-1] in _STEMS:
        stem, letter = mnemonic[:-1], mnemonic[-1]
    elif mnemonic not in _STEMS:
        raise ValueError(mnemonic)
    if stem == "imul" and len(kinds) == 1:
        stem = "imul1"
    elif not lock and kinds[-1] in _MEMORY and kinds[0] in "bwlq" and (stem == "mov" or stem in ARITHMETIC):
        stem += "_store"
    return False, stem + lock, _SIZES.get(letter, 8)


def _operand(text: str) -> _Operand:
    """What an operand says; kept while there is room."""
    bare, _, rest = text.partition("{")
    mask, zero, broadcast = 0, False, 0
    for note in rest.removesuffix("}").split("}{") if rest else ():
        if note[:2] == "%k":
            mask = int(note[2:])
        elif note == "z":
            zero = True
        elif note[:3] == "1to":
            broadcast = int(note[3:])
        else:
            raise ValueError(text)
    bare = bare.removeprefix("*")
    if bare[0] == "$":
        kind, value = "i", int(bare[1:], 0)
    else:
        kind, value = _register(bare) if bare[0] == "%" else _memory(bare)
    made = kind, value, mask, zero, broadcast
    if len(_OPERANDS) < _KEPT:
        _OPERANDS[text] = made
    return made


def _register(text: str) -> tuple[str, int]:
    """The kind and number of a register."""
    name = text[1:]
    if name[1:3] == "mm" and name[0] in "xyz":
        kind, number = name[0], int(name[3:])
    elif name[0] == "k":
        kind, number = "k", int(name[1:])
    elif name[1].isdigit() and name[0] == "r":
        kind = {"d": "l", "w": "w", "b": "b"}.get(name[-1], "q")
        number = int(name[1:].rstrip("dwb"))
    elif name[-1] == "l":
        kind, number = "b", _GENERAL.index(name[:-1] if len(name) == 3 else f"{name[0]}x")
    else:
        kind, number = {"r": "q", "e": "l"}[name[0]] if len(name) == 3 else "w", _GENERAL.index(name[-2:])
    if number >= {"k": 8, "x": 32, "y": 32, "z": 32}.get(kind, 16):
        raise ValueError(text)
    return kind, number


def _memory(text: str) -> tuple[str, Place]:
    """What an address says: name(%rip), or displacement(base,index,scale) with less or more of that."""
    disp, _, rest = text.partition("(")
    parts = rest.removesuffix(")").split(",") if rest else []
    if parts == ["%rip"]:
        return "n", disp
    base = _register(parts[0])[1] if parts and parts[0] else None
    kind, index = _register(parts[1]) if len(parts) > 1 else ("q", None)
    scale = int(parts[2]) if len(parts) > 2 else 1
    return "m" if kind == "q" else kind.upper(), (base, index, scale, int(disp, 0) if disp else 0)
