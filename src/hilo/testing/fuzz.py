"""The fuzzer: valid programs, changed, must end in a result or in `Error`, in bounded time and memory.

Input number n of a seed is always the same (`nth`), whatever the number of processes; every input runs in a worker
with limits (`fuzz_worker`). Findings of one kind are told once, each made small while it stays the same. Imports its
parts.
"""

from __future__ import annotations

import multiprocessing
import random
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hilo.errors import Error
from hilo.testing.fuzz_seeds import FORMATS, seeds
from hilo.testing.fuzz_worker import Effort, Task, examine, work
from hilo.testing.mutate import joined, mutated, split
from hilo.testing.mutate_message import fewer_fields

SECONDS: Final = 10.0  # of the processor's time for an input; more is a hang
MEMORY: Final = 4 << 30  # bytes of addresses of a worker
PATIENCE: Final = 20  # times SECONDS on the clock, for a busy machine
LIFETIME: Final = 3000  # inputs of a worker
SHRINKING: Final = 20.0  # seconds for making one finding small
LARGEST: Final = 4 << 20  # bytes of an input: reading is linear, and more of the same only takes longer
_UNCHANGED: Final = 0.03  # how often a valid program is tried as it is
_PLACE: Final = re.compile(r'File ".*?hilo/(\S+?)", line \d+ in (\S+)')


@dataclass
class Found:
    """A finding: `number` of the input (-1: a file), what happened, where, and the smallest input that shows it."""

    form: str
    number: int
    signature: str
    trace: str
    data: bytes
    effort: Effort


