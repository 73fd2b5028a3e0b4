"""Small kernels side by side: steps of a row that do not touch each other's memory run as one parallel loop.

A kernel below `INLINE_COST` is not worth waking a thread for, but many of them are: the updates of a hundred small
parameters, say. Steps that follow one another form chains (a step that touches memory of one chain joins it, behind);
chains are independent of each other and become the units of a parallel loop, several to a unit where they are short.
Looks at places in memory, so that buffers must have their offsets. Imports plan.program.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from typing import Final

from hilo.ir.dims import Size
from hilo.plan.program import Buffer, Call, Program, Step, Switch, While
from hilo.record import record

MOST_STEPS: Final = 128  # of a group: its pointers lie on the stack, and its function has one branch per unit
CALL_COST: Final = 100.0  # ns of a kernel's call: its pointers, and data that nobody has fetched
LONGEST: Final = 0.75  # of a group's time: beyond, the longest chain leaves nothing to share
_SPACE: Final = 1 << 44  # bytes between the places of two arguments or results: no buffer is as large


@record
class Together:
    """Units of a parallel loop, each of which does the steps of some chains in order."""

    units: list[list[Call]]

    @property
    def pointers(self) -> int:
        """How many pointers the kernels get."""
        return sum(len(step.buffers) for unit in self.units for step in unit)


class Places:
    """Where the buffers of a program lie, as ranges of one line of numbers: the arena, then arguments and results."""

    def __init__(self, program: Program) -> None:
        self._place = {id(b): (1 + i) * _SPACE for i, b in enumerate((*program.arguments, *program.results))}
        for result, argument in program.aliases:  # may be one place
            self._place[id(program.results[result])] = self._place[id(program.arguments[argument])]
        for row in (program.steps, *bodies(program.steps)):
            for loop in (s for s in row if isinstance(s, While)):
                for pointer in (*loop.params, *loop.spare):  # they go to different places at any time
                    self._place[id(pointer)] = (1 + len(self._place)) * _SPACE

    def ranges(self, buffer: Buffer) -> Iterator[tuple[int, int]]:
        """The places that a buffer may be at, of which it is at one; none for a constant."""
        root = buffer.root()
        if root.kind == "pointer" and id(root) not in self._place:
            for b in root.backing:
                yield from self.ranges(b)
        elif root.kind == "temp":
            base = 0 if root.inside is None else self._place[id(root.inside.root())]
            yield base + root.offset, base + root.offset + root.nbytes
        elif root.kind != "constant":
            yield self._place[id(root)], self._place[id(root)] + root.nbytes


class Group:
    """Chains under construction, and the ranges of memory that each of them reads and writes."""

    def __init__(self) -> None:
        self.chains: list[list[Call]] = []
        self.count = 0
        self._ranges: list[tuple[int, int, int, bool]] = []  # begin, end, chain, written; in order
        self._longest = 0

    def takes(self, step: Call, touched: list[tuple[int, int, bool]]) -> bool:
        """Add a step to the chain that it depends on, or to a new one; False if it depends on several."""
        if self.count == MOST_STEPS:
            return False
        needed = {chain for begin, end, written in touched for chain in self._touching(begin, end, written)}
        if len(needed) > 1:
            return False
        chain = needed.pop() if needed else len(self.chains)
        if chain == len(self.chains):
            self.chains.append([])
        self.chains[chain].append(step)
        self.count += 1
        for begin, end, written in touched:
            insort(self._ranges, (begin, end, chain, written))
            self._longest = max(self._longest, end - begin)
        return True

    def _touching(self, begin: int, end: int, written: bool) -> Iterator[int]:
        """The chains that may not run beside an access to begin..end."""
        first = bisect_left(self._ranges, (begin - self._longest,))
        for _, e, chain, w in self._ranges[first : bisect_left(self._ranges, (end,))]:
            if e > begin and (w or written):
                yield chain


def cost(step: Call) -> float:
    """Estimated nanoseconds of a kernel on one thread."""
    return CALL_COST + sum(p.units * p.unit_cost for p in step.lowered.phases)


def arrange(steps: Iterable[Step], places: Places, alone: float, unit: float) -> list[Step | Together]:
    """The steps, some of them put together. A kernel of `alone` ns or more stays alone, as do kernels that are no more
    than that all together; a unit of a parallel loop has `unit` ns of work or a whole chain."""
    out: list[Step | Together] = []
    row: list[Call] = []
    for s in steps:
        if isinstance(s, Call) and not any(isinstance(p.units, Size) for p in s.lowered.phases) and cost(s) < alone:
            row.append(s)
            continue
        out += _grouped(row, places, alone, unit)
        out.append(s)
        row = []
    return out + _grouped(row, places, alone, unit)


def _grouped(row: list[Call], places: Places, alone: float, unit: float) -> list[Step | Together]:
    """Small kernels in a row, some of them put together."""
    if sum(map(cost, row)) < alone:
        return [*row]
    out: list[Step | Together] = []
    group, pending = Group(), []
    for s in row:
        touched = [(*r, False) for b in s.operands for r in places.ranges(b)]
        written = s.results if s.scratch is None else (*s.results, s.scratch)
        touched += [(*r, True) for b in written for r in places.ranges(b)]
        if not group.takes(s, touched):
            out += _share(group.chains, pending, alone, unit)
            group, pending = Group(), []
            group.takes(s, touched)
        pending.append(s)
    return out + _share(group.chains, pending, alone, unit)


def _share(chains: list[list[Call]], steps: list[Call], alone: float, unit: float) -> list[Step | Together]:
    """Chains as units of one loop, or their steps as they were if that is not worth it."""
    costs = [sum(map(cost, c)) for c in chains]
    total = sum(costs)
    if total < alone or max(costs) > LONGEST * total:
        return [*steps]
    units: list[list[Call]] = [[]]
    filled = 0.0
    for chain, ns in zip(chains, costs, strict=True):
        if filled >= unit:
            units.append([])
            filled = 0.0
        units[-1].extend(chain)
        filled += ns
    return [Together(units)]


def bodies(steps: Iterable[Step]) -> Iterator[list[Step]]:
    """The lists of steps inside of steps: conditions and bodies of loops, branches."""
    for s in steps:
        inner = [s.cond, s.body] if isinstance(s, While) else s.branches if isinstance(s, Switch) else []
        for x in inner:
            yield x
            yield from bodies(x)
