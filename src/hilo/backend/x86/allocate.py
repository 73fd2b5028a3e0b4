"""Registers for a function's values: linear scan over live intervals. Imports x86.machine, x86.spill.

An interval reaches from the first to the last place where a virtual register stands; one that a loop finds made reaches
to that loop's end. Control flow is structured and written in order, so that this covers all ways through the code. What
ends where another one begins may share its register. Values that live across a call take registers that calls keep, or
are saved around it (`Allocation.across`); if that costs more than leaving them in memory, or there are too few
registers, the values that are read least often, counting by the depth of loops, are put into memory (`spill.rewrite`)
and all is done again.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from hilo.backend.x86.machine import (
    CALL,
    COLD,
    DIVIDE,
    ENTER,
    FIRST,
    FRAME,
    HEAD,
    INCOMING,
    MOVE,
    NO,
    OUTGOING,
    RETURN,
    TAIL,
    WARM,
    Draft,
    Instruction,
)

if TYPE_CHECKING:
    from hilo.loop.nodes import VType

ALL: Final[tuple[int, ...]] = (0xFFEF, 0xFFFFFFFF, 0xFE)  # registers of each class: all but rsp, and but k0
KEPT: Final[tuple[int, ...]] = (0xF028, 0, 0)  # what calls keep: rbx rbp r12 r13 r14 r15
SLOT: Final = (8, 64, 8)  # bytes of memory for a value, by class
ASIDE: Final = (0xC00, 0xC0000000, 0xC0)  # set aside for reloaded values, if there is no end to them
DIVISION: Final = 0x5  # rax, rdx
INTEGERS: Final = (7, 6, 2, 1, 8, 9)  # where parameters go: rdi rsi rdx rcx r8 r9
FLOATS: Final = tuple(range(8))
TURNS: Final = 8.0  # how often a loop is thought to run
RARE: Final = 1 / 64
INFINITE: Final = float("inf")


class Allocation:
    """`place`: the machine's register of each register; `across`: of each call what must be saved around it; `used`:
    the registers of each class that are written; `inner`: where loops begin that hold no others."""

    def __init__(self, place: list[Any], across: dict[int, list[int]], used: tuple[int, ...], inner: set[int]) -> None:
        self.place = place
        self.across = across
        self.used = used
        self.inner = inner


class Intervals:
    """Where each register lives, and what it would like to share a register with."""

    def __init__(self, code: list[Instruction], count: int) -> None:
        self.start = start = [-1] * count
        self.end = end = [-1] * count
        self.hints: dict[int, list[int]] = {}  # registers, virtual or not
        self.calls: list[int] = []
        self.divisions: list[int] = []
        self.inner: set[int] = set()  # loops that hold no others
        loops: list[tuple[int, set[int]]] = []
        loop, touched = -1, set()
        inner = -1
        for at, instruction in enumerate(code):
            form = instruction[0]
            if form.__class__ is tuple:
                for r in instruction[1:]:
                    if r >= FIRST:
                        if start[r] < 0:
                            start[r] = at
                        elif start[r] < loop:
                            touched.add(r)
                        end[r] = at
                if form[0] == MOVE:
                    self.hint(instruction[1], instruction[3])
                continue
            if form == HEAD:
                loops.append((loop, touched))
                loop, touched = at, set()
                inner = at
            elif form == TAIL:
                outer, others = loops.pop()
                if inner == loop:
                    self.inner.add(loop)
                for r in touched:
                    end[r] = at
                    if start[r] < outer:
                        others.add(r)
                loop, touched = outer, others
            elif (registers := self.special(at, instruction)) is not None:
                for r in registers:
                    if r >= FIRST:
                        if start[r] < 0:
                            start[r] = at
                        elif start[r] < loop:
                            touched.add(r)
                        end[r] = max(end[r], at)

    def hint(self, a: int, b: int) -> None:
        if a >= FIRST:
            self.hints.setdefault(a, []).append(b)
        if b >= FIRST:
            self.hints.setdefault(b, []).append(a)

    def special(self, at: int, instruction: Instruction) -> Any:
        """The registers of what is no plain instruction."""
        kind = instruction[0]
        if kind == ENTER:
            for r, where in zip(instruction[1], passed(instruction[2])[0], strict=True):
                if isinstance(where, int):
                    self.hint(r, where)
            return instruction[1]
        if kind == RETURN:
            for i, r in enumerate(instruction[1]):
                self.hint(r, i)
            return instruction[1]
        if kind == DIVIDE:
            _, _, what, r, a, b = instruction
            self.divisions.append(at)
            self.hint(a, 0)
            self.hint(r, 0 if what[1:] == "div" else 2)
            self.end[b] = at + 1  # it is read when the division's registers are taken
            return r, a, b
        if kind == CALL:
            _, callee, arguments, types, results, _ = instruction
            self.calls.append(at)
            if isinstance(callee, int):
                self.hint(callee, 11)
            for r, where in zip(arguments, passed(types)[0], strict=True):
                if isinstance(r, int) and isinstance(where, int):
                    self.hint(r, where)
            for i, r in enumerate(results):
                self.hint(r, i)
            return registers_of(instruction)
        return None


@cache
def passed(types: tuple[VType, ...]) -> tuple[list[int | tuple[int]], int]:
    """Where parameters of some types are handed over: a register of their class each, or (bytes,) on the stack; and the
    bytes of the stack."""
    integers = floats = stack = 0
    places: list[int | tuple[int]] = []
    for t in types:
        if t.lanes > 1 or t.is_float:
            if floats < len(FLOATS):
                places.append(FLOATS[floats])
                floats += 1
                continue
        elif integers < len(INTEGERS):
            places.append(INTEGERS[integers])
            integers += 1
            continue
        places.append((stack,))
        stack += 8
    return places, stack


def allocate(draft: Draft, constants: dict[int, Any]) -> Allocation:
    """Registers for all that is in `draft.code`, from which values may be put into memory."""
    kept: set[int] = set()  # registers of reloaded values, which must not be put into memory again
    turns = 0
    while True:
        scan = _Scan(draft, constants, kept, ASIDE if turns > 2 else (0, 0, 0))
        turns += 1
        if not scan.spilled:
            return Allocation(scan.place, scan.across, tuple(scan.used), scan.live.inner)
        from hilo.backend.x86.spill import rewrite

        rewrite(draft, scan.spilled, constants, kept)


class _Scan:
    """One pass over the intervals in the order of their beginnings."""

    def __init__(self, draft: Draft, constants: dict[int, Any], kept: set[int], aside: tuple[int, ...]) -> None:
        self.draft, self.constants, self.kept = draft, constants, kept
        self.aside = aside  # registers for reloaded values alone
        self.live = live = Intervals(draft.code, len(draft.classes))
        self.place: list[Any] = [*range(FIRST), *[-1] * (len(draft.classes) - FIRST)]
        self.place[NO] = None
        self.place[FRAME] = self.place[INCOMING] = self.place[OUTGOING] = 4
        self.spilled: set[int] = set()
        self.across: dict[int, list[int]] = {at: [] for at in live.calls}
        self.used = [0, 0, 0]
        self._weights: list[float] | None = None
        self._costs: list[float] = []
        self.run()

    def run(self) -> None:
        live, classes, place, used = self.live, self.draft.classes, self.place, self.used
        start, end, hints, special = live.start, live.end, live.hints, bool(live.calls or live.divisions)
        free: list[int] = [*ALL]
        self.owner: tuple[dict[int, int], ...] = ({}, {}, {})
        found = [v for v in range(FIRST, len(start)) if start[v] >= 0]
        for v in found:
            if end[v] == start[v]:  # written, and not read: no other value may be there at that moment
                end[v] += 1
        ending = iter(sorted(found, key=end.__getitem__))
        old = next(ending, 0)
        for v in sorted(found, key=start.__getitem__):
            kind, at, until = classes[v], start[v], end[v]
            while end[old] <= at:
                owner = self.owner[classes[old]]
                if owner.get(place[old]) == old:
                    del owner[place[old]]
                    free[classes[old]] |= 1 << place[old]
                old = next(ending)
            owner = self.owner[kind]
            candidates, crossed = free[kind], None
            aside = self.aside[kind] if v not in self.kept else 0
            candidates &= ~aside
            if special:
                candidates, crossed = self.without(candidates, kind, at, until)
            if not candidates and (crossed is None or not crossed):
                forbidden = aside
                if special:
                    forbidden |= ALL[kind] & ~self.without(ALL[kind], kind, at, until)[0]
                candidates = self.make_room(v, kind, forbidden)
                if not candidates:
                    continue
                free[kind] |= candidates
            if crossed:
                keep = candidates & KEPT[kind]
                if keep:
                    candidates = keep
                elif not candidates or self.saving(crossed) > self.weight(v):
                    if v not in self.kept:
                        self.spilled.add(v)
                        continue
                    if not candidates:
                        candidates = self.make_room(v, kind, 0)
                        free[kind] |= candidates
            elif kind == 0 and candidates & ~KEPT[0]:
                candidates &= ~KEPT[0]
            register = -1
            for h in hints.get(v, ()):
                where = place[h]
                if where is not None and where >= 0 and candidates >> where & 1:
                    register = where
                    break
            if register < 0:
                register = (candidates & -candidates).bit_length() - 1
            place[v] = register
            owner[register] = v
            free[kind] &= ~(1 << register)
            used[kind] |= 1 << register
            if crossed and not KEPT[kind] >> register & 1:
                for call in crossed:
                    self.across[call].append(v)

    def without(self, candidates: int, kind: int, at: int, until: int) -> tuple[int, Any]:
        """The candidates that a division inside of an interval leaves; the calls inside."""
        live = self.live
        if kind == 0 and live.divisions and within(live.divisions, at, until):
            candidates &= ~DIVISION
        if live.calls:
            return candidates, within(live.calls, at, until)
        return candidates, ()

    # ---- too few registers
    def make_room(self, v: int, kind: int, forbidden: int) -> int:
        """Put the value into memory that is read least, of `v` and those with a register it could have; gives the
        register that is free then, as a bit, or none, if it is `v` itself."""
        best, least = v, self.weight(v)
        for register, other in self.owner[kind].items():
            if not forbidden >> register & 1 and self.weight(other) < least:
                best, least = other, self.weight(other)
        assert best not in self.kept, "more values in one instruction than there are registers"
        self.spilled.add(best)
        if best == v:
            return 0
        register = self.place[best]
        del self.owner[kind][register]
        for calls in self.across.values():
            if best in calls:
                calls.remove(best)
        return 1 << register

    def weight(self, v: int) -> float:
        """How often a register is read or written."""
        if v in self.kept:
            return INFINITE
        if self._weights is None:
            self.weigh()
        w = self._weights[v]  # type: ignore[index]
        return w / 2 if v in self.constants else w

    def saving(self, calls: list[int]) -> float:
        """What it costs to save a register around some calls."""
        if self._weights is None:
            self.weigh()
        return sum(2 * self._costs[at] for at in calls)

    def weigh(self) -> None:
        weights = [0.0] * len(self.draft.classes)
        often, costs = 1.0, [1.0] * len(self.draft.code)
        for at, instruction in enumerate(self.draft.code):
            form = instruction[0]
            costs[at] = often
            if form.__class__ is tuple:
                for r in instruction[1:]:
                    weights[r] += often
            elif form == HEAD:
                often *= TURNS
            elif form == TAIL:
                often /= TURNS
            elif form == COLD:
                often *= RARE
            elif form == WARM:
                often /= RARE
            else:
                for r in registers_of(instruction):
                    weights[r] += often
        self._weights, self._costs = weights, costs


def within(places: list[int], after: int, before: int) -> list[int]:
    """Those of some places, in order, that lie between two others."""
    if len(places) < 8:
        return [at for at in places if after < at < before]
    from bisect import bisect_left, bisect_right

    return places[bisect_right(places, after) : bisect_left(places, before)]


def registers_of(instruction: Instruction) -> list[int]:
    """The registers of what is no plain instruction."""
    kind = instruction[0]
    if kind == ENTER:
        return list(instruction[1])
    if kind == RETURN:
        return list(instruction[1])
    if kind == DIVIDE:
        return list(instruction[3:])
    if kind == CALL:
        return [r for r in (*instruction[2], *instruction[4], instruction[1]) if isinstance(r, int)]
    return []
