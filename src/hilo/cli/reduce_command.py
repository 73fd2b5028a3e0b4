"""`hilo reduce`: make a program that fails small, and name the pass that makes it fail."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import click
import numpy as np

import hilo
from hilo.cli.common import Seconds, arguments, atomic_write, entry_option, function, load, sizes, write_text

COMMAND_SECONDS = 60.0  # for one run of the user's command


@click.command("reduce")
@click.argument("file", type=click.Path())
@click.argument("arrays", nargs=-1, type=click.Path())
@entry_option
@click.option("--random", "seed", type=click.IntRange(0), metavar="SEED", help="Random arrays instead of files.")
@click.option("--dim", type=click.IntRange(0), metavar="N", help="With --random: sizes known only at run time are N.")
@click.option("--way", "ways", multiple=True, metavar="NAME",
              help="Look only at this way to run it (may be repeated; --way=list names them).")  # fmt: skip
@click.option("--error", metavar="TEXT", help="Failing means: an error that holds TEXT.")
@click.option("--command", "shell", metavar="CMD",
              help="Failing means: this command ends with another status than 0; {} is the program.")  # fmt: skip
@click.option("--seconds", type=Seconds(0, min_open=True), default=60.0, show_default=True,
              help="Stop then, with the smallest so far.")  # fmt: skip
@click.option("-o", "--output", metavar="FILE", type=click.Path(),
              help="Write the program there, its arrays beside it.  [default: FILE.reduced.mlir]")  # fmt: skip
def command(file: str, arrays: tuple[str, ...], entry: str, seed: int | None, dim: int | None, ways: tuple[str, ...],
            error: str | None, shell: str | None, seconds: float, output: str | None) -> None:  # fmt: skip
    """Shrink a program that fails, for as long as it fails, and look for the pass that makes it fail.

    Failing means, unless an option says otherwise, that one of the ways to run it (native code on one thread and two,
    without fusion, for smaller machines, with a pass left out ...) gives other results than the interpreter.

    \b
    hilo reduce model.mlir --random 0
    hilo reduce model.mlir x.npy --way native -o small.mlir
    hilo reduce model.mlir --random 0 --error "does not fit"
    hilo reduce model.mlir --command 'python compare.py {}'
    """
    from hilo.testing.agree import WAYS
    from hilo.testing.bisect import bisect
    from hilo.testing.reduce import failing_way, fails_in, raises, reduce

    if ways == ("list",):
        write_text("\n".join(WAYS), None)
        return
    for way in ways:
        if way not in WAYS:
            raise hilo.Error(f"there is no way {way!r}; there are: {', '.join(WAYS)}")
    if error is not None and shell is not None:
        raise click.UsageError("give --error or --command, not both.")
    module = load(file, entry)
    f = function(module, entry)
    if shell is not None and not arrays and seed is None:
        seed = 0
    args = arguments(f, arrays, seed, lambda: sizes(module, entry, dim))
    if shell is not None:
        fails: Any = lambda options=None: _command_fails(shell, options)
        click.echo(f"looking for: {shell} fails")
    elif error is not None:
        fails = lambda options=None: raises(error, entry, options)
        click.echo(f"looking for: an error that holds {error!r}")
    else:
        way, found = failing_way(module, args, entry, ways or WAYS)
        if not way:
            raise hilo.Error("all ways to run the program agree: there is nothing to reduce")
        fails = lambda options=None: fails_in(way, found, entry, options)
        click.echo(f"looking for: {found}")
    small, kept = reduce(module, args, fails(), entry=entry, seconds=seconds)
    click.echo(f"{_ops(module)} ops before, {_ops(small)} after")
    _save(small, kept, output or f"{file}.reduced.mlir")
    culprit = bisect(small, kept, lambda options: fails(options)(small, kept), entry=entry)
    if culprit is not None:
        click.echo(str(culprit))


def _ops(module: hilo.Module) -> int:
    """Ops in a module's functions, regions not counted."""
    return sum(len(f.ops) for f in module.functions.values())


def _save(module: hilo.Module, arrays: list[np.ndarray], output: str) -> None:
    from hilo.formats.mlir_text import print_module

    write_text(print_module(module), output)
    if output == "-":
        return
    click.echo(f"wrote {output}")
    if arrays:
        path = f"{output}.npz"
        with atomic_write(path) as out:
            np.savez(out, **{f"arg{i}": a for i, a in enumerate(arrays)})  # type: ignore[arg-type]
        click.echo(f"wrote {path}")


def _command_fails(shell: str, options: Any) -> Any:
    """The predicate "the user's command fails"; options reach a hilo that it runs by environment variables."""
    try:
        words = shlex.split(shell)
    except ValueError as e:
        raise hilo.Error(f"--command: {e}") from None
    if not words:
        raise hilo.Error("--command: there is no command")
    if shutil.which(words[0]) is None:
        raise hilo.Error(f"--command: {words[0]}: there is no such command")
    words = words if any("{}" in w for w in words) else [*words, "{}"]
    environment = {**os.environ, **({"HILO_STOP": options.stop} if options is not None and options.stop else {})}

    def fails(module: hilo.Module, _: Any) -> bool:
        from hilo.formats.mlir_text import print_module

        with tempfile.TemporaryDirectory(prefix="hilo-reduce-") as folder:
            path = Path(folder) / "program.mlir"
            path.write_text(print_module(module), "utf-8")
            try:
                done = subprocess.run([w.replace("{}", str(path)) for w in words], env=environment, check=False,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, timeout=COMMAND_SECONDS)  # fmt: skip
            except subprocess.TimeoutExpired:
                return False
            except OSError as e:
                raise hilo.Error(f"--command: {words[0]}: {e.strerror or e}") from None
        return done.returncode != 0

    return fails
