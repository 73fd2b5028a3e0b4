"""Transposition in tiles: contiguous loads along the operand's innermost axis, a transposition in registers, contiguous
stores along the result's. Imports ops, loop, kernels.

Axes of size 1 are dropped, axes that stay neighbours are one. Where the innermost axis stays, a plain loop copies runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.kernels import elementwise
from hilo.kernels.loops import Vector
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.loop import arith, index
from hilo.loop.arith.memory import memory_type
from hilo.loop.builder import Builder, Node
from hilo.loop.index import Index, lane_numbers
from hilo.loop.nodes import VType
from hilo.ops.fusion import Elements, Source, turns, wrap
from hilo.record import record

if TYPE_CHECKING:
    from hilo.backend.target import Target

ROWS: Final = 16  # vectors held while a tile is turned
# Of each side of the block that a unit does. Where memory is the limit, long runs of the operand's rows keep its pages
# open; where there would be few units, blocks are smaller.
BLOCK_BYTES: Final = (2048, 1024, 512)
FEW_UNITS: Final = 16
AHEAD: Final = 512  # bytes along a row of the operand that are fetched into the second-level cache; many rows are read
LATER: Final = 2  # tiles, after which lines of the result are written to, which are fetched where stores need them
_BITS: Final = {1: "i8", 2: "i16", 4: "f32", 8: "f64"}  # whatever the type: bits are moved


def merge_axes(shape: Sequence[int], permutation: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The operand's shape and the permutation without axes of size 1, neighbours that stay neighbours merged."""
    axes = [p for p in permutation if shape[p] != 1]
    runs: list[list[int]] = []
    for p in axes:
        kept = runs and not any(shape[d] != 1 for d in range(runs[-1][-1] + 1, p)) and p > runs[-1][-1]
        if kept:
            runs[-1].append(p)
        else:
            runs.append([p])
    order = sorted(range(len(runs)), key=lambda r: runs[r][0])
    sizes = tuple(prod(shape[d] for d in runs[r]) for r in order)
    return sizes, tuple(order.index(r) for r in range(len(runs)))


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `transpose`."""
    t = op.operands[0].tensor
    shape, permutation = merge_axes(t.shape, op.attrs["permutation"])
    width = max(1, target.vector_bytes // t.dtype.itemsize)
    if t.size == 0:
        return Lowered([])
    plain = not permutation or permutation[-1] == len(shape) - 1 or t.dtype.itemsize not in _BITS
    if plain or shape[permutation[-1]] < max(width // 2, 4) or shape[-1] < 4:
        return elementwise.lower(wrap(op), [0], 1, target)
    return _Tiles(shape, permutation, t.dtype.itemsize, target).lower()


def lower_fused(body: Function, count: int, target: Target) -> Lowered | None:
    """The kernel of a "loop" fusion around one large transposition of an operand; None if tiles do not suit it.

    `count`: the number of operands, which are the body's parameters.
    """
    turned = [o for o in body.ops if turns(o)]
    if len(turned) != 1 or turned[0].operands[0] not in body.params or turned[0].dtype.is_complex:
        return None
    (o,) = turned
    t = o.operands[0].tensor
    shape, permutation = merge_axes(t.shape, o.attrs["permutation"])
    width = max(1, target.vector_bytes // t.dtype.itemsize)
    if any(r.shape != o.shape for r in body.results) or shape[permutation[-1]] < width or shape[-1] < 4:
        return None
    return _Tiles(shape, permutation, t.dtype.itemsize, target, _Epilogue(body, o, count, target)).lower()


class _Epilogue:
    """What a fusion does with a turned vector before it is stored."""

    def __init__(self, body: Function, turned: Op, count: int, target: Target) -> None:
        self.body, self.turned, self.count, self.target = body, turned, count, target
        self.source = body.params.index(turned.operands[0])
        self.streaming = any(elementwise.streams(r.tensor, target) for r in body.results)

    def open(self, b: Builder, bufs: Node) -> None:
        """Get the pointers."""
        self.operands = {
            p: Buffer(pointer(b, bufs, i), p.tensor, constant=True) for i, p in enumerate(self.body.params)
        }
        self.results = []
        for i, r in enumerate(self.body.results):
            past = elementwise.streams(r.tensor, self.target)
            self.results.append(Buffer(pointer(b, bufs, self.count + i), r.tensor, RESULT_ALIGN, streaming=past))

    def store(self, b: Builder, value: Node, position: Index, mask: Node | None, count: int) -> None:
        """Store what becomes of `value`: the transposition's elements from `position` on, of which `count` matter."""
        t = self.turned.tensor
        lanes = value.type.lanes
        scalar = memory_type(t.dtype).scalar
        if scalar != "i1":
            value = b.bitcast(value, scalar)
        element = arith.from_memory(b, t.dtype, (value,))
        place = position + lane_numbers(lanes, count)
        here = tuple(index.delinear(place, t.shape))
        vector = Vector(place, lanes, mask)
        sources: dict[Op, Source] = {p: elementwise.reading(b, x, vector) for p, x in self.operands.items()}
        sources[self.turned] = lambda at: element
        elements = Elements(b, sources)
        made = [elements(r, here) for r in self.body.results]
        for x, e in zip(self.results, made, strict=True):
            x.store(b, place, e, lanes, mask)


