"""Bringing matrices of bytes into the form that dot products of four bytes take: functions of whole rows. Imports loop.

runtime/native/bytes.c has them, too, for programs of this process; these serve all others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from hilo.loop.builder import I32, I64, PTR, Builder, Func, Node, VType
from hilo.loop.nodes import Deferred

if TYPE_CHECKING:
    from hilo.backend.target import Target

Part = Callable[[Node, int, Node | None], None]  # (first element, how many, those that count)


def _function(name: str, params: str, write: Callable[..., Any]) -> Func:
    def body(f: Func) -> None:
        b = Builder(f)
        write(b, *f.params)
        b.ret()

    kinds = [(n, PTR if n in ("source", "to") else I64) for n in params.split()]
    return Deferred(name, kinds, body, inline="never", ready=True, noalias=("to",))


def _each(b: Builder, n: Node, lanes: int, target: Target, part: Part) -> None:
    """`part` for elements 0..n, in vectors of `lanes`."""
    whole = b.and_(n, -lanes)
    b.for_(0, whole, lanes, lambda i: part(i, lanes, None))
    if lanes > 1 and target.has_masks:
        mask = b.cmp("slt", b.iota(I64.with_lanes(lanes)), b.sub(n, whole))
        b.if_(b.cmp("slt", whole, n), lambda: part(whole, lanes, mask))
    elif lanes > 1:
        b.for_(whole, n, 1, lambda i: part(i, 1, None))


@cache
def flip(target: Target) -> Func:
    """to[i] = source[i] + 128, as bytes that wrap around."""

    def write(b: Builder, source: Node, to: Node, n: Node) -> None:
        def part(i: Node, lanes: int, mask: Node | None) -> None:
            x = b.load(b.gep(source, i), VType("i8", lanes), mask=mask)
            b.store(b.gep(to, i), b.xor(x, -128), mask=mask)

        _each(b, n, target.lanes("i8"), target, part)

    return _function("bytes_flip", "source to n", write)


@cache
def group(target: Target) -> Func:
    """Words of `rows` (1 to 4) bytes of a column, the first row's lowest; those that are not there are 0."""

    def write(b: Builder, source: Node, row: Node, rows: Node, to: Node, columns: Node) -> None:
        def words(count: int) -> None:
            def part(i: Node, lanes: int, mask: Node | None) -> None:
                word = b.const(0, VType("i32", lanes))
                for r in range(count):
                    at = b.gep(b.gep(source, b.mul(row, r)), i)
                    x = b.convert("zext", b.load(at, VType("i8", lanes), mask=mask), "i32")
                    word = b.or_(word, b.shl(x, 8 * r))
                b.store(b.gep(to, b.mul(i, 4)), word, mask=mask)

            _each(b, columns, target.lanes("i32"), target, part)

        for count in range(1, 5):
            b.if_(b.cmp("eq", rows, count), lambda count=count: words(count))

    return _function("bytes_group", "source row rows to columns", write)


@cache
def sums(target: Target) -> Func:
    """-128 times the sum of the signed bytes of each column of words; rows are `row` bytes apart."""

    def write(b: Builder, source: Node, row: Node, rows: Node, to: Node, columns: Node) -> None:
        def part(i: Node, lanes: int, mask: Node | None) -> None:
            t = I32.with_lanes(lanes)
            column = b.gep(source, b.mul(i, 4))

            def add(r: Node, total: Node) -> tuple[Node, ...]:
                word = b.load(b.gep(column, b.mul(r, row)), t, mask=mask)
                return (b.dot(4, total, b.const(-0x7F7F7F80, t), word),)  # bytes of 128

            (total,) = b.for_(0, rows, 1, add, (b.const(0, t),))
            b.store(b.gep(to, b.mul(i, 4)), b.sub(b.const(0, t), total), mask=mask)

        _each(b, columns, target.lanes("i32"), target, part)

    return _function("bytes_sum", "source row rows to columns", write)
