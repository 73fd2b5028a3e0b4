"""Packing panels of B: a few vectors of columns, their rows one after the other. Imports loop, ir.dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from hilo.ir.dtypes import dtype
from hilo.kernels.microkernel import memory_size
from hilo.loop import arith
from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType
from hilo.loop.product import TURNING_PARAMS, Turning

PanelTurn = Callable[[Node, Node, int, int, bool], None]  # column, place, vectors, lanes, masked


def copy_run(b: Builder, scalar: str, source: Node, to: Node, count: int, lanes: int) -> None:
    """Copy `count` elements that lie one after the other, in as few vectors of up to `lanes` as there can be."""
    at = 0
    while at < count:
        while lanes > count - at:
            lanes //= 2
        v = VType(scalar, lanes)
        b.store(b.gep(to, at * v.size), b.load(b.gep(source, at * v.size), v))
        at += lanes


TURN_PARAMS: Final = [(n, PTR if n in ("panel", "source") else I64) for n in TURNING_PARAMS]


@cache
def turn(scalar: str, narrow: str, lanes: int, masks: bool) -> Func:
    """Copy a panel of `vectors` vectors, whose rows are `width` bytes, of a B that has k contiguous: column j is at
    source + j * b_col. Squares are turned in registers; the last one of a column overlaps the one before.

    Only `live` columns are there; the others get values of no account.
    """
    name = f"turn_{scalar}{narrow}_{lanes}{'m' if masks else ''}"
    f = Func(name, TURN_PARAMS, noalias=("panel",), inline="never")
    if masks:
        f.attrs["product"] = Turning(scalar, narrow, lanes)
    b = Builder(f)
    panel, width, source, b_col, k, live, vectors = f.params
    size, b_size = VType(scalar).size, memory_size(scalar, narrow)
    memory = VType("i16" if narrow else scalar)
    places = b.alloca(I64.size * lanes)  # of the columns of a vector: a dozen are too many for registers
    short = b.cmp("slt", k, lanes)  # of a square: where there are masks to read it with, it is turned beside the panel
    spare = b.alloca(lanes * lanes * size) if masks else panel
    mask = b.cmp("slt", b.iota(I64.with_lanes(lanes)), k) if masks else None

    def put(to: Node, x: Node) -> None:
        b.store(to, arith.from_memory(b, dtype(narrow), (x,)).re if narrow else x)

    def column(source: Node, l: Node | int) -> Node:
        """Where column l of a vector is; `source` is the first one's."""
        at = b.mul(l, I64.size) if isinstance(l, Node) else l * I64.size
        return b.gep(source, b.load(b.gep(places, at), I64))

    def vector(j: Node) -> None:
        to, first = b.gep(panel, b.mul(j, lanes * size)), b.mul(j, lanes)
        columns = b.smin(b.add(b.iota(I64.with_lanes(lanes)), first), b.sub(live, 1))
        b.store(places, b.mul(columns, b_col))

        def square(at: Node) -> None:
            at = b.smax(b.smin(at, b.sub(k, lanes)), 0)
            start = b.gep(source, b.mul(at, b_size))
            run = [b.load(column(start, l), memory.with_lanes(lanes), mask=mask) for l in range(lanes)]
            row, row_bytes = b.gep(to, b.mul(at, width)), width
            if masks:
                row, row_bytes = b.select(short, spare, row), b.select(short, lanes * size, width)
            for x in transposed(b, run):
                put(row, x)
                row = b.gep(row, row_bytes)

        def copy(i: Node) -> None:
            b.store(b.gep(to, b.mul(i, width)), b.load(b.gep(spare, b.mul(i, lanes * size)), VType(scalar, lanes)))

        def element(i: Node) -> None:
            row, start = b.gep(to, b.mul(i, width)), b.gep(source, b.mul(i, b_size))
            b.for_(0, lanes, 1, lambda l: put(b.gep(row, b.mul(l, size)), b.load(column(start, l), memory)))

        if masks:
            b.for_(0, k, lanes, square)
            b.if_(short, lambda: b.for_(0, k, 1, copy) and None)
        else:
            b.if_(short, lambda: b.for_(0, k, 1, element) and None, lambda: b.for_(0, k, lanes, square) and None)

    b.for_(0, vectors, 1, vector)
    b.ret()
    return f


def transposed(b: Builder, rows: Sequence[Node]) -> Sequence[Node]:
    """n vectors of n lanes (a power of two) with rows and lanes exchanged.

    Lanes lie in blocks of 16 bytes, within which shuffles are quick: rows and lanes are exchanged within blocks of rows
    and of lanes, then the blocks themselves. Rounds are alike: each takes the bits of (row, lane) one place further.
    """
    n = len(rows)
    e = min(n, 16 // rows[0].type.size)  # lanes of a block
    blocks = n // e

    def within(_: Node, *x: Node) -> list[Node]:
        low, high = ([p + m + s for p in range(0, n, e) for m in range(start, start + e // 2) for s in (0, n)]
                     for start in (0, e // 2))  # fmt: skip
        pairs = ((x[q + i], x[q + i + e // 2]) for q in range(0, n, e) for i in range(e // 2))
        return [b.shuffle(x, y, mask) for x, y in pairs for mask in (low, high)]

    def across(_: Node, *x: Node) -> list[Node]:
        even, odd = ([s + p * e + m for s in (0, n) for p in range(start, blocks, 2) for m in range(e)]
                     for start in (0, 1))  # fmt: skip
        return [b.shuffle(x[2 * q * e + i], x[(2 * q + 1) * e + i], mask)
                for mask in (even, odd) for q in range(blocks // 2) for i in range(e)]  # fmt: skip

    rows = b.for_(0, e.bit_length() - 1, 1, within, rows)
    return b.for_(0, blocks.bit_length() - 1, 1, across, rows)
