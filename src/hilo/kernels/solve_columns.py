"""Triangular solves for many columns of f32 or f64, in tiles of registers. Imports loop, kernels.

The coefficients are copied once: those of a few rows side by side, so that what a step of a tile reads of them lies
together, whichever triangle it is and whether it is transposed. A unit then takes a strip of columns, two vectors wide,
to memory of its own, and solves for some rows at a time: products with all rows known before, then one row after the
other. Every element has its products taken away in the order of rows, however columns are shared.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hilo.ir.dtypes import f32, f64
from hilo.ir.op import Op
from hilo.kernels.elementwise import new_func
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import pointer
from hilo.kernels.transpose import turn
from hilo.loop.builder import Builder, Func, Node
from hilo.loop.element import held_type

if TYPE_CHECKING:
    from hilo.backend.target import Target

SMALLEST: Final = 128  # rows, from which on copies pay: a row's columns stay in no first-level cache otherwise
ROWS: Final = 8  # of a tile, at most
STACK_BYTES: Final = 256 << 10  # of a strip on the stack; a longer one is in scratch
NS_PER_WORK: Final = 0.3  # nanoseconds of one operation on a vector
MOVED_NS: Final = 0.1  # nanoseconds of an element that is copied


def suits(op: Op, target: Target) -> bool:
    """Whether there are more columns than one vector has, and rows enough to pay for copies."""
    t = op.tensor
    if t.dtype not in (f32, f64) or not all(isinstance(n, int) for n in t.shape):
        return False
    n, columns = t.shape[-2:]
    lanes = target.lanes(t.dtype)
    return lanes > 1 and columns > lanes and n >= SMALLEST


def lower(op: Op, batch: int, target: Target) -> Lowered:
    """The kernel of a `triangular_solve` from the left that `suits`."""
    copy, solve = _Writer(op, target, new_func("solve_copy")), _Writer(op, target, new_func("solve"))
    phases = [copy.copies(batch), solve.strips(batch)]
    copy.func.attrs["outer"] = True  # it takes little time, however good its code is
    return Lowered(phases, scratch=batch * (copy.space + copy.strip_space), strategy="triangular solve",
                   reason=f"strips of {copy.wide} columns, {copy.rows} rows at a time")  # fmt: skip


def _padded(n: int, unit: int) -> int:
    return -(-n // unit) * unit


class _Writer:
    """Writes a function over matrices. Rows are counted as they lie; `down` says that the first is solved for first."""

    def __init__(self, op: Op, target: Target, func: Func) -> None:
        t = op.tensor
        self.n, self.columns = t.shape[-2:]
        self.is_turned = op.attrs["transpose_a"] != "NO_TRANSPOSE"
        self.down = op.attrs["lower"] != self.is_turned
        self.unit_diagonal = op.attrs["unit_diagonal"]
        self.size = t.dtype.itemsize
        self.scalar = held_type(t.dtype)
        self.lanes = target.lanes(t.dtype)
        self.vector = self.scalar.with_lanes(self.lanes)
        self.fused = target.has_fma
        self.wide = 2 * self.lanes
        self.rows = min(ROWS if target.registers >= 32 else ROWS // 2, self.lanes)
        self.all_rows = _padded(self.n, self.rows)
        self.group = self.all_rows * self.rows * self.size  # bytes of the coefficients of a tile's rows
        self.space = _padded(self.all_rows // self.rows * self.group, 64)
        self.strips_of_one = -(-self.columns // self.wide)
        self.strip_bytes = self.all_rows * self.wide * self.size
        self.strip_space = self.strips_of_one * self.strip_bytes if self.strip_bytes > STACK_BYTES else 0
        self.func = func
        b = self.b = Builder(func)
        self.matrices, self.givens, self.results, self.scratch = (pointer(b, func.params[0], i) for i in range(4))

    def phase(self, units: int, cost: float) -> Phase:
        self.b.ret()
        return Phase(self.func, units, cost)

    # ---- coefficients
    def copies(self, batch: int) -> Phase:
        """The phase that copies coefficients: a unit those of a tile's rows."""
        b, groups = self.b, self.all_rows // self.rows
        _, begin, end = self.func.params

        def unit(x: Node) -> None:
            m, g = b.binary("sdiv", x, groups), b.binary("srem", x, groups)
            a = b.gep(self.matrices, b.mul(m, self.n * self.n * self.size))
            to = b.gep(b.gep(self.scratch, b.mul(m, self.space)), b.mul(g, self.group))
            i = b.mul(g, self.rows)
            after = b.add(i, self.rows)
            first, last = (b.i64(0), after) if self.down else (i, b.i64(self.all_rows))
            b.for_(first, last, self.rows, lambda p: self._copy_tile(a, to, i, p))

        b.for_(begin, end, 1, unit)
        return self.phase(batch * groups, self.all_rows * self.rows / 2 * MOVED_NS)

    def _copy_tile(self, a: Node, to: Node, i: Node, p: Node) -> None:
        """Coefficients of rows from i on, of known rows from p on; where the matrix ends, those of an identity."""
        b, rows, n = self.b, self.rows, self.n
        t = self.scalar.with_lanes(rows)
        down, across = (p, i) if self.is_turned else (i, p)  # where the tile is in the matrix
        inside = b.and_(b.cmp("sle", i, n - rows), b.cmp("sle", p, n - rows))

        def place(k: Node) -> Node:
            return b.gep(to, b.mul(k, rows * self.size))

        def source(r: Node, c: Node) -> Node:
            return b.gep(b.gep(a, b.mul(r, n * self.size)), b.mul(c, self.size))

        def whole() -> None:
            loaded = [b.load(source(b.add(down, r), across), t, align=self.size) for r in range(rows)]
            for r, x in enumerate(loaded if self.is_turned else turn(b, loaded)):
                b.store(place(b.add(p, r)), x, align=rows * self.size)

        def part() -> None:
            def element(k: Node, r: Node) -> None:
                row = b.add(i, r)
                same = b.convert("uitofp", b.convert("zext", b.cmp("eq", row, k), "i32"), self.scalar.scalar)
                at = b.gep(place(k), b.mul(r, self.size))
                b.store(at, same)

                def copy() -> None:
                    b.store(at, b.load(source(k, row) if self.is_turned else source(row, k), self.scalar))

                b.if_(b.and_(b.cmp("slt", row, n), b.cmp("slt", k, n)), copy)

            b.for_(p, b.add(p, rows), 1, lambda k: b.for_(0, rows, 1, lambda r: element(k, r)) and None)

        b.if_(inside, whole, part)

    # ---- columns
    def strips(self, batch: int) -> Phase:
        """The phase that solves: a unit for a strip of columns."""
        b, n = self.b, self.n
        _, begin, end = self.func.params
        strips, row = self.strips_of_one, self.columns * self.size
        stack = None if self.strip_space else b.alloca(self.strip_bytes, 64)

        def unit(x: Node) -> None:
            m, strip = b.binary("sdiv", x, strips), b.binary("srem", x, strips)
            known = stack or b.gep(self.scratch, b.add(b.mul(x, self.strip_bytes), batch * self.space))
            at = b.add(b.mul(m, n * row), b.mul(strip, self.wide * self.size))
            coefficients = b.gep(self.scratch, b.mul(m, self.space))
            self._copy(b.gep(self.givens, at), row, known, strip, inward=True)
            b.memset(self._known(known, b.i64(n)), 0, (self.all_rows - n) * self.wide * self.size)

            def rows(k: Node) -> None:
                i = k if self.down else b.sub(self.all_rows - self.rows, k)
                self._solve(b.gep(coefficients, b.mul(i, self.all_rows * self.size)), known, i)

            b.for_(0, self.all_rows, self.rows, rows)
            self._copy(b.gep(self.results, at), row, known, strip, inward=False)

        b.for_(begin, end, 1, unit)
        return self.phase(batch * strips, n * (n * NS_PER_WORK + 2 * self.wide * MOVED_NS))

    def _copy(self, outside: Node, row: int, known: Node, strip: Node, *, inward: bool) -> None:
        """A strip's columns from memory of the program, in rows so many bytes apart, to memory of the unit, or back."""
        b, width = self.b, self.wide * self.size
        left = b.sub(self.columns * self.size, b.mul(strip, width))

        def whole(i: Node) -> None:
            there, here = b.gep(outside, b.mul(i, row)), self._known(known, i)
            for h in (0, self.lanes * self.size):
                if inward:
                    b.store(b.gep(here, h), b.load(b.gep(there, h), self.vector, align=self.size), align=self._align)
                else:
                    b.store(b.gep(there, h), b.load(b.gep(here, h), self.vector, align=self._align), align=self.size)

        def part(i: Node) -> None:
            there, here = b.gep(outside, b.mul(i, row)), self._known(known, i)
            if inward:
                b.memset(here, 0, width)
                b.memcpy(here, there, left)
            else:
                b.memcpy(there, here, left)

        b.if_(b.cmp("sge", left, width), lambda: b.for_(0, self.n, 1, whole) and None,
              lambda: b.for_(0, self.n, 1, part) and None)  # fmt: skip

    def _solve(self, coefficients: Node, known: Node, i: Node) -> None:
        """Solve for the rows from i on."""
        b, rows = self.b, self.rows
        rows_here = [self._known(known, b.add(i, r)) for r in range(rows)]
        places = [b.gep(p, h * self.lanes * self.size) for p in rows_here for h in (0, 1)]

        def factor(k: Node, r: int) -> Node:
            at = b.gep(coefficients, b.add(b.mul(k, rows * self.size), r * self.size))
            return b.splat(b.load(at, self.scalar), self.lanes)

        def product(turn: Node, *sums: Node) -> tuple[Node, ...]:
            k = turn if self.down else b.sub(self.n - 1, turn)
            here = self._known(known, k)
            right = [b.load(b.gep(here, h * self.lanes * self.size), self.vector, align=self._align) for h in (0, 1)]
            factors = [factor(k, r) for r in range(rows)]
            return tuple(self._minus(s, factors[x // 2], right[x % 2]) for x, s in enumerate(sums))

        count = i if self.down else b.sub(self.n - rows, i)
        sums = b.for_(0, count, 1, product, [b.load(p, self.vector, align=self._align) for p in places])
        done: dict[int, list[Node]] = {}
        for r in range(rows) if self.down else reversed(range(rows)):
            x = list(sums[2 * r : 2 * r + 2])
            for q, known_row in done.items():
                f = factor(b.add(i, q), r)
                x = [self._minus(s, f, y) for s, y in zip(x, known_row, strict=True)]
            if not self.unit_diagonal:
                pivot = factor(b.add(i, r), r)
                x = [b.fdiv(s, pivot) for s in x]
            for p, s in zip(places[2 * r :], x, strict=False):
                b.store(p, s, align=self._align)
            done[r] = x

    @property
    def _align(self) -> int:
        return self.lanes * self.size

    def _known(self, known: Node, i: Node) -> Node:
        """Where row i of a unit's strip lies."""
        return self.b.gep(known, self.b.mul(i, self.wide * self.size))

    def _minus(self, total: Node, x: Node, y: Node) -> Node:
        b = self.b
        return b.fma(x, b.fneg(y), total) if self.fused else b.fsub(total, b.fmul(x, y))
