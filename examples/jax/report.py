"""What every example prints: where it ran, what came out, and what it took. Imports JAX alone."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import jax


def arguments(doc: str) -> argparse.Namespace:
    """The options of every example; `doc` is its docstring."""
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--small", action="store_true", help="sizes for a quick test")
    p.add_argument("--json", action="store_true", help="print one line of JSON")
    return p.parse_args()


def run(step: Callable[[int, Any], Any], state: Any, count: int) -> tuple[Any, float, list[float]]:
    """`state = step(i, state)` for `count` turns: the last state, seconds of the first turn (which compiles), and
    seconds of each of the others."""
    took = []
    for i in range(count):
        begin = time.perf_counter()
        state = jax.block_until_ready(step(i, state))
        took.append(time.perf_counter() - begin)
    return state, took[0], took[1:]


def report(options: argparse.Namespace, name: str, first: float, steps: list[float], ok: bool, **found: float) -> None:
    """Prints the figures. Ends the program with status 1 if the example did not find what it should have."""
    figures = {"example": name, "platform": jax.devices()[0].platform, "first_call_s": round(first, 4),
               "step_ms": round(median(steps) * 1e3, 4), **{k: float(v) for k, v in found.items()}}  # fmt: skip
    print(json.dumps(figures) if options.json else "  ".join(f"{k} {v}" for k, v in figures.items()))
    if not ok:
        raise SystemExit(f"{name}: the result is not what it should be: {found}")
