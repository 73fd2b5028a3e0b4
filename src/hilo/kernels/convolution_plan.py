"""How a convolution is cut into regions, tiles, blocks and units. It all follows from shapes, types and target.

A region is a block of outputs whose windows have the same taps inside of lhs: convolutions with padding, dilation or
holes are several dense ones. Imports kernels, ops.window_axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations, product
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.kernels.contraction_plan import MAX_UNITS, MOST_UNITS, UNIT_NS, VECTOR_NS, balanced
from hilo.kernels.convolution_axes import Run, runs
from hilo.kernels.pins import choose
from hilo.ops.window_axes import Axis

if TYPE_CHECKING:
    from hilo.backend.target import Target

REGIONS: Final = 64  # more than these are no use
PANEL_BYTES: Final = 160 << 10  # of a block of a panel of B, in the second-level cache
PACKED_BYTES: Final = 192 << 10  # of blocks of panels that are packed first
STRIDED_ROWS: Final = 256  # of B that are read where they lie, from the second-level cache
SKEW: Final = 16  # elements between copied rows of lhs, lest all rows fall into one set of the cache
PACKED_PANELS: Final = 8  # so many of them at most
SUMS_BYTES: Final = 64 << 10  # of a unit's sums of a panel between blocks of k
HALF_TILES: Final = 7  # tiles of rows that make it worth sharing out the rows
PACKED_TILES: Final = 12  # that use what is packed often enough
OVERHEAD: Final = 24.0  # of a tile, in multiply-adds of vectors


@dataclass(frozen=True)
class Problem:
    """A convolution: sizes of lhs [batch, *spatial, features], of the kernel's taps, outputs (features), groups."""

    batch: int
    spatial: tuple[int, ...]
    places: tuple[int, ...]  # of the result
    axes: tuple[Axis, ...]
    inputs: int  # input features of a group
    outputs: int
    groups: int = 1
    turned: tuple[bool, ...] = ()  # whether the kernel is read backwards along an axis
    pitch: int = 0  # of lhs, from one position to the next, if it is more than its features

    @property
    def rows(self) -> int:
        return self.batch * prod(self.places)

    @property
    def depth(self) -> int:
        """Products of one output, padding included."""
        return prod(a.size for a in self.axes) * self.inputs

    def rows_bytes(self, size: int) -> int:
        """Of lhs, for one row of the result."""
        return max(1, self.batch * prod(self.spatial) * self.inputs * self.groups * size // max(1, self.rows))


@dataclass(frozen=True)
class Dim:
    """Outputs along one axis: how many, the steps between them in A (elements) and in rows of the result; `axis` is
    the result's (0: batch), where the first is, and the step along it."""

    size: int
    a: int
    m: int
    axis: int
    first: int = 0
    step: int = 1


@dataclass(frozen=True)
class Region:
    """A block of outputs. `taps`: (lo, hi, step, step in A) of the outer taps and of the segments; `run`: from, to of
    the elements of a segment; `a` and `m`: of the first output, A at element 0 of the first taps' segment."""

    dims: tuple[Dim, ...]
    taps: tuple[tuple[int, int, int, int], tuple[int, int, int, int]]
    run: tuple[int, int]
    a: int
    m: int
    bare: bool = False
    rows: int = 1  # of a tile, along the last dim
    pair: int = 1  # 2: a tile is two such groups, along the last dim but one


@dataclass(frozen=True)
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
        by = "rows" if self.units_m > 1 else "columns"
        units = self.units_m * self.units_n
        shared = f"; {units} units by {by}" if units > 1 else "; one unit: little work"
        return f"{what}, tiles {rows}x{self.width}", f"{b}{k}{shared}"

    @property
    def blocks(self) -> int:
        """Of k."""
        return self.outer * -(-self.segments // self.segments_step) * -(-self.inner // self.inner_step)


def most_rows(vectors: int, registers: int) -> int:
    """Rows of the largest tile of so many vectors."""
    rows = {1: 14, 2: 14, 3: 8, 4: 6} if registers >= 32 else {1: 12, 2: 6, 3: 4}
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
    vectors = choose_vectors(p, lanes, target.registers)
    if vectors == 0:
        return None
    most, width = choose("contraction.tile", (most_rows(vectors, target.registers), vectors * lanes),
                         [(most_rows(v, target.registers), v * lanes) for v in panel_vectors(p, lanes, target.registers)])
    vectors = width // lanes
    nanoseconds = p.rows * -(-p.outputs // lanes) * p.depth * VECTOR_NS
    want = max(1, min(MAX_UNITS // 2, int(nanoseconds / UNIT_NS)))
    want = choose("contraction.units", want, (1, 2, 4, 8, 16), least=1, most=MOST_UNITS)
    panels = -(-p.outputs // (vectors * lanes))
    room = max(most, min(target.l2 // 2 // p.rows_bytes(size), SUMS_BYTES // (vectors * lanes * size)))
    axis, total, step = unit_axis(p, regions, most, room)
    fewest = (HALF_TILES if bound else PACKED_TILES) * most  # rows of a unit
    by_rows = (want > 1 or p.rows > room) and (p.rows >= 2 * fewest or panels < 2) and total >= 2 * step
    units_m = units_n = 1
    if by_rows:
        units_m = even(max(min(want, p.rows // fewest), -(-p.rows // room), 2), -(-total // step))
    elif want > 1 and panels > 1:
        units_n = even(min(want, panels if bound else max(2, -(-panels // PACKED_PANELS))), panels)
    together = 1 if bound else balanced(-(-panels // units_n), PACKED_PANELS)
    limit = max(1, (PANEL_BYTES if bound else PACKED_BYTES // together) // (vectors * lanes * size))
    row = p.outputs * size
    if not bound and row % 1024 == 0:  # rows of B that fall into the same sets of the second-level cache: half of it
        limit = min(limit, max(32, target.l2 // 2 // row))
    strided = not bound and same and not by_rows and p.outputs % (vectors * lanes) == 0 and target.registers >= 32
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


def panel_vectors(p: Problem, lanes: int, registers: int) -> list[int]:
    """Vectors that a panel may have: groups must consist of whole panels."""
    each = p.outputs // p.groups
    among = (2, 3, 4, 1) if registers >= 32 else (2, 3, 1)
    return [v for v in among if p.groups == 1 or each % (v * lanes) == 0]


def choose_vectors(p: Problem, lanes: int, registers: int) -> int:
    """Vectors of a panel: little waste at the edge, few rows lost; 0 if groups do not consist of whole panels."""
    each = p.outputs // p.groups
    best, least = 0, float("inf")
    for v in panel_vectors(p, lanes, registers):
        cost = -(-each // (v * lanes)) * rows_cost(p.rows, most_rows(v, registers), v)
        cost *= 1.0 if v == 2 else 1.03
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


# ---- regions
def find_regions(p: Problem) -> tuple[list[Region], int, int, int] | None:
    """The regions, and how k is counted: outer taps, segments, elements of a segment. None: too many, or too odd."""
    along = [runs(a, n, count) for a, n, count in zip(p.axes, p.spatial, p.places, strict=True)]
    along = [[r.turned(p.axes[d].size) for r in rs] if any(p.turned[d : d + 1]) else rs for d, rs in enumerate(along)]
    if prod(len(r) for r in along) > REGIONS:
        return None
    features = p.pitch or p.inputs * p.groups
    strides = [features] * len(p.axes)  # of A, in elements
    places = [1] * len(p.axes)  # of the result, in rows
    for d in range(len(p.axes) - 2, -1, -1):
        strides[d] = strides[d + 1] * p.spatial[d + 1]
        places[d] = places[d + 1] * p.places[d + 1]
    image = (strides[0] * p.spatial[0], places[0] * p.places[0]) if p.axes else (features, 1)
    # Taps along the last axis and features are one run where both A and B have them side by side.
    merged = bool(p.axes) and p.groups == 1 and all(r.tap_step == 1 and 0 <= r.reach <= 1 for r in along[-1])
    levels = [d for d in range(len(p.axes) - merged) if p.axes[d].size != 1]
    if len(levels) > 2:
        return None
    inner = p.inputs * (p.axes[-1].size if merged else 1)
    out = []
    for chosen in product(*along):
        dims = [Dim(p.batch, *image, 0)]
        dims += [Dim(r.count, r.move * s, r.step * m, d + 1, r.first, r.step)
                 for d, (r, s, m) in enumerate(zip(chosen, strides, places, strict=True))]  # fmt: skip
        a = sum(r.at * s for r, s in zip(chosen, strides, strict=True))
        m = sum(r.first * s for r, s in zip(chosen, places, strict=True))
        out.append(Region(tuple(dims), *_taps(chosen, levels, strides, merged, p.inputs, a), m,
                          any(r.lo == r.hi for r in chosen)))  # fmt: skip
    whole = len(out) == 1
    out = [s for r in out for s in _by_batches(replace(r, dims=_joined(r.dims, whole)))]
    if len(out) > REGIONS or any(len(r.dims) > 3 for r in out):
        return None
    sizes = [1] * (2 - len(levels)) + [p.axes[d].size for d in levels]
    return out, sizes[0], sizes[1], inner


def _taps(chosen: Sequence[Run], levels: Sequence[int], strides: Sequence[int], merged: bool, inputs: int,
          a: int):  # fmt: skip
    """`taps`, `run` and `a` of a region."""
    one = (0, 1, 1, 0)
    if any(r.lo == r.hi for r in chosen):  # no window has any: one step of no segments
        return (one, one), (0, 1), 0
    taps = [one] * (2 - len(levels))
    taps += [(chosen[d].lo, chosen[d].hi, chosen[d].tap_step, chosen[d].reach * strides[d]) for d in levels]
    run = (chosen[-1].lo * inputs, chosen[-1].hi * inputs) if merged else (0, inputs)
    return (taps[0], taps[1]), run, a - run[0]


def _joined(dims: Sequence[Dim], whole: bool) -> tuple[Dim, ...]:
    """Without dims of one output; one dim if the only region's are walked as one by both A and the result."""
    kept = [d for d in dims if d.size != 1 or not (whole or d.axis == 0)]
    one = kept[-1:]
    for d in reversed(kept[:-1]):
        if whole and d.a == one[0].a * one[0].size and d.m == one[0].m * one[0].size:
            one = [Dim(one[0].size * d.size, one[0].a, one[0].m, -1)]
        else:
            return tuple(kept)
    return tuple(replace(d, axis=-1) if whole else d for d in one) or (Dim(1, 0, 0, -1),)


def _by_batches(r: Region) -> list[Region]:
    """`r` with at most three dims: a region of its own for each batch if there are more."""
    if len(r.dims) <= 3:
        return [r]
    batch, *dims = r.dims
    return [replace(r, dims=tuple(dims), a=r.a + i * batch.a, m=r.m + i * batch.m) for i in range(batch.size)]


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
    return dense and not others and p.panels > 1 and r.rows > 4 and r.dims[-1].a * size % 4096 == 0
