"""Donation: which results may be written over which donated arguments. Imports plan.program.

A result may take an argument's memory only if their shapes are the same expressions, and with a proof that the argument is read no more when the result is first
written: every read comes in an earlier step, or in the very step that writes, if that kernel is safe under the overlap.
"""

from __future__ import annotations

from collections.abc import Iterable

from hilo.plan.assign import Times
from hilo.plan.program import Buffer, Call, Copy, Program


def donations(program: Program, donated: Iterable[int]) -> list[tuple[int, int]]:
    """(result, argument) pairs, each of both at most once; only arguments numbered in `donated`."""
    donated = [i for i in donated if program.arguments[i].nbytes != 0]
    if not donated:
        return []
    times = Times()
    times.walk(program.steps)
    calls = dict(times.calls)
    copies = dict(times.copies)
    pairs: list[tuple[int, int]] = []
    free = list(range(len(program.results)))
    for i in donated:
        a = program.arguments[i]
        for r in free:
            if _may_replace(program.results[r], a, calls, copies):
                pairs.append((r, i))
                free.remove(r)
                break
    return pairs


def _may_replace(result: Buffer, argument: Buffer, calls: dict[int, Call], copies: dict[int, Copy]) -> bool:
    if result.type is not argument.type:
        return False
    if argument.last < result.first:
        return True
    if argument.last != result.first:
        return False
    copy = copies.get(result.first)
    if copy is not None:
        return copy.source is argument and copy.target is result
    call = calls.get(result.first)
    if call is None:
        return False
    writes = [k for k, b in enumerate(call.results) if b is result]
    reads = [k for k, b in enumerate(call.operands) if b is argument]
    return all((k, w) in call.in_place for k in reads for w in writes)
