"""Reductions across long rows: a unit reads whole rows, or long pieces of them. Imports loop, kernels.

Where the kept dim is the contiguous one, a few vectors of a row are only some lines of memory, and the next row's are
far away. A unit therefore takes a panel of columns whose accumulated values fit the first-level cache, and adds several
rows at a time to them, so that every row is read as one stream, and reading the accumulated values costs little.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from hilo.ir.types import TensorType
from hilo.kernels.combine import Elems, pack, splat
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.memory import Buffer
from hilo.kernels.rows_code import Row, RowCode
from hilo.kernels.rows_plan import BLOCK_TURNS
from hilo.loop import index
from hilo.loop.builder import Func, Node
from hilo.loop.element import Elem
from hilo.loop.index import Index

SIDE_BY_SIDE: Final = 2  # vectors
LINE: Final = 64  # bytes of a cache line


class WideCode(RowCode):
    """The loops of a kernel that reduces panels of columns in one pass."""

    lo: Node  # the panel's columns
    hi: Node
    outer: list[Index]  # kept loops around the columns

    def whole(self) -> Func:
        """The function that does everything in one phase."""
        self.results = self._results()

        def finish(row: Row, state: Elems) -> None:
            self._set_values(row, 0, state)
            self._finish_rows([row])

        self._units(finish)
        return self._done()

    def chunks(self) -> Func:
        """The function that reduces one chunk of one panel, without initial values, into the scratch."""
        self.results = self._results()
        partials = self._partials()

        def finish(row: Row, state: Elems) -> None:
            assert self.chunk is not None
            at = index.loop_var(self.chunk, 0, self.p.chunks) * self._row_count() + self._row_position(row)
            self._store(partials, row.vector, state, at)

        self._units(finish)
        return self._done()

    # ---- units
    def _units(self, finish: Callable[[Row, Elems], None]) -> None:
        """Loops over the units begin..end: their sums, and `finish(row, state)` for each vector of rows."""
        p, b = self.p, self.b
        columns = p.kept.sizes[-1]
        dtypes = [d for r in self.rows.reduces[0] for d in self.combiners[r].dtypes]
        far = sum(x.tensor.nbytes for x in self.own) > self.target.l3 // 4  # nearer, fetching costs more than it saves
        self.ahead = self.read_ahead(p.wide * p.panel) if far else []
        levels = 2 if self._strips()[1] else 1
        self.room = [[Buffer(b.alloca(p.block * d.itemsize), TensorType(d, (p.block,)), 64) for d in dtypes]
                     for _ in range(levels)]  # fmt: skip
        whole = -(-columns // p.block) * p.block
        short = not any(r.streaming for r in self.results)

        def unit(u: Node) -> None:
            *self.outer, panel, chunk = index.delinear(index.loop_var(u, 0, p.units), (*p.unit_sizes, p.chunks))
            self.chunk = index.node(b, chunk) if p.chunk else None
            self.lo = b.mul(index.node(b, panel), p.block)
            self.hi = b.smin(b.add(self.lo, p.block), columns)
            sums, done = ([Buffer(b.gep(x.ptr, index.node(b, panel * (-p.block * x.type.dtype.itemsize))),
                                  TensorType(x.type.dtype, (whole,)), 64) for x in level]
                          for level in (self.room[0], self.room[-1]))  # fmt: skip
            self._sum(sums)
            self._columns(lambda row: finish(row, self._load(done, row.vector)), short=short)

        if p.units == 1:
            unit(b.i64(0))
        else:
            b.for_(self.begin, self.end, 1, unit)

    def _columns(self, turn: Callable[[Row], None], side: int = 1, short: bool = False) -> None:
        """`turn(row)` for each vector of rows of the panel, `side` of them at a time; `short`: see `vector_loop`."""

        def vectors(vs: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for i, v in enumerate(vs):
                turn(Row(v, self.p.kept.indices([*self.outer, v.at]), i))
            return ()

        vector_loop(self.b, self.lo, self.hi, self.p.kept.sizes[-1], vectors, lanes=self.p.lanes, unroll=side,
                    masks=self.target.has_masks, short=short)  # fmt: skip

    def _places(self, turn: Callable[[Vector], None]) -> None:
        """`turn(v)` for each vector of places of accumulated values, those behind the last column, too."""

        def vectors(vs: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vs:
                turn(v)
            return ()

        vector_loop(self.b, 0, self.p.block, self.p.block, vectors, lanes=self.p.lanes)

    # ---- sums
    def _length(self, depth: int) -> int:
        """The turns of a loop over a reduced dim in one unit."""
        return self.p.chunk if self.p.chunk and depth == self.p.chunked else self.p.reduced.sizes[depth]

    def _strips(self) -> tuple[int, int]:
        """The loop to cut into strips which are summed up by themselves, and how long these are (0: no need)."""
        inside = -(-prod(self._length(d) for d in range(len(self.p.reduced.sizes))) // self.p.wide)
        if inside <= 2 * BLOCK_TURNS or not any(self.combiners[r].is_sum for r in self.rows.reduces[0]):
            return 0, 0
        for depth in range(len(self.p.reduced.sizes) - 1):
            inside = -(-prod(self._length(d) for d in range(depth + 1, len(self.p.reduced.sizes))) // self.p.wide)
            if inside <= BLOCK_TURNS:
                return depth, BLOCK_TURNS // inside
        return len(self.p.reduced.sizes) - 1, BLOCK_TURNS * self.p.wide

    def _sum(self, sums: list[Buffer]) -> None:
        """Reduce the unit's rows into `sums`, where the columns have their places in the first room; or by strips,
        which are reduced into that, into the other room."""
        p, b = self.p, self.b
        cut, strip = self._strips()

        def clear(room: list[Buffer]) -> None:
            self._places(lambda v: self._store(room, v, self._identities(v.lanes, 0)))

        def merge(v: Vector) -> None:
            part, total = self.room
            self._store(total, v, self._combine_states(self._load(total, v), self._load(part, v), 0))

        def loop(depth: int, loops: list[Index]) -> None:
            lo, hi = b.i64(0), b.i64(p.reduced.sizes[depth])
            if self.chunk is not None and depth == p.chunked:
                lo = b.mul(self.chunk, p.chunk)
                hi = b.smin(b.add(lo, p.chunk), hi)
            if not strip or depth != cut:
                span(depth, loops, lo, hi)
                return

            def one(start: Node) -> None:
                clear(self.room[0])
                span(depth, loops, start, b.smin(b.add(start, strip), hi))
                self._places(merge)

            b.for_(lo, hi, strip, one)

        def span(depth: int, loops: list[Index], lo: Node, hi: Node) -> None:
            n = p.reduced.sizes[depth]
            if depth < len(p.reduced.sizes) - 1:
                b.for_(lo, hi, 1, lambda iv: loop(depth + 1, [*loops, index.loop_var(iv, 0, n)]))
                return

            def group(iv: Node, count: int) -> None:
                first = index.loop_var(iv, 0, n - count + 1)
                places = [[*loops, first + i] for i in range(count)]
                few = count == 1
                self._columns(lambda row: self._add(row, places, sums), 1 if few else SIDE_BY_SIDE, few)

            stop = b.add(lo, b.and_(b.sub(hi, lo), -p.wide))
            b.for_(lo, stop, p.wide, lambda iv: group(iv, p.wide))
            b.for_(stop, hi, 1, lambda iv: group(iv, 1))

        clear(self.room[-1])
        loop(0, [])

    def _add(self, row: Row, places: Sequence[list[Index]], sums: list[Buffer]) -> None:
        """Combine the elements at some places along the reduced dims, two by two, and the result with `sums`."""
        v = row.vector
        states: list[Elems] = []
        due: list[Callable[[], None]] = []
        for where in places:
            new, stores = self._elements(row, v, self._full(row, where), where, 0)
            states.append(tuple(splat(self.b, e, v.lanes) for e in new))
            due.extend(stores)
        while len(states) > 1:
            states = [self._combine_states(x, y, 0) for x, y in zip(states[::2], states[1::2], strict=True)]
        self._store(sums, v, self._combine_states(self._load(sums, v), states[0], 0))
        for store in due:
            store()
        for *loops, i in places if len(places) == self.p.wide else ():
            self._fetch(row, [*loops, i + self.p.wide])

    def _fetch(self, row: Row, where: list[Index]) -> None:
        """Bring what this vector is going to read at a place of the next turn into the second-level cache."""
        v, b = row.vector, self.b
        if v.lanes == 1 or v.mask is not None:
            return
        at = index.linear(self._full(row, where), self.rows.shape)
        for x in self.ahead:
            size = x.type.dtype.itemsize
            if row.copy * v.lanes * size % LINE == 0:
                x.fetch(b, at, 0, locality=2)

    # ---- accumulated values
    def _load(self, buffers: list[Buffer], v: Vector) -> Elems:
        loaded: list[Elem] = [x.load(self.b, (v.at,), v.lanes, v.mask) for x in buffers]
        return self._unpack(pack(splat(self.b, e, v.lanes) for e in loaded), 0)

    def _store(self, buffers: list[Buffer], v: Vector, state: Elems, at: Index | None = None) -> None:
        for x, e in zip(buffers, state, strict=True):
            x.store(self.b, v.at if at is None else at, e, v.lanes, v.mask)
