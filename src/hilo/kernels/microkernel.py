"""The innermost parts of contractions: a tile of C in registers. Imports loop, ir.dtypes.

Strides and depths are arguments, so that equal structures are one function, compiled once and shared by name. All
strides are in bytes. The sum over k runs in order and without a break (a tile that goes on from an earlier block of k
loads what it has so far), so that blocking does not change the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Final

from hilo.ir.dtypes import dtype
from hilo.loop import arith
from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType
from hilo.loop.nodes import Deferred
from hilo.loop.product import GROUP, PARAMS, Product
from hilo.record import record

Combine = Callable[[Builder, Node, Node, Node], Node]

# What "acc + a * b" means, by name.
COMBINE: Final[dict[str, Combine]] = {
    "fma": lambda b, acc, x, y: b.fma(x, y, acc),
    "fmuladd": lambda b, acc, x, y: b.fadd(acc, b.fmul(x, y)),  # without hardware fma: two roundings
    "mul": lambda b, acc, x, y: b.add(acc, b.mul(x, y)),
    "or": lambda b, acc, x, y: b.or_(acc, b.and_(x, y)),
    "dot4": lambda b, acc, x, y: b.dot(4, acc, x, y),
    "sdot4": lambda b, acc, x, y: b.dot_same(True, acc, y, x),
    "udot4": lambda b, acc, x, y: b.dot_same(False, acc, y, x),
    "dot2": lambda b, acc, x, y: b.dot(2, acc, x, y),
    "dot_bf16": lambda b, acc, x, y: b.dot_bf16(acc, b.bitcast(x, "i32"), b.bitcast(y, "i32")),  # pairs, held as f32
}


@record(frozen=True)
class Tile:
    """A micro-kernel: `combine` on accumulators of `scalar`, `rows` x `vectors` of `lanes`; `masked`: the last vector
    is only partly there; `lines` cache lines are fetched ahead per step of k. `narrow`: the
    type of B's elements where they are widened as they are read (so for the other kernels). `touches`: the tile of C is
    fetched before the sum is. `by_lanes`: rows of A are contiguous, and read a vector at a time, whose lanes are used
    one after the other. `half`: the last vector has half the lanes. `streams`: C is aligned to vectors, and whole
    ones are stored past the caches."""

    combine: str
    scalar: str
    rows: int
    vectors: int
    lanes: int
    masked: bool = False
    lines: int = 1
    narrow: str = ""
    touches: bool = False
    by_lanes: bool = False
    half: bool = False
    streams: bool = False

    @property
    def width(self) -> int:
        return self.vectors * self.lanes

    @property
    def name(self) -> str:
        size = f"{self.rows}x{self.vectors}x{self.lanes}{'m' if self.masked else ''}"
        flags = "".join(x for x, is_so in zip("tlhs", (self.touches, self.by_lanes, self.half, self.streams)) if is_so)
        return f"tile_{self.combine}_{self.scalar}_{size}p{self.lines}{self.narrow}{flags}"

    @property
    def vector(self) -> VType:
        return VType(self.scalar, self.lanes)


TILE_PARAMS: Final = [(n, PTR if n in ("a", "b", "c", "init", "ahead") else I64) for n in PARAMS]


@cache
def tile(t: Tile) -> Func:
    """C tile = init + A B: `rows` rows of A (element i, k at a + i * a_row + k * a_k), k rows of B (contiguous vectors
    at b + k * b_k).

    `init_row` < 0: start from zero, else from the tile at `init`. `n`: columns of a masked tile. The lines
    at ahead + k * ahead_k are brought into the second-level cache. Written where no assembly stands for it.
    """
    product = Product(t.combine, t.scalar, t.rows, t.vectors, t.lanes, masked=t.masked, lines=t.lines, narrow=t.narrow,
                      touches=t.touches, half=t.half, streams=t.streams)  # fmt: skip
    return Deferred(t.name, TILE_PARAMS, partial(_write_tile, t), noalias=("c",), inline="never", product=product)


def _write_tile(t: Tile, f: Func) -> None:
    b = Builder(f)
    a, a_row, a_k, bp, b_k, c, c_row, init, init_row, k, n, ahead, ahead_k = f.params
    rows, vectors, v = t.rows, t.vectors, t.vector
    kinds = columns_of(v, vectors, t.half)
    places = b.iota(I64.with_lanes(kinds[-1].lanes))
    mask = b.cmp("slt", places, b.sub(n, (vectors - 1) * t.lanes)) if t.masked else None
    step = t.lanes * v.size
    b_step = t.lanes * memory_size(t.scalar, t.narrow)

    def mask_of(j: int) -> Node | None:
        return mask if j == vectors - 1 else None

    for i in range(rows if t.touches else 0):
        for line in range(0, vectors * step, 64):
            b.prefetch(b.gep(b.gep(c, b.mul(c_row, i)), line), locality=3)
    start = [b.const(0, kind) for kind in kinds] * rows
    offsets = multiples(b, a_row, min(rows, GROUP))
    bases = [b.gep(a, b.mul(a_row, g)) for g in range(0, rows, GROUP)]

    def steps(count: int) -> Callable[..., list[Node]]:
        """The body of a loop over k that does `count` steps a turn."""

        def body(_: Node, bk: Node, pf: Node, *state: Node) -> list[Node]:
            base, acc = state[: len(bases)], list(state[len(bases) :])
            element = elements(b, lambda i: b.gep(base[i // GROUP], offsets[i % GROUP]), rows, v, count)

            def column(j: int) -> Node:
                return load_b(b, bk, b.i64(j * b_step), kinds[j], t.narrow, mask_of(j))

            for s in range(count):
                for line in range(t.lines):
                    b.prefetch(b.gep(pf, 64 * line), locality=2)
                add_products(b, (t.combine, rows, vectors, t.by_lanes), acc, partial(element, s), column)
                bk, pf = b.gep(bk, b_k), b.gep(pf, ahead_k)
            return [bk, pf, *(b.gep(p, a_k if count == 1 else step) for p in base), *acc]

        return body

    end = over_k(b, k, t.lanes if t.by_lanes else 1, steps, (bp, ahead, *bases, *start))
    acc = end[2 + len(bases) :]

    def store(plus_init: bool) -> None:
        for i in range(rows):
            row, more = b.gep(c, b.mul(c_row, i)), b.gep(init, b.mul(init_row, i))
            for j in range(vectors):
                x = acc[i * vectors + j]
                if plus_init:
                    x = b.binary(total, b.load(b.gep(more, j * step), kinds[j], mask=mask_of(j)), x)
                at, last = b.gep(row, j * step), mask_of(j)
                if t.streams and last is None:
                    b.store(at, x, align=step, nontemporal=True)
                else:
                    b.store(at, x, mask=last)

    # A block of k is summed from zero and then added: errors grow with the number of blocks, not of terms.
    total = "or" if t.combine == "or" else "fadd" if v.is_float else "add"
    b.if_(b.cmp("sge", init_row, 0), lambda: store(True), lambda: store(False))
    b.ret()


def columns_of(v: VType, vectors: int, half: bool) -> list[VType]:
    """The types of a tile's vectors of B, and of C."""
    return [v] * (vectors - 1) + [v.with_lanes(v.lanes // 2) if half else v]


def elements(b: Builder, row: Callable[[int], Node], rows: int, v: VType, count: int) -> Callable[[int, int], Node]:
    """What gives, in all lanes of a vector, the element number `s` < `count` from where `row` is for a row i of A:
    (s, i) -> vector. Several elements of a row are lanes of one vector, which is read here."""
    if count == 1:
        return lambda _, i: b.splat(b.load(row(i), v.with_lanes(1)), v.lanes)
    read = [b.load(row(i), v.with_lanes(count)) for i in range(rows)]
    return lambda s, i: b.splat(b.lane(read[i], s), v.lanes)


def add_products(b: Builder, t: tuple[str, int, int, bool], sums: list[Node], element: Callable[[int], Node],
                 column: Callable[[int], Node]) -> None:  # fmt: skip
    """One step of k of a tile (`combine`, rows, vectors, `by_lanes`): to the sum in row i, vector j add `element(i)`
    times `column(j)`. Where the elements are lanes of registers, these and the sums leave one register for B."""
    name, rows, vectors, by_lanes = t
    combine = COMBINE[name]
    if by_lanes:
        xs = [element(i) for i in range(rows)]
        for j in range(vectors):
            y = column(j)
            for i, x in enumerate(xs):
                sums[i * vectors + j] = combine(b, sums[i * vectors + j], x, y)
        return
    ys = [column(j) for j in range(vectors)]
    for i in range(rows):
        x = element(i)
        for j, y in enumerate(ys):
            same = x if y.type.lanes == x.type.lanes else b.splat(b.lane(x, 0), y.type.lanes)
            sums[i * vectors + j] = combine(b, sums[i * vectors + j], same, y)


def over_k(b: Builder, k: Node, count: int, steps: Callable[[int], Callable[..., list[Node]]],
           init: Sequence[Node]) -> Sequence[Node]:  # fmt: skip
    """A loop over k whose turns do `count` steps each, and one for what is left: the last values of what they carry."""
    if count == 1:
        return b.for_(0, k, 1, steps(1), init)
    whole = b.and_(k, -count)
    return b.for_(whole, k, 1, steps(1), b.for_(0, whole, count, steps(count), init))


def memory_size(scalar: str, narrow: str) -> int:
    """Bytes of an element of B."""
    return dtype(narrow).itemsize if narrow else VType(scalar).size


def load_b(b: Builder, ptr: Node, offset: Node, v: VType, narrow: str, mask: Node | None) -> Node:
    """A vector of B, widened if it is narrow."""
    if not narrow:
        return b.load(b.gep(ptr, offset), v, mask=mask)
    return arith.load_elem(b, ptr, offset, dtype(narrow), v.lanes, mask).re


def multiples(b: Builder, stride: Node, count: int) -> list[Node]:
    """0, 1 ... times `stride`, in the forms that addresses of machines have: a register times 1, 2, 4."""
    three = b.mul(stride, 3) if count > 3 else stride
    all_ = [
        lambda: b.i64(0),
        lambda: stride,
        lambda: b.shl(stride, 1),
        lambda: three,
        lambda: b.shl(stride, 2),
        lambda: b.mul(stride, 5),
        lambda: b.shl(three, 1),
    ]
    return [make() for make in all_[:count]]


@record(frozen=True)
class Inner:
    """A micro-kernel whose vectors run along k: `rows` x `columns` dot products of contiguous runs. `far`: B is in no
    near cache, and the next columns are fetched ahead."""

    combine: str
    scalar: str
    rows: int
    columns: int
    lanes: int
    masks: bool
    narrow: str = ""
    far: bool = False

    @property
    def name(self) -> str:
        flags = f"{'m' if self.masks else ''}{'f' if self.far else ''}"
        return f"inner_{self.combine}_{self.scalar}_{self.rows}x{self.columns}x{self.lanes}{flags}{self.narrow}"


INNER_PARAMS: Final = [
    ("a", PTR),
    ("a_row", I64),
    ("b", PTR),
    ("b_col", I64),
    ("c", PTR),
    ("c_row", I64),
    ("c_col", I64),
    ("k", I64),
]


@cache
def inner(t: Inner) -> Func:
    """c[i, j] = sum of a[i, k] * b[j, k], both contiguous along k. Lanes are added up pairwise at the end."""
    f = Func(t.name, INNER_PARAMS, noalias=("c",), inline="never")
    b = Builder(f)
    a, a_row, bp, b_col, c, c_row, c_col, k = f.params
    combine = COMBINE[t.combine]
    rows = [b.gep(a, b.mul(a_row, i)) for i in range(t.rows)]
    columns = [b.gep(bp, b.mul(b_col, j)) for j in range(t.columns)]
    next_columns = b.mul(b_col, t.columns)

    def turn(at: Node, acc: tuple[Node, ...], v: VType, mask: Node | None) -> list[Node]:
        offset, b_offset = b.mul(at, v.size), b.mul(at, memory_size(t.scalar, t.narrow))
        xs = [b.load(b.gep(p, offset), v, mask=mask) for p in rows]
        out = list(acc)
        for j, p in enumerate(columns):
            if t.far and mask is None and v.lanes > 1:
                b.prefetch(b.gep(p, b.add(next_columns, b_offset)), locality=2)
            y = load_b(b, p, b_offset, v, t.narrow, mask)
            for i, x in enumerate(xs):
                out[i * t.columns + j] = combine(b, out[i * t.columns + j], x, y)
        return out

    v = VType(t.scalar, t.lanes)
    count = t.rows * t.columns
    whole = b.and_(k, -t.lanes)
    acc = b.for_(0, whole, t.lanes, lambda at, *s: turn(at, s, v, None), [b.const(0, v)] * count)
    if t.masks:

        def rest(at: Node, *s: Node) -> list[Node]:
            return turn(at, s, v, b.cmp("slt", b.iota(I64.with_lanes(t.lanes)), b.sub(k, at)))

        acc = b.for_(whole, k, t.lanes, rest, acc)
    sums = [sum_lanes(b, x, t.combine) for x in acc]
    if not t.masks:
        sums = list(b.for_(whole, k, 1, lambda at, *s: turn(at, s, v.with_lanes(1), None), sums))
    for i in range(t.rows):
        row = b.gep(c, b.mul(c_row, i))
        for j in range(t.columns):
            b.store(b.gep(row, b.mul(c_col, j)), sums[i * t.columns + j])
    b.ret()
    return f


def sum_lanes(b: Builder, v: Node, combine: str = "fma") -> Node:
    """The sum (or, for "or", the disjunction) of a vector's lanes, pairwise."""
    while v.type.lanes > 1:
        half = v.type.lanes // 2
        x, y = (b.shuffle(v, v, range(s, s + half)) for s in (0, half))
        if v.type.is_float:
            v = b.fadd(x, y)
        else:
            v = b.or_(x, y) if combine == "or" else b.add(x, y)
    return v


@record(frozen=True)
class Stream:
    """A micro-kernel for one row of C: whole rows of B are streamed, `depth` at a time. `far`: they are in no near
    cache, and the next rows are fetched ahead."""

    combine: str
    scalar: str
    depth: int
    lanes: int
    masks: bool
    narrow: str = ""
    far: bool = False

    @property
    def name(self) -> str:
        flags = f"{'m' if self.masks else ''}{'f' if self.far else ''}"
        return f"stream_{self.combine}_{self.scalar}_{self.depth}x{self.lanes}{flags}{self.narrow}"


STREAM_PARAMS: Final = [("a", PTR), ("a_k", I64), ("b", PTR), ("b_k", I64), ("c", PTR), ("k", I64), ("n", I64)]


@cache
def stream(t: Stream) -> Func:
    """c[j] += sum of a[k] * b[k, j] for j < n: c is small enough to stay in the first-level cache."""
    f = Func(t.name, STREAM_PARAMS, noalias=("c",), inline="never")
    b = Builder(f)
    a, a_k, bp, b_k, c, k, n = f.params
    combine = COMBINE[t.combine]
    size = VType(t.scalar).size

    def block(depth: int) -> Callable[[Node], None]:
        def body(at: Node) -> None:
            pa = b.gep(a, b.mul(at, a_k))
            rows = [b.gep(bp, b.mul(b.add(at, d), b_k)) for d in range(depth)]
            xs = [b.load(b.gep(pa, b.mul(a_k, d)), VType(t.scalar)) for d in range(depth)]
            next_rows = b.mul(b_k, depth)

            def columns(lanes: int, mask: Callable[[Node], Node | None]) -> Callable[[Node], None]:
                def turn(j: Node) -> None:
                    v, m, offset = VType(t.scalar, lanes), mask(j), b.mul(j, size)
                    b_offset = b.mul(j, memory_size(t.scalar, t.narrow))
                    acc = b.load(b.gep(c, offset), v, mask=m)
                    for x, row in zip(xs, rows, strict=True):
                        if t.far and lanes > 1 and depth > 1:
                            b.prefetch(b.gep(row, b.add(next_rows, b_offset)), locality=2)
                        acc = combine(b, acc, b.splat(x, lanes), load_b(b, row, b_offset, v, t.narrow, m))
                    b.store(b.gep(c, offset), acc, mask=m)

                return turn

            whole = b.and_(n, -t.lanes)
            b.for_(0, whole, t.lanes, columns(t.lanes, lambda _: None))
            if t.masks:
                b.for_(
                    whole,
                    n,
                    t.lanes,
                    columns(t.lanes, lambda j: b.cmp("slt", b.iota(I64.with_lanes(t.lanes)), b.sub(n, j))),
                )
            else:
                b.for_(whole, n, 1, columns(1, lambda _: None))

        return body

    deep = b.and_(k, -t.depth)
    b.for_(0, deep, t.depth, block(t.depth))
    b.for_(deep, k, 1, block(1))
    b.ret()
    return f
