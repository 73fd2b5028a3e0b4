"""Rewrite rules by theme. README.md says what a rule must keep. Imports ir, ops (by name), rewrite."""

from hilo.rewrite import RuleSet
from hilo.rules.algebra import ALGEBRA
from hilo.rules.choice import CHOICE
from hilo.rules.control import CONTROL
from hilo.rules.convert import CONVERT
from hilo.rules.dot import DOT
from hilo.rules.reduce import REDUCE
from hilo.rules.shape import SHAPE
from hilo.rules.slicing import SLICING

ALL = RuleSet("all", [r for theme in (ALGEBRA, CHOICE, CONVERT, SHAPE, SLICING, DOT, REDUCE, CONTROL) for r in theme])

__all__ = ["ALL"]
