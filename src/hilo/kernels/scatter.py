"""Scatter: updates are combined into the result in the row-major order of the updates. Imports ops, loop, kernels.

A phase copies the inputs to the results (nothing to do where they share memory), then the updates are applied: runs of
elements that lie side by side as vectors, others one by one. Work is split only where destinations are surely disjoint:
along batching dims and along runs, or each unit applies what goes to its share of the destinations; so results never
depend on threads.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import typical, upper
from hilo.ir.op import Op
from hilo.ir.types import TensorType, result_types
from hilo.kernels import elementwise
from hilo.kernels.combine import Elems
from hilo.kernels.copies import copy_if_elsewhere
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.loop import arith, index
from hilo.loop.builder import I1, Builder, Node
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.ops.fusion import apply_region
from hilo.ops.gather import FAR, batch_position

if TYPE_CHECKING:
    from hilo.backend.target import Target

BLOCK_BYTES: Final = 1024  # of a run, per parallel unit
LINE: Final = 64  # bytes
OWNERS: Final = 4  # units that share the destinations of short runs
AHEAD: Final = 4  # updates
SMALL: Final = 1 << 14  # elements of updates below which there is one unit


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `scatter`."""
    n = len(op.attrs["update_computation"].results)
    out = [t for t in result_types(op.type) if isinstance(t, TensorType)]
    if out[0].size == 0:
        return Lowered([])
    count = len(op.operands)
    if op.operands[n + 1].tensor.size != 0 and elementwise.streams(out[0], target):
        from hilo.kernels.scatter_blocks import InBlocks

        if (code := InBlocks.of(op, target)) is not None:
            return Lowered(code.phases(), code.scratch, ((0, 0),), strategy="scatter by blocks",
                           reason="updates are sorted by the block of the result that they go to, which is read and "
                           "written once; in place, where nobody else needs the operand")  # fmt: skip
    phases, in_place = [], []
    for i, (x, t) in enumerate(zip(op.operands[:n], out, strict=True)):
        if x.dtype is t.dtype:
            phases.append(copy_if_elsewhere(t, (i, count + i), target))
            in_place.append((i, i))
        else:
            phases.append(_promote(x.tensor, t, (i, count + i), target))
    if op.operands[n + 1].tensor.size != 0:
        phases.append(_InOrder(op, target).phase())
    return Lowered(phases, in_place=tuple(in_place), strategy="scatter",
                   reason="in place, where nobody else needs the operand; updates in order")  # fmt: skip


def _promote(x: TensorType, t: TensorType, places: tuple[int, int], target: Target) -> Phase:
    """A phase that copies an input to a result of another element type."""
    func = elementwise.new_func("promote")
    b = Builder(func)
    source = Buffer(pointer(b, func.params[0], places[0]), x.with_shape([x.size]))
    result = Buffer(pointer(b, func.params[0], places[1]), t.with_shape([t.size]), RESULT_ALIGN)

    def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
        for v in vectors:
            result.store(b, v.at, arith.convert(b, source.load(b, (v.at,), v.lanes, v.mask), t.dtype), v.lanes, v.mask)
        return ()

    vector_loop(b, 0, t.size, t.size, turn, lanes=target.lanes(t.dtype), masks=target.has_masks)
    b.ret()
    return Phase(func, 1, typical(t.size) / 4.0)


