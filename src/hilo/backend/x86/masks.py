"""Masks: compares of vectors and of floats, logic on i1 vectors, selections, and what is made of masks. Imports
x86.select and its neighbours.

A mask lies in one mask register; its bits beyond the lanes are undefined. What depends on them cuts them off
(`pieces.clean`).
"""

from __future__ import annotations

from typing import Final

from hilo.backend.constants import known_lanes
from hilo.backend.x86 import constants
from hilo.backend.x86.bits import logic as numbers_logic
from hilo.backend.x86.floats import PREDICATES
from hilo.backend.x86.machine import GENERAL, MASK, NO, VECTOR
from hilo.backend.x86.pieces import (
    INT,
    MASKS,
    bits,
    clean,
    is_memory,
    join_masks,
    last,
    lasts,
    length_of_part,
    mask_part,
    numbers,
    parts,
    suffix,
)
from hilo.backend.x86.select import CONDITIONS, Selector, Value, length, parts_of, selects
from hilo.backend.x86.shuffles import length_of
from hilo.loop.nodes import Node

_INT_PREDICATES: Final = {"eq": 0, "lt": 1, "le": 2, "ne": 4, "ge": 5, "gt": 6}
_SWAPPED: Final = {"olt": "ogt", "ogt": "olt", "ole": "oge", "oge": "ole", "slt": "sgt", "sgt": "slt", "sle": "sge",
                   "sge": "sle", "ult": "ugt", "ugt": "ult", "ule": "uge", "uge": "ule"}  # fmt: skip


