"""The loops around the tiles of a convolution: one function for all of them, led by a table of numbers. Imports loop.

What differs from convolution to convolution (sizes, strides, where windows lie inside) is data, so that a network of
fifty convolutions has one nest of loops to generate code for. The table: the words `HEAD`, a record of `REGION` for
each region, how many rows a tile takes of 0, 1 ... that are left (for one group, then for two). What is known only when
the program runs: the words `PLACES`, then the tiles' addresses by their number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from hilo.loop.builder import I64, PTR, Builder, Func, Node
from hilo.loop.nodes import Deferred

MOST_ROWS: Final = 24  # of a tile
_GROUPS: Final = MOST_ROWS + 1  # entries of the tables that are indexed by numbers of rows

PLACES: Final = (
    # pointers: A, B, the result, room for sums, room for a packed panel; functions that finish a tile and pack a panel
    # what is read or written, of the result's form, when a tile is finished
    "a", "b", "result", "sums", "packed", "finish", "pack", "touch",
    # bytes between panels of B and of a row of B; whether to pack
    "b_panel", "b_k", "packs",
)  # fmt: skip
HEAD: Final = (
    # units: blocks of rows x blocks of panels; rows are cut at multiples of `step`
    "units_m", "units_n", "rows", "step", "panels",
    # a panel: its columns, their number in B; panels of one group of features, and what the
    # next group adds to A; how many panels take turns at each block of k; whether the sums of whole panels go into the
    # result, and whether they are finished there
    "width", "columns", "per_group", "a_group", "together", "direct", "finishes",
    # k: outer taps, segments, elements of a segment; how many are taken at a time
    "outer", "segments", "inner", "segments_step", "inner_step",
    # bytes of an element, of a place for the sums of a row (0: one for all) and of a panel; lines of a panel's row; the
    # number of regions
    "size", "slot", "slots", "lines", "regions",
    # whether the next rows of A are fetched ahead, once, instead of B
    "ahead_a",
)  # fmt: skip
REGION: Final = (
    # taps that lie inside: from, to, step of outer taps and of segments; from, to of a segment's elements; `bare`: none
    "o_lo", "o_hi", "o_step", "s_lo", "s_hi", "s_step", "r_lo", "r_hi", "bare",
    # A (bytes) and the row of the result (its number) at the origin; what one step along each of three axes adds
    "a", "a0", "a1", "a2", "a_outer", "a_segment", "m", "m0", "m1", "m2", "n0", "n1", "n2",
    # the axis that units cut, the first row along it, and the step
    "axis", "first", "stride",
    # a tile: rows along axis 2 at most, and along axis 1 (1 or 2)
    "rows", "pair",
)  # fmt: skip
WORD: Final = 8
RECORD: Final = WORD * len(REGION)
_REGIONS: Final = WORD * len(HEAD)
_TILES: Final = WORD * len(PLACES)
NAME: Final = "conv_walk"


def write(b: Builder, places: dict[str, int | Node], head: dict[str, int], regions: Sequence[dict[str, int]],
          taken: Sequence[Sequence[int]], tiles: dict[int, Node]) -> tuple[Node, Node]:  # fmt: skip
    """The places, written to the stack, and the table: addresses of both. Tiles are by numbers of rows."""
    head = {**head, "regions": len(regions)}
    words = [head[n] for n in HEAD]
    for r in regions:
        words += [r[n] for n in REGION]
    for row in taken:
        words += row
    at = b.alloca(_TILES + WORD * _GROUPS)
    for i, name in enumerate(PLACES):
        value = places[name]
        b.store(b.gep(at, WORD * i), value if isinstance(value, Node) else b.i64(value))
    for rows, tile in tiles.items():
        b.store(b.gep(at, _TILES + WORD * rows), tile)
    return at, b.pure("data", (), PTR, value=tuple(words))


def takes(rows: Sequence[int]) -> list[int]:
    """For 0, 1 ... rows that are left: how many the next tile takes, of those that `rows` lists."""
    return [max((r for r in rows if r <= left), default=0) for left in range(_GROUPS)]


@cache
def walk() -> Func:
    """void conv_walk(ptr bufs, ptr places, ptr table, i64 begin, i64 end): the units begin..end.

    The same in C: runtime/native/walk.c."""
    params = [("bufs", PTR), ("places", PTR), ("table", PTR), ("begin", I64), ("end", I64)]
    return Deferred(NAME, params, _written, inline="never", outer=True, ready=True)


def _written(f: Func) -> None:
    b = Builder(f)
    _Walk(b, *f.params)
    b.ret()


class _Walk:
    """Writes the loops, from the outermost to the innermost."""

    def __init__(self, b: Builder, bufs: Node, places: Node, table: Node, begin: Node, end: Node) -> None:
        self.b, self.bufs = b, bufs
        numbers = ("b_panel", "b_k", "packs")
        self.head = {n: b.load(b.gep(places, WORD * i), I64 if n in numbers else PTR, invariant=True)
                     for i, n in enumerate(PLACES)}  # fmt: skip
        self.head |= {n: b.load(b.gep(table, WORD * i), I64, invariant=True) for i, n in enumerate(HEAD)}
        h = self.head
        self.regions = b.gep(table, _REGIONS)
        self.taken = b.gep(self.regions, b.mul(h["regions"], RECORD))
        self.tiles = b.gep(places, _TILES)
        self.row_bytes = b.mul(h["width"], h["size"])
        # Of the unit, the panel and the block of k that are being written:
        self.lo = self.hi = self.column = self.live = self.a = self.direct = self.finishes = begin
        self.o = self.s0 = self.s1 = self.r0 = self.r1 = self.count = self.depth = self.packs = self.last_block = begin
        self.source = self.packed_bytes = self.b_at = self.b_k = self.b_segment = self.ahead = self.fetch_a = begin
        b.for_(begin, end, 1, self.unit)

    def cut(self, total: Node, parts: Node, i: Node) -> Node:
        """The start of part i of `total` in about equal parts."""
        return self.b.binary("udiv", self.b.mul(total, i), parts)

    def unit(self, u: Node) -> None:
        b, h = self.b, self.head
        m = b.binary("udiv", u, h["units_n"])
        n = b.sub(u, b.mul(m, h["units_n"]))
        steps = b.binary("udiv", b.add(h["rows"], b.sub(h["step"], 1)), h["step"])
        self.lo = b.mul(self.cut(steps, h["units_m"], m), h["step"])
        self.hi = b.smin(b.mul(self.cut(steps, h["units_m"], b.add(m, 1)), h["step"]), h["rows"])
        p0, p1 = (self.cut(h["panels"], h["units_n"], x) for x in (n, b.add(n, 1)))
        b.for_(p0, p1, h["together"], lambda p: self.panels(p, b.smin(b.add(p, h["together"]), p1)))

    def panels(self, p0: Node, p1: Node) -> None:
        """Some panels, block of k by block of k."""
        b, h = self.b, self.head

        def block(o: Node, s0: Node, r0: Node) -> None:
            self.o, self.s0, self.r0 = o, s0, r0
            self.s1 = b.smin(b.add(s0, h["segments_step"]), h["segments"])
            self.r1 = b.smin(b.add(r0, h["inner_step"]), h["inner"])
            self.depth, self.count = b.sub(self.r1, r0), b.sub(self.s1, s0)
            rows = b.add(b.mul(b.add(b.mul(o, h["segments"]), s0), h["inner"]), r0)  # of B, before
            self.source = b.gep(h["b"], b.mul(rows, h["b_k"]))
            self.packs = b.cmp("ne", h["packs"], 0)
            ended = b.and_(b.cmp("eq", self.s1, h["segments"]), b.cmp("eq", self.r1, h["inner"]))
            self.last_block = b.and_(ended, b.cmp("eq", b.add(o, 1), h["outer"]))
            self.b_k = b.select(self.packs, self.row_bytes, h["b_k"])
            self.b_segment = b.mul(b.select(self.packs, self.depth, h["inner"]), self.b_k)
            self.packed_bytes = b.mul(b.mul(self.count, self.depth), self.row_bytes)
            b.if_(self.packs, lambda: self.pack(p0, p1))
            b.for_(p0, p1, 1, lambda p: self.panel(p, p0, p1))

        def inner(o: Node, s0: Node) -> None:
            b.for_(0, h["inner"], h["inner_step"], lambda r0: block(o, s0, r0))

        b.for_(0, h["outer"], 1, lambda o: b.for_(
            0, h["segments"], h["segments_step"], lambda s0: inner(o, s0)) and None)  # fmt: skip

    def pack(self, p0: Node, p1: Node) -> None:
        """The block of k of the panels: whole ones together, one at the edge by itself."""
        b, h = self.b, self.head
        segment = b.mul(h["inner"], h["b_k"])
        whole = b.smin(p1, b.binary("udiv", h["columns"], h["width"]))

        def some(first: Node, end: Node, live: Node) -> None:
            to = b.gep(h["packed"], b.mul(b.sub(first, p0), self.packed_bytes))
            source = b.gep(self.source, b.mul(first, h["b_panel"]))
            b.callptr(h["pack"], [to, source, h["b_k"], segment, self.count, self.depth, live, b.sub(end, first),
                                  self.packed_bytes, h["b_panel"]])  # fmt: skip

        b.if_(b.cmp("sgt", whole, p0), lambda: some(p0, whole, h["width"]))
        b.if_(b.cmp("slt", whole, p1), lambda: some(whole, p1, b.sub(h["columns"], b.mul(whole, h["width"]))))

    def panel(self, p: Node, p0: Node, p1: Node) -> None:
        """A panel, for a block of k: all regions."""
        b, h = self.b, self.head
        self.column = b.mul(p, h["width"])
        self.live = b.smin(h["width"], b.sub(h["columns"], self.column))
        self.a = b.gep(h["a"], b.mul(b.binary("udiv", p, h["per_group"]), h["a_group"]))
        self.direct = b.and_(b.cmp("ne", h["direct"], 0), b.cmp("eq", self.live, h["width"]))
        self.finishes = b.or_(b.cmp("ne", h["finishes"], 0), b.xor(self.direct, 1))
        source = b.gep(self.source, b.mul(p, h["b_panel"]))
        self.b_at = b.select(self.packs, b.gep(h["packed"], b.mul(b.sub(p, p0), self.packed_bytes)), source)
        self.fetch_a = b.and_(b.cmp("ne", h["ahead_a"], 0), b.cmp("eq", p, p0))
        # What is read next: the next block, or after the last one the next panels (after all of them the first).
        left = b.add(p, b.sub(p1, p0))
        left = b.select(b.cmp("sge", left, h["panels"]), b.sub(p, p0), left)
        following = b.gep(source, b.mul(b.mul(self.count, self.depth), h["b_k"]))
        self.ahead = b.select(self.last_block, b.gep(h["b"], b.mul(left, h["b_panel"])), following)
        sums = b.gep(h["sums"], b.mul(b.sub(p, p0), h["slots"]))
        b.for_(0, h["regions"], 1, self.region, (sums, b.i64(0)))

    def region(self, i: Node, sums: Node, turn: Node) -> Sequence[Node]:
        b = self.b
        record = b.gep(self.regions, b.mul(i, RECORD))
        r = {n: b.load(b.gep(record, WORD * k), I64, invariant=True) for k, n in enumerate(REGION)}
        since = b.sub(self.o, r["o_lo"])
        s_lo, s_hi = b.smax(r["s_lo"], self.s0), b.smin(r["s_hi"], self.s1)
        r_lo, r_hi = b.smax(r["r_lo"], self.r0), b.smin(r["r_hi"], self.r1)
        known = b.cmp("sge", since, 0)
        active = b.and_(known, b.cmp("slt", self.o, r["o_hi"]))
        active = b.and_(active, b.cmp("eq", b.binary("urem", since, r["o_step"]), 0))
        active = b.and_(active, b.and_(b.cmp("slt", s_lo, s_hi), b.cmp("slt", r_lo, r_hi)))

        def rows(what: Node) -> Node:
            """How many of the region's rows along the axis that units cut lie before row `what`."""
            n = b.sub(what, r["first"])
            count = b.binary("udiv", b.add(n, b.sub(r["stride"], 1)), r["stride"])
            return b.select(b.cmp("sgt", n, 0), count, 0)

        since_lo, since_hi = rows(self.lo), rows(self.hi)
        bounds = []
        for axis in range(3):
            cut = b.cmp("eq", r["axis"], axis)
            n = r[f"n{axis}"]
            bounds.append((b.select(cut, b.smin(since_lo, n), 0), b.select(cut, b.smin(since_hi, n), n)))

        def go() -> Sequence[Node]:
            first = b.and_(b.cmp("sle", self.s0, r["s_lo"]), b.cmp("sle", self.r0, r["r_lo"]))
            more = b.select(b.and_(first, b.cmp("eq", since, 0)), b.i64(0), b.i64(1))
            last = b.and_(b.cmp("sge", self.s1, r["s_hi"]), b.cmp("sge", self.r1, r["r_hi"]))
            last = b.and_(last, b.cmp("sge", b.add(self.o, r["o_step"]), r["o_hi"]))
            steps = b.sub(b.add(b.sub(s_hi, s_lo), r["s_step"]), 1)
            segments = b.select(b.cmp("ne", r["bare"], 0), b.i64(0), b.binary("udiv", steps, r["s_step"]))
            to_outer = b.mul(b.binary("udiv", since, r["o_step"]), r["a_outer"])
            to_segment = b.mul(b.binary("udiv", b.sub(s_lo, r["s_lo"]), r["s_step"]), r["a_segment"])
            a = b.gep(self.a, b.add(b.add(r["a"], to_outer), b.add(to_segment, b.mul(r_lo, self.head["size"]))))
            skipped = b.add(b.mul(b.sub(s_lo, self.s0), self.b_segment), b.mul(b.sub(r_lo, self.r0), self.b_k))
            fixed = [segments, b.sub(r_hi, r_lo), b.gep(self.b_at, skipped), b.mul(r["s_step"], self.b_segment), more]
            return self.tiles_of(r, bounds, a, fixed, last, sums, turn)

        (turn,) = b.if_(active, go, lambda: (turn,))
        count = b.const(1, I64)  # of rows, each of which has its place, whether it is its turn or not
        for lo, hi in bounds:
            count = b.mul(count, b.smax(b.sub(hi, lo), 0))
        return [b.gep(sums, b.mul(count, self.head["slot"])), turn]

    def tiles_of(self, r: dict[str, Node], bounds: list[tuple[Node, Node]], a: Node, fixed: list[Node], last: Node,
                 sums: Node, turn: Node) -> Sequence[Node]:  # fmt: skip
        b = self.b
        (lo0, hi0), (lo1, hi1), (lo2, hi2) = bounds

        def outermost(i0: Node, *state: Node) -> Sequence[Node]:
            a_0, m_0 = b.gep(a, b.mul(i0, r["a0"])), b.add(r["m"], b.mul(i0, r["m0"]))

            def middle(i1: Node, *state: Node) -> Sequence[Node]:
                a_1, m_1 = b.gep(a_0, b.mul(i1, r["a1"])), b.add(m_0, b.mul(i1, r["m1"]))
                two = b.and_(b.cmp("eq", r["pair"], 2), b.cmp("sgt", b.sub(hi1, i1), 1))
                taken = b.gep(self.taken, b.select(two, b.i64(WORD * _GROUPS), 0))

                def some(i2: Node, *state: Node) -> Sequence[Node]:
                    left = b.smin(b.sub(hi2, i2), r["rows"])
                    take = b.load(b.gep(taken, b.mul(left, WORD)), I64, invariant=True)
                    at = b.gep(a_1, b.mul(i2, r["a2"]))
                    m = b.add(m_1, b.mul(i2, r["m2"]))
                    return [b.add(i2, take), *self.tile(r, at, m, take, two, fixed, last, *state)]

                return b.while_((lo2, *state), lambda i2, *_: b.cmp("slt", i2, hi2), some)[1:]

            return b.for_(lo1, hi1, r["pair"], middle, state)

        return b.for_(lo0, hi0, 1, outermost, (sums, turn))[1:]

    def tile(self, r: dict[str, Node], a: Node, m: Node, take: Node, two: Node, fixed: list[Node], last: Node,
             sums: Node, turn: Node) -> Sequence[Node]:  # fmt: skip
        """One tile: its sums, and if these are complete, what follows."""
        b, h = self.b, self.head
        segments, depth, bp, b_segment, more = fixed
        rows = b.select(two, b.add(take, take), take)
        group = b.lshr(b.add(rows, 1), 1)
        fn = b.load(b.gep(self.tiles, b.mul(rows, WORD)), PTR, invariant=True)
        a_group = b.select(two, r["a1"], b.mul(group, r["a2"]))
        m_group = b.select(two, r["m1"], b.mul(group, r["m2"]))
        result_row = b.mul(h["columns"], h["size"])
        to_place = b.add(b.mul(m, result_row), b.mul(self.column, h["size"]))
        place_row, place_group = b.mul(r["m2"], result_row), b.mul(m_group, result_row)
        c = b.select(self.direct, b.gep(h["result"], to_place), sums)
        c_row = b.select(self.direct, place_row, self.row_bytes)
        c_group = b.select(self.direct, place_group, b.mul(group, self.row_bytes))
        touch = b.select(last, b.gep(h["touch"], to_place), c)
        ahead = b.gep(self.ahead, b.mul(b.binary("urem", turn, h["lines"]), 64))
        ahead = b.select(self.fetch_a, b.gep(a, b.mul(rows, r["a2"])), ahead)
        ahead_k = b.select(self.fetch_a, b.i64(64), h["b_k"])
        b.callptr(fn, [a, bp, depth, r["a2"], self.b_k, ahead, ahead_k, a_group, segments, r["a_segment"], b_segment,
                       c, c_row, c_group, more, touch, b.select(last, place_row, c_row),
                       b.select(last, place_group, c_group)])  # fmt: skip

        def finish() -> None:
            b.callptr(h["finish"], [self.bufs, c, c_row, c_group, m, r["m2"], m_group, rows, self.column, self.live])

        b.if_(b.and_(last, self.finishes), finish)
        return [b.gep(sums, b.mul(rows, h["slot"])), b.add(turn, 1)]


