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
from hilo.backend.x86.machine import GENERAL, MASK, NO, VECTOR
from hilo.backend.x86.pieces import (
    INT,
    MASKS,
    bits,
    blend,
    broadcast_of,
    clean,
    drop,
    is_memory,
    join_masks,
    keep,
    last,
    lasts,
    length_of_part,
    mask_part,
    masked_move,
    numbers,
    parts,
    suffix,
    value,
)
from hilo.backend.x86.select import CONDITIONS, Selector, Value, length, parts_of, selects
from hilo.backend.x86.shuffles import length_of
from hilo.backend.x86.uses import merges
from hilo.backend.x86.vectors import COMMUTE, name_of
from hilo.loop.nodes import Node

FLOAT_PREDICATES: Final = {"oeq": 0, "olt": 1, "ole": 2, "uno": 3, "une": 4, "ord": 7, "oge": 13, "ogt": 14}
_INT_PREDICATES: Final = {"eq": 0, "lt": 1, "le": 2, "ne": 4, "ge": 5, "gt": 6}
_SWAPPED: Final = {"olt": "ogt", "ogt": "olt", "ole": "oge", "oge": "ole", "slt": "sgt", "sgt": "slt", "sle": "sge",
                   "sge": "sle", "ult": "ugt", "ugt": "ult", "ule": "uge", "uge": "ule"}  # fmt: skip
#: Selections of what was compared: (predicate, whether the operands are swapped) -> smaller or larger.
_EXTREMA: Final = {"olt": "min", "ogt": "max", "slt": "min", "sle": "min", "ult": "min", "ule": "min", "sgt": "max",
                   "sge": "max", "ugt": "max", "uge": "max"}  # fmt: skip


# ---- compares
def compare(s: Selector, node: Node, mask: int = NO, inverted: bool = False) -> int:
    """A compare of vectors, or of scalar floats, into a mask register; of the lanes of `mask` alone, if there is one
    (for values of one part)."""
    a, b = node.args
    t, pred = a.type, node.attrs["pred"]
    if t.scalar == "i1":
        return compare_bits(s, node)
    lanes = known_lanes(node) if not t.is_float and a.kind == "iota" else None
    if lanes is not None and mask == NO and not inverted:
        return bits(s, sum(1 << i for i, v in enumerate(lanes) if v), t.lanes)
    if t.lanes >= 16 and t.scalar == "i64" and a.kind == "iota" and pred == "slt" and b.kind == "splat":
        return first_lanes(s, node, b)
    if is_memory(s, a) and not is_memory(s, b):
        a, b, pred = b, a, _SWAPPED.get(pred, pred)
    if (pred == "eq" or pred == "ne") and b.const == 0 and parts_of(t) == 1:
        return tested(s, node, a, mask, (pred == "ne") != inverted)
    if t.is_float:
        name, imm = "vcmp" + suffix(t), FLOAT_PREDICATES[pred]
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


def first_lanes(s: Selector, node: Node, count: Node) -> int:
    """The mask of the first lanes, as many as a splat of an i64 says, which may be any: as a byte that is saturated."""
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
    s.v("vpcmpb", size, r, n, keep(s, ("load", size, constants.label(table))), imm=6)
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


# ---- selections
@selects("select", of="vector")
def select(s: Selector, node: Node) -> Value:
    """Lanes of vectors, or scalar floats, by a mask or a bit."""
    c, a, b = node.args
    t = node.type
    if t.scalar == "i1":
        return select_bits(s, node)
    if (name := extremum(s, node)) is not None:
        x, y = c.args
        first, second = (x, y) if a is x else (y, x)
        for extra in (a, b) if c in s.lazy else (c,):
            drop(s, extra)
        return extreme(s, node, name, first, second)
    if a in s.lazy and merges(a):
        return merged(s, node, mask_of(s, c, t.lanes), a, b)
    if b in s.lazy and merges(b) and c in s.lazy and c.kind == "cmp" and c.type.lanes > 1 and is_plain(c):
        return merged(s, node, compare(s, c, inverted=True), b, a)
    n = parts_of(t)
    if n > 1 and c.type.lanes > 1:
        masks = mask_parts(s, c, n)
    else:
        mask = mask_of(s, c, t.lanes)
        masks = tuple([mask_part(s, mask, t.lanes, i, n) for i in range(n)])
    if b.const == 0 and (not t.is_float or str(b.const) != "-0.0") and is_zero(b):
        name, firsts, zeroed = masked_move(t), (NO,) * n, True
    else:
        name, firsts, zeroed = blend(t), parts(s, b), False
    seconds = scalar_source(s, a) if t.lanes == 1 else lasts(s, a)
    out = s.results(node)
    for r, first, (rm, broadcast), k in zip(out, firsts, seconds, masks, strict=True):
        if zeroed and broadcast:
            s.v(broadcast_of(t), length_of_part(t), r, NO, rm, mask=k, zero=True)
        else:
            s.v(name, length_of_part(t), r, first, rm, mask=k, zero=zeroed, broadcast=broadcast)
    return value(out)


