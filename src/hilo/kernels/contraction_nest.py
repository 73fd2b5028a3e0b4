"""The loops around a contraction's micro-kernels, and what is done with finished tiles. Imports loop, kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from hilo.ir import dtypes
from hilo.ir.types import TensorType
from hilo.kernels import microkernel
from hilo.kernels.contraction_pack import phase_func
from hilo.kernels.contraction_plan import Plan, Recipe
from hilo.kernels.loops import Vector
from hilo.kernels.lowered import Phase
from hilo.kernels.memory import Buffer, pointer
from hilo.loop import arith, index
from hilo.loop.builder import I64, Builder, Func, Node, VType
from hilo.loop.element import Elem, held_type
from hilo.loop.index import Index

if TYPE_CHECKING:
    from hilo.backend.target import Target


@dataclass(frozen=True)
class Place:
    """An operand as micro-kernels see it: element (batch, row, column) of accumulator-sized elements.

    `buffer` is its number in `bufs`, `offset` bytes come first; `batch` holds (size, stride) of each batch dim.
    """

    buffer: int
    offset: int
    batch: tuple[tuple[int, int], ...]
    row: int
    column: int

    def start(self, b: Builder, bufs: Node, batch: Index, size: int) -> Node:
        """The address of a batch's first element."""
        at = index.ZERO
        for (_, stride), i in zip(self.batch, index.delinear(batch, [n for n, _ in self.batch]), strict=True):
            at = at + i * stride
        return b.gep(pointer(b, bufs, self.buffer), index.node(b, at * size + self.offset))


PanelTurn = Callable[[Node, Node, int, int, bool], None]  # column, place, vectors, lanes, masked


