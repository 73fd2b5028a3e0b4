"""Fused loops: every result element computed from operand elements at indices. Imports ops, loop, kernels, Target.

All results have one shape. Dims that every operand walks contiguously become one loop; the innermost loop is a vector
loop; the outer ones are the parallel units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import Number, Size, typical, upper
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.kernels.pins import choose
from hilo.kernels.space import Space, collapse, flat
from hilo.loop import arith, index
from hilo.loop.builder import I64, PTR, Builder, Func, Node
from hilo.loop.element import Elem, held_type
from hilo.loop.index import Index
from hilo.ops.fusion import Elements, Indices, Source
from hilo.ops.trace import Trace, trace
from hilo.ops.weight import weight
from hilo.record import record

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.kernels.elementwise_stages import Waiting

BLOCK_BYTES: Final = 16 << 10  # of the widest result, per parallel unit of a loop without outer loops
#: What to do for the outer indices and some vectors; of several such turns (stages), which index the vectors begin at.
Turn = Callable[[Sequence[Index], list[Vector], Node], None]
Ahead = Callable[[list[Index]], None]  # what to do for the outer indices of a later unit
LATER: Final = 2  # units
LINE: Final = 64  # bytes of a cache line
UNITS: Final = 64  # parallel units that are enough
SMALL: Final = 1 << 14  # elements below which a kernel is one unit,
SMALL_NS: Final = 5_000.0  # unless it takes as long as that: then it is a few
FEW_UNITS: Final = 4
FEW_TURNS: Final = 4  # of a loop, at least, of each of these
LONG_WORK: Final = 20  # of an element, from which on it may be done in stages
NS_PER_WORK: Final = 0.35  # nanoseconds of one operation on a vector
BYTES_PER_NS: Final = 40.0  # between memory and a core


def new_func(name: str) -> Func:
    """A kernel's function: void f(ptr bufs, i64 begin, i64 end). It may have helpers."""
    func = Func(name, [("bufs", PTR), ("begin", I64), ("end", I64)])
    func.helpers = {}
    return func


