"""Attention whose softmax is normalized as blocks of columns come: for rows of scores that fit into no cache.

Of each row there are kept the greatest score so far, the sum of the exponentials, and the sums of the product behind. A
block that has a greater one makes smaller what there was before. Everything about a block is in the second-level cache,
and nothing grows with the length of the rows. The results are those of the exact kernels but for rounding
(`fast_math` "online"). Imports ops, kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import TYPE_CHECKING, Final

from hilo.ir.dtypes import f32
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels import contraction
from hilo.kernels.attention import Parts, behind
from hilo.kernels.contraction_algebra import Contraction, Dim, classify, one_stride
from hilo.kernels.contraction_pack import offset
from hilo.kernels.elementwise import new_func
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.kernels.pins import choose
from hilo.loop import index
from hilo.loop.builder import F32, Builder, Node
from hilo.loop.index import Index
from hilo.loop.inline import inline
from hilo.loop.math import exps
from hilo.loop.nodes import Func
from hilo.ops.fusion import Elements
from hilo.ops.rows import analyse
from hilo.ops.softmax import logits
from hilo.record import record, replace

if TYPE_CHECKING:
    from hilo.backend.target import Target

ROWS: Final = 128  # of a block, at most
COLUMNS: Final = 1024  # of a block, at most: with its rows half of a second-level cache
UNITS: Final = 4  # that there should be
SIZE: Final = f32.itemsize


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a fusion of kind "online" (passes/attention.py): f32, one product behind the region."""
    return _Online(op, target).lowered()


@record(eq=False)
class _Block:
    """The products for so many rows and columns."""

    rows: int
    columns: int
    scores: Lowered
    values: Lowered

    @property
    def phases(self) -> list[Phase]:
        return [*self.scores.phases, *self.values.phases]


