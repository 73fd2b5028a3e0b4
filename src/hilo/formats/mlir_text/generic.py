"""The generic form: `"dialect.op"(%a) <{props}> ({regions}) {attrs} : (T) -> T`. Imports its siblings and ir."""

from __future__ import annotations

from typing import Any

from hilo.formats.mlir_text.attributes import parse_dict
from hilo.formats.mlir_text.parser import Parser, Region, Syntax
from hilo.formats.mlir_text.scope import Captures
from hilo.formats.mlir_text.types import parse_function_type
from hilo.ir.op import Op
from hilo.ir.types import Type


def parse_generic(p: Parser, name: str) -> Syntax:
    """The rest of an op in generic form, after its name."""
    p.expect("(")
    operands = p.operands()
    p.expect(")")
    attrs: dict[str, Any] = {}
    if p.tokens[p.at] == "[":
        raise p.error("successor blocks are not supported")
    if p.accept("<"):
        attrs = parse_dict(p)
        p.expect(">")
    captures, regions = Captures(), []
    if p.accept("("):
        regions = p.comma_list(")", lambda: p.parse_region(captures))
    if p.tokens[p.at] == "{":
        more = parse_dict(p)
        clash = next((k for k in more if k in attrs), None)
        if clash:
            raise p.error(f"attribute '{clash}' is given twice")
        attrs.update(more)
    p.expect(":")
    operand_types, result_types = parse_function_type(p)
    for alias in (".operand_segment_sizes", ".result_segment_sizes", "operandSegmentSizes", "resultSegmentSizes"):
        sizes = attrs.pop(alias, None)
        if sizes is not None and "perand" in alias and sum(sizes) != len(operands):
            raise p.error(f"operand segment sizes {sizes} for {len(operands)} operands")
    if name == "stablehlo.async_start" and _uses_operands(operands, operand_types, regions, captures):
        operands, operand_types = [], ()
    return Syntax(operands, attrs, operand_types, result_types, regions, captures)


def _uses_operands(operands: list[Op], types: tuple[Type, ...], regions: list[Region], captures: Captures) -> bool:
    """Whether a body takes no arguments, but uses just the operands: so the specification writes async_start."""
    return (
        len(regions) == 1 and not regions[0].scope.own and tuple(o.type for o in operands) == types
        and set(operands) == set(captures.positions)
    )  # fmt: skip
