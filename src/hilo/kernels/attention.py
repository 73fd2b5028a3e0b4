"""Attention by blocks of rows: product, row region, product for a few rows at a time. Imports ops, loop, kernels.

A unit is a block of rows of one batch: its scores stay in the second-level cache. Each row gets the operations that the
three kernels one after the other would do, in the same order, so that the result is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hilo.errors import Unsupported
from hilo.ir.op import Op
from hilo.kernels import contraction, rows
from hilo.kernels.contraction_algebra import Contraction, Dim, classify, one_stride
from hilo.kernels.contraction_pack import offset
from hilo.kernels.elementwise import new_func
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import pointer
from hilo.loop import index
from hilo.loop.builder import Builder, Node
from hilo.loop.index import Index
from hilo.loop.inline import inline
from hilo.loop.nodes import Func
from hilo.ops.fusion import contracts
from hilo.ops.row_blocks import for_rows

if TYPE_CHECKING:
    from hilo.backend.target import Target

ROWS: Final = (32, 256)  # of a block: fewest, so that the other operand of a product is worth packing, and most


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a fusion of kind "attention" (passes/attention.py)."""
    return _Attention(op, target).lower()


class _Attention:
    """Holds the three parts, for one block of rows."""

    def __init__(self, op: Op, target: Target) -> None:
        body = op.attrs["body"]
        first, second = (o for o in body.ops if contracts(o))
        (region,) = (o for o in body.ops if o.kind.full_name == "hilo.fusion")
        self.count = len(op.operands)
        self.numbers = {p: i for i, p in enumerate(body.params)}
        self.first, self.second, self.region = first, second, region
        self.products = [classify(first), classify(second)]
        self.size, self.row = first.shape[-2], first.shape[-1] * first.dtype.itemsize
        self.rows = min(self.size, max(ROWS[0], min(ROWS[1], target.l2 // 2 // self.row)))
        self.scores = next(x for x in region.operands if x.tensor.size != 1)
        inner = for_rows(region.attrs["body"], self.scores.shape, self.rows)
        if inner is None:
            raise Unsupported("these rows cannot be computed block by block", op="hilo.fusion", loc=op.loc)
        n = len(region.operands)
        self.parts = [
            contraction.lower_block(first, self.block(0), target),
            rows.lower(inner, range(n), n, target),
            contraction.lower_block(second, self.block(1), target),
        ]

    def block(self, which: int) -> Contraction:
        """A product for one block of rows of one batch."""
        c = self.products[which]
        stride = one_stride(c.m, "a")
        assert stride is not None  # one axis
        return c.block((Dim(self.rows, stride, 0),))

    def lower(self) -> Lowered:
        batches = self.products[0].sizes[0]
        blocks = -(-self.size // self.rows)
        func = new_func("attention")
        b = Builder(func)
        bufs, begin, end = func.params
        place = b.alloca(self.rows * self.row)
        at = self.region.operands.index(self.scores)
        width = self.region.dtype.itemsize * self.scores.shape[-1]
        weights = place if (at, 0) in self.parts[1].in_place else b.alloca(self.rows * width)
        spaces = [b.alloca(p.scratch) if p.scratch else place for p in self.parts]

        def unit(u: Node) -> None:
            batch, block = index.delinear(index.loop_var(u, 0, batches * blocks), (batches, blocks))
            # The last block begins early enough to be whole: rows that two blocks compute get the same values.
            row = b.smin(b.mul(index.node(b, block), self.rows), self.size - self.rows)
            r = index.loop_var(row, 0, self.size - self.rows + 1)
            x, y = (self.operand(b, bufs, self.first, 0, k, batch, r) for k in (0, 1))
            self.call(b, 0, [x, y, place, spaces[0]])
            others = [pointer(b, bufs, self.numbers[o]) if o in self.numbers else place for o in self.region.operands]
            self.call(b, 1, [*others, weights, spaces[1]])
            z = self.operand(b, bufs, self.second, 1, 1, batch, r)
            n = self.products[1].sizes[2]
            to = index.node(b, (batch * self.size + r) * (n * self.second.dtype.itemsize))
            self.call(b, 2, [weights, z, b.gep(pointer(b, bufs, self.count), to), spaces[2]])

        b.for_(begin, end, 1, unit)
        b.ret()
        helpers: dict[str, Func] = {h.name: h for p in self.parts for q in p.phases for h in q.helpers}
        cost = sum(q.units * q.unit_cost for p in self.parts for q in p.phases)
        return Lowered([Phase(func, batches * blocks, cost, list(helpers.values()))])

    def operand(self, b: Builder, bufs: Node, product: Op, which: int, k: int, batch: Index, row: Index) -> Node:
        """Where a product's operand begins for a batch and a row."""
        c, name = self.products[which], "ab"[k]
        o = product.operands[k]
        at = offset(batch, c.batch, name)
        if k == 0:
            at = at + offset(row, c.m, name)
        return b.gep(pointer(b, bufs, self.numbers[o]), index.node(b, at * o.dtype.itemsize))

    def call(self, b: Builder, part: int, pointers: Sequence[Node]) -> None:
        for phase in self.parts[part].phases:
            inline(b, phase.func, pointers, (b.i64(0), b.i64(phase.units)))
