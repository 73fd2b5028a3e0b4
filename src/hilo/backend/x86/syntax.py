"""Instructions as text in AT&T's syntax: for people, and for other assemblers. Imports x86.

The reverse of `x86.text`: what `encode.vector` and `encode.general` are asked for, as a line.
"""

from __future__ import annotations

from typing import Any, Final

from hilo.backend.x86.encode import Place
from hilo.backend.x86.instructions import (
    ARITHMETIC,
    BY_NUMBER,
    FETCHES,
    HALF_RESULTS,
    PAIRS,
    PLAIN,
    SHIFTS,
    TRIPLES,
    UNARY,
    VECTOR,
    WIDE_NAMES,
    Form,
)

_NAMES: Final = ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di")
_LETTERS: Final = {1: "b", 2: "w", 4: "l", 8: "q"}
_TO_GENERAL: Final = ("vmovd_general", "vmovq_general", "vmovmsk", "vpmovmskb", "vpextr", "vextractps")
_TO_MASK: Final = ("vcmp", "vpcmp", "vptestm", "vptestnm", "vfpclass")


def register(kind: str, number: int) -> str:
    """A register: `kind` is one of x y z k b w l q, as in `x86.text`."""
    if kind in "xyz":
        return f"%{kind}mm{number}"
    if kind == "k":
        return f"%k{number}"
    if number > 7:
        return f"%r{number}{'' if kind == 'q' else {'l': 'd'}.get(kind, kind)}"
    name = _NAMES[number]
    return {"q": f"%r{name}", "l": f"%e{name}", "w": f"%{name}", "b": f"%{name[0] if number < 4 else name}l"}[kind]


def _form(name: str, imm: bool) -> Form:
    return VECTOR[f"{name}_imm" if imm and name in BY_NUMBER else name]


def kinds(name: str, length: int, imm: bool = False) -> tuple[str, str]:
    """What the destination and the last source of an instruction on vectors are when they are registers; of those that
    store, what is stored and where. A letter of `register`, or "" where there is no register."""
    _, _, _, _, _, unit, how = _form(name, imm)
    full = "xyz"[length]

    def part(n: int) -> str:
        return "xyz"[max(length - n, 0)]

    if name[0] == "k":
        return ("l" if name[4] != "q" else "q") if name.endswith("_from") else "k", (
            ("l" if name[4] != "q" else "q") if name.endswith("_to") else "k")  # fmt: skip
    if name.startswith(_TO_MASK) or name.endswith("2m"):
        scalar = unit in (-4, -8) and name.endswith(("ss", "sd"))
        return "k", "x" if scalar else full
    if name.startswith("vpmovm2"):
        return full, "k"
    if how == "vsib":  # the second one is the index
        return part(name.endswith(("qd", "qps"))), part(name.endswith(("dq", "dpd")))
    if "2si" in name or "2usi" in name:
        return "q" if name[-1] == "q" else "l", "x"
    if "si2s" in name:
        return "x", "q" if name[-1] == "q" else "l"
    if name.startswith(_TO_GENERAL) and not name.endswith("_store"):
        wide = name in ("vmovq_general", "vpextrq")
        return "q" if wide else "l", full if "msk" in name else "x"
    if name in ("vmovd", "vmovq") or name.startswith("vpinsr") or name.endswith("_general"):
        wide = name in ("vmovq", "vpinsrq", "vpbroadcastq_general")
        return full if name.endswith("_general") else "x", "q" if wide else "l"
    if name.startswith(("vextract", "vinsert")):
        small = "x" if unit == -16 or name == "vinsertps" else "y"
        return (small, full) if how == "mr" else (full if name != "vinsertps" else "x", small)
    if name.startswith("vbroadcast"):
        return full, "x" if unit in (-4, -8) else ""
    if name.startswith(("vcompress", "vpcompress", "vexpand", "vpexpand")):
        return full, full
    if name in HALF_RESULTS:
        return part(1), full
    if unit > 0:
        small = part({64: 0, 32: 1, 16: 2, 8: 3}[unit])
        return (small, full) if how == "mr" and unit < 64 else (full, small)
    return (full, "x") if unit == -16 or name.startswith("vpbroadcast") else ("x", "x")


