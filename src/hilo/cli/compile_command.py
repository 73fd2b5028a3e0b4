"""`hilo compile`: compile a program and show what became of it."""

from __future__ import annotations

import click

import hilo
from hilo.cli.common import compile_options, entry_option, opt_option, target_option, write_text


@click.command("compile")
@click.argument("file", type=click.Path())
@entry_option
@target_option
@opt_option
@click.option("--to", "phase", metavar="PHASE", help="Stop after this phase and print the IR (--to=list names them).")
@click.option(
    "--emit",
    type=click.Choice(["llvm", "asm", "c", "memory", "memory.svg"]),
    help="Print this form of the compiled program.",
)
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
def command(file: str, entry: str, target: str, opt: int | None, phase: str | None, emit: str | None,
            output: str | None) -> None:  # fmt: skip
    """Compile a program, and show its IR after any phase, its LLVM IR, assembly, C, or memory plan.

    \b
    hilo compile model.mlir                 compile, and print a summary
    hilo compile model.mlir --to=fuse       the IR after fusion
    hilo compile model.mlir --emit asm      assembly
    hilo compile model.mlir --emit memory   what memory goes to, with a picture (memory.svg: as a file)
    hilo compile model.mlir -O0             quickly: no rewriting, no fusion, no vectors
    HILO_TIME=1 hilo compile model.mlir     where the time goes
    """
    from hilo import pipeline

    if phase is not None and emit is not None:
        raise hilo.Error("--to and --emit exclude each other: one shows a state on the way, the other what comes out")
    module = hilo.load(file)
    if phase is not None:
        if phase == "list":
            write_text("\n".join(pipeline.PHASES), output)
        else:
            text = pipeline.text_after(module, phase, entry=entry, target=target, options=compile_options(opt))
            write_text(text, output)
        return
    f = hilo.compile(module, entry=entry, target=target, options=compile_options(opt))
    if emit is not None:
        write_text(f.text(emit), output)
    else:
        write_text(f"{f!r}\n{f.memory()}", output)
