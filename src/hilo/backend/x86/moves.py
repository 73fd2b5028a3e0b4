"""Memory and vectors: loads and stores, whole and by masks, gathers and scatters. Imports x86.select and its
neighbours.

i1 lies in memory as a byte, 0 or 1. Lanes of 1 and 2 bytes are gathered out of the four aligned bytes around them, so
that nothing is touched that need not be there.
"""

from __future__ import annotations

from typing import Final

from hilo.backend.constants import known_lanes
from hilo.backend.x86 import constants, memory
from hilo.backend.x86.machine import MASK, NO, VECTOR, Address
from hilo.backend.x86.masks import mask_of
from hilo.backend.x86.memory import behind
from hilo.backend.x86.pieces import (
    MASKS,
    bits,
    clean,
    drop,
    everywhere,
    is_clean,
    join,
    mask_part,
    masked_move,
    part_type,
    parts,
    piece,
    value,
)
from hilo.backend.x86.select import Selector, Value, length, parts_of, selects
from hilo.backend.x86.shuffles import length_of
from hilo.loop.nodes import Node, VType

_SHORT_LOADS: Final = {4: "vmovd", 8: "vmovq_load"}
_SHORT_STORES: Final = {2: "vpextrw_store", 4: "vmovd_store", 8: "vmovq_store"}


def held(t: VType) -> VType:
    """The type that a value has in memory."""
    return t.with_scalar("i8") if t.scalar == "i1" else t


# ---- loads
def load_scalar(s: Selector, node: Node) -> Value:
    return memory.load(s, node) if len(node.args) == 1 else load_masked(s, node)


def load(s: Selector, node: Node) -> Value:
    """A vector; or what a mask lets through, zero elsewhere."""
    t = node.type
    if len(node.args) == 2:
        return load_masked(s, node)
    a = s.affine(node.args[0])
    if t.scalar == "i1":
        bytes_ = s.new(VECTOR)
        load_whole(s, held(t), a, bytes_)
        k = s.result(node)
        s.v("vptestmb", length_of(t.lanes), k, bytes_, bytes_)
        return k
    out = s.results(node)
    for i, r in enumerate(out):
        load_whole(s, part_type(t), behind(a, 64 * i), r)
    return value(out)


def load_whole(s: Selector, t: VType, a: Address, r: int) -> None:
    """All lanes of a vector of up to 64 bytes; zeros behind them."""
    bytes_ = t.lanes * t.size
    if bytes_ >= 16:
        s.v("vmovups", length_of(bytes_), r, NO, a)
    elif bytes_ > 2:
        s.v(_SHORT_LOADS[bytes_], 0, r, NO, a)
    else:
        none = s.new(VECTOR)
        s.v("vpxor", 0, none, none, none)
        s.v("vpinsrw", 0, r, none, a, imm=0)


def first_bytes(s: Selector, mask: Node, t: VType) -> int:
    """Where it is known that a mask is that of the first lanes, which a move without a mask does: how many bytes these
    are; else 0. What was stored by a mask cannot be loaded before it is in the cache."""
    found = s.facts.get((mask, t))
    if found is None:
        lanes = known_lanes(mask) if t.scalar != "i1" else None
        on = sum(lanes) if lanes is not None else 0
        bytes_ = on * t.size
        found = bytes_ if lanes is not None and bytes_ in (4, 8, 16, 32, 64) and all(lanes[:on]) else 0
        s.facts[mask, t] = found
    return found


def load_masked(s: Selector, node: Node) -> Value:
    ptr, mask = node.args
    t = node.type
    if t.lanes > 1 and t.lanes * t.size <= 64 and (bytes_ := first_bytes(s, mask, t)):
        drop(s, mask)
        a = s.affine(ptr)
        r = s.result(node)
        load_whole(s, VType("i8", bytes_), a, r)
        return r
    if t.lanes == 1:
        k = mask_of(s, mask, 1)
        r = s.result(node)
        s.v("vmovss" if t.size == 4 else "vmovsd", 0, r, NO, s.affine(ptr), mask=k, zero=True)
        return r
    m = held(t)
    full = m.lanes * m.size >= 16
    k = s.use(mask) if full else clean(s, mask)
    a = s.affine(ptr)
    if t.scalar == "i1":
        bytes_ = s.new(VECTOR)
        s.v("vmovdqu8", length_of(t.lanes), bytes_, NO, a, mask=k, zero=True)
        r = s.result(node)
        s.v("vptestmb", length_of(t.lanes), r, bytes_, bytes_)
        return r
    n = parts_of(t)
    out = s.results(node)
    for i, r in enumerate(out):
        s.v(masked_move(t), length(part_type(t)), r, NO, behind(a, 64 * i),
            mask=mask_part(s, k, t.lanes, i, n), zero=True)  # fmt: skip
    return value(out)


