"""`hilo opt`: run passes over a program and print it."""

from __future__ import annotations

import click

from hilo.cli.common import entry_option, load, write_text


@click.command("opt")
@click.argument("file", type=click.Path())
@entry_option
@click.option("--passes", metavar="A,B,...", help="These phases only, in this order (--passes=list names them).")
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
def command(file: str, entry: str, passes: str | None, output: str | None) -> None:
    """Optimize a program on the level of tensors and print it as StableHLO.

    \b
    hilo opt model.mlir
    hilo opt model.mlir --passes=inline,simplify,cse
    """
    from hilo import inspection, pipeline

    if passes == "list":
        write_text("\n".join(pipeline.PASSES), output)
        return
    names = passes.split(",") if passes else None
    write_text(inspection.optimized_text(load(file, entry), entry=entry, passes=names), output)
