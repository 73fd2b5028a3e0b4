"""Buffer assignment: live ranges of the temporaries, in-place results, best-fit offsets in the arena.

Steps are numbered in the order of the text, through loops and branches. A buffer that a loop uses but does not make
lives to the loop's end. Near-linear in the number of buffers. Imports plan.program.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from hilo.plan.limits import check_arena
from hilo.plan.program import Buffer, Call, Copy, HostCall, Program, Step, Switch, While

ALIGN = 64


class Times:
    """Numbers the steps and notes first and last use of every temporary, argument and result."""

    def __init__(self) -> None:
        self.now = 0
        self.loops: list[int] = []
        self.used_inside: list[list[Buffer]] = []  # per open loop: outer buffers that it uses
        self.calls: list[tuple[int, Call]] = []
        self.copies: list[tuple[int, Copy]] = []

    def touch(self, b: Buffer) -> None:
        for x in b.backing:
            self.touch(x)
        if b.kind in ("constant", "pointer"):
            return
        if b.first < 0:
            b.first, b.home = self.now, () if b.kind == "argument" else tuple(self.loops)
        b.last = max(b.last, self.now)
        for depth in range(len(self.loops)):
            if depth >= len(b.home) or b.home[depth] != self.loops[depth]:
                self.used_inside[depth].append(b)
                break

    def walk(self, steps: list[Step]) -> None:
        for s in steps:
            self.now += 1
            if isinstance(s, Call):
                self.calls.append((self.now, s))
                for b in (*s.operands, *s.results):
                    self.touch(b)
                if s.scratch is not None:
                    self.touch(s.scratch)
            elif isinstance(s, HostCall):
                for b in (*s.operands, *s.results):
                    self.touch(b)
            elif isinstance(s, Copy):
                self.copies.append((self.now, s))
                self.touch(s.source)
                self.touch(s.target)
            elif isinstance(s, Switch):
                self.touch(s.index)
                for branch in s.branches:
                    self.walk(branch)
            else:
                self._while(s)

    def _while(self, s: While) -> None:
        for b in (*s.storage, *s.spare_storage):
            self.touch(b)
        self.loops.append(self.now)
        self.used_inside.append([])
        self.walk(s.cond)
        self.touch(s.pred)
        self.walk(s.body)
        for b in (*s.params, *s.spare, *s.next_params, *s.next_spare):
            self.touch(b)
        self.now += 1
        self.loops.pop()
        for b in self.used_inside.pop():
            b.last = max(b.last, self.now)
            for depth in range(len(self.loops)):
                if depth >= len(b.home) or b.home[depth] != self.loops[depth]:
                    self.used_inside[depth].append(b)
                    break


class _Arena:
    """Free ranges of the arena by offset, and their sizes for best fit."""

    def __init__(self) -> None:
        self.size = 0
        self.free: list[tuple[int, int]] = []  # (offset, size), by offset
        self.by_size: list[tuple[int, int]] = []  # (size, offset)

    def take(self, size: int) -> int:
        k = bisect_left(self.by_size, (size, -1))
        if k < len(self.by_size):
            have, offset = self.by_size.pop(k)
            self.free.remove((offset, have)) if len(self.free) < 64 else self._drop(offset, have)
            if have > size:
                self._add(offset + size, have - size)
            return offset
        if self.free and sum(self.free[-1]) == self.size:  # grow the last free range
            offset, have = self.free.pop()
            self.by_size.remove((have, offset))
            self.size = offset + size
            return offset
        offset, self.size = self.size, self.size + size
        return offset

    def _drop(self, offset: int, size: int) -> None:
        del self.free[bisect_left(self.free, (offset, size))]

    def _add(self, offset: int, size: int) -> None:
        insort(self.free, (offset, size))
        insort(self.by_size, (size, offset))

    def give(self, offset: int, size: int) -> None:
        k = bisect_left(self.free, (offset, 0))
        if k < len(self.free) and self.free[k][0] == offset + size:
            _, after = self.free.pop(k)
            del self.by_size[bisect_left(self.by_size, (after, offset + size))]
            size += after
        if k > 0 and sum(self.free[k - 1]) == offset:
            start, before = self.free.pop(k - 1)
            del self.by_size[bisect_left(self.by_size, (before, start))]
            offset, size = start, size + before
        self._add(offset, size)


def assign_buffers(program: Program, *, in_place: bool = True) -> Program:
    """Give every temporary of `program` its offset and set `arena_size`. Changes the program's buffers."""
    times = Times()
    times.walk(program.steps)
    if in_place:
        for now, call in times.calls:
            _share(call, now)
    _group_ranges(program.buffers)
    if any(not isinstance(b.nbytes, int) for b in program.buffers):
        from hilo.plan.dynamic import assign_sizes

        program.arena_size = assign_sizes(program.buffers)
    else:
        program.arena_size = place(program.buffers, rounded)
        check_arena(program.arena_size)
    for b in program.buffers:
        if b.shares is not None:
            b.offset = b.root().offset
    return program


def rounded(b: Buffer) -> int:
    """The bytes that a buffer takes."""
    return max(ALIGN, -(-b.nbytes // ALIGN) * ALIGN)


def place(buffers: Iterable[Buffer], size: Callable[[Buffer], int]) -> int:
    """Give each buffer that has memory of its own its offset, by best fit; gives the size of the whole."""
    starts: dict[int, list[Buffer]] = {}
    ends: dict[int, list[Buffer]] = {}
    for b in buffers:
        if b.shares is None and b.first >= 0:
            starts.setdefault(b.first, []).append(b)
            ends.setdefault(b.last, []).append(b)
    arena = _Arena()
    for t in sorted({*starts, *ends}):
        for b in sorted(starts.get(t, ()), key=lambda b: -size(b)):
            b.offset = arena.take(size(b))
        for b in ends.get(t, ()):
            arena.give(b.offset, size(b))
    return arena.size


def _share(call: Call, now: int) -> None:
    """Let a result take the place of an operand that dies here, where the kernel is safe under that overlap."""
    for r, result in enumerate(call.results):
        if result.kind != "temp" or result.shares is not None or result.first != now:
            continue
        for k, operand in enumerate(call.operands):
            if (k, r) not in call.in_place or operand.kind != "temp" or operand.nbytes != result.nbytes:
                continue
            if operand.last != now or operand.home != result.home:
                continue
            positions = [j for j, x in enumerate(call.operands) if x is operand or x.root() is operand.root()]
            others = [
                x for x in call.results if x is not result and x.shares is not None and x.root() is operand.root()
            ]
            if others or any((j, r) not in call.in_place for j in positions):
                continue
            result.shares = operand
            break


def _group_ranges(buffers: list[Buffer]) -> None:
    """The range of a shared place reaches from its first to its last tenant."""
    for b in buffers:
        if b.shares is not None:
            root = b.root()
            root.last = max(root.last, b.last)
