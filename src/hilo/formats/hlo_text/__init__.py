"""HLO, as XLA dumps it before and after optimization, as text and as messages. Imports ir, ops, mlir_text.

Text <-> HLO as data (`model`): reader.py, writer.py. Messages <-> HLO as data: proto_reader.py, proto.py. HLO as data
<-> hilo's module: lower.py, emit.py.
"""

from __future__ import annotations

from hilo.formats.hlo_text.emit import emit
from hilo.formats.hlo_text.lexer import HloSource
from hilo.formats.hlo_text.lower import lower
from hilo.formats.hlo_text.reader import read
from hilo.formats.hlo_text.writer import write
from hilo.gc_pause import gc_paused
from hilo.ir.module import Module


def parse(text: str | bytes, filename: str = "<text>") -> Module:
    """The module in `text` (UTF-8 if bytes). Raises `hilo.errors.Error` with file:line:col."""
    with gc_paused():
        return lower(read(HloSource(text, filename)))


def parse_message(data: bytes, filename: str = "<bytes>") -> Module:
    """The module in an HloModuleProto, or in a message around one. Raises `hilo.errors.Error` that names the place."""
    from hilo.formats.hlo_text.proto_reader import read as read_message

    with gc_paused():
        return lower(read_message(data, filename))


def module_message(module: Module, *, elide: int | None = None) -> bytes:
    """The module as an HloModuleProto, which XLA and `parse_message` read, without constants of more than `elide`
    elements. Raises `Unsupported` as `print_module` does."""
    from hilo.formats.hlo_text.proto import module_proto

    return module_proto(emit(module), elide=elide)


def print_module(module: Module, *, locations: bool = False, elide: int | None = None) -> str:
    """The module as HLO text, which XLA's parser reads.

    `locations` adds `metadata={...}`; `elide` replaces constants of more than so many elements by `{...}`.
    Raises `Unsupported` for what HLO has no form for (e.g. sizes of dimensions that are computed).
    """
    return write(emit(module), locations=locations, elide=elide)


__all__ = ["module_message", "parse", "parse_message", "print_module"]
