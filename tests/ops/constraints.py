"""Support for the tests of constraints: valid programs of one op, changes that break a rule, what rules there are.

A base is a valid op in the generic form; a case changes one operand type, attribute, region or result of it.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType
from typing import Any

import pytest

from hilo.errors import Error, VerifyError
from hilo.formats.mlir_text import parse, schema
from hilo.ir.op import OpDef
from hilo.ops.result_rules import rules_of

DROP = object()  # as a change: leave the attribute or operand out


def region(parameters: str, returns: str, body: str = "") -> str:
    """A region in the generic form: `region("a: f32, b: f32", "s: f32", "%s = stablehlo.add %a, %b : tensor<f32>")`."""
    names = [p.split(":") for p in parameters.split(",") if p.strip()]
    out = [r.split(":") for r in returns.split(",") if r.strip()]
    args = ", ".join(f"%{n.strip()}: {_type(t.strip())}" for n, t in names)
    values, types = ", ".join(f"%{n.strip()}" for n, _ in out), ", ".join(_type(t.strip()) for _, t in out)
    return f'{{ ^b({args}): {body}\n "stablehlo.return"({values}) : ({types}) -> () }}'


def combine(dtype: str = "f32", op: str = "stablehlo.add") -> str:
    """The region that combines two scalars of an element type by an op."""
    return region(f"a: {dtype}, b: {dtype}", f"s: {dtype}", f"%s = {op} %a, %b : tensor<{dtype}>")


def _type(text: str) -> str:
    return text if text.startswith(("tensor", "tuple", "!", "(")) else f"tensor<{text}>"


def _types(texts: Any) -> str:
    return f"({', '.join(map(_type, texts))})"


def _value(name: str, v: Any) -> str:
    if isinstance(v, str):
        return v
    if isinstance(v, bool):
        return str(v).lower()
    if isinstance(v, list):
        how = schema.HOW.get(name, "")
        if how == "dense":
            shape = "x".join(map(str, (len(v), len(v[0])) if v and isinstance(v[0], list) else (len(v),)))
            return f"dense<{v if v else ''}> : tensor<{shape}xi64>"
        kind = "i1" if how == "bools" else "i64"
        return f"array<{kind}{': ' if v else ''}{', '.join(str(x).lower() for x in v)}>"
    return f"{v} : {'i32' if schema.HOW.get(name) == 'i32' else 'i64'}"


@dataclass
class Base:
    """A valid op and what breaks it: `cases` are pairs (rule, changes).

    A change's key is an attribute's name, the number of an operand, "result", "results", or a region's name; its value
    what stands there instead (`DROP`: nothing).
    """

    op: str
    operands: list[str]
    attrs: dict[str, Any] = field(default_factory=dict)
    result: Any = ""
    regions: dict[str, str] = field(default_factory=dict)
    cases: list[tuple[str, dict[Any, Any]]] = field(default_factory=list)

    @property
    def valid(self) -> list[tuple[str, dict[Any, Any]]]:
        """The base as it is, unless that is already a case."""
        return [("", {})] if all(changes for _, changes in self.cases) else []

    def text(self, changes: dict[Any, Any]) -> str:
        """The module with the op, changed."""
        operands = [t for t in (changes.get(i, t) for i, t in enumerate(self.operands)) if t is not DROP]
        operands += [changes[i] for i in range(len(self.operands), 20) if i in changes]
        attrs = {k: v for k, v in {**self.attrs, **changes}.items() if isinstance(k, str) and v is not DROP}
        regions = [r for r in (attrs.pop(name, text) for name, text in self.regions.items()) if r is not DROP]
        result = attrs.pop("result", self.result)
        results = attrs.pop("results", None) or ([result] if isinstance(result, str) else result)
        results = [r for r in results if r]
        args = [f"%v{i}" for i in range(len(operands))]
        params = ", ".join(f"{a}: {_type(t)}" for a, t in zip(args, operands, strict=True))
        bodies = f" ({', '.join(regions)})" if regions else ""
        types = f"{_types(operands)} -> {_types(results)}"
        return (
            f"func.func @main({params}) {{\n"
            f'  {"%r:" + str(len(results)) + " = " if results else ""}"{self.op}"({", ".join(args)}){bodies} '
            f"{self._attributes(attrs)} : {types}\n  func.return\n}}\n"
        )

    def _attributes(self, attrs: dict[str, Any]) -> str:
        holder, kind = schema.HOLDER.get(self.op.partition(".")[2], ("", ""))
        fields = schema.CONV_FIELDS if kind == "conv" else schema.SPREAD.get(kind, ())
        own = {k: v for k, v in attrs.items() if k in fields}
        parts = [f"{k} = {_value(k, v)}" for k, v in attrs.items() if k not in own]
        if holder:
            form = "raw " if kind == "conv" else ""
            parts.append(f"{holder} = #stablehlo.{kind}<{form}{', '.join(f'{k} = {v}' for k, v in own.items())}>")
        return f"{{{', '.join(parts)}}}"


def refusal(base: Base, changes: dict[Any, Any]) -> Error | None:
    """The error that parsing the changed base gives, if any."""
    try:
        parse(base.text(changes))
    except Error as e:
        return e
    return None


# -- which rules there are ----------------------------------------------------------------------

_RULE = re.compile(r"C\d+")


def rules_in(kind: OpDef) -> set[str]:
    """The numbers of the constraints that `kind.infer` checks, in its source, in what it calls, on its results."""
    found: set[str] = set()
    seen: set[Any] = set()
    pending: list[Any] = [kind.infer]
    while pending:
        f = pending.pop()
        if f not in seen:
            seen.add(f)
            rules, called = _read(f)
            found |= rules
            pending.extend(called)
    if kind.typed:  # what it declares is checked in infer
        return found
    results = rules_of(kind.full_name)
    return found | ({results.shape, results.element} - {""})


@cache
def _read(f: Callable[..., Any]) -> tuple[frozenset[str], tuple[Callable[..., Any], ...]]:
    """The rules named in a function's source, and the functions of hilo.ops that it names."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(f)))
    rules = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    inside = inspect.getclosurevars(f)
    names = {**inside.globals, **inside.nonlocals}
    named = [v.infer if isinstance(v, OpDef) else v for v in names.values()]
    called = [v for v in named if isinstance(v, FunctionType) and v.__module__.startswith("hilo.ops")]
    return frozenset(r for r in rules if _RULE.fullmatch(r)), tuple(called)


def each_case(bases: list[Base]) -> list[Any]:
    """pytest parameters (base, rule, changes): for each base itself (rule ""), then its cases."""
    return [
        pytest.param(b, rule, changes, id=f"{b.op}-{rule or 'valid'}-{i}")
        for b in bases
        for i, (rule, changes) in enumerate([*b.valid, *b.cases])
    ]


def check_case(base: Base, rule: str, changes: dict[Any, Any]) -> None:
    """Fail unless the changed base breaks `rule` and the error names it, the op and the place; "": it must be valid."""
    e = refusal(base, changes)
    if not rule:
        assert e is None, f"{e}\n{base.text(changes)}"
        return
    assert isinstance(e, VerifyError), f"{e}\n{base.text(changes)}"
    assert (e.rule, e.op) == (rule, base.op), e
    assert str(e).startswith("<text>:2:"), e
