"""Times of a program's steps, taken by the program itself. Imports ops, plan.program.

The entry of a profiled program reads the clock around each step and adds up, in a constant of its own, nanoseconds and
runs of each: also in loops and branches. Programs that are not profiled take none of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from hilo.ir.dims import typical
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ir.types import TensorType, result_types
from hilo.kernels.pins import Choice
from hilo.ops.weight import cost
from hilo.plan.program import Buffer, Call, Copy, HostCall, Program, Switch, While
from hilo.record import record

STEP_BYTES: Final = 16  # of a step's counters: nanoseconds, runs
Timed = Call | HostCall | Copy


@record(frozen=True)
class StepTime:
    """What one step took since the profile was reset.

    number     of the step, in the program's order
    name       of its function, or what it does
    op         the op, with its types
    where      it came from, if that is known
    runs       how often it ran (loops and branches counted); `seconds` is the time of all runs together
    flops      of one run, by the op's definition; `read` and `written` are the bytes of its operands and results
    wide       whether it calculates in f64
    strategy   what the kernel does; `reason` says why, `choices` are its knobs; `source` is the op itself
    """

    number: int
    name: str
    op: str
    where: str
    runs: int
    seconds: float
    flops: float
    read: float
    written: float
    wide: bool
    strategy: str
    reason: str
    choices: tuple[Choice, ...]
    source: Op | None = None

    @property
    def seconds_per_run(self) -> float:
        return self.seconds / self.runs if self.runs else 0.0


class Profile:
    """The counters of a program whose code is not made yet; `table` is the constant where they are."""

    def __init__(self, program: Program) -> None:
        self.steps = list(timed_steps(program))
        self.numbers = {id(s): i for i, s in enumerate(self.steps)}
        self.counters = np.zeros((len(self.steps), 2), np.int64)
        self.table = Buffer("constant", self.counters.nbytes, index=len(program.constants))
        program.constants.append(self.counters)
        program.profile = self

    def times(self, counters: np.ndarray, first: int = 0) -> list[StepTime]:
        """The steps in the program's order, by a copy of their counters, numbered from `first`."""
        return [self._time(first + i, s, *map(int, counters[i])) for i, s in enumerate(self.steps)]

    def _time(self, number: int, s: Timed, nanoseconds: int, runs: int) -> StepTime:
        common = {"number": number, "runs": runs, "seconds": nanoseconds * 1e-9}
        if isinstance(s, Copy):
            n = float(typical(s.source.nbytes))
            return StepTime(name="copy", op=repr(s.source.type), where="", flops=0.0, read=n, written=n, wide=False,
                            strategy="copy", reason="the value must be at another place, too", choices=(),
                            **common)  # fmt: skip
        where = "" if s.op.loc is None else str(s.op.loc)
        written = float(sum(typical(b.nbytes) for b in dict.fromkeys(s.results)))
        read = float(sum(typical(b.nbytes) for b in dict.fromkeys(s.operands)))
        types = [t for x in (s.op, *s.op.operands) for t in result_types(x.type) if isinstance(t, TensorType)]
        wide = any(t.dtype.name in ("f64", "c128") for t in types)
        if isinstance(s, HostCall):
            return StepTime(name=f"call {s.target.name}", op=described(s.op), where=where, flops=0.0, read=read,
                            written=written, wide=wide, strategy="custom call",
                            reason=f"code outside of the program ({s.target.convention})", choices=(),
                            **common)  # fmt: skip
        lowered = s.lowered
        name = lowered.phases[-1].func.name if lowered.phases else s.op.name
        moved = cost(s.op)[1] if s.op.kind.cost is not None else read + written
        read = max(0.0, min(read, typical(moved) - written))  # an op may read a part of its operand only
        return StepTime(name=name, op=described(s.op), where=where, flops=flops(s.op), read=read, written=written,
                        wide=wide, strategy=lowered.strategy or s.op.name, reason=lowered.reason,
                        choices=lowered.choices, source=s.op, **common)  # fmt: skip


def timed_steps(program: Program) -> Iterator[Timed]:
    """Every step that does work itself, in order, those of loops and branches where these are."""
    stack = list(reversed(program.steps))
    while stack:
        s = stack.pop()
        if isinstance(s, While):
            stack.extend(reversed([*s.cond, *s.body]))
        elif isinstance(s, Switch):
            stack.extend(x for branch in reversed(s.branches) for x in reversed(branch))
        else:
            yield s


def flops(op: Op) -> float:
    """Operations of one run; of a fusion those of all the ops in it."""
    body = op.attrs.get("body")
    if op.kind.full_name == "hilo.fusion" and isinstance(body, Function):
        return sum(flops(o) for o in body.ops if o.operands and isinstance(o.type, TensorType))
    return float(typical(cost(op)[0]))


def described(op: Op) -> str:
    """The op in a few words: a fusion by the ops that are most work, with the type of the result."""
    name = op.name
    body = op.attrs.get("body")
    if op.kind.full_name == "hilo.fusion" and isinstance(body, Function):
        names = dict.fromkeys(o.name for o in body.ops if o.operands and o.name not in _MOVES)
        name = "+".join(list(names)[:4]) + ("+..." if len(names) > 4 else "") or "copy"
    return f"{name} {', '.join(map(repr, result_types(op.type)))}"


_MOVES: Final = frozenset(("broadcast_in_dim", "reshape", "get", "convert"))
