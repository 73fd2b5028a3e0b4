"""`#stablehlo.replica_group_mesh_axes<...>`, which the IR keeps as text, as a value.

Imports its siblings, mlir_text and ir.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hilo.formats.bytecode.values import Struct
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.lexer import Source
from hilo.ir.op import Attrs


def parse_mesh_axes(text: str) -> Struct:
    """The mesh's name and its axes. Raises `Error` if the text is something else."""
    c = Cursor(Source(text, ""))
    return _struct(c, "replica_group_mesh_axes", {"mesh": c.symbol, "axes": lambda: _axes(c)})


def _struct(c: Cursor, kind: str, fields: dict[str, Callable[[], Any]]) -> Struct:
    """`#stablehlo.kind<field = value, ...>`; fields that are left out are None."""
    c.expect(f"#stablehlo.{kind}")
    c.expect("<")
    found: dict[str, Any] = dict.fromkeys(fields)

    def field() -> None:
        name = c.keyword("a field's name")
        if name not in fields:
            raise c.error(f"'{name}' is no field of {kind}")
        c.expect("=")
        found[name] = fields[name]()

    c.comma_list(">", field)
    return Struct(kind, Attrs(found))


def _axes(c: Cursor) -> tuple[Struct, ...]:
    fields = {"name": c.string, "sub_axis_info": lambda: _sub(c)}
    c.expect("[")
    return tuple(c.comma_list("]", lambda: _struct(c, "axis_ref", fields)))


def _sub(c: Cursor) -> Struct:
    """`(1)2`"""
    c.expect("(")
    before = c.integer()
    c.expect(")")
    return Struct("sub_axis_info", Attrs(pre_size=before, size=c.integer()))