def merged(s: Selector, node: Node, mask: int, a: Node, b: Node) -> int:
    """A selection of `a`, which is computed for it alone, where the mask is set: over `b`, the other value."""
    t = node.type
    x, y = a.args
    if a.kind in COMMUTE and is_memory(s, x) and not is_memory(s, y):
        x, y = y, x
    name, size = name_of(a.kind, t), length(t)
    if y in s.lazy and y.kind != "load":  # what waits first: it may be written over what dies
        rm, broadcast = last(s, y)
        first = s.use(x)
    else:
        first = s.use(x)
        rm, broadcast = last(s, y)
    if b.const is not None and is_zero(b):
        r = s.result(node)
        s.v(name, size, r, first, rm, mask=mask, zero=True, broadcast=broadcast)
        return r
    other = s.use(b)
    r = other
    if not s.dies(other):
        r = s.result(node)
        if r in (first, rm):
            r = s.new(VECTOR)
        s.move(r, other, t.lanes * t.size)
    s.v(name, size, r, first, rm, mask=mask, broadcast=broadcast)
    return r


def is_zero(node: Node) -> bool:
    """Whether all bits of a constant are 0."""
    return constants.recipe(node)[0] == "zero"


def scalar_source(s: Selector, node: Node) -> list[tuple[int, bool]]:
    """A scalar as the last operand of an instruction for vectors: no memory, which need not be there."""
    return [(s.use(node), False)]


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


def select_bits(s: Selector, node: Node) -> int:
    """Bits of two masks by a third one."""
    c, a, b = node.args
    w = MASKS[node.type.lanes]
    mask = mask_of(s, c, node.type.lanes)
    x, y = s.use(a), s.use(b)
    low, high = s.new(MASK), s.new(MASK)
    s.v("kand" + w, 0, high, mask, x)
    s.v("kandn" + w, 0, low, mask, y)
    r = s.result(node)
    s.v("kor" + w, 0, r, low, high)
    return r


# ---- smaller and larger
def extremum(s: Selector, node: Node) -> str | None:
    """The instruction for a selection of the two operands of the compare that it waits for: smaller or larger."""
    c, a, b = node.args
    if c.kind != "cmp" or {a, b} != {*c.args} or a is b:
        return None
    t, pred = node.type, c.attrs["pred"]
    if c.args[0].type.lanes != t.lanes or (t.lanes == 1 and not t.is_float):
        return None
    name = _EXTREMA.get(pred)
    if name is None:
        return None
    if a is not c.args[0]:
        name = {"min": "max", "max": "min"}[name]
    if t.is_float:
        return f"v{name}{suffix(t)}"
    return f"vp{name}{'u' if pred[0] == 'u' else 's'}{INT[t.size]}"


def extreme(s: Selector, node: Node, name: str, first: Node, second: Node) -> Value:
    """The smaller or the larger of two; the second one where neither is, of floats."""
    t = node.type
    if not t.is_float and is_memory(s, first):
        first, second = second, first
    firsts, seconds = parts(s, first), [last(s, second)] if t.lanes == 1 else lasts(s, second)
    out = s.results(node)
    for r, x, (rm, broadcast) in zip(out, firsts, seconds, strict=True):
        s.v(name, 0 if t.lanes == 1 else length_of_part(t), r, x, rm, broadcast=broadcast)
    return value(out)


CONDITIONS["any"] = any_flags
