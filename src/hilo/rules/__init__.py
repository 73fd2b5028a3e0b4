"""Rewrite rules by theme. README.md says what a rule must keep. Imports ir, ops (by name), rewrite."""

from hilo.rewrite import RuleSet
from hilo.rules.algebra import ALGEBRA
from hilo.rules.shape import SHAPE
from hilo.rules.slicing import SLICING

ALL = RuleSet("all", [rule for theme in (ALGEBRA, SHAPE, SLICING) for rule in theme])

__all__ = ["ALL"]
