"""Sorting by digits: the comparator's keys as integers (sort_keys), from the least significant digit on. Imports ops,
loop, kernels.

Each element becomes one integer that holds its key, with what is carried along below it: the bits of the element, or
its place in the row; where that does not fit, the place is an array of its own. A pass counts the elements with each
digit, and moves every element to its place. A short row is one unit, whose arrays are on the stack. Long rows are cut
into chunks, which count and move in parallel; since every pass is stable, the result is the same for any cut.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from hilo.ir.op import Op
from hilo.kernels import sort_steps
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.sort_keys import Order, order_of, value_of
from hilo.kernels.sort_merge import MergeSort
from hilo.kernels.sort_rows import Rows
from hilo.loop import arith, index
from hilo.loop.arith.memory import memory_type
from hilo.loop.builder import I1, I32, I64, Builder, Func, Node
from hilo.record import record

if TYPE_CHECKING:
    from hilo.backend.target import Target

SHORT: Final = 96  # elements below which merging is faster
STACK: Final = 1 << 14  # elements whose arrays are on the stack
CHUNK: Final = 1 << 15  # elements of a chunk
CHUNKS: Final = 64
MANY: Final = 8  # rows that are enough units
SLOTS: Final = 16  # rows whose arrays are in scratch at a time
NS: Final = 1.5  # nanoseconds of one element in one pass
NARROW: Final = 8  # bits of a digit: few, where counts would cost much, or elements go to many places in memory
WIDE: Final = 11
CACHED: Final = 1 << 18  # elements up to which it matters little how many places there are
Element = tuple[Node, ...]  # i64: key and what is below it; or i64 key, i32 place
Digit = tuple[Node | int, int]  # its lowest bit, and the greatest value


def lower(op: Op, target: Target) -> Lowered | None:
    """The kernel of a `sort` by digits; None if the comparator means no order, or rows are short."""
    k = len(op.attrs["comparator"].params) - len(op.operands)
    shape = op.operands[0].tensor.shape
    n = shape[op.attrs["dimension"]]
    if not all(isinstance(m, int) for m in shape) or not SHORT <= n < 1 << 31:
        return None
    order = order_of(op.attrs["comparator"], k)
    if order is None:
        return None
    form = _form(op, order, n)
    rows = op.operands[0].tensor.size // n
    if n < 2 * CHUNK or rows >= MANY or order.partial:
        writer = _Radix(op, "sort_rows", form)
        return Lowered([writer.whole_rows()], scratch=writer.scratch, strategy="sort by digits",
                       reason=f"keys of {order.bits} bits in {len(form.digits)} passes; units are rows")  # fmt: skip
    return _in_chunks(op, form, rows)


@record(frozen=True)
class _Form:
    """How elements are held and digits cut. `carries`: "value", "place", or "" where the key says all."""

    order: Order
    carries: str
    shift: int  # of the key in the first integer
    digits: tuple[tuple[int, int], ...]  # (lowest bit, bits) of each pass

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of the parts of an element."""
        return (8, 4) if self.carries == "place" and not self.shift else (8,)

    @property
    def bins(self) -> int:
        """How many values the first digits have, none of which is narrower than the last."""
        return 1 << self.digits[0][1]

    def digit(self, number: int) -> Digit:
        low, width = self.digits[number]
        return low, (1 << width) - 1

    def digit_at(self, b: Builder, number: Node) -> tuple[Node, int]:
        """The digit of a pass that is known only at run time. The last one may be narrower, but nothing is above it."""
        return b.add(b.mul(number, self.digits[0][1]), self.shift), self.bins - 1


