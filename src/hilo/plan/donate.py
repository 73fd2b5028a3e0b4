"""Donation: which results may be written over which donated arguments. Imports plan.program and plan.times.

A result may take an argument's memory only if their types are the same, and with a proof that the argument is read no
more when the result is first written: every read comes in an earlier step, or in the very step that writes, if that
kernel is safe under the overlap. Of the pairs that are possible, those that the program names come first, then those
where the result is made of the argument; as many arguments as possible find a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hilo.plan.program import Buffer, Call, Copy, Program
from hilo.plan.times import Times


def donations(
    program: Program, donated: Iterable[int] | Mapping[int, int | None], times: Times
) -> list[tuple[int, int]]:
    """(result, argument) pairs, each of both at most once; only arguments numbered in `donated`, which may say which
    result each is meant for. `times` has walked the program."""
    wishes: dict[int, int | None] = dict(donated) if isinstance(donated, Mapping) else dict.fromkeys(donated)
    by_type: dict[object, list[int]] = {}
    for r, result in enumerate(program.results):
        by_type.setdefault(result.type, []).append(r)
    choices: dict[int, list[int]] = {}
    for i, wish in wishes.items():
        a = program.arguments[i]
        found = [r for r in by_type.get(a.type, ()) if a.nbytes != 0 and is_safe_over(program.results[r], a, times)]
        found.sort(key=lambda r: (r != wish, program.results[r].first != a.last))
        choices[i] = found
    argument_of: dict[int, int] = {}
    for i in sorted(choices, key=lambda i: not choices[i] or choices[i][0] != wishes[i]):
        _match(i, choices, argument_of)
    return sorted(argument_of.items())


def _match(argument: int, choices: dict[int, list[int]], argument_of: dict[int, int]) -> None:
    """Find `argument` a result, if need be by moving others to further choices of theirs (an augmenting path)."""
    came: dict[int, int] = {}  # result -> the argument that wants it
    pending = [argument]
    for i in pending:
        for r in choices[i]:
            if r in came:
                continue
            came[r] = i
            if r in argument_of:
                pending.append(argument_of[r])
                continue
            while True:  # each argument on the path takes the result that it wants, and leaves the one it had
                i = came[r]
                had = next((x for x, holder in argument_of.items() if holder == i), None)
                argument_of[r] = i
                if had is None or i == argument:
                    return
                r = had


def is_safe_over(result: Buffer, argument: Buffer, times: Times) -> bool:
    """Whether what `result` holds, from its first write on, may lie in the memory of `argument`."""
    if argument.last < result.first:
        return True
    if argument.last != result.first or result.home:
        return False
    step = times.steps.get(result.first)
    if isinstance(step, Copy):
        return step.source is argument and step.target is result
    if not isinstance(step, Call):
        return False
    writes = [k for k, b in enumerate(step.results) if b is result]
    reads = [k for k, b in enumerate(step.operands) if b is argument]
    return bool(writes) and all((k, w) in step.in_place for k in reads for w in writes)
