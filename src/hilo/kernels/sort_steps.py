"""Steps of sorts by digits that all programs share: elements of 8 bytes, digits known at run time. Imports loop.

runtime/native/sort.c is the same in C, which programs of this process call. A digit is `(element >> low) & most`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from hilo.loop.builder import I32, I64, PTR, VOID, Builder, Func, Node, VType
from hilo.loop.nodes import Deferred


def _step(name: str, params: str, write: Callable[..., Any], ret: VType = VOID) -> Func:
    """The function `name`, whose parameters are numbers, or pointers if they are called so."""

    def body(f: Func) -> None:
        b = Builder(f)
        out = write(b, *f.params)
        b.ret(out)

    pointers = ("counts", "here", "there")
    kinds = [(n, PTR if n in pointers else I64) for n in params.split()]
    return Deferred(name, kinds, body, ret, inline="never", ready=True)


@cache
def starts() -> Func:
    """Counts of chunks, `step` bytes apart, become first places: digit by digit, of each chunk by chunk."""

    def write(b: Builder, counts: Node, step: Node, chunks: Node, values: Node) -> None:
        def value(d: Node, total: Node) -> tuple[Node, ...]:
            def chunk(c: Node, sofar: Node) -> tuple[Node, ...]:
                at = b.gep(counts, b.add(b.mul(c, step), b.mul(d, 4)))
                n = b.load(at, I32)
                b.store(at, sofar)
                return (b.add(sofar, n),)

            return b.for_(0, chunks, 1, chunk, (total,))

        b.for_(0, values, 1, value, (b.const(0, I32),))

    return _step("radix_starts", "counts step chunks values", write)


@cache
def count() -> Func:
    """How many of the elements lo..hi have each value of a digit."""

    def write(b: Builder, counts: Node, here: Node, lo: Node, hi: Node, low: Node, most: Node) -> None:
        b.memset(counts, 0, b.mul(b.add(most, 1), 4))

        def one(i: Node) -> None:
            at = _place(b, counts, b.load(b.gep(here, b.mul(i, 8)), I64), low, most)
            b.store(at, b.add(b.load(at, I32), 1))

        b.for_(lo, hi, 1, one, unroll=4)

    return _step("radix_count", "counts here lo hi low most", write)


@cache
def move(last: bool = False) -> Func:
    """Move the elements lo..hi to the places of their digits; in the `last` move, only their lower halves."""

    def write(b: Builder, counts: Node, here: Node, there: Node, lo: Node, hi: Node, low: Node, most: Node) -> None:
        def one(i: Node) -> None:
            e = b.load(b.gep(here, b.mul(i, 8)), I64)
            at = _place(b, counts, e, low, most)
            place = b.load(at, I32)
            b.store(at, b.add(place, 1))
            to = b.convert("sext", place, "i64")
            if last:
                b.store(b.gep(there, b.mul(to, 4)), b.convert("itrunc", e, "i32"))
            else:
                b.store(b.gep(there, b.mul(to, 8)), e)

        b.for_(lo, hi, 1, one)

    return _step("radix_last" if last else "radix_move", "counts here there lo hi low most", write)


@cache
def one_pass() -> Func:
    """One pass over a row of `n` elements that are counted, unless all have the same digit; gives 1 if they moved."""

    def write(b: Builder, counts: Node, here: Node, there: Node, n: Node, low: Node, most: Node) -> Node:
        some = b.load(_place(b, counts, b.load(here, I64), low, most), I32)

        def turn() -> tuple[Node, ...]:
            b.call(starts().name, [counts, b.i64(0), b.i64(1), b.add(most, 1)])
            b.call(move().name, [counts, here, there, b.i64(0), n, low, most])
            return (b.i64(1),)

        alike = b.cmp("eq", b.convert("zext", some, "i64"), n)
        (moved,) = b.if_(alike, lambda: (b.i64(0),), turn)
        return moved

    return _step("radix_pass", "counts here there n low most", write, I64)


def _place(b: Builder, counts: Node, element: Node, low: Node, most: Node) -> Node:
    """Where the count of an element's digit is."""
    return b.gep(counts, b.mul(b.and_(b.lshr(element, low), most), 4))
