"""Code of Cholesky factors by blocks: steps on parts of a matrix. Imports loop, kernels.

A copy of the upper triangle (of the lower one: turned around) lies in scratch, in rows that are padded so that all
loops are of whole vectors and rows fall into different sets of a cache. Every element has its products taken away in
the same order, however the matrix is cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hilo.ir.op import Op
from hilo.kernels.lowered import Phase
from hilo.kernels.memory import pointer
from hilo.kernels.transpose import turn
from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType
from hilo.loop.element import held_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from hilo.backend.target import Target

FEW: Final = 4  # rows that are done one after the other in registers
TURNED: Final = 4  # lanes from which a tile that is turned around is worth a call
STEP: Final = 32  # that blocks are multiples of
BLOCK: Final = 64  # rows that the rows below are read and written for
LARGE: Final = 1024  # rows, from which on blocks are larger
LARGE_BLOCK: Final = 128
BLOCKS: Final = 64  # at most
NS_PER_WORK: Final = 0.35  # nanoseconds of one operation on a vector
LINE: Final = 64  # bytes of a cache line
Span = tuple[Node, Node]


def turn_tile(b: Builder, t: VType, to: Node, to_stride: Node, source: Node, source_stride: Node) -> None:
    """Copy as many rows as a vector has lanes, turned around."""
    size = t.size

    def at(base: Node, stride: Node, r: int) -> Node:
        return b.gep(base, b.mul(stride, r))

    loaded = [b.load(at(source, source_stride, r), t, align=size) for r in range(t.lanes)]
    for r, x in enumerate(turn(b, loaded)):
        b.store(at(to, to_stride, r), x, align=size)


class Writer:
    """Writes a function over matrices."""

    def __init__(self, op: Op, target: Target, func: Func) -> None:
        t = op.tensor
        self.n, self.is_lower = t.shape[-1], op.attrs["lower"]
        self.size = t.dtype.itemsize
        self.scalar = held_type(t.dtype)
        self.lanes = target.lanes(t.dtype)
        self.vector = self.scalar.with_lanes(self.lanes)
        self.fused = target.has_fma
        self.high = 8 if target.registers >= 32 else 4  # rows of a tile of two vectors
        self.wide = 2 * self.lanes  # columns of a tile
        self.few = min(FEW, self.wide)
        self.pad = max(self.wide, 8)
        self.rows = -(-self.n // self.pad) * self.pad  # with padding
        self.stride = (self.rows + max(self.lanes, 64 // self.size)) * self.size  # bytes from row to row
        self.space = -(-self.rows * self.stride // 64) * 64
        self.block = BLOCK if self.n < LARGE else max(LARGE_BLOCK, -(-self.n // (BLOCKS * STEP)) * STEP)
        self.func = func
        b = self.b = Builder(func)
        bufs = func.params[0]
        self.source, self.result, self.scratch = (pointer(b, bufs, i) for i in range(3))

    def matrix(self, m: Node) -> tuple[Node, Node, Node]:
        """Matrix m: of the operand, of the result, and its copy."""
        b, own = self.b, self.n * self.n * self.size
        return (b.gep(self.source, b.mul(m, own)), b.gep(self.result, b.mul(m, own)),
                b.gep(self.scratch, b.mul(m, self.space)))  # fmt: skip

    def matrices(self, batch: int) -> Phase:
        """The phase whose units are matrices."""
        b, n = self.b, self.n
        _, begin, end = self.func.params
        rows = b.i64(self.rows)

        def unit(m: Node) -> None:
            source, result, u = self.matrix(m)

            def block(k: Node) -> None:
                end, after = (b.smin(b.add(k, self.block), last) for last in (n, rows))
                self.factor(u, k, end, (k, rows), b.i64(self.wide))
                self.update(u, k, end, (after, rows), (after, rows), b.i64(self.wide))

            b.for_(0, rows, self.wide, lambda first: self.copy_in(source, u, first))
            b.for_(0, n, self.block, block)
            b.for_(0, n, self.wide, lambda first: self.copy_out(u, result, first))

        b.for_(begin, end, 1, unit)
        b.ret()
        return Phase(self.func, batch, n * n * (n / self.lanes / 6 + 4.0) * NS_PER_WORK)

    # ---- steps
    def factor(self, u: Node, k: Node, end: Node, columns: Span, stride: Node) -> None:
        """Columns (two vectors each `stride`) of rows k..end, a block that nothing before has to be taken from: those
        of its square in order, with their padding, or others beside it."""
        b = self.b

        def column(c: Node) -> None:
            b.for_(k, b.smin(c, end), self.few, lambda j: self._rows(u, k, j, c, square=False))
            b.for_(c, b.smin(b.add(c, self.wide), end), self.few, lambda j: self._rows(u, k, j, c, square=True))

        b.for_(columns[0], columns[1], stride, column)

    def _rows(self, u: Node, k: Node, j: Node, c: Node, *, square: bool) -> None:
        """Two vectors of a few rows from j on: what rows k..j contribute, then one after the other. `square`: the
        elements on the diagonal are among them."""
        b = self.b
        places, sums = self._tile(u, k, j, j, c, self.few)
        done: list[Node] = []
        for r in range(self.few):
            at, x = places[2 * r : 2 * r + 2], sums[2 * r : 2 * r + 2]
            for q in range(r):
                factor = b.splat(b.load(self._at(u, b.add(j, q), b.add(j, r)), self.scalar), self.lanes)
                x = [self._minus(s, factor, y) for s, y in zip(x, done[2 * q : 2 * q + 2], strict=True)]
            here = self._at(u, b.add(j, r), b.add(j, r))
            if square:
                self._store_all(at, x)
            pivot = b.load(here, self.scalar)
            if square:
                pivot = b.sqrt(pivot)
            x = [b.fdiv(y, b.splat(pivot, self.lanes)) for y in x]
            self._store_all(at, x)
            if square:
                b.store(here, pivot)
            done += x

    def update(self, u: Node, k: Node, end: Node, rows: Span, columns: Span, stride: Node) -> None:
        """Take from these rows and columns (two vectors of them each `stride`), as far as they are above the diagonal,
        what rows k..end contribute."""
        b = self.b

        def column(c: Node) -> None:
            def tile(i: Node) -> None:
                for r in range(self.high):  # of the next tile, which is far from this one
                    at = self._at(u, b.add(i, self.high + r), c)
                    for line in range(0, self.wide * self.size, LINE):
                        b.prefetch(b.gep(at, line))
                self._store_all(*self._tile(u, k, end, i, c, self.high))

            b.for_(rows[0], b.smin(rows[1], b.add(c, self.wide)), self.high, tile)

        b.for_(columns[0], columns[1], stride, column)

    def _tile(self, u: Node, k: Node, end: Node, i: Node, c: Node, rows: int) -> tuple[list[Node], list[Node]]:
        """The places of a tile at row i and column c, and what is there less what rows k..end contribute."""
        b = self.b
        vector = self.lanes * self.size
        places = [b.gep(self._at(u, b.add(i, r), c), h * vector) for r in range(rows) for h in (0, 1)]

        def product(p: Node, *sums: Node) -> tuple[Node, ...]:
            right, left = self._at(u, p, c), self._at(u, p, i)
            halves = [self._load(b.gep(right, h * vector)) for h in (0, 1)]
            factors = [b.splat(b.load(b.gep(left, r * self.size), self.scalar), self.lanes) for r in range(rows)]
            return tuple(self._minus(s, factors[x // 2], halves[x % 2]) for x, s in enumerate(sums))

        return places, list(b.for_(k, end, 1, product, [self._load(p) for p in places]))

    # ---- copies
    def copy_in(self, source: Node, u: Node, first: Node) -> None:
        """Copy `wide` rows of the operand: the triangle, perhaps what is just on its other side, and zeros behind."""
        b, n = self.b, self.n
        after = b.add(first, self.wide)
        last = b.smin(after, n)
        if not self.is_lower:
            def row(j: Node) -> None:
                self._clear(u, j, b.i64(self.rows - self.pad), self.pad)
                self._clear(u, j, first, self.wide)
                b.memcpy(self._at(u, j, first), self._of(source, j, first), b.mul(b.sub(n, first), self.size))

            b.for_(first, last, 1, row)
            b.for_(last, after, 1, lambda j: self._clear(u, j, first, self.wide))
            return

        def tile(i: Node, j: Node) -> None:
            self._turn(self._at(u, j, i), self.stride, self._of(source, i, j), n * self.size)

        def one(i: Node, j: Node) -> None:
            b.store(self._at(u, j, i), b.load(self._of(source, i, j), self.scalar))

        padded = b.cmp("sgt", after, n)
        b.for_(b.select(padded, 0, first), after, 1, lambda j: self._clear(u, j, first, self.wide))
        self._turned(first, last, tile, one)

    def copy_out(self, u: Node, result: Node, first: Node) -> None:
        """Write `wide` rows of the factor: a triangle, and zeros on the other side."""
        b, n = self.b, self.n
        last = b.smin(b.add(first, self.wide), n)
        if not self.is_lower:
            def row(j: Node) -> None:
                b.memset(self._of(result, j, b.i64(0)), 0, b.mul(j, self.size))
                b.memcpy(self._of(result, j, j), self._at(u, j, j), b.mul(b.sub(n, j), self.size))

            b.for_(first, last, 1, row)
            return

        def tile(i: Node, j: Node) -> None:
            self._turn(self._of(result, i, j), n * self.size, self._at(u, j, i), self.stride)

        def one(i: Node, j: Node) -> None:
            b.store(self._of(result, i, j), b.load(self._at(u, j, i), self.scalar))

        def clear(i: Node) -> None:
            j = b.add(i, 1)
            b.memset(self._of(result, i, j), 0, b.mul(b.sub(n, j), self.size))

        self._turned(first, last, tile, one)
        b.for_(first, last, 1, clear)

    def _turned(self, first: Node, last: Node, tile: Callable[[Node, Node], None],
                one: Callable[[Node, Node], None]) -> None:  # fmt: skip
        """Tiles of rows first..last of a lower triangle as far as they are whole, and elements of what is left."""
        b, lanes = self.b, self.lanes
        whole = self.n // lanes * lanes

        def tiles(i: Node) -> None:
            b.for_(0, b.add(i, 1), lanes, lambda j: tile(i, j))

        def elements(i: Node) -> None:
            b.for_(0, b.add(i, 1), 1, lambda j: one(i, j))

        b.for_(first, b.smin(last, whole), lanes, tiles)
        b.for_(b.smax(first, whole), last, 1, elements)

    def _turn(self, to: Node, to_stride: int, source: Node, source_stride: int) -> None:
        """Copy a tile, turned around, between rows so many bytes apart."""
        if self.lanes < TURNED:
            turn_tile(self.b, self.vector, to, self.b.i64(to_stride), source, self.b.i64(source_stride))
            return
        name = f"turned.{self.scalar.scalar}.{self.lanes}"
        helpers = self.func.helpers
        assert helpers is not None
        if name not in helpers:
            params = [("to", PTR), ("to_stride", I64), ("source", PTR), ("source_stride", I64)]
            f = helpers[name] = Func(name, params, private=True, inline="never")
            b = Builder(f)
            turn_tile(b, self.vector, *f.params)
            b.ret()
        self.b.call(name, (to, self.b.i64(to_stride), source, self.b.i64(source_stride)))

    def _clear(self, u: Node, j: Node, first: Node, count: int) -> None:
        """Zeros in some columns of row j."""
        zero = self.b.splat(self.b.const(0.0, self.scalar), self.lanes)
        for x in range(0, count, self.lanes):
            self._store(self.b.gep(self._at(u, j, first), x * self.size), zero)

    # ---- elements
    def _at(self, u: Node, i: Node, j: Node) -> Node:
        """The address of an element of the copy."""
        b = self.b
        return b.gep(b.gep(u, b.mul(i, self.stride)), b.mul(j, self.size))

    def _of(self, a: Node, i: Node, j: Node) -> Node:
        """The address of an element of the operand or the result."""
        b = self.b
        return b.gep(b.gep(a, b.mul(i, self.n * self.size)), b.mul(j, self.size))

    def _load(self, at: Node) -> Node:
        return self.b.load(at, self.vector, align=self.lanes * self.size)

    def _store_all(self, places: list[Node], values: list[Node]) -> None:
        for p, x in zip(places, values, strict=True):
            self._store(p, x)

    def _store(self, at: Node, x: Node) -> None:
        self.b.store(at, x, align=self.lanes * self.size)

    def _minus(self, total: Node, x: Node, y: Node) -> Node:
        b = self.b
        return b.fma(x, b.fneg(y), total) if self.fused else b.fsub(total, b.fmul(x, y))
