"""Processes that run side by side, as the specification has them: a grid of replicas by partitions. Imports errors.

The processes of a grid take turns: one runs until it has to wait for others, then the next one that can go on does. So
runs are deterministic, and it is seen at once when all of them wait: an error, never a hang. Each process has a thread
(the first one that of the caller), since an interpreter's frames cannot be left and entered again otherwise.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Condition, RLock, Thread
from typing import Any, Final

from hilo.errors import Error
from hilo.record import field, record

Id = tuple[int, int]  # (replica, partition)
LIMIT: Final = 4096  # processes of a grid: each is a thread
_POLL: Final = 0.001  # seconds between looks at a queue that the host may still fill


class _Ended(BaseException):
    """Unwinds a process when another one has failed. Nothing catches it but the grid."""


@record
class _Meeting:
    """What the processes of a group have brought to one collective op."""

    values: dict[Id, Any] = field(default_factory=dict)


@record
class _Wait:
    ready: Callable[[], bool]
    what: Callable[[], str]
    until: float  # of time.monotonic: the host may make it ready up to then


class Process:
    """One process of a grid: where it is, and what it waits for."""

    def __init__(self, grid: Grid, replica: int, partition: int) -> None:
        self.grid = grid
        self.replica = replica
        self.partition = partition
        self.has_turn = Condition(grid.lock)
        self.waits: _Wait | None = None
        self.has_ended = False
        self.error: BaseException | None = None
        self.results: Any = None

    @property
    def id(self) -> Id:
        return self.replica, self.partition

    @property
    def number(self) -> int:
        """The flattened id."""
        return self.replica * self.grid.partitions + self.partition

    def state(self) -> str:
        """What it does, in words."""
        if self.has_ended:
            return f"{self.id} has ended"
        return f"{self.id} waits {self.waits.what()}" if self.waits else f"{self.id} runs"

    def wait(self, ready: Callable[[], bool], what: Callable[[], str], until: float = 0.0) -> None:
        """Let others run until `ready()`.

        `what` says what is waited for ("in stablehlo.all_reduce for (1, 0)"). Raises `Error` if that cannot come
        any more: all others wait too, or have ended, and `until` (of `time.monotonic`), up to which something outside
        of the grid may bring it, is over.
        """
        if ready():
            return
        self.waits = _Wait(ready, what, until)
        self.grid.pass_on(self)
        self.waits = None

    def meet(self, op: str, channel: int, group: Sequence[Id], value: Any) -> list[Any]:
        """What each process of `group` brings to the same op on the same channel, in the group's order."""
        meetings, key = self.grid.meetings, (op, channel, tuple(group))
        meeting = meetings.setdefault(key, _Meeting())
        meeting.values[self.id] = value
        if len(meeting.values) == len(group):
            del meetings[key]  # the next time is another meeting
        else:
            self.wait(
                lambda: len(meeting.values) == len(group),
                lambda: f"in {op} for {_names([p for p in group if p not in meeting.values])}",
            )
        return [meeting.values[p] for p in group]


