"""One row: the peers' processes take turns, in an order that is shuffled for each round, so that nobody always follows
the same one."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.modules import Case
from benchmarks.server import LIMIT, Failed, Server

ENOUGH = 10.0  # seconds of a peer's calls in a row, beyond which three rounds are enough


@contextmanager
def started(
    peers: Sequence[str], threads: int, *, limit: float = LIMIT, retry: bool = False
) -> Iterator[dict[str, Server]]:
    """A process per peer."""
    servers = {p: Server(p, threads, limit, retry) for p in peers}
    try:
        yield servers
    finally:
        for s in servers.values():
            s.close()


def measure(
    case: Case, servers: Mapping[str, Server], rounds: int, check: bool = True, seed: int = 0
) -> dict[str, Any]:
    """Milliseconds of each peer: the median of the rounds, `PEER_best` the least; `PEER_difference` the largest
    difference from hilo's results; `PEER_error` why a cell is empty; `PEER_once`: there was one call only."""
    row: dict[str, Any] = {"name": case.name}
    ready: dict[str, Server] = {}
    for p, server in servers.items():
        with _noted(row, p):
            if server.load(case):
                row[f"{p}_once"] = True
            ready[p] = server
    times: dict[str, list[float]] = {p: [] for p in ready}
    order = random.Random(f"{seed} {case.name}")
    for _ in range(rounds):
        for p in order.sample(sorted(times), len(times)):
            if f"{p}_error" in row or (len(times[p]) >= 3 and sum(times[p]) > ENOUGH):
                continue
            with _noted(row, p):
                times[p].append(ready[p].time())
    for p in times:
        if f"{p}_error" not in row:
            row[p] = statistics.median(times[p]) * 1e3
            row[f"{p}_best"] = min(times[p]) * 1e3
    if check and "hilo" in row:
        ours = ready["hilo"].results()
        for p in ready:
            if p in row and p not in ("hilo", "limit"):
                with _noted(row, p):
                    row[f"{p}_difference"] = difference(ours, ready[p].results())
    return row


@contextmanager
def _noted(row: dict[str, Any], peer: str) -> Iterator[None]:
    """A peer that cannot do the work leaves an empty cell, and says why if there is something to say."""
    try:
        yield
    except Failed as e:
        if str(e):
            row[f"{peer}_error"] = str(e)


def difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest difference, relative to each result's largest magnitude; 0 where both have the same odd values,
    infinity where the results are not of the same shapes."""
    if [a.shape for a in ours] != [b.shape for b in theirs]:
        return float("inf")
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if not a.size:
            continue
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        same = (x == y) | ((x != x) & (y != y))
        with np.errstate(invalid="ignore"):
            d = np.where(same, 0, np.abs(x - y))
        d = np.where(np.isnan(d), np.inf, d)
        scale = np.abs(y[np.isfinite(y)]).max(initial=0) or 1.0
        worst = max(worst, float(d.max() / scale))
    return worst
