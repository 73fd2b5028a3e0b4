"""Groups of ops on their way to becoming fusions: what a group may take in, and the function it turns into.

Imports ir, ops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.module import Function, parameter
from hilo.ir.op import GET, Op
from hilo.ir.types import Results, TensorType
from hilo.later import Later
from hilo.ops.fusion import SMALL_TURN, fusion, turns
from hilo.ops.weight import EXPENSIVE, weight

if TYPE_CHECKING:
    from hilo.ops import rows
else:
    rows = Later("hilo.ops.rows")

OPS: Final = 256  # ops of one fusion that compute something
WORK: Final = 800.0  # and their work: bounds the code of a kernel
OPERANDS: Final = 48
PLACES: Final = 8  # different indices at which one value may be computed in a fusion
CHEAP: Final = 4.0  # work of an element that may be done again in another fusion
SMALL: Final = SMALL_TURN
ROW_BYTES: Final = 1 << 19  # what a row (or a block of rows side by side) may take in a cache
FEW_ROWS: Final = 16
EPILOGUE: Final = 128.0  # work on an element of a contraction, before it is stored
_MOVES: Final = frozenset(("transpose", "gather", "concatenate", "dynamic_update_slice", "pad", "reverse"))

Place = tuple[object, ...]  # how an op's index follows from the group's: () is the same index


def is_rows(o: Op) -> bool:
    """Whether `o` is a reduction that row regions can hold."""
    return o.kind.full_name == "stablehlo.reduce"


class Costs:
    """For every op of a function: the work of one element with all that it is made of, and the bytes read for it."""

    def __init__(self, f: Function) -> None:
        self.work: dict[Op, float] = {}
        self._read: dict[Op, float] = {}
        for o in f.ops:
            splat = o.kind.full_name == "stablehlo.constant" and o.attrs["value"].is_splat
            if splat:
                self.work[o], self._read[o] = 0.0, 0.0
            elif o.kind.scalar is None and o.kind.element is None:  # comes from memory
                self.work[o] = 0.0
                self._read[o] = o.type.nbytes if isinstance(o.type, TensorType) else 0.0
            else:
                self.work[o] = min(weight(o) + sum(self.work[x] * _share(x, o) for x in o.operands), 1e9)
                self._read[o] = min(sum(self._reading(x, o) for x in dict.fromkeys(o.operands)), 1e18)

    def _reading(self, x: Op, o: Op) -> float:
        """Bytes read for the elements of operand `x` of `o`: a value that is spread is rather read than computed."""
        spread = isinstance(x.type, TensorType) and x.tensor.size < o.tensor.size
        return min(self._read[x], x.tensor.nbytes) if spread else self._read[x]

    def is_cheap(self, o: Op) -> bool:
        """Whether computing `o` again is no more than reading it from memory."""
        if is_rows(o) or o.kind is GET:
            return False
        return self.work[o] <= CHEAP and self._read[o] <= 1.25 * o.tensor.nbytes


class Group:
    """Ops that one kernel computes. `shape` is what its loops run over: the result's, or the reductions' operands'.

    `open`: it may take in further ops. `full`: one that does something had no room; what comes before that is for a
    group of its own, with room for both. `first`: its first op in the program, so far.
    """

    def __init__(self, o: Op, costs: Costs, open_: bool) -> None:
        self.ops: dict[Op, None] = {o: None}
        self.results: list[Op] = [o]
        self.costs = costs
        self.first = o
        self.open = open_
        self.full = False
        self.places: dict[Op, frozenset[Place]] = {o: frozenset([()])}
        self.work = weight(o)
        self.count = int(weight(o) > 0)
        self.rows: tuple[tuple[int, bool], ...] | None = None
        self.shape: tuple[int, ...] = ()
        self.turned: Op | None = None  # the one large transposition that its loops may do in tiles
        self.hero: Op | None = None  # the contraction whose elements its result is made of
        if open_:
            self.shape = o.shape
            if is_rows(o):
                self._reduces(o)

    def _reduces(self, o: Op) -> None:
        self.shape = rows.inputs(o)[0].shape
        self.rows = rows.outline(self.shape, o.attrs["dimensions"])

    def add(self, o: Op) -> None:
        """Take `o` in; `accepts` has allowed it."""
        self.ops[o] = None
        self.first = o
        self.work += weight(o)
        self.count += weight(o) > 0
        if is_rows(o) and self.rows is None:
            self._reduces(o)

    def accepts(self, o: Op, users: Sequence[Op], cap: int) -> bool:
        """Whether `o` may be computed in this group for its users there."""
        if not self._has_room(o, cap):
            return False
        if is_rows(o) or o.kind is GET:
            return self._accepts_reduction(o)
        if self.turned is not None and self.turned in users:
            return False  # tiles are turned as they are loaded
        if self.hero is not None and (self.hero in users or turns(o)):
            return False
        places = self._places(o, users)
        if turns(o):
            if places != {()} or self.turned is not None or self.rows is not None or o.dtype.is_complex:
                return False
            self.turned = o
        if not places or len(places) > PLACES or (len(places) > 1 and len(places) * self.costs.work[o] > EXPENSIVE):
            return False
        if any(u in self.ops and not self._reads_well(u, o) for u in users):
            return False
        self.places[o] = places
        return True

    def accepts_result(self, o: Op, users: Sequence[Op], cap: int) -> bool:
        """Whether `o` may be computed in this group for its users there, and be a result besides."""
        if isinstance(o.type, Results) or self.hero is not None or not self._has_room(o, cap):
            return False
        if is_rows(o):
            return self._accepts_reduction(o)
        if o.kind.scalar is None:
            return False
        if rows.outline(o.shape) != rows.outline(self.shape) or self._places(o, users) != {()}:
            return False
        self.places[o] = frozenset([()])
        return True

    def accepts_contraction(self, o: Op, users: Sequence[Op]) -> bool:
        """Whether the group's result may be computed from the elements of contraction `o` before these are stored."""
        if not self.open or self.hero is not None or self.rows is not None or self.turned is not None:
            return False
        if len(self.results) > 1 or self.results[0].tensor.size != o.tensor.size or self.work > EPILOGUE:
            return False
        if self.results[0].dtype.is_complex:
            return False
        if len({*o.operands, *(x for p in self.ops for x in p.operands)}) > OPERANDS:
            return False
        return all(all(step == "reshape" for step in p[0::3]) for p in self._places(o, users))

    # ---- pieces
    def _has_room(self, o: Op, cap: int) -> bool:
        if not self.open or len(self.ops) >= 2 * OPS or (self.full and weight(o)):
            return False
        if self.work + weight(o) > WORK:
            self.full = True
            return False
        if self.count >= min(cap, OPS) and weight(o):
            return False
        outside = {x for p in self.ops for x in p.operands if x not in self.ops}
        outside.discard(o)
        outside.update(o.operands)
        return len(outside) <= OPERANDS

    def _places(self, o: Op, users: Sequence[Op]) -> frozenset[Place]:
        """The indices at which `o` is needed, relative to the group's own."""
        found: set[Place] = set()
        for u in users:
            if u not in self.ops:
                continue
            if is_rows(u):
                found.add(() if o in rows.inputs(u) else ("scalar",))
            elif u.kind.scalar is not None:
                found.update(self.places.get(u, ()) if o.tensor.rank or not u.tensor.rank else [("scalar",)])
            else:
                position = u.operands.index(o)
                found.update((u.kind.name, u.attrs, position, *p) for p in self.places.get(u, ()))
        return frozenset(found)

    def _reads_well(self, u: Op, o: Op) -> bool:
        """Whether computing `o` where `u` needs it is as good as reading it from memory."""
        if u.kind.scalar is not None or is_rows(u) or o.tensor.size <= 1:
            return True
        if u.name in _MOVES and o.tensor.size > SMALL and u.name in ("transpose", "gather"):
            return False
        if u.tensor.size <= o.tensor.size or self.costs.work[o] < EXPENSIVE:
            return True
        if u.name != "broadcast_in_dim":  # a pad or the like: mostly the same elements
            return u.name in ("pad", "concatenate")
        return o.tensor.size <= 1 or u.shape[-1] != o.shape[-1]  # values of a row, computed once outside of its loop

    def _accepts_reduction(self, o: Op) -> bool:
        if self.turned is not None or self.hero is not None:
            return False
        r = o.operands[0] if o.kind is GET else o
        shape, dims = rows.inputs(r)[0].shape, tuple(sorted(r.attrs["dimensions"]))
        if o.kind is GET and r not in self.ops:
            return True  # decided with the reduction itself
        count = prod(n for d, n in enumerate(shape) if d not in dims)
        if self.rows is not None:
            if self.rows != rows.outline(shape, dims):
                return False
        elif rows.outline(self.shape) != rows.outline(shape) and prod(self.shape) != count:
            return False
        from hilo.ops.rows import NotRows

        try:
            found = rows.analyse(function_of([*self.ops, o], self.results))
        except NotRows:
            return False
        return (found.passes == 1 and not any(found.full)) or _suits(o, shape, dims)


