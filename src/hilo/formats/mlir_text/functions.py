"""Functions in MLIR text: `func.func @f(%a: T) -> T { ... }`, the same in the generic form, and declarations.

Imports its siblings and ir.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hilo.errors import Unsupported
from hilo.formats.mlir_text.attributes import raw_attribute
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.locations import parse_trailing_loc
from hilo.formats.mlir_text.parser import Parser, Syntax
from hilo.formats.mlir_text.scope import Scope
from hilo.formats.mlir_text.types import parse_function_type, parse_type, print_type
from hilo.ir.module import Function
from hilo.ir.op import NO_ATTRS, Attrs, Op, Opaque
from hilo.ir.types import Results, Type
from hilo.record import field, record

DECLARATION = "hilo.declaration"  # on functions without a body
VISIBILITIES = ("public", "private", "nested")


@record
class Header:
    """What stands around a function's body."""

    name: str = ""
    visibility: str = ""
    params: Sequence[Type] | None = None
    results: Sequence[Type] = ()
    attrs: dict[str, Any] = field(default_factory=dict)
    arg_attrs: list[Attrs] = field(default_factory=list)
    result_attrs: list[Attrs] = field(default_factory=list)


def parse_function(p: Parser) -> Function:
    """The function at the cursor, in either form."""
    p.op = None
    p.scope = Scope()
    start = p.at
    token = p.take()
    if token in ("func.func", "func"):
        return _pretty(p, start)
    if token == '"func.func"':
        return _generic(p, start)
    p.at = start
    if token.strip('"').split(".")[0] in ("ml_program", "memref", "sdy"):
        raise p.error(f"{token} at module level is not supported", kind=Unsupported)
    raise p.expected("a function (func.func)" if token else "the '}' that closes the module")


def texts(p: Cursor) -> dict[str, Any]:
    """An attribute dictionary of a module, function, argument or result: every value as its text."""
    attrs: dict[str, Any] = {}
    p.expect("{")

    def entry() -> None:
        name = p.string() if p.tokens[p.at][:1] == '"' else p.keyword("an attribute's name")
        if name in attrs:
            raise p.error(f"attribute '{name}' is given twice")
        attrs[name] = raw_attribute(p) if p.accept("=") else Opaque("unit")

    p.comma_list("}", entry)
    return attrs


def _optional_texts(p: Parser) -> Attrs:
    return Attrs(texts(p)) if p.tokens[p.at] == "{" else NO_ATTRS


# -- pretty form --------------------------------------------------------------------------------


def _pretty(p: Parser, start: int) -> Function:
    h = Header(visibility=p.take() if p.tokens[p.at] in VISIBILITIES else "")
    h.name = p.symbol()
    p.expect("(")
    has_names = p.tokens[p.at][:1] == "%"

    def argument() -> None:
        at = p.at
        value = p.value_name() if has_names else ""
        if has_names:
            p.expect(":")
        t = parse_type(p)
        h.arg_attrs.append(_optional_texts(p))
        p.add_argument(value, t, parse_trailing_loc(p) or p.source.loc(at), at)

    p.comma_list(")", argument)
    h.results = _results(p, h)
    if p.accept("attributes"):
        h.attrs = texts(p)
    if not p.accept("{"):
        return _finish(p, h, _declare(p, h, start), start)
    if p.tokens[p.at][:1] == "^":
        raise p.error("functions of several blocks are not supported", kind=Unsupported)
    if p.scope.own and not has_names:
        raise p.error("the parameters of a function with a body need names", start)
    return _finish(p, h, _body(p, h), start)


def _results(p: Parser, h: Header) -> list[Type]:
    """`-> T` or `-> (T {attrs}, ...)`, if present."""
    if not p.accept("->"):
        return []
    if not p.accept("("):
        h.result_attrs.append(NO_ATTRS)
        return [parse_type(p)]

    def result() -> Type:
        t = parse_type(p)
        h.result_attrs.append(_optional_texts(p))
        return t

    return p.comma_list(")", result)


