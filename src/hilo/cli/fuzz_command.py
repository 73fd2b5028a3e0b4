"""`hilo fuzz`: look for inputs that end in anything but a result or one clear error."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import hilo
from hilo.cli.common import Seconds, atomic_write

if TYPE_CHECKING:
    from hilo.testing.fuzz import Found, Tally


@click.command("fuzz")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--seconds", type=Seconds(0, min_open=True), default=60.0, show_default=True, help="Stop then.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="SEED",
              help="Other seeds give other inputs.")  # fmt: skip
@click.option("--formats", default="text,bytecode,hlo,message", show_default=True, metavar="A,B,...",
              help="What to make inputs of.")  # fmt: skip
@click.option("--corpus", type=click.Path(path_type=Path), metavar="DIR", help="Start from the programs there, too.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Worker processes.")
@click.option("--attacks", is_flag=True, help="Try the inputs made to hurt instead: deep, long, wide and huge ones.")
@click.option("--limit", type=Seconds(0, min_open=True), default=10.0, show_default=True,
              help="Seconds of the processor's time that an input may take.")  # fmt: skip
@click.option("--memory", type=click.IntRange(1), default=4, show_default=True, metavar="GIB",
              help="Memory that a worker may take, in GiB.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(file_okay=False, path_type=Path), default=Path("fuzz-findings"),
              show_default=True, metavar="DIR", help="The directory for inputs that fail.")  # fmt: skip
def command(files: tuple[Path, ...], seconds: float, seed: int, formats: str, corpus: Path | None, jobs: int,
            attacks: bool, limit: float, memory: int, output: Path) -> None:  # fmt: skip
    """Change valid programs; look for what ends in a crash, a hang, too much memory or an exception that is no error of
    hilo, or is printed as another program. Ends with status 1 if there is any. FILES: try these inputs instead.

    \b
    hilo fuzz --seconds 600 --jobs 2
    hilo fuzz --formats bytecode --corpus testdata
    hilo fuzz fuzz-findings/*
    hilo fuzz --attacks --limit 60
    """
    from hilo.testing.fuzz import fuzz

    if attacks:
        from hilo.testing.attacks import ATTACKS

        sys.exit(_try(ATTACKS, limit, memory << 30))
    if files:
        sys.exit(_try({str(path): path.read_bytes for path in files}, limit, memory << 30))
    forms = [f.strip() for f in formats.split(",") if f.strip()]
    if not forms:
        raise hilo.Error("--formats: there is none")

    def show(found: Found) -> None:
        path = _save(found, output)
        click.echo(f"{found.form} input {found.number} of seed {seed}: {found.signature}")
        click.echo(f"  {path} ({len(found.data)} bytes)")
        click.echo("".join(f"    {line}\n" for line in found.trace.splitlines()[-6:]), nl=False)

    with _progress(seconds) as tell:
        tally = fuzz(seconds, seed, forms, corpus=corpus, jobs=jobs, limit=limit, memory=memory << 30,
                     tell=lambda t, found: tell(t, found, show))  # fmt: skip
    _summary(tally, forms)
    sys.exit(1 if tally.found else 0)


def _try(inputs: Mapping[str, Callable[[], bytes]], limit: float, memory: int) -> int:
    from hilo.testing.fuzz import Effort, Worker

    worker, failed = Worker(limit, memory), 0
    for name, make in inputs.items():
        data, how, signature, trace = make(), "", "", ""
        for effort in (Effort(compile=True), Effort(run=True)):
            how, signature, trace = worker.examine(data, effort)
            if signature or how == "refused":
                break
        click.echo(f"{name}: {signature or how}")
        if signature:
            failed += 1
            click.echo("".join(f"    {line}\n" for line in trace.splitlines()), nl=False)
    worker.close()
    return 1 if failed else 0


def _save(found: Found, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    suffix = {"text": "mlir", "bytecode": "mlirbc", "hlo": "hlo", "message": "hlo.pb"}[found.form]
    path = folder / f"{found.form}-{found.number}.{suffix}"
    with atomic_write(str(path)) as out:
        out.write(found.data)
    return path


class _progress:
    """A line that says how far the run is, on a terminal; findings come above it."""

    def __init__(self, seconds: float) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
        self.bar = Progress(*columns, console=Console(stderr=True), transient=True)
        self.task = self.bar.add_task("starting", total=seconds)

    def __enter__(self) -> Any:
        self.bar.start()
        return self._tell

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def _tell(self, tally: Tally, found: Found | None, show: Any) -> None:
        if found is not None:
            self.bar.stop()
            show(found)
            self.bar.start()
        done = sum(tally.counts.values())
        elapsed = self.bar.tasks[self.task].elapsed or 0.0
        self.bar.update(self.task, completed=elapsed, description=f"{done} inputs, {len(tally.found)} findings")


def _summary(tally: Tally, forms: list[str]) -> None:
    for form in forms:
        ways = ", ".join(f"{how} {n}" for (f, how), n in sorted(tally.counts.items()) if f == form)
        click.echo(f"{form:<9}{tally.inputs(form):>8} inputs: {ways}")
    click.echo(f"{len(tally.found)} findings in {tally.seconds:.0f} s")
