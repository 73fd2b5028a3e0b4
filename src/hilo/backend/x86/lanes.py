"""Lanes: broadcast, taken out, put in, moved, combined. Imports x86.select and its neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hilo.backend.x86.machine import GENERAL, MASK, NO, VECTOR
from hilo.backend.x86.masks import spread
from hilo.backend.x86.pieces import (
    INT,
    MASKS,
    PACKED,
    bits,
    broadcast_of,
    drop,
    follow,
    join,
    length_of_part,
    part_type,
    parts,
    piece,
    value,
)
from hilo.backend.x86.select import Selector, Value, length, parts_of, selects
from hilo.backend.x86.shuffles import plan
from hilo.backend.x86.uses import is_repeated
from hilo.loop.nodes import Node, VType

_COMBINE: Final = {"fadd": "vadd", "fmul": "vmul", "add": "vpadd", "and": "vpand", "or": "vpor", "xor": "vpxor",
                   "smax": "vpmaxs", "smin": "vpmins", "umax": "vpmaxu", "umin": "vpminu"}  # fmt: skip
_MUL: Final = {2: "vpmullw", 4: "vpmulld", 8: "vpmullq"}


# ---- one lane
@selects("splat", of="vector")
def splat(s: Selector, node: Node) -> Value:
    """One value in all lanes; loaded so where it comes from memory."""
    (x,) = node.args
    t, n = node.type, parts_of(node.type)
    if t.scalar == "i1":
        return spread(s, s.use(x), t.lanes, s.result(node))
    one = length(part_type(t))
    if x in s.lazy and x.kind == "lane" and t.size >= 4 and n == parts_of(x.args[0].type) == 1:
        return lane_everywhere(s, node, x)
    loads = x in s.lazy and x.kind == "load" and len(x.args) == 1
    if t.is_float:
        rm, _ = s.source(x)
        name = broadcast_of(t)
    elif loads:
        rm, name = s.affine(x.args[0]), "vpbroadcast" + INT[t.size]
    else:
        rm, name = s.use(x), f"vpbroadcast{INT[t.size]}_general"
    r = s.result(node) if n == 1 else s.new(VECTOR)
    s.v(name, one, r, NO, rm)
    return r if n == 1 else (r,) * n


def lane_everywhere(s: Selector, node: Node, x: Node) -> Value:
    """A lane of a vector in all lanes of another one."""
    v, index, t = x.args[0], x.attrs["index"], node.type
    p = plan(t.size, v.type.lanes, (index,) * t.lanes, t.is_float)
    assert p is not None
    a = s.use(v)
    return follow(s, p, a, a, s.result(node), t.is_float)


def place(s: Selector, t: VType, xs: Sequence[int], index: int) -> tuple[int, int]:
    """A register of a vector's that has lane `index` among its lowest 16 bytes, and where there."""
    at = index * t.size
    r = xs[at // 64]
    at %= 64
    return (piece(s, r, at & 48, 16, t.is_float) if at >= 16 else r), at % 16 // t.size


@selects("lane", of="scalar")
def lane(s: Selector, node: Node) -> Value:
    """A lane as a scalar."""
    v = node.args[0]
    t, index = v.type, node.attrs["index"]
    if t.scalar == "i1":
        return bit_of(s, node, s.use(v), index)
    return out_of(s, node, parts(s, v), t, index)


def bit_of(s: Selector, node: Node, mask: int, index: int) -> int:
    """A bit of a mask as a scalar."""
    r, t = s.result(node), s.new(GENERAL)
    s.v("kmovq_from", 0, t, NO, mask)
    s.move(r, t)
    if index:
        s.g("shr", 8, r, imm=index)
    s.g("and", 4, r, imm=1)
    return r


def out_of(s: Selector, node: Node, xs: Sequence[int], t: VType, index: int) -> int:
    """A lane of a vector of numbers, as a scalar."""
    register, i = place(s, t, xs, index)
    if t.is_float:
        return register if not i else piece(s, register, i * t.size, t.size, True)
    r = s.result(node)
    if not i:
        s.v("vmovq_general" if t.size == 8 else "vmovd_general", 0, r, NO, register)
    elif t.size == 2:
        s.v("vpextrw", 0, r, NO, register, imm=i)
    else:
        s.v("vpextr" + INT[t.size], 0, r, NO, register, imm=i)
    return r


@selects("insert", of="vector")
def insert(s: Selector, node: Node) -> Value:
    """A scalar in one lane."""
    v, a = node.args
    t, index = node.type, node.attrs["index"]
    if t.scalar == "i1":
        return insert_bit(s, node)
    xs = list(parts(s, v))
    x = s.use(a)
    at = index * t.size // 64
    i = index % (64 // t.size)
    one = part_type(t)
    if not t.is_float and one.lanes * t.size <= 16:
        r = s.result(node) if len(xs) == 1 else s.new(VECTOR)
        s.v("vpinsr" + INT[t.size], 0, r, xs[at], x, imm=i)
    else:
        k = bits(s, 1 << i, max(8, one.lanes))
        r = s.new(VECTOR)
        s.move(r, xs[at], min(64, t.lanes * t.size))
        name = broadcast_of(t) if t.is_float else f"vpbroadcast{INT[t.size]}_general"
        s.v(name, length(one), r, NO, x, mask=k)
    xs[at] = r
    return value(xs)


def insert_bit(s: Selector, node: Node) -> int:
    """A bit in one lane of a mask."""
    v, a = node.args
    lanes, index = node.type.lanes, node.attrs["index"]
    w = MASKS[lanes]
    mask, x = s.use(v), s.use(a)
    one, rest, r = s.new(MASK), s.new(MASK), s.result(node)
    t = s.new(GENERAL)
    s.g("movzb", 4, t, x)
    if index:
        s.g("shl", 8, t, imm=index)
    s.v("kandn" + w, 0, rest, bits(s, 1 << index, lanes), mask)
    s.v("kmovq_to", 0, one, NO, t)
    s.v("kor" + w, 0, r, rest, one)
    return r


# ---- lanes moved
def pieces_of(t: VType, out: VType, mask: Sequence[int]) -> list[tuple[list[int], tuple[int, ...]]] | None:
    """For each register of a shuffle's result: which registers of the operands it is made of, two at most, and the
    lanes of these."""
    held = part_type(t).lanes
    per = part_type(out).lanes
    made = []
    for at in range(0, len(mask), per):
        wanted = mask[at : at + per]
        used = list(dict.fromkeys(m // held for m in wanted))
        if len(used) > 2:
            return None
        made.append((used, tuple(used.index(m // held) * held + m % held for m in wanted)))
    return made


def shuffles(node: Node) -> bool:
    """Whether the lanes of a shuffle can be moved here."""
    t, mask = node.args[0].type, node.attrs["mask"]
    if t.scalar == "i1":
        return bits_moved(t.lanes, mask) is not None
    if t.lanes == 1:
        return node.args[0].type.lanes == 1 and node.type.lanes <= 2
    found = pieces_of(t, node.type, mask)
    return found is not None and all(
        plan(t.size, part_type(t).lanes, wanted, t.is_float) is not None for _, wanted in found
    )


@selects("shuffle", covers=shuffles)
def shuffle(s: Selector, node: Node) -> Value:
    a, b = node.args
    t, out, mask = a.type, node.type, node.attrs["mask"]
    if t.scalar == "i1":
        return shuffle_bits(s, node)
    if t.lanes == 1:
        return of_scalars(s, node)
    if a in s.lazy and is_repeated(node):
        return repeated(s, node)
    xs = (*parts(s, a), *parts(s, b))
    if out.lanes == 1:
        return out_of(s, node, (xs[mask[0] // part_type(t).lanes],), t, mask[0] % part_type(t).lanes)
    found = pieces_of(t, out, mask)
    assert found is not None
    made = []
    for used, wanted in found:
        p = plan(t.size, part_type(t).lanes, wanted, t.is_float)
        assert p is not None
        first, second = xs[used[0]], xs[used[-1]]
        if len(found) > 1 or p.form in ("table", "join"):
            made.append(follow(s, p, first, second, s.new(VECTOR), t.is_float))
        else:
            made.append(follow(s, p, first, second, s.result(node), t.is_float))
    return value(made)


def repeated(s: Selector, node: Node) -> Value:
    """What lies in memory, several times."""
    a, b = node.args
    if b is not a:
        drop(s, b)
    bytes_, size = a.type.lanes * a.type.size, length_of_part(node.type)
    name = {8: "vbroadcastsd" if size else "vmovddup", 16: "vbroadcastf32x4", 32: "vbroadcastf32x8"}[bytes_]
    place = s.affine(a.args[0])
    r = s.result(node)
    s.v(name, size, r, NO, place)
    return r


def of_scalars(s: Selector, node: Node) -> Value:
    """A shuffle of two scalars."""
    chosen = [node.args[m] for m in node.attrs["mask"]]
    for a in node.args:
        if a not in chosen:
            s.use(a)
    t = node.type
    if t.lanes == 1:
        return s.use(chosen[0])
    registers = []
    for a in dict.fromkeys(chosen):
        r = s.use(a)
        if not t.is_float:
            r, x = s.new(VECTOR), r
            s.v("vmovq" if t.size == 8 else "vmovd", 0, r, NO, x)
        registers.append(r)
    return join(s, [registers[0], registers[-1]], t.size, t.is_float)[0]


# ---- bits of masks moved
def bits_moved(lanes: int, mask: tuple[int, ...]) -> str | None:
    """How bits of masks of `lanes` lanes are moved: "shift" (neighbours), "twice" (each twice, side by side), "words"
    (as lanes of 16 bits); None: not here."""
    if max(mask) < lanes and all(m == mask[0] + i for i, m in enumerate(mask)):
        return "shift"
    if mask == tuple(i // 2 for i in range(len(mask))) and len(mask) <= 64:
        return "twice"
    return "words" if lanes <= 32 and len(mask) <= 32 and plan(2, lanes, _first_used(lanes, mask), False) else None


def _first_used(lanes: int, mask: tuple[int, ...]) -> tuple[int, ...]:
    """The mask, with the operands exchanged where the first one is not used."""
    return mask if min(mask) < lanes else tuple(m - lanes for m in mask)


def shuffle_bits(s: Selector, node: Node) -> Value:
    a, b = node.args
    lanes, mask = a.type.lanes, node.attrs["mask"]
    how = bits_moved(lanes, mask)
    x, y = s.use(a), s.use(b)
    if len(mask) == 1:
        return bit_of(s, node, x if mask[0] < lanes else y, mask[0] % lanes)
    r = s.result(node)
    if how == "shift":
        if not mask[0]:
            return x
        s.v("kshiftr" + MASKS[lanes], 0, r, NO, x, imm=mask[0])
    elif how == "twice":
        twice(s, x, len(mask), r)
    else:
        words = []
        for k in dict.fromkeys((x, y)):
            v = s.new(VECTOR)
            s.v("vpmovm2w", length(VType("i16", lanes)), v, NO, k)
            words.append(v)
        if min(mask) >= lanes:
            words.reverse()
        wanted = _first_used(lanes, mask)
        p = plan(2, lanes, wanted, False)
        assert p is not None
        moved = follow(s, p, words[0], words[max(wanted) >= lanes and len(words) > 1], s.new(VECTOR), False)
        s.v("vpmovw2m", length(VType("i16", len(mask))), r, NO, moved)
    return r


def twice(s: Selector, mask: int, lanes: int, r: int) -> None:
    """Each bit twice, side by side: `lanes` of them."""
    t, every, spread_, doubled = (s.new(GENERAL) for _ in range(4))
    size = 8 if lanes == 64 else 4
    s.v("kmovq_from", 0, t, NO, mask)
    s.g("mov", size, every, imm=(1 << lanes) // 3)
    s.g("pdep", size, spread_, every, first=t)
    s.g("lea", size, doubled, (spread_, spread_, 2, 0))  # type: ignore[arg-type]
    s.v("kmovq_to", 0, r, NO, doubled)


# ---- lanes combined
@selects("across", of="scalar", covers=lambda node: node.args[0].type.size > 1)
def across(s: Selector, node: Node) -> Value:
    """All lanes combined: the lower half with the upper half, until one is left."""
    (v,), how = node.args, node.attrs["how"]
    t = v.type
    xs = list(parts(s, v))
    name = _MUL[t.size] if how == "mul" else _COMBINE[how]
    if how in ("and", "or", "xor"):
        name += "q" if t.size == 8 else "d"
    elif how != "mul":
        name += PACKED[t.size] if t.is_float else INT[t.size]
    while len(xs) > 1:
        half = len(xs) // 2
        made = []
        for low, high in zip(xs[:half], xs[half:], strict=True):
            r = s.new(VECTOR)
            s.v(name, 2, r, low, high)
            made.append(r)
        xs = made
    x, bytes_ = xs[0], min(64, t.lanes * t.size)
    while bytes_ > t.size:
        bytes_ //= 2
        high = piece(s, x, bytes_, bytes_, t.is_float)
        r = s.result(node) if t.is_float and bytes_ == t.size else s.new(VECTOR)
        s.v(name, 0 if bytes_ <= 16 else 1, r, x, high)
        x = r
    return x if t.is_float else out_of(s, node, (x,), t, 0)

