"""Compiling a pattern and a template to one plain Python function. Imports only ir.

Compiled rules are 3-4 times faster than matching a pattern piece by piece, and no longer to write.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, Final

from hilo.ir.op import Op, OpDef
from hilo.rewrite.pattern import COMMUTATIVE, CONSTANT, Const, Literal, Node, Pattern, Splat, Var

CO_VARARGS: Final = 0x04  # of code that has `*args` (`inspect.CO_VARARGS`)
Match = Callable[[Op, dict[Op, int]], Op | None]


def readings(node: Node) -> list[Any]:
    """`node` with the operands of commutative ops in either order, wherever that makes a difference."""
    if not isinstance(node, Pattern) or not node.operands:
        return [node]
    orders = [node.operands]
    if node.symbol.full_name in COMMUTATIVE and not all(isinstance(o, Var) for o in node.operands):
        orders.append(node.operands[::-1])
    found = []
    for order in orders:
        for operands in product(*map(readings, order)):
            new = node._copy()
            new.operands = operands
            found.append(new)
    return found


class Compiler:
    """Writes the source of one rule. `self.bound` maps names to expressions."""

    def __init__(self, pattern: Pattern, template: Any) -> None:
        self.lines: list[str] = []
        self.env: dict[str, Any] = {}
        self.bound: dict[str, str] = {}
        self.used = 0
        self.guards: list[Callable[..., bool]] = []
        self.op(pattern, "op", top=True)
        self.bound.setdefault("op", "op")
        self.bound.setdefault("uses", "uses")
        for guard in self.guards:
            self.fail_unless(self.call(guard))
        if isinstance(template, Var):
            self.lines.append(f"return {self.bound[template.name]}")
        elif isinstance(template, Const):
            self.lines.append(f"return {self.value(template.build)}(op.type)")
        else:
            self.lines.append(f"return {self.call(template)}")

    def function(self) -> Match:
        source = "def rule(op, uses):\n    " + "\n    ".join(self.lines)
        exec(compile(source, "<rule>", "exec"), self.env)
        return self.env["rule"]

    def value(self, value: Any) -> str:
        """A name for a Python value in the compiled function."""
        name = f"v{len(self.env)}"
        self.env[name] = value
        return name

    def call(self, function: Callable[..., Any]) -> str:
        return f"{self.value(function)}({', '.join([self.bound[n] for n in parameters(function)])})"

    def fail_unless(self, condition: str) -> None:
        self.lines.append(f"if not ({condition}): return None")

    def bind(self, name: str, expression: str, *, attribute: bool = False) -> None:
        if name not in self.bound:
            self.bound[name] = expression
        else:
            self.fail_unless(f"{expression} {'==' if attribute else 'is'} {self.bound[name]}")

    def op(self, p: Pattern, name: str, *, top: bool = False) -> None:
        """Match pattern `p` against the op in the variable `name`: cheap questions first."""
        if not top:
            self.fail_unless(f"{name}.kind is {self.value(p.symbol.kind)}")
        if p.single_use:
            self.fail_unless(f"uses.get({name}, 0) <= 1")
        for key, want in p.attrs.items():
            found = f"{name}.attrs._d.get({key!r})"
            if isinstance(want, Var):
                self.bind(want.name, found, attribute=True)
            else:
                self.fail_unless(f"{found} == {self.value(want)}")
        if p.name:
            self.bind(p.name, name)
        if p.operands is not None:
            self.operands(p.operands, name, p.symbol.kind)
        self.guards += p.guards

    def operands(self, patterns: tuple[Node, ...], of: str, kind: OpDef) -> None:
        names = []
        for _ in patterns:
            self.used += 1
            names.append(f"o{self.used}")
        if _takes_any_number(kind):
            self.fail_unless(f"len({of}.operands) == {len(patterns)}")
        self.lines.append(f"({''.join(f'{n}, ' for n in names)}) = {of}.operands")
        for q, name in sorted(zip(patterns, names), key=lambda pair: isinstance(pair[0], Var)):
            if isinstance(q, Var):
                if q.kinds:
                    self.fail_unless(f"{name}.dtype.kind in {q.kinds!r}")
                self.bind(q.name, name)
            elif isinstance(q, Const | Literal):
                self.fail_unless(f"{name}.kind is {self.value(CONSTANT.kind)}")
                if isinstance(q, Const):
                    self.fail_unless(f"{self.value(q.matches)}({name})")
                else:
                    if isinstance(q, Splat):
                        self.fail_unless(f"{name}.attrs._d['value'].is_splat")
                    self.bind(q.var.name, name)
            else:
                assert isinstance(q, Pattern), q
                self.op(q, name)


def matcher(pattern: Pattern, template: Any) -> Match:
    """The function of one rule. Where the pattern asks for nothing but the kind of op, no code is needed."""
    if pattern.asks_nothing and not isinstance(template, Var | Const):
        names = parameters(template)
        if names == ("op",):
            return lambda op, uses: template(op)
        if names == ("op", "uses"):
            return template
    return Compiler(pattern, template).function()


def parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__wrapped__"):
        from inspect import signature  # which takes far longer than a look at a plain function's code

        return tuple(signature(function).parameters)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _takes_any_number(kind: OpDef) -> bool:
    code = getattr(kind.infer, "__code__", None)
    if code is not None and not hasattr(kind.infer, "__wrapped__"):
        return bool(code.co_flags & CO_VARARGS)
    from inspect import signature

    return any(p.kind is p.VAR_POSITIONAL for p in signature(kind.infer).parameters.values())


def required_kinds(pattern: Pattern) -> list[tuple[int, str]]:
    """What kinds the operands of a match must have: pairs of a position and a kind's full name."""
    found = []
    for i, q in enumerate(pattern.operands or ()):
        if isinstance(q, Pattern):
            found.append((i, q.symbol.full_name))
        elif not isinstance(q, Var):
            found.append((i, CONSTANT.full_name))
    return found