class _Online(Parts):
    """Writes the function. A unit is a block of rows of one batch."""

    def __init__(self, op: Op, target: Target) -> None:
        super().__init__(op, target)
        (self.last,) = self.parts[2:]
        self.before, self.after = classify(self.first), classify(self.last)
        self.batches, self.size, self.columns, _ = self.before.sizes
        self.width = self.after.sizes[2]
        body = self.region.attrs["body"]
        x = logits(body, analyse(body))
        assert x is not None
        self.logits = x
        self.lanes = target.lanes(f32)

    def lowered(self) -> Lowered:
        most = max(1, min(ROWS, self.batches * self.size // UNITS))
        high = choose("attention.rows", -(-self.size // -(-self.size // most)), (32, 64, 128), least=1, most=self.size)
        wide = -(-self.columns // -(-self.columns // COLUMNS))
        self.high, self.wide = high, wide
        heights, widths = {high, self.size % high or high}, {wide, self.columns % wide or wide}
        self.blocks = {(m, n): self.block_of(m, n) for m in heights for n in widths}
        func = new_func("attention_online")
        b = Builder(func)
        self.b, (self.bufs, begin, end) = b, func.params
        self.scores, self.part, self.sums = (b.alloca(high * n * SIZE) for n in (wide, self.width, self.width))
        self.greatest, self.total, self.factor = (b.alloca(high * SIZE) for _ in range(3))
        parts = [p for x in self.blocks.values() for p in (x.scores, x.values)]
        self.space = b.alloca(max(64, *(p.scratch for p in parts)), RESULT_ALIGN)
        count = -(-self.size // high)

        def unit(u: Node) -> None:
            batch, block = index.delinear(index.loop_var(u, 0, self.batches * count), (self.batches, count))
            row, rest = block * high, self.size % high
            if rest and count > 1:
                more = b.cmp("slt", index.node(b, block), count - 1)
                b.if_(more, lambda: self.rows_of(batch, row, high), lambda: self.rows_of(batch, row, rest))
            else:
                self.rows_of(batch, row, high)

        b.for_(begin, end, 1, unit)
        b.ret()
        helpers: dict[str, Func] = {h.name: h for x in self.blocks.values() for p in x.phases for h in p.helpers}
        block = self.blocks[min(high, self.size), wide]
        cost = sum(p.units * p.unit_cost for p in block.phases) + high * wide * 20.0 / self.lanes
        phase = Phase(func, self.batches * count, cost * self.columns / wide, list(helpers.values()))
        return Lowered([phase], strategy="attention, online",
                       reason=f"rows of {self.columns} scores, {high} x {wide} at a time, normalized as they come")

    def block_of(self, m: int, n: int) -> _Block:
        """The kernels of both products for `m` rows and `n` columns; what lies between them is dense."""
        before, after = self.before, self.after
        rows, columns = one_stride(before.m, "a"), one_stride(before.n, "b")
        along = one_stride(after.k, "b")
        assert rows is not None
        assert columns is not None
        assert along is not None
        scores = self.sums_of(replace(before, m=(Dim(m, rows, 0),), n=(Dim(n, 0, columns),)))
        values = self.sums_of(replace(after, m=(Dim(m, n, 0),), k=(Dim(n, 1, along),)))
        return _Block(m, n, scores, values)

    def sums_of(self, c: Contraction) -> Lowered:
        c = replace(c, batch=())
        return contraction.lower_sums(replace(c, out=TensorType(f32, c.sizes[1:3])), self.target)

    # ---- a block of rows
    def rows_of(self, batch: Index, row: Index, m: int) -> None:
        """All columns for the `m` rows from `row` on of one batch."""
        b = self.b
        b.memset(self.sums, 0, m * self.width * SIZE)
        b.memset(self.total, 0, m * SIZE)

        def none_yet(i: Node) -> None:
            b.store(b.gep(self.greatest, b.mul(i, SIZE)), b.const(-inf, F32))

        b.for_(0, m, 1, none_yet)
        whole = self.columns // self.wide

        def columns(i: Node) -> None:
            self.block(batch, row, index.loop_var(i, 0, whole) * self.wide, self.blocks[m, self.wide])

        b.for_(0, whole, 1, columns)
        if rest := self.columns % self.wide:
            self.block(batch, row, index.constant(whole * self.wide), self.blocks[m, rest])
        result = b.gep(pointer(b, self.bufs, self.count + self.results[self.last, 0]),
                       index.node(b, (batch * self.size + row) * (self.width * SIZE)))  # fmt: skip

        def finish(i: Node) -> None:
            total = b.load(b.gep(self.total, b.mul(i, SIZE)), F32)
            line = b.mul(i, self.width * SIZE)

            def divide(v: Vector) -> None:
                x = self.load(b.gep(self.sums, line), v)
                self.store(b.gep(result, line), b.fdiv(x, b.splat(total, v.lanes)), v)

            self.vectors(self.width, divide)

        b.for_(0, m, 1, finish)

    def block(self, batch: Index, row: Index, column: Index, x: _Block) -> None:
        """Scores, their exponentials, and what these add to the sums."""
        b = self.b
        a = self.start(self.first, 0, batch, row, self.before.m)
        self.call(x.scores, a, self.start(self.first, 1, batch, column, self.before.n), self.scores)
        line = batch * self.size + row
        b.for_(0, x.rows, 1, lambda i: self.row(i, line + index.loop_var(i, 0, x.rows), column, x.columns))
        self.call(x.values, self.scores, self.start(self.last, 1, batch, column, self.after.k), self.part)

        def add(i: Node) -> None:
            factor = b.load(b.gep(self.factor, b.mul(i, SIZE)), F32)
            at = b.mul(i, self.width * SIZE)

            def turn(v: Vector) -> None:
                old = b.fmul(self.load(b.gep(self.sums, at), v), b.splat(factor, v.lanes))
                self.store(b.gep(self.sums, at), b.fadd(old, self.load(b.gep(self.part, at), v)), v)

            self.vectors(self.width, turn)

        b.for_(0, x.rows, 1, add)

    def row(self, i: Node, line: Index, column: Index, n: int) -> None:
        """Exponentials in place of a row's scores in the block. A row that has none but -inf so far adds nothing."""
        b = self.b
        run = b.gep(self.scores, b.mul(i, n * SIZE))
        least = b.const(-inf, F32)

        def see(v: Vector, greatest: Node) -> Node:
            x = self.logit(run, line, column, n, v)
            self.store(run, x, v)
            x = x if v.mask is None else b.select(v.mask, x, least)
            return b.select(b.cmp("ogt", x, greatest), x, greatest)

        at = b.mul(i, SIZE)
        old = b.load(b.gep(self.greatest, at), F32)
        new = self.reduced(n, least, see, lambda x, y: b.select(b.cmp("ogt", x, y), x, y))
        new = b.select(b.cmp("ogt", new, old), new, old)
        shift = b.select(b.cmp("oeq", new, least), b.const(0.0, F32), new)

        def power(v: Vector, total: Node) -> Node:
            x = exps.exp(b, b.fsub(self.load(run, v), b.splat(shift, v.lanes)), upper=False)
            self.store(run, x, v)
            return b.fadd(total, x if v.mask is None else b.select(v.mask, x, b.const(0.0, F32)))

        total = self.reduced(n, b.const(0.0, F32), power, b.fadd)
        factor = exps.exp(b, b.fsub(old, shift), upper=False)
        b.store(b.gep(self.factor, at), factor)
        b.store(b.gep(self.greatest, at), new)
        before = b.load(b.gep(self.total, at), F32)
        b.store(b.gep(self.total, at), b.fadd(b.fmul(before, factor), total))

    def logit(self, run: Node, line: Index, column: Index, n: int, v: Vector) -> Node:
        """What the softmax is of: scores with what the region does to them, for some columns of a row."""
        b, body = self.b, self.region.attrs["body"]
        near = Buffer(run, TensorType(f32, (n,)))
        sources = {}
        for p, o in zip(body.params, self.region.operands, strict=True):
            if behind(o) == (self.first, 0):
                sources[p] = lambda _: near.load(b, (v.at,), v.lanes, v.mask)
            else:
                far = Buffer(self.outside(b, self.bufs, behind(o)), p.tensor, constant=True)
                sources[p] = lambda at, far=far: far.load(b, at, v.lanes, v.mask)
        shape = self.logits.shape
        place = index.delinear(line * self.columns + (column + v.at), shape)
        return b.splat(Elements(b, sources)(self.logits, tuple(place)).re, v.lanes)

    # ---- small things
    def reduced(self, n: int, start: Node, see: Callable[[Vector, Node], Node],
                combine: Callable[[Node, Node], Node]) -> Node:  # fmt: skip
        """`see(vector, so far)` for a run of `n`, and the lanes of what that gives combined."""
        b, lanes = self.b, self.lanes

        def each(vectors: list[Vector], carried: tuple[Node, ...]) -> tuple[Node, ...]:
            wide, one = carried
            for v in vectors:
                if v.lanes == lanes:
                    wide = see(v, wide)
                else:
                    one = see(v, one)
            return wide, one

        init = (b.splat(start, lanes), start)
        wide, one = vector_loop(b, 0, n, n, each, lanes=lanes, masks=self.target.has_masks, init=init)
        while wide.type.lanes > 1:
            half = wide.type.lanes // 2
            wide = combine(*(b.shuffle(wide, wide, range(first, first + half)) for first in (0, half)))
        return combine(wide, one)

    def start(self, o: Op, which: int, batch: Index, along: Index, dims: tuple[Dim, ...]) -> Node:
        """Where operand `which` of a product begins for a block that is `along` in `dims`."""
        b, x, name = self.b, o.operands[which], "ab"[which]
        at = offset(batch, (self.before if o is self.first else self.after).batch, name)
        at = at + along * (one_stride(dims, name) or 0)
        return b.gep(self.outside(b, self.bufs, behind(x)), index.node(b, at * x.dtype.itemsize))

    def call(self, lowered: Lowered, left: Node, right: Node, to: Node) -> None:
        for phase in lowered.phases:
            inline(self.b, phase.func, [left, right, to, self.space], (self.b.i64(0), self.b.i64(phase.units)))

    def vectors(self, n: int, turn: Callable[[Vector], None]) -> None:
        def each(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                turn(v)
            return ()

        vector_loop(self.b, 0, n, n, each, lanes=self.lanes, masks=self.target.has_masks)

    def load(self, run: Node, v: Vector) -> Node:
        at = index.node(self.b, (v.at.first_lane() if v.lanes > 1 else v.at) * SIZE)
        return self.b.load(self.b.gep(run, at), F32.with_lanes(v.lanes), mask=v.mask)

    def store(self, run: Node, x: Node, v: Vector) -> None:
        at = index.node(self.b, (v.at.first_lane() if v.lanes > 1 else v.at) * SIZE)
        self.b.store(self.b.gep(run, at), x, mask=v.mask)
