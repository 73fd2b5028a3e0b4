"""The code of a row region's kernel, whatever its loops are: elements, accumulated values, buffers, row results.

Imports ops, loop, kernels. The loop nests themselves: rows.py (some rows at a time), rows_wide.py (panels of them).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from hilo.ir.dims import Number, upper
from hilo.ir.dtypes import DType
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels.combine import Elems, pack, splat, unpack
from hilo.kernels.elementwise import new_func, streams
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.kernels.rows_plan import SCRATCH, Plan
from hilo.loop import index
from hilo.loop.builder import Builder, Func, Node
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.ops.fusion import Elements, Indices, Source
from hilo.ops.rows import at_shape, captures, initial, inputs, read_in_place
from hilo.record import field, record

if TYPE_CHECKING:
    from hilo.backend.target import Target


@record(eq=False)
class Row:
    """One row (or vector of rows) in the making: its indices, the values of its reductions, its scratch."""

    vector: Vector
    at: Indices  # indices of the kept dims; 0 for the others
    copy: int = 0  # its place among the rows of one turn
    values: dict[Op, Elem] = field(default_factory=dict)


class RowCode:
    """One function of a region's kernel."""

    def __init__(
        self, p: Plan, body: Function, operands: Sequence[int], count: int, unsafe: set[int], target: Target,
        near: bool = False,
    ) -> None:  # fmt: skip
        self.p, self.rows, self.body, self.target, self.count = p, p.rows, body, target, count
        self.near = near
        in_place = read_in_place(body, p.rows)
        self.own = [x for x in body.params if x in in_place]
        self.func = new_func("rows")
        self.b = Builder(self.func)
        self.bufs, self.begin, self.end = self.func.params
        self.params = {o: Buffer(pointer(self.b, self.bufs, i), o.tensor, constant=i not in unsafe)
                       for o, i in zip(body.params, operands, strict=True)}  # fmt: skip
        self.combiners = p.combiners
        self.kept_ops = p.keep
        self.chunk: Node | None = None  # which chunk of the chunked loop
        self.scratch: dict[Op, Buffer] = {}

    # ---- functions
    def combine(self) -> Func:
        """The function that combines the chunks in order and computes the row results."""
        b, p = self.b, self.p
        self.results = self._results()
        partials = self._partials()
        n = self._row_count()

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                shape = [self.rows.shape[d] for d in self.rows.kept]
                at = [index.ZERO] * len(self.rows.shape)
                for d, i in zip(self.rows.kept, index.delinear(v.at, shape), strict=True):
                    at[d] = i
                row = Row(v, tuple(at))
                start = self._identities(v.lanes, 0)

                def step(chunk: Node, *carried: Node, v: Vector = v) -> tuple[Node, ...]:
                    where = index.loop_var(chunk, 0, p.chunks) * n + v.at
                    new = [x.load(b, (where,), v.lanes, v.mask) for x in partials]
                    new = [splat(b, e, v.lanes) for e in new]
                    return pack(self._combine_states(self._unpack(carried, 0), new, 0))

                state = self._unpack(b.for_(0, p.chunks, 1, step, pack(start)), 0)
                self._set_values(row, 0, state)
                self._finish_rows([row])
            return ()

        lanes = p.lanes if upper(n) >= p.lanes else 1
        vector_loop(b, 0, n, n, turn, lanes=lanes, masks=self.target.has_masks, short=True)
        return self._done()

    def _done(self) -> Func:
        if any(r.streaming for r in getattr(self, "results", ())):
            self.b.fence()
        self.b.ret()
        return self.func

    # ---- elements
    def read_ahead(self, count: Number) -> list[Buffer]:
        """The operands of the full size whose next `count` elements are brought into the cache while as many are
        computed with."""
        size = sum(p.tensor.nbytes for p in self.own)
        if self.near or not isinstance(size, int) or size <= self.target.l2 or not isinstance(count, int):
            return []
        if count * sum(p.dtype.itemsize for p in self.own) > self.target.l2 // 4:
            return []
        return [self.params[p] for p in self.own]

    def _elements(
        self, row: Row, v: Vector, at: Indices, where: list[Index], k: int
    ) -> tuple[Elems, list[Callable[[], None]]]:
        """The operands of pass k's reductions at one place, and the stores that are due there."""
        b = self.b
        lanes, mask = max(v.lanes, row.vector.lanes), v.mask if v.mask is not None else row.vector.mask
        elements = Elements(b, self._sources(row, Vector(v.at, lanes, mask), at, where, k))
        new: list[Elem] = []
        for r in self.rows.reduces[k]:
            new.extend(self.combiners[r].prepare(b, [elements(x, self._at(x, at)) for x in inputs(r)]))
        stores: list[Callable[[], None]] = []
        for i, r in self.rows.full[k]:
            value, position = elements(r, self._at(r, at)), index.linear(at, self.rows.shape)
            stores.append(lambda i=i, e=value, p=position: self.results[i].store(b, p, e, lanes, mask))
        for o in self.kept_ops[k]:
            if o in self.scratch:
                value, place = elements(o, self._at(o, at)), self._scratch_position(row, where)
                stores.append(lambda o=o, e=value, p=place: self.scratch[o].store(b, p, e, lanes, mask))
        return tuple(new), stores

    def _sources(self, row: Row, v: Vector, here: Indices, where: list[Index], k: int) -> dict[Op, Source]:
        """Where elements come from in pass k: operands, values of earlier reductions, scratch."""
        b = self.b
        sources: dict[Op, Source] = {}
        for o, buffer in self.params.items():
            sources[o] = lambda at, buffer=buffer: buffer.load(b, at, v.lanes, v.mask)
        for o, e in row.values.items():
            sources[o] = lambda at, e=e: e
        plain = dict(sources)
        for earlier in range(k):
            for o in self.kept_ops[earlier]:
                if o in self.scratch:
                    sources[o] = self._scratch_source(o, row, v, here, where, plain)
        return sources

    def _scratch_source(
        self, o: Op, row: Row, v: Vector, here: Indices, where: list[Index], plain: dict[Op, Source]
    ) -> Source:
        def read(at: Indices) -> Elem:
            if at != self._at(o, here):  # not this row's element at hand: compute it
                return Elements(self.b, plain)(o, at)
            return self.scratch[o].load(self.b, (self._scratch_position(row, where),), v.lanes, v.mask)

        return read

    def _at(self, o: Op, at: Indices) -> Indices:
        """Indices into `o` for the place `at` of the full shape."""
        return at_shape(at, self.rows.shape, o.shape)

    def _scratch_position(self, row: Row, where: list[Index]) -> Index:
        """Where a kept value of this place lies: vectors of rows side by side."""
        position = index.linear(where, self.p.reduced.sizes) if where else index.ZERO
        if self.p.inner:
            return position + row.copy * self._row_length()
        lane = row.vector.at - row.vector.at.first_lane()
        return position * self.p.block + row.copy * self.p.lanes + lane

    def _row_length(self) -> int:
        """Places of a row in scratch: whole vectors."""
        return -(-prod(self.p.reduced.sizes) // self.p.lanes) * self.p.lanes

    # ---- rows
    def _finish_rows(self, rows: list[Row]) -> None:
        """Compute and store the row results."""
        b = self.b
        for row in rows:
            v = row.vector
            position = self._row_position(row)
            elements = Elements(b, self._sources(row, v, (), [], 0))
            own = tuple(row.at[d] for d in self.rows.kept)
            shape = tuple(self.rows.shape[d] for d in self.rows.kept)
            values = []
            for i, r in self.rows.row:
                at = own if r.shape == shape else tuple(index.delinear(position, r.shape))
                values.append((i, elements(r, at)))
            for i, e in values:
                self.results[i].store(b, position, e, v.lanes, v.mask)

    def _row_count(self) -> int:
        return prod(self.rows.shape[d] for d in self.rows.kept)

    def _row_position(self, row: Row) -> Index:
        return index.linear([row.at[d] for d in self.rows.kept], [self.rows.shape[d] for d in self.rows.kept])

    def _full(self, row: Row, where: list[Index]) -> Indices:
        """Indices into the full shape: the row's, and those of the loops over the reduced dims."""
        at = list(row.at)
        inner = self.p.reduced.indices(where)
        for d in self.rows.reduced:
            at[d] = inner[d]
        return tuple(at)

    # ---- states: the accumulated values of all reductions of a pass
    def _by_reduce(self, state: Elems, k: int) -> Iterator[tuple[Op, Elems]]:
        at = 0
        for r in self.rows.reduces[k]:
            n = len(self.combiners[r].dtypes)
            yield r, state[at : at + n]
            at += n

    def _identities(self, lanes: int, k: int) -> Elems:
        return tuple(e for r in self.rows.reduces[k] for e in self.combiners[r].identity(self.b, lanes))

    def _initial(self, row: Row, k: int) -> Elems:
        """The reductions' initial values as accumulated values for a row."""
        elements = Elements(self.b, self._sources(row, row.vector, (), [], 0))
        out: list[Elem] = []
        for r in self.rows.reduces[k]:
            first = self.combiners[r].prepare(self.b, [elements(x, ()) for x in initial(r)])
            out.extend(splat(self.b, e, row.vector.lanes) for e in first)
        return tuple(out)

    def _unpack(self, nodes: Sequence[Node], k: int) -> Elems:
        return tuple(unpack(nodes, self._held(k)))

    def _held(self, k: int) -> list[DType]:
        """How the accumulated values of pass `k` are held."""
        return [d for r in self.rows.reduces[k] for d in self.combiners[r].dtypes]

    def _combine_states(self, a: Sequence[Elem], x: Sequence[Elem], k: int, *, after: bool = False) -> Elems:
        """Two accumulated values as one; `after`: the second is an element that comes after those of the first."""
        out: list[Elem] = []
        at = 0
        for r in self.rows.reduces[k]:
            c = self.combiners[r]
            n = len(c.dtypes)
            both = tuple(a[at : at + n]), tuple(x[at : at + n])
            out.extend((c.after if after else c)(self.b, *both, self._captured(r)))
            at += n
        return tuple(out)

    def _captured(self, r: Op) -> Elems:
        if not captures(r):
            return ()
        elements = Elements(self.b, {o: lambda at, x=x: x.load(self.b, at, 1) for o, x in self.params.items()})
        return tuple(elements(x, ()) for x in captures(r))

    def _where(self, mask: Node, new: Elems, k: int) -> Elems:
        """The new values where the mask holds, and what changes nothing elsewhere."""
        b = self.b
        out = []
        for e, one in zip(new, self._identities(mask.type.lanes, k), strict=True):
            parts = [b.select(mask, p, q) for p, q in zip(pack([e]), pack([one]), strict=True)]
            out.extend(unpack(parts, [e.dtype]))
        return tuple(out)

    def _only_first(self, e: Elem, identity: Elem) -> Elem:
        """A scalar in lane 0 of an identity vector."""
        parts = [self.b.insert(q, p, 0) for p, q in zip(pack([e]), pack([identity]), strict=True)]
        return unpack(parts, [e.dtype])[0]

    def _set_values(self, row: Row, k: int, state: Elems) -> None:
        """Give the results of pass k's reductions to the row: initial values enter here, unless they came first."""
        b = self.b
        ordered = not all(self.combiners[r].free for r in self.rows.reduces[k])
        if not ordered and self.rows.reduces[k]:
            first, count = self._initial(row, k), prod(self.p.reduced.sizes)
            nothing = all(self.combiners[r].changes_nothing(b, e) for r, e in self._by_reduce(first, k))
            if not (nothing and isinstance(count, int) and count):
                state = self._combine_states(first, state, k)
        for r, values in self._by_reduce(state, k):
            finished = self.combiners[r].finish(b, values)
            for o, (source, number) in self.rows.outputs.items():
                if source is r:
                    row.values[o] = finished[number]

    # ---- buffers
    def _results(self) -> list[Buffer]:
        def result(i: int, t: TensorType) -> Buffer:
            past = not self.near and streams(t, self.target)
            return Buffer(pointer(self.b, self.bufs, self.count + i), t, RESULT_ALIGN, streaming=past)

        return [result(i, r.tensor) for i, r in enumerate(self.body.results)]

    def partial_types(self) -> list[TensorType]:
        """The types of the arrays in scratch: one partial result per chunk and row."""
        n = self.p.chunks * self._row_count()
        return [TensorType(d, (n,)) for r in self.rows.reduces[0] for d in self.combiners[r].dtypes]

    def _partials(self) -> list[Buffer]:
        base = pointer(self.b, self.bufs, self.count + len(self.body.results))
        out, offset = [], 0
        for t in self.partial_types():
            out.append(Buffer(self.b.gep(base, offset), t, 64))
            offset += -(-t.nbytes // 64) * 64
        return out

    def _scratch(self) -> None:
        """Room on the stack for the values that later passes need again, as far as it goes."""
        n = prod(self.p.reduced.sizes)
        if not isinstance(n, int):
            return
        n = self._row_length() * self.p.block if self.p.inner else n * self.p.block
        left = SCRATCH
        for ops in self.kept_ops:
            for o in ops:
                t = TensorType(o.dtype, (n,))
                if t.nbytes <= left:
                    left -= t.nbytes
                    self.scratch[o] = Buffer(self.b.alloca(max(t.nbytes, 64)), t, 64)
