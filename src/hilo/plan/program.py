"""The program: steps over buffers, neutral of any target. Imports ir, custom_calls and kernels.

A `Buffer` is a place for one dense array. Steps run in order; structured steps hold steps. `plan/build.py` makes a
program from a function, `plan/assign.py` gives the temporaries their offsets, `plan/entry.py` renders it as loop IR.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.ir.dims import Atom, Guard, Number
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels.lowered import Layout, Lowered
from hilo.record import field, record

if TYPE_CHECKING:
    from hilo.custom_calls.registry import Target


@record(eq=False)
class Buffer:
    """A place for one dense row-major array of `nbytes` bytes (an int, or a run-time size).

    kind "argument", "result", "constant" (`index` into that table), "temp" (at `offset` in the arena, or in the memory
    of the result `inside`), "pointer": known only at run time, one of `backing` (what a loop carries), or "form":
    `index` into the table of forms that a call may bring; NULL if it does not.
    `first` and `last` are the steps between which it holds something, `source` the op that it was made for.
    """

    kind: str
    nbytes: Any
    index: int = 0
    offset: Any = -1
    inside: Buffer | None = None
    backing: tuple[Buffer, ...] = ()
    source: Op | None = None
    type: TensorType | None = None
    first: int = -1
    last: int = -1
    home: tuple[int, ...] = ()  # loops around the first write
    shares: Buffer | None = None  # takes this buffer's place (in-place result)

    def root(self) -> Buffer:
        """The buffer whose memory this one uses."""
        b = self
        while b.shares is not None:
            b = b.shares
        return b


@record
class Call:
    """Run the phases of a kernel."""

    op: Op
    lowered: Lowered
    operands: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    scratch: Buffer | None
    in_place: tuple[tuple[int, int], ...] = ()
    form: Buffer | None = None  # of the operand that `Lowered.kept` names; `scratch` is there then, too

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        """What the kernel gets pointers to, in order."""
        return (*self.operands, *self.results, *(x for x in (self.scratch, self.form) if x is not None))


@record(eq=False)
class HostCall:
    """Call code outside of the program, on the calling thread: the custom call `op`, whose code is `target`.

    `operands` and `results` are the places of the tensors among its operands and results, out of tuples and without
    tokens; `index` numbers the calls of a program. Results share no memory with operands, but for those that
    `output_operand_aliases` names, which are at the same place.
    """

    op: Op
    target: Target
    operands: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    index: int
    config: Buffer | None = None  # the constant with the configuration of native code that the entry calls itself

    @property
    def is_direct(self) -> bool:
        """Whether the entry calls the code itself, by hilo's own convention."""
        return self.config is not None


@record
class Copy:
    """Copy a whole buffer; nothing to do if both turn out to be one place."""

    target: Buffer
    source: Buffer


@record
class While:
    """while pred(params): params = body(params).

    `params` are pointer buffers, filled at first from `storage`; `spare` are further pointers, each the place where the
    next value of some carried value is written; `spare_storage` what they start as. After the body, params and spares
    become `next_params` and `next_spare`: pointers swap, nothing is copied. `results` are the params after the loop.
    """

    op: Op
    params: tuple[Buffer, ...]
    storage: tuple[Buffer, ...]
    spare: tuple[Buffer, ...]
    spare_storage: tuple[Buffer, ...]
    cond: list[Step]
    pred: Buffer
    body: list[Step]
    next_params: tuple[Buffer, ...]
    next_spare: tuple[Buffer, ...]
    results: tuple[Buffer, ...]


@record
class Switch:
    """Run one of `branches`: the one `index` (an i32) names, the last one if it names none; an i1 picks 0 if true."""

    op: Op
    index: Buffer
    branches: list[list[Step]]


@record(frozen=True)
class Form:
    """Another layout of an argument (its number), in which kernels read it where a call brings it."""

    argument: int
    layout: Layout


ALIGN = 64  # bytes, of temporaries and results

Step = Call | HostCall | Copy | While | Switch


@record
class Room:
    """The memory of `result`, for what lives after step `start` and is dead before step `end`."""

    result: Buffer
    size: Any
    start: int
    end: int


@record
class Program:
    """Steps, their buffers, and the tables of arguments, results and constants."""

    name: str
    arguments: list[Buffer]
    results: list[Buffer]
    steps: list[Step]
    buffers: list[Buffer] = field(default_factory=list)  # temporaries
    constants: list[np.ndarray] = field(default_factory=list)
    hosts: list[HostCall] = field(default_factory=list)  # by their index
    arena_size: Number = 0
    aliases: list[tuple[int, int]] = field(default_factory=list)  # (result, argument) that may be at one place
    rooms: list[Room] = field(default_factory=list)
    symbols: list[Atom] | None = None  # run-time sizes that a call brings; None: all sizes are known
    guards: list[Guard] = field(default_factory=list)  # what must hold of them
    forms: list[Form] = field(default_factory=list)
    profile: Any = None  # a plan.profile.Profile: the steps take their times

    def form_numbers(self) -> list[tuple[int, int, tuple[int, ...]]]:
        """The forms as the runtime takes them: argument, bytes, the layout in numbers."""
        return [(f.argument, f.layout.nbytes, f.layout.numbers()) for f in self.forms]

    def used(self) -> Iterator[Buffer]:
        """The buffers that steps name, in order, some of them several times."""
        stack = list(reversed(self.steps))
        while stack:
            s = stack.pop()
            if isinstance(s, Call):
                yield from s.buffers
            elif isinstance(s, HostCall):
                yield from (*s.operands, *s.results, *((s.config,) if s.config is not None else ()))
            elif isinstance(s, Copy):
                yield from (s.source, s.target)
            elif isinstance(s, Switch):
                yield s.index
                stack.extend(x for branch in reversed(s.branches) for x in reversed(branch))
            else:
                yield from (*s.storage, *s.spare_storage, *s.params, *s.spare, s.pred)
                yield from (*s.next_params, *s.next_spare, *s.results)
                stack.extend(reversed([*s.cond, *s.body]))

    def has_loops(self) -> bool:
        """Whether there are loops, in branches too: how long these run is not known, whatever their bodies cost."""
        stack = list(self.steps)
        while stack:
            s = stack.pop()
            if isinstance(s, While):
                return True
            if isinstance(s, Switch):
                stack.extend(x for branch in s.branches for x in branch)
        return False

    def calls(self) -> Iterator[Call]:
        """All kernel calls, also inside loops and branches, in order."""
        stack: list[Iterator[Step]] = [iter(self.steps)]
        while stack:
            for s in stack[-1]:
                if isinstance(s, Call):
                    yield s
                elif isinstance(s, While):
                    stack.append(iter(s.body))
                    stack.append(iter(s.cond))
                    break
                elif isinstance(s, Switch):
                    stack.extend(iter(b) for b in reversed(s.branches))
                    break
            else:
                stack.pop()
