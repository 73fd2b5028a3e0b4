"""Fast Fourier transforms along the last axis. Imports ops, loop, kernels.

A transform of n1 * n2 elements goes through a matrix of n1 rows: columns are transformed, `lanes` of them side by side
in a vector; what comes out is multiplied by roots of unity and turned around in registers, so that rows too are
transformed side by side; their results lie side by side in memory. The matrix between the two halves is on the stack if
it is small, and units are transforms; else both halves are phases of their own, whose units are blocks of columns and
of rows, `width` vectors each. The matrix consists of such blocks of rows: for each column a vector of `lanes` rows, or
`width` of them. Each half is done in passes (`fft_passes.py`) between buffers that fit a cache.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import typical
from hilo.ir.op import Op
from hilo.kernels.elementwise import new_func, streams
from hilo.kernels.fft_passes import Form, Passes, near
from hilo.kernels.fft_plan import Split, split
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, pointer
from hilo.kernels.transpose import turn
from hilo.loop import index
from hilo.loop.builder import Builder, Node
from hilo.loop.butterfly import ROOT, Complex
from hilo.loop.element import held_type

if TYPE_CHECKING:
    from hilo.backend.target import Target

STACK: Final = 512 << 10  # bytes of a matrix that lies on the stack
ALONE: Final = 1 << 12  # elements of a single transform that one thread does
WIDE: Final = 1 << 12  # elements up to which radices use all of 32 registers; beyond, elements share sets of the cache
PAGE: Final = 4096
RUN: Final = 4  # vectors that one address serves: LLVM's quick ways store what has eight uses
STRATEGY: Final = "fast Fourier transform"
NS_PER_WORK: Final = 0.1  # nanoseconds of one operation on a vector
Each = Callable[[Complex, int], Complex]  # what is done with a vector of a number


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of an `fft` of kind FFT or IFFT along the last axis."""
    t = op.tensor
    if t.size == 0:
        return Lowered([])
    n, rows, part = t.shape[-1], prod(t.shape[:-1]), t.dtype.part
    inverse = op.attrs["fft_type"] == "IFFT"
    lanes = max(1, target.lanes(part) // 2)
    alone = typical(rows) == 1 and n > ALONE
    most = (16 if n <= WIDE else 10) if target.registers >= 32 else 8
    s = split(n, lanes, most, target.l2 // (16 * part.itemsize))
    form = Form(held_type(part), s.lanes, inverse, target.has_fma, target.lanes(part) > 1)
    halves = alone or s.blocks1 * s.n2 * form.step > STACK
    s = s.widened() if halves else s
    tables = (s.tables(1 if inverse else -1, 1 / n if inverse else 1, part.np),)
    if not halves:
        shares = target.registers >= 32 and s.lanes == lanes  # else calls take long beside what they do
        return Lowered([_Writer("fft", op, target, s, form, shares).rows(rows)], tables=tables, strategy=STRATEGY,
                       reason=f"{s.n1} x {s.n2} elements, {s.lanes} side by side; units are transforms")  # fmt: skip
    columns, last = (_Writer(name, op, target, s, form, True) for name in ("fft_columns", "fft_rows"))
    space = -(-s.blocks1 * s.n2 * s.width * form.step // RESULT_ALIGN) * RESULT_ALIGN
    reason = f"{s.n1} x {s.n2} elements, {s.block} together; two phases"
    return Lowered([columns.columns(rows, space), last.blocks(rows, space)], scratch=rows * space, tables=tables,
                   strategy=STRATEGY, reason=reason)  # fmt: skip


class _Writer:
    """Writes one function."""

    def __init__(self, name: str, op: Op, target: Target, s: Split, form: Form, shares: bool) -> None:
        t = op.tensor
        self.s, self.form, self.wide = s, form, s.width * form.step
        self.n, self.element, self.step = s.n1 * s.n2, 2 * form.scalar.size, form.step
        far = s.n1 * self.element % PAGE == 0 and t.nbytes // prod(t.shape[:-1]) > target.l2  # lines of few sets
        whole = self.wide % RESULT_ALIGN == 0 and s.n1 % s.block == 0
        self.streaming = whole and (streams(t, target) or far)
        self.func = new_func(name)
        self.func.attrs["outer"] = True
        b = self.b = Builder(self.func)
        self.source, table, self.result = (pointer(b, self.func.params[0], i) for i in range(3))
        *self.turns, self.first, self.second = (b.gep(table, at * form.scalar.size) for at in s.places[:-1])
        shared = frozenset((*s.first[:-1], *s.second[:-1])) if shares else None
        self.passes = Passes(b, form, s.width, shared)

    # ---- functions
    def rows(self, rows: object) -> Phase:
        """Units are whole transforms."""
        s, b = self.s, self.b
        matrix = b.alloca(s.blocks1 * s.n2 * self.wide)
        self.passes.reserve(max(s.n1, s.n2))

        def unit(u: Node) -> None:
            b.for_(0, s.blocks2, 1, lambda c: self._columns(u, c, matrix))
            b.for_(0, s.blocks1, 1, lambda r: self._rows(u, r, matrix))

        return self._phase(rows, s.work, unit)

    def columns(self, rows: object, space: int) -> Phase:
        """Units are blocks of columns."""
        self.passes.reserve(self.s.n1)
        return self._half(rows, space, self.s.blocks2, self._columns)

    def blocks(self, rows: object, space: int) -> Phase:
        """Units are blocks of rows."""
        self.passes.reserve(self.s.n2)
        return self._half(rows, space, self.s.blocks1, self._rows)

    def _half(self, rows: object, space: int, count: int, half: Callable[[Node, Node, Node], None]) -> Phase:
        """`half` of (transform, block, matrix), `count` blocks for each transform."""
        b = self.b
        scratch = pointer(b, self.func.params[0], 3)

        def unit(u: Node) -> None:
            i = index.loop_var(u, 0, rows * count)  # type: ignore[operator]
            row, block = (index.node(b, x) for x in index.delinear(i, (rows, count)))  # type: ignore[arg-type]
            half(row, block, b.gep(scratch, b.mul(row, space)))

        return self._phase(rows * count, self.s.work / 2 / count, unit)  # type: ignore[operator]

    def _phase(self, units: object, work: float, unit: Callable[[Node], None]) -> Phase:
        b = self.b
        _, begin, end = self.func.params
        b.for_(begin, end, 1, unit)
        if self.streaming:
            b.fence()
        b.ret()
        return Phase(self.func, units, work * NS_PER_WORK)

    # ---- the two halves
    def _columns(self, row: Node, block: Node, matrix: Node) -> None:
        """Transform a block of columns of transform `row`, turn it, write it to the matrix."""
        s, b = self.s, self.b
        column = b.smin(b.mul(block, s.block), s.n2 - s.block)
        source = b.gep(self.source, b.mul(b.add(b.mul(row, self.n), column), self.element))
        place = b.gep(matrix, b.mul(column, self.wide))
        apart = s.n2 * self.element
        if len(s.first) == 1 and s.width == 1 and (s.n1 == s.lanes or self.passes.shared is None):
            xs = self.passes.short(source, s.n1, apart)
            for k in range(s.blocks1):
                first = min(k * s.lanes, s.n1 - s.lanes)
                self._turn(xs[first : first + s.lanes], b.i64(first), block, b.gep(place, k * s.n2 * self.step))
            return
        done = self.passes.transform(s.first, self.first, (source, apart))

        def tile(wide: Node, v: Node, w: Node) -> None:
            """The rows of vector `v` of a wide block, the columns of vector `w`."""
            first = b.add(b.smin(b.mul(wide, s.block), s.n1 - s.block), b.mul(v, s.lanes))
            here = b.gep(done, b.add(b.mul(first, self.wide), b.mul(w, self.step)))
            xs: list[Complex] = []
            for i in range(s.lanes):
                here = near(b, here) if i % RUN == 0 else here
                xs.append(self.passes.arithmetic.load(b.gep(here, i * self.wide), self.step))
            to = b.gep(place, b.mul(wide, s.n2 * self.wide))
            to = b.gep(to, b.add(b.mul(w, s.lanes * self.wide), b.mul(v, self.step)))
            self._turn(xs, first, b.add(b.mul(block, s.width), w), to)

        def tiles(wide: Node) -> None:
            b.for_(0, s.width, 1, lambda v: b.for_(0, s.width, 1, lambda w: tile(wide, v, w)))

        b.for_(0, s.blocks1, 1, tiles)

    def _turn(self, xs: list[Complex], first: Node, vector: Node, to: Node) -> None:
        """Multiply `lanes` rows, from `first` on, of a vector of columns by their roots of unity, turn them around, and
        write them to the matrix from `to` on."""
        b, a, multiplied = self.b, self.passes.arithmetic, self._multiplied(first, vector)
        made = [multiplied(x, i) for i, x in enumerate(xs)]
        for i, x in enumerate(turn(b, made, 2) if len(made) > 1 else made):
            to = near(b, to) if i % RUN == 0 else to
            a.store(b.gep(to, i * self.wide), x, self.step, False)

    def _multiplied(self, first: Node, vector: Node) -> Each:
        """What multiplies row `first` + i by its roots of unity; see `Split.turns`."""
        s, b, a = self.s, self.b, self.passes.arithmetic
        root, pair = ROOT * self.form.scalar.size, 2 * self.step
        mask, shift = s.group - 1, s.group.bit_length() - 1

        def at(number: int, row: Node, size: int) -> Node:
            """In a table for each vector of columns."""
            return b.gep(self.turns[number], b.mul(b.add(b.mul(vector, s.turns[number][1]), row), size))

        if s.has_whole_table:
            vectors = at(0, first, pair)
            return self._run(vectors, lambda place: lambda x, i: a.multiply(x, a.roots(b.gep(place, i * pair))))
        if not s.is_even:

            def each(x: Complex, i: int) -> Complex:
                row = b.add(first, i)
                x = a.multiply(x, a.roots(at(0, b.lshr(row, shift), pair)))
                return a.multiply(x, a.roots(at(1, b.and_(row, mask), pair)))

            return each
        coarse, fine = at(0, b.lshr(first, shift), root), at(1, b.and_(first, mask), root)
        vectors = b.gep(self.turns[2], b.mul(first, pair))

        def run(place: Node) -> Each:
            shared, told = a.root(near(b, coarse)), near(b, fine)

            def each(x: Complex, i: int) -> Complex:
                x = a.multiply(a.multiply(x, shared), a.root(b.gep(told, i * root)))
                return a.multiply(x, a.roots(b.gep(place, i * pair)))

            return each

        return self._run(vectors, run)

    def _run(self, at: Node, begin: Callable[[Node], Each]) -> Each:
        """What `begin` gives for an address, anew for every `RUN` vectors."""
        current: list[Each] = []

        def each(x: Complex, i: int) -> Complex:
            if i % RUN == 0:
                current[:] = [begin(near(self.b, at))]
            return current[0](x, i)

        return each

    def _rows(self, row: Node, block: Node, matrix: Node) -> None:
        """Transform a block of rows of transform `row` from the matrix to the result."""
        s, b = self.s, self.b
        source = b.gep(matrix, b.mul(block, s.n2 * self.wide))
        first = b.smin(b.mul(block, s.block), s.n1 - s.block)
        result = b.gep(self.result, b.mul(b.add(b.mul(row, self.n), first), self.element))
        self.passes.transform(s.second, self.second, (source, self.wide), (result, s.n1 * self.element),
                              self.streaming)  # fmt: skip