def vector(name: str, length: int, reg: int, first: int | None, rm: Place, mask: int = 0, zero: bool = False,
           imm: int | None = None, broadcast: bool = False) -> str:  # fmt: skip
    """The line of `encode.vector`."""
    to, source = kinds(name, length, imm is not None)
    _, _, _, _, evex, unit, how = _form(name, imm is not None)
    in_register = isinstance(rm, int)
    plain = name.partition("_")[0].removesuffix("q") if "si2" in name or "2si" in name or "2usi" in name else (
        name.partition("_")[0])  # fmt: skip
    if "si2s" in name:
        plain += source
    elif not in_register and not broadcast and name.startswith("vfpclassp"):
        plain += "xyz"[length]  # which nothing else tells
    elif not in_register and not broadcast and name in HALF_RESULTS and length < 2:
        plain += "xy"[length]
    if name in WIDE_NAMES and (length == 2 or mask or max(reg, first or 0, rm if isinstance(rm, int) else 0) > 15):
        plain = WIDE_NAMES[name].partition("_")[0]
    notes = (f"{{%k{mask}}}" if mask else "") + ("{z}" if zero else "")
    last = register(source, rm) if isinstance(rm, int) else place(rm, source if how == "vsib" else "q")
    if broadcast:
        width = 8 if evex else 4
        last += f"{{1to{(16 << length) // (width if unit == 64 else 2 * width)}}}"
    middle = "" if first is None else register(to if to in "xyz" else source if source in "xyz" else "k", first)
    numbers = "" if imm is None else f"${imm}"
    if not in_register and (name.endswith("_store") or how == "mr" or "scatter" in name):
        stored = source if how == "mr" and not name.endswith("_store") else to
        operands = [numbers, register(stored, reg), last + notes]
    else:
        operands = [numbers, last, middle, register(to, reg) + notes]
    return f"{plain} " + ", ".join(o for o in operands if o)


def place(rm: Place, index_kind: str = "q") -> str:
    """An address. `index_kind`: what the index is."""
    if isinstance(rm, str):
        return f"{rm}(%rip)"
    assert not isinstance(rm, int)
    base, index, scale, disp = rm
    inside = register("q", base) if base is not None else ""
    if index is not None:
        inside += f",{register(index_kind, index)},{scale}"
    return f"{disp or ''}({inside})" if inside else str(disp)


def general(name: str, size: int, reg: int | None = None, rm: Place | None = None, imm: int | None = None,
            first: int | None = None) -> str:  # fmt: skip
    """The line of `encode.general`."""
    if name in PLAIN:
        return {"ret": "retq", "cqo": "cqto", "cdq": "cltd"}.get(name, name.replace("_", " "))
    stem, _, kind = name.partition("_")
    letter = _LETTERS.get(size, "")  # those without a size have none
    front = "lock " if kind == "lock" else ""
    one = register(letter, reg) if reg is not None else ""
    number = "" if imm is None else f"${imm}"

    def other(letter: str = letter) -> str:
        return register(letter, rm) if isinstance(rm, int) else place(rm) if rm is not None else ""

    if stem in FETCHES:
        return f"{stem} {other()}"
    if stem[:3] == "set":
        return f"{stem} {register('b', reg) if reg is not None else other()}"
    if stem in ("call", "jmp"):
        return f"{stem}q *{register('q', reg) if reg is not None else other()}"
    if stem in SHIFTS:
        return f"{stem}{letter} {number or '%cl'}, {one or other()}"
    if stem in TRIPLES:
        text = f"{stem}{letter} "
        between = register(letter, first or 0)
        last = (between, other()) if stem in ("bzhi", "shlx", "sarx", "shrx", "bextr") else (other(), between)
        return text + ", ".join((*last, one))
    if stem in PAIRS and stem[:3] == "mov":
        return f"{stem}{letter} {other({'b': 'b', 'w': 'w', 'l': 'l'}[stem[-1]])}, {one}"
    operands: tuple[Any, ...] = (number, other(), one)
    if kind or (imm is None and stem in ("test", "xchg") and not isinstance(rm, int)):
        operands = (number, one, other())
    if stem in UNARY or stem in ("push", "pop", "bswap"):
        operands = (one or other(),)
    if stem == "mov" and size == 8 and imm is not None and not -(1 << 31) <= imm < 1 << 31:
        stem = "movabs"
    stem = {"imul1": "imul"}.get(stem, stem)
    assert stem in ARITHMETIC or operands
    return f"{front}{stem}{letter} " + ", ".join(o for o in operands if o)