FINISH_PARAMS: Final = [
    ("bufs", PTR),
    ("sums", PTR),
    ("row_bytes", I64),
    ("group_bytes", I64),
    ("m", I64),
    ("m_row", I64),
    ("m_group", I64),
    ("rows", I64),
    ("column", I64),
    ("live", I64),
]


def finish(width: int, whole: bool, edge: bool, row: Callable[[Builder, Node, Node, Node, Node, Node], None]) -> Func:
    """The function that finishes a tile of sums: a row of the first group is `row_bytes` after the one before, the
    second group `group_bytes` after the first; in the result that is `m_row` and `m_group` rows, from row `m` on.

    `row(b, bufs, row of the result, sums, column, live)` for each: `live` sums of `width` count; once for `whole` rows,
    where these are finished, and once for the rows at an `edge`, where there is one.
    """
    f = Func("conv_finish", FINISH_PARAMS)
    b = Builder(f)
    bufs, sums, row_bytes, group_bytes, m, m_row, m_group, rows, column, live = f.params
    group = b.lshr(b.add(rows, 1), 1)

    def all_rows(count: Node) -> None:
        def half(g: Node) -> None:
            at = b.gep(sums, b.mul(g, group_bytes))
            here = b.select(b.cmp("eq", g, 0), group, b.sub(rows, group))
            start = b.add(m, b.mul(g, m_group))
            b.for_(0, here, 1, lambda i: row(
                b, bufs, b.add(start, b.mul(i, m_row)), b.gep(at, b.mul(i, row_bytes)), column, count))  # fmt: skip

        b.for_(0, 2, 1, half)

    if whole and edge:
        b.if_(b.cmp("eq", live, width), lambda: all_rows(b.i64(width)), lambda: all_rows(live))
    else:
        all_rows(b.i64(width) if whole else live)
    b.ret()
    return f
