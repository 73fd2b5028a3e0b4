"""`python -m benchmarks threads`: what a second thread brings to rows whose limit is computing.

One process holds both programs of a row and calls them in turns, so that a change in the machine's speed meets both;
the figure is the least time of single calls. The results must be the same bits. What two threads can bring at all is
said by the multiply-adds alone, measured in the same run; and where the two cores are by copying: cores of two
third-level caches copy about twice as fast as one, and hand lines to each other at a third of the speed. "At most" is
what the pieces allow into which each kernel's work is cut, by the kernels' times on one thread: it needs no second
core, nor an idle machine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import click
import numpy as np

import hilo
from benchmarks.modules import Case, cases
from hilo import pipeline
from hilo.backend.target import Target
from hilo.kernels.lowered import Phase
from hilo.options import Options
from hilo.plan.entry import chunk_units, is_shared
from hilo.plan.profile import timed_steps
from hilo.plan.program import Call
from hilo.runtime.limits import Limits
from hilo.runtime.limits import measure as measure_limits

GOAL = 1.85
SMALL = 0.02  # of a row's lost time, below which a kernel is not listed
Times = tuple[float, float]  # with one thread, with two


@dataclass(frozen=True)
class Kernel:
    """The least seconds of all runs of a step in a call; `most`: how many times as fast two threads can be with it."""

    name: str
    times: Times
    pieces: str
    most: float

    @property
    def lost(self) -> float:
        """Seconds of a second thread that the pieces leave without work."""
        return self.times[0] / self.most - self.times[0] / 2

    def __str__(self) -> str:
        one, two = self.times
        measured = f"{one * 1e6:.1f} -> {two * 1e6:.1f} us, {one / two:.2f}" if two else ""
        return f"{self.name}: {measured}; at most {self.most:.2f} ({self.pieces})"


@dataclass(frozen=True)
class Scaling:
    """The least seconds of a call of a row."""

    name: str
    times: Times
    same: bool
    kernels: tuple[Kernel, ...]

    @property
    def ratio(self) -> float:
        return self.times[0] / self.times[1]

    @property
    def most(self) -> float:
        """What the pieces of all kernels allow."""
        total = sum(k.times[0] for k in self.kernels)
        return total / sum(k.times[0] / k.most for k in self.kernels) if total else 1.0

    def row(self) -> str:
        one, two = (f"{t * 1e3:.4g}" for t in self.times)
        note = "below the goal" if self.ratio < GOAL else ""
        note = note if self.same else "OTHER BITS"
        return f"| {self.name} | {one} | {two} | {self.ratio:.2f} | {self.most:.2f} | {note} |"

    def losses(self, most: int) -> list[str]:
        """The kernels whose pieces lose the most."""
        total = sum(k.lost for k in self.kernels) or 1.0
        lost = sorted(self.kernels, key=lambda k: -k.lost)[:most]
        return [f"    {k.lost / total:.0%} of what is lost: {k}" for k in lost if k.lost > SMALL * total]


def is_computing(case: Case, limits: Limits) -> bool:
    """Whether multiply-adds limit a row, and not memory."""
    return case.flops > 0 and limits.best_ms(case.flops, 0, 0) > limits.best_ms(0, *case.moved())


def measure(case: Case, seconds: float) -> Scaling:
    """Time a row with one thread and with two, for about so long."""
    args = case.inputs()
    pair = [hilo.compile(case.text, threads=n) for n in (1, 2)]
    results = [[np.asarray(r) for r in f(*args)] for f in pair]
    same = all(a.tobytes() == b.tobytes() for a, b in zip(*results, strict=True))
    calls: list[Callable[[], object]] = [lambda f=f: f(*args) for f in pair]
    return Scaling(case.name, _least(calls, seconds), same, _kernels(case, args, seconds))


def _least(calls: Sequence[Callable[[], object]], seconds: float) -> Times:
    """The least time of each call; a few of each in turn."""
    least = [float("inf")] * len(calls)
    end = time.perf_counter() + seconds
    turns = 0
    while time.perf_counter() < end or turns < 3:
        turns += 1
        for i, call in enumerate(calls):
            call()  # threads that fell asleep are awake then, and operands in the caches that they were left in
            for _ in range(3):
                start = time.perf_counter()
                call()
                least[i] = min(least[i], time.perf_counter() - start)
    return least[0], least[1]


def _kernels(case: Case, args: Sequence[np.ndarray], seconds: float) -> tuple[Kernel, ...]:
    """The least time of each step of the program, by the clock that it reads itself."""
    pair = [hilo.compile(case.text, threads=n, options=Options.from_env(profile=True)) for n in (1, 2)]
    least: list[np.ndarray | None] = [None, None]
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or least[1] is None:
        for i, f in enumerate(pair):
            f(*args)
            f.take_counters()
            f(*args)
            counters, old = f.take_counters(), least[i]
            least[i] = counters if old is None else np.minimum(old, counters)
    found = []
    steps = [f.profile(counters) for f, counters in zip(pair, least, strict=True)]
    for one, two, (pieces, most) in zip(*steps, _planned(case), strict=True):
        found.append(Kernel(f"{one.name} {one.op}", (one.seconds, two.seconds), pieces, most))
    return tuple(found)


def _planned(case: Case) -> list[tuple[str, float]]:
    """For each step its pieces, in words, and how many times as fast two threads can be with them."""
    options, machine = Options.from_env(), Target.host()
    f = pipeline.optimize(hilo.parse(case.text), "main", options)
    with pipeline.choices(options, machine):
        steps = list(timed_steps(pipeline.plan(f, machine)))
    return [shared(s.lowered.phases) if isinstance(s, Call) else ("one piece", 1.0) for s in steps]


def shared(phases: Iterable[Phase]) -> tuple[str, float]:
    """The pieces of phases, and what two threads can make of them: each takes its own half, the last ones whoever is
    free."""
    alone = together = 0.0
    words = []
    for p in phases:
        if p.units <= 0:
            continue
        cost, chunk = p.units * p.unit_cost, chunk_units(p)
        pieces = -(-p.units // chunk) if is_shared(p) else 1
        alone += cost
        together += max(cost / 2, -(-pieces // 2) * min(chunk, p.units) * p.unit_cost) if pieces > 1 else cost
        words.append(f"{pieces} pieces of {chunk} of {p.units} units" if pieces > 1 else f"{p.units} units, by one")
    return ", ".join(words) or "nothing", alone / together if together else 1.0


def table(rows: Iterable[Scaling]) -> str:
    """For docs/benchmarks.md."""
    lines = ["| module | 1 thread, ms | 2 threads, ms | speed-up | at most | |", "|---|---|---|---|---|---|"]
    return "\n".join([*lines, *(r.row() for r in rows)])


@click.command("threads")
@click.option("--names", default="", help="Comma-separated names of modules, or how they begin.  [default: those whose "
                                          "limit is computing]")  # fmt: skip
@click.option("--seconds", default=2.0, show_default=True, help="How long each row is timed, at the least.")
@click.option("--kernels", default=0, show_default=True, help="So many kernels of a row that lose the most.")
def threads_command(names: str, seconds: float, kernels: int) -> None:
    """Time rows with one thread and with two; the exit status says whether results differ."""
    one, two = (measure_limits(n) for n in (1, 2))
    print(f"multiply-adds: {one.fma:.0f} -> {two.fma:.0f} GFLOP/s, {two.fma / one.fma:.2f}; copying: {one.copy:.0f} -> "
          f"{two.copy:.0f} GB/s, {two.copy / one.copy:.2f}", flush=True)  # fmt: skip
    wanted = [n for n in names.split(",") if n]
    rows: list[Scaling] = []
    for case in cases(wanted):
        if wanted or is_computing(case, two):
            rows.append(measure(case, seconds))
            print("\n".join([rows[-1].row(), *rows[-1].losses(kernels)]), flush=True)
    print(f"\n{table(rows)}")
    ratios = [r.ratio for r in rows]
    if ratios:
        mean = float(np.exp(np.mean(np.log(ratios))))
        print(f"\n{mean:.2f} in the geometric mean of {len(rows)} rows; {sum(q < GOAL for q in ratios)} below {GOAL}")
    if not all(r.same for r in rows):
        raise SystemExit("the results are not the same bits")
