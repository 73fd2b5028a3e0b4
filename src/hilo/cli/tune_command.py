"""`hilo tune`: search for better choices of a program's kernels on this machine, and keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

import hilo
from hilo.cli.common import Seconds, arguments, bind_option, bound, entry_option, function, load, sizes, threads_option

if TYPE_CHECKING:
    from rich.table import Table

    from hilo.tune import Report


@click.command("tune")
@click.argument("file", type=click.Path())
@click.argument("arrays", nargs=-1, type=click.Path())
@entry_option
@threads_option
@bind_option
@click.option("--seconds", type=Seconds(0), default=30.0, show_default=True, help="About how long to search.")
@click.option("--random", "seed", type=click.IntRange(0), default=0, show_default=True, metavar="SEED",
              help="Random arrays if no files are named.")  # fmt: skip
@click.option("--dim", type=click.IntRange(0), metavar="N", help="Sizes known only at run time are N.")
@click.option("--same-bits", is_flag=True, help="Only what never changes a bit of the results (docs/tuning.md).")
@click.option("--dry-run", is_flag=True, help="Show what there is to gain; keep nothing.")
@click.option("--most", type=click.IntRange(0), default=20, metavar="N", help="Kernels in the table.  [default: 20]")
def command(file: str, arrays: tuple[str, ...], entry: str, threads: int | None, bind: str, seconds: float, seed: int,
            dim: int | None, same_bits: bool, dry_run: bool, most: int) -> None:  # fmt: skip
    """Try other tiles, blocks, units ... in every kernel of a program, and keep what is faster on this machine.

    Kernels are measured where they are, in turns with the program as it is. Results are compared with those of the
    program as it is. What is found lies beside the cache and is used by later compilations of the same kernels, in any
    program (HILO_TUNED=0 leaves it aside); `hilo bench --explain` shows it.

    \b
    hilo tune model.mlir
    hilo tune model.mlir x.npy --seconds 300
    hilo tune model.mlir --bind 1-160           weights are constants
    hilo tune model.mlir --same-bits --dry-run
    """
    from rich.console import Console

    from hilo.backend.target import Target
    from hilo.options import Options
    from hilo.runtime.stores import tuned_of
    from hilo.tune import tune

    module = load(file, entry)
    args = arguments(function(module, entry), arrays, seed, lambda: sizes(module, entry, dim))
    constants, args = bound(bind, args)
    options = Options.from_env()
    if not options.opt or options.target != "host":
        raise hilo.Error("tuning measures what this machine runs: leave HILO_OPT and HILO_TARGET as they are")
    store = None if dry_run else tuned_of(options, Target.host().relaxed(options.fast_math))
    with _progress() as progress:
        report = tune(module, args, store, entry=entry, threads=threads, constants=constants, options=options,
                      seconds=seconds, same_bits=same_bits, progress=progress)  # fmt: skip
    console = Console()
    if not console.is_terminal:
        console = Console(width=140)
    console.print(as_table(report, most), markup=False, highlight=False)
    for line in dict.fromkeys(report.refused):
        click.echo(f"refused: {line}")
    click.echo(ending(report, dry_run))


def as_table(report: Report, most: int) -> Table:
    """The kernels that got faster, most gain first."""
    from rich.table import Table

    table = Table(title="gains")
    table.add_column("kernel", overflow="fold")
    for name in ("before, us", "after, us", "gain", "tried"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("values", overflow="fold")
    better = [k for k in report.kernels if k.values]
    for k in better[: most or None]:
        values = ", ".join(f"{name}={value}" for name, value in k.values.items())
        table.add_row(f"{k.name} {k.op}", f"{k.before * 1e6:.2f}", f"{k.after * 1e6:.2f}", f"{k.gain:.2f}x",
                      str(k.tried), values)  # fmt: skip
    table.add_section()
    gain = report.before / report.after if report.after else 1.0
    table.add_row(f"all {len(report.kernels)}", f"{report.before * 1e6:.2f}", f"{report.after * 1e6:.2f}",
                  f"{gain:.2f}x")  # fmt: skip
    return table


def ending(report: Report, dry_run: bool) -> str:
    """What was done, in a line."""
    better = sum(bool(k.values) for k in report.kernels)
    kept = "nothing is kept" if dry_run else "kept beside the cache" if better else "nothing to keep"
    more = "" if report.finished else "; there was more to try: give it more --seconds"
    return f"{report.variants} variants in {report.seconds:.1f} s; {better} kernels are faster, {kept}{more}"


@contextmanager
def _progress() -> Iterator[Callable[[float, str], None]]:
    """A bar on stderr, if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("compiling", total=1.0)

        def show(done: float, what: str) -> None:
            bar.update(task, completed=done, description=what)

        yield show
