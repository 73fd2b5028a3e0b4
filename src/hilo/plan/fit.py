"""Plans within a limit of memory: values are computed again until temporaries fit. Imports passes, plan.program."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from hilo.errors import Error
from hilo.ir.dims import typical
from hilo.ir.module import Function
from hilo.passes.orders import Flow
from hilo.passes.remat import recompute
from hilo.plan.program import Program

ROUNDS: Final = 8


def fit(f: Function, plan: Callable[[Function], Program], limit: int, donated: Iterable[int] = ()) -> Program:
    """The program of `f`, with values computed again as far as needed for temporaries of at most `limit` bytes.

    What the passes estimate leaves out (scratch of kernels, gaps between buffers) shows in the plan: the estimate must
    then fall below the limit by as much. Arguments numbered in `donated` are read no later than they were. Raises
    `Error` with the least that was reached.
    """
    program = plan(f)
    size = least = typical(program.arena_size)
    target = limit
    for _ in range(ROUNDS):
        if size <= limit:
            return program
        g = recompute(f, target, donated)
        if g is f:
            flow = Flow(f)
            reached = flow.peak(range(len(f.ops))) - sum(flow.bytes[v] for v in flow.kept)
            if target <= 0 or reached > target:
                break
        else:
            f, program = g, plan(g)
            size = typical(program.arena_size)
            least = min(least, size)
        target -= max(size - limit, limit // 64, 64)
    if size <= limit:
        return program
    raise Error(f"the temporaries of @{f.name} take {least:,} bytes at the least, more than the {limit:,} that "
                f"memory_limit (HILO_MEMORY_LIMIT) allows")  # fmt: skip