# ---- stores
def store(s: Selector, node: Node) -> Value:
    ptr, stored = node.args[:2]
    t = stored.type
    if t.lanes == 1:
        if len(node.args) == 2:
            return memory.store(s, node)
        k, x = mask_of(s, node.args[2], 1), s.use(stored)
        s.v("vmovss_store" if t.size == 4 else "vmovsd_store", 0, x, NO, s.affine(ptr), mask=k)
        return None
    mask = NO
    m = held(t)
    if len(node.args) == 3:
        if m.lanes * m.size <= 64 and (bytes_ := first_bytes(s, node.args[2], t)):
            drop(s, node.args[2])
            x = s.use(stored)
            store_whole(s, VType("i8", bytes_), x, s.affine(ptr), False)
            return None
        mask = s.use(node.args[2]) if m.lanes * m.size >= 16 else clean(s, node.args[2])
    xs = bytes_of(s, s.use(stored), t.lanes) if t.scalar == "i1" else parts(s, stored)
    a = s.affine(ptr)
    n, one = len(xs), part_type(m)
    aligned = bool(node.attrs.get("nontemporal")) and node.attrs["align"] >= min(64, m.lanes * m.size) >= 16
    for i, x in enumerate(xs):
        place = behind(a, 64 * i)
        if mask != NO:
            s.v(masked_move(m) + "_store", length(one), x, NO, place, mask=mask_part(s, mask, t.lanes, i, n))
        else:
            store_whole(s, one, x, place, aligned)
    return None


def store_whole(s: Selector, t: VType, x: int, place: Address, streams: bool) -> None:
    """All lanes of a vector of up to 64 bytes."""
    bytes_ = t.lanes * t.size
    if bytes_ >= 16:
        s.v("vmovntps_store" if streams else "vmovups_store", length_of(bytes_), x, NO, place)
    else:
        s.v(_SHORT_STORES[bytes_], 0, x, NO, place, imm=0 if bytes_ == 2 else None)


def bytes_of(s: Selector, mask: int, lanes: int) -> tuple[int, ...]:
    """Bytes 0 and 1 of a mask."""
    r = s.new(VECTOR)
    s.v("vpbroadcastb", length_of(lanes), r, NO, constants.label(b"\1"), mask=mask, zero=True)
    return (r,)


# ---- lanes of many places
def gathers(node: Node) -> bool:
    """Whether a gather is done here: of several lanes."""
    return node.type.lanes > 1 and node.args[1].type.scalar == "i64"