def _share(x: Op, o: Op) -> float:
    """How many elements of operand `x` are computed for one of `o`: less than one if it is spread along new axes."""
    return min(1.0, x.tensor.size / max(o.tensor.size, 1)) if isinstance(x.type, TensorType) else 1.0


def _suits(o: Op, shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    """Whether reducing `dims` and going over the full shape again, row by row, is better than two kernels."""
    size = prod(shape)
    if size <= SMALL:
        return True
    itemsize = rows.inputs(o)[0].dtype.itemsize
    row = prod(shape[d] for d in dims)
    count = size // max(row, 1)
    last = max(d for d, n in enumerate(shape) if n != 1)
    side_by_side = 1 if last in dims else 64 // itemsize
    return count >= FEW_ROWS * side_by_side and row * side_by_side * itemsize <= ROW_BYTES


def function_of(ops: Iterable[Op], results: Iterable[Op], order: dict[Op, int] | None = None) -> Function:
    """A function that computes `results` with `ops`; its parameters stand for the other operands, in order."""
    inside = dict.fromkeys(ops)
    ordered = _topological(inside, inside) if order is None else sorted(inside, key=order.__getitem__)
    new: dict[Op, Op] = {}
    params: list[Op] = []
    body: list[Op] = []
    for o in ordered:
        for x in o.operands:
            if x not in new:
                new[x] = parameter(len(params), x.type, x.loc)
                params.append(new[x])
        new[o] = o.with_operands(new[x] for x in o.operands)
        body.append(new[o])
    return Function("fused", params, [*params, *body], [new[r] for r in results])


def _topological(roots: Iterable[Op], ops: dict[Op, None]) -> list[Op]:
    """`ops`, operands first, depth first from `roots`."""
    done: dict[Op, None] = {}
    for root in roots:
        stack: list[tuple[Op, bool]] = [(root, False)]
        while stack:
            o, ready = stack.pop()
            if o in done or o not in ops:
                continue
            if ready:
                done[o] = None
            else:
                stack.append((o, True))
                stack.extend((x, False) for x in reversed(o.operands))
    return list(done)


def build(f: Function, groups: Iterable[Sequence[Group]], home: dict[Op, Group]) -> Function:
    """`f` with every group of several ops as one fusion, in an order in which operands come first."""
    position = {o: i for i, o in enumerate(f.ops)}
    all_groups = dict.fromkeys(g for gs in groups for g in gs)
    new: dict[Op, Op] = {p: p for p in f.params}
    out: list[Op] = list(f.params)
    done: set[Group] = set()
    for root in all_groups:
        stack: list[tuple[Group, bool]] = [(root, False)]
        while stack:
            g, ready = stack.pop()
            if g in done:
                continue
            operands = dict.fromkeys(x for o in g.ops for x in o.operands if x not in g.ops)
            if not ready:
                stack.append((g, True))
                stack.extend((home[x], False) for x in reversed(list(operands)) if x not in new)
                continue
            done.add(g)
            out.extend(_emit(g, position, new))
    return f.replace(ops=out, results=[new[r] for r in f.results])


def _emit(g: Group, position: dict[Op, int], new: dict[Op, Op]) -> list[Op]:
    """The ops that stand for a group; records the values of its results in `new`."""
    if len(g.ops) == 1:
        (o,) = g.ops
        changed = any(new[x] is not x for x in o.operands)
        new[o] = o.with_operands(new[x] for x in o.operands) if changed else o
        return [new[o]]
    results = sorted(g.results, key=position.__getitem__)
    ordered = _topological(dict.fromkeys((*results, *g.ops)), g.ops)  # whatever the program's order: groups look alike
    body = function_of(g.ops, results, {o: i for i, o in enumerate(ordered)})
    operands = dict.fromkeys(x for o in ordered for x in o.operands if x not in g.ops)
    kind = "rows" if g.rows is not None else "contraction" if g.hero is not None else "loop"
    fused = fusion(*(new[x] for x in operands), body=body, kind=kind, loc=g.results[0].loc)
    values = fused.results()
    for r, v in zip(results, values, strict=True):
        new[r] = v
    return [fused, *values] if isinstance(fused.type, Results) else [fused]
