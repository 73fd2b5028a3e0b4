"""Programs as MLIR bytecode: portable artifacts of StableHLO (VHLO, 0.9 to 1.20), and plain bytecode of its dialects.

`parse` reads both, `write` writes portable artifacts. Imports ir, and mlir_text for what the formats share.
"""

from __future__ import annotations

from hilo.formats.bytecode.container import open_file
from hilo.gc_pause import gc_paused
from hilo.ir.module import Module


def parse(data: bytes, filename: str = "<bytecode>") -> Module:
    """The module in a bytecode file. Raises `hilo.errors.Error` if it is damaged, or needs what is not known here."""
    from hilo.errors import Error
    from hilo.formats.bytecode.program import Program
    from hilo.formats.mlir_text.resolve import check_calls

    try:
        with gc_paused():
            module = Program(open_file(data, filename)).module()
    except RecursionError:
        raise Error("nested too deeply", loc=filename) from None
    check_calls(module)
    return module


__all__ = ["parse"]
