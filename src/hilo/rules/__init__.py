"""Rewrite rules by theme. README.md says what a rule must keep. Imports ir, ops (by name), rewrite.

A theme's file is loaded when an op is met that it has rules for: a program meets few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

from hilo.ir.op import OpDef
from hilo.rewrite import RuleSet
from hilo.rewrite.pattern import Pattern
from hilo.rewrite.rules import Rule

#: The themes in the order in which their rules are tried, and the ops that their rules match; "": most ops.
#: tests/rules/test_themes.py compares it with the rules.
THEMES: Final[dict[str, str]] = {
    "algebra": "abs add and divide maximum minimum multiply negate not or power remainder subtract xor",
    "choice": "compare not select",
    "convert": "complex convert imag real",
    "shape": "bitcast_convert broadcast_in_dim reshape reverse transpose",
    "units": "",
    "slicing": "concatenate dynamic_slice dynamic_update_slice gather pad slice",
    "dot": "dot_general dynamic_slice transpose",
    "reduce": "exponential map reduce",
    "control": "case get_tuple_element if",
    "loops": "while",
    "captures": "case if reduce while",
    "fast": "add divide dot_general exponential exponential_minus_one log log_plus_one multiply subtract",
}
_OPS: Final = {theme: frozenset(f"stablehlo.{n}" for n in names.split()) for theme, names in THEMES.items()}


def rules_of(theme: str) -> RuleSet:
    """The rules of a theme."""
    return getattr(import_module(f"hilo.rules.{theme}"), theme.upper())


class Rules(RuleSet):
    """The rules of all themes that keep every bit, or that `allowed` permits, behind those of another set."""

    def __init__(self, first: RuleSet, allowed: frozenset[str]) -> None:
        super().__init__("all", first.rules)
        self._allowed = allowed
        self._themes: dict[str, RuleSet] = {}

    def rules_for(self, kind: OpDef) -> Sequence[tuple[Rule, Pattern]]:
        found = list(super().rules_for(kind))
        for theme, ops in _OPS.items():
            if (not ops or kind.full_name in ops) and (theme != "fast" or self._allowed):
                found += self._theme(theme).rules_for(kind)
        return found

    def __radd__(self, first: RuleSet) -> RuleSet:
        """Other rules, tried before these."""
        return Rules(RuleSet(first.name, [*first.rules, *self.rules]), self._allowed)

    def _theme(self, theme: str) -> RuleSet:
        if theme not in self._themes:
            self._themes[theme] = rules_of(theme).without_value_changes(self._allowed)
        return self._themes[theme]


@cache
def _all() -> RuleSet:
    return RuleSet("all", [r for theme in THEMES for r in rules_of(theme)])


def __getattr__(name: str) -> Any:
    if name != "ALL":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _all()
