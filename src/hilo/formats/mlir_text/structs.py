"""Enums and the fields of StableHLO's struct attributes. Imports the cursor and the schema."""

from __future__ import annotations

from typing import Any

from hilo.formats.mlir_text import schema
from hilo.formats.mlir_text.cursor import Cursor


def enum(c: Cursor, kind: str) -> str:
    """A value of the enum `kind`."""
    value = c.keyword(f"a value of the enum {kind}")
    if value not in schema.ENUMS[kind]:
        c.at -= 1
        raise c.expected(f"one of {', '.join(schema.ENUMS[kind])}")
    return value


def struct_fields(c: Cursor, fields: dict[str, Any]) -> dict[str, Any]:
    """`<name = value, ...>` in any order; a field may be left out if it has a default."""
    c.expect("<")
    found: dict[str, Any] = {}

    def field() -> None:
        start = c.at
        if c.tokens[start] == ">":  # after a comma
            return
        name = c.keyword("a field's name")
        if name not in fields or name in found:
            c.at = start
            raise c.expected(f"one of the fields {', '.join(k for k in fields if k not in found) or '(none left)'}")
        c.expect("=")
        if fields[name] == ():
            found[name] = c.integers()
        elif c.tokens[c.at] in ("true", "false"):
            found[name] = c.take() == "true"
        elif isinstance(fields[name], str):
            found[name] = c.keyword("a type")
        else:
            found[name] = c.integer()

    c.comma_list(">", field)
    missing = [k for k, default in fields.items() if k not in found and (default is None or isinstance(default, str))]
    if missing:
        c.at -= 1
        raise c.error(f"field '{missing[0]}' is missing")
    return {k: found.get(k, default) for k, default in fields.items()}
