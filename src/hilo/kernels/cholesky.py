"""Cholesky factors of larger matrices of f32 or f64, by blocks of rows. Imports loop, kernels.

A copy of the upper triangle (of the lower one: turned around) lies in scratch, in rows that are padded so that all
loops are of whole vectors and rows fall into different sets of a cache. Block by block, the rows of a block are
factored among themselves; then what they contribute is taken from all rows below, tile by tile in registers. Where
there are few matrices these steps are phases of their own, with units along columns and rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from hilo.ir.dtypes import DType, f32, f64
from hilo.ir.op import Op
from hilo.kernels.elementwise import new_func
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import pointer
from hilo.kernels.transpose import turn
from hilo.loop.builder import I64, PTR, Builder, Func, Node
from hilo.loop.element import held_type

if TYPE_CHECKING:
    from hilo.backend.target import Target

SMALLEST: Final = 48  # rows of a matrix that is done by blocks
BLOCK: Final = 32  # rows
NS_PER_WORK: Final = 0.35  # nanoseconds of one operation on a vector
ALONE: Final = 640  # rows of a matrix that threads share
BLOCKS: Final = 64  # most blocks that are phases of their own
STRIP: Final = 64  # rows of a unit
ENOUGH: Final = 4  # matrices


def suits(dtype: DType, n: object, batch: object) -> bool:
    """Whether matrices of n rows are done by blocks."""
    return dtype in (f32, f64) and isinstance(n, int) and isinstance(batch, int) and n >= SMALLEST


def lower(op: Op, batch: int, target: Target) -> Lowered:
    """The kernel of a `cholesky` that `suits`."""
    n = op.tensor.shape[-1]
    if batch >= ENOUGH or n < ALONE:
        w = _Writer(op, target, new_func("cholesky"))
        return Lowered([w.matrices(batch)], scratch=batch * w.space, strategy="Cholesky factor",
                       reason=f"blocks of {w.block} rows; units are matrices")  # fmt: skip
    return _shared(op, batch, target)


class _Writer:
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
        wide = 2 * self.lanes
        unit = max(wide, 8)
        self.rows = -(-self.n // unit) * unit  # with padding
        self.stride = (self.rows + max(self.lanes, 64 // self.size)) * self.size  # bytes from row to row
        self.space = -(-self.rows * self.stride // 64) * 64
        self.block = max(BLOCK, -(-self.n // (BLOCKS * BLOCK)) * BLOCK)
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

        def unit(m: Node) -> None:
            source, result, u = self.matrix(m)
            self.copy_in(source, u)

            def block(k: Node) -> None:
                end = b.smin(b.add(k, self.block), n)
                self.factor(u, k, end, b.i64(self.rows))
                self.update(u, k, end, b.add(k, self.block), b.i64(self.rows))

            b.for_(0, n, self.block, block)
            self.copy_out(u, result)

        b.for_(begin, end, 1, unit)
        b.ret()
        return Phase(self.func, batch, n * n * (n / self.lanes / 6 + 4.0) * NS_PER_WORK)

    # ---- steps
    def factor(self, u: Node, k: Node, end: Node, columns: Node) -> None:
        """Rows k..end, whose columns up to `columns` nothing before k has to be taken from."""
        b = self.b

        def row(j: Node) -> None:
            self._reduce(u, k, j, b.and_(j, -self.lanes), columns)
            here = self._at(u, j, j)
            pivot = b.sqrt(b.load(here, self.scalar))
            self._scale(u, j, b.and_(j, -self.lanes), columns, pivot)
            b.store(here, pivot)

        b.for_(k, end, 1, row)

    def solve(self, u: Node, k: Node, end: Node, first: Node, last: Node) -> None:
        """Columns first..last of rows k..end, whose square is factored."""
        b = self.b

        def row(j: Node) -> None:
            self._reduce(u, k, j, first, last)
            self._scale(u, j, first, last, b.load(self._at(u, j, j), self.scalar))

        b.for_(k, end, 1, row)

    def _reduce(self, u: Node, k: Node, j: Node, first: Node, last: Node) -> None:
        """Take the products of row j with rows k..j from columns first..last of row j."""
        b, step = self.b, 4 * self.lanes

        def columns(count: int) -> Callable[[Node], None]:
            def some(c: Node) -> None:
                at = [b.gep(self._at(u, j, c), i * self.lanes * self.size) for i in range(count)]

                def product(i: Node, *sums: Node) -> tuple[Node, ...]:
                    factor = b.splat(b.load(self._at(u, i, j), self.scalar), self.lanes)
                    row = self._at(u, i, c)
                    return tuple(self._minus(s, factor, self._load(b.gep(row, x * self.lanes * self.size)))
                                 for x, s in enumerate(sums))  # fmt: skip

                for p, x in zip(at, b.for_(k, j, 1, product, [self._load(p) for p in at]), strict=True):
                    self._store(p, x)

            return some

        whole = b.add(first, b.and_(b.sub(last, first), -step))
        b.for_(first, whole, step, columns(4))
        b.for_(whole, last, self.lanes, columns(1))

    def _scale(self, u: Node, j: Node, first: Node, last: Node, pivot: Node) -> None:
        b = self.b
        divisor = b.splat(pivot, self.lanes)

        def some(c: Node) -> None:
            p = self._at(u, j, c)
            self._store(p, b.fdiv(self._load(p), divisor))

        b.for_(first, last, self.lanes, some)

    def update(self, u: Node, k: Node, end: Node, first: Node, last: Node) -> None:
        """Take from rows first..last what rows k..end contribute."""
        b, wide = self.b, 2 * self.lanes

        def strip(i: Node) -> None:
            def tile(c: Node) -> None:
                rows = [self._at(u, b.add(i, r), c) for r in range(self.high)]
                places = [b.gep(p, h * self.lanes * self.size) for p in rows for h in (0, 1)]

                def product(p: Node, *sums: Node) -> tuple[Node, ...]:
                    right, left = self._at(u, p, c), self._at(u, p, i)
                    halves = [self._load(b.gep(right, h * self.lanes * self.size)) for h in (0, 1)]
                    factors = [b.splat(b.load(b.gep(left, r * self.size), self.scalar), self.lanes)
                               for r in range(self.high)]  # fmt: skip
                    return tuple(self._minus(s, factors[x // 2], halves[x % 2]) for x, s in enumerate(sums))

                for p, x in zip(places, b.for_(k, end, 1, product, [self._load(p) for p in places]), strict=True):
                    self._store(p, x)

            b.for_(b.and_(i, -wide), self.rows, wide, tile)

        b.for_(first, last, self.high, strip)

    # ---- copies
    def copy_in(self, source: Node, u: Node) -> None:
        """Write the copy: the triangle, whatever is on its other side, and zeros around."""
        b, n = self.b, self.n
        b.memset(u, 0, self.space)
        if not self.is_lower:
            b.for_(0, n, 1, lambda j: self._copy_row(b.gep(source, b.mul(j, n * self.size)), self._at(u, j, b.i64(0))))
            return

        def tile(i: Node, j: Node) -> None:
            loaded = [b.load(self._of(source, b.add(i, r), j), self.vector, align=self.size) for r in range(self.lanes)]
            for r, x in enumerate(turn(b, loaded)):
                self._store(self._at(u, b.add(j, r), i), x)

        def one(i: Node, j: Node) -> None:
            b.store(self._at(u, j, i), b.load(self._of(source, i, j), self.scalar))

        self._tiles(tile, one)

    def copy_out(self, u: Node, result: Node) -> None:
        """Write the factor: a triangle, and zeros on the other side."""
        b, n = self.b, self.n
        zero = b.const(0.0, self.scalar)

        def clear(i: Node, j: Node) -> None:
            b.store(self._of(result, i, j), zero)

        if not self.is_lower:
            def row(j: Node) -> None:
                self._copy_row(self._at(u, j, b.i64(0)), self._of(result, j, b.i64(0)))
                b.for_(0, j, 1, lambda c: clear(j, c))

            b.for_(0, n, 1, row)
            return

        def tile(i: Node, j: Node) -> None:
            loaded = [self._load(self._at(u, b.add(j, r), i)) for r in range(self.lanes)]
            for r, x in enumerate(turn(b, loaded)):
                b.store(self._of(result, b.add(i, r), j), x, align=self.size)

        def one(i: Node, j: Node) -> None:
            b.store(self._of(result, i, j), b.load(self._at(u, j, i), self.scalar))

        self._tiles(tile, one)
        b.for_(0, n, 1, lambda i: b.for_(b.add(i, 1), n, 1, lambda j: clear(i, j)) and None)

    def _tiles(self, tile: Callable[[Node, Node], None], one: Callable[[Node, Node], None]) -> None:
        """Tiles of the lower triangle (rows i, columns j) as far as they are whole, and elements of what is left."""
        b, n, lanes = self.b, self.n, self.lanes
        whole = n // lanes * lanes

        def tiles(i: Node) -> None:
            b.for_(0, b.add(i, 1), lanes, lambda j: tile(i, j))

        def elements(i: Node) -> None:
            b.for_(0, b.add(i, 1), 1, lambda j: one(i, j))

        b.for_(0, whole, lanes, tiles)
        b.for_(whole, n, 1, elements)

    def _copy_row(self, source: Node, to: Node) -> None:
        self.b.memcpy(to, source, self.n * self.size)

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

    def _store(self, at: Node, x: Node) -> None:
        self.b.store(at, x, align=self.lanes * self.size)

    def _minus(self, total: Node, x: Node, y: Node) -> Node:
        b = self.b
        return b.fma(x, b.fneg(y), total) if self.fused else b.fsub(total, b.fmul(x, y))


def _shared(op: Op, batch: int, target: Target) -> Lowered:
    """Phases for few large matrices: block by block the square, the columns beside it, the rows below it.

    The phases of all blocks call the same two functions.
    """
    first = _Writer(op, target, new_func("cholesky_copy"))
    n, block, rows = first.n, first.block, first.rows

    def phase(w: _Writer, units: int, cost: float, work: Callable[[Node], None], helper: Func | None = None) -> Phase:
        _, begin, end = w.func.params
        w.b.for_(begin, end, 1, work)
        w.b.ret()
        return Phase(w.func, units, cost * NS_PER_WORK, [helper] if helper is not None else [])

    def whole(name: str, step: Callable[[_Writer, Node, Node, Node], None]) -> Phase:
        w = _Writer(op, target, new_func(name))
        return phase(w, batch, n * n / 2.0, lambda m: step(w, *w.matrix(m)))

    def helper(name: str, step: Callable[[_Writer, Node, Node, Node, Node, Node], None]) -> Func:
        """A function of a matrix, a block's rows, and the bounds of a strip: (bufs, m, k, end, lo, hi)."""
        ints = [(p, I64) for p in ("m", "k", "end", "lo", "hi")]
        shape = f"{op.tensor.dtype}.{n}.{first.is_lower}"
        f = Func(f"cholesky.{name}.{shape}", [("bufs", PTR), *ints], private=True, inline="never")
        w = _Writer(op, target, f)
        _, m, k, end, lo, hi = f.params
        step(w, w.matrix(m)[2], k, end, lo, hi)
        w.b.ret()
        return f

    square = helper("square", lambda w, u, k, end, lo, hi: w.factor(u, k, end, hi))
    beside = helper("beside", lambda w, u, k, end, lo, hi: w.solve(u, k, end, lo, hi))
    below = helper("below", lambda w, u, k, end, lo, hi: w.update(u, k, end, lo, hi))
    phases = [whole("cholesky_in", lambda w, source, result, u: w.copy_in(source, u))]
    for k in range(0, n, block):
        end, after = min(k + block, n), min(k + block, rows)

        def strips(f: Func, name: str, cost: float, k: int = k, end: int = end, after: int = after) -> Phase:
            w = _Writer(op, target, new_func(name))
            b, parts = w.b, -(-(rows - after) // STRIP)

            def unit(x: Node) -> None:
                m, part = b.binary("sdiv", x, parts), b.binary("srem", x, parts)
                lo = b.add(b.mul(part, STRIP), after)
                hi = b.smin(b.add(lo, STRIP), rows)
                b.call(f.name, (w.func.params[0], m, b.i64(k), b.i64(end), lo, hi))

            return phase(w, batch * parts, cost, unit, f)

        w = _Writer(op, target, new_func("cholesky_square"))
        phases.append(phase(w, batch, block**3 / w.lanes + 2000.0, lambda m, w=w, k=k, end=end, after=after: w.b.call(
            square.name, (w.func.params[0], m, w.b.i64(k), w.b.i64(end), w.b.i64(0), w.b.i64(after))) and None,
            square))  # fmt: skip
        if after < rows:
            phases.append(strips(beside, "cholesky_beside", STRIP * block * block / 2 / first.lanes * 2))
            phases.append(strips(below, "cholesky_below", STRIP * block * (rows - after) / 2 / first.lanes))
    phases.append(whole("cholesky_out", lambda w, source, result, u: w.copy_out(u, result)))
    return Lowered(phases, scratch=batch * first.space, strategy="Cholesky factor",
                   reason=f"blocks of {block} rows, shared by threads")  # fmt: skip
