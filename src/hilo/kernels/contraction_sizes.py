"""Contractions whose batch or M is known only at run time: planned for a small one. Imports ir.dims, kernels.

More of either is only more units, so that the plan for a small number is good for a large one, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hilo.ir.dims import Number, Size, Undecided, content, divide, typical
from hilo.kernels.contraction_plan import Plan

ROWS = 64  # of M that a plan is made for, if M is not a multiple of something larger
Sizes = tuple[Number, Number, Number, Number]


def is_static(sizes: Sizes) -> bool:
    return all(isinstance(n, int) for n in sizes)


def planned_for(sizes: Sizes) -> tuple[int, int, int, int]:
    """The sizes that the plan for `sizes` is made for. Raises `Undecided` where N or K is a run-time size."""
    bt, m, n, k = sizes
    if not isinstance(n, int) or not isinstance(k, int) or (isinstance(m, Size) and n == 1):
        raise Undecided("a contraction of these run-time sizes")
    rows = m if isinstance(m, int) else content(m)[0] * -(-ROWS // content(m)[0])
    return bt if isinstance(bt, int) else content(bt)[0], rows, n, k


def with_sizes(p: Plan, sizes: Sizes) -> Plan:
    """The plan for `planned_for(sizes)`, for `sizes`."""
    if isinstance(sizes[1], Size) and p.kind != "tile":
        raise Undecided("a contraction of a run-time number of rows")
    units = typical(sizes[0] * sizes[1]) / max(1, p.sizes[0] * p.sizes[1])
    return replace(p, sizes=sizes, cost=p.cost * units)


def rests(m: Number, rows: int) -> Iterator[int]:
    """Heights of the tiles for the last rows of M, fewer than `rows`: each is used once or never, in this order."""
    if isinstance(m, int):
        if m % rows:
            yield m % rows
    elif divide(m, rows) is None:
        bit = 1 << (rows - 1).bit_length() >> 1
        while bit:
            yield bit
            bit >>= 1
