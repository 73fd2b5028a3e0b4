"""Cutting long chains of computation: what an element needs is computed in stages. Imports ops, loop.

A core looks some ten dozen instructions ahead, and starts those whose operands are there. A chain of forty dependent
ones leaves it with three vectors at a time, too few to keep it busy. So some vectors pass a first part of the chain
before they pass the next: the values between lie in the first-level cache.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hilo.ir.dtypes import f32, f64
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.kernels.loops import Vector
from hilo.loop import index
from hilo.loop.builder import Builder, Node, VType
from hilo.loop.element import Elem
from hilo.ops.fusion import Elements, Indices, Source
from hilo.ops.weight import EXPENSIVE, weight

VECTORS: Final = 16  # that pass a stage, before they pass the next
LEAST: Final = 5.0  # of work in a stage
MOST: Final = 2  # values that one stage hands to the next
STAGES: Final = 4  # beyond which the code would only grow


def cuts(body: Function) -> list[tuple[Op, ...]]:
    """The values between the stages of `body`: cut before its long functions, as far as few values pass there."""
    level: dict[Op, int] = {}
    for o in body.ops:
        level[o] = max((level[x] for x in o.operands), default=0) + (weight(o) >= EXPENSIVE)
    found: list[tuple[Op, ...]] = []
    first = 0
    for k in range(1, max(level.values(), default=0) + 1):
        work = sum(weight(o) for o in body.ops if first <= level[o] < k)
        passed = _passed(body, level, k)
        if work >= LEAST and 0 < len(passed) <= MOST and all(_can_wait(o, body) for o in passed):
            found.append(passed)
            first = k
    return found if len(found) < STAGES else []


def _passed(body: Function, level: dict[Op, int], k: int) -> tuple[Op, ...]:
    """What ops from level `k` on take of those below; what is no work, and parameters, are taken again."""
    stack = [x for o in body.ops if level[o] >= k for x in o.operands if level[x] < k]
    stack += [r for r in body.results if level[r] < k]
    seen: dict[Op, None] = {}
    while stack:
        o = stack.pop()
        if o not in seen:
            seen[o] = None
            if not weight(o):
                stack.extend(o.operands)
    return tuple(o for o in body.ops if o in seen and weight(o) and o not in body.params)


def _can_wait(o: Op, body: Function) -> bool:
    return o.dtype in (f32, f64) and o.shape == body.results[0].shape


class Waiting:
    """Where the values between stages lie."""

    def __init__(self, b: Builder, ops: Sequence[Op], lanes: int) -> None:
        self.b = b
        self.places = {o: b.alloca(VECTORS * lanes * o.dtype.itemsize, 64) for o in ops}

    def _place(self, o: Op, v: Vector, first: Node) -> Node:
        at = self.b.sub(index.node(self.b, v.at.first_lane() if v.lanes > 1 else v.at), first)
        return self.b.gep(self.places[o], self.b.mul(at, o.dtype.itemsize))

    def store(self, o: Op, e: Elem, v: Vector, first: Node) -> None:
        """The lanes of `v`, of vectors that begin at the index `first`; also those that do not count."""
        self.b.store(self._place(o, v, first), self.b.splat(e.re, v.lanes))

    def sources(
        self, ops: Sequence[Op], v: Vector, at: Indices, first: Node, plain: dict[Op, Source]
    ) -> Iterator[tuple[Op, Source]]:
        """How elements of `ops` at `at` are read; elsewhere they are computed, from `plain` ones."""
        b = self.b
        for o in ops:

            def read(where: Indices, o: Op = o) -> Elem:
                if where != at:
                    return Elements(b, plain)(o, where)
                return Elem(o.dtype, b.load(self._place(o, v, first), VType(o.dtype.name, v.lanes)))

            yield o, read
