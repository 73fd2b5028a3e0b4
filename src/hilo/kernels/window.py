"""Reductions of windows. Imports ops, loop, kernels.

The innermost axis is walked in vectors, whether windows move along it (masked or strided loads) or not (pooling over
channels); the other axes have loops over exactly the elements that a window has. Neighbouring axes along which no
window moves are one. Running reductions are in kernels/scan.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import Number, Size, typical, upper
from hilo.ir.op import Op
from hilo.ir.types import TensorType, result_types
from hilo.kernels import elementwise, scan
from hilo.kernels.combine import Combiner, Elems, pack, splat, unpack
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.loop import index
from hilo.loop.builder import Builder, Node
from hilo.loop.index import Index
from hilo.ops.reduce_window import scanned_axis
from hilo.ops.window_axes import Axis, axes

if TYPE_CHECKING:
    from hilo.backend.target import Target

SMALL: Final = 1 << 12  # steps of work below which there is one unit
Group = tuple[Number, Number, Axis]  # size of the input, number of windows, how they move


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `reduce_window`."""
    out = [t for t in result_types(op.type) if isinstance(t, TensorType)]
    if out[0].size == 0:
        return Lowered([])
    moved = window_axes(op)
    scanned = scanned_axis(moved, op.operands[0].shape)
    if scanned is not None:
        return scan.lower(op, out, *scanned, target)
    windows = _Windows(op, out, grouped(op.operands[0].shape, out[0].shape, moved), target)
    return Lowered([windows.phase()], strategy="windows", reason="each by itself, results side by side in vectors")


def window_axes(op: Op) -> tuple[Axis, ...]:
    """How the windows of a `reduce_window` or `select_and_scatter` move."""
    a, rank = op.attrs, op.operands[0].tensor.rank
    return axes(a["window_dimensions"] or (1,) * rank, a["window_strides"], a["padding"],
                a.get("base_dilations"), a.get("window_dilations"))  # fmt: skip


def grouped(shape: Sequence[Number], windows: Sequence[Number], moved: Sequence[Axis]) -> list[Group]:
    """The axes, neighbouring plain ones as one and those of size 1 left out; at least one."""
    groups: list[Group] = []
    for n, m, a in zip(shape, windows, moved, strict=True):
        if a.is_plain and groups and groups[-1][2].is_plain:
            groups[-1] = (groups[-1][0] * n, groups[-1][1] * m, a)
        elif not (a.is_plain and n == 1):
            groups.append((n, m, a))
    return groups or [(1, 1, Axis())]


def known_inside(b: Builder, place: Index, last: Number) -> Index:
    """An index that is known to be in [0, last]."""
    if isinstance(last, Size):
        return index.from_node(b, index.node(b, place), 0, last + 1)
    return Index(place.const, place.terms, 0, last)


