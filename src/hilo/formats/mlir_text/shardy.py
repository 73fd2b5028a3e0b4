"""The pretty forms of Shardy's ops. Imports its siblings and ir.

Attributes are kept as in the generic form, with `#sdy.name` in front, which the pretty forms leave out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from hilo.formats.mlir_text.attributes import parse_dict
from hilo.formats.mlir_text.lexer import quote
from hilo.formats.mlir_text.locations import parse_trailing_loc
from hilo.formats.mlir_text.parser import Parser, Syntax
from hilo.formats.mlir_text.scope import Captures
from hilo.formats.mlir_text.types import parse_function_type, parse_type, print_function_type, print_type
from hilo.ir.module import Function
from hilo.ir.op import Op, Opaque
from hilo.ir.types import Type, result_types

if TYPE_CHECKING:
    from hilo.formats.mlir_text.printer import Printer

# Attributes, and what stands around their short text in the generic form.
_AROUND: Final = {
    "sharding": ("#sdy.sharding", ""),
    "in_shardings": ("#sdy.sharding_per_value<", ">"),
    "out_shardings": ("#sdy.sharding_per_value<", ">"),
    "manual_axes": ("#sdy<manual_axes", ">"),
    "allowed_direction": ("#sdy<propagation_direction ", ">"),
}
_FRONT: Final = re.compile(r"#sdy(?:\.\w+|<\s*\w+)\s*")

#: What stands behind the operand: the name of the attribute, whether with `name=` in front, whether it may be absent.
MARKS: Final = {
    "sharding_constraint": ("sharding", False, False),
    "reshard": ("sharding", False, False),
    "data_flow_edge": ("sharding", True, True),
    "propagation_barrier": ("allowed_direction", True, False),
    "sharding_group": ("group_id", True, False),
}


def _parse_value(p: Parser, name: str) -> Any:
    if name == "group_id":
        return p.integer()
    if name == "allowed_direction":
        text = p.keyword("a direction")
    elif p.tokens[p.at] in ("<", "[", "{"):
        text = p.balanced()
    else:
        raise p.expected("a sharding")
    front, back = _AROUND[name]
    return Opaque(front + text + back)


def _short(name: str, value: Any) -> str:
    """The text of an attribute in a pretty form."""
    text = str(value)
    m = _FRONT.match(text)
    if name == "group_id" or m is None:
        return text
    inner = text[m.end() :].strip()
    if name.endswith("_shardings"):  # <[...]>
        return inner[1:-1].strip()
    return inner.removesuffix(">") if m[0].startswith("#sdy<") else inner


def parse_mark(p: Parser, name: str) -> Syntax:
    """`%x <@mesh, [{"a"}]> {attrs} : T`, or `%x group_id=3 : T` ..."""
    key, is_keyed, is_optional = MARKS[name.partition(".")[2]]
    operands = [p.operand()]
    attrs: dict[str, Any] = {}
    if not is_optional or p.tokens[p.at] == key:
        if is_keyed:
            p.expect(key)
            p.expect("=")
        attrs[key] = _parse_value(p, key)
    attrs.update(parse_dict(p))
    p.expect(":")
    t = parse_type(p)
    return Syntax(operands, attrs, (t,), () if key == "group_id" else (t,))


def print_mark(w: Printer, op: Op) -> str:
    key, is_keyed, _ = MARKS[op.name]
    value = op.attrs.get(key)
    shown = "" if value is None else f" {key}={_short(key, value)}" if is_keyed else f" {_short(key, value)}"
    return f"{w.value(op.operands[0])}{shown}{w.attr_dict(op, [key])} : {print_type(op.operands[0].type)}"


def parse_computation(p: Parser, name: str) -> Syntax:
    """`(%x) in_shardings=[...] ... (%a: T) { ... } {attrs} : (T) -> T`, behind `<"name">` if it has one."""
    attrs: dict[str, Any] = {}
    if p.accept("<"):
        attrs["name"] = p.string()
        p.expect(">")
    p.expect("(")
    operands = p.operands()
    p.expect(")")
    for key in ("in_shardings", "out_shardings", "manual_axes"):
        if p.accept(key):
            p.expect("=")
            attrs[key] = _parse_value(p, key)
    arguments: list[tuple[str, Type]] = []

    def argument() -> None:
        value = p.value_name()
        p.expect(":")
        arguments.append((value, parse_type(p)))
        parse_trailing_loc(p)

    p.expect("(")
    p.comma_list(")", argument)
    captures = Captures()
    body = p.parse_region(captures, arguments)
    attrs.update(parse_dict(p))
    p.expect(":")
    return Syntax(operands, attrs, *parse_function_type(p), [body], captures)


def print_computation(w: Printer, op: Op) -> str:
    body: Function = op.attrs["body"]
    keys = ("in_shardings", "out_shardings", "manual_axes")
    name = f"<{quote(op.attrs['name'])}>" if "name" in op.attrs else ""
    shown = "".join(f" {k}={_short(k, op.attrs[k])}" for k in keys if op.attrs.get(k) is not None)
    outer = w.values(op.operands)
    w.enter(body, ())
    arguments = ", ".join(f"{w.argument(x, 'arg')}: {print_type(x.type)}{w.loc(x.loc)}" for x in body.params)
    block = w.block(body, "sdy.return")
    w.leave()
    types = print_function_type(tuple(o.type for o in op.operands), result_types(op.type))
    return f"{name}({outer}){shown} ({arguments}) {block}{w.attr_dict(op, [*keys, 'name', 'body'])} : {types}"


