"""select_and_scatter by vectors: windows side by side, each of which notes the number of the element that it chooses.

The elements of its windows are then gone through once more, and those that were chosen are combined with the source.
All reads and writes are of whole runs of memory: neither gathers nor scatters. What a place of the result is combined
with comes in the source's order, as in kernels/select_scatter.py. Imports ops, loop, kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir import dtypes
from hilo.ir.op import Op
from hilo.kernels import elementwise
from hilo.kernels.combine import splat
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Phase
from hilo.kernels.memory import RESULT_ALIGN, SPACED, Buffer, pointer
from hilo.kernels.window import Group, WindowLoops
from hilo.loop import arith, index
from hilo.loop.builder import I64, Builder, Node, VType
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.ops.fusion import apply_region

if TYPE_CHECKING:
    from hilo.backend.target import Target

TAPS: Final = 16  # most elements of a window along the innermost axis, if windows move along it
ROW: Final = 1 << 14  # most windows along it then
UNITS: Final = 8  # that there should be
COST: Final = (4.5, 5.0)  # nanoseconds for a vector of windows: the elements that each looks at, and all else


def lanes_of(op: Op, groups: Sequence[Group], target: Target) -> int:
    """How many windows are side by side; 1 where these vectors are no use."""
    n, m, axis = groups[-1]
    types = (op.operands[0].dtype, op.dtype)
    if not all(isinstance(x, int) for g in groups for x in g[:2]) or not isinstance(m, int):
        return 1
    if any(t.is_complex or t.bits < 8 for t in types):
        return 1
    lanes = min(target.lanes(t) for t in (*types, dtypes.i32))
    moves = not axis.is_plain
    if moves and not (target.has_masks and axis.stride <= SPACED and axis.size <= TAPS and m <= ROW and n):
        return 1
    while lanes > 1 and m <= lanes // 2:
        lanes //= 2
    return lanes


class SelectScatterRows:
    """Writes the function: a unit fills its part of the result, then chooses and combines for all its windows."""

    def __init__(self, op: Op, groups: Sequence[Group], lanes: int, target: Target) -> None:
        self.op, self.groups, self.lanes, self.target = op, groups, lanes, target
        self.func = elementwise.new_func("select_and_scatter_rows")
        b = self.b = Builder(self.func)
        bufs, count = self.func.params[0], len(op.operands)
        self.shape = tuple(n for n, _, _ in groups)
        self.windows = tuple(m for _, m, _ in groups)
        self.loops = WindowLoops(b, groups[:-1])
        self.axis = groups[-1][2]
        x, s, init, *captured = (Buffer(pointer(b, bufs, i), o.tensor, constant=True)
                                 for i, o in enumerate(op.operands))  # fmt: skip
        self.init = arith.convert(b, init.load(b, (), 1), op.dtype)
        self.captured = [c.load(b, (), 1) for c in captured]
        self.x = Buffer(x.ptr, x.type.with_shape(self.shape), constant=True)
        self.source = Buffer(s.ptr, s.type.with_shape(self.windows), constant=True)
        self.result = Buffer(pointer(b, bufs, count), op.tensor.with_shape(self.shape), RESULT_ALIGN)
        self.count = VType("i32", lanes)
        self.reach = -(-self.axis.size // self.axis.stride)  # windows that a place may be in, along the last axis

    def phase(self) -> Phase:
        """The one phase. Units: the leading axes along which no window moves, and parts of the last one, if it is such
        a one and there are few units otherwise."""
        b, (*outer, inner) = self.b, self.windows
        split = 0
        while split < len(outer) and self.groups[split][2].is_plain:
            split += 1
        each, parts = inner, 1
        if self.axis.is_plain and prod(outer[:split]) < UNITS:
            each = min(inner, -(-inner // (UNITS * self.lanes)) * self.lanes)
            parts = -(-inner // max(each, 1))
        shared = (*outer[:split], parts)
        units = prod(shared)

        def unit(u: Node) -> None:
            *fixed, part = index.delinear(index.loop_var(u, 0, units), shared)
            lo, hi = b.i64(0), b.i64(inner)
            if parts > 1:
                lo = index.node(b, part * each)
                hi = b.smin(b.add(lo, each), inner)
            self.fill(fixed, lo, hi, parts > 1)

            def loops(at: list[Index]) -> None:
                if len(at) < len(outer):
                    n = outer[len(at)]
                    b.for_(0, n, 1, lambda iv: loops([*at, index.loop_var(iv, 0, n)]))
                elif self.axis.is_plain:
                    self.vectors(lo, hi, inner, lambda v: self.window(at, v))
                else:
                    self.row(at)

            loops(list(fixed))

        if not self.axis.is_plain:  # what the windows of a row choose, and nothing before and behind them
            size = (inner + 2 * self.lanes + 2 * self.reach) * self.count.size
            self.line = b.alloca(size, RESULT_ALIGN)
            b.memset(self.line, 255, size)
        _, begin, end = self.func.params
        b.for_(begin, end, 1, unit)
        b.ret()
        vectors = prod(self.windows) / max(self.lanes, 1) / max(units, 1)
        taps = prod(a.size for _, _, a in self.groups)
        return Phase(self.func, units, vectors * (COST[0] * taps + COST[1]) + prod(self.shape) / max(units, 1) / 8)

    def vectors(self, lo: Node | int, hi: Node | int, extent: int, turn: Callable[[Vector], None]) -> None:
        """`turn` for the vectors of a run."""

        def each(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                turn(v)
            return ()

        vector_loop(self.b, lo, hi, extent, each, lanes=self.lanes, masks=self.target.has_masks)

    def fill(self, fixed: Sequence[Index], lo: Node, hi: Node, in_parts: bool) -> None:
        """Set a unit's part of the result to the init value."""
        b, rest = self.b, self.shape[len(fixed) :]
        begin = index.linear(fixed, self.shape[: len(fixed)]) if fixed else index.ZERO
        rows, run = (prod(rest[:-1]), rest[-1]) if in_parts else (1, prod(rest))

        def store(row: Index, v: Vector) -> None:
            position = (begin * rows + row) * run + v.at
            self.result.store(b, position, splat(b, self.init, v.lanes), v.lanes, v.mask)

        def row(r: Node) -> None:
            at = index.loop_var(r, 0, rows)
            self.vectors(*((lo, hi) if in_parts else (0, run)), run, lambda v: store(at, v))

        b.for_(0, rows, 1, row)

    # ---- a vector of windows
    def window(self, at: Sequence[Index], v: Vector) -> None:
        """Choose in each lane's window, then combine."""
        chosen = self.chosen(at, v, self.plain_elements)
        guard = self.b.cmp("sge", chosen, 0)
        if v.mask is not None:
            guard = self.b.and_(guard, v.mask)
        value = splat(self.b, self.source.load(self.b, (*at, v.at), v.lanes, v.mask), v.lanes)
        value = arith.convert(self.b, value, self.op.dtype)

        def visit(found: list[Index], _: Node | None, __: tuple[Node, ...]) -> tuple[Node, ...]:
            self.combine(found, v, guard, chosen, value)
            return ()

        self.loops.walk(at, (), visit)

    def chosen(self, at: Sequence[Index], v: Vector,
               elements: Callable[[list[Index], Vector], list[tuple[int, Elem, Node | None]]]) -> Node:  # fmt: skip
        """The number of the element of its window that each lane chooses; -1 if its window is outside."""
        b, t = self.b, self.op.operands[0].dtype

        def visit(found: list[Index], _: Node | None, carried: tuple[Node, ...]) -> tuple[Node, ...]:
            old, where = carried
            for k, new, inside in elements(found, v):
                (stays,) = apply_region(b, self.op.attrs["select"], [Elem(t, old), new, *self.captured])
                keep = b.and_(b.splat(stays.re, v.lanes), b.cmp("sge", where, 0))
                if inside is not None:
                    keep = b.or_(keep, b.xor(inside, b.const(1, inside.type)))
                old = b.select(keep, old, new.re)
                where = b.select(keep, where, self.number(k, v.lanes))
            return old, where

        nothing = splat(b, arith.zero(b, t), v.lanes)
        return self.loops.walk(at, (nothing.re, b.const(-1, self.count.with_lanes(v.lanes))), visit)[1]

    def number(self, k: int, lanes: int) -> Node:
        """Of element `k` along the last axis, of the window's elements at the loops' place."""
        taps = index.ZERO
        for tap, (_, _, axis) in zip(self.loops.taps, self.groups, strict=False):  # all axes but the last
            taps = taps * axis.size + tap
        at = index.node(self.b, taps * self.axis.size + k)
        return self.b.splat(self.b.convert("itrunc", at, "i32"), lanes)

    def scattered(self, old: Elem, value: Elem) -> Elem:
        (new,) = apply_region(self.b, self.op.attrs["scatter"], [old, value, *self.captured])
        return splat(self.b, new, value.lanes)

    # ---- where no window moves along the last axis
    def plain_elements(self, found: list[Index], v: Vector) -> list[tuple[int, Elem, Node | None]]:
        """The one element along the last axis, for all lanes."""
        return [(0, splat(self.b, self.x.load(self.b, (*found, v.at), v.lanes, v.mask), v.lanes), None)]

    def combine(self, found: list[Index], v: Vector, guard: Node, chosen: Node, value: Elem) -> None:
        b = self.b
        position = index.linear((*found, v.at), self.shape)
        first = position.first_lane() if v.lanes > 1 else position
        offset = index.node(b, first * self.op.dtype.itemsize)
        old = arith.load_elem(b, self.result.ptr, offset, self.op.dtype, v.lanes, v.mask)
        new = self.scattered(old, value)
        hits = b.and_(guard, b.cmp("eq", chosen, self.number(0, v.lanes)))
        x = b.select(hits, new.re, old.re)
        self.result.store(b, position, Elem(self.op.dtype, x), v.lanes, v.mask)

    # ---- where windows move along it
    def moved_elements(self, found: list[Index], v: Vector) -> list[tuple[int, Elem, Node | None]]:
        """The elements along the last axis, and the lanes for which each is inside."""
        b, axis, out = self.b, self.axis, []
        for q in range(0, axis.size, axis.stride):
            runs = [arith.load_elem(b, self.x.ptr, offset, self.x.type.dtype, v.lanes, mask).re
                    for offset, mask in self.spans(self.x, found, v, q)]  # fmt: skip
            for k in range(q, min(q + axis.stride, axis.size)):
                place = self.place(v, k)
                inside = index.in_range(b, place, 0, self.shape[-1])
                x = Elem(self.op.operands[0].dtype, self.spread(runs, k - q))
                out.append((k, x, None if inside.const else inside))
        return out

    def place(self, v: Vector, k: int) -> Index:
        return v.at * self.axis.stride + (k - self.axis.low)

    def spans(self, source: Buffer, found: list[Index], v: Vector, q: int) -> list[tuple[Node, Node]]:
        """The places from those that are number `q` of their windows on, as they lie in memory: (offset, lanes that are
        inside of the row) of `stride` vectors."""
        b, n = self.b, self.shape[-1]
        row = index.linear(found, self.shape[:-1]) * n if found else index.ZERO
        first = self.place(v, q).first_lane()
        at = index.node(b, first)
        out = []
        for i in range(self.axis.stride):
            begin = b.add(at, i * v.lanes)
            lanes = b.add(b.iota(I64.with_lanes(v.lanes)), begin)
            offset = index.node(b, (row + first + i * v.lanes) * source.type.dtype.itemsize)
            out.append((offset, b.cmp("ult", lanes, n)))
        return out

    def spread(self, runs: Sequence[Node], k: int) -> Node:
        """Every `stride`th element from element `k` on."""
        return permuted(self.b, runs, [l * self.axis.stride + k for l in range(runs[0].type.lanes)])

    def row(self, at: Sequence[Index]) -> None:
        """Choose in each window of a row; then go along the row of places: what lies at one comes from the windows that
        have it as their last element, and so on, to those that have it as their first."""
        b, inner = self.b, self.windows[-1]
        before = self.reach - 1  # windows before the first one that places are looked up in

        def choose(v: Vector) -> None:
            chosen = self.chosen(at, v, self.moved_elements)
            if v.mask is not None:
                chosen = b.select(v.mask, chosen, -1)
            first = v.at.first_lane() + before
            b.store(b.gep(self.line, index.node(b, first * self.count.size)), chosen)

        self.vectors(0, inner, inner, choose)

        def visit(found: list[Index], _: Node | None, __: tuple[Node, ...]) -> tuple[Node, ...]:
            extent = inner + before
            self.vectors(0, extent, extent, lambda v: self.combine_moved(at, found, v))
            return ()

        self.loops.walk(at, (), visit)

    def combine_moved(self, at: Sequence[Index], found: list[Index], v: Vector) -> None:
        """Combine the places `stride` times `v.at` from the start of the first window on."""
        b, (stride, t) = self.b, (self.axis.stride, self.op.dtype)
        spans = self.spans(self.result, found, v, 0)
        runs = [arith.load_elem(b, self.result.ptr, offset, t, v.lanes, mask).re for offset, mask in spans]
        parts = [self.spread(runs, r) for r in range(stride)]
        first = v.at.first_lane() if v.lanes > 1 else v.at
        for back in reversed(range(self.reach)):
            offset = index.node(b, (first + (self.reach - 1 - back)) * self.count.size)
            chosen = b.load(b.gep(self.line, offset), self.count)
            value = splat(b, self.source.load(b, (*at, v.at - back), v.lanes), v.lanes)
            value = arith.convert(b, value, t)
            for k in range(back * stride, min((back + 1) * stride, self.axis.size)):
                r = k - back * stride
                hits = b.cmp("eq", chosen, self.number(k, v.lanes))
                parts[r] = b.select(hits, self.scattered(Elem(t, parts[r]), value).re, parts[r])
        for i, (offset, mask) in enumerate(spans):
            places = range(i * v.lanes, (i + 1) * v.lanes)
            x = permuted(b, parts, [p % stride * v.lanes + p // stride for p in places])
            arith.store_elem(b, self.result.ptr, offset, Elem(t, x), v.lanes, mask)


def permuted(b: Builder, vectors: Sequence[Node], order: Sequence[int]) -> Node:
    """The lanes of a vector, each at this place of `vectors` one after the other."""
    lanes = vectors[0].type.lanes
    out = vectors[0]
    for i, x in enumerate(vectors):
        mine = [p // lanes == i for p in order]
        if i and any(mine):
            out = b.shuffle(out, x, [lanes + p % lanes if m else l for l, (p, m) in enumerate(zip(order, mine))])
        elif not i and list(order) != list(range(lanes)):
            out = b.shuffle(x, x, [p if m else l for l, (p, m) in enumerate(zip(order, mine))])
    return out
