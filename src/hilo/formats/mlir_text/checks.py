"""The `check` dialect of StableHLO's own tests, read as custom calls of the same names. Imports its siblings and ir.

`check.expect_eq %a, %b : T, T` becomes `custom_call @check.expect_eq(%a, %b)`; an expected constant becomes an operand.
Attributes (tolerances) keep their text, under `check.`.
"""

from __future__ import annotations

from typing import Any

from hilo.formats.mlir_text.attributes import parse_dict, parse_elements
from hilo.formats.mlir_text.forms import FUNCTION, PAIRS, parse_signature
from hilo.formats.mlir_text.generic import parse_generic
from hilo.formats.mlir_text.parser import Parser, Syntax
from hilo.ir.op import Array, Opaque
from hilo.ir.types import Type


def parse_check(p: Parser, name: str) -> Syntax:
    """`%a, %b, max_ulp_difference = 3 {attrs} : T, T`, or `%a, dense<...> : T {attrs}`"""
    operands = p.operands()
    attrs: dict[str, Any] = {}
    types: tuple[Type, ...] | None = None
    while p.accept(","):
        if p.tokens[p.at].startswith("dense"):
            attrs["value"] = parse_elements(p)
            break
        key = p.keyword("an attribute")
        p.expect("=")
        attrs[key] = Opaque(p.take())
    attrs.update(parse_dict(p))
    if p.accept(":"):
        types, _ = parse_signature(p, FUNCTION if p.tokens[p.at] == "(" else PAIRS, len(operands))
        if types is not None and len(types) == 1:
            types *= len(operands)
    return _custom_call(p, name, Syntax(operands, attrs, types, ()))


def parse_generic_check(p: Parser, name: str) -> Syntax:
    """The same in the generic form."""
    return _custom_call(p, name, parse_generic(p, name))


def _custom_call(p: Parser, name: str, s: Syntax) -> Syntax:
    value = s.attrs.pop("value", None)
    if isinstance(value, Array):
        expected = s.operands[0].type if s.operands else value.type
        constant = Syntax([], {"value": value}, None, (expected,), kind="stablehlo.constant")
        s.operands = [*s.operands, p.build("stablehlo.constant", constant, p.here(), p.at)]
        s.operand_types = None
        name = name.removesuffix("_const")
    attrs: dict[str, Any] = {"call_target_name": name, "has_side_effect": True}
    for key, v in s.attrs.items():
        short = key.removeprefix(".")
        attrs[short if "." in short else f"check.{short}"] = v
    s.attrs, s.kind = attrs, "stablehlo.custom_call"
    return s
