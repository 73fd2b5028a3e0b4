"""The page of an op, in Markdown, from its definition in the registry: `hilo ops NAME`, and docs/ops/."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterable
from typing import Any

from hilo.ir.module import Function, parameter
from hilo.ir.op import Array, OpDef
from hilo.ir.types import Results, TensorType, Type
from hilo.ops.weight import cost
from hilo.testing.pieces import lowerings

_SHOWN = 8  # examples on a page


def page(d: OpDef) -> str:
    """All there is to know of an op."""
    parts = [f"# {d.full_name}", inspect.cleandoc(d.doc), "## Signature", f"`{signature(d)}`"]
    if d.typed:
        parts.append("The result type is part of the op: the attribute `type`.")
    if d.effect:
        parts.append("It has an effect: it stays even if nothing uses its result.")
    attributes = attribute_lines(d)
    if attributes:
        parts += ["## Attributes", *_list(attributes)]
    found = constraints(d.infer)
    if found:
        parts += ["## Constraints", *_list(f"{rule}: {message}" for rule, message in found)]
    parts += ["## Native code", *_list(lowerings(d))]
    if d.sharding is not None:
        parts += ["## Sharding", sharding_text(d)]
    parts += ["## Cost", cost_text(d)]
    if d.examples:
        lines = [example_text(types, attrs, d) for types, attrs in d.examples]
        more = len(lines) - _SHOWN
        parts += [f"## Examples ({len(lines)})", *_list([*lines[:_SHOWN], *([f"and {more} more"] if more > 0 else [])])]
    return "\n\n".join(parts) + "\n"


def index(ops: Iterable[OpDef]) -> str:
    """The list of all ops, by dialect, each with its first sentence and a link to its page."""
    lines = ["# Ops", "", "Every op of the registry. Written by `python tools/op_pages.py`."]
    dialect = ""
    for d in sorted(ops, key=lambda d: (d.dialect, d.name)):
        if d.dialect != dialect:
            dialect = d.dialect
            lines += ["", f"## {dialect}", ""]
        first = inspect.cleandoc(d.doc).split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".")
        lines.append(f"- [{d.name}]({d.full_name}.md): {first}.")
    return "\n".join(lines) + "\n"


def signature(d: OpDef) -> str:
    """`dialect.name(operands, *, attributes)`, with the defaults of attributes."""
    operands, attributes = [], []
    for p in inspect.signature(d.infer).parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            operands.append("...")
        elif p.kind is p.KEYWORD_ONLY:
            default = d.attrs.get(p.name, p.default)
            attributes.append(p.name if default is p.empty else f"{p.name}={default!r}")
        elif p.kind is not p.VAR_KEYWORD:
            operands.append(p.name)
    return f"{d.full_name}({', '.join([*operands, *(['*'] if attributes else []), *attributes])})"


def attribute_lines(d: OpDef) -> list[str]:
    """Each attribute with its default."""
    names = [p.name for p in inspect.signature(d.infer).parameters.values() if p.kind is p.KEYWORD_ONLY]
    names += [n for n in d.attrs if n not in names]
    return [f"`{n}`, by default `{d.attrs[n]!r}`" if n in d.attrs else f"`{n}`" for n in names]


def constraints(infer: Callable[..., Any]) -> list[tuple[str, str]]:
    """(rule, message) of every check in `infer`, and in the functions of ops/ that it calls, in order of rules."""
    found: dict[tuple[str, str], None] = {}
    seen: set[Any] = set()
    stack = [infer]
    while stack:
        f = stack.pop()
        code = inspect.unwrap(f)
        if code in seen or not inspect.isfunction(code) or not code.__module__.startswith("hilo.ops"):
            continue
        seen.add(code)
        names = {**code.__globals__, **inspect.getclosurevars(code).nonlocals}
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(code)))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                texts = [a.value for a in node.args[1:3] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                if node.func.id == "require" and len(texts) == 2:
                    found[texts[0], texts[1]] = None
                elif callable(names.get(node.func.id)):
                    stack.append(names[node.func.id])
    def order(c: tuple[str, str]) -> tuple[Any, ...]:
        return c[0][:1], int(c[0][1:]) if c[0][1:].isdigit() else 0, c

    return sorted(((rule, message) for rule, message in found if rule), key=order)


def sharding_text(d: OpDef) -> str:
    """The rule itself if it is a string, else what it gives for the first example."""
    if isinstance(d.sharding, str):
        return f"`{d.sharding}`"
    if not d.examples:
        return "By the operands' types."
    types, attrs = d.examples[0]
    o = d(*(parameter(i, t) for i, t in enumerate(types)), **attrs)
    return f"By types and attributes; for the first example `{d.sharding(*types, out=o.type, **o.attrs.own())}`."


def cost_text(d: OpDef) -> str:
    """Where the cost comes from, and what it is for the first example."""
    what = "Its own estimate" if d.cost is not None else "One operation for each element of the results (the default)"
    if not d.examples:
        return what + "."
    types, attrs = d.examples[0]
    o = d(*(parameter(i, t) for i, t in enumerate(types)), **attrs)
    if any(not isinstance(t, TensorType) for t in types):
        return what + "."
    operations, moved = cost(o)
    return f"{what}; for the first example {operations:g} operations and {moved:g} bytes."


def example_text(types: Iterable[Type], attrs: dict[str, Any], d: OpDef) -> str:
    """Operand types, attributes and result type in a line."""
    types = list(types)
    o = d(*(parameter(i, t) for i, t in enumerate(types)), **attrs)
    given = ", ".join([*map(_type, types), *(f"{k}={_value(v)}" for k, v in attrs.items() if k != "type")])
    results = list(o.type) if isinstance(o.type, Results) else [o.type]
    return f"`({given}) -> {', '.join(map(_type, results)) or 'nothing'}`"


def _type(t: Type) -> str:
    return repr(t) if isinstance(t, TensorType) else str(t)


def _value(v: Any) -> str:
    if isinstance(v, Function):
        ops = [o.kind.name for o in v.ops if o.operands or o.kind.name == "constant"]
        return f"{{{', '.join(ops) or 'its operands'}}}"
    if isinstance(v, Array):
        return f"{v.scalar!r}" if v.is_splat else f"{v.data.tolist()!r}"
    if isinstance(v, tuple) and any(isinstance(x, Function) for x in v):
        return f"({', '.join(map(_value, v))})"
    return repr(v)


def _list(lines: Iterable[str]) -> list[str]:
    return ["\n".join(f"- {line}" for line in lines)]
