"""A stable merge sort of each row, with the comparator's loop IR inline. Imports loop, kernels.

Runs of a few elements are sorted by insertion, then merged pass by pass between two buffers. Elements move as the bits
that they are in memory. Whatever a comparator says, nothing outside of the row is touched and every pass ends.
"""

from __future__ import annotations

from typing import Final

from hilo.ir.dims import typical
from hilo.ir.op import Op
from hilo.kernels.lowered import Phase
from hilo.kernels.sort_rows import Rows, RowWriter
from hilo.loop import index
from hilo.loop.builder import I1, Node

RUN: Final = 8  # elements of a run that insertion sorts
SMALL: Final = 1 << 10  # elements below which there is one unit


class MergeSort(RowWriter):
    """Writes the function of a merge sort."""

    def __init__(self, op: Op, name: str = "sort") -> None:
        super().__init__(op, name)
        copies = 1 if self.inner == 1 else 2
        if isinstance(self.n, int) and self.n <= RUN and self.inner == 1:
            copies = 0
        self.scratch = 0
        self.spare: list[list[Node]] = []
        for _ in range(copies):
            self.spare.append([])
            for t in self.types:
                self.spare[-1].append(self.b.gep(self.space, self.scratch))
                self.scratch += -(-t.nbytes // 64) * 64

    def phase(self) -> Phase:
        b, units = self.b, self.rows

        def unit(u: Node) -> None:
            self.sort_row(index.loop_var(u, 0, units))

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

    def sort_row(self, r: index.Index) -> None:
        """Sort row `r`."""
        b, sizes = self.b, self.sizes
        source, result = self.row(r)
        spare = [self.at(s, r * self.n, sizes) for s in self.spare]
        if self.inner == 1 and not spare:
            self._insertion(source, result)
        elif self.inner == 1:  # the last pass ends in the result
            odd = self._passes_are_odd()
            first, second = ([b.select(odd, p, q) for p, q in zip(x.pointers, y.pointers, strict=True)]
                             for x, y in ((spare[0], result), (result, spare[0])))  # fmt: skip
            self._sort(source, Rows(first, sizes), Rows(second, sizes))
        else:
            done = self._sort(source, *spare)
            b.for_(0, self.n, 1, lambda i: self.store(result, i, self.load(done, i)))

    def _passes_are_odd(self) -> Node:
        """Whether merging takes an odd number of passes."""
        b = self.b
        if isinstance(self.n, int):
            return b.const(max(0, -(-self.n // RUN) - 1).bit_length() % 2, I1)
        _, odd = b.while_((b.i64(RUN), b.i64(0)), lambda width, _: b.cmp("slt", width, self.n),
                          lambda width, odd: (b.shl(width, 1), b.xor(odd, 1)))  # fmt: skip
        return b.cmp("ne", odd, 0)

    def _sort(self, source: Rows, first: Rows, second: Rows) -> Rows:
        """Sort runs from `source` to `first`, merge to and fro; gives where the row ends: `second` after an odd number
        of passes."""
        b = self.b
        self._insertion(source, first)

        def one_pass(width: Node, *pointers: Node) -> tuple[Node, ...]:
            here, there = pointers[: self.k], pointers[self.k :]
            self._merge_pass(Rows(here, first.strides), Rows(there, first.strides), width)
            return (b.shl(width, 1), *there, *here)

        out = b.while_((b.i64(RUN), *first.pointers, *second.pointers),
                       lambda width, *_: b.cmp("slt", width, self.n), one_pass)  # fmt: skip
        return Rows(out[1 : self.k + 1], first.strides)

    def _insertion(self, source: Rows, to: Rows) -> None:
        """Runs of RUN elements, each sorted by insertion."""
        b = self.b

        def run(start: Node) -> None:
            end = b.smin(b.add(start, RUN), self.n)

            def insert(i: Node) -> None:
                x = self.load(source, i)

                def goes_before(j: Node) -> Node:
                    before = self.load(to, b.smax(b.sub(j, 1), start))
                    return b.and_(b.cmp("sgt", j, start), self.less(x, before))

                def move(j: Node) -> tuple[Node, ...]:
                    before = b.sub(j, 1)
                    self.store(to, j, self.load(to, before))
                    return (before,)

                (place,) = b.while_((i,), goes_before, move)
                self.store(to, place, x)

            b.for_(start, end, 1, insert)

        b.for_(0, self.n, RUN, run)

    def _merge_pass(self, source: Rows, to: Rows, width: Node) -> None:
        """Merge neighbouring runs of `width` elements. An element of the right run goes first only if it is less."""
        b = self.b

        def pair(start: Node) -> None:
            middle = b.smin(b.add(start, width), self.n)
            end = b.smin(b.add(middle, width), self.n)

            def step(place: Node, left: Node, right: Node) -> tuple[Node, ...]:
                x = self.load(source, b.smin(left, self.n - 1))
                y = self.load(source, b.smin(right, self.n - 1))
                is_less = b.or_(b.cmp("sge", left, middle), self.less(y, x))
                takes = b.and_(b.cmp("slt", right, end), is_less)
                self.store(to, place, tuple(b.select(takes, q, p) for p, q in zip(x, y, strict=True)))
                moved = b.convert("zext", takes, "i64")
                return b.add(left, b.sub(1, moved)), b.add(right, moved)

            b.for_(start, end, 1, step, (start, middle))

        b.for_(0, self.n, b.shl(width, 1), pair)
