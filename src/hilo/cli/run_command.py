"""`hilo run`: run a program on arrays."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import click
import numpy as np

import hilo
from hilo.cli.common import (
    Program,
    arguments,
    atomic_write,
    compile_options,
    entry_option,
    function,
    interruptible,
    need_arrays,
    opt_option,
    read_arrays,
    sizes,
    summary,
    target_option,
    threads_option,
)

if TYPE_CHECKING:
    from hilo.ir.module import Function
    from hilo.options import Options
    from hilo.runtime.executable import Executable


@click.command("run")
@click.argument("file", type=click.Path())
@click.argument("arrays", nargs=-1, type=click.Path())
@entry_option
@target_option
@threads_option
@opt_option
@click.option("--random", "seed", type=click.IntRange(0), metavar="SEED", help="Random arrays instead of files.")
@click.option("--dim", type=click.IntRange(0), metavar="N", help="With --random: sizes known only at run time are N.")
@click.option("--interpret", is_flag=True, help="Run the reference interpreter instead of native code.")
@click.option("--replicas", type=click.IntRange(1), metavar="R", help="With --interpret: simulate R replicas ...")
@click.option("--partitions", type=click.IntRange(1), metavar="P", help="... by P partitions: a grid of processes.")
@click.option("--probes", metavar="DIR", type=click.Path(), help="With --interpret: write the values of probes to DIR.")
@click.option(
    "--check", is_flag=True, help="Run the interpreter beside the native code; name the first op that differs."
)
@click.option("--time", "timed", is_flag=True, help="Time compilation and calls.")
@click.option(
    "--save", metavar="FILE.npz", type=click.Path(), help="Save the results as result0, result1 ..."
)
def command(file: str, arrays: tuple[str, ...], entry: str, target: str, threads: int | None, opt: int | None,
            seed: int | None, dim: int | None, interpret: bool, replicas: int | None, partitions: int | None,
            probes: str | None, check: bool, timed: bool, save: str | None) -> None:  # fmt: skip
    """Run a program (StableHLO as text or bytecode, or HLO text) on arrays from .npy or .npz files, in the order of its
    parameters.

    \b
    hilo run model.mlir x.npy weights.npz
    hilo run model.mlir --random 0 --time
    hilo run model.mlir --random 0 --check
    hilo run dynamic.mlir --random 0 --dim 8
    hilo run model.mlir x.npy --save results.npz
    hilo run sharded.mlir x0.npy x1.npy --interpret --partitions 2
    """
    program = Program(file, entry)
    if not interpret and (replicas or partitions or probes):
        raise hilo.Error("--replicas, --partitions and --probes go with --interpret: native code runs as one process")
    recorder = hilo.Probes(probes) if probes else None
    if replicas or partitions:
        _grid(program.module, entry, replicas or 1, partitions or 1, arrays, seed, recorder, save)
        return

    def found(f: Function | Executable) -> list[np.ndarray]:
        return arguments(f, arrays, seed, lambda: sizes(program.module, entry, dim))

    if check:
        args = found(function(program.module, entry))
        with interruptible():
            _check(program.module, entry, target, threads, args, compile_options(opt))
        return
    if interpret:
        args = found(function(program.module, entry))
        results = hilo.interpret(program.module, *args, entry=entry, probes=recorder)
    else:
        need_arrays(program, entry, arrays, seed)
        start = time.perf_counter()
        f = program.compile(target=target, threads=threads, options=compile_options(opt))
        seconds = time.perf_counter() - start
        args = found(f)
        with interruptible():
            results = f(*args)
            if timed:
                _time(f, args, seconds)
    _show("", results)
    _save(save, {f"result{i}": r for i, r in enumerate(results)})


def _show(where: str, results: list[Any]) -> None:
    for i, r in enumerate(results):
        click.echo(f"{where}result {i}: {'a token' if r is None else summary(np.asarray(r))}")


def _save(path: str | None, arrays: dict[str, Any]) -> None:
    if path:
        arrays = {k: a for k, a in arrays.items() if a is not None}  # tokens
        with atomic_write(path) as out:
            np.savez(out, **arrays)
        click.echo(f"saved {len(arrays)} arrays to {path}")


def _grid(module: hilo.Module, entry: str, replicas: int, partitions: int, files: tuple[str, ...], seed: int | None,
          probes: hilo.Probes | None, save: str | None) -> None:  # fmt: skip
    """Run as a grid of processes. Files hold the arguments of one process after the other, or of all alike."""
    f, count = function(module, entry), replicas * partitions
    if files:
        given, n = [a for path in files for a in read_arrays(path)], len(f.params)
        if len(given) not in (n, n * count):
            raise hilo.Error(f"@{entry} takes {n} arrays in each of {count} processes: give {n * count}, or the same "
                             f"{n} for all, not {len(given)}")  # fmt: skip
        inputs = [given if len(given) == n else given[k * n : (k + 1) * n] for k in range(count)]
    else:
        inputs = [arguments(f, (), None if seed is None else seed + k) for k in range(count)]
    results = hilo.interpret_parallel(module, inputs, replicas=replicas, partitions=partitions, entry=entry,
                                      probes=probes)  # fmt: skip
    for k, each in enumerate(results):
        _show(f"process {divmod(k, partitions)}: ", each)
    _save(save, {f"process{k}_result{i}": r for k, each in enumerate(results) for i, r in enumerate(each)})


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


def _check(module: hilo.Module, entry: str, target: str, threads: int | None, args: list[np.ndarray],
           options: Options) -> None:  # fmt: skip
    from hilo.testing.check import check_program

    difference = check_program(module, args, entry=entry, target=target, threads=threads, options=options)
    if difference is not None:
        raise hilo.Error(f"native code and interpreter differ: {difference}")
    click.echo("native code agrees with the interpreter at every fusion boundary")
