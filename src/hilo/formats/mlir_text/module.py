"""A whole file of MLIR text: the module, bare functions, aliases, the resource section. Imports its siblings and ir."""

from __future__ import annotations

from hilo.errors import Unsupported
from hilo.formats.mlir_text.attributes import raw_attribute
from hilo.formats.mlir_text.functions import parse_function, texts
from hilo.formats.mlir_text.lexer import Source, unquote
from hilo.formats.mlir_text.locations import parse_trailing_loc
from hilo.formats.mlir_text.parser import Parser
from hilo.formats.mlir_text.pretty import PRETTY, read_generic
from hilo.formats.mlir_text.resolve import check_calls
from hilo.formats.mlir_text.types import parse_function_type, parse_type
from hilo.gc_pause import gc_paused
from hilo.ir.module import Function, Module
from hilo.ir.op import NO_ATTRS, Attrs, Opaque

_MESH = "sdy.mesh"
_MODULE = ("module", "builtin.module", '"builtin.module"')


def parse_source(source: Source) -> Module:
    """The module that the source holds; functions without a module around them are one too."""
    p = Parser(source, PRETTY, read_generic)
    try:
        with gc_paused():
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
        elif token in _MODULE and module is None and not functions:
            module = _parse_module(p)
        elif token in _MODULE:
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


def _parse_module(p: Parser) -> Module:
    start = p.at
    is_generic = p.take()[0] == '"'
    name, attrs = "", {}
    if is_generic:
        p.expect("(")
        p.expect(")")
        if p.accept("<"):
            attrs |= texts(p)
            p.expect(">")
        p.expect("(")
    else:
        name = p.symbol() if p.tokens[p.at][:1] == "@" else ""
        attrs = texts(p) if p.accept("attributes") else {}
    functions: dict[str, Function] = {}
    p.expect("{")
    if is_generic and p.tokens[p.at][:1] == "^":
        p.block_header()
    while not p.accept("}"):
        if p.accept(_MESH):  # kept on the module, under its own keyword
            mesh = p.symbol()
            attrs[f"{_MESH} @{mesh}"] = _mesh(p)
            continue
        if p.tokens[p.at] in _MODULE:
            raise p.error("modules inside modules are not supported", kind=Unsupported)
        _function_into(p, functions)
    p.op = None
    if is_generic:
        p.expect(")")
        attrs |= texts(p) if p.tokens[p.at] == "{" else {}
        p.expect(":")
        parse_function_type(p)
        name = unquote(str(attrs.pop("sym_name", '""')))
    loc = parse_trailing_loc(p) or p.source.loc(start)
    return Module(functions, name=name, attrs=Attrs(attrs) if attrs else NO_ATTRS, loc=loc)


def _mesh(p: Parser) -> Opaque:
    """`= <["x"=2]> {attributes}` after the mesh's name, as text."""
    p.expect("=")
    text = p.balanced()
    if p.tokens[p.at] == "{":
        text = f"{text} {p.balanced()}"
    parse_trailing_loc(p)
    return Opaque(text)


def _function_into(p: Parser, functions: dict[str, Function]) -> None:
    start = p.at
    f = parse_function(p)
    if f.name in functions:
        raise p.error(f"function @{f.name} is defined twice", start)
    functions[f.name] = f


# -- aliases and resources ----------------------------------------------------------------------


def _find_aliases(p: Parser) -> None:
    """Note where alias definitions start (they may follow their uses), and read the resource section."""
    tokens = p.tokens
    for i in [i for i, token in enumerate(tokens) if token[:1] in ("#", "!", "{")]:
        token = tokens[i]
        if tokens[i + 1 : i + 2] == ["="] and token[0] != "{" and (token[1:2].isalnum() or token[1:2] in ("_", "$")):
            if token in p.aliases:
                raise p.error(f"alias {token} is defined twice", i)
            p.aliases[token] = i + 2 + (tokens[i + 2 : i + 4] == ["loc", "("]) * 2
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
