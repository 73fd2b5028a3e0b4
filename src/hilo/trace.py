"""The trace of a compilation: every state the program went through, how long each step took, which rules fired.

States are free, as they share their ops. A `Trace` also does what the inspecting options ask for after each step:
verify, dump, print, stop, skip, time. Imports errors, options, ir; the printer and the verifier load when used.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import perf_counter
from typing import IO, TYPE_CHECKING, Any, TypeVar

from hilo.errors import Error
from hilo.ir.module import Function, Module
from hilo.options import DEFAULT, Options
from hilo.record import field, record

if TYPE_CHECKING:
    from pathlib import Path

T = TypeVar("T")
Pass = Callable[[Function], Function]


@record(frozen=True)
class State:
    """The program after one step. `number` counts runs of the same pass from 1; `fired`: rules, and how often each did;
    `depth` is 1 for a step that is part of another one (cse in simplify), which stands after it; `note` says more."""

    name: str
    number: int
    program: Any  # Module, Function, or what later phases make
    seconds: float
    changed: bool
    fired: dict[Any, int] = field(default_factory=dict)
    depth: int = 0
    note: str = ""

    @property
    def label(self) -> str:
        """`cse`, or `cse#2` for its second run."""
        return self.name if self.number == 1 else f"{self.name}#{self.number}"

    @property
    def rules(self) -> dict[str, int]:
        """Which rules fired (as `name (file:line)`) and how often, the busiest first."""
        return {repr(rule): n for rule, n in sorted(self.fired.items(), key=lambda pair: -pair[1])}


class Trace:
    """All states of one compilation, in order. `stopped` is the label of the pass that `options.stop` named, once it
    has run."""

    def __init__(self, options: Options = DEFAULT, stream: IO[str] | None = None) -> None:
        self.options = options
        self.states: list[State] = []
        self.stopped = ""
        self._runs: dict[str, int] = {}
        self._stream = stream
        self._depth = 0

    def start(self, program: Any, name: str = "input") -> None:
        """Record the program as it came."""
        self._add(State(name, self._count(name), program, 0.0, True))

    def step(self, name: str, function: Callable[[T], T], program: T, *, required: bool = False) -> T:
        """Run one pass under the options: `function(program)`; `program` itself if the pass is to be skipped.

        A `required` pass runs even after the stop; to skip it is an `Error`.
        """
        number = self._count(name)
        skipped = _names(self.options.skip, name, number)
        if required and skipped:
            raise Error(f"pass {name} cannot be skipped (HILO_SKIP): what follows needs it")
        if not required and (self.stopped or skipped):
            return program
        from hilo.rewrite.driver import FIRED

        fired: dict[Any, int] = {}
        tokens = _ACTIVE.set(self), FIRED.set(fired)
        self._depth += 1
        try:
            begin = perf_counter()
            result = function(program)
            seconds = perf_counter() - begin
        except RecursionError:
            raise Error(f"pass {name}: regions nest too deeply") from None
        finally:
            self._depth -= 1
            _ACTIVE.reset(tokens[0])
            FIRED.reset(tokens[1])
            outer = FIRED.get()
            if outer is not None:  # a step of which this one is a part
                for rule, n in fired.items():
                    outer[rule] = outer.get(rule, 0) + n
        self._add(State(name, number, result, seconds, result is not program, fired, self._depth))
        return result

    @contextmanager
    def phase(self, name: str) -> Iterator[list[Any]]:
        """Time a phase that is no pass; what the block appends to the list it is given is recorded as the phase's
        program."""
        number = self._count(name)
        made: list[Any] = []
        begin = perf_counter()
        yield made
        self._add(State(name, number, made[-1] if made else None, perf_counter() - begin, True))

    def part(self, name: str, seconds: float, note: str = "") -> None:
        """Note what a part of a phase took, for the table."""
        if self.options.time:
            self.states.append(State(name, self._count(name), None, seconds, True, {}, 1, note))

    def after(self, label: str) -> Any:
        """The program after the pass `label` (`cse` or `cse#2`). Raises `Error` if no such pass ran."""
        for s in self.states:
            if label in (s.label, f"{s.name}#{s.number}"):
                return s.program
        raise Error(f"no pass {label!r} ran; there are: {', '.join(self.labels()) or 'none'}")

    def table(self) -> str:
        """One line per step: milliseconds, ops, rules that fired."""
        lines = [f"{'pass':<24}{'ms':>10}{'ops':>10}  rules"]
        for s in self.states:
            ops = str(len(s.program.ops)) if isinstance(s.program, Function) else ""
            fired = (
                f"{sum(s.rules.values())} ({len(s.rules)} different)" if s.rules else "" if s.changed else "no change"
            )
            line = f"{'  ' * s.depth + s.label:<24}{s.seconds * 1e3:>10.2f}{ops:>10}  {s.note or fired}"
            lines.append(line.rstrip())
        lines.append(f"{'total':<24}{sum(s.seconds for s in self.states if not s.depth) * 1e3:>10.2f}")
        return "\n".join(lines)

    def check_names(self, also: Iterable[str] = ()) -> None:
        """Raise `Error` if the options name a pass to stop at, skip or print that there is not (nor in `also`)."""
        known = {*self._runs, *also, "all"}
        for variable, names in (("HILO_STOP", (self.options.stop,)), ("HILO_SKIP", self.options.skip),
                                ("HILO_PRINT", self.options.print)):  # fmt: skip
            for name in names:
                if name and name.partition("#")[0] not in known:
                    raise Error(f"{variable}: no pass {name!r}; there are {', '.join(sorted(known - {'all'}))}")
        if self.options.stop and not self.stopped:
            raise Error(f"HILO_STOP: pass {self.options.stop} did not run; there were {', '.join(self.labels())}")

    def labels(self) -> list[str]:
        return [s.label for s in self.states]

    def finish(self) -> None:
        """Print the table if `options.time` asks for it."""
        if self.options.time:
            print(self.table(), file=self._stream or sys.stderr)

    def _count(self, name: str) -> int:
        self._runs[name] = n = self._runs.get(name, 0) + 1
        return n

    def _add(self, s: State) -> None:
        self.states.append(s)
        options = self.options
        if options.dump:
            self._dump(s)
        if options.print and ("all" in options.print or _names(options.print, s.name, s.number)):
            print(f"// ---- after {s.label}\n{program_text(s.program)}", file=self._stream or sys.stderr)
        if options.verify and s.changed and isinstance(s.program, Function | Module):
            verify_after(s)
        if options.stop and _names((options.stop,), s.name, s.number):
            self.stopped = s.label

    def _dump(self, s: State) -> None:
        """Write `<dump>/003.cse.mlir`, whole or not at all."""
        import re
        from pathlib import Path

        index = len(self.states) - 1
        suffix = "mlir" if isinstance(s.program, Function | Module) else "txt"
        name = f"{index:03}.{re.sub(r'[^A-Za-z0-9_.#-]', '_', s.label)}.{suffix}"
        text = program_text(s.program) if s.changed else f"// {s.label} changed nothing\n"
        write_whole(Path(self.options.dump) / name, text)


_ACTIVE: ContextVar[Trace | None] = ContextVar("active trace", default=None)


def substep(name: str, function: Callable[[T], T], program: T) -> T:
    """Run a pass that is part of another one: a step of the trace that runs the other, if there is one."""
    trace = _ACTIVE.get()
    return function(program) if trace is None else trace.step(name, function, program)


def run_passes(
    f: Function, passes: Iterable[tuple[str, Pass] | Pass], options: Options = DEFAULT, trace: Trace | None = None
) -> Function:
    """`f` after all `passes` (functions, or pairs of a name and a function); ends early where `options.stop` says.

    Raises `Error` naming the pass if `options.verify` finds its result invalid.
    """
    trace = Trace(options) if trace is None else trace
    for p in passes:
        name, function = p if isinstance(p, tuple) else (p.__name__, p)
        f = trace.step(name, function, f)
        if trace.stopped:
            break
    return f


def program_text(program: Any) -> str:
    """A state as text: MLIR for modules and functions, `str` for anything else."""
    if not isinstance(program, Function | Module):
        return "" if program is None else str(program)
    from hilo.formats import mlir_text

    return mlir_text.print_module(program if isinstance(program, Module) else Module({program.name: program}))


def verify_after(s: State) -> None:
    """Check the program of a state; an error names the pass."""
    from hilo.ir.verify import verify

    try:
        verify(s.program, types=True)
    except Error as e:
        raise Error(f"after pass {s.label}: {e}") from e


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` so that nobody ever sees half of it. Raises `Error` if that fails."""
    import tempfile

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with open(handle, "w", encoding="utf-8") as out:
                out.write(text)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except (OSError, ValueError) as e:  # ValueError: a name that no file can have
        raise Error(f"cannot write {path}: {getattr(e, 'strerror', None) or e}") from None


def _names(wanted: Iterable[str], name: str, number: int) -> bool:
    """Whether `name` or `name#number` is among `wanted`; a bare name means every run, and its first for `stop`."""
    return any(w in (name, f"{name}#{number}") for w in wanted)
