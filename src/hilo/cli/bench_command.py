"""`hilo bench`: time a program, and its kernels."""

from __future__ import annotations

import json
import statistics
import time
from typing import TYPE_CHECKING, Any

import click

import hilo
from hilo.cli.common import (
    Program,
    Seconds,
    arguments,
    bind_option,
    bound,
    compile_options,
    entry_option,
    function,
    interruptible,
    need_arrays,
    opt_option,
    sizes,
    target_option,
    threads_option,
)

if TYPE_CHECKING:
    import numpy as np

    from hilo.ir.module import Function
    from hilo.runtime.executable import Executable

WIDTH = 160  # of tables that no terminal shows


@click.command("bench")
@click.argument("file", type=click.Path())
@click.argument("arrays", nargs=-1, type=click.Path())
@entry_option
@target_option
@threads_option
@opt_option
@bind_option
@click.option(
    "--random",
    "seed",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    metavar="SEED",
    help="Random arrays if no files are named.",
)
@click.option("--dim", type=click.IntRange(0), metavar="N", help="Sizes known only at run time are N.")
@click.option(
    "--seconds", type=Seconds(0), default=2.0, show_default=True, help="How long to measure; at least 5 calls."
)
@click.option("--explain", is_flag=True, help="Each kernel: time, bytes, flops, part of the limit, strategy, reason.")
@click.option("--sort", "order", type=click.Choice(["time", "order"]), default="time", show_default=True,
              help="With --explain: kernels by time, or in the program's order.")  # fmt: skip
@click.option("--most", type=click.IntRange(0), default=0, metavar="N", help="With --explain: at most N kernels.")
@click.option("--limits", "again", is_flag=True, help="With --explain: measure the machine's limits again.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def command(file: str, arrays: tuple[str, ...], entry: str, target: str, threads: int | None, opt: int | None,
            bind: str, seed: int, dim: int | None, seconds: float, explain: bool, order: str, most: int, again: bool,
            as_json: bool) -> None:  # fmt: skip
    """Time the compilation of a program and its calls.

    --explain runs the program once more with a clock around each step, also in loops and branches. "Of limit" is the
    time that the step's flops and bytes take at the machine's measured limits (f32 multiply-adds, copying, reading)
    over its own: of all threads that a call may use, and above 100 % where operands come from a cache.

    \b
    hilo bench model.mlir
    hilo bench model.mlir --threads 1 --explain --most 10
    hilo bench model.mlir --explain --sort order
    hilo bench model.mlir --bind 1-160                  weights are constants
    hilo bench model.mlir --explain --json > figures.json
    """
    program, options = Program(file, entry), compile_options(opt)
    how: dict[str, Any] = {"target": target, "threads": threads}

    def found(f: Function | Executable) -> list[np.ndarray]:
        return arguments(f, arrays, seed, lambda: sizes(program.module, entry, dim))

    args: list[np.ndarray] = []
    if bind:
        how["constants"], args = bound(bind, found(function(program.module, entry)))
    else:
        need_arrays(program, entry, arrays, seed)
    cpu, wall = time.process_time(), time.perf_counter()
    if bind:
        f = hilo.compile(program.module, entry=entry, options=options, **how)
    else:
        f = program.compile(options=options, **how)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    if not bind:
        args = found(f)
    times: list[float] = []
    end = time.perf_counter() + seconds
    with interruptible():
        while len(times) < 5 or (time.perf_counter() < end and len(times) < 1_000_000):
            start = time.perf_counter()
            f(*args)
            times.append(time.perf_counter() - start)
    figures: dict[str, Any] = {
        "compile_wall": wall,
        "compile_cpu": cpu,
        "median": statistics.median(times),
        "best": min(times),
        "calls": len(times),
        "threads": f.num_threads,
        "temporaries": f.memory().temporaries,
    }
    table = None
    if explain:
        from hilo.cli.explain import as_dicts, as_table, limits_as_dict, ordered, sampled
        from hilo.runtime.limits import known
        from hilo.runtime.stores import cache_of

        limits = known(f.num_threads, cache_of(options), again=again)
        profiled = hilo.compile(program.module, entry=entry, options=options.replace(profile=True), **how)
        steps = ordered(sampled(profiled, args, seconds), order)
        if any(t.flops * t.runs > limits.fma * 1e9 * t.seconds for t in steps):  # the machine was busy then
            limits = known(f.num_threads, cache_of(options), again=True)
        figures |= {"limits": limits_as_dict(limits), "kernels": as_dicts(steps, limits)}
        table = as_table(steps, limits, most)
    if as_json:
        click.echo(json.dumps(figures, indent=1))
    else:
        _print(figures, table)


def _print(figures: dict[str, Any], kernels: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("what", "value")
    table.add_row("compile", f"{figures['compile_wall'] * 1e3:.1f} ms wall, {figures['compile_cpu'] * 1e3:.1f} ms CPU")
    table.add_row("call, median", f"{figures['median'] * 1e3:.4f} ms of {figures['calls']} calls")
    table.add_row("call, best", f"{figures['best'] * 1e3:.4f} ms")
    table.add_row("temporaries", f"{figures['temporaries']:,} bytes")
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    console.print(table)
    if kernels is not None:
        console.print(kernels, markup=False, highlight=False)