class ScatterCode:
    """Where updates go, and how they are combined."""

    def __init__(self, op: Op, target: Target) -> None:
        a = op.attrs
        self.body = a["update_computation"]
        n = len(self.body.results)
        self.n, self.target, self.attrs, self.op = n, target, a, op
        self.shape = op.operands[0].shape
        self.updates = op.operands[n + 1].shape
        self.window = a["update_window_dims"]
        hidden = {*a["inserted_window_dims"], *a["input_batching_dims"]}
        self.input_dim = dict(zip(self.window, [d for d in range(len(self.shape)) if d not in hidden], strict=True))
        self.run = self._run_dims()
        self.func = elementwise.new_func("scatter")
        self.b = Builder(self.func)
        self._buffers()

    def _buffers(self) -> None:
        op, n = self.op, self.n
        bufs, count = self.func.params[0], len(op.operands)
        buffers = [Buffer(pointer(self.b, bufs, i), x.tensor, constant=True) for i, x in enumerate(op.operands)]
        self.indices, self.sources, self.captured = buffers[n], buffers[n + 1 : 2 * n + 1], buffers[2 * n + 1 :]
        self.results = [Buffer(pointer(self.b, bufs, count + i), r.tensor.with_shape(self.shape), RESULT_ALIGN)
                        for i, r in enumerate(self.body.results)]  # fmt: skip

    def _run_dims(self) -> int:
        """How many of the innermost dims of updates and inputs are walked together: whole ones that are not indexed."""
        run, rank, depth = 0, len(self.updates), len(self.shape)
        indexed = self.attrs["scatter_dims_to_operand_dims"]
        while run < min(rank, depth):
            u, d = rank - 1 - run, depth - 1 - run
            if self.input_dim.get(u) != d or d in indexed or self.updates[u] != self.shape[d]:
                break
            run += 1
        return run

    def _starts(self, at: list[Index]) -> list[Index]:
        """The indices into the inputs at which the updates at `at` (dims outside of the run) go."""
        b, a = self.b, self.attrs
        scattered = [i for d, i in enumerate(at) if d not in self.window]
        starts = [index.ZERO] * len(self.shape)
        vector = a["index_vector_dim"]
        for k, d in enumerate(a["scatter_dims_to_operand_dims"]):
            where = list(scattered)
            if vector < self.indices.type.rank:
                where.insert(vector, index.constant(k))
            starts[d] = _position(b, self.indices.load(b, tuple(where), 1))
        for d, s in zip(a["input_batching_dims"], a["scatter_indices_batching_dims"], strict=True):
            starts[d] = scattered[batch_position(s, vector)]
        for u, d in self.input_dim.items():
            if u < len(at):
                starts[d] = starts[d] + at[u]
        return starts

    def _inside(self, places: list[Index]) -> Node:
        """Whether these indices into the inputs' first dims are in range."""
        inside = self.b.const(1, I1)
        for i, n in zip(places, self.shape, strict=False):
            inside = self.b.and_(inside, index.in_range(self.b, i, 0, n))
        return inside

    def _combine(self, source: Index, place: Index, lanes: int, mask: Node | None) -> None:
        """result[place] = body(result[place], update[source]) for some lanes; one lane: if the mask holds."""
        b = self.b

        def run() -> None:
            guard = mask if lanes > 1 else None
            old = [_at(b, x, place, lanes, guard) for x in self.results]
            new = [arith.convert(b, _at(b, x, source, lanes, guard), r.type.dtype)
                   for x, r in zip(self.sources, self.results, strict=True)]  # fmt: skip
            captured = [x.load(b, (), 1) for x in self.captured]
            values: Elems = apply_region(b, self.body, [*old, *new, *captured])
            for r, e in zip(self.results, values, strict=True):
                r.store(b, place, e, lanes, guard)

        if lanes == 1 and mask is not None:
            b.if_(mask, run)
        else:
            run()


