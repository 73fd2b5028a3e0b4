"""When buffers are alive. Imports plan.program.

Steps are numbered in the order of the text, through loops and branches. A buffer that a loop uses but does not make
lives to the loop's end.
"""

from __future__ import annotations

from hilo.plan.program import Buffer, Call, Copy, HostCall, Step, Switch, While


class Times:
    """Numbers the steps and notes first and last use of every temporary, argument and result."""

    def __init__(self) -> None:
        self.now = 0
        self.loops: list[int] = []
        self.used_inside: list[list[Buffer]] = []  # per open loop: outer buffers that it uses
        self.steps: dict[int, Step] = {}  # by number, in order

    def touch(self, b: Buffer) -> None:
        for x in b.backing:
            self.touch(x)
        if b.kind in ("constant", "pointer", "form"):
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
            self.steps[self.now] = s
            if isinstance(s, Call):
                for b in (*s.operands, *s.results):
                    self.touch(b)
                if s.scratch is not None:
                    self.touch(s.scratch)
            elif isinstance(s, HostCall):
                for b in (*s.operands, *s.results):
                    self.touch(b)
            elif isinstance(s, Copy):
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
