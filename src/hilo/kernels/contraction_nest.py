"""The loops around a contraction's micro-kernels. Imports loop, kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from hilo.ir.dims import Number
from hilo.ir.types import TensorType
from hilo.kernels import microkernel
from hilo.kernels.contraction_bound import Panels
from hilo.kernels.contraction_finish import Finish
from hilo.kernels.contraction_pack import phase_func
from hilo.kernels.contraction_plan import FAR_ROWS, OUTER_PRODUCTS, Plan, Recipe, turned_bytes
from hilo.kernels.contraction_sizes import is_static, rests
from hilo.kernels.elementwise import streams
from hilo.kernels.lowered import Phase
from hilo.kernels.memory import RESULT_ALIGN, pointer
from hilo.loop import index
from hilo.loop.builder import Builder, Node
from hilo.loop.index import Index
from hilo.record import record

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.kernels.contraction_panels import PanelTurn

AHEAD: Final = 8  # steps of k, while A is packed
TOUCHED_K: Final = 96  # steps of k, from which the tile of C is fetched ahead


@record(frozen=True)
class Place:
    """An operand as micro-kernels see it: element (batch, row, column) of accumulator-sized elements, or
    of type `narrow` (only B: its elements are widened as they are read). `panels`: B lies in panels
    (contraction_bound.Panels), whose columns together are `row`.

    `buffer` is its number in `bufs`, `offset` bytes come first; `batch` holds (size, stride) of each batch dim.
    """

    buffer: int
    offset: int
    batch: tuple[tuple[int, int], ...]
    row: int
    column: int
    narrow: str = ""
    panels: bool = False

    def start(self, b: Builder, bufs: Node, batch: Index, size: int) -> Node:
        """The address of a batch's first element."""
        at = index.ZERO
        for (_, stride), i in zip(self.batch, index.delinear(batch, [n for n, _ in self.batch]), strict=True):
            at = at + i * stride
        return b.gep(pointer(b, bufs, self.buffer), index.node(b, at * size + self.offset))


