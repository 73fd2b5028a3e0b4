"""What instructions carry beside their meaning: sharding, frontend attributes, configurations. Imports siblings, ir.

In the IR these are discardable attributes with the names that StableHLO exporters use, as MLIR text; back again.
"""

from __future__ import annotations

from typing import Any, Final

from hilo.errors import Error
from hilo.formats.hlo_text.model import Instruction
from hilo.formats.mlir_text.attr_printer import by_type
from hilo.formats.mlir_text.attributes import parse_plain_dict
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.lexer import Source, quote, unquote
from hilo.ir.op import Attrs, Opaque

SHARDING: Final = "mhlo.sharding"
FRONTEND: Final = "mhlo.frontend_attributes"
CONFIG: Final = "mhlo.backend_config"
FUSION: Final = "mhlo.fusion_kind"


def discardable(i: Instruction) -> dict[str, Any]:
    """The attributes that the op of an instruction gets beside its own."""
    attrs: dict[str, Any] = {}
    if (sharding := i.get("sharding")) is not None:
        attrs[SHARDING] = string(sharding)
    if frontend := i.get("frontend_attributes"):
        attrs[FRONTEND] = Opaque(by_type(frontend))
    if (config := i.get("backend_config")) and i.opcode != "custom-call":
        attrs[CONFIG] = string(config)
    return attrs


def carried(attrs: Attrs) -> dict[str, Any]:
    """The attributes of an instruction that stand for an op's discardable ones."""
    found: dict[str, Any] = {}
    if text := text_of(attrs, SHARDING):
        found["sharding"] = text
    if frontend := dictionary_of(attrs, FRONTEND):
        found["frontend_attributes"] = frontend
    if text := text_of(attrs, CONFIG):
        found["backend_config"] = text
    return found


def string(text: str) -> Opaque:
    """A string attribute of another dialect."""
    return Opaque(quote(text))


def text_of(attrs: Attrs, name: str) -> str:
    """The string of a discardable attribute; "" if there is none, or it is no string."""
    value = attrs.get(name)
    if isinstance(value, Opaque) and value[:1] == value[-1:] == '"' and len(value) > 1:
        return unquote(value)
    return ""


def dictionary_of(attrs: Attrs, name: str) -> Attrs | None:
    """A discardable dictionary of strings (and of such dictionaries); what else it holds is written as text."""
    value = attrs.get(name)
    return dictionary(value) if isinstance(value, Opaque) else None


def dictionary(text: str) -> Attrs | None:
    """The dictionary attribute in an MLIR text; None if it is none."""
    try:
        cursor = Cursor(Source(text, "<attribute>"))
        found = parse_plain_dict(cursor)
        return None if cursor.tokens[cursor.at] else found
    except Error:
        return None