class Grid:
    """`replicas` by `partitions` processes. `run` runs a function in each of them."""

    def __init__(self, replicas: int, partitions: int) -> None:
        for n, what in ((replicas, "replicas"), (partitions, "partitions")):
            if not isinstance(n, int) or isinstance(n, bool) or n < 1:
                raise Error(f"the number of {what} must be a positive integer, not {n!r}")
        if replicas * partitions > LIMIT:
            raise Error(f"a grid of {replicas} by {partitions} processes is too large: at most {LIMIT} are simulated")
        self.replicas = replicas
        self.partitions = partitions
        self.lock = RLock()
        self.processes = [Process(self, r, p) for r in range(replicas) for p in range(partitions)]
        self.meetings: dict[Hashable, _Meeting] = {}
        self.mail: dict[Hashable, list[Any]] = {}  # what was sent from process to process and not yet received
        self._turn: Process | None = self.processes[0]
        self._failed = False
        self._stuck = False

    def run(self, main: Callable[[Process], Any]) -> list[Any]:
        """`main(process)` of every process, in order. The first error of a process ends all, and is raised."""
        others = [Thread(target=copy_context().run, args=(self._run, p, main), daemon=True) for p in self.processes[1:]]
        started = []
        try:
            for t in others:
                t.start()
                started.append(t)
            self._run(self.processes[0], main)
        except RuntimeError as e:
            raise Error(f"a grid of {len(self.processes)} processes is too large here: {e}") from None
        finally:
            self._join(started, len(started) < len(others))
        self._raise()
        return [p.results for p in self.processes]

    def _join(self, threads: Sequence[Thread], failed: bool) -> None:
        """Wait for the ends of all threads; an interrupt ends them at their next turn."""
        try:
            if failed:
                self._fail()
            for t in threads:
                t.join()
        except BaseException:
            self._fail()
            raise

    def _fail(self) -> None:
        """End all processes, each when it comes to wait."""
        with self.lock:
            self._failed = True
            for p in self.processes:
                p.has_turn.notify()

    def _run(self, p: Process, main: Callable[[Process], Any]) -> None:
        """One process, in its thread, from its first turn to its end."""
        try:
            self._await_turn(p)
            with inside(p):
                p.results = main(p)
        except _Ended:
            pass
        except BaseException as e:  # handed to the caller's thread
            p.error = e
        p.has_ended, p.waits = True, None
        if p.error is not None and not self._stuck:
            self._fail()
        elif not self._failed:
            self._give_turn(p)

    def pass_on(self, p: Process) -> None:
        """Give up the turn of `p`; return when it has it again. Raises as `Process.wait` does."""
        self._give_turn(p)
        self._await_turn(p)
        if self._stuck and p.waits is not None and not p.waits.ready():
            raise Error(f"process {p.id} would wait for ever {p.waits.what()}")

    def _give_turn(self, p: Process) -> None:
        """To the next after `p`."""
        with self.lock:
            self._turn = self._next(p)
            if self._turn is not None:
                self._turn.has_turn.notify()

    def _await_turn(self, p: Process) -> None:
        with self.lock:
            p.has_turn.wait_for(lambda: self._turn is p or self._failed)
            if self._failed:
                raise _Ended

    def _next(self, last: Process) -> Process | None:
        """The process whose turn it is after `last`: the next that can go on. None: all have ended.

        If none can, the next that waits, which is then told so (`_stuck`).
        """
        order = [*self.processes[last.number + 1 :], *self.processes[: last.number + 1]]
        alive = [p for p in order if not p.has_ended]
        while alive and not self._stuck:
            found = next((p for p in alive if p.waits is None or p.waits.ready()), None)
            if found is not None:
                return found
            if all(p.waits is not None and p.waits.until <= time.monotonic() for p in alive):
                self._stuck = True
                self._states = [p.state() for p in self.processes]
            else:
                time.sleep(_POLL)
        return alive[0] if alive else None

    def _raise(self) -> None:
        """The first error, if any. Where all wait, it says what each one does."""
        errors = [p for p in self.processes if p.error is not None]
        if not errors:
            return
        first = errors[0]
        error = first.error
        assert error is not None
        if self._stuck and isinstance(error, Error) and len(self.processes) > 1:
            others = [s for s, p in zip(self._states, self.processes, strict=True) if p is not first]
            more = f", and {len(others) - 8} more" if len(others) > 8 else ""
            raise Error(f"{error.message}; {', '.join(others[:8])}{more}", loc=error.loc, op=error.op)
        if isinstance(error, Error) and len(self.processes) > 1:
            error.message = f"process {first.id}: {error.message}"
        raise error


def _names(ids: Sequence[Id]) -> str:
    shown = ", ".join(map(str, ids[:8]))
    return f"{shown} and {len(ids) - 8} more" if len(ids) > 8 else shown


_PROCESS: ContextVar[Process | None] = ContextVar("hilo_process", default=None)


def current() -> Process | None:
    """The process that is running; None outside of a grid: a program that runs as one process."""
    return _PROCESS.get()


@contextmanager
def inside(process: Process | None) -> Iterator[None]:
    """Run as `process` inside of the `with` block."""
    token = _PROCESS.set(process)
    try:
        yield
    finally:
        _PROCESS.reset(token)
