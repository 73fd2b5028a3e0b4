"""Vectors whose lanes are known when code is made: masks of tails, mostly. Imports loop."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Final

from hilo.loop.builder import wrap
from hilo.loop.nodes import Node

_BINARY: Final[dict[str, Callable[[int, int], int]]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
}
_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "sle": operator.le,
    "sgt": operator.gt,
    "sge": operator.ge,
}


def known_lanes(node: Node) -> tuple[int, ...] | None:
    """The lanes of an integer value, if they follow from constants alone by the operations that masks are made of."""
    t = node.type
    if t.is_float:
        return None
    if node.const is not None:
        return (int(node.const),) * t.lanes
    kind = node.kind
    if kind == "const":
        return tuple(map(int, node.attrs["value"]))
    if kind == "iota":
        return tuple(range(t.lanes))
    known = _BINARY.get(kind) or (_COMPARE.get(node.attrs["pred"]) if kind == "cmp" else None)
    if known is None and kind != "shuffle":
        return None
    lanes = []
    for a in node.args:
        x = known_lanes(a)
        if x is None:
            return None
        lanes.append(x)
    if kind == "shuffle":
        both = lanes[0] + lanes[1]
        return tuple(both[i] for i in node.attrs["mask"])
    assert known is not None
    return tuple(wrap(int(known(x, y)), t.bits) for x, y in zip(*lanes, strict=True))
