"""Cholesky factors of larger matrices of f32 or f64, by blocks of rows. Imports loop, kernels.

Block by block, its square on the diagonal is factored, the columns beside that are solved for, and what the block's
rows contribute is taken from all rows below; square and columns go by smaller blocks inside. Where there are few
matrices these steps are phases of their own. The next block's square, for which all threads would have to wait, is a
unit beside those that do the rest below.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from hilo.ir.dtypes import DType, f32, f64
from hilo.ir.op import Op
from hilo.kernels.cholesky_code import NS_PER_WORK, TURNED, Writer
from hilo.kernels.elementwise import new_func
from hilo.kernels.lowered import Lowered, Phase
from hilo.loop.builder import I64, PTR, Func, Node

if TYPE_CHECKING:
    from hilo.backend.target import Target

SMALLEST: Final = 48  # rows of a matrix that is done by blocks
ALONE: Final = 256  # rows of a matrix that threads share
ENOUGH: Final = 4  # matrices that are units
STRIPS: Final = 4  # of columns, at least, of a unit
MOST_UNITS: Final = 16
MOVED_NS: Final = 0.1  # nanoseconds of an element that is copied


def suits(dtype: DType, n: object, batch: object) -> bool:
    """Whether matrices of n rows are done by blocks."""
    return dtype in (f32, f64) and isinstance(n, int) and isinstance(batch, int) and n >= SMALLEST


def lower(op: Op, batch: int, target: Target) -> Lowered:
    """The kernel of a `cholesky` that `suits`."""
    if batch < ENOUGH and op.tensor.shape[-1] >= ALONE:
        return _Shared(op, batch, target).lowered()
    w = Writer(op, target, new_func("cholesky"))
    return Lowered([w.matrices(batch)], scratch=batch * w.space, strategy="Cholesky factor",
                   reason=f"blocks of {w.block} rows; units are matrices")  # fmt: skip


class _Shared:
    """The phases for few large matrices. A unit does every so manieth strip of columns (of the operand and the result:
    the rows that these are, or become), in all phases the same ones, so that what it reads is mostly its own.

    The phases of all blocks call the same functions of a matrix, a block's rows, and more: (bufs, m, k, end, ...).
    """

    def __init__(self, op: Op, batch: int, target: Target) -> None:
        self.op, self.batch, self.target = op, batch, target
        w = self.new("cholesky_in")
        self.copy, self.n, self.rows, self.block, self.wide = w, w.n, w.rows, w.block, w.wide
        self.units = max(2, min(MOST_UNITS, w.rows // (STRIPS * w.wide) // 2 * 2))
        self.stride = self.units * w.wide
        self.factor = self.helper("factor", 3, lambda w, m, k, end, first, last, stride: w.factor(
            w.matrix(m)[2], k, end, (first, last), stride))  # fmt: skip
        self.update = self.helper("update", 5, lambda w, m, k, end, top, bottom, first, last, stride: w.update(
            w.matrix(m)[2], k, end, (top, bottom), (first, last), stride))  # fmt: skip
        self.beside = self.helper("beside", 2, self.write_beside)
        self.below = self.helper("below", 4, self.write_below)
        self.beside.attrs["outer"] = self.below.attrs["outer"] = True

    def new(self, name: str) -> Writer:
        return Writer(self.op, self.target, new_func(name))

    def lowered(self) -> Lowered:
        """The kernel."""
        n, rows, block, out = self.n, self.rows, self.block, self.new("cholesky_out")
        blocks = [(k, min(k + block, n), min(k + block, rows)) for k in range(0, n, block)]
        phases = [self.copies(self.copy, rows, lambda m, first: self.copy.copy_in(m[0], m[2], first)),
                  self.calls("first", 1, self.square_cost(), self.factor,
                             lambda _: (0, min(block, n), 0, min(block, rows), self.wide))]  # fmt: skip
        for (k, end, after), (_, stop, behind) in pairwise(blocks):
            phases += self.beside_phase(k, end, after), self.below_phase(k, end, after, stop, behind)
        phases.append(self.copies(out, n, lambda m, first: out.copy_out(m[2], m[1], first)))
        return Lowered(phases, scratch=self.batch * self.copy.space, strategy="Cholesky factor",
                       reason=f"blocks of {block} rows, shared by threads")  # fmt: skip

    # ---- phases
    def phase(self, w: Writer, parts: int, cost: float, work: Callable[[Node, Node], None]) -> Phase:
        """A phase of `parts` units for each matrix, of `cost` nanoseconds in all: `work(matrix, part)`."""
        b, (_, begin, end) = w.b, w.func.params

        def unit(x: Node) -> None:
            if self.batch == 1:
                work(b.i64(0), x)
            else:
                work(b.binary("sdiv", x, parts), b.binary("srem", x, parts))

        b.for_(begin, end, 1, unit)
        b.ret()
        w.func.attrs["outer"] = w.lanes >= TURNED  # all that takes long is in functions that it calls
        return Phase(w.func, self.batch * parts, cost / parts)

    def copies(self, w: Writer, rows: int, copy: Callable[[tuple[Node, Node, Node], Node], None]) -> Phase:
        """A phase that copies all rows."""

        def strips(m: Node, part: Node) -> None:
            places = w.matrix(m)
            w.b.for_(self.first_of(w, part, w.b.i64(0)), rows, self.stride, lambda first: copy(places, first))

        return self.phase(w, self.units, self.n * self.n * MOVED_NS, strips)

    def calls(self, name: str, parts: int, cost: float, f: Func,
              numbers: Callable[[Node], tuple[Node | int, ...]]) -> Phase:  # fmt: skip
        """A phase whose units are calls of a function with these numbers, behind the matrix."""
        w = self.new(f"cholesky_{name}")
        phase = self.phase(w, parts, cost, lambda m, part: self.call(w, f, m, *numbers(part)))
        phase.helpers = [self.factor, self.update, self.beside, self.below]
        return phase

    def beside_phase(self, k: int, end: int, after: int) -> Phase:
        """The columns beside the square of rows k..end."""
        cost = self.block * self.block / 2 * (self.rows - after) / self.copy.lanes * NS_PER_WORK
        return self.calls("beside", self.units, cost, self.beside, lambda part: (k, end, part, after))

    def below_phase(self, k: int, end: int, after: int, stop: int, behind: int) -> Phase:
        """What rows k..end contribute to all below; and the square of the following block, as far as `behind`."""
        rest = self.rows - after
        cost = self.block * rest * rest / 2 / self.copy.lanes * NS_PER_WORK + self.square_cost()
        parts = 1 + self.units if behind < self.rows else 1
        return self.calls("below", parts, cost, self.below, lambda part: (k, end, part, after, stop, behind))

    def square_cost(self) -> float:
        """Nanoseconds (estimated) of factoring a square: rows that wait for one another."""
        return self.block * (self.block / self.copy.lanes * 4.0 + 60.0) * NS_PER_WORK

    # ---- functions
    def helper(self, name: str, count: int, write: Callable[..., None]) -> Func:
        """One of the functions that phases call, of `count` numbers behind a block's rows."""
        params = [("bufs", PTR), *((p, I64) for p in ("m", "k", "end")), *((f"number{i}", I64) for i in range(count))]
        shape = f"{self.op.tensor.dtype}.{self.n}.{self.copy.is_lower}"
        w = Writer(self.op, self.target, Func(f"cholesky.{name}.{shape}", params, private=True, inline="never"))
        write(w, *w.func.params[1:])
        w.b.ret()
        return w.func

    def write_beside(self, w: Writer, m: Node, k: Node, end: Node, part: Node, after: Node) -> None:
        """A unit's columns of rows k..end, from `after` on."""
        self.call(w, self.factor, m, k, end, self.first_of(w, part, after), self.rows, self.stride)

    def write_below(self, w: Writer, m: Node, k: Node, end: Node, part: Node, after: Node, stop: Node,
                    behind: Node) -> None:  # fmt: skip
        """What rows k..end contribute to columns from `behind` on; unit 0: to the square after..stop, then factored."""

        def square() -> None:
            self.call(w, self.update, m, k, end, after, behind, after, behind, self.wide)
            self.call(w, self.factor, m, after, stop, after, behind, self.wide)

        def columns() -> None:
            first = self.first_of(w, w.b.sub(part, 1), behind)
            self.call(w, self.update, m, k, end, after, self.rows, first, self.rows, self.stride)

        w.b.if_(w.b.cmp("eq", part, 0), square, columns)

    def first_of(self, w: Writer, part: Node, after: Node) -> Node:
        """The first of a unit's columns from `after` on. The units of one of two threads have every other strip."""
        b = w.b
        half = b.cmp("slt", part, self.units // 2)
        own = b.mul(b.sub(b.mul(part, 2), b.select(half, b.i64(0), b.i64(self.units - 1))), self.wide)
        past = b.binary("srem", b.add(b.sub(own, after), self.rows * self.stride), self.stride)
        return b.add(after, past)

    def call(self, w: Writer, f: Func, *numbers: Node | int) -> None:
        w.b.call(f.name, (w.func.params[0], *(w.b.i64(x) if isinstance(x, int) else x for x in numbers)))
