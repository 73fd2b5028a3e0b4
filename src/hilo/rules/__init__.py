"""Rewrite rules by theme. README.md says what a rule must keep. Imports ir, ops (by name), rewrite."""

from hilo.rewrite import RuleSet
from hilo.rules.algebra import ALGEBRA

ALL = RuleSet("all")
for _theme in (ALGEBRA,):
    ALL.add(*_theme)

__all__ = ["ALL"]