def lanes_for(ops: Sequence[Op], target: Target) -> int:
    """Lanes of a vector of the widest type that `ops` (with their operands) hold; a power of two."""
    dtypes = {o.dtype for o in ops if isinstance(o.type, TensorType)}
    sizes = [held_type(d).size for d in dtypes]
    return max(1, target.vector_bytes // max(sizes, default=4))


def work_of(body: Function) -> float:
    """Operations for one element."""
    return sum(weight(o) for o in body.ops)


def bytes_of(body: Function) -> int:
    """Bytes moved for one element, of every operand and result."""
    return sum(o.dtype.itemsize for o in (*body.params, *body.results))


def unrolling(work: float) -> int:
    """Vectors a turn: enough to hide latency where there is little to do, few where code would grow."""
    return 4 if work <= 4 else 2 if work <= 24 else 1


def streams(t: TensorType, target: Target) -> bool:
    """Whether a result of this type is too large to be found in a cache by whoever reads it."""
    return typical(t.nbytes) >= target.l3 // 2


@record
class Plan:
    """What the loops of one fusion look like: the space, and how many of its outermost loops are parallel units."""

    space: Space
    outer: int  # loops that are split into units
    block: int  # elements of the innermost loop per unit, or 0 if a unit does all of them
    lanes: int
    unroll: int
    cost: float  # nanoseconds (estimated) of one vector

    @property
    def units(self) -> Number:
        sizes = self.space.sizes
        blocks = -(-sizes[-1] // self.block) if self.block else 1
        return prod(sizes[: self.outer]) * blocks

    def words(self, body: Function) -> str:
        """Why the loop is as it is, for people."""
        work, moved = work_of(body), bytes_of(body)
        bound = "bandwidth" if moved * self.lanes / BYTES_PER_NS > work * NS_PER_WORK else "computation"
        vectors = f"{self.unroll} x {self.lanes} lanes" if self.lanes > 1 else "no vectors"
        units = f"{self.units} units" if self.units != 1 else "one unit: little work"
        return f"bound by {bound}: {moved} bytes and {work:g} operations for an element; {vectors}; {units}"

    @property
    def unit_cost(self) -> float:
        """Nanoseconds (estimated) of one unit."""
        n = typical(prod(self.space.sizes)) / max(typical(self.units), 1)
        return n * self.cost / self.lanes


def plan(body: Function, found: Trace | None, target: Target) -> Plan:
    """Choose loops, units, vectors."""
    t = body.results[0].tensor
    lanes = lanes_for(body.ops, target)
    work = work_of(body)
    space = flat(t.shape) if found is None else collapse(t.shape, found)
    while len(space.groups) > 1 and upper(space.sizes[-1]) * 4 <= lanes:
        space = space.merged()
    sizes = space.sizes
    expected = [typical(n) for n in sizes]
    while sizes and lanes > 1 and expected[-1] * 2 <= lanes:
        lanes //= 2
    total = prod(expected)
    moved = bytes_of(body)
    unroll = choose("loop.unroll", unrolling(work), (1, 2, 4, 8))
    while unroll > 1 and sizes and expected[-1] < lanes * unroll:
        unroll //= 2
    cost = max(work * NS_PER_WORK, moved * lanes / BYTES_PER_NS)
    turn = lanes * unroll
    small = total <= SMALL and space.is_static
    if (small and (total * cost <= SMALL_NS * lanes or total < FEW_UNITS * FEW_TURNS * turn)) or not sizes:
        return Plan(space, 0, 0, lanes, unroll, cost)
    outer = 0
    while outer < len(sizes) - 1 and (prod(expected[:outer]) < UNITS or not space.is_static):
        outer += 1
    block = max(BLOCK_BYTES // max(r.dtype.itemsize for r in body.results), turn)
    if small and isinstance(sizes[-1], int):
        block = min(block, -(-sizes[-1] // (FEW_UNITS * turn)) * turn)
    if (prod(expected[:outer]) >= UNITS or expected[-1] < 2 * block) and (outer > 0 or isinstance(sizes[-1], int)):
        block = 0
    return Plan(space, outer, block, lanes, unroll, cost)


def lower(body: Function, operands: Sequence[int], count: int, target: Target) -> Lowered:
    """The kernel of a "loop" fusion; parameter i of `body` is buffer operands[i] of `count`, results follow."""
    t = body.results[0].tensor
    if t.size == 0:
        return Lowered([])
    found = trace(t.shape, body.results, body.params)
    p = plan(body, found, target)
    in_place = _in_place(body, found, operands)
    unsafe = {i for i, _ in in_place}
    func = new_func("loop")
    b = Builder(func)
    bufs, begin, end = func.params
    sources = {o: Buffer(pointer(b, bufs, i), o.tensor, constant=i not in unsafe)
               for o, i in zip(body.params, operands, strict=True)}  # fmt: skip
    large = [streams(r.tensor, target) for r in body.results]
    past = choose("loop.stream", any(large), (True, False))
    streaming = large if past == any(large) else [past] * len(large)
    results = [Buffer(pointer(b, bufs, count + k), r.tensor, RESULT_ALIGN, streaming=s)
               for k, (r, s) in enumerate(zip(body.results, streaming, strict=True))]  # fmt: skip

    stages: list[tuple[Op, ...]] = []
    waiting: Waiting | None = None
    if p.units != 1 and p.lanes > 1 and work_of(body) >= LONG_WORK:
        from hilo.kernels.elementwise_stages import Waiting, cuts

        stages = cuts(body)
        waiting = Waiting(b, [o for passed in stages for o in passed], p.lanes)

    def element_of(v: Vector, outer: Sequence[Index], first: Node, known: Sequence[Op]) -> tuple[Elements, Indices]:
        """The elements of a vector, of which `known` wait in memory, and their indices."""
        at = p.space.indices([*outer, v.at] if p.space.groups else [])
        given = {o: reading(b, s, v) for o, s in sources.items()}
        if waiting is not None and known:
            given.update(dict(waiting.sources(known, v, at, first, dict(given))))
        return Elements(b, given), at

    def last(outer: Sequence[Index], vectors: list[Vector], first: Node) -> None:
        """All values of a turn are computed before the first is stored: a result may have an operand's place."""
        values = []
        for v in vectors:
            elements, at = element_of(v, outer, first, stages[-1] if stages else ())
            values.append((at, [elements(r, at) for r in body.results]))
        for v, (at, elems) in zip(vectors, values, strict=True):
            position = index.linear(at, t.shape)
            for r, e in zip(results, elems, strict=True):
                r.store(b, position, e, v.lanes, v.mask)

    def stage(known: Sequence[Op], passed: Sequence[Op], waiting: Waiting) -> Turn:
        """What computes `passed` from `known` values."""

        def turn(outer: Sequence[Index], vectors: list[Vector], first: Node) -> None:
            for v in vectors:
                elements, at = element_of(v, outer, first, known)
                for o in passed:
                    waiting.store(o, elements(o, at), v, first)

        return turn

    turns = [last]
    if waiting is not None:
        turns = [*(stage(known, passed, waiting) for known, passed in zip([(), *stages], stages)), last]
    nest(b, p, begin, end, turns, target, _rows_ahead(b, body, p, sources, target))
    if any(r.streaming for r in results):
        b.fence()
    b.ret()
    reason = f"{p.words(body)}; " + ("stores go past the caches" if past else "results stay in the caches")
    reason += f"; {len(turns)} stages of a long chain" if stages else ""
    return Lowered([Phase(func, p.units, p.unit_cost)], in_place=in_place, strategy="elementwise loop", reason=reason)


def reading(b: Builder, buffer: Buffer, v: Vector) -> Source:
    """Elements of `buffer` for the lanes of `v`."""

    def read(at: Indices) -> Elem:
        return buffer.load(b, at, v.lanes, v.mask)

    return read


def _rows_ahead(b: Builder, body: Function, p: Plan, sources: Mapping[Op, Buffer], target: Target) -> Ahead | None:
    """What fetches rows that a later unit gathers from operands that no near cache holds; None if there are none."""
    t, sizes = body.results[0].tensor, p.space.sizes
    if not p.space.is_static or p.block or p.outer != len(sizes) - 1 or p.outer == 0 or target.vector_bytes < 16:
        return None
    gathers = [o for o in body.ops if o.name == "gather" and o.shape == t.shape
               and o.operands[0] in sources and o.operands[0].tensor.nbytes > target.l2]  # fmt: skip
    step = LINE // t.dtype.itemsize
    if not gathers or not 2 * step <= sizes[-1] <= 64 * step:
        return None

    def ahead(outer: list[Index]) -> None:
        def line(iv: Node) -> None:
            v = Vector(index.loop_var(iv, 0, sizes[-1]), 1)
            at = p.space.indices([*outer, v.at])
            for o in gathers:
                x = sources[o.operands[0]]

                def fetch(at: Indices, x: Buffer = x) -> Elem:
                    x.fetch(b, index.linear(at, x.type.shape), 0)
                    return arith.zero(b, x.type.dtype)

                read = {q: reading(b, s, v) for q, s in sources.items()}
                Elements(b, {**read, o.operands[0]: fetch})(o, at)

        b.for_(0, sizes[-1], step, line)

    return ahead


def nest(b: Builder, p: Plan, begin: Node, end: Node, turns: Sequence[Turn], target: Target,
         ahead: Ahead | None = None) -> None:  # fmt: skip
    """The loops of a plan around `turns`, all of which some vectors pass before the next ones do. `ahead`: what to do
    for a later unit's indices."""
    sizes = p.space.sizes
    if not sizes:
        turns[0]([], [Vector(index.ZERO, 1)], b.i64(0))
        return
    n = sizes[-1]

    def inner(outer: list[Index], lo: Node | Number, hi: Node | Number) -> None:
        if len(outer) < len(sizes) - 1:
            size = sizes[len(outer)]
            b.for_(0, b.i64(size), 1, lambda iv: inner([*outer, index.loop_var(iv, 0, size)], lo, hi))
            return

        def passes(first: Node, hi: Node | Number) -> None:
            for turn in turns:

                def body(vectors: list[Vector], _: tuple[Node, ...], turn: Turn = turn) -> tuple[Node, ...]:
                    turn(outer, vectors, first)
                    return ()

                vector_loop(b, first, hi, n, body, lanes=p.lanes, unroll=p.unroll, masks=target.has_masks)

        start, stop = (b.i64(x) if isinstance(x, (int, Size)) else x for x in (lo, hi))
        if len(turns) == 1:
            passes(start, hi)
        else:
            from hilo.kernels.elementwise_stages import VECTORS

            several = VECTORS * p.lanes
            b.for_(start, stop, several, lambda at: passes(at, b.smin(b.add(at, several), stop)))

    def up_to(block: Node) -> Node:
        return b.smin(b.mul(block, p.block), b.i64(n))

    if p.outer == 0:
        if p.block:
            inner([], b.mul(begin, p.block), up_to(end))
        else:
            inner([], 0, n)
        return

    def unit(u: Node) -> None:
        blocks = -(-n // p.block) if p.block else 1
        *outer, block = index.delinear(index.loop_var(u, 0, p.units), (*sizes[: p.outer], blocks))
        if ahead is not None:
            later = b.smin(b.add(u, LATER), p.units - 1)
            ahead(index.delinear(index.loop_var(later, 0, p.units), sizes[: p.outer]))
        if p.block:
            at = index.node(b, block)
            inner(outer, b.mul(at, p.block), up_to(b.add(at, 1)))
        else:
            inner(outer, 0, n)

    b.for_(begin, end, 1, unit)


def _in_place(body: Function, found: Trace, operands: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Pairs (operand, result) that may share memory: the operand is read only where the result is written."""
    t = body.results[0].tensor
    own = index.linear(found.variables, t.shape)
    moved = {a.op for a in found.accesses if a.position != own or not a.is_inside}
    return tuple(
        (operands[i], k)
        for i, o in enumerate(body.params)
        for k, r in enumerate(body.results)
        if o not in moved and o.tensor.size == t.size and o.dtype.itemsize == r.dtype.itemsize
    )
