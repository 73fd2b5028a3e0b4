"""`hilo run`: run a program on arrays."""

from __future__ import annotations

import statistics
import time
from typing import Any

import click
import numpy as np

import hilo
from hilo.cli.common import (
    arguments,
    atomic_write,
    entry_option,
    function,
    sizes,
    summary,
    target_option,
    threads_option,
)


@click.command("run")
@click.argument("file", type=click.Path())
@click.argument("arrays", nargs=-1, type=click.Path())
@entry_option
@target_option
@threads_option
@click.option("--random", "seed", type=click.IntRange(0), metavar="SEED", help="Random arrays instead of files.")
@click.option("--dim", type=click.IntRange(0), metavar="N", help="With --random: sizes known only at run time are N.")
@click.option("--interpret", is_flag=True, help="Run the reference interpreter instead of native code.")
@click.option(
    "--check", is_flag=True, help="Run the interpreter beside the native code; name the first op that differs."
)
@click.option("--time", "timed", is_flag=True, help="Time compilation and calls.")
@click.option(
    "--save", metavar="FILE.npz", type=click.Path(), help="Save the results as result0, result1 ..."
)
def command(file: str, arrays: tuple[str, ...], entry: str, target: str, threads: int | None, seed: int | None,
            dim: int | None, interpret: bool, check: bool, timed: bool, save: str | None) -> None:  # fmt: skip
    """Run a program (StableHLO text) on arrays from .npy or .npz files, in the order of its parameters.

    \b
    hilo run model.mlir x.npy weights.npz
    hilo run model.mlir --random 0 --time
    hilo run model.mlir --random 0 --check
    hilo run dynamic.mlir --random 0 --dim 8
    hilo run model.mlir x.npy --save results.npz
    """
    module = hilo.load(file)
    args = arguments(function(module, entry), arrays, seed, lambda: sizes(module, entry, dim))
    if check:
        _check(module, entry, target, threads, args)
        return
    if interpret:
        results = hilo.interpret(module, *args, entry=entry)
    else:
        start = time.perf_counter()
        f = hilo.compile(module, entry=entry, target=target, threads=threads)
        seconds = time.perf_counter() - start
        results = f(*args)
        if timed:
            _time(f, args, seconds)
    for i, r in enumerate(results):
        click.echo(f"result {i}: {summary(np.asarray(r))}")
    if save:
        with atomic_write(save) as out:
            np.savez(out, **{f"result{i}": r for i, r in enumerate(results)})  # type: ignore[arg-type]
        click.echo(f"saved {len(results)} arrays to {save}")


def _time(f: Any, args: list[np.ndarray], compile_seconds: float) -> None:
    """Print the median, and the range, of calls for about half a second."""
    times: list[float] = []
    end = time.perf_counter() + 0.5
    while len(times) < 3 or (time.perf_counter() < end and len(times) < 100_000):
        start = time.perf_counter()
        f(*args)
        times.append(time.perf_counter() - start)
    median, best, worst = (1e6 * f(times) for f in (statistics.median, min, max))
    click.echo(f"compile {compile_seconds * 1e3:.1f} ms; call {median:.2f} us median of {len(times)} "
               f"(best {best:.2f}, worst {worst:.2f})")  # fmt: skip


def _check(module: hilo.Module, entry: str, target: str, threads: int | None, args: list[np.ndarray]) -> None:
    from hilo.testing.check import check_program

    difference = check_program(module, args, entry=entry, target=target, threads=threads)
    if difference is not None:
        raise hilo.Error(f"native code and interpreter differ: {difference}")
    click.echo("native code agrees with the interpreter at every fusion boundary")
