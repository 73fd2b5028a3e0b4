"""Rules: a pattern and a template, compiled to a plain Python function `rule(op, uses) -> Op | None`. Imports only ir.

Compiled rules are 3-4 times faster than matching a pattern piece by piece, and no longer to write.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from hilo.ir.op import Op, OpDef
from hilo.rewrite.pattern import _CONSTANT, COMMUTATIVE, Const, Literal, Node, Pattern, Splat, Symbol, Var

Match = Callable[[Op, dict[Op, int]], "Op | None"]


def caller(depth: int) -> str:
    """`rules/algebra.py:12` of the code `depth` frames above the function that asks."""
    frame = sys._getframe(depth + 1)
    path = Path(frame.f_code.co_filename)
    return f"{path.parent.name}/{path.name}:{frame.f_lineno}"


class Rule:
    """`patterns` (alternatives) -> `template`: a variable, a `Const`, or a function of bound names giving an op or
    None.

    A template function may also take `op` (the matched op) and `uses` (how often a value is used, at most). `where` is
    `file:line`, `example` what the property test fills the pattern's variables with: a type for a value, a value for
    an attribute; or a function `example(dtype)` that gives ops to try. A rule that may change bits says
    `changes_values`: it runs only under `fast_math`.
    """

    __slots__ = ("changes_values", "example", "name", "patterns", "reorders_sums", "template", "where")

    def __init__(
        self,
        patterns: list[Pattern],
        template: Any,
        where: str,
        *,
        name: str = "",
        example: Any = None,
        changes_values: str = "",
        reorders_sums: bool = False,
    ) -> None:
        self.patterns = patterns
        self.template = template
        self.where = where
        self.example = example if example is not None else {}
        self.changes_values = changes_values
        self.reorders_sums = reorders_sums
        self.name = name or f"{patterns[0]!r} -> {self._result()}"

    def _result(self) -> str:
        name = getattr(self.template, "__name__", "")
        return "..." if name == "<lambda>" else name or repr(self.template)

    def compiled(self) -> Iterator[tuple[OpDef, Match]]:
        """One function for each way to read the patterns (commutative ops both ways), with the kind of op it is for."""
        for pattern in self.patterns:
            for reading in _readings(pattern):
                yield reading.symbol.kind, _Compiler(reading, self.template).function()

    def __repr__(self) -> str:
        return f"{self.name} ({self.where})"


def _readings(node: Node) -> list[Any]:
    """`node` with the operands of commutative ops in either order, wherever that makes a difference."""
    if not isinstance(node, Pattern) or not node.operands:
        return [node]
    orders = [node.operands]
    if node.symbol.full_name in COMMUTATIVE and not all(isinstance(o, Var) for o in node.operands):
        orders.append(node.operands[::-1])
    found = []
    for order in orders:
        for operands in product(*map(_readings, order)):
            new = node._copy()
            new.operands = operands
            found.append(new)
    return found


class _Compiler:
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
        names = inspect.signature(function).parameters
        return f"{self.value(function)}({', '.join(self.bound[n] for n in names)})"

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
                self.fail_unless(f"{name}.kind is {self.value(_CONSTANT.kind)}")
                if isinstance(q, Const):
                    self.fail_unless(f"{self.value(q.matches)}({name})")
                else:
                    if isinstance(q, Splat):
                        self.fail_unless(f"{name}.attrs._d['value'].is_splat")
                    self.bind(q.var.name, name)
            else:
                assert isinstance(q, Pattern), q
                self.op(q, name)


def _takes_any_number(kind: OpDef) -> bool:
    return any(p.kind is p.VAR_POSITIONAL for p in inspect.signature(kind.infer).parameters.values())


class RuleSet:
    """Rules in order, by theme; `set_a + set_b` has the rules of both. Compiled when first used."""

    def __init__(self, name: str, rules: Iterable[Rule] = ()) -> None:
        self.name = name
        self.rules: list[Rule] = list(rules)
        self._table: dict[OpDef, tuple[tuple[Match, Rule], ...]] | None = None

    def add(self, *rules: Rule) -> None:
        self.rules += rules
        self._table = None

    def rule(
        self,
        *roots: Pattern | Symbol,
        changes_values: str = "",
        reorders_sums: bool = False,
        example: Any = None,
        **values: Any,
    ) -> Callable[[Callable[..., Op | None]], Callable[..., Op | None]]:
        """Decorator: the function is the template of a rule for each of `roots` (a symbol: that op with any
        operands)."""
        where = caller(1)
        patterns = [r if isinstance(r, Pattern) else r.any for r in roots]

        def register(template: Callable[..., Op | None]) -> Callable[..., Op | None]:
            self.add(
                Rule(
                    patterns,
                    template,
                    where,
                    name=template.__name__,
                    example=values if example is None else example,
                    changes_values=changes_values,
                    reorders_sums=reorders_sums,
                )
            )
            return template

        return register

    def without_value_changes(self, allowed: frozenset[str] = frozenset()) -> RuleSet:
        """The rules that keep every bit, and those whose `changes_values` name is in `allowed`."""
        return RuleSet(self.name, [r for r in self.rules if not r.changes_values or r.changes_values in allowed])

    @property
    def table(self) -> dict[OpDef, tuple[tuple[Match, Rule], ...]]:
        """Compiled rules by kind of the op that they match."""
        if self._table is None:
            table: dict[OpDef, tuple[tuple[Match, Rule], ...]] = {}
            for rule in self.rules:
                for kind, match in rule.compiled():
                    table[kind] = (*table.get(kind, ()), (match, rule))
            self._table = table
        return self._table

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(f"{self.name}+{other.name}", [*self.rules, *other.rules])

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"<RuleSet {self.name}: {len(self.rules)} rules>"
