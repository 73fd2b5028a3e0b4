"""Row regions as loop nests: reductions and what is computed from them, row by row. Imports ops, loop, kernels.

A unit does some rows; a row is done in passes over the reduced dims. The vectors lie along the reduced dims ("inner":
lanes are combined at the end; a few rows side by side are done together) or along the last kept dim ("kept": every lane
is a row of its own). Values that several passes need and that are much work are kept in scratch on the stack. Passes
over neighbouring rows may be done in one loop. Few long rows are cut into chunks whose partial results a second phase
combines in order. Long rows of kept dims that no cache holds are done in panels (rows_wide.py).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.errors import Unsupported
from hilo.ir.dims import typical, upper
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.kernels.combine import Elems, initial_elem, pack, splat, unpack
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import AHEAD, RESULT_ALIGN, Buffer
from hilo.kernels.rows_code import Row, RowCode
from hilo.kernels.rows_plan import BLOCK_TURNS, in_place_pairs, plan
from hilo.loop import index
from hilo.loop.builder import Func, Node
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.ops.rows import NotRows, analyse

if TYPE_CHECKING:
    from hilo.backend.target import Target

STORED: Final = 1  # vectors a turn, at most, where nothing is accumulated: more only make the code longer
OUTER_CHUNKS: Final = 256  # times the work of combining chunks: how good that code is does not matter then


def lower(body: Function, operands: Sequence[int], count: int, target: Target, *, near: bool = False) -> Lowered:
    """The kernel of a row region; parameter i of `body` is buffer operands[i] of `count`, results, scratch follow.
    `near`: results are read again while they are in a cache, however large they are."""
    if all(r.tensor.size == 0 for r in body.results):
        return Lowered([])
    try:
        rows = analyse(body)
    except NotRows:
        raise Unsupported("these reductions cannot be computed row by row", op="hilo.fusion", loc=body.loc) from None
    p = plan(body, rows, target)
    in_place = in_place_pairs(body, rows, operands)
    code = _Kernel
    if p.wide:
        from hilo.kernels.rows_wide import WideCode

        code = WideCode
    main = code(p, body, operands, count, {i for i, _ in in_place}, target, near)
    if not p.chunk:
        return Lowered([Phase(main.whole(), p.units, p.unit_cost)], in_place=in_place,
                       strategy="rows", reason=p.words(body, target))  # fmt: skip
    scratch = sum(t.nbytes + 64 for t in main.partial_types())
    first = Phase(main.chunks(), p.units, p.unit_cost)
    total = prod(rows.shape[d] for d in rows.kept)
    second = Phase(RowCode(p, body, operands, count, set(), target).combine(), 1, typical(p.chunks * total) / 4.0)
    second.func.attrs["outer"] = typical(first.units) * first.unit_cost >= OUTER_CHUNKS * second.unit_cost
    return Lowered([first, second], scratch, in_place, strategy="rows in chunks", reason=p.words(body, target))


class _Kernel(RowCode):
    """The loops of a kernel that does some rows at a time."""

    # ---- functions
    def whole(self) -> Func:
        """The function that does everything in one phase."""
        self.results = self._results()
        self._scratch()
        if self.p.overlap:
            self._overlapping()
        else:
            self._units(lambda rows: self._finish_rows(self._passes(rows)))
        return self._done()

    def chunks(self) -> Func:
        """The function that reduces one chunk of one block of rows, without initial values, into the scratch."""
        self.results = self._results()
        partials = self._partials()

        def turn(rows: list[Row]) -> None:
            assert self.chunk is not None
            chunk = index.loop_var(self.chunk, 0, self.p.chunks)
            states = self._pass([(row, 0) for row in rows])
            for row, state in zip(rows, states, strict=True):
                at = chunk * self._row_count() + self._row_position(row)
                for buffer, e in zip(partials, state, strict=True):
                    buffer.store(self.b, at, e, row.vector.lanes, row.vector.mask)

        self._units(turn)
        return self._done()

    # ---- units
    def _units(self, turn: Callable[[list[Row]], None]) -> None:
        """Loops over the units begin..end around `turn(rows)`."""
        p, b = self.p, self.b
        sizes = p.unit_sizes

        def unit(u: Node) -> None:
            at = index.loop_var(u, 0, p.units)
            if p.inner:
                *loops, chunk = index.delinear(at, (*sizes, p.chunks))
            else:  # a thread does whole rows
                chunk, *loops = index.delinear(at, (p.chunks, *sizes))
            self.chunk = index.node(b, chunk) if p.chunk else None
            if not sizes:
                turn([Row(Vector(index.ZERO, 1), self.p.kept.indices([]))])
                return
            *outer, last = loops
            if p.inner:
                places = [[*outer, last * p.side + i] for i in range(p.side)]
                along = [Vector(index.linear(x, p.kept.sizes), 1) for x in places]
                turn([Row(v, p.kept.indices(x), i) for i, (v, x) in enumerate(zip(along, places, strict=True))])
                return

            def vectors(vs: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
                turn([Row(v, p.kept.indices([*outer, v.at]), i) for i, v in enumerate(vs)])
                return ()

            n = p.kept.sizes[-1]
            lo = b.mul(index.node(b, last), p.block)
            hi = b.smin(b.add(lo, p.block), n)
            vector_loop(b, lo, hi, n, vectors, lanes=p.lanes, unroll=p.unroll, masks=self.target.has_masks)

        if p.units == 1:
            unit(b.i64(0))
        else:
            b.for_(self.begin, self.end, 1, unit)

    def _overlapping(self) -> None:
        """Rows one after the other, whose passes overlap: one loop does the pass before the last over a row, and beside
        it the last pass over the row before, which divides, and an earlier one over the row behind, which loads.

        What is kept of a row takes the places of the row before, each of which has just been read for the last time.
        The first row is its own neighbour, and so is the last one: what that stores is stored again a turn later.
        """
        p, b, sizes = self.p, self.b, self.p.unit_sizes
        *early, middle, last = range(self.rows.passes)
        known = [o for k in early for o in self._outputs(k)]
        done = [*known, *self._outputs(middle)]

        def row(u: Node, ops: Sequence[Op] = (), values: Sequence[Node] = ()) -> Row:
            loops = index.delinear(index.loop_var(u, 0, p.units), sizes)
            elems = unpack(values, [o.dtype for o in ops])
            return Row(Vector(index.linear(loops, sizes), 1), p.kept.indices(loops), 0, dict(zip(ops, elems)))

        def passes(strands: list[tuple[Row, int]]) -> None:
            for (row, k), state in zip(strands, self._pass(strands), strict=True):
                self._set_values(row, k, state)

        def values(row: Row, ops: Iterable[Op]) -> tuple[Node, ...]:
            return pack(row.values[o] for o in ops)

        def turn(u: Node, *carried: Node) -> tuple[Node, ...]:
            count = len(carried) - len(pack(blank(done)))
            this, before = row(u, known, carried[:count]), row(b.smax(b.sub(u, 1), self.begin), done, carried[count:])
            behind = row(b.smin(b.add(u, 1), b.sub(self.end, 1)))
            for k in early[:-1]:
                passes([(behind, k)])
            passes([*((behind, k) for k in early[-1:]), (this, middle), (before, last)])
            return (*values(behind, known), *values(this, done))

        def blank(ops: Iterable[Op]) -> list[Elem]:
            return [initial_elem(b, o.dtype, 1) for o in ops]

        def rows() -> None:
            first = row(self.begin)
            for k in early:
                passes([(first, k)])
            out = b.for_(self.begin, self.end, 1, turn, (*values(first, known), *pack(blank(done))))
            passes([(row(b.sub(self.end, 1), done, out[len(values(first, known)) :]), last)])

        b.if_(b.cmp("slt", self.begin, self.end), rows)

    def _outputs(self, k: int) -> list[Op]:
        """The values that the reductions of pass `k` give."""
        return [o for o, (r, _) in self.rows.outputs.items() if r in self.rows.reduces[k]]

    # ---- passes
    def _passes(self, rows: list[Row]) -> list[Row]:
        for k in range(self.rows.passes):
            states = self._pass([(row, k) for row in rows])
            for row, state in zip(rows, states, strict=True):
                self._set_values(row, k, state)
        return rows

    def _pass(self, strands: list[tuple[Row, int]]) -> list[Elems]:
        """Passes (by number) over the reduced dims of some rows, all in one loop: stores full results, gives the
        accumulated values of each. Different passes are those of free reductions."""
        p, b = self.p, self.b
        reduces = [self.rows.reduces[k] for _, k in strands]
        ordered = not all(self.combiners[r].free for rs in reduces for r in rs)
        vectorized = p.inner and not ordered
        side = p.unroll if any(reduces) else min(p.unroll, STORED)  # vectors side by side
        each = side if vectorized else 1
        owners = [k for _, k in strands for _ in range(each)]  # the pass of each of the states
        lanes = p.lanes if vectorized else strands[0][0].vector.lanes
        sizes = p.reduced.sizes
        ahead = self._row_ahead() if p.inner and min(owners) == (0 if p.overlap else 1) else []

        def fresh() -> list[Elems]:
            if not ordered:
                return [self._identities(lanes, k) for k in owners]
            return [self._initial(row, k) for row, k in strands]

        def merge(a: list[Elems], x: list[Elems]) -> list[Elems]:
            return [self._combine_states(s, t, k) for s, t, k in zip(a, x, owners, strict=True)]

        def flat(states: list[Elems]) -> tuple[Node, ...]:
            return pack(e for s in states for e in s)

        def unflat(nodes: Sequence[Node]) -> list[Elems]:
            values = iter(unpack(nodes, [d for k in owners for d in self._held(k)]))
            return [tuple(itertools.islice(values, len(self._held(k)))) for k in owners]

        def visit(loops: list[Index], vectors: list[Vector], states: list[Elems]) -> list[Elems]:
            """The elements of one turn: several vectors of some rows, or one element of several rows."""
            turns = [(row, k, v if p.inner else row.vector, [*loops, v.at] if sizes else [], j * each + i)
                     for i, v in enumerate(vectors) for j, (row, k) in enumerate(strands)]  # fmt: skip
            made = [self._elements(row, v, self._full(row, where), where, k) for row, k, v, where, _ in turns]
            out = list(states)
            for (_, k, v, _, at), (new, _) in zip(turns, made, strict=True):
                if vectorized and v.mask is not None:
                    new = self._where(v.mask, new, k)
                elif vectorized and v.lanes == 1 and lanes > 1:
                    ones = self._identities(lanes, k)
                    new = tuple(self._only_first(e, one) for e, one in zip(new, ones, strict=True))
                else:
                    new = tuple(splat(b, e, old.lanes) for e, old in zip(new, out[at], strict=True))
                out[at] = self._combine_states(out[at], new, k, after=not ordered)
            for _, stores in made:
                for store in stores:
                    store()
            if ahead and len(vectors) == side and vectors[0].mask is None:
                fetch(loops, vectors)
            return out

        def fetch(loops: list[Index], vectors: list[Vector]) -> None:
            """Bring what a later turn reads into a cache, and of rows that stores read first what it stores, too."""
            read = self._read_first()
            for v in vectors:
                for x in ahead:
                    at = index.linear(self._full(strands[0][0], [*loops, v.at]), self.rows.shape)
                    if p.overlap:
                        x.fetch(b, at, AHEAD)
                    else:
                        x.fetch(b, at, prod(sizes) * x.type.dtype.itemsize, locality=2 if read else 3)
                for x in read if p.overlap else ():
                    at = index.linear(self._full(strands[-1][0], [*loops, v.at]), self.rows.shape)
                    x.fetch(b, at, AHEAD // 2, write=True)

        def loop(depth: int, loops: list[Index], states: list[Elems]) -> list[Elems]:
            if not sizes:
                return visit([], [Vector(index.ZERO, 1)], states)
            n = sizes[depth]
            lo, hi = b.i64(0), b.i64(n)
            if self.chunk is not None and depth == p.chunked:
                lo = b.mul(self.chunk, p.chunk)
                hi = b.smin(b.add(lo, p.chunk), n)
            innermost = depth == len(sizes) - 1
            per_turn = p.lanes * p.unroll if vectorized and innermost else 1
            nested = not innermost and upper(prod(sizes[depth + 1 :])) >= BLOCK_TURNS
            sums = not ordered and any(self.combiners[r].is_sum for rs in reduces for r in rs)

            def span(lo: Node, hi: Node, states: list[Elems]) -> list[Elems]:
                if innermost and vectorized:

                    def turn(vs: list[Vector], nodes: tuple[Node, ...]) -> tuple[Node, ...]:
                        return flat(visit(loops, vs, unflat(nodes)))

                    out = vector_loop(b, lo, hi, n, turn, lanes=lanes, unroll=side, masks=self.target.has_masks,
                                      init=flat(states))  # fmt: skip
                    return unflat(out)

                def turn_one(iv: Node, *nodes: Node) -> tuple[Node, ...]:
                    at = index.loop_var(iv, 0, n)
                    inside = unflat(nodes)
                    if innermost:
                        return flat(visit(loops, [Vector(at, 1)], inside))
                    if nested and sums:
                        return flat(merge(inside, loop(depth + 1, [*loops, at], fresh())))
                    return flat(loop(depth + 1, [*loops, at], inside))

                return unflat(b.for_(lo, hi, 1, turn_one, flat(states)))

            length = p.chunk if self.chunk is not None and depth == p.chunked else n
            if not sums or upper(length) <= 2 * BLOCK_TURNS * per_turn:
                return span(lo, hi, states)

            def blocks(start: Node, *nodes: Node) -> tuple[Node, ...]:
                stop = b.smin(b.add(start, BLOCK_TURNS * per_turn), hi)
                return flat(merge(unflat(nodes), span(start, stop, fresh())))

            return unflat(b.for_(lo, hi, BLOCK_TURNS * per_turn, blocks, flat(states)))

        states = loop(0, [], fresh())
        if vectorized:
            states = [self._across(states[i : i + each], owners[i]) for i in range(0, len(states), each)]
        return states

    def _row_ahead(self) -> list[Buffer]:
        """The operands that are fetched before they are read: a stream a little ahead, or whole rows, if few of them
        fill no first-level cache."""
        count = prod(self.p.reduced.sizes)
        ahead = self.read_ahead(count)
        row = count * sum(x.type.dtype.itemsize for x in ahead)
        return ahead if self.p.overlap or 4 * row < self.target.l1 else []

    def _read_first(self) -> list[Buffer]:
        """Large results whose rows are not whole lines, which stores therefore bring into the caches."""
        count = prod(self.p.reduced.sizes)
        stored = [self.results[i] for pass_ in self.rows.full for i, _ in pass_]
        return [x for x in stored if x.streaming and count * x.type.dtype.itemsize % RESULT_ALIGN]

    def _across(self, states: list[Elems], k: int) -> Elems:
        """The values of one row from the vectors that it was accumulated in."""
        while len(states) > 1:
            half = len(states) // 2
            states = [self._combine_states(s, t, k) for s, t in zip(states[:half], states[half:], strict=True)]
        return tuple(x for r, e in self._by_reduce(states[0], k) for x in self.combiners[r].across(self.b, e))
