"""Scatter of rows into an array that no cache holds: block by block of the destination. Imports ops, loop, kernels.

A first phase sorts the updates by the block that they go to; within a block they keep their order. Then each unit does
one block: its rows are copied to where they stay in a near cache, the updates are combined with them there, and the
result is stored past the caches. So nothing is read or written twice. Where operand and result share memory, the unit
changes the rows in place.
"""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING, Final

from hilo.ir.op import Op
from hilo.ir.types import TensorType, result_types
from hilo.kernels import elementwise
from hilo.kernels.copies import Copier
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.kernels.scatter import AHEAD, LINE, ScatterCode
from hilo.loop import index
from hilo.loop.builder import I32, Builder, Func, Node

if TYPE_CHECKING:
    from hilo.backend.target import Target

BLOCK: Final = 4 << 10  # bytes of a block, at the least
MOST: Final = (16 << 10, 64 << 10)  # bytes of a block on the stack, at the most; where many updates go to each row
SHORT: Final = 256  # bytes of a row, below which sorting the updates costs too much
FETCHED: Final = 4 << 10  # bytes of a row, at the most, that are fetched ahead
NUMBER: Final = 4  # bytes of the number of an update, or of a row
COPY_NS: Final = 1 / 20.0  # of a byte


class InBlocks(ScatterCode):
    """Writes the two functions."""

    def __init__(self, op: Op, target: Target) -> None:
        super().__init__(op, target)
        self.length = prod(self.updates[len(self.updates) - self.run :])  # elements of a row
        self.row = self.length * self.results[0].type.dtype.itemsize  # bytes
        self.rows = prod(self.shape[: len(self.shape) - self.run])
        self.sizes = self.updates[: len(self.updates) - self.run]
        self.count = prod(self.sizes)
        step = LINE // gcd(self.row, LINE)
        self.together = -(-BLOCK // (self.row * step)) * step  # rows of a block
        self.blocks = -(-self.rows // self.together)

    @classmethod
    def of(cls, op: Op, target: Target) -> InBlocks | None:
        """For one large operand, and updates of whole rows of it, which are long enough; None for others."""
        results = [t for t in result_types(op.type) if isinstance(t, TensorType)]
        types = [*(x.tensor for x in op.operands), *results]
        if len(results) != 1 or op.operands[0].dtype is not results[0].dtype or op.operands[0].dtype.is_complex:
            return None
        if not all(isinstance(n, int) for t in types for n in t.shape) or op.attrs["input_batching_dims"]:
            return None
        code = cls(op, target)
        most = MOST[2 * code.count >= code.rows]
        short = not code.run or code.row < SHORT or target.vector_bytes < 16
        if short or code.together * code.row > most or max(code.count, code.rows + code.together) >= 1 << 31:
            return None
        return code

    @property
    def scratch(self) -> int:
        """Bytes of scratch: where the blocks' updates begin, the updates' numbers in order of blocks, their rows."""
        return NUMBER * (self.blocks + 3 + 2 * self.count)

    def phases(self) -> list[Phase]:
        nbytes = self.rows * self.row
        sort = Phase(self._sort(), 1, 4.0 * self.count + 2.0 * self.blocks)
        units = Phase(self._blocks_of(), self.blocks, (2 * nbytes + 2 * self.count * self.row) * COPY_NS / self.blocks)
        return [sort, units]

    def _open(self, name: str) -> tuple[Node, Node, Node]:
        """A function with what all code reads, and its pointers to the three arrays in scratch."""
        self.func = elementwise.new_func(name)
        self.b = b = Builder(self.func)
        count = len(self.op.operands)
        self._buffers()
        starts = pointer(b, self.func.params[0], count + 1)
        numbers = b.gep(starts, NUMBER * (self.blocks + 3))
        return starts, numbers, b.gep(numbers, NUMBER * self.count)

    def _read(self, array: Node, at: Node) -> Node:
        """Number `at` of an array of numbers."""
        return self.b.convert("sext", self.b.load(self.b.gep(array, self.b.mul(at, NUMBER)), I32), "i64")

    def _write(self, array: Node, at: Node, value: Node) -> None:
        self.b.store(self.b.gep(array, self.b.mul(at, NUMBER)), self.b.convert("itrunc", value, "i32"))

    # ---- the first phase
    def _sort(self) -> Func:
        """Finds each update's row (one behind the last block, if it goes nowhere) and sorts them by blocks."""
        starts, numbers, rows = self._open("scatter_sort")
        b = self.b
        free = self.shape[: len(self.shape) - self.run]
        b.memset(starts, 0, NUMBER * (self.blocks + 3))

        def block_of(row: Node) -> Node:
            return b.binary("udiv", row, self.together)

        def find(u: Node) -> None:
            at = index.delinear(index.loop_var(u, 0, self.count), self.sizes)
            places = self._starts(list(at))[: len(free)]
            row = index.node(b, index.linear(places, free))
            row = b.select(self._inside(places), row, self.blocks * self.together)
            self._write(rows, u, row)
            after = b.add(block_of(row), 2)
            self._write(starts, after, b.add(self._read(starts, after), 1))

        def sum_up(k: Node, before: Node) -> tuple[Node, ...]:
            total = b.add(before, self._read(starts, k))
            self._write(starts, k, total)
            return (total,)

        def place(u: Node) -> None:
            own = b.add(block_of(self._read(rows, u)), 1)
            to = self._read(starts, own)
            self._write(numbers, to, u)
            self._write(starts, own, b.add(to, 1))

        b.for_(0, self.count, 1, find)
        b.for_(0, self.blocks + 3, 1, sum_up, (b.i64(0),))
        b.for_(0, self.count, 1, place)  # now `starts` holds where each block begins
        b.ret()
        return self.func

    # ---- the second phase
    def _blocks_of(self) -> Func:
        starts, numbers, rows = self._open("scatter_blocks")
        b, size = self.b, self.results[0].type.dtype.itemsize
        bufs, begin, end = self.func.params
        source, result = pointer(b, bufs, 0), self.results[0].ptr
        near = b.alloca(self.together * self.row, RESULT_ALIGN)
        same = b.cmp("eq", b.convert("ptrtoint", source, "i64"), b.convert("ptrtoint", result, "i64"))
        past, here = (Copier(b, size, self.target, streaming=streaming) for streaming in (True, False))
        nbytes, block = self.rows * self.row, self.together * self.row
        unroll = 4 if block % (4 * LINE) == 0 else 1

        def copy(copier: Copier, to: Node, of: Node, lo: Node, later: Node | None = None) -> None:
            """Bytes lo.. of an array of which `to` and `of` are the beginnings, though one of them is not there."""
            hi = b.smin(b.add(lo, block), nbytes)
            copier.copy(to, index.ZERO, of, index.ZERO, nbytes, lo, hi, unroll=unroll, later=later)

        def unit(k: Node) -> None:
            lo = b.mul(k, block)
            first, last = self._read(starts, k), self._read(starts, b.add(k, 1))
            some = b.cmp("slt", first, last)
            moved = b.gep(near, b.sub(0, lo))

            def copied() -> None:
                b.if_(some, lambda: copy(here, moved, source, lo), lambda: copy(past, result, source, lo))

            b.if_(same, lambda: None, copied)
            base = b.select(same, result, moved)
            everything = self._read(starts, b.i64(self.blocks))
            b.for_(first, last, 1, lambda i: self._update(i, everything, numbers, rows, base, same))
            b.if_(b.and_(some, b.not_(same)), lambda: copy(past, result, moved, lo, b.gep(source, block)))

        b.for_(begin, end, 1, unit)
        b.fence()
        b.ret()
        return self.func

    def _update(self, i: Node, everything: Node, numbers: Node, rows: Node, base: Node, same: Node) -> None:
        """Combine update `i` (in the order of blocks) with its row of the array at `base`, and fetch a later one, and
        the row that it goes to if that is not copied (`same`)."""
        b = self.b
        changed, updates = (pointer(b, self.func.params[0], k) for k in (0, 2))
        later = self._read(numbers, b.smin(b.add(i, AHEAD), b.sub(everything, 1)))

        def fetch(array: Node, at: Node, write: bool = False) -> None:
            row = b.gep(array, b.mul(at, self.row))

            def line(offset: Node) -> None:
                b.prefetch(b.gep(row, offset), write=write)

            b.for_(0, min(self.row, FETCHED), LINE, line)

        fetch(updates, later)
        b.if_(same, lambda: fetch(changed, self._read(rows, later), write=True))
        number = self._read(numbers, i)
        t = self.results[0].type
        self.results = [Buffer(base, t, RESULT_ALIGN)]
        source = index.loop_var(number, 0, self.count) * self.length
        place = index.loop_var(self._read(rows, number), 0, self.rows) * self.length

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                self._combine(source + v.at, place + v.at, v.lanes, v.mask)
            return ()

        masks, lanes = self.target.has_masks, self.target.lanes(t.dtype)
        vector_loop(b, 0, self.length, self.length, turn, lanes=lanes, masks=masks)
