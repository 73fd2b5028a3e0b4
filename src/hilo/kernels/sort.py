"""Sorting: a stable merge sort of each row, with the comparator's loop IR inline. Imports ops, loop, kernels.

Runs of a few elements are sorted by insertion, then merged pass by pass between two buffers. Elements move as the bits
that they are in memory. Whatever a comparator says, nothing outside of the row is touched and every pass ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import typical
from hilo.ir.dtypes import DType
from hilo.ir.op import Op
from hilo.kernels import elementwise
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import Buffer, pointer
from hilo.loop import arith, index
from hilo.loop.arith.memory import memory_type
from hilo.loop.builder import I1, Builder, Node
from hilo.loop.element import Elem
from hilo.ops.fusion import apply_region

if TYPE_CHECKING:
    from hilo.backend.target import Target

RUN: Final = 8  # elements of a run that insertion sorts
SMALL: Final = 1 << 10  # elements below which there is one unit
Raw = tuple[Node, ...]  # the bits of one element of each input (complex: two parts)


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `sort`."""
    if op.operands[0].tensor.size == 0:
        return Lowered([])
    writer = _Sort(op)
    return Lowered([writer.phase()], scratch=writer.scratch)


@dataclass
class _Rows:
    """Where a row of each input lies: pointers, and bytes from one element to the next."""

    pointers: Sequence[Node]
    strides: Sequence[int]


