"""`python -m benchmarks dynamic`: programs of run-time sizes beside their static twins, interleaved.

The programs (benchmarks/dynamic, exported by JAX with a symbolic batch) are compiled once for all batches; the twin is
the same program compiled for one batch. Both are called in turns within one process; minima and medians say how much
is paid for not knowing the batch.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np

PROGRAMS = Path(__file__).parent / "dynamic"
CALL = 0.002  # seconds of one measurement, at least
PAUSE = 0.001  # in which the other's threads fall asleep


@click.command("dynamic")
@click.option("--names", default="", help="Comma-separated names of programs, or how they begin.  [default: all]")
@click.option("--batches", default="1,2,3,4,5,6,7,8,9,12,16,24,32,64", show_default=True)
@click.option("--threads", default=2, show_default=True)
@click.option("--rounds", default=25, show_default=True)
def dynamic(names: str, batches: str, threads: int, rounds: int) -> None:
    """Time programs of run-time sizes beside their static twins."""
    wanted = tuple(filter(None, names.split(","))) or ("",)
    worst = 0.0
    for path in sorted(PROGRAMS.glob("*.mlir")):
        if path.stem.startswith(wanted):
            worst = max(worst, *table(path, map(int, batches.split(",")), threads, rounds))
    print(f"\nworst ratio of minima: {worst:.2f}")


def table(path: Path, batches: Iterable[int], threads: int, rounds: int) -> list[float]:
    """Print a line for each batch; gives the ratios of minima."""
    import hilo

    text = path.read_text()
    compiled = hilo.compile(text, threads=threads)
    ratios = []
    print(f"{path.stem:32}{'dynamic us':>12}{'static us':>12}{'minima':>8}{'medians':>9}{'difference':>12}")
    for batch in batches:
        arrays = inputs(compiled.arg_types, batch)
        twin = hilo.compile(text, threads=threads, shapes={0: arrays[0].shape})
        got, want = compiled(*arrays), twin(*arrays)
        difference = max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in zip(got, want, strict=True))
        one, two = in_turns([partial(compiled, *arrays), partial(twin, *arrays)], rounds)
        ratios.append(min(one) / min(two))
        medians = statistics.median(a / b for a, b in zip(one, two, strict=True))
        print(f"{f'  batch {batch}':32}{min(one) * 1e6:12.1f}{min(two) * 1e6:12.1f}{ratios[-1]:8.2f}{medians:9.2f}"
              f"{difference:12.1e}", flush=True)  # fmt: skip
    return ratios


def inputs(types: Iterable[Any], batch: int) -> list[np.ndarray]:
    """Normal numbers, those of weights scaled."""
    rng = np.random.default_rng(0)
    shapes = [[n if isinstance(n, int) else batch for n in t.shape] for t in types]
    scales = [1.0 if i == 0 or len(s) < 2 else s[0] ** -0.5 for i, s in enumerate(shapes)]
    return [(rng.standard_normal(s) * scale).astype(np.float32) for s, scale in zip(shapes, scales, strict=True)]


def in_turns(calls: list[Callable[[], Any]], rounds: int) -> list[list[float]]:
    """Seconds of a call, by call and round."""
    counts = []
    for call in calls:
        start = time.perf_counter()
        call()
        counts.append(max(1, int(CALL / max(time.perf_counter() - start, 1e-6))))
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, count, found in zip(calls, counts, times, strict=True):
            time.sleep(PAUSE)
            call()
            start = time.perf_counter()
            for _ in range(count):
                call()
            found.append((time.perf_counter() - start) / count)
    return times