# ---- compares
def compare(s: Selector, node: Node, mask: int = NO, inverted: bool = False) -> int:
    """A compare of vectors, or of scalar floats, into a mask register; of the lanes of `mask` alone, if there is one
    (for values of one part)."""
    a, b = node.args
    t, pred = a.type, node.attrs["pred"]
    if t.scalar == "i1":
        return compare_bits(s, node)
    lanes = known_lanes(node) if not t.is_float and a.kind == "iota" else None
    if lanes is not None and mask == NO:
        return bits(s, sum(1 << i for i, v in enumerate(lanes) if bool(v) != inverted), t.lanes)
    if t.lanes >= 16 and t.scalar == "i64" and a.kind == "iota" and pred == "slt" and b.kind == "splat":
        return first_lanes(s, node, b, inverted)
    if is_memory(s, a) and not is_memory(s, b):
        a, b, pred = b, a, _SWAPPED.get(pred, pred)
    if (pred == "eq" or pred == "ne") and b.const == 0 and parts_of(t) == 1:
        return tested(s, node, a, mask, (pred == "ne") != inverted)
    if t.is_float:
        name, imm = "vcmp" + suffix(t), PREDICATES[pred]
        imm = INVERSE[imm] if inverted else imm
    else:
        order = pred[1:] if pred[0] in "su" and pred != "une" else pred
        name, imm = f"vpcmp{'u' if pred[0] == 'u' else ''}{INT[t.size]}", _INT_PREDICATES[order] ^ 4 * inverted
    firsts, seconds = parts(s, a), lasts(s, b)
    size, made = length_of_part(t), []
    for first, (rm, broadcast) in zip(firsts, seconds, strict=True):
        k = s.result(node) if len(firsts) == 1 and t.lanes > 1 and mask == NO else s.new(MASK)
        s.v(name, size, k, first, rm, mask=mask, broadcast=broadcast, imm=imm)
        made.append(k)
    if len(made) == 1:
        return made[0]
    return tuple(made) if node in s.seen.split else join_masks(s, made, t.lanes // len(made))  # type: ignore[return-value]


def tested(s: Selector, node: Node, x: Node, mask: int, wanted: bool) -> int:
    """Which lanes of integers are not 0, or are; without the `and` that makes them, if that waits."""
    t = x.type
    if x in s.lazy and x.kind == "and":
        a, b = x.args
        if is_memory(s, a) and not is_memory(s, b):
            a, b = b, a
        first = s.use(a)
        rm, broadcast = last(s, b)
    else:
        first = s.use(x)
        rm, broadcast = first, False
    k = s.result(node) if mask == NO else s.new(MASK)
    s.v(f"vptest{'' if wanted else 'n'}m{INT[t.size]}", length(t), k, first, rm, mask=mask, broadcast=broadcast)
    return k


#: The opposite of each predicate on floats, true for unordered ones where that is false for them.
INVERSE: Final = {0: 4, 4: 0, 1: 5, 2: 6, 3: 7, 7: 3, 13: 9, 14: 10}


def compare_bits(s: Selector, node: Node) -> int:
    """A compare of i1 vectors."""
    a, b = (s.use(x) for x in node.args)
    lanes, pred = node.type.lanes, node.attrs["pred"]
    w = MASKS[lanes]
    if pred in ("eq", "ne"):
        r = s.result(node)
        s.v(("kxnor" if pred == "eq" else "kxor") + w, 0, r, a, b)
        return r
    # As signed numbers they are 0 and -1.
    if pred in ("ugt", "uge", "slt", "sle"):
        a, b = b, a
    r = s.result(node) if pred in ("ult", "ugt", "slt", "sgt") else s.new(MASK)
    if pred in ("ult", "ugt", "slt", "sgt"):  # not a, and b
        s.v("kandn" + w, 0, r, a, b)
        return r
    s.v("kandn" + w, 0, r, b, a)  # not (a and not b)
    out = s.result(node)
    s.v("knot" + w, 0, out, NO, r)
    return out


def first_lanes(s: Selector, node: Node, count: Node, inverted: bool) -> int:
    """The mask of the first lanes, as many as a splat of an i64 says, which may be any: as a byte that is saturated; or
    the mask of the others."""
    lanes = node.type.lanes
    n = s.new(VECTOR)
    if count in s.lazy:
        s.v("vmovq", 0, n, NO, s.use(count.args[0]))
        s.v("vpmovsqb", 0, n, NO, n)
    else:
        s.v("vpmovsqb", 0, n, NO, parts(s, count)[0])
    size = length_of(lanes)
    s.v("vpbroadcastb", size, n, NO, n)
    table = numbers(range(lanes), 1)
    r = s.result(node)
    s.v("vpcmpb", size, r, n, s.keep(("load", size, constants.label(table))), imm=2 if inverted else 6)
    return r


@selects("cmp", of="vector")
def compared(s: Selector, node: Node) -> Value:
    """A compare as a value."""
    return compare(s, node)


# ---- logic
@selects("and", "or", "xor", of="vector")
def logic(s: Selector, node: Node) -> Value:
    """and, or, xor, of numbers too. Of masks: a compare that waits for its use is done for the lanes of the other one
    alone."""
    if node.type.scalar != "i1":
        return numbers_logic(s, node) if node not in s.seen.rotations else rotate(s, node)
    a, b = node.args
    if node in s.seen.split:
        return logic_in_parts(s, node)
    kind, w = node.kind, MASKS[node.type.lanes]
    if kind == "xor" and b.const:
        if is_waiting(s, a):
            return compare(s, a, inverted=True)
        x = s.use(a)
        r = s.result(node)
        s.v("knot" + w, 0, r, NO, x)
        return r
    if kind == "and":
        if is_waiting(s, a) and not is_waiting(s, b):
            a, b = b, a
        for x, y in ((a, b), (b, a)):
            if is_waiting(s, y) and is_plain(y):
                return compare(s, y, mask=s.use(x))
            if is_waiting_not(s, y):
                return negated_and(s, node, x, y)
    x, y = s.use(a), s.use(b)
    r = s.result(node)
    s.v("k" + kind + w, 0, r, x, y)
    return r


def rotate(s: Selector, node: Node) -> Value:
    x, by = s.seen.rotations[node]
    t = node.type
    sources = s.parts(x)
    places = s.results(node)
    for r, a in zip(places, sources, strict=True):
        s.v("vprold" if t.size == 4 else "vprolq", length_of_part(t), r, NO, a, imm=by)
    return places if places[1:] else places[0]


def logic_in_parts(s: Selector, node: Node) -> Value:
    """The same of masks that lie in several registers."""
    a, b = node.args
    n, lanes = s.seen.parts_of_mask(node), node.type.lanes
    w = MASKS[lanes // n]
    xs = mask_parts(s, a, n)
    if node.kind == "xor" and b.const:
        made = [(("knot" + w), NO, x) for x in xs]
    else:
        made = [("k" + node.kind + w, x, y) for x, y in zip(xs, mask_parts(s, b, n), strict=True)]
    out = []
    for name, x, y in made:
        k = s.new(MASK)
        s.v(name, 0, k, x, y)
        out.append(k)
    return tuple(out)


def mask_parts(s: Selector, node: Node, n: int) -> tuple[int, ...]:
    """The mask registers for the `n` parts of a vector."""
    held = s.env.get(node)
    if isinstance(held, tuple):
        return s.parts(node)
    if held is None and node in s.lazy:
        held = s.select(node)
        if isinstance(held, tuple):
            return held
    else:
        held = s.use(node)
    assert isinstance(held, int)
    return tuple([mask_part(s, held, node.type.lanes, i, n) for i in range(n)])


def is_waiting(s: Selector, node: Node) -> bool:
    """Whether a compare of vectors is done where it is used."""
    return node in s.lazy and node.kind == "cmp"


def is_waiting_not(s: Selector, node: Node) -> bool:
    return node in s.lazy and node.kind == "xor"


def is_plain(node: Node) -> bool:
    """Whether a compare is one instruction."""
    t = node.args[0].type
    return parts_of(t) == 1 and t.scalar != "i1" and node.args[0].kind != "iota"


def negated_and(s: Selector, node: Node, x: Node, negated: Node) -> int:
    """x and not y, of a `not` that waits for its use."""
    y = negated.args[0]
    if is_waiting(s, y) and is_plain(y):
        return compare(s, y, mask=s.use(x), inverted=True)
    a, b = s.use(x), s.use(y)
    r = s.result(node)
    s.v("kandn" + MASKS[node.type.lanes], 0, r, b, a)
    return r


# ---- what is made of masks
def spread(s: Selector, bit: int, lanes: int, r: int) -> int:
    """A mask register with a bit of a general register in all lanes."""
    t = s.new(GENERAL)
    s.g("movzb", 4, t, bit)
    if lanes == 64:
        s.g("neg", 8, t)
        s.v("kmovq_to", 0, r, NO, t)
        return r
    s.g("neg", 4, t)
    s.v("kmovd_to", 0, r, NO, t)
    return r


def any_flags(s: Selector, node: Node) -> str:
    """Set the flags by whether a lane is set."""
    (mask,) = node.args
    k = clean(s, mask) if mask.type.lanes < 8 else s.use(mask)
    s.v("kortest" + MASKS[mask.type.lanes], 0, k, NO, k)
    return "ne"


@selects("any", of="scalar")
def any_(s: Selector, node: Node) -> Value:
    condition = any_flags(s, node)
    r = s.result(node)
    s.g("set" + condition, 1, r)
    return r


def mask_of(s: Selector, c: Node, lanes: int) -> int:
    """A condition as a mask for vectors of `lanes` lanes."""
    if c.type.lanes > 1:
        return s.use(c)
    if lanes == 1:
        if c in s.lazy and c.kind == "cmp" and c.args[0].type.is_float:
            return compare(s, c)
        k = s.new(MASK)
        s.v("kmovd_to", 0, k, NO, s.use(c))
        return k
    return spread(s, s.use(c), lanes, s.new(MASK))


CONDITIONS["any"] = any_flags
