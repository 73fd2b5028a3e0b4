"""Rows of the inputs of a sort in memory: where they lie, their elements as bits. Imports ops, loop, kernels.

Elements move as the bits that they are in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from hilo.ir.dtypes import DType
from hilo.ir.op import Op
from hilo.kernels import elementwise
from hilo.kernels.memory import Buffer, pointer
from hilo.loop import arith, index
from hilo.loop.arith.memory import memory_type
from hilo.loop.builder import Builder, Node
from hilo.loop.element import Elem
from hilo.ops.fusion import apply_region
from hilo.record import record

Raw = tuple[Node, ...]  # the bits of one element of each input (complex: two parts)


@record
class Rows:
    """Where a row of each input lies: pointers, and bytes from one element to the next."""

    pointers: Sequence[Node]
    strides: Sequence[int]


class RowWriter:
    """A function over the rows of a sort."""

    def __init__(self, op: Op, name: str) -> None:
        self.comparator = op.attrs["comparator"]
        count = len(op.operands)
        k = self.k = len(self.comparator.params) - count
        self.types = [o.tensor for o in op.operands[:k]]
        shape = self.types[0].shape
        axis = op.attrs["dimension"] % len(shape)
        self.outer, self.n, self.inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
        self.dtypes: list[DType] = [t.dtype for t in self.types]
        self.sizes = [d.itemsize for d in self.dtypes]
        self.func = elementwise.new_func(name)
        b = self.b = Builder(self.func)
        bufs = self.func.params[0]
        self.inputs = [pointer(b, bufs, i) for i in range(k)]
        self.captured = [Buffer(pointer(b, bufs, i), op.operands[i].tensor, constant=True).load(b, (), 1)
                         for i in range(k, count)]  # fmt: skip
        self.results = [pointer(b, bufs, count + i) for i in range(k)]
        self._space = count + k

    @property
    def space(self) -> Node:
        """The scratch."""
        return pointer(self.b, self.func.params[0], self._space)

    @property
    def rows(self) -> int:
        return self.outer * self.inner

    def at(self, pointers: Sequence[Node], start: index.Index, strides: Sequence[int]) -> Rows:
        """Rows that begin at element `start` of arrays."""
        b = self.b
        each = zip(pointers, self.sizes, strict=True)
        return Rows([b.gep(p, index.node(b, start * s)) for p, s in each], strides)

    def row(self, r: index.Index) -> tuple[Rows, Rows]:
        """Row `r` of the inputs and of the results."""
        o, i = index.delinear(r, (self.outer, self.inner))
        first = o * (self.n * self.inner) + i
        across = [s * self.inner for s in self.sizes]
        return self.at(self.inputs, first, across), self.at(self.results, first, across)

    # ---- elements
    def less(self, x: Raw, y: Raw) -> Node:
        pairs = [e for both in zip(self.elements(x), self.elements(y), strict=True) for e in both]
        return apply_region(self.b, self.comparator, [*pairs, *self.captured])[0].re

    def elements(self, raw: Raw) -> list[Elem]:
        parts = iter(raw)
        return [arith.from_memory(self.b, d, tuple(next(parts) for _ in range(1 + d.is_complex))) for d in self.dtypes]

    def _places(self, rows: Rows, i: Node) -> list[tuple[Node, DType]]:
        """The address and the type of each part of the elements at `i`."""
        b = self.b
        out = []
        for p, stride, d in zip(rows.pointers, rows.strides, self.dtypes, strict=True):
            at = b.gep(p, b.mul(i, stride))
            out += [(b.gep(at, part * memory_type(d).size), d) for part in range(1 + d.is_complex)]
        return out

    def load(self, rows: Rows, i: Node) -> Raw:
        return tuple(self.b.load(p, memory_type(d)) for p, d in self._places(rows, i))

    def store(self, rows: Rows, i: Node, raw: Raw) -> None:
        for (p, _), x in zip(self._places(rows, i), raw, strict=True):
            self.b.store(p, x)
