"""Contractions whose batch or M is known only at run time: planned for a small one. Imports ir.dims, kernels.

More of either is only more units, so that the plan for a small number is good for a large one, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import gcd
from typing import Final

from hilo.ir.dims import Number, Size, Undecided, apply, content, divide, larger, typical
from hilo.kernels.contraction_algebra import Contraction
from hilo.kernels.contraction_plan import Plan
from hilo.kernels.lowered import Lowered
from hilo.record import replace

MANY: Final = (57, 128)  # rows of M that a plan is made for, if M is not a multiple of something larger
STEPS: Final = (1, 2, 3, 4, 8, 14, 56)  # numbers of rows up to which there are kernels of their own
Sizes = tuple[Number, Number, Number, Number]
Expected = tuple[int, int]  # the fewest and the most rows of M that a kernel is for; beyond STEPS also for more


def is_static(sizes: Sizes) -> bool:
    return all(isinstance(n, int) for n in sizes)


def planned_for(sizes: Sizes, rows: Expected) -> tuple[int, int, int, int]:
    """The sizes that the plan for `sizes` is made for, with about the most of the expected `rows` of M. Raises
    `Undecided` where N or K is a run-time size."""
    bt, m, n, k = sizes
    if not isinstance(n, int) or not isinstance(k, int) or (isinstance(m, Size) and n == 1):
        raise Undecided("a contraction of these run-time sizes")
    some = m if isinstance(m, int) else content(m)[0] * -(-rows[1] // content(m)[0])
    return bt if isinstance(bt, int) else content(bt)[0], some, n, k


def by_rows(c: Contraction, lower_one: Callable[[Contraction, Expected], Lowered]) -> Lowered:
    """The kernel of `c`, some of whose sizes are known only at run time: where M may be small or large, several
    kernels, of which a call runs one."""
    m = c.sizes[1]
    if not isinstance(m, Size) or content(m)[0] >= STEPS[-1]:
        return lower_one(c, MANY)
    many = lower_one(c, MANY)
    made = [(lower_one(c, (last + 1, rows)), apply("and", apply("lt", last, m), apply("le", m, rows)))
            for last, rows in pairwise(STEPS)]  # fmt: skip
    made.append((lower_one(replace(c, m=()), (1, 1)), apply("eq", m, 1)))
    if many.arranged or any(one.arranged for one, _ in made):
        return many  # one constant in one layout
    made.append((many, apply("lt", STEPS[-1], m)))
    phases = [replace(p, units=apply("select", when, p.units, 0)) for one, when in made for p in one.phases]
    scratch = 0
    for one, _ in made:
        scratch = larger(scratch, one.scratch)
    why = f"rows are counted at run time: kernels for few and for many, {len(made)} in all"
    return Lowered(phases, scratch, strategy=many.strategy, reason=f"{why}; {many.reason}")


def with_sizes(p: Plan, sizes: Sizes, rows: Expected) -> Plan:
    """The plan for `planned_for(sizes)`, for `sizes`."""
    if isinstance(sizes[1], Size) and p.kind != "tile":
        raise Undecided("a contraction of a run-time number of rows")
    units = typical(sizes[0] * sizes[1]) / max(1, p.sizes[0] * p.sizes[1])
    return replace(p, sizes=sizes, expected=rows, cost=p.cost * units)


def rests(m: Number, rows: int, expected: Expected) -> Iterator[int]:
    """Heights of the tiles for the last rows of M, fewer than `rows`: each is used once or never, in this order.

    Few rows are one tile of just their height, as two smaller ones would read all of B twice.
    """
    if isinstance(m, int):
        if m % rows:
            yield m % rows
    elif divide(m, rows) is None and expected[1] <= STEPS[-1]:
        step = gcd(content(m)[0], rows)
        possible = {n % rows for n in range(expected[0], expected[1] + 1) if n % step == 0}
        yield from sorted(possible - {0}, reverse=True)
    elif divide(m, rows) is None:
        bit = 1 << (rows - 1).bit_length() >> 1
        while bit:
            yield bit
            bit >>= 1
