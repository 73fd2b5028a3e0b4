"""`hilo compile`: compile a program and show what became of it."""

from __future__ import annotations

import click

import hilo
from hilo.cli.common import compile_options, entry_option, load, opt_option, target_option, write_bytes, write_text
from hilo.stages import NAMES


@click.command("compile")
@click.argument("file", type=click.Path())
@entry_option
@target_option
@opt_option
@click.option("--to", "phase", metavar="PHASE", help="Stop after this phase and print the IR (--to=list names them).")
@click.option(
    "--emit",
    type=click.Choice(NAMES),
    metavar="STAGE",
    help=f"Print the program at this stage: {', '.join(NAMES)}.",
)
@click.option("--elide", type=click.IntRange(0), metavar="N", help="Leave out constants of more than N elements.")
@click.option("-o", "--output", metavar="FILE", help="Write there instead of to stdout.")
def command(file: str, entry: str, target: str, opt: int | None, phase: str | None, emit: str | None,
            elide: int | None, output: str | None) -> None:  # fmt: skip
    """Compile a program, and show its IR after any phase, or a stage: HLO, StableHLO, a graph, LLVM IR, assembly, C, or
    the memory plan.

    \b
    hilo compile model.mlir                 compile, and print a summary
    hilo compile model.mlir --to=fuse       the IR after fusion
    hilo compile model.mlir --emit asm      assembly
    hilo compile model.mlir --target arm-neon --emit object -o model.o    for programs in C
    hilo compile model.mlir --emit dot      the optimized program as a graph, for dot -Tsvg
    hilo compile model.mlir --emit optimized_hlo_serialized -o model.hlo.pb
    hilo compile model.mlir --emit memory   what memory goes to, with a picture (memory.svg: as a file)
    hilo compile model.mlir -O0             quickly: no rewriting, no fusion, no vectors
    HILO_TIME=1 hilo compile model.mlir     where the time goes
    """
    from hilo import inspection, pipeline

    if phase is not None and emit is not None:
        raise hilo.Error("--to and --emit exclude each other: one shows a state on the way, the other what comes out")
    if elide is not None and emit is None:
        raise hilo.Error("--elide is for --emit")
    module = load(file, entry)
    if phase is not None:
        if phase == "list":
            write_text("\n".join(pipeline.PHASES), output)
        else:
            text = inspection.text_after(module, phase, entry=entry, target=target, options=compile_options(opt))
            write_text(text, output)
        return
    if emit is not None:
        shown = hilo.inspect(module, emit, entry=entry, target=target, elide=elide, options=compile_options(opt))
        write_text(shown, output) if isinstance(shown, str) else write_bytes(shown, output, emit)
        return
    f = hilo.compile(module, entry=entry, target=target, options=compile_options(opt))
    write_text(f"{f!r}\n{f.memory()}", output)
