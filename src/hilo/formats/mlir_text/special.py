"""Ops without regions whose pretty form is their own: constants, comparisons, slices, dots, calls.

Imports its siblings and ir.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hilo.formats.mlir_text.attributes import parse_dict, parse_elements
from hilo.formats.mlir_text.dense import print_dense
from hilo.formats.mlir_text.forms import (
    ALGORITHM,
    ARROW,
    INTS,
    PAIRS,
    PRECISION,
    parse_signature,
    print_signature,
)  # fmt: skip
from hilo.formats.mlir_text.lexer import quote
from hilo.formats.mlir_text.parser import Parser, Syntax
from hilo.formats.mlir_text.structs import enum
from hilo.formats.mlir_text.types import parse_function_type, print_function_type, print_type
from hilo.ir.op import Op
from hilo.ir.types import Type, result_types

if TYPE_CHECKING:
    from hilo.formats.mlir_text.printer import Printer


def operand_types(op: Op) -> tuple[Type, ...]:
    return tuple(o.type for o in op.operands)


def function_type(op: Op) -> str:
    return print_function_type(operand_types(op), result_types(op.type))


def _function_types(p: Parser, operands: list[Op], attrs: dict[str, Any]) -> Syntax:
    """`{attrs} : (T) -> T`, the end of most forms."""
    attrs.update(parse_dict(p))
    p.expect(":")
    return Syntax(operands, attrs, *parse_function_type(p))


# constant {attrs} dense<...> : T


def parse_constant(p: Parser, name: str) -> Syntax:
    if p.accept("("):  # constant() {value = dense<...>} : () -> T, where the type is not the literal's
        p.expect(")")
        attrs = parse_dict(p) if not p.accept("<") else _properties(p)
        p.expect(":")
        return Syntax([], attrs, *parse_function_type(p))
    attrs = parse_dict(p)
    value = parse_elements(p)
    return Syntax([], {"value": value, **attrs}, None, (_declared(p, value.type),))


def _properties(p: Parser) -> dict[str, Any]:
    """`{...}> {...}`, after the `<`."""
    attrs = parse_dict(p)
    p.expect(">")
    return {**attrs, **parse_dict(p)}


def parse_arith_constant(p: Parser, name: str) -> Syntax:
    """`arith.constant dense<...> : T`, the same constant in another dialect; no numbers beside tensors."""
    s = parse_constant(p, name)
    s.kind = "stablehlo.constant"
    return s


def _declared(p: Parser, t: Type) -> Type:
    """The literal's type as written (an encoding is no part of the value)."""
    return p.types.get(p.tokens[p.at - 1], t)


def print_constant(w: Printer, op: Op) -> str:
    attrs = w.attr_dict(op, ["value"])
    return f"{attrs.lstrip()}{' ' if attrs else ''}{print_dense(op.attrs['value'], w.elide)} : {print_type(op.type)}"


# compare LT, %a, %b, SIGNED : (T, T) -> T


def parse_compare(p: Parser, name: str) -> Syntax:
    attrs = {"comparison_direction": enum(p, "comparison_direction")}
    p.expect(",")
    operands = p.operands()
    if p.accept(","):
        attrs["compare_type"] = enum(p, "comparison_type")
    return _function_types(p, operands, attrs)


def print_compare(w: Printer, op: Op) -> str:
    how = op.attrs.get("compare_type")
    kind = f", {how}" if how is not None and how != "NOTYPE" else ""
    attrs = w.attr_dict(op, ["comparison_direction", "compare_type"])
    return f"{op.attrs['comparison_direction']}, {w.values(op.operands)}{kind}{attrs} : {function_type(op)}"


# slice %x [0:2, 1:7:3] : (T) -> T


def parse_slice(p: Parser, name: str) -> Syntax:
    operands = p.operands()
    starts: list[int] = []
    limits: list[int] = []
    strides: list[int] = []

    def dim() -> None:
        starts.append(p.integer())
        p.expect(":")
        limits.append(p.integer())
        strides.append(p.integer() if p.accept(":") else 1)

    p.expect("[")
    p.comma_list("]", dim)
    attrs = {"start_indices": tuple(starts), "limit_indices": tuple(limits), "strides": tuple(strides)}
    return _function_types(p, operands, attrs)


def print_slice(w: Printer, op: Op) -> str:
    names = ("start_indices", "limit_indices", "strides")
    dims = (f"{a}:{b}:{c}" if c != 1 else f"{a}:{b}" for a, b, c in zip(*(op.attrs[n] for n in names), strict=True))
    return f"{w.value(op.operands[0])} [{', '.join(dims)}]{w.attr_dict(op, names)} : {function_type(op)}"


# dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [...] : (T, T) -> T

_DOT_DIMS = {
    "batching_dims": ("lhs_batching_dimensions", "rhs_batching_dimensions"),
    "contracting_dims": ("lhs_contracting_dimensions", "rhs_contracting_dimensions"),
}


def parse_dot_general(p: Parser, name: str) -> Syntax:
    operands = p.operands()
    attrs: dict[str, Any] = {a: () for pair in _DOT_DIMS.values() for a in pair}
    seen: set[str] = set()
    while p.accept(","):
        key = p.tokens[p.at]
        if key in seen or key not in (*_DOT_DIMS, "precision", "algorithm"):
            raise p.expected("batching_dims, contracting_dims, precision or algorithm")
        seen.add(key)
        p.at += 1
        p.expect("=")
        if key in _DOT_DIMS:
            lhs, rhs = _DOT_DIMS[key]
            attrs[lhs] = p.integers()
            p.expect("x")
            attrs[rhs] = p.integers()
        elif key == "precision":
            attrs["precision_config"] = PRECISION.parse(p)
        else:
            attrs["algorithm"] = ALGORITHM.parse(p)
    if "contracting_dims" not in seen:
        raise p.expected("', contracting_dims = [...] x [...]'")
    return _function_types(p, operands, attrs)


