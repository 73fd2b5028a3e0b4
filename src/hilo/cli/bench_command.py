"""`hilo bench`: time a program."""

from __future__ import annotations

import statistics
import time

import click

import hilo
from hilo.cli.common import arguments, entry_option, function, target_option, threads_option


@click.command("bench")
@click.argument("file", type=click.Path())
@click.argument("arrays", nargs=-1, type=click.Path())
@entry_option
@target_option
@threads_option
@click.option(
    "--random",
    "seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="SEED",
    help="Random arrays if no files are named.",
)
@click.option(
    "--seconds", type=click.FloatRange(0), default=2.0, show_default=True, help="How long to measure; at least 5 calls."
)
@click.option("--explain", is_flag=True, help="Each kernel: units, estimated cost, buffers.")
def command(file: str, arrays: tuple[str, ...], entry: str, target: str, threads: int | None, seed: int,
            seconds: float, explain: bool) -> None:  # fmt: skip
    """Time the compilation of a program and its calls.

    \b
    hilo bench model.mlir
    hilo bench model.mlir --threads 1 --explain
    """
    from rich.console import Console
    from rich.table import Table

    module = hilo.load(file)
    args = arguments(function(module, entry), arrays, seed)
    cpu, wall = time.process_time(), time.perf_counter()
    f = hilo.compile(module, entry=entry, target=target, threads=threads)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 5 or (time.perf_counter() < end and len(times) < 1_000_000):
        start = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - start)
    table = Table("what", "value")
    table.add_row("compile", f"{wall * 1e3:.1f} ms wall, {cpu * 1e3:.1f} ms CPU")
    table.add_row("call, median", f"{statistics.median(times) * 1e3:.4f} ms of {len(times)} calls")
    table.add_row("call, best", f"{min(times) * 1e3:.4f} ms")
    table.add_row("temporaries", f"{f.memory().temporaries:,} bytes")
    console = Console()
    console.print(table)
    if explain:
        console.print(f.text("kernels"), markup=False, highlight=False)
