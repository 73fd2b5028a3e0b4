"""Modules and functions in MLIR text: `module`, `func.func`, aliases, the file's resources. Imports its siblings and ir."""

from __future__ import annotations

import re
from typing import Any

from hilo.errors import Unsupported
from hilo.formats.mlir_text.attributes import raw_attribute
from hilo.formats.mlir_text.lexer import Source
from hilo.formats.mlir_text.locations import parse_trailing_loc
from hilo.formats.mlir_text.parser import Parser, Syntax, function_of
from hilo.formats.mlir_text.pretty import PRETTY, read_generic
from hilo.formats.mlir_text.resolve import check_calls
from hilo.formats.mlir_text.scope import Scope
from hilo.formats.mlir_text.types import parse_type
from hilo.ir.module import Function, Module
from hilo.ir.op import NO_ATTRS, Attrs, Opaque
from hilo.ir.types import Type

_ALIAS = re.compile(r"[#!][\w$]")
DECLARATION = "hilo.declaration"  # on functions without a body


def parse_source(source: Source) -> Module:
    """The module that the source holds; functions without a module around them are one too."""
    p = Parser(source, PRETTY, read_generic)
    try:
        return _parse_file(p)
    except RecursionError:
        raise p.error("nested too deeply") from None


def _parse_file(p: Parser) -> Module:
    _find_aliases(p)
    functions: dict[str, Function] = {}
    module: Module | None = None
    while token := p.tokens[p.at]:
        if token[:1] in "#!" and p.tokens[p.at + 1] == "=":
            _skip_alias(p)
        elif token == "{-#":
            _skip_resources(p)
        elif token in ("module", "builtin.module") and module is None and not functions:
            module = _parse_module(p)
        elif token in ("module", "builtin.module"):
            raise p.error("a second module in the text; one module a file (split at the // ----- lines)")
        elif module is not None:
            raise p.expected("the end of the text")
        else:
            _function_into(p, functions)
    if module is None:
        if not functions:
            raise p.expected("a module or a function")
        module = Module(functions, loc=p.source.loc(0))
    check_calls(module)
    return module


# -- aliases and resources ----------------------------------------------------------------------


def _find_aliases(p: Parser) -> None:
    """Note where alias definitions start (they may follow their uses), and read the resource section."""
    tokens = p.tokens
    for i, token in enumerate(tokens):
        if token[:1] in ("#", "!") and tokens[i + 1] == "=" and _ALIAS.match(token):
            if token in p.aliases:
                raise p.error(f"alias {token} is defined twice", i)
            p.aliases[token] = i + 2 + (tokens[i + 2] == "loc" and tokens[i + 3] == "(") * 2
        elif token == "{-#":
            p.at = i
            _parse_resources(p)
            p.at = 0


def _skip_alias(p: Parser) -> None:
    p.at += 2
    if p.tokens[p.at - 2][0] == "!":
        parse_type(p)
    elif p.tokens[p.at] == "loc":
        parse_trailing_loc(p)
    else:
        raw_attribute(p)


def _parse_resources(p: Parser) -> None:
    """`{-# dialect_resources: { builtin: { name: "0x..." } } #-}`"""
    p.take()

    def section() -> None:
        is_dialect = p.keyword("a section of resources") == "dialect_resources"
        p.expect(":")
        if not is_dialect:
            p.balanced()
            return
        p.expect("{")
        p.comma_list("}", group)

    def group() -> None:
        p.keyword("a dialect")
        p.expect(":")
        p.expect("{")
        p.comma_list("}", blob)

    def blob() -> None:
        name = p.string() if p.tokens[p.at][:1] == '"' else p.keyword("a resource's name")
        p.expect(":")
        start = p.at
        try:
            data = bytes.fromhex(p.string().removeprefix("0x"))
        except ValueError:
            raise p.error(f"resource {name} is no hex string", start) from None
        p.resources[name] = data[4:]  # the first four bytes are the alignment

    p.comma_list("#-}", section)


def _skip_resources(p: Parser) -> None:
    while p.tokens[p.at] and not p.accept("#-}"):
        p.at += 1


# -- modules and functions ----------------------------------------------------------------------


