"""`python -m benchmarks run`: time hilo and its peers on the same modules, interleaved; medians and ratios.

Each peer has a process of its own (server.py). They take turns, round by round, so that a change in the machine's speed
meets all of them. A round runs one peer for a few tens of milliseconds, after a pause in which the thread pools of the
others fall asleep.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import click
import numpy as np

from benchmarks.compilation import compile_command
from benchmarks.dynamic import dynamic
from benchmarks.jax_client import jax_group
from benchmarks.jax_soak import soak
from benchmarks.memory import memory
from benchmarks.modules import cases
from benchmarks.peers import PEERS
from benchmarks.report import format_row, summary, table
from benchmarks.server import Failed, Server, serve
from benchmarks.threads import threads_command
from hilo.runtime.limits import measure as measure_limits


@click.group()
def main() -> None:
    """Benchmarks of hilo against its peers."""


@main.command("run")
@click.option("--peers", default="xla", show_default=True, help=f"Comma-separated: {', '.join(PEERS)}; empty for none.")
@click.option("--names", default="", help="Comma-separated names of modules, or how they begin.  [default: all]")
@click.option("--threads", default=2, show_default=True)
@click.option("--rounds", default=15, show_default=True)
@click.option("--check/--no-check", default=True, show_default=True, help="Compare the results with the first peer's.")
@click.option("--json", "json_path", help="Write the figures there as JSON.")
def run(
    peers: str, names: str, threads: int, rounds: int, check: bool, json_path: str | None
) -> None:
    """Time calls of every module."""
    chosen = list(dict.fromkeys(["hilo", *filter(None, peers.split(","))]))
    if unknown := set(chosen) - set(PEERS):
        raise click.BadParameter(f"no peer {', '.join(sorted(unknown))}; there are {', '.join(PEERS)}")
    limits = measure_limits(threads)
    print(f"limits: {limits.fma:.0f} GFLOP/s, copy {limits.copy:.1f} GB/s, read {limits.read:.1f} GB/s", flush=True)
    rows = []
    with started([*chosen, "limit"], threads) as servers:
        for case in cases(filter(None, names.split(","))):
            row = measure(case.name, servers, rounds, check)
            rows.append(row)
            print(format_row(row, chosen), flush=True)
    print()
    print(table(rows, chosen))
    print()
    print(summary(rows, chosen))
    if json_path:
        figures = {"threads": threads, "rounds": rounds, "limits": asdict(limits), "peers": chosen, "rows": rows}
        with open(json_path, "w") as f:
            json.dump(figures, f, indent=1)


SMALL = "add_1x1,mnist,matmul_64,matmul_128,matmul_256,while_,sort_4k,softmax_1003,layernorm_grad,column,argmax,take"


main.add_command(compile_command)
main.add_command(dynamic)
main.add_command(memory)
main.add_command(threads_command)
main.add_command(jax_group)
jax_group.add_command(soak)


@main.command("gate")
@click.option("--names", default=SMALL, show_default=True, help="Small rows, so that it takes a minute.")
@click.option("--threads", default=2, show_default=True)
@click.option("--least", default=0.97, show_default=True, help="The least ratio of XLA's time to hilo's that passes.")
def gate(names: str, threads: int, least: float) -> None:
    """Time small rows beside XLA; the exit status says whether one is slower. Stands beside the tests, not in them."""
    rows = []
    with started(["hilo", "xla"], threads) as servers:
        for case in cases(names.split(",")):
            rows.append(measure(case.name, servers, 9, True))
            print(format_row(rows[-1], ["hilo", "xla"]), flush=True)
    print(summary(rows, ["hilo", "xla"]))
    slower = [r["name"] for r in rows if r["xla"] / r["hilo"] < least]
    if slower:
        sys.exit(f"slower than XLA: {', '.join(slower)}")


@main.command("scale")
@click.option("--ops", default="5000,15000,50000", show_default=True, help="Comma-separated numbers of ops.")
def scale(ops: str) -> None:
    """Compile unrolled programs of growing length, cache off: CPU seconds, which should grow with the ops."""
    import hilo
    from benchmarks.unrolled import KINDS, program

    os.environ["HILO_CACHE"] = "0"
    sizes = [int(n) for n in ops.split(",")]
    print("| program | " + " | ".join(f"{n} ops, s" for n in sizes) + " |\n|" + "---|" * (len(sizes) + 1))
    for kind in KINDS:
        cells = []
        for n in sizes:
            text = program(kind, n)
            start = time.process_time()
            hilo.compile(text, threads=2)
            cells.append(f"{time.process_time() - start:.2f}")
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)


@main.command("plot")
@click.argument("figures", type=click.Path(exists=True))
@click.argument("picture", type=click.Path())
def plot_command(figures: str, picture: str) -> None:
    """Draw figures that `run --json` wrote: the ratio to each peer, row by row (matplotlib; svg, png or pdf)."""
    from benchmarks.report import plot

    with open(figures) as f:
        plot(json.load(f), picture)


def measure(name: str, servers: Mapping[str, Server], rounds: int, check: bool) -> dict[str, Any]:
    """Medians in milliseconds per peer, and for the peers the largest difference from hilo's results."""
    row: dict[str, Any] = {"name": name}
    ready: dict[str, Server] = {}
    for p, server in servers.items():
        try:
            server.load(name)
            ready[p] = server
        except Failed as e:  # a peer that cannot do the work leaves an empty cell
            if str(e):
                row[f"{p}_error"] = str(e)
    times: dict[str, list[float]] = {p: [] for p in ready}
    for _ in range(rounds):
        for p, server in ready.items():
            times[p].append(server.time())
    for p, t in times.items():
        row[p] = statistics.median(t) * 1e3
        row[f"{p}_best"] = min(t) * 1e3
    if check and "hilo" in ready:
        ours = ready["hilo"].results()
        for p in ready.keys() - {"hilo", "limit"}:
            row[f"{p}_difference"] = _difference(ours, ready[p].results())
    return row


