"""The largest elements of rows, without sorting all. Imports ops, loop, kernels.

A row is read block by block, in vectors. Elements that may be among the k largest wait, in order, in a buffer; whenever
it is full, it is sorted by digits and cut to k elements, whose last one says what has to be exceeded from there on.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.op import Op
from hilo.kernels.elementwise import new_func
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import pointer
from hilo.loop import arith
from hilo.loop.arith import floats
from hilo.loop.arith.memory import memory_type
from hilo.loop.builder import I32, I64, Builder, Node
from hilo.loop.element import Elem

if TYPE_CHECKING:
    from hilo.backend.target import Target

VECTORS: Final = 4  # of a block
ROOM: Final = 512  # elements of the buffer, at least
DIGIT: Final = 8  # bits
NS: Final = 0.5  # nanoseconds of an element


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `top_k` that `ops.sort.selects`."""
    w = _Writer(op, target)
    return Lowered([w.phase()], strategy="selection", reason=f"{w.k} of {w.n} elements: the others are only compared")


class _Writer:
    """Writes the function. What waits is an i64: a number that is less for larger elements, then the place."""

    def __init__(self, op: Op, target: Target) -> None:
        t = op.operands[0].tensor
        self.dtype, self.n, self.k = t.dtype, t.shape[-1], op.attrs["k"]
        self.rows = prod(t.shape[:-1])
        self.lanes = target.lanes("i32")
        self.block = VECTORS * self.lanes
        self.room = max(ROOM, 4 * self.k) + self.block
        self.func = new_func("top_k")
        b = self.b = Builder(self.func)
        self.source, self.values, self.places = (pointer(b, self.func.params[0], i) for i in range(3))
        self.waiting, self.spare = b.alloca(8 * self.room), b.alloca(8 * self.room)
        self.counts = b.alloca(4 << DIGIT)

    def phase(self) -> Phase:
        """Units are rows."""
        b, n = self.b, self.n
        _, begin, end = self.func.params
        whole = n // self.block * self.block

        def row(r: Node) -> None:
            x = b.gep(self.source, b.mul(r, n * self.dtype.itemsize))

            def block(lo: Node, hi: Node | int, count: Node, limit: Node) -> tuple[Node, ...]:
                """Take in elements lo..hi, at most a block."""
                full = b.cmp("sgt", count, self.room - self.block)
                count, limit = b.if_(full, lambda: self._cut(count, limit), lambda: (count, limit))

                def one(i: Node, c: Node) -> tuple[Node, ...]:
                    number = self._number(x, i, 1)
                    wide = b.or_(b.shl(b.convert("zext", number, "i64"), 32), i)
                    b.store(b.gep(self.waiting, b.mul(c, 8)), wide)  # counts only if it is below the limit
                    return (b.add(c, b.convert("zext", b.cmp("ule", number, limit), "i64")),)

                (count,) = b.for_(lo, hi, 1, one, (count,))
                return count, limit

            def turn(lo: Node, count: Node, limit: Node) -> tuple[Node, ...]:
                least = self._number(x, lo, self.lanes)
                for v in range(1, VECTORS):
                    least = self._less(least, self._number(x, b.add(lo, v * self.lanes), self.lanes))
                while least.type.lanes > 1:
                    half = least.type.lanes // 2
                    least = self._less(b.shuffle(least, least, range(half)),
                                       b.shuffle(least, least, range(half, 2 * half)))  # fmt: skip
                some = b.cmp("ule", b.lane(least, 0), limit)
                return b.if_(some, lambda: block(lo, b.add(lo, self.block), count, limit), lambda: (count, limit))

            count, limit = b.for_(0, whole, self.block, turn, (b.i64(0), b.const(-1, I32)))
            if whole < n:
                count, limit = block(b.i64(whole), n, count, limit)
            self._cut(count, limit)
            self._finish(x, r)

        b.for_(begin, end, 1, row)
        b.ret()
        return Phase(self.func, self.rows, n * NS + self.room * 10.0)

    def _finish(self, x: Node, r: Node) -> None:
        """Store the first elements that wait, and their places."""
        b, size = self.b, self.dtype.itemsize

        def one(j: Node) -> None:
            at = b.add(b.mul(r, self.k), j)
            i = b.and_(b.load(b.gep(self.waiting, b.mul(j, 8)), I64), 0xFFFFFFFF)
            b.store(b.gep(self.places, b.mul(at, 4)), b.convert("itrunc", i, "i32"))
            bits = b.load(b.gep(x, b.mul(i, size)), memory_type(self.dtype))
            b.store(b.gep(self.values, b.mul(at, size)), bits)

        b.for_(0, self.k, 1, one)

    def _cut(self, count: Node, limit: Node) -> tuple[Node, Node]:
        """Sort what waits and keep k elements; gives how many there are, and the largest number that still counts."""
        b = self.b
        here, there = self.waiting, self.spare
        for low in range(32, 64, DIGIT):  # an even number of passes: what waits is where it was
            self._pass(count, low, here, there)
            here, there = there, here
        last = b.lshr(b.load(b.gep(self.waiting, 8 * (self.k - 1)), I64), 32)
        enough = b.cmp("sge", count, self.k)
        below = b.convert("itrunc", b.sub(last, 1), "i32")  # of equal elements the first ones are there
        return b.smin(count, self.k), b.select(b.and_(enough, b.cmp("ne", last, 0)), below, limit)

    def _pass(self, count: Node, low: int, here: Node, there: Node) -> None:
        """Sort by one digit."""
        b = self.b

        def bin_of(element: Node) -> Node:
            return b.gep(self.counts, b.mul(b.and_(b.lshr(element, low), (1 << DIGIT) - 1), 4))

        def note(i: Node) -> None:
            at = bin_of(b.load(b.gep(here, b.mul(i, 8)), I64))
            b.store(at, b.add(b.load(at, I32), 1))

        def start(d: Node, total: Node) -> tuple[Node, ...]:
            at = b.gep(self.counts, b.mul(d, 4))
            own = b.load(at, I32)
            b.store(at, total)
            return (b.add(total, own),)

        def move(i: Node) -> None:
            element = b.load(b.gep(here, b.mul(i, 8)), I64)
            at = bin_of(element)
            place = b.load(at, I32)
            b.store(at, b.add(place, 1))
            b.store(b.gep(there, b.mul(b.convert("sext", place, "i64"), 8)), element)

        b.memset(self.counts, 0, 4 << DIGIT)
        b.for_(0, count, 1, note)
        b.for_(0, 1 << DIGIT, 1, start, (b.const(0, I32),))
        b.for_(0, count, 1, move)

    def _less(self, x: Node, y: Node) -> Node:
        return self.b.select(self.b.cmp("ult", x, y), x, y)

    def _number(self, x: Node, i: Node, lanes: int) -> Node:
        """The numbers (i32, unsigned) of elements from i on: less for larger elements."""
        b, size = self.b, self.dtype.itemsize
        e: Elem = arith.load_elem(b, x, b.mul(i, size), self.dtype, lanes, align=size, invariant=True)
        n = floats.total_order(b, e.re) if self.dtype.is_float else e.re
        if self.dtype.kind in "if":
            n = b.xor(n, -1 << (n.type.bits - 1))
        return b.xor(b.convert("zext", n, "i32"), -1)
