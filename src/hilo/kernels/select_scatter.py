"""select_and_scatter: windows choose elements, which source elements are combined into. Imports ops, loop, kernels.

Mostly by vectors (kernels/select_scatter_rows.py). Otherwise a phase fills the result with the init value; the second
walks the source in row-major order. Only axes along which no window moves are split into units and vectors, since
windows may choose the same element.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from hilo.ir.dims import typical
from hilo.ir.op import Op
from hilo.kernels import elementwise
from hilo.kernels.combine import pack, splat, unpack
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.kernels.select_scatter_rows import SelectScatterRows, lanes_of
from hilo.kernels.window import WindowLoops, grouped, window_axes
from hilo.loop import arith, index
from hilo.loop.builder import I64, Builder, Node
from hilo.loop.index import Index
from hilo.ops.fusion import apply_region

if TYPE_CHECKING:
    from hilo.backend.target import Target


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `select_and_scatter`."""
    if op.tensor.size == 0:
        return Lowered([])
    groups = grouped(op.operands[0].shape, op.operands[1].shape, window_axes(op))
    lanes = lanes_of(op, groups, target) if op.operands[1].tensor.size != 0 else 1
    if lanes > 1:
        phase = SelectScatterRows(op, groups, lanes, target).phase()
        return Lowered([phase], strategy="select and scatter, by vectors",
                       reason=f"{lanes} windows side by side; what they choose is found again, not scattered")
    phases = [_fill(op, target)]
    if op.operands[1].tensor.size != 0:
        phases.append(_SelectScatter(op, target).phase())
    return Lowered(phases, strategy="select and scatter", reason="fill, then window by window in order")


def _fill(op: Op, target: Target) -> Phase:
    """The phase that sets the result to the init value."""
    t = op.tensor.with_shape([op.tensor.size])
    func = elementwise.new_func("fill")
    b = Builder(func)
    init = Buffer(pointer(b, func.params[0], 2), op.operands[2].tensor, constant=True).load(b, (), 1)
    value = arith.convert(b, init, t.dtype)
    result = Buffer(pointer(b, func.params[0], len(op.operands)), t, RESULT_ALIGN)

    def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
        for v in vectors:
            result.store(b, v.at, splat(b, value, v.lanes), v.lanes, v.mask)
        return ()

    vector_loop(b, 0, t.size, t.size, turn, lanes=target.lanes(t.dtype), masks=target.has_masks)
    b.ret()
    return Phase(func, 1, typical(t.size) / 8.0)


class _SelectScatter:
    """Writes the function that chooses and combines."""

    def __init__(self, op: Op, target: Target) -> None:
        self.op, self.target = op, target
        moved = window_axes(op)
        self.groups = grouped(op.operands[0].shape, op.operands[1].shape, moved)
        self.func = elementwise.new_func("select_and_scatter")
        b = self.b = Builder(self.func)
        bufs, count = self.func.params[0], len(op.operands)
        self.loops = WindowLoops(b, self.groups)
        self.windows = tuple(m for _, m, _ in self.groups)
        x, s, _, *captured = (Buffer(pointer(b, bufs, i), o.tensor, constant=True) for i, o in enumerate(op.operands))
        self.captured = [c.load(b, (), 1) for c in captured]
        self.x = Buffer(x.ptr, x.type.with_shape(self.loops.shape), constant=True)
        self.source = Buffer(s.ptr, s.type.with_shape(self.windows), constant=True)
        self.result = Buffer(pointer(b, bufs, count), op.tensor.with_shape(self.loops.shape), RESULT_ALIGN)

    def phase(self) -> Phase:
        b = self.b
        *outer, inner = self.windows
        lanes = 1
        if self.groups[-1][2].is_plain:
            lanes = self.target.lanes(self.op.dtype)
            while lanes > 1 and typical(inner) <= lanes // 2:
                lanes //= 2
        split = 0  # leading groups that are units
        while split < len(outer) and self.groups[split][2].is_plain:
            split += 1
        units = prod(outer[:split])

        def unit(u: Node) -> None:
            fixed = index.delinear(index.loop_var(u, 0, units), outer[:split]) if split else []

            def loops(at: list[Index]) -> None:
                if len(at) < len(outer):
                    n = outer[len(at)]
                    b.for_(0, n, 1, lambda iv: loops([*at, index.loop_var(iv, 0, n)]))
                    return

                def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
                    for v in vectors:
                        self._window(at, v)
                    return ()

                vector_loop(b, 0, inner, inner, turn, lanes=lanes, masks=self.target.has_masks)

            loops(fixed)

        _, begin, end = self.func.params
        b.for_(begin, end, 1, unit)
        b.ret()
        taps = prod(a.size for _, _, a in self.groups)
        each = typical(prod(self.windows)) / max(typical(units), 1)
        return Phase(self.func, units, each * (2.0 * taps + 4.0) / lanes)

    def _window(self, at: list[Index], v: Vector) -> None:
        """Choose an element in each lane's window (position -1: none), and combine the source element with it."""
        b = self.b
        t = self.op.operands[0].dtype
        plain = self.groups[-1][2].is_plain

        def visit(found: list[Index], mask: Node | None, carried: tuple[Node, ...]) -> tuple[Node, ...]:
            place = (*found[:-1], v.at) if plain else tuple(found)
            (old,) = unpack(carried[:-1], [t])
            where = carried[-1]
            new = splat(b, self.x.load(b, place, v.lanes, v.mask), v.lanes)
            stays = apply_region(b, self.op.attrs["select"], [old, new, *self.captured])[0].re
            stays = b.and_(stays, b.cmp("sge", where, 0))
            position = b.splat(index.node(b, index.linear(place, self.loops.shape)), v.lanes)
            parts = zip(pack([old]), pack([new]), strict=True)
            return (*(b.select(stays, p, q) for p, q in parts), b.select(stays, where, position))

        nothing = splat(b, arith.zero(b, t), v.lanes)
        start = (*pack([nothing]), b.const(-1, I64.with_lanes(v.lanes)))
        where = self.loops.walk([*at, v.at], start, visit)[-1]
        there = b.cmp("sge", where, 0)
        guard = there if v.mask is None else b.and_(there, v.mask)
        at_source = (*at, v.at)

        def combine(guard: Node | None) -> None:
            size = self.op.dtype.itemsize
            offsets = b.mul(where, size)
            value = splat(b, self.source.load(b, at_source, v.lanes, guard), v.lanes)
            value = arith.convert(b, value, self.op.dtype)
            if v.lanes == 1:
                old = arith.load_elem(b, self.result.ptr, offsets, self.op.dtype)
            else:
                old = arith.gather_elem(b, self.result.ptr, offsets, self.op.dtype, guard)
            (new,) = apply_region(b, self.op.attrs["scatter"], [old, value, *self.captured])
            new = splat(b, new, v.lanes)
            if v.lanes == 1:
                arith.store_elem(b, self.result.ptr, offsets, new)
            else:
                arith.scatter_elem(b, self.result.ptr, offsets, new, guard)

        if v.lanes == 1:
            b.if_(guard, lambda: combine(None))
        else:
            combine(guard)