def gather(s: Selector, node: Node) -> Value:
    t = node.type
    lanes = t.lanes
    offsets = parts(s, node.args[1])
    mask = s.use(node.args[2]) if len(node.args) == 3 else NO
    if mask != NO and lanes < 8 and not is_clean(node.args[2], 8):
        mask = cut_to(s, mask, lanes)
    base = s.affine(node.args[0])
    if base.index != NO:
        base = Address(s.materialize(base))
    n = len(offsets)
    if held(t).size < 4:
        return gather_small(s, node, base, offsets, mask)
    made = []
    for i, o in enumerate(offsets):
        made.append(gathered(s, t, base, o, lanes // n, part_mask(s, mask, lanes, i, n)))
    bytes_ = lanes // n * t.size
    if bytes_ >= 64 or n == 1:
        return value(made)
    per = 64 // bytes_
    return value([join(s, made[i : i + per], bytes_, t.is_float)[0] for i in range(0, n, per)])


def cut_to(s: Selector, mask: int, lanes: int) -> int:
    r = s.new(MASK)
    s.v("kandb", 0, r, mask, bits(s, (1 << lanes) - 1, lanes))
    return r


def part_mask(s: Selector, mask: int, lanes: int, part: int, n: int) -> int:
    """A fresh mask register for a gather or scatter, which clears it."""
    per = lanes // n
    r = s.new(MASK)
    if mask == NO:
        if per == 8:
            s.v("kxnorw", 0, r, r, r)
        else:
            s.move(r, bits(s, (1 << per) - 1, per))
    elif part:
        s.v("kshiftr" + MASKS[lanes], 0, r, NO, mask, imm=part * per)
    else:
        s.move(r, mask)
    return r


def gathered(s: Selector, t: VType, base: Address, offsets: int, lanes: int, mask: int) -> int:
    """Up to 8 lanes of 4 or 8 bytes; zero where the mask is not set."""
    r = s.new(VECTOR)
    s.v("vxorps", 0, r, r, r)
    name = {4: "vgatherqps", 8: "vgatherqpd"}[t.size] if t.is_float else {4: "vpgatherqd", 8: "vpgatherqq"}[t.size]
    s.v(name, length_of(lanes * 8), r, NO, Address(base.base, offsets, 1, base.disp), mask=mask)
    return r


def gather_small(s: Selector, node: Node, base: Address, offsets: tuple[int, ...], mask: int) -> Value:
    """Lanes of 1 or 2 bytes: from four bytes at an address that four divides, shifted down."""
    t = held(node.type)
    n, lanes = len(offsets), node.type.lanes
    per = lanes // n
    size = length_of(per * 8)
    start = s.new(VECTOR)
    s.v("vpbroadcastq_general", size, start, NO, s.materialize(base))
    below, three = everywhere(s, -4, 8, 16 << size), everywhere(s, 3, 8, 16 << size)
    made = []
    for i, o in enumerate(offsets):
        at, shift = s.new(VECTOR), s.new(VECTOR)
        s.v("vpaddq", size, at, start, o)
        s.v("vpandq", size, shift, at, three)
        s.v("vpandq", size, at, at, below)
        words = gathered(s, VType("i32"), Address(NO), at, per, part_mask(s, mask, lanes, i, n))
        s.v("vpsllq", size, shift, NO, shift, imm=3)
        small = s.new(VECTOR)
        s.v("vpmovqd", size, small, NO, shift)
        narrow, half = s.new(VECTOR), length_of(per * 4)
        s.v("vpsrlvd", half, words, words, small)
        s.v("vpmovdb" if t.size == 1 else "vpmovdw", half, narrow, NO, words)
        made.append(narrow)
    joined = join(s, made, per * t.size)[0]
    if node.type.scalar != "i1":
        return joined
    k = s.result(node)
    s.v("vptestmb", length_of(lanes), k, joined, joined)
    return k


def scatters(node: Node) -> bool:
    """Whether a scatter is done here: of lanes of 4 or 8 bytes."""
    t = node.args[2].type
    return t.lanes > 1 and t.scalar != "i1" and t.size >= 4 and node.args[1].type.scalar == "i64"


def scatter(s: Selector, node: Node) -> Value:
    ptr, where, stored = node.args[:3]
    t = stored.type
    lanes = t.lanes
    offsets, xs = parts(s, where), parts(s, stored)
    mask = s.use(node.args[3]) if len(node.args) == 4 else NO
    if mask != NO and lanes < 8 and not is_clean(node.args[3], 8):
        mask = cut_to(s, mask, lanes)
    base = s.affine(ptr)
    if base.index != NO:
        base = Address(s.materialize(base))
    n = len(offsets)
    per = lanes // n
    name = {4: "vscatterqps", 8: "vscatterqpd"}[t.size] if t.is_float else {4: "vpscatterqd", 8: "vpscatterqq"}[t.size]
    for i, o in enumerate(offsets):
        at = i * per * t.size
        x = piece(s, xs[at // 64], at % 64, per * t.size, t.is_float)
        k = part_mask(s, mask, lanes, i, n)
        s.v(name, length_of(per * 8), x, NO, Address(base.base, o, 1, base.disp), mask=k)
    return None


def covers_load(node: Node) -> bool:
    return len(node.args) == 1 or node.type.lanes > 1 or node.type.is_float


def covers_store(node: Node) -> bool:
    return len(node.args) == 2 or node.args[1].type.lanes > 1 or node.args[1].type.is_float


selects("load", of="scalar", covers=covers_load)(load_scalar)
selects("load", of="vector")(load)
selects("store", of="scalar", covers=covers_store)(store)
selects("gather", of="vector", covers=gathers)(gather)
selects("scatter", of="scalar", covers=scatters)(scatter)
