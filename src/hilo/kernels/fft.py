"""Fast Fourier transforms along the last axis. Imports ops, loop, kernels.

A transform of n1 * n2 elements goes through a matrix of n1 rows: columns are transformed, `lanes` of them side by side
in a vector; what comes out is multiplied by roots of unity and turned around in registers, so that rows too are
transformed side by side; their results lie side by side in memory. Between passes, elements are vectors of real and of
imaginary parts in a buffer that fits a cache. The matrix between the two halves is on the stack if it is small, and
units are transforms; else both halves are phases of their own, whose units are blocks of columns and of rows.

An inverse transform is one with real and imaginary parts exchanged on both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from math import prod
from typing import TYPE_CHECKING, Final

import numpy as np

from hilo.ir.dims import typical
from hilo.ir.dtypes import DType
from hilo.ir.op import Op
from hilo.kernels.butterfly import Butterfly, Complex
from hilo.kernels.elementwise import new_func, streams
from hilo.kernels.fft_plan import Split, split
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, pointer
from hilo.kernels.transpose import turn
from hilo.loop import index
from hilo.loop.builder import I64, PTR, Builder, Func, Node
from hilo.loop.element import held_type

if TYPE_CHECKING:
    from hilo.backend.target import Target

STACK: Final = 512 << 10  # bytes of a matrix that lies on the stack
ALONE: Final = 1 << 12  # elements of a single transform that one thread does
PAGE: Final = 4096
STRATEGY: Final = "fast Fourier transform"
NS_PER_WORK: Final = 0.35  # nanoseconds of one operation on a vector
Load = Callable[[Node, "Node | int"], Complex]  # the vectors at the sum of two positions, the second known long before
Store = Callable[[Node, "Node | int", Complex], None]


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of an `fft` of kind FFT or IFFT along the last axis."""
    t = op.tensor
    if t.size == 0:
        return Lowered([])
    n, rows = t.shape[-1], prod(t.shape[:-1])
    part = t.dtype.part
    alone = typical(rows) == 1 and n > ALONE

    def planned(most: int) -> Split:
        return split(n, target.lanes(part), most, target.l2 // (8 * part.itemsize))

    s = planned(16 if target.registers >= 32 and not alone else 8)
    if not alone and _matrix(s, part) <= STACK:
        return Lowered([_Writer("fft", op, target, s).rows(rows)], tables=(_flat(s, part.np),), strategy=STRATEGY,
                       reason=f"{s.n1} x {s.n2} elements, {s.lanes} side by side; units are transforms")  # fmt: skip
    s = planned(8)
    matrix = _matrix(s, part)
    tables = (_flat(s, part.np),)
    columns, last = (_Writer(name, op, target, s) for name in ("fft_columns", "fft_rows"))
    space = -(-matrix // RESULT_ALIGN) * RESULT_ALIGN
    return Lowered([columns.columns(rows, space), last.blocks(rows, space)], scratch=rows * space, tables=tables,
                   strategy=STRATEGY, reason=f"{s.n1} x {s.n2} elements, {s.lanes} together; two phases")  # fmt: skip


def _matrix(s: Split, part: DType) -> int:
    """Bytes of the matrix between the halves."""
    return s.blocks1 * s.n2 * 2 * s.lanes * part.itemsize


def _flat(s: Split, part: np.dtype) -> np.ndarray:
    """All tables in one array."""
    return np.concatenate([x.astype(part).reshape(-1) for x in s.tables])


class _Writer:
    """Writes one function."""

    def __init__(self, name: str, op: Op, target: Target, s: Split) -> None:
        t = op.tensor
        self.s, self.op = s, op
        self.inverse = op.attrs["fft_type"] == "IFFT"
        self.n = s.n1 * s.n2
        self.size = t.dtype.part.itemsize
        self.scalar = held_type(t.dtype.part)
        self.vector = self.scalar.with_lanes(s.lanes)
        self.step = s.lanes * self.size  # bytes of a vector
        far = s.n1 * 2 * self.size % PAGE == 0 and t.shape[-1] * 2 * self.size > target.l2  # lines of few sets
        self.streaming = (streams(t, target) or far) and 2 * self.step >= RESULT_ALIGN
        self.func = new_func(name)
        b = self.b = Builder(self.func)
        self.butterfly = Butterfly(b, target.has_fma)
        bufs = self.func.params[0]
        self.source, self.table, self.result = (pointer(b, bufs, i) for i in range(3))
        counts = [x.size for x in s.tables]
        self.tables = [b.gep(self.table, sum(counts[:i]) * self.size) for i in range(len(counts))]
        spaces = max(s.n1 if name != "fft_rows" else 0, s.n2 if name != "fft_columns" else 0)
        self.spaces = [b.alloca(spaces * 2 * self.step) for _ in range(2)]

    # ---- functions
    def rows(self, rows: object) -> Phase:
        """Units are whole transforms."""
        s, b = self.s, self.b
        matrix = b.alloca(_matrix(s, self.op.tensor.dtype.part))

        def unit(u: Node) -> None:
            b.for_(0, s.blocks2, 1, lambda c: self._columns(u, c, matrix))
            b.for_(0, s.blocks1, 1, lambda r: self._rows(u, r, matrix))

        return self._phase(rows, s.work, unit)

    def columns(self, rows: object, space: int) -> Phase:
        """Units are blocks of columns."""
        b, count = self.b, self.s.blocks2
        scratch = pointer(b, self.func.params[0], 3)

        def unit(u: Node) -> None:
            row, block = self._item(u, rows, count)
            self._columns(row, block, b.gep(scratch, b.mul(row, space)))

        return self._phase(rows * count, self.s.work / 2 / count, unit)  # type: ignore[operator]

    def blocks(self, rows: object, space: int) -> Phase:
        """Units are blocks of rows."""
        b, count = self.b, self.s.blocks1
        scratch = pointer(b, self.func.params[0], 3)

        def unit(u: Node) -> None:
            row, block = self._item(u, rows, count)
            self._rows(row, block, b.gep(scratch, b.mul(row, space)))

        return self._phase(rows * count, self.s.work / 2 / count, unit)  # type: ignore[operator]

    def _item(self, u: Node, rows: object, count: int) -> tuple[Node, Node]:
        i = index.loop_var(u, 0, rows * count)  # type: ignore[operator]
        row, block = index.delinear(i, (rows, count))  # type: ignore[arg-type]
        return index.node(self.b, row), index.node(self.b, block)

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
        """Transform a block of columns of transform `row`, turn it, write it to the matrix block of rows by block."""
        s, b = self.s, self.b
        column = b.smin(b.mul(block, s.lanes), s.n2 - s.lanes)
        source = b.gep(self.source, b.mul(b.add(b.mul(row, self.n), column), 2 * self.size))

        def load(i: Node, far: Node | int) -> Complex:
            return self._exchanged(self._split(self._at(source, i, far, s.n2 * 2 * self.size)))

        done = self._passes(s.first, self.tables[0], load)
        place = b.gep(matrix, b.mul(column, 2 * self.step))

        def tile(k: Node) -> None:
            first = b.smin(b.mul(k, s.lanes), s.n1 - s.lanes)
            here = b.gep(done, b.mul(first, 2 * self.step))
            made = [self.butterfly.multiply(self._load(b.gep(here, i * 2 * self.step)), self._turn(k, first, column, i))
                    for i in range(s.lanes)]  # fmt: skip
            to = b.gep(place, b.mul(k, s.n2 * 2 * self.step))
            for part in (0, 1):
                for i, v in enumerate(turn(b, [x[part] for x in made])):
                    b.store(b.gep(to, (2 * i + part) * self.step), v, align=self.step)

        b.for_(0, s.blocks1, 1, tile)

    def _turn(self, block: Node, first: Node, column: Node, i: int) -> Complex:
        """The roots of unity that row `first` + i, of a block, is multiplied by, from `column` on."""
        s, b = self.s, self.b
        at = b.gep(self.tables[2], b.mul(column, self.size))

        def load(at: Node) -> Complex:
            return tuple(b.load(b.gep(at, part * s.n2 * self.size), self.vector, align=self.size, invariant=True)
                         for part in (0, 1))  # type: ignore[return-value]  # fmt: skip

        row_bytes = 2 * s.n2 * self.size
        if s.has_whole_table:
            return load(b.gep(b.gep(at, b.mul(first, row_bytes)), i * row_bytes))
        coarse = load(b.gep(at, b.mul(block, row_bytes)))
        if i == 0:
            return coarse
        fine = load(b.gep(b.gep(self.tables[3], b.mul(column, self.size)), i * row_bytes))
        return self.butterfly.multiply(coarse, fine)

    def _rows(self, row: Node, block: Node, matrix: Node) -> None:
        """Transform a block of rows of transform `row` from the matrix to the result."""
        s, b = self.s, self.b
        source = b.gep(matrix, b.mul(block, s.n2 * 2 * self.step))
        first = b.smin(b.mul(block, s.lanes), s.n1 - s.lanes)
        result = b.gep(self.result, b.mul(b.add(b.mul(row, self.n), first), 2 * self.size))
        aligned = s.n1 % s.lanes == 0

        def store(i: Node, far: Node | int, x: Complex) -> None:
            if self.inverse:
                x = b.fmul(x[0], 1.0 / self.n), b.fmul(x[1], 1.0 / self.n)
            self._join(self._at(result, i, far, s.n1 * 2 * self.size), self._exchanged(x), aligned)

        self._passes(s.second, self.tables[1], self._from(source), store)

    def _passes(self, radices: tuple[int, ...], table: Node, load: Load, store: Store | None = None) -> Node:
        """A transform from `load` to `store`, or to one of the buffers, which is what this gives."""
        b, n, stride = self.b, prod(radices), 1
        for number, r in enumerate(radices):
            to = self.spaces[number % 2]
            last = number == len(radices) - 1
            if number and not last:
                self._shared_pass(r, n // r, stride, table, self.spaces[1 - number % 2], to)
            else:
                self._pass(r, n // r, stride, table, load, store if store is not None and last else self._to(to))
            table = b.gep(table, n // r * (r - 1) * 2 * self.size)
            load = self._from(to)
            n, stride = n // r, stride * r
        return self.spaces[(len(radices) - 1) % 2]

    def _shared_pass(self, r: int, count: int, stride: int, table: Node, source: Node, to: Node) -> None:
        """A pass from one buffer to the other: by a function for all that have this radix."""
        name = f"fft_pass_{self.vector!r}_{r}"
        helpers = self.func.helpers
        assert helpers is not None
        if name not in helpers:
            places = [(x, PTR) for x in ("table", "source", "to")]
            func = helpers[name] = Func(name, [*places, ("count", I64), ("stride", I64)], inline="never")
            w = copy(self)
            w.func, w.b = func, Builder(func)
            w.butterfly = Butterfly(w.b, self.butterfly.fused)
            roots, here, there, turns, run = func.params
            w._pass(r, turns, run, roots, w._from(here), w._to(there))
            w.b.ret()
        self.b.call(name, (table, source, to, self.b.i64(count), self.b.i64(stride)))

    def _pass(self, r: int, count: Node | int, stride: Node | int, table: Node, load: Load, store: Store) -> None:
        """Butterflies of r elements: `count` times `stride` of them. Those of one `count` share their roots."""
        b = self.b

        def times(k: int, *numbers: Node | int) -> Node | int:
            if all(isinstance(n, int) for n in numbers):
                return k * prod(numbers)  # type: ignore[arg-type]
            found = b.i64(k)
            for n in numbers:
                found = b.mul(found, n)
            return found

        def butterflies(p: Node) -> None:
            roots = b.gep(table, b.mul(p, (r - 1) * 2 * self.size))
            turns = [self._pair(b.gep(roots, (k - 1) * 2 * self.size)) for k in range(1, r)] if count != 1 else []
            here, there = b.mul(p, stride), b.mul(b.mul(p, r), stride)

            def one(q: Node) -> None:
                at, to = b.add(q, here), b.add(q, there)
                xs = [load(at, times(k, count, stride)) for k in range(r)]
                for k, x in enumerate(self.butterfly.transform(xs)):
                    out = self.butterfly.multiply(x, turns[k - 1]) if turns and k else x
                    store(to, times(k, stride), out)

            b.for_(0, stride, 1, one)

        b.for_(0, count, 1, butterflies)

    # ---- memory
    def _pair(self, at: Node) -> Complex:
        """A root of unity, in all lanes."""
        b = self.b
        re, im = (b.load(b.gep(at, part * self.size), self.scalar, invariant=True) for part in (0, 1))
        return b.splat(re, self.s.lanes), b.splat(im, self.s.lanes)

    def _load(self, at: Node) -> Complex:
        re, im = (self.b.load(self.b.gep(at, part * self.step), self.vector, align=self.step) for part in (0, 1))
        return re, im

    def _at(self, base: Node, i: Node, far: Node | int, size: int) -> Node:
        """The address of an element of `size` bytes."""
        b = self.b
        return b.gep(b.gep(base, b.mul(i, size)), far * size if isinstance(far, int) else b.mul(far, size))

    def _from(self, space: Node) -> Load:
        return lambda i, far: self._load(self._at(space, i, far, 2 * self.step))

    def _to(self, space: Node) -> Store:
        b = self.b

        def store(i: Node, far: Node | int, x: Complex) -> None:
            at = self._at(space, i, far, 2 * self.step)
            for part, v in enumerate(x):
                b.store(b.gep(at, part * self.step), v, align=self.step)

        return store

    def _exchanged(self, x: Complex) -> Complex:
        return (x[1], x[0]) if self.inverse else x

    def _split(self, at: Node) -> Complex:
        """The real and the imaginary parts of `lanes` numbers in memory."""
        b, lanes = self.b, self.s.lanes
        if lanes == 1:
            return b.load(at, self.scalar), b.load(b.gep(at, self.size), self.scalar)
        v = b.load(at, self.scalar.with_lanes(2 * lanes), align=self.size)
        return b.shuffle(v, v, range(0, 2 * lanes, 2)), b.shuffle(v, v, range(1, 2 * lanes, 2))

    def _join(self, at: Node, x: Complex, aligned: bool) -> None:
        """Store `lanes` numbers."""
        b, lanes = self.b, self.s.lanes
        if lanes == 1:
            b.store(at, x[0])
            b.store(b.gep(at, self.size), x[1])
            return
        v = b.shuffle(x[0], x[1], [k // 2 + k % 2 * lanes for k in range(2 * lanes)])
        align = min(2 * self.step, RESULT_ALIGN) if aligned else self.size
        b.store(at, v, align=align, nontemporal=self.streaming and aligned)
