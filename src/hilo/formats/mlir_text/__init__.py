"""StableHLO as MLIR text: `parse` and `print_module`. Imports ir and ops (through the registry); imported by formats.

What JAX, PyTorch and TensorFlow print is read, in the pretty and the generic form; printing gives the pretty form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hilo.formats.mlir_text.lexer import Source
from hilo.formats.mlir_text.module import parse_source
from hilo.ir.module import Module

if TYPE_CHECKING:
    from hilo.formats.mlir_text.printer import print_function, print_module


def parse(text: str | bytes, filename: str = "<text>") -> Module:
    """The module in `text` (UTF-8 if bytes). Raises `hilo.errors.Error` with file:line:col."""
    return parse_source(Source(text, filename))


def parse_pieces(text: str | bytes, filename: str = "<text>") -> list[Module]:
    """The modules of a text that `// -----` lines cut into pieces; places count from the start of the file."""
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    modules: list[Module] = []
    line = 1
    piece: list[str] = []
    for row in [*text.split("\n"), "// -----"]:
        if row.startswith("// -----"):
            body = "\n".join(piece)
            source = Source(body, filename, line)
            if source.tokens[0]:
                modules.append(parse_source(source))
            line += len(piece) + 1
            piece = []
        else:
            piece.append(row)
    return modules


def __getattr__(name: str) -> Any:
    if name not in ("print_function", "print_module"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hilo.formats.mlir_text import printer  # a program that is compiled is never printed

    return getattr(printer, name)


__all__ = ["parse", "parse_pieces", "print_function", "print_module"]
