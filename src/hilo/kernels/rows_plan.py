"""How a row region is computed: direction of the vectors, units, chunks, what is kept. Imports ops, loop, kernels."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import typical
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.kernels.combine import Combiner
from hilo.kernels.elementwise import BYTES_PER_NS, NS_PER_WORK, lanes_for
from hilo.kernels.pick import combiner
from hilo.kernels.pins import choose
from hilo.kernels.space import Space, collapse
from hilo.loop import index
from hilo.ops.rows import Rows, at_shape, inputs, outline, read_in_place
from hilo.ops.trace import Access
from hilo.ops.weight import weight
from hilo.record import field, record

if TYPE_CHECKING:
    from hilo.backend.target import Target

KEEP_WORK: Final = 8.0  # a value of that much work, needed in several passes, is kept in scratch
NARROW: Final = 4  # rows side by side that vectors along them do at a time
NARROW_WORK: Final = 16  # of an element, from which on full vectors are worth reads far apart
OVERLAP_WORK: Final = 16  # of a pass, in whose shadow another one's quotients are computed
SCRATCH: Final = 256 << 10  # bytes of stack for that
BLOCK_TURNS: Final = 256  # sums are made of partial sums of that many terms
CHUNK: Final = 1 << 16  # elements of a chunk of a long reduction
FEW_UNITS: Final = 32
END_NS: Final = 1.0  # of one step of combining lanes, of which there are four for 16
PANEL: Final = 16 << 10  # bytes of accumulated values of a panel of columns
FEW_ROWS: Final = 32  # up to which no panels are made of them
SHORT_ROW: Final = 1 << 10  # bytes, below which fewer rows are taken together
MOST_CHUNKS: Final = 256  # whose partial results one unit combines
NARROW_ROW: Final = 1 << 9  # bytes of a row that threads do not share by columns
PARTS: Final = 4  # that are worth sharing
PART_NS: Final = 1_500.0  # of work of each of so few
MOST_PARTS: Final = 16
WIDE_WORK: Final = 128.0  # on an element, up to which several vectors side by side do not make the code too long


@record
class Plan:
    """How a region is computed; `inner`: vectors lie along the reduced dims; loop `chunked` is cut into pieces."""

    rows: Rows
    kept: Space
    reduced: Space
    inner: bool
    lanes: int
    unroll: int
    cost: float
    chunked: int = -1
    chunk: int = 0
    wide: int = 0  # places along the reduced dims that are taken together, in panels of many rows; 0: no panels
    panel: int = 0
    side: int = 1  # rows side by side that vectors along them do at a time: all of the last kept loop
    overlap: bool = False  # passes over neighbouring rows are done in one loop
    end: float = 0.0  # nanoseconds (estimated) of combining the lanes of a row's vectors
    combiners: dict[Op, Combiner] = field(default_factory=dict)  # of the reductions
    keep: list[list[Op]] = field(default_factory=list)  # for each pass the values to keep for a later one

    @property
    def block(self) -> int:
        """Rows of the last kept loop that a unit does."""
        return self.panel if self.wide else self.side if self.inner else self.lanes * self.unroll

    @property
    def unit_sizes(self) -> tuple[int, ...]:
        """The parallel loops: kept loops, the last one in blocks."""
        sizes = self.kept.sizes
        return (*sizes[:-1], -(-sizes[-1] // self.block)) if sizes else ()

    @property
    def chunks(self) -> int:
        return -(-self.reduced.sizes[self.chunked] // self.chunk) if self.chunk else 1

    @property
    def units(self) -> int:
        return prod(self.unit_sizes) * self.chunks

    def words(self, body: Function, target: Target) -> str:
        """Why the region is computed as it is, for people."""
        size = sum(typical(x.tensor.nbytes) for x in body.params) // max(1, typical(prod(self.kept.sizes)))
        where = next((c for c, n in (("first", target.l1), ("second", target.l2)) if size <= n), "")
        fits = f"which fits the {where}-level cache" if where else "which no cache of a core holds"
        passes = "1 pass" if self.rows.passes == 1 else f"{self.rows.passes} passes"
        along = "across rows" if not self.inner else "along a row" if self.side == 1 else f"along {self.side} rows"
        units = f"{self.units} units" if self.units != 1 else "one unit"
        cut = f"; few long rows: {self.chunks} chunks each, combined in order" if self.chunk else ""
        how = f"panels of {self.panel}, {self.wide} places at a time" if self.wide else f"{self.unroll} side by side"
        passes += ", which overlap those over neighbouring rows," if self.overlap else ""
        return f"{passes} over a row of {size} bytes, {fits}; vectors {along}, {how}; {units}{cut}"

    @property
    def unit_cost(self) -> float:
        elements = typical(prod(self.rows.shape)) * self.cost / self.lanes
        return (elements + typical(prod(self.kept.sizes)) * self.end) / max(typical(self.units), 1)


def plan(body: Function, rows: Rows, target: Target) -> Plan:
    """Choose the direction of the vectors, units, and chunks."""
    shape = rows.shape
    found = rows.found
    own = index.linear(found.variables, shape)
    stored = [r for pass_ in rows.full for _, r in pass_]
    found.accesses.extend(Access(r, at_shape(found.variables, shape, r.shape), own) for r in stored[:1])
    kept, reduced = collapse(shape, found, rows.kept), collapse(shape, found, rows.reduced)
    lanes = lanes_for(body.ops, target)
    last = max((d for d, n in enumerate(shape) if n != 1), default=-1)
    inner = last not in rows.kept
    if inner and kept.sizes and typical(prod(reduced.sizes)) < lanes <= typical(kept.sizes[-1]):
        inner = False
    ops = [o for o in body.ops if weight(o)]
    work = sum(weight(o) for o in ops)
    side = 1
    if not inner and kept.sizes and reduced.sizes and isinstance(kept.sizes[-1], int):
        # rows side by side fill so few lanes that collecting a row's elements from places apart costs less
        near = kept.groups[-1][0] - 1 == reduced.groups[-1][-1] and not any(rows.full)
        count = 1 if work >= NARROW_WORK else 2 if near else 0  # vectors of a row, from which on it is worth while
        if kept.sizes[-1] <= min(NARROW, lanes // 2) and count and typical(reduced.sizes[-1]) >= count * lanes:
            inner, side = True, kept.sizes[-1]
    combiners = {r: combiner(r) for pass_ in rows.reduces for r in pass_}
    keep = kept_values(rows, body)
    held = [d for c in combiners.values() for d in c.dtypes]
    parts = max(len(held), 1)
    free = all(c.free for c in combiners.values())
    unroll = max(1, min(16 if work <= 6 else 4 if work <= 32 else 1, target.registers // 2 // parts))
    unroll = 1 << (unroll.bit_length() - 1)
    overlap = inner and side == 1 and free and _overlaps(body, rows, lanes, keep)
    if inner:
        unroll = 1 if overlap else min(unroll, 4 // side or 1)
    elif kept.sizes and typical(kept.sizes[-1]) >= 8 * lanes:  # rows far apart: take more than a line of each
        unroll = max(unroll, 4 if work <= WIDE_WORK else 2)
    along = (reduced if inner else kept).sizes[-1:] or (1,)
    while unroll > 1 and typical(along[0]) < lanes * unroll:
        unroll //= 2
    moved = sum(typical(x.tensor.nbytes) for x in (*body.params, *body.results)) / max(typical(prod(shape)), 1)
    cost = max(work * NS_PER_WORK, moved * lanes / BYTES_PER_NS)
    unroll = choose("rows.unroll", unroll, [u for u in (1, 2, 4, 8) if typical(along[0]) >= lanes * u or u == 1])
    end = END_NS * (lanes.bit_length() - 1) * len(held) if inner else 0.0
    p = Plan(rows, kept, reduced, inner, lanes, unroll, cost, side=side, overlap=overlap, end=end, combiners=combiners,
             keep=keep)  # fmt: skip
    _widen(p, body, work, free, target)
    few = typical(p.units) < FEW_UNITS and typical(prod(shape)) > 4 * CHUNK
    parts = _parts(p) if rows.passes == 1 and free else 0
    if parts or (rows.passes == 1 and (p.wide or not any(rows.full)) and free and few):
        p.chunked = max(range(len(reduced.sizes)), key=lambda k: typical(reduced.sizes[k]))
        n = typical(reduced.sizes[p.chunked])
        others = typical(prod(shape)) // n // typical(p.units)
        step = lanes * unroll if inner and p.chunked == len(reduced.sizes) - 1 else 1
        length = max(1, CHUNK // others)
        if p.wide:
            step = p.wide if p.chunked == len(reduced.sizes) - 1 else 1
            length = max(length, 16 * step, -(-n // MOST_CHUNKS))
        if parts:
            length = min(length, -(-n // parts))
        p.chunk = -(-length // step) * step
        if p.chunk >= n:
            p.chunk = 0
        among = [c * step for c in (0, 1 << 12, 1 << 14) if c * step < n]
        p.chunk = choose("rows.chunk", p.chunk, among, most=n - 1, step=step)
    return p


def _parts(p: Plan) -> int:
    """How many parts of the reduced dims threads share where vectors lie across rows so short that a share of columns
    would have parts of the same lines as another; 0 if there is too little work, or no need."""
    sizes = (*p.kept.sizes, *p.reduced.sizes)
    if p.inner or p.wide or not p.reduced.sizes or len(p.kept.sizes) != 1 or not all(isinstance(n, int) for n in sizes):
        return 0
    size = max(r.operands[0].dtype.itemsize for r in p.rows.reduces[0])
    if p.kept.sizes[0] * size > NARROW_ROW or p.units * p.unit_cost < PARTS * PART_NS:
        return 0
    return min(MOST_PARTS, max(PARTS, -(-max(p.reduced.sizes) // BLOCK_TURNS)))


def _widen(p: Plan, body: Function, work: float, free: bool, target: Target) -> None:
    """Make panels of columns where rows are too long to be read as a whole otherwise, and no cache holds them."""
    sizes = (*p.kept.sizes, *p.reduced.sizes)
    if p.inner or p.rows.passes != 1 or not free or not all(isinstance(n, int) and n for n in sizes):
        return
    if not p.kept.sizes or not p.reduced.sizes:
        return
    columns, count = p.kept.sizes[-1], prod(p.reduced.sizes)
    read = sum(x.tensor.nbytes for x in body.params)
    whole = columns <= p.block and columns % p.lanes == 0
    arrays = sum(x.tensor.size == prod(sizes) for x in (*body.params, *body.results))
    short = columns * p.rows.reduces[0][0].operands[0].dtype.itemsize < SHORT_ROW
    together = (8 if arrays == 1 and not short else 4) if work <= 6 else 4 if work <= 32 else 2
    while together > p.reduced.sizes[-1]:
        together //= 2
    fits = columns < p.lanes or count <= FEW_ROWS or whole or read <= target.l2
    own = 0 if fits or together < 2 else together
    p.wide = choose("rows.together", own, [u for u in (0, 2, 4, 8) if u <= p.reduced.sizes[-1]])
    if p.wide:
        held = sum(d.itemsize for c in p.combiners.values() for d in c.dtypes)
        p.panel = max(1, PANEL // (held * p.lanes * 4)) * p.lanes * 4
        p.panel = min(p.panel, -(-columns // (p.lanes * 4)) * p.lanes * 4)


def kept_values(rows: Rows, body: Function) -> list[list[Op]]:
    """For each pass the values to keep for a later one: much work, needed again, and not made from another kept one."""
    made: dict[Op, int] = {}
    keep: dict[Op, None] = {}
    stops = {*body.params, *rows.outputs}
    work: dict[Op, float] = {}
    for o in body.ops:
        work[o] = 0.0 if o in stops else weight(o) + sum(work[x] for x in o.operands)
    for k in range(rows.passes):
        roots = [*(x for r in rows.reduces[k] for x in inputs(r)), *(r for _, r in rows.full[k])]
        seen: set[Op] = set()
        stack = roots[::-1]
        while stack:
            o = stack.pop()
            if o in seen or o in stops:
                continue
            seen.add(o)
            if made.get(o, k) < k and outline(o.shape) == outline(rows.shape) and work[o] >= KEEP_WORK:
                keep[o] = None
                continue
            stack.extend(reversed(o.operands))
        for o in seen:
            made.setdefault(o, k)
    return [[o for o in keep if made[o] == k] for k in range(rows.passes)]


def _overlaps(body: Function, rows: Rows, lanes: int, keep: list[list[Op]]) -> bool:
    """Whether the last pass over a row goes well beside the one before it of the next row: it divides what that one
    keeps, and reads nothing that a result may replace; the other one has much else to do."""
    n, units = prod(rows.shape[d] for d in rows.reduced), prod(rows.shape[d] for d in rows.kept)
    if not isinstance(n, int) or units == 1 or rows.passes < 2 or rows.reduces[-1] or rows.row or any(rows.full[:-1]):
        return False
    *early, newest, _ = keep
    kept = [*(early[-1] if early else ()), *newest]
    if any(early[:-1]) or sum((n + lanes) * o.dtype.itemsize for o in kept) > SCRATCH:
        return False
    done: dict[Op, None] = {}  # what the last pass reads and computes
    stack = [r for _, r in rows.full[-1]]
    while stack:
        o = stack.pop()
        if o not in done and o not in newest and o not in rows.outputs:
            done[o] = None
            stack.extend(o.operands)
    if not done.keys().isdisjoint(kept):  # places are taken by the next row after one turn
        return False
    divides = any(o.name == "divide" and outline(o.shape) == outline(rows.shape) and o.dtype.is_float for o in done)
    work = sum(weight(o) for o in body.ops if o not in done)
    return divides and work >= OVERLAP_WORK and read_in_place(body, rows).isdisjoint(done)


def in_place_pairs(body: Function, rows: Rows, operands: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Pairs (operand, result) that may share memory: read only where the result, of the last pass, is written."""
    own = read_in_place(body, rows)
    return tuple(
        (operands[i], k)
        for i, o in enumerate(body.params)
        for k, r in rows.full[-1]
        if o in own and o.dtype.itemsize == r.dtype.itemsize
    )