class Nest(Finish):
    """Emits the main phase of a contraction (and the one that adds up partial sums, if k is split)."""

    def __init__(
        self,
        p: Plan,
        r: Recipe,
        a: Place,
        b: Place,
        start: int | None,
        out: TensorType,
        swapped: bool,
        epilogue: Any,
        scratch_number: int,
        target: Target,
        kept: Panels | None = None,
    ) -> None:
        """`kept`: panels of B that a call may bring; their pointer stands behind the scratch's."""
        super().__init__(p, r, out, swapped, epilogue, scratch_number, target)
        self.a, self.b_place, self.start, self.kept = a, b, start, kept
        self.b_size = microkernel.memory_size(r.scalar, b.narrow)

    # ---- phases
    def phases(self) -> list[Phase]:
        p = self.p
        unit = {"tile": self.tile_unit, "inner": self.inner_unit, "stream": self.stream_unit}[p.kind]
        main = phase_func("contraction", unit)
        main.attrs["outer"] = self.is_outer
        out = [Phase(main, p.units, p.unit_cost, list(self.helpers.values()))]
        if p.blocks[0] > 1:
            bt, m, n = self.elements
            func = phase_func("contraction_combine", self.combine_unit)
            out.append(Phase(func, bt * m, n * (p.blocks[0] + 1) * 0.3))
        return out

    def finished(self, b: Builder, bufs: Node, batch: Index, args: Sequence[Node], write: Callable[..., None]) -> None:
        """`write(b, bufs, batch, *args)`, in a function of its own if this one's code is made quickly."""
        if self.is_outer:
            self.apart(b, bufs, batch, args, write)
        else:
            write(b, bufs, batch, *args)

    @property
    def is_outer(self) -> bool:
        """Whether units spend their time in what they call, so that their own code may be made quickly."""
        p = self.p
        if not is_static(p.sizes) or p.turned_a:
            return False
        _, _, n, k = p.sizes
        depth = min(p.block_k if p.kind == "tile" else p.split_k, k)
        width = {"tile": p.vectors, "inner": p.vectors / p.lanes, "stream": min(p.block_n, n) / p.lanes}[p.kind]
        read_once = p.kind == "tile" and self.far and p.sizes[1] <= p.rows
        return max(p.rows, FAR_ROWS if read_once else 0) * width * depth >= OUTER_PRODUCTS

    @property
    def far(self) -> bool:
        """Whether B, read once, is not in the second-level cache."""
        _, _, n, k = self.p.sizes
        return k * n * self.b_size > self.target.l2

    @property
    def streams(self) -> bool:
        """Whether sums go past the caches: each is stored once, in whole lines, and all are too large for a cache."""
        p, lines = self.p, RESULT_ALIGN
        once = self.where == "result" and not self.needs_finish and p.blocks[0] == 1 and self.parts == 1
        n, k = p.sizes[2:]
        whole = isinstance(n, int) and isinstance(k, int) and p.block_k >= k and n * self.r.size % lines == 0
        return once and whole and p.lanes * self.r.size % 32 == 0 and streams(self.stored, self.target)

    # ---- units
    def unit_parts(self, b: Builder, u: Node) -> tuple[Index, Index, Node, Node, Node, Node, Node, Node]:
        """(split, batch, first and last row, column, k) of unit `u`."""
        p = self.p
        _, m, n, k = p.sizes
        split, batch, bm, bn = index.delinear(index.loop_var(u, 0, p.units), p.blocks)

        def span(i: Index, block: int, size: Number, tile: int) -> tuple[Node, Node]:
            if not isinstance(size, int):
                lo = index.node(b, i * block)
                return lo, b.smin(b.add(lo, block), size)
            if block >= size:
                return b.i64(0), b.i64(size)
            tiles, count = -(-size // tile), -(-size // block)
            lo, hi = (index.node(b, x * tiles // count * tile) for x in (i, i + 1))
            return lo, b.smin(hi, size)

        width = {"tile": p.width, "inner": p.vectors, "stream": p.lanes}[p.kind]
        m0, m1 = span(bm, p.block_m, m, p.rows)
        n0, n1 = span(bn, p.block_n, n, width)
        k0, k1 = span(split, p.split_k, k, p.split_k)
        return split, batch, m0, m1, n0, n1, k0, k1

    def c_place(self, b: Builder, bufs: Node, split: Index, batch: Index) -> Node:
        """Where the sums of a batch go: rows of N accumulators."""
        bt, m, n, _ = self.p.sizes
        at = (split * bt + batch) * (m * n * self.r.size)
        if self.where == "result":
            return b.gep(pointer(b, bufs, self.scratch_number - 1), index.node(b, at))
        return b.gep(pointer(b, bufs, self.scratch_number), index.node(b, at + self.partial))

    def tile_unit(self, b: Builder, bufs: Node, u: Node) -> None:
        p, r, size = self.p, self.r, self.r.size
        _, m, n, k = p.sizes
        split, batch, m0, m1, n0, n1, k0, k1 = self.unit_parts(b, u)
        a = self.a.start(b, bufs, batch, size)
        bp = self.b_place.start(b, bufs, batch, self.b_size)
        c = self.c_place(b, bufs, split, batch) if self.where != "stack" else b.alloca(p.rows * p.width * size)
        panels = b.alloca(p.block_k * p.width * p.pack_panels * size) if p.pack_panels else None
        a_panels = b.alloca(turned_bytes(p.block_m, p.rows, p.block_k, size)) if p.turned_a else None
        b_row, b_col = self.b_place.row * self.b_size, self.b_place.column * self.b_size
        narrow, bound = self.b_place.narrow, self.b_place.panels
        widest = n - n % p.width
        # B stays in the second-level cache: what is fetched ahead is A, once, while its first panel is used.
        dense = self.a.column == 1 and self.a.row == k and not p.turned_a and p.block_k >= k
        fetches_a = dense and n > p.width and k * n * self.b_size <= self.target.l2 // 4
        streams = self.streams
        touches = self.where != "stack" and p.block_k >= TOUCHED_K and not streams
        together = p.width * max(1, p.pack_panels)  # columns that are packed, then used
        kept = given = None  # the batch's panels that a call brings, and whether it does
        if self.kept is not None:
            kept = pointer(b, bufs, self.scratch_number + 1)
            given = b.cmp("ne", b.convert("ptrtoint", kept, "i64"), 0)
            kept = b.gep(kept, index.node(b, batch * (k * self.kept.columns * size)))

        def chosen(x: Node | int, otherwise: Node | int) -> Node:
            """`x` if the panels are given."""
            own = b.i64(otherwise) if isinstance(otherwise, int) else otherwise
            return own if given is None else b.select(given, x, own)

        def over_k(kb: Node) -> None:
            kc = b.smin(b.sub(k1, kb), p.block_k)
            first = b.cmp("eq", kb, k0)
            ak = b.gep(a, b.mul(kb, self.a.column * size))
            bk = b.gep(bp, b.mul(kb, b_row))

            def kept_at(j: Node) -> Node:
                """The panel at column `j` that a call may bring."""
                if kept is None or self.kept is None:
                    return bk
                return b.gep(kept, b.add(b.mul(kb, self.kept.columns * size), b.mul(kc, b.mul(j, size))))

            def columns(j: Node, at: Node, vectors: int, lanes: int, masked: bool) -> None:
                """Tiles of the panel at column `j` of B, packed at `at`."""
                live = b.sub(n, j) if masked else b.i64(vectors * lanes)
                half = masked and self.target.has_halves and isinstance(n, int) and n % lanes <= lanes // 2
                if bound:
                    step = ahead_step = b.i64(vectors * lanes * self.b_size)
                    start = b.gep(bk, b.mul(kc, b.mul(j, self.b_size)))
                    following = b.gep(start, b.mul(kc, step))
                else:
                    row, source = vectors * lanes * size, b.gep(bk, b.mul(j, b_col))
                    following = b.gep(source, p.block_k * b_row if p.skinny else together * b_col)
                    following = chosen(b.gep(kept_at(j), b.mul(kc, row)), following)
                    start, step = (source, b_row) if panels is None else (at, row)
                    start, step, ahead_step = chosen(kept_at(j), start), chosen(row, step), chosen(row, b_row)
                line_count = max(1, vectors * lanes * self.b_size // 64)
                lines = -(-line_count // max(1, -(-p.block_m // p.rows)))  # all tiles of a unit fetch the whole panel

                def tile(i: Node, rows: int) -> None:
                    by_lanes = self.target.has_lanes and self.a.column == 1 and not p.turned_a and lanes > 1
                    t = microkernel.Tile(r.combine, r.scalar, rows, vectors, lanes, masked, lines,
                                         "" if panels else narrow, touches, by_lanes, half, streams)  # fmt: skip
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
                    a_at, a_k = b.gep(ak, b.mul(i, self.a.row * size)), self.a.column * size
                    if a_panels is not None:
                        a_at, a_k = turned_tile(a_panels, b.sub(i, m0)), rows * size
                    turn = b.binary("urem", b.binary("udiv", i, p.rows), -(-line_count // lines))
                    ahead, ahead_k = b.gep(following, b.mul(turn, 64 * lines)), ahead_step
                    if fetches_a:
                        mine = b.cmp("eq", j, n0)
                        ahead = b.select(mine, b.gep(ak, b.mul(b.add(i, rows), self.a.row * size)), ahead)
                        ahead_k = b.select(mine, b.i64(rows * size), ahead_k)
                    b.call(
                        name,
                        [
                            a_at,
                            b.i64(self.a.row * size),
                            b.i64(a_k),
                            start,
                            step,
                            ct,
                            c_row,
                            init,
                            init_row,
                            kc,
                            live,
                            ahead,
                            ahead_k,
                        ],
                    )
                    if self.where == "stack":
                        self.finished(b, bufs, batch, (i, b.i64(rows), j, live, ct, c_row), self.finish)

                whole = m // p.rows * p.rows
                b.for_(m0, b.smin(m1, whole), p.rows, lambda i: tile(i, p.rows))
                heights = list(rests(m, p.rows, p.expected))
                if isinstance(m, int):
                    for height in heights:
                        b.if_(b.cmp("eq", m1, m), lambda height=height: tile(b.i64(whole), height))
                    return

                def last_rows() -> None:
                    at = b.i64(whole)
                    for height in heights:
                        fits = b.cmp("sge", b.sub(m, at), height)
                        b.if_(fits, lambda at=at, height=height: tile(at, height))
                        at = b.select(fits, b.add(at, height), at)

                if heights:
                    b.if_(b.cmp("eq", m1, m), last_rows)

            def turned_tile(to: Node, i: Node) -> Node:
                """Where a tile of A is that is packed from row `i` of the unit on."""
                return b.gep(to, b.mul(b.binary("udiv", i, p.rows), turned_bytes(p.rows, p.rows, p.block_k, size)))

            def turn_a(to: Node) -> None:
                from hilo.kernels.contraction_panels import copy_run

                whole = m // p.rows * p.rows

                def step(x: Node) -> None:
                    source = b.gep(ak, b.mul(x, self.a.column * size))

                    def copy(i: Node, rows: int) -> None:
                        at = b.gep(turned_tile(to, b.sub(i, m0)), b.mul(x, rows * size))
                        run = b.gep(source, b.mul(i, size))
                        b.prefetch(b.gep(run, AHEAD * self.a.column * size))
                        copy_run(b, r.scalar, run, at, rows, p.lanes)

                    b.for_(m0, b.smin(m1, whole), p.rows, lambda i: copy(i, p.rows))
                    if m % p.rows:
                        b.if_(b.cmp("eq", m1, m), lambda: copy(b.i64(whole), m % p.rows))

                b.for_(0, kc, 1, step)

            def place(lo: Node, j: Node) -> Node:
                """Of the panel of column `j` among packed ones that begin with the one of column `lo`."""
                return b.gep(panels, b.mul(b.sub(j, lo), p.block_k * size)) if panels is not None else bk

            def each_panel(lo: Node, hi: Node, f: PanelTurn) -> None:
                """`f` for the panels of columns lo..hi, with the place of each among packed ones that begin at lo."""
                b.for_(lo, b.smin(hi, widest), p.width, lambda j: f(j, place(lo, j), p.vectors, p.lanes, False))
                edge(lo, hi, f)

            def edge(lo: Node, hi: Node, f: PanelTurn) -> None:
                """`f` for the last panels, if columns lo..hi have them."""
                if n % p.width == 0:
                    return

                def last() -> None:
                    for offset, vectors, lanes, masked in p.edges(n % p.width, self.target):
                        j = b.i64(widest + offset)
                        f(j, place(lo, j), vectors, lanes, masked)

                b.if_(b.cmp("eq", hi, n), last)

            def turned(j: Node, at: Node, vectors: int, lanes: int, masked: bool) -> None:
                from hilo.kernels.contraction_panels import turn

                source = b.gep(bk, b.mul(j, b_col))
                width, live = b.i64(vectors * lanes * size), b.sub(n, j)
                name = self.helper(turn(r.scalar, narrow, lanes, self.target.has_masks))
                b.call(name, [at, width, source, b.i64(b_col), kc, live, b.i64(vectors)])

            def copied(j: Node, at: Node, vectors: int, lanes: int, live: Node, count: Node) -> None:
                """Copy `count` panels from column `j` on."""
                from hilo.kernels.convolution_tile import Pack, pack

                masks = self.target.has_masks and lanes > 1
                name = self.helper(pack(Pack(r.scalar, narrow, vectors, lanes, masks)))
                to_panel, from_panel = b.i64(p.block_k * p.width * size), b.i64(p.width * self.b_size)
                one, source = b.i64(1), b.gep(bk, b.mul(j, self.b_size))
                b.call(name, [at, source, b.i64(b_row), b.i64(0), one, kc, live, count, to_panel, from_panel])

            def copy_panels(lo: Node, hi: Node) -> None:
                if n >= p.width:
                    count = b.binary("udiv", b.sub(b.smax(b.smin(hi, widest), lo), lo), p.width)
                    copied(lo, place(lo, lo), p.vectors, p.lanes, b.i64(p.width), count)
                edge(lo, hi, lambda j, at, v, l, _: copied(j, at, v, l, b.smin(b.sub(n, j), v * l), b.i64(1)))

            def together_from(lo: Node) -> None:
                hi = b.smin(b.add(lo, together), n1)

                def fill() -> None:
                    if p.transpose_b:
                        each_panel(lo, hi, turned)
                    else:
                        copy_panels(lo, hi)

                if given is None:
                    fill()
                else:
                    b.if_(b.xor(given, 1), fill)
                each_panel(lo, hi, columns)

            if a_panels is not None:
                turn_a(a_panels)
            if panels is None:
                each_panel(n0, n1, columns)
            else:
                b.for_(n0, n1, together, together_from)

        if k == 0:
            over_k(b.i64(0))
        else:
            b.for_(k0, k1, p.block_k, over_k)
        if self.needs_finish and self.where != "stack" and p.blocks[0] == 1:
            begin, end = (n0, n1) if self.parts == 1 else (b.lshr(n0, 1), b.lshr(n1, 1))
            self.finished(b, bufs, batch, (m0, m1, begin, end, c), self.finish_rows)
        if streams:
            b.fence()

    def inner_unit(self, b: Builder, bufs: Node, u: Node) -> None:
        p, r, size = self.p, self.r, self.r.size
        _, m, n, _ = p.sizes
        split, batch, _, _, n0, n1, k0, k1 = self.unit_parts(b, u)
        a = b.gep(self.a.start(b, bufs, batch, size), b.mul(k0, size))
        bp = b.gep(self.b_place.start(b, bufs, batch, self.b_size), b.mul(k0, self.b_size))
        c = self.c_place(b, bufs, split, batch)
        masks = self.target.vector_bytes >= 32

        def block(i: int, rows: int, j: Node, columns: int) -> None:
            t = microkernel.Inner(r.combine, r.scalar, rows, columns, p.lanes, masks, self.b_place.narrow, self.far)
            name = self.helper(microkernel.inner(t))
            ct = b.gep(c, b.add(b.mul(j, size), i * n * size))
            b.call(
                name,
                [
                    b.gep(a, i * self.a.row * size),
                    b.i64(self.a.row * size),
                    b.gep(bp, b.mul(j, self.b_place.column * self.b_size)),
                    b.i64(self.b_place.column * self.b_size),
                    ct,
                    b.i64(n * size),
                    b.i64(size),
                    b.sub(k1, k0),
                ],
            )

        def all_rows(j: Node, columns: int) -> None:
            for i in range(0, m, p.rows):
                block(i, min(p.rows, m - i), j, columns)

        whole = n - n % p.vectors
        b.for_(n0, b.smin(n1, whole), p.vectors, lambda j: all_rows(j, p.vectors))
        if n % p.vectors:
            b.if_(b.cmp("eq", n1, n), lambda: all_rows(b.i64(whole), n % p.vectors))
        if self.needs_finish and p.blocks[0] == 1:
            self.finished(b, bufs, batch, (b.i64(0), b.i64(m), n0, n1, c), self.finish_rows)

    def stream_unit(self, b: Builder, bufs: Node, u: Node) -> None:
        p, r, size = self.p, self.r, self.r.size
        n = p.sizes[2]
        split, batch, _, _, n0, n1, k0, k1 = self.unit_parts(b, u)
        a = b.gep(self.a.start(b, bufs, batch, size), b.mul(k0, self.a.column * size))
        bp = b.gep(
            self.b_place.start(b, bufs, batch, self.b_size),
            b.add(b.mul(n0, self.b_size), b.mul(k0, self.b_place.row * self.b_size)),
        )
        c = self.c_place(b, bufs, split, batch)
        ct = b.gep(c, b.mul(n0, size))
        width = b.sub(n1, n0)
        if self.start is None:
            b.memset(ct, 0, b.mul(width, size))
        else:
            start = b.add(b.mul(b.add(b.mul(index.node(b, batch), n), n0), 4), self.start)
            b.memcpy(ct, b.gep(pointer(b, bufs, self.scratch_number), start), b.mul(width, 4))
        masks = self.target.vector_bytes >= 32
        t = microkernel.Stream(r.combine, r.scalar, 8, p.lanes, masks, self.b_place.narrow, self.far)
        name = self.helper(microkernel.stream(t))
        b.call(
            name, [a, b.i64(self.a.column * size), bp, b.i64(self.b_place.row * self.b_size), ct, b.sub(k1, k0), width]
        )
        if self.needs_finish and p.blocks[0] == 1:
            self.finished(b, bufs, batch, (b.i64(0), b.i64(1), n0, n1, c), self.finish_rows)
