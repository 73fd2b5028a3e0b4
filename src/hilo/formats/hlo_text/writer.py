"""HLO as data to HLO text. Imports its siblings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hilo.formats.hlo_text import schema
from hilo.formats.hlo_text.attributes import PRINT, print_alias
from hilo.formats.hlo_text.literals import print_literal
from hilo.formats.hlo_text.locations import print_metadata
from hilo.formats.hlo_text.model import Computation, HloModule, Instruction
from hilo.formats.hlo_text.reader import attributes_of
from hilo.formats.hlo_text.shapes import print_shape
from hilo.ir.op import Array


def write(m: HloModule, *, locations: bool = False, elide: int | None = None) -> str:
    """The module as text; `locations` adds `metadata={...}`, `elide` leaves larger constants out."""
    attrs = "".join(f", {name}={_HEADER.get(name, str)(value)}" for name, value in m.attrs.items())
    parts = [f"HloModule {m.name}{attrs}\n"]
    parts.extend(_computation(c, c is m.entry, locations, elide) for c in m.computations.values())
    return "\n".join(parts)


def _computation(c: Computation, is_entry: bool, locations: bool, elide: int | None) -> str:
    lines = [f"{'ENTRY ' if is_entry else ''}{c.name} {{"]
    lines.extend(f"  {'ROOT ' if i is c.root else ''}{_instruction(i, locations, elide)}" for i in c.instructions)
    return "\n".join([*lines, "}\n"])


def _instruction(i: Instruction, locations: bool, elide: int | None) -> str:
    if i.opcode == "constant":
        inside = _literal(i.attrs["value"], elide)
    elif i.opcode == "parameter":
        inside = str(i.attrs["number"])
    else:
        inside = ", ".join(o.name for o in i.operands)
    return f"{i.name} = {print_shape(i.declared)} {i.opcode}({inside}){_attributes(i, locations)}"


def _literal(value: Array | list[Array] | str, elide: int | None) -> str:
    """An array; those of a tuple, as messages have them; or what stands in a text."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts = [_literal(a, elide) for a in value]
        return parts[0] if len(parts) == 1 else f"( {', '.join(parts)} )"
    return "{...}" if elide is not None and value.data.size > max(elide, 1) else print_literal(value)


def _attributes(i: Instruction, locations: bool) -> str:
    known = (*(attributes_of(i.opcode) or ()), *schema.COMMON)
    shown = []
    for name in known:
        value = i.attrs.get(name)
        if value is None or name == "metadata":
            continue
        kind = schema.ATTRIBUTES[name]
        if kind == "computation":
            text = value.name
        elif kind == "computations":
            text = PRINT[kind]([c.name for c in value])
        else:
            text = PRINT[kind](value)
        shown.append(f", {name}={text}")
    if locations and (text := print_metadata(i.attrs.get("metadata"))):
        shown.append(f", metadata={text}")
    return "".join(shown)


def _signature(value: Any) -> str:
    shapes, result = value
    return f"{{({', '.join(map(print_shape, shapes))})->{print_shape(result)}}}"


def _donor(value: Any) -> str:
    number, part = value
    return f"({number}, {PRINT['integers'](part)})"


_HEADER: Final[dict[str, Callable[[Any], str]]] = {
    "entry_computation_layout": _signature,
    "input_output_alias": lambda v: f"{{ {', '.join(print_alias(*a) for a in v)} }}",
    "buffer_donor": lambda v: f"{{ {', '.join(map(_donor, v))} }}",
    "frontend_attributes": PRINT["dictionary"],
}
