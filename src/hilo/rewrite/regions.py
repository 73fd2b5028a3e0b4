"""Regions of ops: find them, map a function over them, ask whether they have effects. Imports ir."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from hilo.ir.module import Function
from hilo.ir.op import NO_ATTRS, Attrs, Op, OpDef

CONTROL: Final = frozenset(("stablehlo.while", "stablehlo.if", "stablehlo.case"))


def regions(op: Op) -> Iterator[Function]:
    """The functions among `op`'s attributes."""
    for value in op.attrs._d.values():
        if isinstance(value, Function):
            yield value
        elif isinstance(value, tuple) and value and isinstance(value[0], Function):
            yield from value


def has_regions(f: Function) -> bool:
    """Whether an op of `f` has regions."""
    return any(True for o in f.ops for _ in regions(o))


def any_op(f: Function, asks: Callable[[Op], bool]) -> bool:
    """Whether `asks` says yes to an op of `f` or of its regions; each region is looked at once."""
    seen: set[int] = set()
    stack = [f]
    while stack:
        g = stack.pop()
        if id(g) in seen:
            continue
        seen.add(id(g))
        for o in g.ops:
            if asks(o):
                return True
            stack.extend(regions(o))
    return False


def with_regions(op: Op, transform: Callable[[Function], Function]) -> Op:
    """`op` with `transform` applied to its regions; `op` itself if every one came back as the same object."""
    changed: dict[str, object] = {}
    for name, value in op.attrs._d.items():
        if isinstance(value, Function):
            if (new := transform(value)) is not value:
                changed[name] = new
        elif isinstance(value, tuple) and value and isinstance(value[0], Function):
            each = tuple(map(transform, value))
            if any(a is not b for a, b in zip(each, value)):
                changed[name] = each
    return Op(op.kind, op.operands, Attrs(op.attrs, **changed), op.type, op.loc) if changed else op


class Regions:
    """Applies a pass to the regions of ops, each distinct region once.

    Whether an op has regions is a property of its kind, so that kinds without them cost one look into a dict.
    """

    def __init__(self, transform: Callable[[Function], Function]) -> None:
        self._transform = transform
        self._memo: dict[Function, Function] = {}
        self._has: dict[OpDef, bool] = {}

    def apply(self, op: Op) -> Op:
        """`op` with its regions transformed; `op` itself if nothing changed."""
        if op.attrs is NO_ATTRS or not (self._has[op.kind] if op.kind in self._has else self._look(op)):
            return op
        return with_regions(op, self._one)

    def _look(self, op: Op) -> bool:
        self._has[op.kind] = found = any(True for _ in regions(op))
        return found

    def _one(self, region: Function) -> Function:
        found = self._memo.get(region)
        if found is None:
            found = self._memo[region] = self._transform(region)
        return region if found == region else found


def each_region(f: Function, inner: Regions) -> Function:
    """`f` with `inner` applied to its ops; `f` itself if nothing changed."""
    new: dict[Op, Op] = {}
    kept: list[Op] = []
    for old in f.ops:
        op = inner.apply(old)
        if new and any(x in new for x in op.operands):
            op = op.with_operands([new.get(x, x) for x in op.operands])
        kept.append(op)
        if op is not old:
            new[old] = op
    return f.replace(ops=kept, results=[new.get(r, r) for r in f.results]) if new else f


class Effects:
    """Whether ops have effects: by their kind, by `has_side_effect`, or because a region of theirs has. Remembers
    regions."""

    def __init__(self) -> None:
        self._memo: dict[Function, bool] = {}
        self._pure: set[OpDef] = set()  # kinds without effect, regions or `has_side_effect`

    def of(self, op: Op) -> bool:
        """Whether `op` must stay where it is, used or not."""
        kind = op.kind
        if kind in self._pure:
            return False
        if kind.effect or op.attrs.get("has_side_effect"):
            return True
        found = [*regions(op)]
        if not found and "has_side_effect" not in op.attrs:
            self._pure.add(kind)
        return any(map(self._region, found))

    def _region(self, region: Function) -> bool:
        known = self._memo.get(region)
        if known is None:
            known = self._memo[region] = any(map(self.of, region.ops))
        return known
