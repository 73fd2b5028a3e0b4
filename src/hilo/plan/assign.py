"""Buffer assignment: what shares memory, and where everything lies. Imports plan.program and its neighbours.

  results over arguments     that are donated (donate.py)
  results over operands      that die where they are written, if the kernel is safe under the overlap; so a chain of
                             steps may work in the memory of one of the program's results
  results not yet written    are free memory until then (place.py)

Near-linear in the number of buffers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hilo.plan.limits import check_arena
from hilo.plan.program import ALIGN, Buffer, Call, Copy, Program, Room
from hilo.plan.times import Times


def assign_buffers(program: Program, donated: Iterable[int] | Mapping[int, int | None] = (), *,
                   in_place: bool = True) -> Program:  # fmt: skip
    """Give every temporary of `program` its offset, set `arena_size`, and `aliases` for the arguments numbered in
    `donated` (which may say for which result). Changes the program's buffers."""
    times = Times()
    times.walk(program.steps)
    program.aliases = []
    if donated:
        from hilo.plan.donate import donations

        program.aliases = donations(program, donated, times)
    before = {program.results[r]: program.arguments[a] for r, a in program.aliases}
    if in_place:
        for now, step in times.steps.items():
            if isinstance(step, Call | Copy):
                _share(step, now, before, times)
    _group_ranges(program.buffers)
    rooms = program.rooms = [
        Room(r, r.nbytes, before[r].last if r in before else -1, r.first)
        for r in program.results
        if r.first > 0 and not r.home
    ]
    if any(not isinstance(b.nbytes, int) for b in (*program.buffers, *program.results)):
        from hilo.plan.dynamic import assign_sizes

        program.arena_size = assign_sizes(program.buffers, rooms)
    elif any(b.shares is None and b.first >= 0 for b in program.buffers):  # the program of one kernel has none
        from hilo.plan.place import place

        program.arena_size = place(program.buffers, rounded, rooms, lambda b: b.nbytes)
        check_arena(program.arena_size)
    for b in program.buffers:
        if b.shares is not None:
            b.offset = b.root().offset
    return program


def rounded(b: Buffer) -> int:
    """The bytes that a buffer takes."""
    return max(ALIGN, -(-b.nbytes // ALIGN) * ALIGN)


def _share(step: Call | Copy, now: int, before: dict[Buffer, Buffer], times: Times) -> None:
    """Let a result lie where an operand does that dies here, if the kernel is safe under that overlap.

    `before`: the arguments that results may be written over. What lies in such a result must be written behind the
    last read of the argument.
    """
    if isinstance(step, Call):
        operands, results, in_place = step.operands, step.results, step.in_place
    else:
        operands, results, in_place = (step.source,), (step.target,), ((0, 0),)
    for r, result in enumerate(results):
        if result.kind not in ("temp", "result") or result.shares is not None or result.first != now:
            continue
        for k, operand in enumerate(operands):
            root = operand.root()
            if (k, r) not in in_place or root.kind != "temp" or operand.nbytes != result.nbytes:
                continue
            if operand.last != now or operand.home != result.home:
                continue
            if any((j, r) not in in_place for j, x in enumerate(operands) if x.root() is root):
                continue
            if any(x.root() is root for x in results if x is not result):
                continue
            if result.kind == "temp":
                result.shares = operand
            elif result in before and not _is_safe_over(root, before[result], times):
                continue
            else:
                root.shares = result
            break


def _is_safe_over(root: Buffer, argument: Buffer, times: Times) -> bool:
    from hilo.plan.donate import is_safe_over

    return is_safe_over(root, argument, times)


def _group_ranges(buffers: list[Buffer]) -> None:
    """The range of a shared place reaches from its first to its last tenant."""
    for b in buffers:
        if b.shares is not None:
            root = b.root()
            root.first, root.last = min(root.first, b.first), max(root.last, b.last)
