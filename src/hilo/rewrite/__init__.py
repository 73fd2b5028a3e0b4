"""Rewriting: patterns written with the ops' own names, and the driver that applies them. Imports only ir.

from hilo.rewrite import Const, RuleSet, Var
from hilo.rewrite.ops import add, negate, transpose

ALGEBRA = RuleSet("algebra")
ALGEBRA.add(negate(negate(x)) >> x)

@ALGEBRA.rule(transpose(transpose(x, permutation=p), permutation=q), x=f32(2, 3), p=(1, 0), q=(1, 0))
def transposes_merge(x, p, q): return transpose(x, permutation=tuple(p[i] for i in q))
"""

from hilo.rewrite.driver import PACK, rewrite
from hilo.rewrite.pattern import Const, Literal, Pattern, Splat, Var
from hilo.rewrite.rules import Rule, RuleSet

__all__ = ["PACK", "Const", "Literal", "Pattern", "Rule", "RuleSet", "Splat", "Var", "rewrite"]