@record
class _Axis:
    """An axis with its strides, in elements."""

    size: int
    source: int
    result: int


class _Tiles:
    """`c` is the operand's innermost axis (contiguous loads), `a` the result's (contiguous stores)."""

    def __init__(
        self,
        shape: Sequence[int],
        permutation: Sequence[int],
        itemsize: int,
        target: Target,
        epilogue: _Epilogue | None = None,
    ) -> None:
        self.epilogue = epilogue
        out = [shape[p] for p in permutation]
        source = [prod(shape[d + 1 :]) for d in range(len(shape))]
        axes = [_Axis(shape[p], source[p], prod(out[d + 1 :])) for d, p in enumerate(permutation)]
        self.a = axes[-1]
        self.c = next(x for x in axes if x.source == 1)
        self.outer = [x for x in axes if x is not self.a and x is not self.c]
        self.itemsize = itemsize
        self.bits = _BITS[itemsize]
        self.lanes = max(1, target.vector_bytes // itemsize)
        self.rows = min(ROWS, self.lanes, 1 << (self.c.size - 1).bit_length())
        for size in BLOCK_BYTES:
            self.block = max(size // itemsize, self.lanes)
            if prod(self.unit_sizes()) >= FEW_UNITS:
                break
        self.streaming = prod(shape) * itemsize >= target.l3 // 2
        self.far = prod(shape) * itemsize > target.l2
        self.func = elementwise.new_func("transpose")
        self.b = Builder(self.func)

    def lower(self) -> Lowered:
        b = self.b
        bufs, begin, end = self.func.params
        if self.epilogue is None:
            self.source, self.result = pointer(b, bufs, 0), pointer(b, bufs, 1)
        else:
            self.epilogue.open(b, bufs)
            self.source = self.result = pointer(b, bufs, self.epilogue.source)
            self.streaming = self.epilogue.streaming
        sizes = self.unit_sizes()
        units = prod(sizes)

        def unit(u: Node) -> None:
            *outer, cb, ab = index.delinear(index.loop_var(u, 0, units), sizes)
            self._block(outer, cb, ab)

        b.for_(begin, end, 1, unit)
        if self.streaming:
            b.fence()
        b.ret()
        total = prod(sizes[:-2]) * self.a.size * self.c.size * self.itemsize
        why = "rows become columns in registers, so that reads and writes are both of whole lines"
        if self.streaming:
            why += "; the result is larger than half of the last cache: stores go past it"
        return Lowered([Phase(self.func, units, total / units / 10.0)], strategy="transpose by tiles", reason=why)

    def unit_sizes(self) -> list[int]:
        """The parallel loops: the outer axes, blocks of c, blocks of a."""
        return [*(x.size for x in self.outer), -(-self.c.size // self.block), -(-self.a.size // self.block)]

    def _block(self, outer: list[Index], cb: Index, ab: Index) -> None:
        """All tiles of one block: along c inside, so that loads follow one another."""
        b = self.b

        def bounds(block: Index, size: int, step: int) -> tuple[Node, Node, Node]:
            """Start, end of whole tiles, end."""
            lo = b.mul(index.node(b, block), self.block)
            hi = b.smin(b.add(lo, self.block), size)
            return lo, b.smin(b.add(lo, self.block), size // step * step), hi

        a_lo, a_whole, a_end = bounds(ab, self.a.size, self.lanes)
        c_lo, c_whole, c_end = bounds(cb, self.c.size, self.rows)

        def row_of_tiles(a: Index, wide: int) -> None:
            def tiles(lo: Node, hi: Node, first: int, end: int, high: int) -> None:
                def tile(iv: Node) -> None:
                    self._tile(outer, a, index.loop_var(iv, first, end, self.rows), wide, high)

                b.for_(lo, hi, self.rows, tile)

            whole = self.c.size // self.rows * self.rows
            if whole:
                tiles(c_lo, c_whole, 0, whole, self.rows)
            if rest := self.c.size - whole:
                tiles(c_whole, c_end, whole, self.c.size, rest)

        def rows_of_tiles(lo: Node, hi: Node, first: int, end: int, wide: int) -> None:
            b.for_(lo, hi, self.lanes, lambda iv: row_of_tiles(index.loop_var(iv, first, end, self.lanes), wide))

        whole = self.a.size // self.lanes * self.lanes
        if whole:
            rows_of_tiles(a_lo, a_whole, 0, whole, self.lanes)
        if rest := self.a.size - whole:
            rows_of_tiles(a_whole, a_end, whole, self.a.size, rest)

    def _tile(self, outer: list[Index], a: Index, c: Index, wide: int, high: int) -> None:
        """Turn `wide` runs of `high` elements into `high` runs of `wide` elements."""
        b = self.b
        at = index.ZERO
        to = index.ZERO
        for x, i in zip(self.outer, outer, strict=True):
            at, to = at + i * x.source, to + i * x.result
        at, to = at + a * self.a.source + c, to + c * self.c.result + a
        read, t = VType(self.bits, self.rows), VType(self.bits, self.lanes)
        mask = self._first(high, self.rows)
        base = b.gep(self.source, index.node(b, at * self.itemsize))
        step = self.a.source * self.itemsize
        loaded = [
            b.load(b.gep(base, k * step), read, mask=mask, align=self.itemsize, invariant=True) for k in range(wide)
        ]
        if self.far and wide == self.lanes and high == self.rows:
            for k in range(wide):
                b.prefetch(b.gep(base, k * step + AHEAD), locality=2)
        nothing = b.const(0, read)
        loaded += [nothing] * (self.lanes - wide)
        blocks = [turn(b, loaded[k : k + self.rows]) for k in range(0, self.lanes, self.rows)]
        mask = self._first(wide, self.lanes)
        base = b.gep(self.result, index.node(b, to * self.itemsize))
        step = self.c.result * self.itemsize
        m = (to * self.itemsize).multiple | RESULT_ALIGN | step
        align = max(m & -m, self.itemsize)
        past = self.streaming and mask is None and align >= min(t.lanes * self.itemsize, RESULT_ALIGN)
        if self.far and not past and self.epilogue is None and high == self.rows:
            ahead = LATER * self.rows * step + t.lanes * self.itemsize - 1  # the line that the last element is in
            for k in range(high):
                b.prefetch(b.gep(base, k * step + ahead), write=True)
        for k in range(high):
            value = joined(b, [block[k] for block in blocks])
            if self.epilogue is not None:
                self.epilogue.store(b, value, to + k * self.c.result, mask, wide)
                continue
            b.store(b.gep(base, k * step), value, mask=mask, align=align, nontemporal=past)

    def _first(self, count: int, lanes: int) -> Node | None:
        """A mask of the first `count` lanes; None if that is all of them."""
        if count == lanes:
            return None
        return self.b.const(tuple(int(k < count) for k in range(lanes)), VType("i1", lanes))


def turn(b: Builder, rows: list[Node], width: int = 1) -> list[Node]:
    """The transpose of n vectors of n elements (n a power of two) of `width` lanes (16 bytes at most), in steps that
    are one instruction each.

    First blocks of as many elements as 16 bytes hold are transposed in place, then the blocks trade places.
    """
    n = len(rows)
    group = min(n, 16 // (rows[0].type.size * width))
    elements = [start + k // 2 + k % 2 * n for start in range(0, n, group) for k in range(group)]
    low = [k * width + lane for k in elements for lane in range(width)]
    high = [k + group // 2 * width for k in low]
    out: list[Node] = []
    for block in range(0, n, group):
        part = rows[block : block + group]
        for _ in range(group.bit_length() - 1):
            pairs = zip(part[: group // 2], part[group // 2 :], strict=True)
            part = [b.shuffle(x, y, mask) for x, y in pairs for mask in (low, high)]
        out += part
    blocks = [_trade(b, [out[block + i] for block in range(0, n, group)], group * width) for i in range(group)]
    return [blocks[k % group][k // group] for k in range(n)]


def _trade(b: Builder, rows: list[Node], group: int) -> list[Node]:
    """The transpose of vectors as rows of groups of lanes (1, 2 or 4 of them)."""
    n, count = rows[0].type.lanes, len(rows)

    def pick(x: Node, y: Node, of_x: Sequence[int], of_y: Sequence[int]) -> Node:
        groups = [*(g * group for g in of_x), *(n + g * group for g in of_y)]
        return b.shuffle(x, y, [start + k for start in groups for k in range(group)])

    if count == 2:
        return [pick(rows[0], rows[1], [g], [g]) for g in (0, 1)]
    if count == 4:
        halves = [[pick(x, y, g, g) for g in ((0, 1), (2, 3))] for x, y in (rows[:2], rows[2:])]
        return [pick(halves[0][g // 2], halves[1][g // 2], (g % 2, g % 2 + 2), (g % 2, g % 2 + 2)) for g in range(4)]
    assert count == 1
    return rows


def joined(b: Builder, parts: list[Node]) -> Node:
    """Vectors of one type, one behind the other."""
    while len(parts) > 1:
        n = parts[0].type.lanes
        parts = [b.shuffle(x, y, range(2 * n)) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]
