"""Packing panels of B: a few vectors of columns, their rows one after the other. Imports loop, ir.dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hilo.ir.dtypes import dtype
from hilo.kernels.microkernel import load_b, memory_size
from hilo.loop import arith
from hilo.loop.builder import I64, Builder, Node, VType

PanelTurn = Callable[[Node, Node, int, int, bool], None]  # column, place, vectors, lanes, masked


def copy_panels(
    b: Builder,
    scalar: str,
    narrow: str,
    source: Node,
    b_row: int,
    kc: Node,
    n: int,
    each_panel: Callable[[PanelTurn], None],
) -> None:
    """Copy `kc` rows of panels. Row k of B is at source + k * b_row and has `n` columns; all panels of a row are copied
    before the next row is read."""
    size, b_size = VType(scalar).size, memory_size(scalar, narrow)

    def row(k: Node) -> None:
        def copy(j: Node, at: Node, vectors: int, lanes: int, masked: bool) -> None:
            v = VType(scalar, lanes)
            step = lanes * size
            src = b.gep(source, b.add(b.mul(k, b_row), b.mul(j, b_size)))
            dst = b.gep(at, b.mul(k, vectors * step))
            for x in range(vectors):
                mask = None
                if masked and x == vectors - 1:
                    mask = b.cmp("slt", b.iota(I64.with_lanes(lanes)), b.sub(n, b.add(j, x * lanes)))
                b.store(b.gep(dst, x * step), load_b(b, src, b.i64(x * lanes * b_size), v, narrow, mask))

        each_panel(copy)

    b.for_(0, kc, 1, row)


def copy_run(b: Builder, scalar: str, source: Node, to: Node, count: int, lanes: int) -> None:
    """Copy `count` elements that lie one after the other, in as few vectors of up to `lanes` as there can be."""
    at = 0
    while at < count:
        while lanes > count - at:
            lanes //= 2
        v = VType(scalar, lanes)
        b.store(b.gep(to, at * v.size), b.load(b.gep(source, at * v.size), v))
        at += lanes


def turn_panel(
    b: Builder,
    scalar: str,
    narrow: str,
    source: Node,
    b_col: int,
    panel: Node,
    kc: Node,
    live: Node,
    vectors: int,
    lanes: int,
    masked: bool,
) -> None:
    """Copy a panel of B that has k contiguous (column j at source + j * b_col), turning squares in registers.

    `masked`: only `live` columns are there; the others get values of no account.
    """
    size, b_size = VType(scalar).size, memory_size(scalar, narrow)
    memory = VType("i16" if narrow else scalar)
    width = vectors * lanes * size

    def square(k: Node, depth: int) -> None:
        v = memory.with_lanes(depth)
        for j in range(vectors):
            run = []
            for l in range(lanes):
                column = b.i64(j * lanes + l)
                if masked:
                    column = b.smin(column, b.sub(live, 1))
                run.append(b.load(b.gep(b.gep(source, b.mul(column, b_col)), b.mul(k, b_size)), v))
            rows = transposed(b, run) if depth > 1 else [joined(b, run)]
            for d, x in enumerate(rows):
                if narrow:
                    x = arith.from_memory(b, dtype(narrow), (x,)).re
                b.store(b.gep(panel, b.add(b.mul(b.add(k, d), width), j * lanes * size)), x)

    if lanes == 1:
        b.for_(0, kc, 1, lambda k: square(k, 1))
        return
    whole = b.and_(kc, -lanes)
    b.for_(0, whole, lanes, lambda k: square(k, lanes))
    b.for_(whole, kc, 1, lambda k: square(k, 1))


def joined(b: Builder, scalars: Sequence[Node]) -> Node:
    """Scalars as the lanes of a vector."""
    if len(scalars) == 1:
        return scalars[0]
    v = b.splat(scalars[0], len(scalars))
    for l, x in enumerate(scalars[1:], 1):
        v = b.insert(v, x, l)
    return v


def transposed(b: Builder, rows: Sequence[Node]) -> list[Node]:
    """n vectors of n lanes (a power of two) with rows and lanes exchanged, by log2 n rounds of pairwise blends."""
    out = list(rows)
    n = len(out)
    s = 1
    while s < n:
        for i in range(n):
            if i & s:
                continue
            x, y = out[i], out[i + s]
            out[i] = b.shuffle(x, y, [l if not l & s else n + l - s for l in range(n)])
            out[i + s] = b.shuffle(x, y, [l + s if not l & s else n + l for l in range(n)])
        s *= 2
    return out
