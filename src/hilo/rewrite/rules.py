"""Rules: a pattern and a template; sets of rules, each compiled when first tried. Imports only ir."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from types import CodeType
from typing import Any

from hilo.ir.dtypes import DType
from hilo.ir.module import parameter
from hilo.ir.op import Op, OpDef
from hilo.ir.types import TensorType
from hilo.rewrite.compiler import Match, matcher, readings, required_kinds
from hilo.rewrite.pattern import Pattern, Symbol

Place = tuple[CodeType, int]  # code, and an instruction in it
_ARGUMENTS = count()


def arg(dtype: DType, *shape: int) -> Op:
    """A parameter for an example."""
    return argument(TensorType(dtype, shape))


def argument(t: TensorType) -> Op:
    """A parameter for an example, of type `t`."""
    return parameter(next(_ARGUMENTS), t)


def caller(depth: int) -> Place:
    """The place in the code `depth` frames above the function that asks."""
    frame = sys._getframe(depth + 1)
    return frame.f_code, frame.f_lasti


def file_and_line(place: Place) -> str:
    """`rules/algebra.py:12`. Python finds lines by walking through all that is before: too long for each rule."""
    code, instruction = place
    line = next((line for start, end, line in code.co_lines() if start <= instruction < end), None)
    return f"{'/'.join(code.co_filename.split(os.sep)[-2:])}:{line}"


class Ready:
    """One reading of a rule: for ops whose operands have the kinds `needs`, one of them a kind out of `among` (full
    names). Compiled when an op of such kinds is met: a program meets few of all rules."""

    __slots__ = ("_match", "among", "needs", "reading", "rule")

    def __init__(self, reading: Pattern, rule: Rule, among: frozenset[str]) -> None:
        self.reading = reading
        self.rule = rule
        self.needs: tuple[tuple[int, str], ...] = tuple(required_kinds(reading))
        self.among = among
        self._match: Match | None = None

    @property
    def match(self) -> Match:
        if self._match is None:
            self._match = matcher(self.reading, self.rule.template)
        return self._match

    def may_match(self, kinds: tuple[str, ...], more: bool) -> bool:
        """Whether operands of these kinds (and `more` that are not known) could match."""
        if any(i < len(kinds) and kinds[i] != kind for i, kind in self.needs):
            return False
        return more or not self.among or any(k in self.among for k in kinds)


class Rule:
    """`patterns` (alternatives) -> `template`: a variable, a `Const`, or a function of bound names giving an op or
    None.

    A template function may also take `op` (the matched op) and `uses` (how often a value is used, at most). `place` is
    where it is written, `example` what the property test fills the pattern's variables with: a type for a value, a
    value for an attribute; or a function `example(dtype)` that gives ops to try. A rule that may change bits says
    `changes_values`: it runs only under `fast_math`. `among`: names of ops of which one must be an operand.
    """

    __slots__ = ("_name", "among", "changes_values", "example", "patterns", "place", "reorders_sums", "template")

    def __init__(
        self,
        patterns: list[Pattern],
        template: Any,
        place: Place | str,
        *,
        name: str = "",
        example: Any = None,
        changes_values: str = "",
        reorders_sums: bool = False,
        among: tuple[str, ...] = (),
    ) -> None:
        self.among = among
        self.patterns = patterns
        self.template = template
        self.place = place
        self.example: Any = example if example is not None else {}
        self.changes_values = changes_values
        self.reorders_sums = reorders_sums
        self._name = name

    @property
    def name(self) -> str:
        """The name it was given, or the rule as text."""
        return self._name or f"{self.patterns[0]!r} -> {self._result()}"

    def _result(self) -> str:
        name = getattr(self.template, "__name__", "")
        return "..." if name == "<lambda>" else name or repr(self.template)

    def ready(self, pattern: Pattern) -> Iterator[Ready]:
        """One for each way to read one of the patterns (commutative ops both ways)."""
        among = frozenset(f"stablehlo.{name}" for name in self.among)
        for reading in readings(pattern):
            yield Ready(reading, self, among)

    @property
    def where(self) -> str:
        """`rules/algebra.py:12`, where it is written."""
        if not isinstance(self.place, str):
            self.place = file_and_line(self.place)
        return self.place

    def __repr__(self) -> str:
        return f"{self.name} ({self.where})"


class RuleSet:
    """Rules in order, by theme; `set_a + set_b` has the rules of both. A rule is compiled when it is first tried."""

    def __init__(self, name: str, rules: Iterable[Rule] = ()) -> None:
        self.name = name
        self.rules: list[Rule] = list(rules)
        self._table: dict[str, list[tuple[Rule, Pattern]]] | None = None
        self._ready: dict[OpDef, tuple[Ready, ...]] = {}
        self._candidates: dict[Any, tuple[tuple[Match, Rule], ...]] = {}

    def add(self, *rules: Rule) -> None:
        self.rules += rules
        self._table = None
        self._ready.clear()
        self._candidates.clear()

    def rule(
        self,
        *roots: Pattern | Symbol,
        changes_values: str = "",
        reorders_sums: bool = False,
        example: Any = None,
        among: tuple[str, ...] = (),
        **values: Any,
    ) -> Callable[[Callable[..., Op | None]], Callable[..., Op | None]]:
        """Decorator: the function is the template of a rule for each of `roots` (a symbol: that op with any
        operands)."""
        place = caller(1)
        patterns = [r if isinstance(r, Pattern) else r.any for r in roots]

        def register(template: Callable[..., Op | None]) -> Callable[..., Op | None]:
            self.add(
                Rule(
                    patterns,
                    template,
                    place,
                    name=template.__name__,
                    example=values if example is None else example,
                    changes_values=changes_values,
                    reorders_sums=reorders_sums,
                    among=among,
                )
            )
            return template

        return register

    def without_value_changes(self, allowed: frozenset[str] = frozenset()) -> RuleSet:
        """The rules that keep every bit, and those whose `changes_values` name is in `allowed`."""
        return RuleSet(self.name, [r for r in self.rules if not r.changes_values or r.changes_values in allowed])

    def candidates(self, op: Op) -> tuple[tuple[Match, Rule], ...]:
        """The rules that could match `op`, judging by its kind and its first operands' kinds; remembered by those."""
        operands = op.operands
        n = len(operands)
        if n == 2:
            key: Any = (op.kind, operands[0].kind, operands[1].kind)
        elif n == 1:
            key = (op.kind, operands[0].kind)
        else:
            key = (op.kind, n, *[o.kind for o in operands[:3]])
        found = self._candidates.get(key)
        if found is None:
            kinds = tuple([o.kind.full_name for o in operands[:3]])
            found = tuple([(r.match, r.rule) for r in self._of_kind(op.kind) if r.may_match(kinds, n > 3)])
            self._candidates[key] = found
        return found

    def rules_for(self, kind: OpDef) -> Sequence[tuple[Rule, Pattern]]:
        """The rules for ops of this kind, each with the pattern that matches these."""
        if self._table is None:
            self._table = {}
            for rule in self.rules:
                for pattern in rule.patterns:
                    self._table.setdefault(pattern.symbol.full_name, []).append((rule, pattern))
        return self._table.get(kind.full_name, ())

    def concerns(self, kind: OpDef) -> bool:
        """Whether there are rules for ops of this kind."""
        return bool(self._of_kind(kind))

    def _of_kind(self, kind: OpDef) -> tuple[Ready, ...]:
        """The readings of rules for ops of this kind: made when such an op is met."""
        found = self._ready.get(kind)
        if found is None:
            rules = self.rules_for(kind)
            found = self._ready[kind] = tuple(r for rule, pattern in rules for r in rule.ready(pattern))
        return found

    def __add__(self, other: RuleSet) -> RuleSet:
        return RuleSet(f"{self.name}+{other.name}", [*self.rules, *other.rules])

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)

    def __len__(self) -> int:
        return len(self.rules)

    def __repr__(self) -> str:
        return f"<RuleSet {self.name}: {len(self.rules)} rules>"