@dataclass
class Tally:
    """What a run did: inputs by format and how far they got, and the findings."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    found: list[Found] = field(default_factory=list)
    seconds: float = 0.0

    def inputs(self, form: str) -> int:
        return sum(n for (f, _), n in self.counts.items() if f == form)

    def known(self, form: str, signature: str) -> bool:
        return any(f.form == form and f.signature == signature for f in self.found)


class Worker:
    """A process that examines one input after the other; a new one takes its place when it ends, or gets old."""

    def __init__(self, seconds: float = SECONDS, memory: int = MEMORY, task: Task = examine) -> None:
        self.seconds, self.memory, self.task = seconds, memory, task
        self._process: Any = None
        self._left = 0

    def start(self) -> None:
        self.close()
        context = multiprocessing.get_context("spawn")
        self._log = Path(tempfile.mkstemp(prefix="hilo-fuzz-")[1])
        self.connection, theirs = context.Pipe()
        args = (theirs, str(self._log), self.seconds, self.memory, self.task)
        self._process = context.Process(target=work, args=args, daemon=True)
        self._process.start()
        theirs.close()
        self._left = LIFETIME

    def give(self, data: bytes, effort: Effort) -> None:
        """Start with an input; `take` gives the answer."""
        if not self._left:
            self.start()
        self._left -= 1
        self.deadline = time.monotonic() + self.seconds * PATIENCE
        self.connection.send((data, effort))

    def take(self) -> tuple[str, str, str]:
        """(how far it got, the signature of a finding or "", its trace)"""
        try:
            if self.connection.poll(max(0.0, self.deadline - time.monotonic())):
                answer = self.connection.recv()
                return (answer, "", "") if isinstance(answer, str) else ("failed", *answer)
            how = "hang"
        except (EOFError, ConnectionError):
            self._process.join(1)
            code = self._process.exitcode
            how = "hang" if code == -27 else f"ended by signal {-code}" if code and code < 0 else f"ended with {code}"
        trace = self._log.read_text(errors="replace")[-4000:]
        place = _PLACE.search(trace)
        self.start()
        return "failed", f"{how} in {place[1]}:{place[2]}" if place else how, trace

    def examine(self, data: bytes, effort: Effort) -> tuple[str, str, str]:
        self.give(data, effort)
        return self.take()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.connection.close()
            self._log.unlink(missing_ok=True)
            self._process, self._left = None, 0


def nth(seed: int, number: int, pools: Mapping[str, Sequence[bytes]]) -> tuple[str, bytes, Effort]:
    """Input `number` of a seed: its format, the input, and what to do with it."""
    r = random.Random(f"fuzz {seed} {number}")
    form = list(pools)[number % len(pools)]
    dice = r.random()
    pool = pools[form]
    data = r.choice(pool) if r.random() < _UNCHANGED else mutated(r, form, pool)
    return form, data[:LARGEST], Effort(compile=dice < 0.1, run=0.1 <= dice < 0.25)


def fuzz(seconds: float, seed: int = 0, forms: Iterable[str] = FORMATS, *, corpus: Path | None = None, jobs: int = 1,
         count: int | None = None, tell: Callable[[Tally, Found | None], None] = lambda *_: None,
         limit: float = SECONDS, memory: int = MEMORY) -> Tally:  # fmt: skip
    """Fuzz for some time, or for `count` inputs if that is less. `tell` hears of every finding, and of progress.

    Raises `Error` for a format that there is not, and for a corpus that is no directory.
    """
    forms = list(dict.fromkeys(forms))
    for unknown in set(forms) - set(FORMATS):
        raise Error(f"there is no format {unknown!r}; there are: {', '.join(FORMATS)}")
    pools = {form: seeds(form, corpus) for form in forms}
    start, tally = time.monotonic(), Tally()
    workers = [Worker(limit, memory) for _ in range(jobs)]
    numbers = iter(range(count)) if count is not None else _naturals()
    try:
        _drive(workers, lambda n: nth(seed, n, pools), numbers, start + seconds, tally, tell)
    finally:
        for w in workers:
            w.close()
        tally.seconds = time.monotonic() - start
    return tally


def _naturals() -> Iterator[int]:
    n = 0
    while True:
        yield n
        n += 1


def _drive(workers: list[Worker], make: Callable[[int], tuple[str, bytes, Effort]], numbers: Iterator[int], end: float,
           tally: Tally, tell: Callable[[Tally, Found | None], None]) -> None:  # fmt: skip
    """Keep the workers busy. Answers are taken in turn: an input that takes long holds up at most one round."""
    busy: list[tuple[Worker, int, str, bytes, Effort]] = []
    free = list(workers)
    while True:
        while free and time.monotonic() < end and (number := next(numbers, None)) is not None:
            form, data, effort = make(number)
            free[-1].give(data, effort)
            busy.append((free.pop(), number, form, data, effort))
        if not busy:
            return
        worker, number, form, data, effort = busy.pop(0)
        how, signature, trace = worker.take()
        tally.counts[form, how] += 1
        found = None
        if signature and not tally.known(form, signature):
            found = Found(form, number, signature, trace, data, effort)
            tally.found.append(found)
            found.data = smaller(worker, found)
        free.append(worker)
        tell(tally, found)


def smaller(worker: Worker, found: Found, seconds: float = SHRINKING) -> bytes:
    """The input without what the finding does not need."""
    end = time.monotonic() + seconds

    def fails(data: bytes) -> bool:
        if time.monotonic() > end:
            raise TimeoutError
        return worker.examine(data, found.effort)[1] == found.signature

    data = found.data
    if found.form == "bytecode":
        return _fewer_sections(data, fails)
    if found.form == "message":
        with suppress(TimeoutError):
            data = fewer_fields(data, fails)
        return data
    for part in (rb"[^\n]*\n?", rb"\w+|\s+|."):
        data = _fewer(re.findall(part, data, re.DOTALL), fails)
    return data


def _fewer_sections(data: bytes, fails: Callable[[bytes], bool]) -> bytes:
    try:
        head, parts = split(data)
    except (Error, ValueError):
        return data
    with suppress(TimeoutError):
        for k in reversed(range(len(parts))):
            less = joined(head, parts[:k] + parts[k + 1 :])
            if fails(less):
                del parts[k]
                data = less
    return data


def _fewer(parts: list[bytes], fails: Callable[[bytes], bool]) -> bytes:
    """What is left after runs of parts have been left out, longer ones first, for as long as it fails."""
    size = len(parts) // 2
    with suppress(TimeoutError):
        while size:
            at = 0
            while at < len(parts):
                less = parts[:at] + parts[at + size :]
                if less and fails(b"".join(less)):
                    parts = less
                else:
                    at += size
            size //= 2
    return b"".join(parts)