def _form(op: Op, order: Order, n: int) -> _Form:
    t = op.operands[0].tensor.dtype
    carries, shift = "place", 32 if order.bits <= 32 else 0
    if order.descending_whole is not None:
        carries, shift = "", 0
    elif order.count == 1 and not t.is_complex and 8 * t.itemsize + order.bits <= 64:
        carries, shift = "value", 8 * t.itemsize
    most = WIDE if STACK <= n <= CACHED else NARROW
    width = -(-order.bits // -(-order.bits // most))
    digits = [(shift + low, min(width, order.bits - low)) for low in range(0, order.bits, width)]
    return _Form(order, carries, shift, tuple(digits))


class _Radix(MergeSort):
    """Writes functions of a sort by digits."""

    def __init__(self, op: Op, name: str, form: _Form) -> None:
        super().__init__(op, name)
        self.form = form
        if not form.order.partial:  # nothing is ever merged
            self.scratch, self.spare = 0, []
        self.helpers: dict[str, Func] = {}

    # ---- whole rows
    def whole_rows(self) -> Phase:
        """The phase whose units are rows; if their arrays are not on the stack, runs of rows that share them."""
        b, f, n = self.b, self.form, self.n
        _, begin, end = self.func.params
        one = sum(-(-s * n // 64) * 64 for s in f.sizes)
        counts = [b.alloca(4 << width) for _, width in f.digits]
        arrays = [b.alloca(one) for _ in range(2)] if n <= STACK else []
        start, share = self.scratch, 1
        if not arrays:
            share = -(-self.rows // SLOTS)
            self.scratch += 2 * one * -(-self.rows // share)

        def unit(u: Node) -> None:
            first, second = arrays or (b.gep(self.space, b.add(b.mul(u, 2 * one), start + i * one)) for i in (0, 1))
            lo = b.mul(u, share)
            b.for_(lo, b.smin(b.add(lo, share), self.rows), 1, lambda r: row(r, first, second))

        def row(number: Node, first: Node, second: Node) -> None:
            r = index.loop_var(number, 0, self.rows)
            source, result = self.row(r)
            for c, (_, width) in zip(counts, f.digits, strict=True):
                b.memset(c, 0, 4 << width)

            def make(i: Node, nan: Node) -> tuple[Node, ...]:
                element, is_nan = self._element(source, i)
                self._put(first, i, element)
                for k, c in enumerate(counts):
                    self._count(c, element, f.digit(k))
                return (b.or_(nan, is_nan),)

            (nan,) = b.for_(0, n, 1, make, (b.const(0, I1),))

            def by_digits() -> None:
                here, there = first, second
                one_pass = self._pass if self.is_plain else self._pass_or_none
                for k, c in enumerate(counts[:-1]):
                    here, there = one_pass(c, f.digit(k), here, there)
                digit = f.digit(len(counts) - 1)
                self._starts(c := counts[-1], digit)
                self._move_last(0, n, here, c, digit, source, result)

            if f.order.partial:
                b.if_(nan, lambda: self.sort_row(r), by_digits)
            else:
                by_digits()

        b.for_(begin, end, 1, unit)
        b.ret()
        cost = share * (n * NS * (2.0 + len(f.digits)) + 100.0)
        return Phase(self.func, -(-self.rows // share), cost, list(self.helpers.values()))

    # ---- steps that all programs share
    @property
    def is_plain(self) -> bool:
        """Whether an element is one integer, as `sort_steps` has it."""
        return self.form.sizes == (8,)

    def step(self, func: Func, args: Sequence[Node | int]) -> Node:
        """Call one of the steps."""
        b = self.b
        self.helpers[func.name] = func
        return b.call(func.name, [a if isinstance(a, Node) else b.i64(a) for a in args], func.ret)

    def _pass(self, counts: Node, digit: Digit, here: Node, there: Node) -> tuple[Node, Node]:
        """The same as `_pass_or_none`."""
        b = self.b
        for func in (sort_steps.starts(), sort_steps.move()):  # which that one calls
            self.helpers[func.name] = func
        moved = b.cmp("ne", self.step(sort_steps.one_pass(), (counts, here, there, self.n, *digit)), 0)
        return b.select(moved, there, here), b.select(moved, here, there)

    def _pass_or_none(self, counts: Node, digit: Digit, here: Node, there: Node) -> tuple[Node, Node]:
        """One pass, unless all elements have the same digit; gives where they are then, and the other array."""
        b = self.b
        some = b.load(b.gep(counts, b.mul(self._digit(self._get(here, b.i64(0)), digit), 4)), I32)

        def turn() -> tuple[Node, ...]:
            self._starts(counts, digit)
            self._move(0, self.n, here, counts, digit, lambda at, e: self._put(there, at, e))
            return there, here

        first, second = b.if_(b.cmp("eq", some, self.n), lambda: (here, there), turn)
        return first, second

    def _starts(self, counts: Node, digit: Digit) -> None:
        """Counts become the first places of their digits."""
        self.step(sort_steps.starts(), (counts, 0, 1, digit[1] + 1))

    # ---- steps of chunks
    def make_chunk(self, r: Node, lo: Node, hi: Node, array: Node, counts: Node) -> None:
        """Elements of a chunk of a row, and how many have each value of the first digit."""
        source, _ = self.row(index.loop_var(r, 0, self.rows))
        b, digit = self.b, self.form.digit(0)
        b.memset(counts, 0, 4 * self.form.bins)

        def make(i: Node) -> None:
            element, _ = self._element(source, i)
            self._put(array, i, element)
            self._count(counts, element, digit)

        b.for_(lo, hi, 1, make)

    def count_chunk(self, digit: tuple[Node, int], lo: Node, hi: Node, array: Node, counts: Node) -> None:
        """How many elements of a chunk have each value of a digit. (Keys come first of what elements hold.)"""
        self.step(sort_steps.count(), (counts, array, lo, hi, *digit))

    def start_chunks(self, digit: Digit, counts: Node, chunks: int) -> None:
        """Counts of all chunks of a row become first places: digit by digit, of each chunk by chunk."""
        self.step(sort_steps.starts(), (counts, 4 * self.form.bins, chunks, digit[1] + 1))

    def move_chunk(self, digit: Digit, lo: Node, hi: Node, here: Node, there: Node, counts: Node) -> None:
        """Move the elements of a chunk."""
        if self.is_plain:
            self.step(sort_steps.move(), (counts, here, there, lo, hi, *digit))
            return
        self._move(lo, hi, here, counts, digit, lambda at, e: self._put(there, at, e))

    def move_last(self, digit: Digit, r: Node, lo: Node, hi: Node, here: Node, counts: Node) -> None:
        """Move the elements of a chunk to the results."""
        source, result = self.row(index.loop_var(r, 0, self.rows))
        self._move_last(lo, hi, here, counts, digit, source, result)

    def finish_chunk(self, r: Node, lo: Node, hi: Node, array: Node) -> None:
        source, result = self.row(index.loop_var(r, 0, self.rows))
        self.b.for_(lo, hi, 1, lambda i: self._finish(source, result, i, self._get(array, i)))

    # ---- elements
    def _element(self, source: Rows, i: Node) -> tuple[Element, Node]:
        """Element i of a row, and whether a key of it is NaN."""
        b, f = self.b, self.form
        raw = self.load(source, i)
        n, nan = f.order.number(b, self.elements(raw), self.captured)
        if f.carries == "place":
            if not f.shift:
                return (n, b.convert("itrunc", i, "i32")), nan
            return (b.or_(b.shl(n, f.shift), i),), nan
        if f.carries == "value":
            bits = self._bits(raw[0])
            return (b.or_(b.shl(n, f.shift), b.convert("zext", bits, "i64")),), nan
        return (n,), nan

    def _bits(self, x: Node) -> Node:
        return self.b.bitcast(x, f"i{x.type.bits}") if x.type.is_float else x

    def _finish(self, source: Rows, result: Rows, at: Node, e: Element) -> None:
        """Store the element at its place in the results."""
        b, f = self.b, self.form
        t = self.dtypes[0]
        if f.carries == "place":
            i = b.and_(e[0], 0xFFFFFFFF) if f.shift else b.convert("zext", e[1], "i64")
            self.store(result, at, self.load(source, i))
        elif f.carries == "value":
            held = memory_type(t)
            x = b.convert("itrunc", e[0], f"i{8 * t.itemsize}")
            if held.scalar == "i1":
                self.store(result, at, (b.cmp("ne", x, 0),))
            else:
                self.store(result, at, (b.bitcast(x, held.scalar) if held.is_float else x,))
        else:
            descending = f.order.descending_whole
            assert descending is not None
            self.store(result, at, arith.to_memory(b, value_of(b, e[0], t, descending)))

    def _digit(self, e: Element, digit: Digit) -> Node:
        low, most = digit
        return self.b.and_(self.b.lshr(e[0], low), most)

    def _count(self, counts: Node, e: Element, digit: Digit) -> None:
        b = self.b
        at = b.gep(counts, b.mul(self._digit(e, digit), 4))
        b.store(at, b.add(b.load(at, I32), 1))

    def _move(self, lo: Node | int, hi: Node | int, here: Node, counts: Node, digit: Digit,
              put: Callable[[Node, Element], None]) -> None:  # fmt: skip
        b = self.b

        def one(i: Node) -> None:
            e = self._get(here, i)
            at = b.gep(counts, b.mul(self._digit(e, digit), 4))
            place = b.load(at, I32)
            b.store(at, b.add(place, 1))
            put(b.convert("sext", place, "i64"), e)

        b.for_(lo, hi, 1, one)

    @property
    def ends_plainly(self) -> bool:
        """Whether a result's element is the lower half of one that is sorted."""
        return self.form.carries == "value" and self.sizes[0] == 4 and self.inner == 1

    def _move_last(self, lo: Node | int, hi: Node | int, here: Node, counts: Node, digit: Digit, source: Rows,
                   result: Rows) -> None:  # fmt: skip
        """Move elements to the results."""
        if self.ends_plainly:
            self.step(sort_steps.move(last=True), (counts, here, result.pointers[0], lo, hi, *digit))
        else:
            self._move(lo, hi, here, counts, digit, lambda at, e: self._finish(source, result, at, e))

    def _parts(self, array: Node) -> list[Node]:
        """Arrays of the parts of elements, one behind the other."""
        return [array, self.b.gep(array, -(-8 * self.n // 64) * 64)][: len(self.form.sizes)]

    def _get(self, array: Node, i: Node) -> Element:
        b = self.b
        return tuple(b.load(b.gep(p, b.mul(i, s)), I64 if s == 8 else I32)
                     for p, s in zip(self._parts(array), self.form.sizes, strict=True))  # fmt: skip

    def _put(self, array: Node, i: Node, e: Element) -> None:
        b = self.b
        for p, s, x in zip(self._parts(array), self.form.sizes, e, strict=True):
            b.store(b.gep(p, b.mul(i, s)), x)


@record
class _Chunk:
    """A chunk of a row: its number and bounds, its counts; of its row, both arrays and where the pass's number is."""

    row: Node
    number: Node
    lo: Node
    hi: Node
    counts: Node
    arrays: tuple[Node, Node]
    passes: Node

    def array(self, b: Builder, number: Node) -> Node:
        """Where elements are before a pass."""
        return b.select(b.cmp("eq", b.and_(number, 1), 0), *self.arrays)


def _in_chunks(op: Op, form: _Form, rows: int) -> Lowered:
    """Phases over the chunks of all rows. All passes have the same functions: the number of a row's pass is in memory,
    where what finds the first places of its digits writes it."""
    n = op.operands[0].tensor.shape[op.attrs["dimension"]]
    chunks = min(CHUNKS, n // CHUNK)
    size = -(-n // chunks)
    one = sum(-(-s * n // 64) * 64 for s in form.sizes)
    table = 4 * form.bins * chunks
    space = 2 * one + table + 64
    last = len(form.digits) - 1

    def of_chunks(name: str, work: Callable[[_Radix, _Chunk], None], outer: bool = False) -> Phase:
        """Units are chunks. `outer`: all the work is in steps that all programs share."""
        w = _Radix(op, f"sort_{name}", form)
        w.func.attrs["outer"] = outer
        b = w.b
        _, begin, end = w.func.params

        def unit(u: Node) -> None:
            row, chunk = (index.node(b, x) for x in index.delinear(index.loop_var(u, 0, rows * chunks), (rows, chunks)))
            base = b.gep(w.space, b.mul(row, space))
            lo = b.mul(chunk, size)
            hi = b.smin(b.add(lo, size), n)
            counts = b.gep(base, b.add(b.mul(chunk, 4 * form.bins), 2 * one))
            work(w, _Chunk(row, chunk, lo, hi, counts, (base, b.gep(base, one)), b.gep(base, 2 * one + table)))

        b.for_(begin, end, 1, unit)
        b.ret()
        return Phase(w.func, rows * chunks, size * NS, list(w.helpers.values()))

    def make(w: _Radix, c: _Chunk) -> None:
        def begin() -> None:
            w.b.store(c.passes, w.b.const(-1, I64))

        w.b.if_(w.b.cmp("eq", c.number, 0), begin)
        w.make_chunk(c.row, c.lo, c.hi, c.arrays[0], c.counts)

    def count(w: _Radix, c: _Chunk) -> None:
        number = w.b.add(w.b.load(c.passes, I64), 1)
        w.count_chunk(form.digit_at(w.b, number), c.lo, c.hi, c.array(w.b, number), c.counts)

    def move(w: _Radix, c: _Chunk) -> None:
        number = w.b.load(c.passes, I64)
        here, there = (c.array(w.b, w.b.add(number, i)) for i in (0, 1))
        w.move_chunk(form.digit_at(w.b, number), c.lo, c.hi, here, there, c.counts)

    def move_last(w: _Radix, c: _Chunk) -> None:
        w.func.attrs["outer"] = w.ends_plainly
        w.move_last(form.digit(last), c.row, c.lo, c.hi, c.arrays[last % 2], c.counts)

    def starts() -> Phase:
        """Units are rows."""
        w = _Radix(op, "sort_starts", form)
        w.func.attrs["outer"] = True
        b = w.b
        _, begin, end = w.func.params

        def unit(r: Node) -> None:
            counts = b.gep(w.space, b.add(b.mul(r, space), 2 * one))
            passes = b.gep(counts, table)
            number = b.add(b.load(passes, I64), 1)
            b.store(passes, number)
            w.start_chunks(form.digit_at(b, number), counts, chunks)

        b.for_(begin, end, 1, unit)
        b.ret()
        return Phase(w.func, rows, form.bins * chunks * 1.0, list(w.helpers.values()))

    moves = of_chunks("move", move, form.sizes == (8,)) if last or form.carries == "place" else None
    counts, first_places = of_chunks("count", count, True) if last else None, starts()
    phases = [of_chunks("make", make)]
    for i in range(last + 1):
        ends = i == last and form.carries != "place"  # in the results
        phases += [counts] if i and counts else []
        phases.append(first_places)
        phases += [of_chunks("last", move_last)] if ends else [moves] if moves else []
    if form.carries == "place":
        phases.append(of_chunks("finish", lambda w, c: w.finish_chunk(c.row, c.lo, c.hi, c.arrays[(last + 1) % 2])))
    return Lowered(phases, scratch=rows * space, strategy="sort by digits",
                   reason=f"keys of {form.order.bits} bits in {len(form.digits)} passes; rows in chunks")  # fmt: skip