class _InOrder(ScatterCode):
    """Writes the function that applies the updates where they go, in their order."""

    own: tuple[int, Node, Node] | None = None  # a dim of the inputs, and which part of it this unit changes

    def phase(self) -> Phase:
        b = self.b
        begin, end = self.func.params[1:]
        rank = len(self.updates)
        sizes = self.updates[: rank - self.run]
        length = prod(self.updates[rank - self.run :])
        lanes = self.target.lanes(self.results[0].type.dtype)
        partial = not self.run and rank > 0 and self.input_dim.get(rank - 1) == len(self.shape) - 1
        if partial:  # the last dim is walked along the input's, from an index on
            sizes, length = sizes[:-1], sizes[-1]
        batch = self._batch_dims(sizes)
        total = prod(self.updates)
        blocks, block = self._blocks(length, lanes) if typical(total) > SMALL else (1, 0)
        split = batch if typical(total) > SMALL else []
        owned = self._owned(length) if typical(total) > SMALL and blocks == 1 and not split else None
        units = prod(sizes[d] for d in split) * blocks * (OWNERS if owned is not None else 1)
        ahead = not partial and self.run > 0 and isinstance(length, int) and len(sizes) - 1 not in [-1, *split]

        def unit(u: Node) -> None:
            pieces = OWNERS if owned is not None else blocks
            *fixed, piece = index.delinear(index.loop_var(u, 0, units), (*(sizes[d] for d in split), pieces))
            if owned is not None:
                share = -(-self.shape[owned] // OWNERS)
                first = b.mul(index.node(b, piece), share)
                self.own = owned, first, b.add(first, share)
            lo: Node | int = 0
            hi: Node | int = length
            if blocks > 1:
                lo = b.mul(index.node(b, piece), block)
                hi = b.smin(b.add(lo, block), length)

            def loops(at: list[Index]) -> None:
                d = len(at)
                if d == len(sizes):
                    self._apply(at, length, lo, hi, lanes, partial)
                elif d in split:
                    loops([*at, fixed[split.index(d)]])
                else:
                    b.for_(0, sizes[d], 1, lambda iv: step(at, iv))

            def step(at: list[Index], iv: Node) -> None:
                size = sizes[len(at)]
                if ahead and len(at) == len(sizes) - 1:
                    later = index.loop_var(b.smin(b.add(iv, AHEAD), b.i64(size - 1)), 0, size)
                    self._fetch([*at, later], length, lo, hi)
                loops([*at, index.loop_var(iv, 0, size)])

            loops([])

        if units == 1:
            unit(b.i64(0))
        else:
            b.for_(begin, end, 1, unit)
        b.ret()
        return Phase(self.func, units, total / units * (1.0 if typical(length) < lanes else 4.0 / lanes))

    def _blocks(self, length: int, lanes: int) -> tuple[int, int]:
        """How many parts a run is cut into, an even number, and their elements."""
        block = max(BLOCK_BYTES // self.results[0].type.dtype.itemsize, lanes * 4)
        if not self.run or not isinstance(length, int) or length < 2 * block:
            return 1, 0
        block = -(-length // (length // block & -2))
        block = -(-block // lanes) * lanes
        return -(-length // block), block

    def _owned(self, length: int) -> int | None:
        """The indexed dim of the inputs that is cut into shares. The unit of a share looks at all indices and applies
        those that lie there; that pays where updates are no less work than indices."""
        if not isinstance(length, int) or length * self.results[0].type.dtype.itemsize < LINE:
            return None
        dims = [d for d in self.attrs["scatter_dims_to_operand_dims"] if d < len(self.shape) - max(self.run, 1)]
        return next((d for d in dims if isinstance(self.shape[d], int) and self.shape[d] >= OWNERS), None)

    def _batch_dims(self, sizes: tuple[int, ...]) -> list[int]:
        """Dims of the updates whose positions have disjoint destinations: batching dims."""
        a = self.attrs
        scattered = [d for d in range(len(self.updates)) if d not in self.window]
        found = (scattered[batch_position(s, a["index_vector_dim"])] for s in a["scatter_indices_batching_dims"])
        return [d for d in found if d < len(sizes)]

    def _fetch(self, at: list[Index], length: int, lo: Node | int, hi: Node | int) -> None:
        """Ask for the memory that a later update changes; whatever its indices are, nothing happens but that."""
        b = self.b
        free = len(self.shape) - self.run
        starts = self._starts(at)[:free]
        outer = index.node(b, index.linear(starts, self.shape[:free]) * length)
        for r in self.results:
            size = r.type.dtype.itemsize
            begin, end = ((b.i64(x) if isinstance(x, int) else x) for x in (lo, hi))
            row = b.gep(r.ptr, b.mul(outer, size))

            def fetch(offset: Node, row: Node = row) -> None:
                b.prefetch(b.gep(row, offset), write=True)

            b.for_(b.mul(begin, size), b.mul(end, size), LINE, fetch)

    def _apply(self, at: list[Index], length: int, lo: Node | int, hi: Node | int, lanes: int, partial: bool) -> None:
        """Apply the updates of one run."""
        b = self.b
        starts = self._starts(at)
        free = len(self.shape) - (1 if partial else self.run)
        inside = self._inside(starts[:free])
        if self.own is not None:
            d, first, end = self.own
            place = index.node(b, starts[d])
            inside = b.and_(inside, b.and_(b.cmp("sge", place, first), b.cmp("slt", place, end)))
        outer = index.linear(starts[:free], self.shape[:free]) * length if not partial else index.ZERO
        source = index.linear(at, self.updates[: len(at)]) * length

        def apply() -> None:
            def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
                for v in vectors:
                    if partial:
                        last = starts[-1] + v.at
                        mask = index.in_range(b, last, 0, self.shape[-1])
                        mask = mask if v.mask is None else b.and_(mask, v.mask)
                        place = index.linear([*starts[:-1], last], self.shape)
                    else:
                        mask, place = v.mask, outer + v.at
                    self._combine(source + v.at, place, v.lanes, None if mask is None or mask.const else mask)
                return ()

            fits = lanes if upper(length) >= lanes else 1
            vector_loop(b, lo, hi, length, turn, lanes=fits, masks=self.target.has_masks)

        b.if_(inside, apply)


def _at(b: Builder, x: Buffer, position: Index, lanes: int, mask: Node | None) -> Elem:
    """The element at a row-major position that is surely in range where the mask holds."""
    flat = Buffer(x.ptr, TensorType(x.type.dtype, (1 << 62,)), x.align, x.constant)
    within = Index(position.const, position.terms, 0, (1 << 62) - 1)
    return flat.load(b, (within,), lanes, mask)


def _position(b: Builder, e: Elem) -> Index:
    """An index component as an i64 index cut to +-FAR, so that adding offsets cannot overflow."""
    if e.dtype.kind == "u":
        v = e.re if e.dtype.bits == 64 else b.convert("zext", e.re, "i64")
        if e.dtype.bits == 64:
            v = b.select(b.cmp("ult", v, FAR), v, FAR)
        return index.from_node(b, v, 0, FAR + 1)
    v = b.convert("sext", e.re, "i64")
    if e.dtype.bits == 64:
        v = b.smax(b.smin(v, FAR), -FAR)
    return index.from_node(b, v, -FAR, FAR + 1)