@contextmanager
def started(peers: Sequence[str], threads: int) -> Iterator[dict[str, Server]]:
    """A process per peer."""
    servers = {p: Server(p, threads) for p in peers}
    try:
        yield servers
    finally:
        for s in servers.values():
            s.close()


def _difference(ours: list[np.ndarray], theirs: list[np.ndarray]) -> float:
    """The largest difference, relative to each result's largest magnitude; 0 where both have the same odd values."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        if not a.size:
            continue
        wide = np.complex128 if a.dtype.kind == "c" else np.float64
        x, y = a.astype(wide), b.astype(wide)
        same = (x == y) | ((x != x) & (y != y))
        with np.errstate(invalid="ignore"):
            d = np.where(same, 0, np.abs(x - y))
        scale = np.abs(y[np.isfinite(y)]).max(initial=0) or 1.0
        worst = max(worst, float(d.max() / scale))
    return worst


@main.command("accuracy")
@click.option("--names", default="", help="Comma-separated names of modules, or how they begin.  [default: all]")
@click.option("--threads", default=2, show_default=True)
@click.option("--xla/--no-xla", default=True, show_default=True)
def accuracy_command(names: str, threads: int, xla: bool) -> None:
    """Errors against the float64 interpreter, beside XLA's."""
    from benchmarks.accuracy import measure as errors

    bad = 0
    for case in cases(filter(None, names.split(","))):
        try:
            a = errors(case, threads, xla)
        except Exception as e:
            print(f"{case.name:28} {type(e).__name__}: {str(e).splitlines()[0][:120]}", flush=True)
            bad += 1
            continue
        theirs = "" if a.xla is None else f"  XLA {a.xla:.2e}"
        print(f"{a.name:28} hilo {a.hilo:.2e}{theirs}  {'ok' if a.ok else 'WRONG'}", flush=True)
        bad += not a.ok
    sys.exit(1 if bad else 0)


@main.command("export")
def export_command() -> None:
    """Write our own modules anew from JAX."""
    from benchmarks.export import export

    export()


@main.command("serve", hidden=True)
@click.argument("peer")
@click.argument("threads", type=int)
def serve_command(peer: str, threads: int) -> None:
    """The process of one peer (benchmarks/server.py)."""
    serve(peer, threads)


if __name__ == "__main__":
    main()
