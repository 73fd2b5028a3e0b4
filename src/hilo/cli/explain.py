"""What each kernel of a program costs, beside what the machine can do: for `hilo bench --explain`. Imports plan.profile
and runtime.limits, and measures."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.runtime.limits import Limits

if TYPE_CHECKING:
    from rich.table import Table

    from hilo.plan.profile import StepTime
    from hilo.runtime.executable import Executable


def sampled(f: Executable, args: Sequence[np.ndarray], seconds: float) -> list[StepTime]:
    """The median over calls of each step's time in one call; `f` is compiled with profile=True."""
    f(*args)
    f.take_counters()
    samples: list[np.ndarray] = []
    end = time.perf_counter() + seconds
    while len(samples) < 3 or (time.perf_counter() < end and len(samples) < 10_000):
        f(*args)
        samples.append(f.take_counters())
    return f.profile(np.median(np.stack(samples), axis=0).astype(np.int64))


def share_of_limit(t: StepTime, limits: Limits) -> float:
    """What the machine would need at the least, over what the step needs. Above 1: operands came from a cache."""
    best = limits.best_ms(t.flops * (2 if t.wide else 1), t.read, t.written) * 1e-3
    return best / t.seconds_per_run if t.seconds_per_run else 0.0


def ordered(times: Sequence[StepTime], by: str) -> list[StepTime]:
    """By "time" of all runs, most first, or in the program's "order"."""
    return sorted(times, key=lambda t: -t.seconds) if by == "time" else list(times)


def as_table(times: Sequence[StepTime], limits: Limits, most: int) -> Table:
    """One row per step that ran, at most so many (0: all); then the sum."""
    from rich.table import Table

    ran = [t for t in times if t.runs]
    total = sum(t.seconds for t in ran)
    table = Table(title=f"limits: {limits.fma:.0f} GFLOP/s, copy {limits.copy:.1f} GB/s, read {limits.read:.1f} GB/s")
    table.add_column("kernel", overflow="fold")
    for name in ("runs", "us", "share", "MB", "Mflop", "of limit"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("strategy and reason", overflow="fold", ratio=1)
    for t in ran[: most or None]:
        where = t.where.rpartition("/")[2]
        table.add_row(
            f"{t.name} {where}\n{t.op}",
            str(t.runs),
            f"{t.seconds * 1e6:.2f}",
            f"{t.seconds / total:.1%}" if total else "",
            f"{(t.read + t.written) * 1e-6:.3g}",
            f"{t.flops * 1e-6:.3g}",
            f"{share_of_limit(t, limits):.0%}",
            explained(t),
        )
    left = ran[most:] if most else []
    if left:
        rest = sum(t.seconds for t in left)
        table.add_row(f"{len(left)} more", "", f"{rest * 1e6:.2f}", f"{rest / total:.1%}" if total else "")
    table.add_section()
    table.add_row("all", str(sum(t.runs for t in ran)), f"{total * 1e6:.2f}")
    return table


def explained(t: StepTime) -> str:
    """Strategy, reason, and the knobs with their values."""
    reason = f"{t.strategy}: {t.reason}" if t.reason else t.strategy
    return "\n".join(filter(None, (reason, ", ".join(map(str, t.choices)))))


def as_dicts(times: Sequence[StepTime], limits: Limits) -> list[dict[str, Any]]:
    """The steps for a JSON file."""
    from hilo.kernels.pins import shown

    rows = []
    for t in times:
        choices = {c.knob: {"value": shown(c.value), "how": c.how or "chosen"} for c in t.choices}
        row = {"kernel": t.name, "op": t.op, "where": t.where, "runs": t.runs, "seconds": t.seconds, "flops": t.flops,
               "bytes": t.read + t.written, "of_limit": share_of_limit(t, limits), "strategy": t.strategy,
               "reason": t.reason, "choices": choices}  # fmt: skip
        rows.append(row)
    return rows


def limits_as_dict(limits: Limits) -> dict[str, float]:
    """For a JSON file: GFLOP/s and GB/s."""
    return asdict(limits)