def print_dot_general(w: Printer, op: Op) -> str:
    a = op.attrs
    parts = [w.value(o) for o in op.operands]
    for key, (lhs, rhs) in _DOT_DIMS.items():
        if key == "contracting_dims" or a[lhs] or a[rhs]:
            parts.append(f"{key} = {INTS.print(a[lhs])} x {INTS.print(a[rhs])}")
    if a.get("precision_config") is not None:
        parts.append(f"precision = {PRECISION.print(a['precision_config'])}")
    if a.get("algorithm") is not None:
        parts.append(f"algorithm = {ALGORITHM.print(a['algorithm'])}")
    names = [n for pair in _DOT_DIMS.values() for n in pair]
    return f"{', '.join(parts)}{w.attr_dict(op, [*names, 'precision_config', 'algorithm'])} : {function_type(op)}"


# get_tuple_element %t[0] : (T) -> T


def parse_get_tuple_element(p: Parser, name: str) -> Syntax:
    operands = p.operands()
    p.expect("[")
    attrs: dict[str, Any] = {"index": p.integer()}
    p.expect("]")
    return _function_types(p, operands, attrs)


def print_get_tuple_element(w: Printer, op: Op) -> str:
    return f"{w.value(op.operands[0])}[{op.attrs['index']}]{w.attr_dict(op, ['index'])} : {function_type(op)}"


# optimization_barrier {attrs} %a, %b : T, T


def parse_optimization_barrier(p: Parser, name: str) -> Syntax:
    attrs = parse_dict(p)
    operands = p.operands()
    if not operands:
        p.expect("(")
        p.expect(")")
        return Syntax([], attrs, (), ())
    p.expect(":")
    return Syntax(operands, attrs, *parse_signature(p, PAIRS, len(operands)))


def print_optimization_barrier(w: Printer, op: Op) -> str | None:
    attrs = w.attr_dict(op, []).lstrip()
    attrs += " " if attrs else ""
    if not op.operands:
        return f"{attrs}()"
    if operand_types(op) != result_types(op.type):
        return None
    return f"{attrs}{w.values(op.operands)} : {print_signature(PAIRS, operand_types(op), result_types(op.type))}"


# custom_call @target(%a) {attrs} : (T) -> T


def parse_custom_call(p: Parser, name: str) -> Syntax:
    attrs: dict[str, Any] = {"call_target_name": p.symbol()}
    p.expect("(")
    operands = p.operands()
    p.expect(")")
    return _function_types(p, operands, attrs)


def print_custom_call(w: Printer, op: Op) -> str:
    attrs = w.attr_dict(op, ["call_target_name"])
    return f"{w.symbol(op.attrs['call_target_name'])}({w.values(op.operands)}){attrs} : {function_type(op)}"


# call @f(%a) {attrs} : (T) -> T


def parse_call(p: Parser, name: str) -> Syntax:
    attrs: dict[str, Any] = {"callee": p.symbol()}
    p.expect("(")
    operands = p.operands()
    p.expect(")")
    return _function_types(p, operands, attrs)


def print_call(w: Printer, op: Op) -> str:
    attrs = w.attr_dict(op, ["callee"])
    return f"{w.symbol(op.attrs['callee'])}({w.values(op.operands)}){attrs} : {function_type(op)}"


# composite "name" %a {decomposition = @f, ...} : (T) -> T


def parse_composite(p: Parser, name: str) -> Syntax:
    attrs: dict[str, Any] = {"name": p.string()}
    operands = p.operands()
    if p.tokens[p.at] == "(":
        raise p.error("composites with regions are written in the generic form here")
    return _function_types(p, operands, attrs)


def print_composite(w: Printer, op: Op) -> str | None:
    if op.attrs.get("composite_regions"):
        return None
    operands = f" {w.values(op.operands)}" if op.operands else ""
    return f"{quote(op.attrs['name'])}{operands}{w.attr_dict(op, ['name'])} : {function_type(op)}"


# chlo.top_k(%x, k = 5) : T -> (T, T)


def parse_top_k(p: Parser, name: str) -> Syntax:
    return _parse_largest(p, "is_stable")


def parse_topk(p: Parser, name: str) -> Syntax:
    """`mhlo.topk(%x, k = 5, largest = true) : T -> (T, T)`"""
    return _parse_largest(p, "largest")


def _parse_largest(p: Parser, flag: str) -> Syntax:
    p.expect("(")
    operands = p.operands()
    for token in (",", "k", "="):
        p.expect(token)
    attrs: dict[str, Any] = {"k": p.integer()}
    if p.accept(","):
        p.expect(flag)
        p.expect("=")
        if p.tokens[p.at] not in ("true", "false"):
            raise p.expected("true or false")
        attrs[flag] = p.take() == "true"
    p.expect(")")
    attrs.update(parse_dict(p))
    p.expect(":")
    return Syntax(operands, attrs, *parse_signature(p, ARROW, len(operands)))


def print_top_k(w: Printer, op: Op) -> str:
    return _print_largest(w, op, "is_stable")


def print_topk(w: Printer, op: Op) -> str:
    return _print_largest(w, op, "largest")


def _print_largest(w: Printer, op: Op, flag: str) -> str:
    types = print_signature(ARROW, operand_types(op), result_types(op.type))
    shown = f", {flag} = false" if op.attrs.get(flag) is False else ""
    attrs = w.attr_dict(op, ["k", flag])
    return f"({w.value(op.operands[0])}, k = {op.attrs['k']}{shown}){attrs} : {types}"
