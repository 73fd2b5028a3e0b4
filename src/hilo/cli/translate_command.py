"""`hilo translate`: read a program, verify it and write it."""

from __future__ import annotations

import click

import hilo
from hilo.cli.common import write_text


@click.command("translate")
@click.argument("file", type=click.Path())
@click.option("--to", "form", type=click.Choice(["stablehlo", "hlo"]), default="stablehlo", show_default=True,
              help="StableHLO as MLIR text, or HLO text.")
@click.option("--locations", is_flag=True, help="Print source locations too.")
@click.option("--elide", type=click.IntRange(0), metavar="N", help="Leave out constants of more than N elements.")
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
def command(file: str, form: str, locations: bool, elide: int | None, output: str | None) -> None:
    """Read a program, verify it, and write it as text that other tools read.

    \b
    hilo translate model.mlir
    hilo translate model.mlir --elide 16 -o short.mlir
    hilo translate model.mlir --to hlo -o model.hlo
    """
    if form == "hlo":
        from hilo.formats.hlo_text import print_module
    else:
        from hilo.formats.mlir_text import print_module

    write_text(print_module(hilo.load(file), locations=locations, elide=elide), output)
