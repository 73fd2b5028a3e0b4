"""`python -m benchmarks run`: time hilo and its peers on the same modules, interleaved; medians and ratios.

Each peer has a process of its own (server.py). They take turns, round by round, so that a change in the machine's speed
meets all of them. A round runs one peer for a few tens of milliseconds, after a pause in which the thread pools of the
others fall asleep.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from benchmarks.compilation import compile_command
from benchmarks.dynamic import dynamic
from benchmarks.jax_client import jax_group
from benchmarks.jax_soak import soak
from benchmarks.kept import FOLDER, PACKAGES, folder
from benchmarks.memory import memory
from benchmarks.modules import cases
from benchmarks.peers import PEERS
from benchmarks.report import format_row, summary, table
from benchmarks.server import LIMIT, Failed, Server, serve
from benchmarks.threads import threads_command
from benchmarks.timing import measure, started
from hilo.cli.common import atomic_write
from hilo.runtime.limits import measure as measure_limits

CHOICE = [p for p in PEERS if p != "limit"]  # which is always measured, and is no peer


@click.group()
def main() -> None:
    """Benchmarks of hilo against its peers."""


def peer_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options of commands that load modules in peers which compile for long."""
    for option in (
        click.option("--retry", is_flag=True, help=f"Try again what {' and '.join(PACKAGES)} could not do before."),
        click.option("--limit", default=LIMIT, show_default=True, help="Seconds in which a peer must compile."),
        click.option("--peer-cache", envvar=FOLDER, default=folder, callback=_lies_in, expose_value=False,
                     help=f"Where what {' and '.join(PACKAGES)} compiled is kept; ${FOLDER} says it, too.  "
                          "[default: hilo-benchmarks in the user's cache directory]"),
    ):  # fmt: skip
        command = option(command)
    return command


def _lies_in(_context: click.Context, _option: click.Parameter, path: str) -> None:
    os.environ[FOLDER] = os.path.abspath(path)  # for the peers' processes


def _chosen(peers: str) -> list[str]:
    chosen = list(filter(None, peers.split(",")))
    if unknown := set(chosen) - set(CHOICE):
        raise click.BadParameter(f"no peer {', '.join(sorted(unknown))}; there are {', '.join(CHOICE)}")
    return chosen


@main.command("run")
@click.option("--peers", default="xla", show_default=True, help=f"Comma-separated: {', '.join(CHOICE)}; empty: none.")
@click.option("--names", default="", help="Comma-separated names of modules, or how they begin.  [default: all]")
@click.option("--threads", default=2, show_default=True)
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=0, show_default=True, help="Of the order in which the peers take turns.")
@click.option("--check/--no-check", default=True, show_default=True, help="Compare the results with hilo's.")
@click.option("--json", "json_path", type=click.Path(dir_okay=False, path_type=Path), help="Write the figures there.")
@peer_options
def run(
    peers: str, names: str, threads: int, rounds: int, seed: int, check: bool, json_path: Path | None, limit: float,
    retry: bool
) -> None:  # fmt: skip
    """Time calls of every module."""
    chosen = list(dict.fromkeys(["hilo", *_chosen(peers)]))
    limits = measure_limits(threads)
    print(f"limits: {limits.fma:.0f} GFLOP/s, copy {limits.copy:.1f} GB/s, read {limits.read:.1f} GB/s", flush=True)
    rows: list[dict[str, Any]] = []
    figures = {"threads": threads, "rounds": rounds, "seed": seed, "limits": asdict(limits), "peers": chosen,
               "rows": rows}  # fmt: skip
    with started([*chosen, "limit"], threads, limit=limit, retry=retry) as servers:
        for case in cases(filter(None, names.split(","))):
            rows.append(measure(case, servers, rounds, check, seed))
            print(format_row(rows[-1], chosen), flush=True)
            if json_path:  # after each row: a run takes long
                with atomic_write(str(json_path)) as file:
                    file.write(json.dumps(figures, indent=1).encode())
    print()
    print(table(rows, chosen))
    print()
    print(summary(rows, chosen))


@main.command("warm")
@click.option("--peers", default=",".join(PACKAGES), show_default=True, help="Comma-separated.")
@click.option("--names", default="", help="Comma-separated names of modules, or how they begin.  [default: all]")
@click.option("--threads", default=2, show_default=True)
@peer_options
def warm(peers: str, names: str, threads: int, limit: float, retry: bool) -> None:
    """Have the peers that compile for long compile every module and keep it, one after the other; nothing is timed
    for the record, so that other work may run beside it."""
    chosen = list(cases(filter(None, names.split(","))))
    for peer in _chosen(peers):
        server, can = Server(peer, threads, limit, retry), 0
        try:
            for case in chosen:
                start = time.perf_counter()
                try:
                    found = "one call takes long" if server.load(case) else "ready"
                    can += 1
                except Failed as e:
                    found = str(e) or "not a program of this peer"
                print(f"{peer} {case.name}: {found} ({time.perf_counter() - start:.1f} s)", flush=True)
        finally:
            server.close()
        print(f"{peer}: {can} of {len(chosen)} rows")


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
            rows.append(measure(case, servers, 9))
            print(format_row(rows[-1], ["hilo", "xla"]), flush=True)
    print(summary(rows, ["hilo", "xla"]))
    if failed := [r["name"] for r in rows if "hilo" not in r or "xla" not in r]:
        sys.exit(f"not measured: {', '.join(failed)}")
    if slower := [r["name"] for r in rows if r["xla"] / r["hilo"] < least]:
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


@main.command("report")
@click.argument("figures", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def report_command(figures: Path) -> None:
    """Say again what `run` said of figures that it wrote: the table, and the means by medians and by minima."""
    found = json.loads(figures.read_text())
    print(f"{table(found['rows'], found['peers'])}\n\n{summary(found['rows'], found['peers'])}")
    for row in found["rows"]:
        for peer in found["peers"]:
            if why := row.get(f"{peer}_error"):
                print(f"{row['name']}: {peer}: {why}")


@main.command("plot")
@click.argument("figures", type=click.Path(exists=True))
@click.argument("picture", type=click.Path())
def plot_command(figures: str, picture: str) -> None:
    """Draw figures that `run --json` wrote: the ratio to each peer, row by row (matplotlib; svg, png or pdf)."""
    from benchmarks.report import plot

    with open(figures) as f:
        plot(json.load(f), picture)


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
