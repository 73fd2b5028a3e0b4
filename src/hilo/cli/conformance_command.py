"""`hilo conformance`: the public test data of StableHLO on interpreter and native code."""

from __future__ import annotations

import click

from hilo.cli.common import atomic_write
from hilo.errors import Error

RUNNERS = ["interpreter", "native", "native-constants", "native-threads"]


@click.command("conformance")
@click.argument("path", required=False, type=click.Path())
@click.option("--by-op", is_flag=True, help="Scores by op.")
@click.option("--runner", "runners", multiple=True, type=click.Choice(RUNNERS),
              help="Only this way of running (may be repeated).  [default: all]")  # fmt: skip
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N files.")
@click.option("--junit", "xml", type=click.Path(), metavar="FILE", help="Write the results there as JUnit XML.")
def command(path: str | None, by_op: bool, runners: tuple[str, ...], limit: int | None, xml: str | None) -> None:
    """Run the corpus in PATH (default: the shared corpus, HILO_SHARED) and compare with its expected results.

    Fails when a file gives a wrong result, and when there is no corpus.

    \b
    hilo conformance --by-op
    hilo conformance corpus.tar.xz --runner interpreter
    hilo conformance --junit results.xml
    """
    from rich.console import Console
    from rich.progress import Progress

    from hilo.testing import conformance
    from hilo.testing import runners as ways
    from hilo.testing.junit import junit

    chosen = {name: ways.RUNNERS[name] for name in (runners or ways.RUNNERS)}
    console = Console()
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("files", total=None)
        report = conformance.run(path, runners=chosen, limit=limit, on_file=lambda *_: progress.advance(task))
    click.echo(report.table(by_op=by_op))
    if xml is not None:
        with atomic_write(xml) as out:
            out.write(junit(report))
    if not report.ok:
        raise Error("some files fail")