def _parse_module(p: Parser) -> Module:
    start = p.at
    p.take()
    name = p.symbol() if p.tokens[p.at][:1] == "@" else ""
    attrs = Attrs(_texts(p)) if p.accept("attributes") else NO_ATTRS
    functions: dict[str, Function] = {}
    p.expect("{")
    while not p.accept("}"):
        if p.tokens[p.at] in ("module", "builtin.module"):
            raise p.error("modules inside modules are not supported", kind=Unsupported)
        _function_into(p, functions)
    loc = parse_trailing_loc(p) or p.source.loc(start)
    return Module(functions, name=name, attrs=attrs, loc=loc)


def _texts(p: Parser) -> dict[str, Any]:
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


def _function_into(p: Parser, functions: dict[str, Function]) -> None:
    start = p.at
    token = p.tokens[start]
    if token not in ("func.func", "func"):
        p.op = None
        if "." in token and token.split(".")[0] in ("sdy", "ml_program", "memref"):
            raise p.error(f"'{token}' at module level is not supported", kind=Unsupported)
        raise p.expected("a function (func.func)" if token else "the '}' that closes the module")
    f = _parse_function(p)
    if f.name in functions:
        raise p.error(f"function @{f.name} is defined twice", start)
    functions[f.name] = f


def _parse_function(p: Parser) -> Function:
    start = p.at
    p.take()
    p.op = None
    visibility = p.take() if p.tokens[p.at] in ("public", "private", "nested") else ""
    name = p.symbol()
    p.scope = Scope()
    p.expect("(")
    has_names = p.tokens[p.at][:1] == "%"
    arg_attrs: list[Attrs] = []
    types: list[Type] = []

    def argument() -> None:
        at = p.at
        value = ""
        if has_names:
            value = p.value_name()
            p.expect(":")
        t = parse_type(p)
        arg_attrs.append(Attrs(_texts(p)) if p.tokens[p.at] == "{" else NO_ATTRS)
        p.add_argument(value, t, parse_trailing_loc(p) or p.source.loc(at), at)
        types.append(t)

    p.comma_list(")", argument)
    result_types, result_attrs = _results(p)
    attrs = Attrs(_texts(p)) if p.accept("attributes") else NO_ATTRS
    if p.accept("{"):
        if p.tokens[p.at][:1] == "^":
            raise p.error("functions of several blocks are not supported", kind=Unsupported)
        if not has_names and types:
            raise p.error("the parameters of a function with a body need names", start)
        values = p.parse_body()
        _check_results(p, values, result_types)
    else:
        values = _declare(p, name, result_types, start)
        attrs = attrs.replace(**{DECLARATION: Opaque("unit")})
    loc = parse_trailing_loc(p) or p.source.loc(start)
    return function_of(p.scope, name, values, attrs=attrs, arg_attrs=arg_attrs, result_attrs=result_attrs,
                       visibility=visibility, loc=loc)  # fmt: skip


def _results(p: Parser) -> tuple[list[Type], list[Attrs]]:
    """`-> T` or `-> (T {attrs}, ...)`, if present."""
    types: list[Type] = []
    attrs: list[Attrs] = []
    if not p.accept("->"):
        return types, attrs
    if not p.accept("("):
        return [parse_type(p)], [NO_ATTRS]

    def result() -> None:
        types.append(parse_type(p))
        attrs.append(Attrs(_texts(p)) if p.tokens[p.at] == "{" else NO_ATTRS)

    p.comma_list(")", result)
    return types, attrs


def _check_results(p: Parser, values: list[Any], types: list[Type]) -> None:
    p.op = "func.return"
    at = p.at - 1
    if len(values) != len(types):
        raise p.error(f"{len(values)} values are returned, but the function has {len(types)} results", at)
    for i, (v, t) in enumerate(zip(values, types, strict=True)):
        if v.type is not t:
            raise p.error(f"result {i} is of type {v.type!r}, but the function declares {t!r}", at)


def _declare(p: Parser, name: str, types: list[Type], at: int) -> list[Any]:
    """A function without a body calls the host function of its name."""
    attrs: dict[str, Any] = {"call_target_name": name, "has_side_effect": True}
    call = p.build("stablehlo.custom_call", Syntax(list(p.scope.own), attrs, None, types), p.source.loc(at), at)
    results = list(call.results())
    if len(types) != 1:
        p.scope.ops.extend(results)
    return results


