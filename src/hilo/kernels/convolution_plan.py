"""How a convolution is cut into regions, tiles, blocks and units. It all follows from shapes, types and target.

Imports kernels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.kernels.contraction_plan import CROWDED_ROWS, NEAR_NS, PACK_NS, VECTOR_NS, crowds
from hilo.kernels.contraction_units import GOOD, MAX_UNITS, MOST_UNITS, balanced, divide, idle, wanted_units
from hilo.kernels.convolution_regions import Dim, Problem, Region, find_regions
from hilo.kernels.pins import choose
from hilo.record import record, replace

if TYPE_CHECKING:
    from hilo.backend.target import Target

PANEL_BYTES: Final = 160 << 10  # of a block of a panel of B, in the second-level cache
PACKED_BYTES: Final = 192 << 10  # of blocks of panels that are packed first
STRIDED_ROWS: Final = 256  # of B that are read where they lie, from the second-level cache
SKEW: Final = 16  # elements between copied rows of lhs, lest all rows fall into one set of the cache
PACKED_PANELS: Final = 8  # so many of them at most
SUMS_BYTES: Final = 64 << 10  # of a unit's sums of a panel between blocks of k
HALF_TILES: Final = 7  # tiles of rows of a unit that make it worth sharing out the rows
PACKED_TILES: Final = 12  # that use what is packed often enough
OVERHEAD: Final = 24.0  # of a tile, in multiply-adds of vectors


@record(frozen=True)
class Plan:
    """Tiles are up to `most` rows x `vectors`; the rows are cut at multiples of `step` along `axis` (-1: all rows as
    one) of `total` into `units_m` parts, the panels into `units_n`; k in blocks of whole segments or parts of one."""

    problem: Problem
    regions: tuple[Region, ...]
    outer: int
    segments: int
    inner: int
    lanes: int
    vectors: int
    axis: int
    total: int
    step: int
    units_m: int
    units_n: int
    segments_step: int
    inner_step: int
    bound: bool
    packs: bool
    together: int  # panels that take turns at each block of k
    heights: tuple[int, ...] = ()
    pairs: tuple[int, ...] = ()
    slots: int = 1  # tiles of a unit, whose sums are kept between blocks
    cost: float = 0.0

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def products(self) -> int:
        """Of vectors, in most tiles."""
        rows = max((*self.heights, *(2 * h for h in self.pairs)), default=0)
        return rows * self.vectors * self.segments_step * self.inner_step

    @property
    def panels(self) -> int:
        return -(-self.problem.outputs // self.width)

    def words(self) -> tuple[str, str]:
        """What is done, and why, for people."""
        taps = prod(a.size for a in self.problem.axes)
        what = f"convolution of {taps} taps as a product" if taps > 1 else "product"
        rows = max((*self.heights, *(2 * h for h in self.pairs)), default=0)
        if self.bound:
            b = "weights are constant, laid out in panels"
        elif self.packs:
            b = f"weights are packed, {self.together} panels at a time"
        else:
            b = "weights are read where they lie, from the second-level cache"
        k = f"; k in {self.blocks} blocks" if self.blocks > 1 else ""
        by = "both" if 1 not in (self.units_m, self.units_n) else "rows" if self.units_m > 1 else "columns"
        units = self.units_m * self.units_n
        shared = f"; {units} units by {by}" if units > 1 else "; one unit: little work"
        return f"{what}, tiles {rows}x{self.width}", f"{b}{k}{shared}"

    @property
    def blocks(self) -> int:
        """Of k."""
        return self.outer * -(-self.segments // self.segments_step) * -(-self.inner // self.inner_step)


def most_rows(vectors: int, target: Target) -> int:
    """Rows of the largest tile of so many vectors."""
    if target.has_lanes:  # a register a row holds elements of A
        return {1: 12, 2: 8, 3: 7, 4: 6}[vectors]
    rows = {1: 14, 2: 14, 3: 8, 4: 6} if target.registers >= 32 else {1: 12, 2: 6, 3: 4}
    return rows[vectors]


def turn_cost(rows: int, vectors: int) -> float:
    """Of one step along k of a tile, in multiply-adds of vectors: work, loads, latency."""
    return max(rows * vectors, 0.5 * rows + vectors, 4.0)


@lru_cache(maxsize=4096)
def rows_cost(total: int, most: int, vectors: int) -> float:
    """Of one step along k for `total` rows in tiles of at most `most`."""
    whole, rest = divmod(total, most)
    cost = whole * turn_cost(most, vectors)
    return cost + (turn_cost(rest, vectors) if rest else 0.0)


def plan(p: Problem, size: int, lanes: int, target: Target, bound: bool, same: bool) -> Plan | None:
    """The plan for elements of `size` bytes; `bound`: B is a constant in panels, `same`: it has the type of the
    sums. None: this is not the way to do it."""
    found = find_regions(p)
    if found is None:
        return None
    regions, outer, segments, inner = found
    nanoseconds = p.rows * -(-p.outputs // lanes) * p.depth * VECTOR_NS
    want = wanted_units(nanoseconds, MAX_UNITS // 2)
    want = choose("contraction.units", want, (1, 2, 4, 8, 16), least=1, most=MOST_UNITS)
    fewest = HALF_TILES if bound else PACKED_TILES  # tiles of rows of a unit
    vectors = choose_vectors(p, lanes, target, want, fewest)
    if vectors == 0:
        return None
    tiles = {v: (most_rows(v, target), v * lanes) for v in panel_vectors(p, lanes, target)}
    most, width = choose("contraction.tile", tiles[vectors], tiles.values())
    vectors = width // lanes
    panels = -(-p.outputs // (vectors * lanes))
    room = max(most, min(target.l2 // 2 // p.rows_bytes(size), SUMS_BYTES // (vectors * lanes * size)))
    axis, total, step = unit_axis(p, regions, most, room)
    fewest *= most
    units_m = units_n = 1
    if (want > 1 or p.rows > room) and (p.rows >= 2 * fewest or panels < 2) and total >= 2 * step:
        units_m = even(max(min(want, p.rows // fewest), -(-p.rows // room), 2), -(-total // step))
    elif want > 1 and panels > 1:
        units_n = even(min(want, panels if bound else max(2, -(-panels // PACKED_PANELS))), panels)
    lost = idle((total, panels), (step, 1), (units_m, units_n), 1) if want > 1 else 0.0
    if lost > GOOD:
        # One more block of rows reads weights again, and has about one low tile more of each panel.
        rows_again = p.depth * (p.outputs * size * (NEAR_NS / 4 if bound else PACK_NS) + panels * 4 * VECTOR_NS)
        again = rows_again, p.rows * p.rows_bytes(size) * NEAR_NS / 4
        block, least = divide((total, panels), (1, 1), 1, want, -(-p.rows // room), nanoseconds, again)
        if least < lost:
            units_m, units_n, step = -(-total // block[0]), -(-panels // block[1]), 1
    together = 1 if bound else balanced(-(-panels // units_n), PACKED_PANELS)
    limit = max(1, (PANEL_BYTES if bound else PACKED_BYTES // together) // (vectors * lanes * size))
    row = p.outputs * size
    if not bound and row % 1024 == 0:  # rows of B that fall into the same sets of the second-level cache: half of it
        limit = min(limit, max(32, target.l2 // 2 // row))
    strided = not bound and same and units_m == 1 and p.outputs % (vectors * lanes) == 0 and target.registers >= 32
    if strided:
        limit = min(limit, STRIDED_ROWS)
    limit = choose("contraction.kc", limit, (128, 192, 256, 384, 512), least=1, most=max(limit, p.depth))
    if segments * inner <= limit:
        segments_step, inner_step = segments, inner
    elif inner <= limit and all(r.taps[1][2] == 1 for r in regions):
        segments_step, inner_step = balanced(segments, limit // inner), inner
    else:
        segments_step, inner_step = 1, balanced(inner, limit)
        if any(r.taps[1][2] != 1 for r in regions):
            return None
    span = -(-total // units_m)
    shaped = tuple(shape_region(r, axis, span, vectors, most) for r in regions)
    out = Plan(p, shaped, outer, segments, inner, lanes, vectors, axis, total, step, units_m, units_n, segments_step,
               inner_step, bound, not (bound or strided), together, cost=nanoseconds)  # fmt: skip
    return with_heights(out)


def even(count: int, most: int) -> int:
    """About `count` parts, an even number if there can be two: two threads share it equally."""
    count = min(count, most)
    return count if count < 2 else min(count + count % 2, most - most % 2)


def panel_vectors(p: Problem, lanes: int, target: Target) -> list[int]:
    """Vectors that a panel may have: groups must consist of whole panels."""
    each = p.outputs // p.groups
    among = (4, 3, 2, 1) if target.has_lanes else (2, 3, 4, 1) if target.registers >= 32 else (2, 3, 1)
    return [v for v in among if p.groups == 1 or each % (v * lanes) == 0]


def choose_vectors(p: Problem, lanes: int, target: Target, units: int, fewest: int) -> int:
    """Vectors of a panel: little waste at the edge, few rows lost, panels that threads share evenly where there are not
    `fewest` tiles of rows for two; 0 if groups do not consist of whole panels."""
    each = p.outputs // p.groups
    best, least = 0, float("inf")
    for v in panel_vectors(p, lanes, target):
        most, panels = most_rows(v, target), -(-each // (v * lanes))
        cost = panels * rows_cost(p.rows, most, v)
        cost *= 1.0 if v == 2 or target.has_lanes else 1.03
        if units > 1 and p.rows < 2 * fewest * most:
            cost *= 1.0 + idle((1, panels * p.groups), (1, 1), (1, min(units, panels * p.groups)), 1) / 2
        if cost < least:
            best, least = v, cost
    return best


def unit_axis(p: Problem, regions: Sequence[Region], most: int, room: int) -> tuple[int, int, int]:
    """The axis that units of at most `room` rows cut, its size, and at multiples of what."""
    if len(regions) == 1 and len(regions[0].dims) == 1 and regions[0].dims[0].size == p.rows:
        return -1, p.rows, most
    batches = any(d.axis == 0 for d in regions[0].dims)
    if batches and (p.batch >= 8 or (p.batch % 2 == 0 and p.batch > 1)) and p.rows <= p.batch * room:
        return 0, p.batch, 1
    sizes = [(n, d + 1) for d, n in enumerate(p.places)]
    rows = next(((n, d) for n, d in sizes if n > 1), sizes[0])
    return rows[1], rows[0], most if rows[1] == len(p.places) else 1


# ---- tiles
def shape_region(r: Region, axis: int, span: int, vectors: int, most: int) -> Region:
    """`r` with its dims in the order of the loops and the rows of its tiles; units have `span` rows along `axis`."""
    sizes = tuple(min(d.size, max(1, span // d.step)) if d.axis == axis else d.size for d in r.dims)
    order, rows, pair = best_tiles(sizes, vectors, most)
    dims = tuple(r.dims[i] for i in order)
    return replace(r, dims=dims, rows=rows, pair=pair)


@lru_cache(maxsize=4096)
def best_tiles(sizes: tuple[int, ...], vectors: int, most: int) -> tuple[tuple[int, ...], int, int]:
    """Which dim tiles run along (the last), how many rows, and whether they take two of the dim before."""
    best: tuple[tuple[int, ...], int, int] = tuple(range(len(sizes))), 1, 1
    least = float("inf")
    for order in permutations(range(len(sizes))):
        *outer, n = (sizes[i] for i in order)
        rows = balanced(n, most)
        cost = prod(outer) * _line_cost(n, rows, 1, vectors)
        if cost < least:
            best, least = (order, rows, 1), cost
        if outer and outer[-1] > 1 and most >= 2:
            rows = balanced(n, most // 2)
            pairs, odd = divmod(outer[-1], 2)
            cost = pairs * _line_cost(n, rows, 2, vectors) + odd * _line_cost(n, rows, 1, vectors)
            cost *= prod(outer[:-1])
            if cost < 0.97 * least:
                best, least = (order, rows, 2), cost
    return best


def _line_cost(n: int, rows: int, pair: int, vectors: int) -> float:
    whole, rest = divmod(n, rows)
    overhead = OVERHEAD / 256
    cost = whole * (turn_cost(rows * pair, vectors) + overhead)
    return cost + (turn_cost(rest * pair, vectors) + overhead if rest else 0.0)


def with_heights(p: Plan) -> Plan:
    """`p` with the numbers of rows that its tiles take, and how many tiles a unit has at most."""
    singles: set[int] = set()
    pairs: set[int] = set()
    slots = 0
    for u in range(p.units_m):
        lo, hi = cut(p, u)
        rows = 0
        for r in p.regions:
            sizes = [d.size for d in r.dims]
            for i, d in enumerate(r.dims):
                if d.axis == p.axis:
                    sizes[i] = clipped(d, lo, hi)
            if 0 in sizes:
                continue
            taken = set(_parts(sizes[-1], r.rows))
            rows += prod(sizes)
            if r.pair == 2 and sizes[-2] > 1:
                pairs |= taken
            if r.pair == 1 or sizes[-2] % 2:
                singles |= taken
        slots = max(slots, rows)
    return replace(p, heights=tuple(sorted(singles)), pairs=tuple(sorted(pairs)), slots=slots)


def cut(p: Plan, unit: int) -> tuple[int, int]:
    """The rows along the axis of units that a unit has."""
    steps = -(-p.total // p.step)
    lo, hi = (steps * (unit + i) // p.units_m * p.step for i in (0, 1))
    return lo, min(hi, p.total)


def clipped(d: Dim, lo: int, hi: int) -> int:
    """How many outputs of `d` are in lo..hi."""
    start, end = (min(d.size, max(0, -(-(x - d.first) // d.step))) for x in (lo, hi))
    return end - start


def _parts(n: int, rows: int) -> Iterator[int]:
    if n >= rows:
        yield rows
    if n % rows:
        yield n % rows


def crowded(p: Plan, size: int) -> bool:
    """Whether the rows of A, each one run of elements, fall into one set of the cache: they are better copied."""
    (r, *others) = p.regions
    dense = p.outer == p.segments == 1 and p.inner == p.problem.inputs and r.run == (0, p.inner) and not r.bare
    many = max(r.rows, CROWDED_ROWS + 1)  # fewer rows leave little room for those of the next tile, fetched ahead
    return dense and not others and p.panels > 1 and r.rows > 4 and crowds(many, r.dims[-1].a * size)
