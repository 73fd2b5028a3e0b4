"""Selections: lanes of two vectors by a mask, the smaller and the larger of two, what is computed for some lanes alone.
Imports x86.select and its neighbours."""

from __future__ import annotations

from typing import Final

from hilo.backend.x86 import constants
from hilo.backend.x86.machine import MASK, NO, VECTOR
from hilo.backend.x86.masks import compare, is_plain, mask_of, mask_parts
from hilo.backend.x86.pieces import (
    INT,
    MASKS,
    blend,
    broadcast_of,
    drop,
    is_memory,
    last,
    lasts,
    length_of_part,
    mask_part,
    masked_move,
    parts,
    suffix,
    value,
)
from hilo.backend.x86.select import Selector, Value, length, parts_of, selects
from hilo.backend.x86.uses import merges
from hilo.backend.x86.vectors import COMMUTE, name_of
from hilo.loop.nodes import Node

#: Selections of what was compared: (predicate, whether the operands are swapped) -> smaller or larger.
_EXTREMA: Final = {"olt": "min", "ogt": "max", "slt": "min", "sle": "min", "ult": "min", "ule": "min", "sgt": "max",
                   "sge": "max", "ugt": "max", "uge": "max"}  # fmt: skip


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
    if b.const is not None and is_zero(b):
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