class Nest:
    """Emits the main phase of a contraction (and the one that adds up partial sums, if k is split)."""

    def __init__(self, p: Plan, r: Recipe, a: Place, b: Place, start: int | None, out: TensorType, swapped: bool,
                 epilogue: Any, scratch_number: int, target: Target) -> None:  # fmt: skip
        self.p, self.r, self.a, self.b_place, self.start = p, r, a, b, start
        self.out, self.swapped, self.epilogue, self.target = out, swapped, epilogue, target
        self.stored = epilogue.out if epilogue else out
        self.scratch_number = scratch_number
        self.partial = 0  # offset in scratch of sums that do not go into the result at once
        bt, m, n, _ = p.sizes
        self.parts = 2 if r.acc.is_complex else 1
        self.elements = (bt, m, n // self.parts)  # of C, as this nest sees it
        splits = p.blocks[0]
        same = self.stored.dtype is r.acc or (
            self.stored.dtype.is_int and held_type(self.stored.dtype).scalar == r.scalar
        )
        self.raw = same and epilogue is None and out.dtype is self.stored.dtype  # sums are results
        straight = not swapped or m == 1
        if splits > 1:
            self.where = "partial"
        elif same and straight:
            self.where = "result"
        elif p.block_k >= p.sizes[3] and p.kind == "tile":
            self.where = "stack"
        else:
            self.where = "partial"
        self.needs_finish = not (self.where == "result" and self.raw)
        self.scratch = splits * bt * m * n * r.size if self.where == "partial" else 0
        self.helpers: dict[str, Func] = {}

    # ---- phases
    def phases(self) -> list[Phase]:
        p = self.p
        unit = {"tile": self.tile_unit, "inner": self.inner_unit, "stream": self.stream_unit}[p.kind]
        main = phase_func("contraction", unit)
        out = [Phase(main, p.units, p.unit_cost, list(self.helpers.values()))]
        if p.blocks[0] > 1:
            bt, m, n = self.elements
            func = phase_func("contraction_combine", self.combine_unit)
            out.append(Phase(func, bt * m, n * (p.blocks[0] + 1) * 0.3))
        return out

    def helper(self, func: Func) -> str:
        self.helpers[func.name] = func
        return func.name

    # ---- units
    def unit_parts(self, b: Builder, u: Node) -> tuple[Index, Index, Node, Node, Node, Node, Node, Node]:
        """(split, batch, first and last row, column, k) of unit `u`."""
        p = self.p
        _, m, n, k = p.sizes
        split, batch, bm, bn = index.delinear(index.loop_var(u, 0, p.units), p.blocks)

        def span(i: Index, block: int, size: int) -> tuple[Node, Node]:
            lo = index.node(b, i * block)
            if block >= size:
                return b.i64(0), b.i64(size)
            return lo, b.smin(b.add(lo, block), size)

        m0, m1 = span(bm, p.block_m, m)
        n0, n1 = span(bn, p.block_n, n)
        k0, k1 = span(split, p.split_k, k)
        return split, batch, m0, m1, n0, n1, k0, k1

    def c_place(self, b: Builder, bufs: Node, split: Index, batch: Index) -> Node:
        """Where the sums of a batch go: rows of N accumulators."""
        bt, m, n, _ = self.p.sizes
        at = (split * bt + batch) * (m * n * self.r.size)
        if self.where == "result":
            return b.gep(pointer(b, bufs, self.scratch_number - 1), index.node(b, at))
        return b.gep(pointer(b, bufs, self.scratch_number), index.node(b, at + self.partial))

    def edges(self, size: int) -> Iterator[tuple[int, int, int, bool]]:
        """(offset, vectors, lanes, masked) of the panels that cover the last `size` columns."""
        lanes = self.p.lanes
        if size and (self.target.vector_bytes >= 32 or size % lanes == 0):
            yield 0, -(-size // lanes), lanes, size % lanes != 0
        elif size:
            whole = size // lanes
            if whole:
                yield 0, whole, lanes, False
            yield whole * lanes, size % lanes, 1, False

    def tile_unit(self, b: Builder, bufs: Node, u: Node) -> None:
        p, r, size = self.p, self.r, self.r.size
        _, m, n, k = p.sizes
        split, batch, m0, m1, n0, n1, k0, k1 = self.unit_parts(b, u)
        a = self.a.start(b, bufs, batch, size)
        bp = self.b_place.start(b, bufs, batch, size)
        c = self.c_place(b, bufs, split, batch) if self.where != "stack" else b.alloca(p.rows * p.width * size)
        panels = b.alloca(p.block_k * p.width * p.pack_panels * size) if p.pack_panels else None
        b_row, b_col = self.b_place.row * size, self.b_place.column * size
        widest = n - n % p.width
        together = p.width * max(1, p.pack_panels)  # columns that are packed, then used

        def over_k(kb: Node) -> None:
            kc = b.smin(b.sub(k1, kb), p.block_k)
            first, last = b.cmp("eq", kb, k0), b.cmp("sge", b.add(kb, kc), k1)
            ak = b.gep(a, b.mul(kb, self.a.column * size))
            bk = b.gep(bp, b.mul(kb, b_row))

            def columns(j: Node, at: Node, vectors: int, lanes: int, masked: bool) -> None:
                """Tiles of the panel at column `j` of B, packed at `at`."""
                source = b.gep(bk, b.mul(j, b_col))
                live = b.sub(n, j) if masked else b.i64(vectors * lanes)
                start, step = (source, b_row) if panels is None else (at, vectors * lanes * size)
                following = b.gep(source, p.block_k * b_row if p.skinny else together * b_col)
                line_count = max(1, vectors * lanes * size // 64)
                lines = -(-line_count // max(1, -(-m // p.rows)))  # all tiles together fetch the whole panel

                def tile(i: Node, rows: int) -> None:
                    t = microkernel.Tile(r.combine, r.scalar, rows, vectors, lanes, masked, lines)
                    name = self.helper(microkernel.tile(t))
                    if self.where == "stack":
                        ct, c_row = c, b.i64(vectors * lanes * size)
                    else:
                        ct, c_row = b.gep(c, b.add(b.mul(i, n * size), b.mul(j, size))), b.i64(n * size)
                    init, init_row = ct, b.select(first, -1, c_row)
                    if self.start is not None:
                        added = b.add(b.mul(index.node(b, batch), n * 4), b.add(b.mul(j, 4), self.start))
                        init = b.select(first, b.gep(pointer(b, bufs, self.scratch_number), added), ct)
                        init_row = b.select(first, 0, c_row)
                    turn = b.binary("urem", b.binary("udiv", i, p.rows), -(-line_count // lines))
                    b.call(
                        name,
                        [
                            b.gep(ak, b.mul(i, self.a.row * size)),
                            b.i64(self.a.row * size),
                            b.i64(self.a.column * size),
                            start,
                            b.i64(step),
                            ct,
                            c_row,
                            init,
                            init_row,
                            kc,
                            live,
                            b.gep(following, b.mul(turn, 64 * lines)),
                            b.i64(b_row),
                        ],
                    )
                    if self.needs_finish and p.blocks[0] == 1:
                        b.if_(last, lambda: self.finish(b, bufs, batch, i, rows, j, live, ct, c_row))

                whole = m - m % p.rows
                b.for_(m0, b.smin(m1, whole), p.rows, lambda i: tile(i, p.rows))
                if m % p.rows:
                    b.if_(b.cmp("eq", m1, m), lambda: tile(b.i64(whole), m % p.rows))

            def each_panel(lo: Node, hi: Node, f: PanelTurn) -> None:
                """`f` for the panels of columns lo..hi, with the place of each among packed ones that begin at lo."""

                def place(j: Node) -> Node:
                    return b.gep(panels, b.mul(b.sub(j, lo), p.block_k * size)) if panels is not None else bk

                b.for_(lo, b.smin(hi, widest), p.width, lambda j: f(j, place(j), p.vectors, p.lanes, False))
                if n % p.width:

                    def edge() -> None:
                        for offset, vectors, lanes, masked in self.edges(n % p.width):
                            j = b.i64(widest + offset)
                            f(j, place(j), vectors, lanes, masked)

                    b.if_(b.cmp("eq", hi, n), edge)

            def together_from(lo: Node) -> None:
                hi = b.smin(b.add(lo, together), n1)
                self.pack(b, bk, kc, lambda f: each_panel(lo, hi, f))
                each_panel(lo, hi, columns)

            if panels is None:
                each_panel(n0, n1, columns)
            else:
                b.for_(n0, n1, together, together_from)

        if k == 0:
            over_k(b.i64(0))
        else:
            b.for_(k0, k1, p.block_k, over_k)

    def pack(self, b: Builder, source: Node, kc: Node, each_panel: Callable[[PanelTurn], None]) -> None:
        """Copy `kc` rows of panels of B so that each panel's rows lie one after the other."""
        size, n = self.r.size, self.p.sizes[2]
        b_row, b_col = self.b_place.row * size, self.b_place.column * size
        if self.p.transpose_b:

            def turned(j: Node, at: Node, vectors: int, lanes: int, masked: bool) -> None:
                self.turn_panel(b, b.gep(source, b.mul(j, b_col)), b_col, at, kc, b.sub(n, j), vectors, lanes, masked)

            each_panel(turned)
            return

        def row(k: Node) -> None:
            def copy(j: Node, at: Node, vectors: int, lanes: int, masked: bool) -> None:
                v = VType(self.r.scalar, lanes)
                step = lanes * size
                src = b.gep(source, b.add(b.mul(k, b_row), b.mul(j, size)))
                dst = b.gep(at, b.mul(k, vectors * step))
                for x in range(vectors):
                    mask = None
                    if masked and x == vectors - 1:
                        mask = b.cmp("slt", b.iota(I64.with_lanes(lanes)), b.sub(n, b.add(j, x * lanes)))
                    b.store(b.gep(dst, x * step), b.load(b.gep(src, x * step), v, mask=mask))

            each_panel(copy)

        b.for_(0, kc, 1, row)

    def turn_panel(self, b: Builder, source: Node, b_col: int, panel: Node, kc: Node, live: Node, vectors: int, lanes: int,
                   masked: bool) -> None:  # fmt: skip
        """Copy a panel of B that has k contiguous, turning squares of vectors in registers."""
        size = self.r.size
        width = vectors * lanes * size

        def square(k: Node, depth: int) -> None:
            v = VType(self.r.scalar, depth)
            for j in range(vectors):
                run = []
                for l in range(lanes):
                    column = b.i64(j * lanes + l)
                    if masked:
                        column = b.smin(column, b.sub(live, 1))  # any column will do where there is none
                    run.append(b.load(b.gep(b.gep(source, b.mul(column, b_col)), b.mul(k, size)), v))
                rows = transposed(b, run) if depth > 1 else [self.joined(b, run)]
                for d, x in enumerate(rows):
                    at = b.add(b.mul(b.add(k, d), width), j * lanes * size)
                    b.store(b.gep(panel, at), x)

        if lanes == 1:
            b.for_(0, kc, 1, lambda k: square(k, 1))
            return
        whole = b.and_(kc, -lanes)
        b.for_(0, whole, lanes, lambda k: square(k, lanes))
        b.for_(whole, kc, 1, lambda k: square(k, 1))

    def joined(self, b: Builder, scalars: Sequence[Node]) -> Node:
        if len(scalars) == 1:
            return scalars[0]
        v = b.splat(scalars[0], len(scalars))
        for l, x in enumerate(scalars[1:], 1):
            v = b.insert(v, x, l)
        return v

    def inner_unit(self, b: Builder, bufs: Node, u: Node) -> None:
        p, r, size = self.p, self.r, self.r.size
        _, m, n, _ = p.sizes
        split, batch, _, _, n0, n1, k0, k1 = self.unit_parts(b, u)
        offset = b.mul(k0, size)
        a = b.gep(self.a.start(b, bufs, batch, size), offset)
        bp = b.gep(self.b_place.start(b, bufs, batch, size), offset)
        c = self.c_place(b, bufs, split, batch)
        masks = self.target.vector_bytes >= 32

        def block(i: int, rows: int, j: Node, columns: int) -> None:
            t = microkernel.Inner(r.combine, r.scalar, rows, columns, p.lanes, masks)
            name = self.helper(microkernel.inner(t))
            ct = b.gep(c, b.add(b.mul(j, size), i * n * size))
            b.call(name, [b.gep(a, i * self.a.row * size), b.i64(self.a.row * size),
                          b.gep(bp, b.mul(j, self.b_place.column * size)), b.i64(self.b_place.column * size), ct, b.i64(n * size),
                          b.i64(size), b.sub(k1, k0)])  # fmt: skip

        def all_rows(j: Node, columns: int) -> None:
            for i in range(0, m, p.rows):
                block(i, min(p.rows, m - i), j, columns)

        whole = n - n % p.vectors
        b.for_(n0, b.smin(n1, whole), p.vectors, lambda j: all_rows(j, p.vectors))
        if n % p.vectors:
            b.if_(b.cmp("eq", n1, n), lambda: all_rows(b.i64(whole), n % p.vectors))
        if self.needs_finish and p.blocks[0] == 1:
            self.finish_rows(b, bufs, batch, b.i64(0), m, n0, n1, c)

    def stream_unit(self, b: Builder, bufs: Node, u: Node) -> None:
        p, r, size = self.p, self.r, self.r.size
        n = p.sizes[2]
        split, batch, _, _, n0, n1, k0, k1 = self.unit_parts(b, u)
        a = b.gep(self.a.start(b, bufs, batch, size), b.mul(k0, self.a.column * size))
        bp = b.gep(self.b_place.start(b, bufs, batch, size), b.add(b.mul(n0, size), b.mul(k0, self.b_place.row * size)))
        c = self.c_place(b, bufs, split, batch)
        ct = b.gep(c, b.mul(n0, size))
        width = b.sub(n1, n0)
        if self.start is None:
            b.memset(ct, 0, b.mul(width, size))
        else:
            start = b.add(b.mul(b.add(b.mul(index.node(b, batch), n), n0), 4), self.start)
            b.memcpy(ct, b.gep(pointer(b, bufs, self.scratch_number), start), b.mul(width, 4))
        t = microkernel.Stream(r.combine, r.scalar, 8, p.lanes, self.target.vector_bytes >= 32)
        name = self.helper(microkernel.stream(t))
        b.call(name, [a, b.i64(self.a.column * size), bp, b.i64(self.b_place.row * size), ct, b.sub(k1, k0), width])
        if self.needs_finish and p.blocks[0] == 1:
            self.finish_rows(b, bufs, batch, b.i64(0), 1, n0, n1, c)

    # ---- what comes after the sums
    def combine_unit(self, b: Builder, bufs: Node, u: Node) -> None:
        """Add up a row's partial sums in order, then finish."""
        p = self.p
        bt, m, n = self.elements
        batch, row = index.delinear(index.loop_var(u, 0, bt * m), (bt, m))
        c = b.gep(pointer(b, bufs, self.scratch_number), self.partial)
        slab = bt * m * n * self.parts * self.r.size

        def load(v: Vector, offset: Node) -> Elem:
            total = self.loaded(b, b.gep(c, offset), v)
            return self.summed(b, total, c, offset, slab, p.blocks[0], v)

        self.finish_row(b, bufs, batch, row, b.i64(0), b.i64(n), lambda v: load(v, self.sum_offset(b, batch, row, v)))

    def summed(self, b: Builder, total: Elem, c: Node, offset: Node, slab: int, count: int, v: Vector) -> Elem:
        parts = [total.re] if total.im is None else [total.re, total.im]

        def add(s: Node, *acc: Node) -> list[Node]:
            x = self.loaded(b, b.gep(c, b.add(offset, b.mul(s, slab))), v)
            more = [x.re] if x.im is None else [x.re, x.im]
            if self.r.combine == "or":
                return [b.or_(y, z) for y, z in zip(acc, more, strict=True)]
            return [b.fadd(y, z) if y.type.is_float else b.add(y, z) for y, z in zip(acc, more, strict=True)]

        return Elem(total.dtype, *b.for_(1, count, 1, add, parts))

    def sum_offset(self, b: Builder, batch: Index, row: Index, v: Vector) -> Node:
        """Bytes from the start of full-size sums to the first lane of `v`."""
        _, m, n = self.elements
        at = index.linear([batch, row, v.at.first_lane() if v.lanes > 1 else v.at], (1, m, n))
        return index.node(b, at * (self.r.size * self.parts))

    def loaded(self, b: Builder, at: Node, v: Vector) -> Elem:
        return arith.load_elem(b, at, 0, self.r.acc, v.lanes, v.mask)

    def finish_rows(
        self, b: Builder, bufs: Node, batch: Index, m0: Node, rows: int, n0: Node, n1: Node, c: Node
    ) -> None:
        """Finish rows m0..m0 + rows, columns n0..n1 of sums that lie in rows of N at `c` (the batch's first)."""
        n = self.elements[2]

        def row(i: Node) -> None:
            def load(v: Vector) -> Elem:
                at = b.mul(
                    b.add(b.mul(i, n), index.node(b, v.at.first_lane() if v.lanes > 1 else v.at)),
                    self.r.size * self.parts,
                )
                return self.loaded(b, b.gep(c, at), v)

            self.finish_row(b, bufs, batch, index.loop_var(i, 0, self.elements[1]), n0, n1, load)

        b.for_(m0, b.add(m0, rows), 1, row)

    def finish(self, b: Builder, bufs: Node, batch: Index, m0: Node, rows: int, n0: Node, count: Node, tile: Node,
               row_bytes: Node) -> None:  # fmt: skip
        """Finish a tile of sums at `tile`: `rows` from m0 on, `count` columns from n0 on."""
        parts = self.parts
        first = n0 if parts == 1 else b.lshr(n0, 1)
        end = b.add(first, count if parts == 1 else b.lshr(count, 1))

        def row(d: Node) -> None:
            def load(v: Vector) -> Elem:
                at = index.node(b, v.at.first_lane() if v.lanes > 1 else v.at)
                start = b.mul(b.sub(at, first), self.r.size * parts)
                return self.loaded(b, b.gep(tile, b.add(b.mul(d, row_bytes), start)), v)

            i = b.add(m0, d)
            self.finish_row(b, bufs, batch, index.loop_var(i, 0, self.elements[1]), first, end, load)

        b.for_(0, rows, 1, row)

    def finish_row(self, b: Builder, bufs: Node, batch: Index, row: Index, n0: Node, n1: Node, load: Any) -> None:
        """Round, apply the epilogue to and store columns n0..n1 of a row, whose sums `load(vector)` gives."""
        _, m, n = self.elements
        result = pointer(b, bufs, self.scratch_number - 1)
        sources = [
            Buffer(pointer(b, bufs, 2 + i), t) for i, t in enumerate(self.epilogue.operands if self.epilogue else ())
        ]
        lanes = self.p.lanes if not self.r.acc.is_complex else max(1, self.p.lanes // 2)

        def turn(v: Vector) -> None:
            if self.swapped:
                position = (batch * n + v.at) * m + row
            else:
                position = (batch * m + row) * n + v.at
            x = load(v)
            if self.out.dtype is dtypes.i1 and self.r.acc is not dtypes.i1:
                x = Elem(dtypes.i1, b.cmp("ne", x.re, 0))
            elif held_type(self.out.dtype).scalar != x.re.type.scalar or self.out.dtype.is_float:
                x = arith.convert(b, x, self.out.dtype)
            else:
                x = Elem(self.out.dtype, x.re, x.im)
            if self.epilogue is not None:
                at = (
                    index.delinear(position, self.out.shape)
                    if prod(self.out.shape) > 1
                    else [index.ZERO] * self.out.rank
                )
                readers = [lambda i, s=s: s.load(b, tuple(i), v.lanes, v.mask) for s in sources]
                x = self.epilogue.build(b, at, x, readers)
            store(b, result, position, x, v)

        self.columns(b, n0, n1, n, lanes, turn)

    def columns(self, b: Builder, n0: Node, n1: Node, n: int, lanes: int, turn: Any) -> None:
        """Vectors over n0..n1, where n0 need not be a multiple of anything; the last one masked, or single elements."""

        def whole(j: Node) -> None:
            turn(Vector(index.vector_var(j, lanes, 0, max(1, n - lanes + 1)), lanes))

        end = b.add(n0, b.and_(b.sub(n1, n0), -lanes))
        if n >= lanes:
            b.for_(n0, end, lanes, whole)
        if lanes == 1:
            return
        if self.target.has_masks:

            def masked(j: Node) -> None:
                mask = b.cmp("slt", b.iota(I64.with_lanes(lanes)), b.sub(n1, j))
                turn(Vector(index.vector_var(j, lanes, 0, n, top=n), lanes, mask))

            b.for_(end, n1, lanes, masked)
        else:
            b.for_(end, n1, 1, lambda j: turn(Vector(index.loop_var(j, 0, n), 1)))


def store(b: Builder, ptr: Node, position: Index, x: Elem, v: Vector) -> None:
    """Store elements at `position` for the lanes of `v`, wherever these lie."""
    size = x.dtype.itemsize
    if v.lanes == 1 or position.lane_stride == 1:
        at = position.first_lane() if v.lanes > 1 else position
        arith.store_elem(b, ptr, index.node(b, at * size), x, v.lanes, v.mask)
        return
    offsets = index.node(b, position * size)
    parts = arith.to_memory(b, x)
    for i, p in enumerate(parts):
        b.scatter(b.gep(ptr, i * size // len(parts)), offsets, b.splat(p, v.lanes), mask=v.mask)


def transposed(b: Builder, rows: Sequence[Node]) -> list[Node]:
    """n vectors of n lanes (a power of two) with rows and lanes exchanged, by log2 n rounds of pairwise blends."""
    out = list(rows)
    n = len(out)
    s = 1
    while s < n:
        for i in range(n):
            if i & s:
                continue
            x, y = out[i], out[i + s]
            out[i] = b.shuffle(x, y, [l if not l & s else n + l - s for l in range(n)])
            out[i + s] = b.shuffle(x, y, [l + s if not l & s else n + l for l in range(n)])
        s *= 2
    return out