class WindowLoops:
    """Loops over the elements of the windows at given indices of the result.

    `shape`: of the input, in groups. The innermost group's index may be a vector. While a body runs, `taps` holds which
    element of its window it is along each group that has no vector index.
    """

    def __init__(self, b: Builder, groups: Sequence[Group]) -> None:
        self.b = b
        self.groups = groups
        self.shape = tuple(n for n, _, _ in groups)
        self.taps: list[Index] = []

    def walk(self, at: Sequence[Index], carried: tuple[Node, ...], body: scan.Visit) -> tuple[Node, ...]:
        """carried = body(indices of the element, mask or None, carried) for each element, in row-major order."""
        return self._walk(list(at), [], None, carried, body)

    def _walk(self, at: list[Index], found: list[Index], mask: Node | None, carried: tuple[Node, ...],
              body: scan.Visit) -> tuple[Node, ...]:  # fmt: skip
        if len(found) == len(at):
            return body(found, mask, carried)
        n, _, axis = self.groups[len(found)]
        o = at[len(found)]
        if axis.is_plain:
            return self._inside(index.ZERO, at, [*found, o], mask, carried, body)
        if n == 0:
            return carried
        if o.is_vector:
            return self._lanes(at, found, o, carried, body)
        return self._scalar(at, found, o, mask, carried, body)

    def _inside(self, tap: Index, at: list[Index], found: list[Index], mask: Node | None, carried: tuple[Node, ...],
                body: scan.Visit) -> tuple[Node, ...]:  # fmt: skip
        self.taps.append(tap)
        carried = self._walk(at, found, mask, carried, body)
        self.taps.pop()
        return carried

    def _scalar(self, at: list[Index], found: list[Index], o: Index, mask: Node | None, carried: tuple[Node, ...],
                body: scan.Visit) -> tuple[Node, ...]:  # fmt: skip
        """A loop over exactly the window's elements that are inside; holes are stepped over."""
        b = self.b
        n, _, axis = self.groups[len(found)]
        first = o * axis.stride - axis.low
        last = axis.spread(n) - 1

        def visit(k: Index, values: tuple[Node, ...]) -> tuple[Node, ...]:
            place = first + k * axis.dilation
            place = known_inside(b, place, last)

            def here() -> tuple[Node, ...]:
                return self._inside(k, at, [*found, place // axis.base], mask, values, body)

            if axis.base == 1:
                return here()
            return b.if_(b.cmp("eq", index.node(b, place % axis.base), 0), here, lambda: values)

        if axis.size == 1:  # a branch: out of a loop that may have no turn, loads would be hoisted
            return b.if_(index.in_range(b, first, 0, last + 1), lambda: visit(index.ZERO, carried), lambda: carried)
        lo: Node | Number = 0
        hi: Node | Number = axis.size
        if first.lo < 0:
            lo = b.smax(index.node(b, -(first // axis.dilation)), 0)
        if upper(first.hi + (axis.size - 1) * axis.dilation - last) > 0:
            hi = b.smin(index.node(b, (last - first) // axis.dilation + 1), axis.size)

        def element(iv: Node, *values: Node) -> tuple[Node, ...]:
            return visit(index.loop_var(iv, 0, axis.size), values)

        return b.for_(lo, hi, 1, element, carried)

    def _lanes(self, at: list[Index], found: list[Index], o: Index, carried: tuple[Node, ...],
               body: scan.Visit) -> tuple[Node, ...]:  # fmt: skip
        """A loop over all of the window's elements; lanes whose element is outside or in a hole are masked."""
        b = self.b
        n, _, axis = self.groups[len(found)]

        def element(iv: Node, *values: Node) -> tuple[Node, ...]:
            place = o * axis.stride - axis.low + index.loop_var(iv, 0, axis.size) * axis.dilation
            mask = index.in_range(b, place, 0, axis.spread(n))
            if axis.base > 1:
                mask = b.and_(mask, b.cmp("eq", index.node(b, place % axis.base), 0))
            return self._walk(at, [*found, place // axis.base], None if mask.const else mask, values, body)

        return b.for_(0, axis.size, 1, element, carried)


class _Windows:
    """Writes the function of a reduction of windows."""

    def __init__(self, op: Op, out: list[TensorType], groups: list[Group], target: Target) -> None:
        body = op.attrs["body"]
        n, count = len(body.results), len(op.operands)
        self.groups, self.target = groups, target
        self.combiner = Combiner(body, count - 2 * n)
        self.func = elementwise.new_func("reduce_window")
        b = self.b = Builder(self.func)
        bufs = self.func.params[0]
        operands = [Buffer(pointer(b, bufs, i), x.tensor, constant=True) for i, x in enumerate(op.operands)]
        self.loops = WindowLoops(b, groups)
        self.inputs = [Buffer(x.ptr, x.type.with_shape(self.loops.shape), constant=True) for x in operands[:n]]
        self.inits = self.combiner.prepare(b, [x.load(b, (), 1) for x in operands[n : 2 * n]])
        self.captured: Elems = tuple(x.load(b, (), 1) for x in operands[2 * n :])
        self.windows = tuple(m for _, m, _ in groups)
        self.results = [Buffer(pointer(b, bufs, count + i), t.with_shape(self.windows), RESULT_ALIGN)
                        for i, t in enumerate(out)]  # fmt: skip

    def phase(self) -> Phase:
        b = self.b
        *outer, inner = self.windows
        lanes = max(1, min(self.target.lanes(d) for d in self.combiner.dtypes))
        while lanes > 1 and typical(inner) <= lanes // 2:
            lanes //= 2
        unroll = 4 if typical(inner) >= 4 * lanes else 1
        work = typical(prod(a.size for _, _, a in self.groups))
        every = prod(outer)
        total = typical(prod(self.windows)) * work
        units = every if total > SMALL or isinstance(every, Size) else 1

        def row(u: Index) -> None:
            at = index.delinear(u, outer)

            def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
                self._vectors(at, vectors)
                return ()

            vector_loop(b, 0, inner, inner, turn, lanes=lanes, unroll=unroll, masks=self.target.has_masks)

        begin, end = self.func.params[1:] if units is every else (b.i64(0), b.i64(every))
        b.for_(begin, end, 1, lambda u: row(index.loop_var(u, 0, every)))
        b.ret()
        return Phase(self.func, units, total / max(typical(units), 1) * 2.0 / lanes)

    def _vectors(self, at: list[Index], vectors: list[Vector]) -> None:
        """Reduce the windows of some vectors of the innermost axis, one after the other in each step."""
        b, c = self.b, self.combiner
        windowed = not self.groups[-1][2].is_plain
        for group in [[v] for v in vectors] if windowed else [vectors]:
            start = [splat(b, e, v.lanes) for v in group for e in self.inits]

            def visit(found: list[Index], mask: Node | None, carried: tuple[Node, ...],
                      group: list[Vector] = group) -> tuple[Node, ...]:  # fmt: skip
                old = unpack(carried, c.dtypes * len(group))
                new: list[Node] = []
                for k, v in enumerate(group):
                    place = (*found[:-1], found[-1] if windowed else v.at)
                    guard = v.mask if mask is None else mask if v.mask is None else b.and_(mask, v.mask)
                    x = c.prepare(b, [splat(b, y.load(b, place, v.lanes, guard), v.lanes) for y in self.inputs])
                    state = tuple(old[k * len(c.dtypes) : (k + 1) * len(c.dtypes)])
                    values = pack(splat(b, e, v.lanes) for e in c(b, state, x, self.captured))
                    new += values if mask is None else map(b.select, [mask] * len(values), values, pack(state))
                return tuple(new)

            where = [*at, group[0].at]
            carried = self.loops.walk(where, pack(start), visit)
            values = unpack(carried, c.dtypes * len(group))
            for k, v in enumerate(group):
                state = tuple(values[k * len(c.dtypes) : (k + 1) * len(c.dtypes)])
                position = index.linear([*at, v.at], self.windows)
                for r, e in zip(self.results, c.finish(b, state), strict=True):
                    r.store(b, position, e, v.lanes, v.mask)
