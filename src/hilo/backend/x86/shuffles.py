"""Which instruction moves lanes as a shuffle asks for: a plan for one register made of one or two others.

Imports record alone. Lanes are named as in `shuffle` of loop/nodes.py, for sources that lie in one register each,
from its low end. Lengths are those of the encoder: 0, 1, 2 for 16, 32, 64 bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

from hilo.record import record, replace


@record(frozen=True)
class Plan:
    """An instruction that makes a register of others: `name` at `length`, in one of these forms:

    same     the source itself
    one      name a           imm      name imm, a
    two      name a, b        two_imm  name imm, a, b     swapped  name b, a
    index    name with indices of lanes, then a
    bytes    name with a, then indices of bytes
    table    name with a (overwritten), indices, then b
    blend    lanes of b where a bit of `imm` is set, of a elsewhere
    join     a and b end to end by `name`, then by another plan: `then`
    """

    form: str
    name: str = ""
    length: int = 0
    imm: int = 0
    where: tuple[int, ...] = ()  # indices
    size: int = 0  # bytes of an index
    then: Plan | None = None


#: By bytes of a lane: instructions for floats and for integers.
_UNPACK_LOW: Final = {1: "vpunpcklbw", 2: "vpunpcklwd", 4: "vpunpckldq", 8: "vpunpcklqdq"}
_UNPACK_HIGH: Final = {1: "vpunpckhbw", 2: "vpunpckhwd", 4: "vpunpckhdq", 8: "vpunpckhqdq"}
_FLOAT_UNPACK: Final = {"vpunpckldq": "vunpcklps", "vpunpcklqdq": "vunpcklpd",
                        "vpunpckhdq": "vunpckhps", "vpunpckhqdq": "vunpckhpd"}  # fmt: skip
_BROADCAST: Final = {1: "vpbroadcastb", 2: "vpbroadcastw", 4: "vpbroadcastd", 8: "vpbroadcastq"}
_FLOAT_BROADCAST: Final = {4: "vbroadcastss", 8: "vbroadcastsd"}
_PERMUTE: Final = {2: ("vpermw", "vpermw"), 4: ("vpermd", "vpermps"), 8: ("vpermq", "vpermpd")}
_TABLE: Final = {2: ("vpermt2w", "vpermt2w"), 4: ("vpermt2d", "vpermt2ps"), 8: ("vpermt2q", "vpermt2pd")}


def length_of(bytes_: int) -> int:
    """The length (0, 1, 2) of the smallest register that holds so many bytes."""
    return 0 if bytes_ <= 16 else 1 if bytes_ <= 32 else 2


@cache
def plan(size: int, lanes: int, mask: tuple[int, ...], floats: bool) -> Plan | None:
    """How to make a register of the lanes `mask` (numbers from 0 to 2 `lanes`) of one or two sources of `lanes` lanes
    of `size` bytes. The first source is used. None: not by one instruction or two that are at hand."""
    while size < 8 and not lanes % 2 and _pairs(mask):
        size, lanes, mask = 2 * size, lanes // 2, tuple(m // 2 for m in mask[::2])
    if max(mask) < lanes:
        return _contiguous(size, lanes, mask, floats) or _of_one(size, mask, floats)
    return _joined(size, lanes, mask, floats) or _of_two(size, lanes, mask, floats)


def _pairs(mask: Sequence[int]) -> bool:
    """Whether lanes are moved in pairs."""
    return not len(mask) % 2 and all(not a % 2 and b == a + 1 for a, b in zip(mask[::2], mask[1::2], strict=True))


def _groups(size: int, mask: Sequence[int]) -> list[tuple[int, ...]]:
    """The lanes of each 16 bytes of the result."""
    per = 16 // size
    return [tuple(mask[i : i + per]) for i in range(0, len(mask), per)]


def _pattern(size: int, lanes: int, mask: Sequence[int]) -> tuple[int, ...] | None:
    """Where all 16 bytes take their lanes from the same places of the same 16 bytes of the sources: the places, plus
    16 / size for those of the second source."""
    per = 16 // size
    found: set[tuple[int, ...]] = set()
    for g, group in enumerate(_groups(size, mask)):
        if any(m % lanes // per != g for m in group):
            return None
        found.add(tuple(m % lanes % per + (per if m >= lanes else 0) for m in group))
    return found.pop() if len(found) == 1 else None


def _quarters(size: int, mask: tuple[int, ...]) -> tuple[int, ...] | None:
    """The lanes of 16 bytes, where such are moved as a whole."""
    if size == 8 and _pairs(mask):
        return tuple(m // 2 for m in mask[::2])
    return None


def _imm(fields: Sequence[int], bits: int) -> int:
    return sum(f << bits * i for i, f in enumerate(fields))


# ---- of one source
def _contiguous(size: int, lanes: int, mask: tuple[int, ...], floats: bool) -> Plan | None:
    """Neighbours, in order."""
    start, total = mask[0], len(mask) * size
    if any(m != start + i for i, m in enumerate(mask)):
        return None
    at = start * size
    if at == 0:
        return Plan("same")
    kind = "f" if floats else "i"
    if at % 16 == 0 and total <= 16:
        if at == 16:
            return Plan("imm", f"vextract{kind}128", 1, 1)
        return Plan("imm", f"vextract{kind}32x4", 2, at // 16)
    if at == 32 and total == 32:
        return Plan("imm", f"vextract{kind}64x4", 2, 1)
    if at + total > 16:
        return None
    if at == 8:
        return Plan("imm", "vpermilpd", 0, 1) if floats else Plan("imm", "vpshufd", 0, 0xEE)
    if at == 4 and total == 4:
        return Plan("one", "vmovshdup", 0) if floats else Plan("imm", "vpshufd", 0, 0x55)
    return Plan("imm", "vpsrldq", 0, at)


def _of_one(size: int, mask: tuple[int, ...], floats: bool) -> Plan | None:
    n, total = len(mask), len(mask) * size
    if not any(mask):
        if floats and size >= 4:
            return Plan("one", "vmovddup" if size == 8 and total == 16 else _FLOAT_BROADCAST[size], length_of(total))
        return Plan("one", _BROADCAST[size], length_of(total))
    bytes_ = max(total, (max(mask) + 1) * size)
    length = length_of(bytes_)
    pattern = _pattern(size, 1 << 30, mask)
    if size == 4 and pattern is not None:
        return Plan("imm", "vpermilps" if floats else "vpshufd", length, _imm(pattern, 2))
    if size == 8 and all(m // 2 == i // 2 for i, m in enumerate(mask)):
        if not floats and pattern is not None:
            return Plan("imm", "vpshufd", length, _imm([x for p in pattern for x in (2 * p, 2 * p + 1)], 2))
        return Plan("imm", "vpermilpd", length, _imm([m % 2 for m in mask], 1))
    quarters = _quarters(size, mask)
    if quarters is not None and len(quarters) > 1:
        kind = "f" if floats else "i"
        return Plan("two_imm", f"vshuf{kind}64x2", length, _imm(quarters, length))
    if size == 8 and all(m // 4 == i // 4 for i, m in enumerate(mask)):
        fours = {mask[i : i + 4] for i in range(0, n, 4)}
        if len(fours) == 1:
            return Plan("imm", "vpermpd" if floats else "vpermq", max(length, 1), _imm([m % 4 for m in fours.pop()], 2))
    if size == 1:
        if bytes_ > 16 and any(m // 16 != i // 16 for i, m in enumerate(mask)):
            return None
        return Plan("bytes", "vpshufb", length, where=_filled([m % 16 for m in mask], 16 << length), size=1)
    length = max(length, 1 if size > 2 else 0)
    return Plan("index", _PERMUTE[size][floats], length, where=_filled(mask, (16 << length) // size), size=size)


def _filled(mask: Sequence[int], n: int) -> tuple[int, ...]:
    return (*mask, *(0,) * (n - len(mask)))


# ---- of two sources
def _joined(size: int, lanes: int, mask: tuple[int, ...], floats: bool) -> Plan | None:
    """One source behind the other."""
    if mask != tuple(range(2 * lanes)):
        return None
    return _join(size * lanes, floats)


def _join(bytes_: int, floats: bool) -> Plan | None:
    kind = "f" if floats else "i"
    if bytes_ == 32:
        return Plan("two_imm", f"vinsert{kind}64x4", 2, 1)
    if bytes_ == 16:
        return Plan("two_imm", f"vinsert{kind}128", 1, 1)
    name = _UNPACK_LOW.get(bytes_)
    return None if name is None else Plan("two", _FLOAT_UNPACK.get(name, name) if floats else name, 0)


def _of_two(size: int, lanes: int, mask: tuple[int, ...], floats: bool) -> Plan | None:
    total = len(mask) * size
    length = length_of(max(total, (max(m % lanes for m in mask) + 1) * size))
    per = 16 // size
    pattern = _pattern(size, lanes, mask)
    if pattern is not None:
        for names, first in ((_UNPACK_LOW, 0), (_UNPACK_HIGH, per // 2)):
            name = _FLOAT_UNPACK.get(names[size], names[size]) if floats else names[size]
            for form, offsets in (("two", (0, per)), ("swapped", (per, 0))):
                if pattern == tuple(first + i // 2 + offsets[i % 2] for i in range(len(pattern))):
                    return Plan(form, name, length)
    if all(m % lanes == i for i, m in enumerate(mask)):
        return Plan("blend", "", length, _imm([m >= lanes for m in mask], 1), size=size)
    if size == 4 and pattern is not None and len(pattern) == 4:
        sources = [p // 4 for p in pattern]
        if sources[0] == sources[1] and sources[2] == sources[3]:
            form = "swapped" if sources[0] else "two_imm"
            if form == "two_imm":
                return Plan(form, "vshufps", length, _imm([p % 4 for p in pattern], 2))
    if size == 8 and all(m % lanes // 2 == i // 2 and m // lanes == i % 2 for i, m in enumerate(mask)):
        return Plan("two_imm", "vshufpd", length, _imm([m % lanes % 2 for m in mask], 1))
    quarters = _quarters(size, mask)
    if quarters is not None and not lanes % 2 and len(quarters) == 1 << length:
        planned = _of_quarters(lanes // 2, quarters, length, "f" if floats else "i")
        if planned is not None:
            return planned
    if size == 1:
        joined = _join(lanes, False) if lanes <= 8 else None
        then = plan(1, 2 * lanes, mask, False)
        return None if joined is None or then is None else replace(joined, form="join", then=then)
    per_register = (16 << length) // size
    index = _filled([m if m < lanes else m - lanes + per_register for m in mask], per_register)
    return Plan("table", _TABLE[size][floats], length, where=index, size=size)


def _of_quarters(lanes: int, quarters: tuple[int, ...], length: int, kind: str) -> Plan | None:
    """Of 16 bytes at a time, of sources that have `lanes` of them."""
    half = len(quarters) // 2
    if quarters == (*range(half), *range(lanes, lanes + half)):
        return _join(16 * half, kind == "f")
    if [q >= lanes for q in quarters] == [False] * half + [True] * half:
        return Plan("two_imm", f"vshuf{kind}64x2", length, _imm([q % lanes for q in quarters], length))
    return None
