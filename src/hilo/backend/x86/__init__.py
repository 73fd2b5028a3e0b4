"""hilo's own code generator for x86-64 with AVX-512: loop IR to object files, without LLVM. Imports loop, backend.

`compile` goes function by function:

  uses        how often each node is used, and what may wait for its use
  select      the walk over the nodes; kinds register with it: `control` (loops, branches), `calls`, `integers`,
              `division`, `floats`, `memory` for scalars; for vectors `vectors`, `bits`, `masks`, `selections`,
              `conversions`, `lanes` (by `shuffles`), `moves`, on `pieces`. They write instructions over virtual
              registers (`machine`) and describe `constants`
  allocate    the machine's registers for them; `spill`: what finds none
  function    frames, calls and machine code: `instructions` is the table, `encode` the bytes of one of them
  assembler   labels, jumps and constants of all functions, to an object file (`objects`)

`covered` says beforehand which functions that does. `text` assembles what backend/x86_*.py write as text; for those who
look, `disassemble` reads machine code back, and `syntax` says it in words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.loop.nodes import Func


def is_machine(target: Target) -> bool:
    """Whether a target is one that the generator makes code for."""
    return target.arch == "x86_64" and "linux" in target.triple and target.has_masks and target.vector_bytes == 64


def covers(func: Func, target: Target) -> bool:
    """Whether `compile` makes code of a function: it knows every node of it, and the machine has what it uses."""
    if not is_machine(target):
        return False
    from hilo.backend.x86.covered import covered

    return covered(func, target)


def compile(funcs: Sequence[Func], target: Target, public: Collection[str] | None = None) -> bytes:  # noqa: A001
    """An ELF object file with all `funcs`, each of which `covers`, which has been asked: it loads what knows them.

    A function is external unless it has the attribute `private`, or is not among `public`, if those are named.
    """
    from hilo.backend.x86.assembler import Assembler
    from hilo.backend.x86.function import compile_function

    asm = Assembler()
    defined = {f.name for f in funcs}
    for f in funcs:
        private = bool(f.attrs.get("private")) or (public is not None and f.name not in public)
        lines = None
        if "product" in f.attrs:
            from hilo.backend.x86_products import assembly

            lines = assembly(f, target, private)
        if lines is None:
            compile_function(f, target, asm, private, defined)
        else:
            from hilo.backend.x86.text import assemble

            assemble(asm, lines)
    return asm.finish()


def listing(funcs: Sequence[Func], target: Target) -> str:
    """What `compile` makes, in AT&T's syntax, with labels and constants."""
    from hilo.backend.x86.disassemble import disassembled
    from hilo.backend.x86.select import OF_VECTORS, load_kinds

    load_kinds(OF_VECTORS)
    return disassembled(compile(funcs, target))
