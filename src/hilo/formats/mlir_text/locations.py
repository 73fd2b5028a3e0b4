"""Source locations in MLIR text: `loc(...)` to `Loc` and back. Imports the cursor, attributes and ir."""

from __future__ import annotations

from hilo.formats.mlir_text.attributes import raw_attribute
from hilo.formats.mlir_text.cursor import Cursor
from hilo.formats.mlir_text.lexer import quote
from hilo.ir.module import Loc

UNKNOWN = Loc("unknown")


def parse_trailing_loc(c: Cursor) -> Loc | None:
    """`loc(...)` if the cursor is at one."""
    return parse_loc(c) if c.tokens[c.at] == "loc" else None


def parse_loc(c: Cursor) -> Loc:
    """`loc(...)`"""
    c.expect("loc")
    c.expect("(")
    loc = _inner(c)
    c.expect(")")
    return loc


def _inner(c: Cursor) -> Loc:
    with c.nested():
        token = c.tokens[c.at]
        if token[:1] == "#":
            return _alias(c)
        if token[:1] == '"':
            return _name_or_file(c)
        start = c.at
        c.take()
        if token == "unknown":
            return UNKNOWN
        if token == "callsite":
            c.expect("(")
            callee = _inner(c)
            c.expect("at")
            caller = _inner(c)
            c.expect(")")
            return Loc("callsite", children=(callee, caller))
        if token == "fused":
            metadata = None
            if c.tokens[c.at] == "<":
                c.take()
                metadata = raw_attribute(c)
                c.expect(">")
            c.expect("[")
            return Loc("fused", children=tuple(c.comma_list("]", lambda: _inner(c))), extra=metadata)
        c.at = start
        if token == "loc":
            return parse_loc(c)
        raise c.expected("a location")


def _alias(c: Cursor) -> Loc:
    name = c.take()
    known = c.alias_values.get(("loc", name))
    if known is None:
        if name not in c.aliases:
            c.at -= 1
            raise c.error(f"location alias {name} is not defined")
        back, c.at = c.at, c.aliases[name]
        known = _inner(c)
        if not c.is_bounded(known, lambda x: x.children):  # no reason to refuse a program
            known = Loc("unknown")
        c.alias_values["loc", name] = known
        c.at = back
    return known


def _name_or_file(c: Cursor) -> Loc:
    """`"name"`, `"name"(loc)`, `"file":line:col` or `"file":line:col to [line]:col`."""
    name = c.string()
    if c.accept("("):
        child = _inner(c)
        c.expect(")")
        return Loc("name", name=name, children=(child,))
    if not c.accept(":"):
        return Loc("name", name=name)
    line = c.integer()
    c.expect(":")
    col = c.integer()
    if not c.accept("to"):
        return Loc("file", file=name, line=line, col=col)
    end_line = line if c.tokens[c.at] == ":" else c.integer()
    c.expect(":")
    return Loc("file", file=name, line=line, col=col, extra=(end_line, c.integer()))


def print_loc(loc: Loc) -> str:
    """`loc(...)`, written out in full."""
    return f"loc({_print_inner(loc, 0)})"


def _print_inner(loc: Loc, depth: int) -> str:
    if depth > 64:
        return "unknown"
    inner = [_print_inner(x, depth + 1) for x in loc.children]
    if loc.kind == "file":
        end = ""
        if isinstance(loc.extra, tuple):
            line, col = loc.extra
            end = f" to {line if line != loc.line else ''}:{col}"
        return f"{quote(loc.file)}:{loc.line}:{loc.col}{end}"
    if loc.kind == "name":
        return quote(loc.name) + (f"({inner[0]})" if inner else "")
    if loc.kind == "callsite":
        return f"callsite({inner[0]} at {inner[1]})"
    if loc.kind == "fused":
        return f"fused{f'<{loc.extra}>' if loc.extra else ''}[{', '.join(inner)}]"
    return "unknown"
