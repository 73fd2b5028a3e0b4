"""Checks a plan: what is alive at one time never shares memory, but for what was proven safe. Imports plan.program.

Independent of how buffers were placed (assign.py, place.py): steps are followed, and each read must find what was
written last to that buffer, as far as static offsets tell. Used under HILO_VERIFY.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from hilo.errors import Error
from hilo.plan.program import Buffer, Call, Copy, HostCall, Program, Step, Switch, While

Space = Buffer | None  # a result's memory, or the arena


class _Memory:
    """Who was the last to write each range of memory."""

    def __init__(self) -> None:
        self.owners: dict[Space, list[tuple[int, int, Buffer]]] = {}

    def write(self, b: Buffer) -> None:
        for space, low, high in _places(b):
            held = self.owners.setdefault(space, [])
            held[:] = [x for x in held if x[1] <= low or x[0] >= high]
            held.append((low, high, b))

    def read(self, b: Buffer, step: str) -> None:
        if b.kind != "temp" and b.root().kind != "result":
            return
        for space, low, high in _places(b):
            owner = next((x for x in self.owners.get(space, ()) if x[0] < high and low < x[1]), None)
            if owner is not None and owner[2] is not b:
                raise Error(f"internal error: {step} reads {b.type} of {_name(b)}, where {_name(owner[2])} was written")


def check_plan(program: Program) -> None:
    """Raise `Error` if a step of `program` reads memory that something else was written to since; run-time sizes are
    not looked at."""
    if program.symbols is None:
        _steps(program.steps, _Memory())


def _steps(steps: Iterable[Step], memory: _Memory) -> None:
    for s in steps:
        match s:
            case Call():
                _check_overlaps(s)
                _run(memory, s.op.name, s.operands, (*s.results, *((s.scratch,) if s.scratch is not None else ())))
            case HostCall():
                _run(memory, s.target.name, s.operands, s.results)
            case Copy():
                _run(memory, "a copy", (s.source,), (s.target,))
            case Switch():
                memory.read(s.index, "a branch")
                before = {space: list(held) for space, held in memory.owners.items()}
                for branch in s.branches:
                    memory.owners = {space: list(held) for space, held in before.items()}
                    _steps(branch, memory)
            case While():
                for b in s.storage:
                    memory.read(b, "a loop")
                outside = [x for held in memory.owners.values() for x in held]
                for _ in range(2):  # the second turn reads what the first one has left
                    _steps((*s.cond, *s.body), memory)
                _check_kept(s, outside, memory)


def _run(memory: _Memory, step: str, operands: Iterable[Buffer], results: Iterable[Buffer]) -> None:
    for b in operands:
        memory.read(b, step)
    for b in results:
        memory.write(b)


def _check_overlaps(s: Call) -> None:
    """A result, and scratch, may overlap an operand only if the kernel says so, and then both start at one place."""
    for r, result in enumerate((*s.results, *((s.scratch,) if s.scratch is not None else ()))):
        for k, operand in enumerate(s.operands):
            for a, b in product(_places(result), _places(operand)):
                apart = a[0] is not b[0] or a[2] <= b[1] or b[2] <= a[1]
                if not apart and not (a[1] == b[1] and (k, r) in s.in_place):
                    raise Error(f"internal error: {s.op.name} reads {operand.type} where it writes {result.type}")


def _check_kept(s: While, outside: list[tuple[int, int, Buffer]], memory: _Memory) -> None:
    """What a loop carries lies where pointers go: nothing of the loop's own may have been written there."""
    carried = {b.root() for b in (*s.storage, *s.spare_storage)}
    for _, _, b in outside:
        if b.root() in carried and b.last >= 0:
            memory.read(b, "a loop")


def _places(b: Buffer) -> Iterable[tuple[Space, int, int]]:
    """The memory of a buffer, if it is known: (space, first byte, end)."""
    root = b.root()
    if b.nbytes == 0:
        return ()
    if root.kind == "result":
        return ((root, 0, b.nbytes),)
    if root.kind == "temp" and isinstance(root.offset, int) and root.offset >= 0:
        return ((root.inside, root.offset, root.offset + b.nbytes),)
    return ()


def _name(b: Buffer) -> str:
    return f"the {b.source.name if b.source is not None else b.kind} of steps {b.first} to {b.last}"
