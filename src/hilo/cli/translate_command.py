"""`hilo translate`: read a program, verify it and write it."""

from __future__ import annotations

import click

from hilo.cli.common import load, write_bytes, write_text
from hilo.errors import Error


@click.command("translate")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option("--to", "form", type=click.Choice(["text", "hlo", "hlo_serialized", "portable"]), default="text",
              show_default=True,
              help="StableHLO text, HLO (text, or XLA's message), or a portable artifact (MLIR bytecode).")  # fmt: skip
@click.option("--version", metavar="X.Y.Z", help="The StableHLO version of a portable artifact.  [default: the newest]")
@click.option("--locations", is_flag=True, help="Print source locations too (a portable artifact always has them).")
@click.option("--elide", type=click.IntRange(0), metavar="N", help="Leave out constants of more than N elements.")
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
def command(file: str, form: str, version: str | None, locations: bool, elide: int | None, output: str | None) -> None:
    """Read a program, verify it, and write it as StableHLO text, HLO or a portable artifact that other tools read.

    \b
    hilo translate model.mlir
    hilo translate model.mlir --elide 16 -o short.mlir
    hilo translate model.mlir --to hlo -o model.hlo
    hilo translate model.hlo.pb --to hlo
    hilo translate model.mlir --to portable --version 1.0.0 -o model.mlirbc
    hilo translate model.mlirbc
    """
    if form == "portable":
        if elide is not None:
            raise Error("--elide is for text: a portable artifact holds all of the program")
        _write_portable(file, version or "current", output)
        return
    if version is not None:
        raise Error("--version is for portable artifacts (--to portable)")
    if form == "hlo_serialized":
        from hilo.formats.hlo_text import module_message

        write_bytes(module_message(load(file), elide=elide), output, "XLA's message")
        return
    if form == "hlo":
        from hilo.formats.hlo_text import print_module
    else:
        from hilo.formats.mlir_text import print_module

    write_text(print_module(load(file), locations=locations, elide=elide), output)


def _write_portable(file: str, version: str, output: str | None) -> None:
    from hilo.formats.bytecode import target_version, write

    target_version(version)  # before the program is read
    write_bytes(write(load(file), version), output, "a portable artifact")