def _body(p: Parser, h: Header) -> list[Op]:
    values = p.parse_body()
    at = p.at - 1
    p.op = "func.return"
    if len(values) != len(h.results):
        raise p.error(f"{len(values)} values are returned, but the function has {len(h.results)} results", at)
    for i, (v, t) in enumerate(zip(values, h.results, strict=True)):
        if v.type is not t:
            raise p.error(f"result {i} is of type {print_type(v.type)}, but {print_type(t)} is declared", at)
    return values


def _declare(p: Parser, h: Header, at: int) -> list[Op]:
    """A function without a body calls the host's function of its name."""
    h.attrs = {**h.attrs, DECLARATION: Opaque("unit")}
    attrs: dict[str, Any] = {"call_target_name": h.name, "has_side_effect": True}
    call = p.build("stablehlo.custom_call", Syntax(list(p.scope.own), attrs, None, h.results), p.source.loc(at), at)
    results = list(call.results())
    if isinstance(call.type, Results):
        p.scope.ops.extend(results)
    return results


def _finish(p: Parser, h: Header, values: list[Op], start: int) -> Function:
    p.op = None
    params = p.scope.own
    loc = parse_trailing_loc(p) or p.source.loc(start)
    return Function(h.name, params, [*params, *p.scope.ops], values, attrs=Attrs(h.attrs) if h.attrs else NO_ATTRS,
                    arg_attrs=h.arg_attrs, result_attrs=h.result_attrs, visibility=h.visibility, loc=loc)  # fmt: skip


# -- generic form -------------------------------------------------------------------------------


def _generic(p: Parser, start: int) -> Function:
    """`"func.func"() <{properties}> ({ ^bb0(%a: T): ... }) {attrs} : () -> ()`"""
    h = Header()
    p.expect("(")
    p.expect(")")
    if p.accept("<"):
        _properties(p, h)
        p.expect(">")
    p.expect("(")
    p.expect("{")
    values: list[Op] | None = None
    body_end = p.at
    if not p.accept("}"):
        if p.tokens[p.at][:1] == "^":
            p.block_header()
        values = p.parse_body()
        body_end = p.at - 1
    p.expect(")")
    if p.tokens[p.at] == "{":
        _properties(p, h)
    p.expect(":")
    parse_function_type(p)
    if not h.name or h.params is None:
        raise p.error("a function needs sym_name and function_type", start)
    if values is None:
        for t in h.params:
            p.add_argument("", t, None, start)
        values = _declare(p, h, start)
    _check_signature(p, h, values, body_end)
    return _finish(p, h, values, start)


def _properties(p: Parser, h: Header) -> None:
    p.expect("{")

    def entry() -> None:
        name = p.string() if p.tokens[p.at][:1] == '"' else p.keyword("an attribute's name")
        if not p.accept("="):
            h.attrs[name] = Opaque("unit")
        elif name == "function_type":
            h.params, h.results = parse_function_type(p)
        elif name == "sym_name":
            h.name = p.string()
        elif name == "sym_visibility":
            h.visibility = p.string()
            if h.visibility not in VISIBILITIES:
                raise p.error(f"no visibility: there are {', '.join(VISIBILITIES)}", p.at - 1)
        elif name in ("arg_attrs", "res_attrs"):
            p.expect("[")
            found = p.comma_list("]", lambda: Attrs(texts(p)))
            if name == "arg_attrs":
                h.arg_attrs = found
            else:
                h.result_attrs = found
        else:
            h.attrs[name] = raw_attribute(p)

    p.comma_list("}", entry)


def _check_signature(p: Parser, h: Header, values: list[Op], at: int) -> None:
    """Parameters, results and their attributes against the function type, which is written apart from them here."""
    p.op = "func.func"
    assert h.params is not None
    for what, found, declared in (("parameters", p.scope.own, h.params), ("results", values, h.results)):
        if tuple(o.type for o in found) != tuple(declared):
            raise p.error(f"the {what} do not have the types that function_type declares", at)
    for what, attrs, declared in (("arg_attrs", h.arg_attrs, h.params), ("res_attrs", h.result_attrs, h.results)):
        if attrs and len(attrs) != len(declared):
            raise p.error(f"{what} has {len(attrs)} entries for {len(declared)} types", at)
    h.arg_attrs = h.arg_attrs or [NO_ATTRS] * len(h.params)
    h.result_attrs = h.result_attrs or [NO_ATTRS] * len(h.results)
