"""How a contraction is computed: types, tiles, blocks, parallel units. It all follows from shapes, types and target.

Imports ir, kernels.contraction_units.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from hilo.ir import dtypes
from hilo.ir.dims import typical
from hilo.ir.dtypes import DType
from hilo.kernels.contraction_units import GOOD, MAX_UNITS, MOST_UNITS, balanced, divide, wanted_units
from hilo.kernels.pins import choose
from hilo.loop.element import held_type
from hilo.record import record, replace

if TYPE_CHECKING:
    from hilo.backend.target import Target

PANEL_BYTES: Final = 64 << 10  # of a packed panel of B, on the stack
BOUND_BYTES: Final = 160 << 10  # of a panel of a constant B, read again and again from the second-level cache
SKINNY_K: Final = 32  # rows of B that are streamed at a time, at most
MOST_TILES: Final = 40  # in a column of tiles of a unit: rows of A that stay in the second-level cache
STREAM_BYTES: Final = 8 << 10  # of a row of B, read at one go
INNER_ROWS: Final = 8  # up to here vectors along k pay where k is contiguous
STREAMED_ROWS: Final = 64  # beyond them packing B pays
VECTOR_NS: Final = 0.3  # one multiply-add of vectors
NEAR_NS: Final = 0.0125  # a byte that is read from a cache
PACK_NS: Final = 0.025  # a byte that is copied before use
FAR_NS: Final = 0.05  # a byte of operands that do not fit into one
TURNED_PANELS: Final = 3  # that read a block of A, from which it is worth being packed
CROWDED_BYTES: Final = 4096  # multiples of which, as strides, use few sets of a cache
TURNED_UNITS: Final = 8  # at most, as each copies its blocks of A and B
TURNED_K: Final = 256  # of a packed block of A
TURNED_BYTES: Final = 320 << 10  # of it at most, on the stack
SIMILAR: Final = 1.03  # times as much work as with the best tile, which even units may be worth
CROWDED_ROWS: Final = 8  # lines that one set of a first-level cache holds
LINE: Final = 64  # bytes of them
MISSED: Final = 2.5  # multiply-adds of vectors, in the time that an element of A takes to come from the next cache
SHORT_K: Final = 128  # up to which storing C takes a part of the time
OUTER_PRODUCTS: Final = 1200  # of vectors in a micro-kernel, beside which the code that calls it does not matter
FAR_ROWS: Final = 24  # of products, in the time that a vector of B takes to come from memory
LONG_K: Final = 4096  # k that is worth sharing out where M and N are small
LEAST_K: Final = 800  # of a part, of which there is an even number
SPLIT_K: Final = 1 << 15  # how much of k one unit takes where only k is long
PAIRED_ROWS: Final = 8  # from which packing B by pairs of bf16 pays
PAIRED_K: Final = 8


@record(frozen=True)
class Recipe:
    """What is added up: `combine` (see microkernel.COMBINE) on accumulators that are `acc` elements, held as `scalar`.

    `parts`: elements of k in one 32-bit lane (4 or 2 for packed integers, 2 for bf16). Complex numbers are matrices of
    their parts.
    """

    combine: str
    scalar: str
    acc: DType
    parts: int = 1

    @property
    def size(self) -> int:
        return held_type(self.acc).size

    @property
    def pairs(self) -> bool:
        """Whether lanes are pairs of bf16, one after the other along k, as they lie in memory."""
        return self.combine == "dot_bf16"


def recipe(lhs: DType, rhs: DType, out: DType, target: Target) -> Recipe:
    """The type to accumulate in. Narrow floats accumulate in f32; integers modulo 2^32, or 2^64 if `out` needs it."""
    types = (lhs, rhs, out)
    multiply_add = "fma" if target.has_fma else "fmuladd"
    if any(t.is_complex for t in types):
        wide = any(t in (dtypes.c128, dtypes.f64) for t in types)
        return Recipe(multiply_add, "f64" if wide else "f32", dtypes.c128 if wide else dtypes.c64)
    if out.is_float or lhs.is_float or rhs.is_float:
        wide = any(t is dtypes.f64 for t in types)
        return Recipe(multiply_add, "f64" if wide else "f32", dtypes.f64 if wide else dtypes.f32)
    if out is dtypes.i1:
        return Recipe("or", "i32", dtypes.i32)
    if out.bits > 32:
        return Recipe("mul", "i64", dtypes.i64)
    signed = {dtypes.i8, dtypes.i4, dtypes.i2, dtypes.u4, dtypes.u2}  # whose values an i8 holds
    if lhs in signed and rhs in signed and target.has_dot4:
        return Recipe("dot4", "i32", dtypes.i32, 4)
    if target.has_same_dot4 and lhs in signed and rhs in signed:
        return Recipe("sdot4", "i32", dtypes.i32, 4)
    unsigned = {dtypes.u8, dtypes.u4, dtypes.u2}
    if target.has_same_dot4 and lhs in unsigned and rhs in unsigned:
        return Recipe("udot4", "i32", dtypes.i32, 4)
    small = {*signed, dtypes.u8, dtypes.i16}
    if lhs in small and rhs in small and not target.has_lanes:  # products of i32 by lanes are as many an instruction
        return Recipe("dot2", "i32", dtypes.i32, 2)
    return Recipe("mul", "i32", dtypes.i32)


def paired(r: Recipe, lhs: DType, rhs: DType, sizes: tuple[int, int, int, int], target: Target) -> Recipe:
    """`r`, by pairs of bf16 where the machine may sum these up and enough is done with each to pay for packing."""
    if not (target.has_dot_bf16 and lhs is rhs is dtypes.bf16 and r.acc is dtypes.f32):
        return r
    _, m, n, k = sizes
    pays = m >= PAIRED_ROWS and 2 * n > target.lanes(dtypes.f32) and k >= PAIRED_K
    return Recipe("dot_bf16", "f32", dtypes.f32, 2) if pays else r


@record(frozen=True)
class Plan:
    """How C (of `sizes`: batch, M, N, K in lanes of the recipe) is cut.

    `kind`: "tile", "inner" (vectors along k) or "stream" (one row). Tiles are `rows` x `vectors`; units are blocks of
    `block_m` x `block_n`, times `splits` of `split_k` along k; inside, k goes in blocks of `block_k`.
    `pack_panels`: how many panels of B are packed together before they are used (0: B is read where it lies);
    `transpose_b`: B lies with k contiguous. `turned_a`: A lies with rows contiguous, and a unit's block of it is copied
    so that each tile has its own together. `cost`: nanoseconds (estimated) of it all on one thread.
    """

    kind: str
    sizes: tuple[int, int, int, int]
    lanes: int
    rows: int
    vectors: int
    block_m: int
    block_n: int
    block_k: int
    split_k: int
    pack_panels: int
    transpose_b: bool
    cost: float
    expected: tuple[int, int] = (0, 0)  # rows of M, where only a run knows how many
    turned_a: bool = False

    @property
    def blocks(self) -> tuple[int, int, int, int]:
        """Numbers of units along k, batch, M, N."""
        bt, m, n, k = self.sizes
        return max(1, -(-k // self.split_k)), bt, -(-m // self.block_m), -(-n // self.block_n)

    @property
    def units(self) -> int:
        ks, bt, m, n = self.blocks
        return ks * bt * m * n

    @property
    def skinny(self) -> bool:
        """Whether B is streamed in blocks of a few rows, where too few tiles would use what is packed."""
        return self.kind == "tile" and not self.pack_panels and self.block_k <= SKINNY_K < self.sizes[3]

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    def edges(self, size: int, target: Target) -> Iterator[tuple[int, int, int, bool]]:
        """(offset, vectors, lanes, masked) of the panels that cover the last `size` columns."""
        lanes = self.lanes
        if size and (target.vector_bytes >= 32 or size % lanes == 0):
            yield 0, -(-size // lanes), lanes, size % lanes != 0
        elif size:
            whole = size // lanes
            if whole:
                yield 0, whole, lanes, False
            yield whole * lanes, size % lanes, 1, False

    @property
    def unit_cost(self) -> float:
        return self.cost / max(typical(self.units), 1)

    def words(self, bound: bool) -> tuple[str, str]:
        """What is done, and why, for people; `bound`: B is a constant in panels."""
        k = self.sizes[3]
        ks, _, ms, ns = self.blocks
        units = f"{self.units} units ({ms} x {ns} blocks)" if self.units != 1 else "one unit: little work"
        if ks > 1:
            units += f"; k is all there is to share out: {ks} parts, added in order"
        if self.kind == "inner":
            return "dot products", f"few rows or columns, k contiguous in both: vectors along k; {units}"
        if self.kind == "stream":
            return "row times matrix", f"one row, columns contiguous: B is read once, row by row; {units}"
        if bound:
            b = "B is a constant, laid out in panels"
        elif self.skinny:
            b = f"memory is the limit: B is streamed, {self.block_k} rows at a time"
        elif self.pack_panels:
            why = "k is contiguous in it" if self.transpose_b else "it does not fit into the second-level cache"
            b = f"B is packed, {self.pack_panels} panels at a time: {why}"
        else:
            b = "B is read where it lies"
        if self.turned_a:
            b += "; A is packed by blocks: its rows are contiguous"
        blocks = f"; k in blocks of {self.block_k}" if self.block_k < typical(k) and not self.skinny else ""
        return f"product, tiles {self.rows}x{self.width}", f"{b}{blocks}; {units}"


def tiles_for(target: Target) -> list[tuple[int, int]]:
    """Rows x vectors of accumulators, with the vectors of B and one more in registers, widest use first. Where elements
    of A are lanes of vectors, these take a register a row, and those of B one in all."""
    if target.has_lanes:
        return [(6, 4), (7, 3), (8, 2), (12, 1)]
    if target.registers >= 32:
        return [(14, 2), (8, 3), (6, 4), (24, 1)]
    return [(6, 2), (4, 3), (12, 1)]


def nanoseconds(sizes: tuple[int, int, int, int], size: int, lanes: int, target: Target) -> float:
    """The estimated time on one thread: of multiply-adds, or of reading operands if these are used but a few times."""
    bt, m, n, k = sizes
    work = bt * m * max(1, n / lanes) * k * VECTOR_NS
    moved = bt * (m * n + m * k + k * n) * size
    far = moved * FAR_NS if moved > target.l2 else 0.0
    return max(work + moved * NEAR_NS, far)


@lru_cache(maxsize=4096)
def crowds(rows: int, stride: int) -> bool:
    """Whether of `rows` lines that lie `stride` bytes apart so many fall into one set of the first-level cache that
    they push each other out: at multiples of 4096, and near these."""
    sets = Counter(i * stride // LINE % (CROWDED_BYTES // LINE) for i in range(rows if stride else 0))
    return max(sets.values(), default=0) > CROWDED_ROWS


def choose_tile(m: int, n: int, lanes: int, target: Target, lost: Callable[[int, int], float],
                a_row: int = 0) -> tuple[int, int]:  # fmt: skip
    """The tile (rows, vectors) that computes M x N with the least work, edges included; among equals the first.
    `lost`: which part of the time is lost, by units that threads cannot share evenly, with tiles of these rows and
    columns. `a_row`: bytes between rows of A, each of which is read along k; 0: they lie together."""
    columns = -(-n // lanes)

    def cost(rows: int, vectors: int) -> float:
        total = 0.0
        for count, v in ((columns // vectors, vectors), (1, columns % vectors)):
            for tiles, r in ((m // rows, rows), (1, m % rows)):
                if v and r:
                    loads = r * MISSED if crowds(r, a_row) else (r + v) * 0.6
                    total += count * tiles * max(r * v, loads, 8)  # multiply-adds; loads; latency
        return total * (1.0 if vectors in (2, 3) else 1.02)

    shapes = tiles_for(target)
    if crowds(shapes[0][0], a_row) and columns != 3:
        shapes = [*shapes, (CROWDED_ROWS, 2)]  # panels may stay narrow, though three vectors are better left together
    among = ((balanced(part, rows), vectors) for rows, vectors in shapes for part in (m, -(-m // 2)))
    costs = {t: cost(*t) for t in among}
    least = min(costs.values())
    few = [t for t, c in costs.items() if c <= SIMILAR * least]
    return min(few, key=lambda t: costs[t] * (1.0 + lost(t[0], t[1] * lanes) / 2)) if len(few) > 1 else few[0]


def few_rows(p: Plan, stride: int, target: Target) -> Plan:
    """`p` with tiles of so few rows that their lines of C, `stride` bytes apart, stay in the first-level cache."""
    few = [t for t in tiles_for(target) if t[0] <= CROWDED_ROWS]
    if not crowds(p.rows, stride) or not few:
        return p
    columns = -(-p.sizes[2] // p.lanes)
    rows, vectors = min(few, key=lambda t: (-(-columns // t[1]) * t[1], -t[1]))
    return replace(p, rows=rows, vectors=vectors)


def plan(sizes: tuple[int, int, int, int], r: Recipe, target: Target, *, b_row: int, b_column: int, inner: bool,
         stream: bool, bound: bool = False, a_turned: bool = False, a_row: int = 0) -> Plan:  # fmt: skip
    """Choose. `b_row`, `b_column`: strides of B along k and n, in elements; `inner`: both operands have k contiguous;
    `stream`: one row of C and B has n contiguous; `bound`: B is a constant that may be laid out in panels;
    `a_turned`: A has rows contiguous; `a_row`: elements between its rows, if it has k contiguous (0: not known)."""
    bt, m, n, k = sizes
    lanes = target.lanes(r.scalar)
    total = nanoseconds(sizes, r.size, lanes, target)
    want = wanted_units(total, MAX_UNITS)
    units = choose("contraction.units", want, (1, 2, 4, 8, 16), least=1, most=MOST_UNITS)
    per_batch = -(-units // max(bt, 1))
    split = k
    if bt * m * n * 64 < k and k > 2 * SPLIT_K and r.combine != "dot4":
        split = SPLIT_K
    if inner and (m <= INNER_ROWS or n <= INNER_ROWS) and k >= lanes:
        rows = min(m, 4 if target.registers >= 32 else 2)
        columns = min(8, (target.registers - 2 - rows) // rows)
        block = -(-balanced(n, max(columns, -(-n // per_batch))) // columns) * columns
        return Plan("inner", sizes, lanes, rows, columns, m, block, k, split, 0, False, total)
    if stream:
        most = min(target.l1 // 2 // r.size, max(STREAM_BYTES // r.size, -(-n // per_batch)))
        block = balanced(n, min(most, -(-n // min(2, per_batch))))
        return Plan("stream", sizes, lanes, 1, 1, 1, max(lanes, -(-block // lanes) * lanes), k, split, 0, False, total)
    apart = a_turned and b_column == 1  # parts along k are memory of their own, unlike blocks of M or N
    long = k >= max(LONG_K // 2 if apart else LONG_K, 16 * m, 16 * n) and m * n < 1 << 16
    if long and split == k and want > 1 and bt == 1 and r.combine != "dot4":
        parts = k // LEAST_K
        split = -(-k // min(want, parts - parts % 2))  # k is all there is to share out
        per_batch = 1
    if bt == 1 and k > 1 and r.combine != "dot4":
        split = choose("contraction.split", split, (k, -(-k // 2), -(-k // 4)), least=1, most=k)
    large = k * n * r.size > target.l2 and b_row * r.size >= 1024 and b_column == 1
    turned = b_column != 1 and not bound  # B lies with k contiguous: it must be packed
    whole = (m, -(-n // lanes) * lanes)
    copying = 2 * PACK_NS if turned and crowds(lanes, b_column * r.size) else PACK_NS
    again = k * n * r.size * (copying if turned or large else NEAR_NS), m * k * r.size * NEAR_NS / 4
    rows, vectors = choose_tile(m, n, lanes, target, lambda *tile: max(
        0.0, divide(whole, tile, bt, per_batch * bt, 1, total, again)[1] - GOOD), a_row * r.size)  # fmt: skip
    block_k, pack_panels = k, 0
    streamed = large and not bound and (m <= rows or (m <= STREAMED_ROWS and k >= 16 * m))
    if streamed:
        # Memory is the limit: read long pieces of few rows at a time, as hardware prefetchers like it. Sums are loaded
        # and stored for each such piece, so there must be few of them for each element of B.
        tall, vectors = tiles_for(target)[1]
        rows = balanced(m, tall)
        if m < tall:
            vectors = min(4, target.registers * 7 // 8 // m)
        block_k = 8 if m <= 4 else 16 if m < tall else 32
        per_batch = min(per_batch, max(2, n * r.size // STREAM_BYTES))
    tiles = [(m_, v * lanes) for m_, v in tiles_for(target) if not streamed or m_ <= rows]
    rows, width = choose("contraction.tile", (rows, vectors * lanes), tiles)
    vectors = width // lanes
    if not bound and not streamed:
        packed = turned or (large and n > width)
        each = -(-n // (width * max(per_batch, 1)))  # panels of a unit, if units are blocks of columns
        pack_panels = choose("contraction.pack", (3 if each == 3 else 2) if packed else 0,
                             (1, 2, 4) if turned else (0, 1, 2, 4))  # fmt: skip
    if bound:
        block_k = balanced(k, max(1, BOUND_BYTES // (width * r.size)))
    elif pack_panels:
        most_k = PANEL_BYTES // (width * r.size)
        block_k = min(most_k, -(-balanced(k, most_k) // lanes) * lanes)
    elif m > rows and k * width * r.size > 200 << 10:
        block_k = balanced(k, max(64, (100 << 10) // (width * r.size)))
    elif split < k and n > width:
        block_k = min(block_k, 256)  # all columns pass while they are in the second-level cache
    # Rows of A that lie side by side: each step of k is in another line, of few sets of a cache if k is long.
    turned_a = a_turned and m > rows and n > (TURNED_PANELS - 1) * width and m * k * r.size > target.l1
    turned_a = turned_a and m * r.size % CROWDED_BYTES == 0
    if turned_a and not bound:
        block_k = min(block_k, -(-balanced(k, TURNED_K) // lanes) * lanes)
    block_k = chosen_block(block_k, k, lanes, PANEL_BYTES // (width * r.size) if pack_panels else 0, streamed)
    most_m = rows * MOST_TILES
    if pack_panels:  # a block of A, of `block_k` of k, takes about half of the second-level cache
        most_m = max(most_m, target.l2 * 5 // 8 // max(block_k * r.size, 1))  # k may be 0
    if turned_a:  # a block of A is copied for each block of columns
        m_blocks, n_blocks = least_traffic(m, n, min(per_batch, TURNED_UNITS), (4 * rows, TURNED_PANELS * width))
        block_m = -(-balanced(m, -(-m // m_blocks)) // rows) * rows
        block_n = -(-balanced(n, -(-n // n_blocks)) // width) * width
    else:
        fewest = min(per_batch, -(-m // most_m)) if n > width else 1
        (block_m, block_n), _ = divide(whole, (rows, width), bt, per_batch * bt, fewest, total, again)
    split = max(split, 1)
    turned_a = turned_a and turned_bytes(block_m, rows, block_k, r.size) <= TURNED_BYTES
    return Plan(
        "tile", sizes, lanes, rows, vectors, block_m, block_n, max(block_k, 1), split, pack_panels,
        turned,
        total,
        turned_a=turned_a,
    )


def least_traffic(m: int, n: int, units: int, least: tuple[int, int]) -> tuple[int, int]:
    """Numbers of blocks of M and N, of at least `least` each, for about `units` units that read the least."""
    most_m, most_n = max(1, m // least[0]), max(1, n // least[1])
    among = [(x, min(most_n, -(-units // x))) for x in range(1, min(most_m, units) + 1)]
    return min(among, key=lambda t: (-min(units, t[0] * t[1]), t[0] * n + t[1] * m))


def turned_bytes(block_m: int, rows: int, block_k: int, size: int) -> int:
    """Of a packed block of A: between tiles a line is left out, lest all fall into one set of the cache."""
    return -(-block_m // rows) * (rows * block_k * size + 64)


def chosen_block(block_k: int, k: int, lanes: int, packed: int, streamed: bool) -> int:
    """How much of k is summed up at a time: at most `packed` where panels are copied first, whole vectors then."""
    if streamed:
        return choose("contraction.kc", block_k, (8, 16, 32), least=1, most=min(k, SKINNY_K))
    if packed:
        among = [n for n in (128, 192, 256, 384, 512) if n <= packed and n % lanes == 0]
        return choose("contraction.kc", block_k, among, least=lanes, most=packed // lanes * lanes, step=lanes)
    among = [n for n in (k, 256, 384, 512, 768) if SKINNY_K < n <= k]
    return choose("contraction.kc", block_k, among, least=min(k, SKINNY_K + 1), most=k)
