"""Rewrite rules by theme. README.md says what a rule must keep. Imports ir, ops (by name), rewrite."""

from hilo.rewrite import RuleSet
from hilo.rules.algebra import ALGEBRA
from hilo.rules.choice import CHOICE
from hilo.rules.control import CONTROL
from hilo.rules.convert import CONVERT
from hilo.rules.dot import DOT
from hilo.rules.fast import FAST
from hilo.rules.loops import LOOPS
from hilo.rules.reduce import REDUCE
from hilo.rules.shape import SHAPE
from hilo.rules.slicing import SLICING
from hilo.rules.units import UNITS

ALL = RuleSet(
    "all",
    [
        r
        for theme in (ALGEBRA, CHOICE, CONVERT, SHAPE, UNITS, SLICING, DOT, REDUCE, CONTROL, LOOPS, FAST)
        for r in theme
    ],
)

__all__ = ["ALL"]