class _Sort:
    """Writes the function of a sort."""

    def __init__(self, op: Op) -> None:
        self.comparator = op.attrs["comparator"]
        count = len(op.operands)
        k = self.k = len(self.comparator.params) - count
        types = [o.tensor for o in op.operands[:k]]
        shape = types[0].shape
        axis = op.attrs["dimension"] % len(shape)
        self.outer, self.n, self.inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
        self.dtypes: list[DType] = [t.dtype for t in types]
        self.func = elementwise.new_func("sort")
        b = self.b = Builder(self.func)
        bufs = self.func.params[0]
        self.inputs = [pointer(b, bufs, i) for i in range(k)]
        self.captured = [Buffer(pointer(b, bufs, i), op.operands[i].tensor, constant=True).load(b, (), 1)
                         for i in range(k, count)]  # fmt: skip
        self.results = [pointer(b, bufs, count + i) for i in range(k)]
        copies = 1 if self.inner == 1 else 2
        if isinstance(self.n, int) and self.n <= RUN and self.inner == 1:
            copies = 0
        self.scratch = 0
        self.spare: list[list[Node]] = []
        for _ in range(copies):
            self.spare.append([])
            for t in types:
                self.spare[-1].append(b.gep(pointer(b, bufs, count + k), self.scratch))
                self.scratch += -(-t.nbytes // 64) * 64

    def phase(self) -> Phase:
        b = self.b
        units = self.outer * self.inner

        def unit(u: Node) -> None:
            r = index.loop_var(u, 0, units)
            o, i = index.delinear(r, (self.outer, self.inner))
            first = o * (self.n * self.inner) + i
            sizes = [d.itemsize for d in self.dtypes]
            across = [s * self.inner for s in sizes]

            def rows(pointers: Sequence[Node], start: index.Index, strides: Sequence[int]) -> _Rows:
                each = zip(pointers, sizes, strict=True)
                return _Rows([b.gep(p, index.node(b, start * s)) for p, s in each], strides)

            source, result = rows(self.inputs, first, across), rows(self.results, first, across)
            spare = [rows(s, r * self.n, sizes) for s in self.spare]
            if self.inner == 1 and not spare:
                self._insertion(source, result)
            elif self.inner == 1:  # the last pass ends in the result
                odd = self._passes_are_odd()
                first, second = ([b.select(odd, p, q) for p, q in zip(x.pointers, y.pointers, strict=True)]
                                 for x, y in ((spare[0], result), (result, spare[0])))  # fmt: skip
                self._sort(source, _Rows(first, sizes), _Rows(second, sizes))
            else:
                done = self._sort(source, *spare)
                b.for_(0, self.n, 1, lambda i: self._store(result, i, self._load(done, i)))

        if isinstance(self.n * units, int) and self.n * units <= SMALL:
            b.for_(0, units, 1, unit)
            count = 1
        else:
            _, begin, end = self.func.params
            b.for_(begin, end, 1, unit)
            count = units
        b.ret()
        n, each = typical(self.n), 1.0 if count is units else float(units)
        passes = max(0, -(-n // RUN) - 1).bit_length()
        return Phase(self.func, count, each * n * (3.0 * passes + 8.0) * self.k)

    def _passes_are_odd(self) -> Node:
        """Whether merging takes an odd number of passes."""
        b = self.b
        if isinstance(self.n, int):
            return b.const(max(0, -(-self.n // RUN) - 1).bit_length() % 2, I1)
        _, odd = b.while_((b.i64(RUN), b.i64(0)), lambda width, _: b.cmp("slt", width, self.n),
                          lambda width, odd: (b.shl(width, 1), b.xor(odd, 1)))  # fmt: skip
        return b.cmp("ne", odd, 0)

    def _sort(self, source: _Rows, first: _Rows, second: _Rows) -> _Rows:
        """Sort runs from `source` to `first`, merge to and fro; gives where the row ends: `second` after an odd number
        of passes."""
        b = self.b
        self._insertion(source, first)

        def one_pass(width: Node, *pointers: Node) -> tuple[Node, ...]:
            here, there = pointers[: self.k], pointers[self.k :]
            self._merge_pass(_Rows(here, first.strides), _Rows(there, first.strides), width)
            return (b.shl(width, 1), *there, *here)

        out = b.while_((b.i64(RUN), *first.pointers, *second.pointers),
                       lambda width, *_: b.cmp("slt", width, self.n), one_pass)  # fmt: skip
        return _Rows(out[1 : self.k + 1], first.strides)

    def _insertion(self, source: _Rows, to: _Rows) -> None:
        """Runs of RUN elements, each sorted by insertion."""
        b = self.b

        def run(start: Node) -> None:
            end = b.smin(b.add(start, RUN), self.n)

            def insert(i: Node) -> None:
                x = self._load(source, i)

                def goes_before(j: Node) -> Node:
                    before = self._load(to, b.smax(b.sub(j, 1), start))
                    return b.and_(b.cmp("sgt", j, start), self._less(x, before))

                def move(j: Node) -> tuple[Node, ...]:
                    before = b.sub(j, 1)
                    self._store(to, j, self._load(to, before))
                    return (before,)

                (place,) = b.while_((i,), goes_before, move)
                self._store(to, place, x)

            b.for_(start, end, 1, insert)

        b.for_(0, self.n, RUN, run)

    def _merge_pass(self, source: _Rows, to: _Rows, width: Node) -> None:
        """Merge neighbouring runs of `width` elements. An element of the right run goes first only if it is less."""
        b = self.b

        def pair(start: Node) -> None:
            middle = b.smin(b.add(start, width), self.n)
            end = b.smin(b.add(middle, width), self.n)

            def step(place: Node, left: Node, right: Node) -> tuple[Node, ...]:
                x = self._load(source, b.smin(left, self.n - 1))
                y = self._load(source, b.smin(right, self.n - 1))
                is_less = b.or_(b.cmp("sge", left, middle), self._less(y, x))
                takes = b.and_(b.cmp("slt", right, end), is_less)
                self._store(to, place, tuple(b.select(takes, q, p) for p, q in zip(x, y, strict=True)))
                moved = b.convert("zext", takes, "i64")
                return b.add(left, b.sub(1, moved)), b.add(right, moved)

            b.for_(start, end, 1, step, (start, middle))

        b.for_(0, self.n, b.shl(width, 1), pair)

    # ---- elements
    def _less(self, x: Raw, y: Raw) -> Node:
        pairs = [e for both in zip(self._elements(x), self._elements(y), strict=True) for e in both]
        return apply_region(self.b, self.comparator, [*pairs, *self.captured])[0].re

    def _elements(self, raw: Raw) -> list[Elem]:
        parts = iter(raw)
        return [arith.from_memory(self.b, d, tuple(next(parts) for _ in range(1 + d.is_complex))) for d in self.dtypes]

    def _places(self, rows: _Rows, i: Node) -> list[tuple[Node, DType]]:
        """The address and the type of each part of the elements at `i`."""
        b = self.b
        out = []
        for p, stride, d in zip(rows.pointers, rows.strides, self.dtypes, strict=True):
            at = b.gep(p, b.mul(i, stride))
            out += [(b.gep(at, part * memory_type(d).size), d) for part in range(1 + d.is_complex)]
        return out

    def _load(self, rows: _Rows, i: Node) -> Raw:
        return tuple(self.b.load(p, memory_type(d)) for p, d in self._places(rows, i))

    def _store(self, rows: _Rows, i: Node, raw: Raw) -> None:
        for (p, _), x in zip(self._places(rows, i), raw, strict=True):
            self.b.store(p, x)
