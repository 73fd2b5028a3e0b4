"""Simplifying: rules, loop-invariant code, common subexpressions and dead code, in turn, until nothing changes; then
layouts.
Imports ir, rewrite, rules, passes."""

from __future__ import annotations

from functools import cache
from typing import Final

from hilo.ir.module import Function
from hilo.options import DEFAULT, Options
from hilo.passes.cse import cse
from hilo.passes.dce import dce
from hilo.rewrite import RuleSet, rewrite
from hilo.rewrite.regions import any_op
from hilo.trace import substep

#: One round does nearly everything; further rounds see what cse and dce made equal or used once. A stop, never a need.
_ROUNDS: Final = 12


def simplify(f: Function, options: Options = DEFAULT) -> Function:
    """`f` and its regions with all rules applied (those that change values as `options.fast_math` allows), without
    duplicates and dead ops; `f` itself if there was nothing to do. The bits of the results do not change otherwise."""
    rules = rules_for(options.fast_math, options.fold_elements)
    for turn in range(_ROUNDS):
        before = f
        f = substep("rules", lambda f: rewrite(f, rules), f)
        if f is before and turn > 0:
            break
        for name, step in (("hoist", hoisted), ("cse", cse), ("dce", dce)):
            f = substep(name, step, f)
        if f is before:
            break
    if has_layouts(f):
        from hilo.passes.layout import layout

        for name, step in (("layout", layout), ("cse", cse), ("dce", dce)):
            f = substep(name, step, f)
    return f


def hoisted(f: Function) -> Function:
    """`f` with the invariant code of its loops before them."""
    if not any_op(f, lambda o: o.kind.full_name == "stablehlo.while"):
        return f
    from hilo.passes.hoist import hoist

    return hoist(f)


def has_layouts(f: Function) -> bool:
    """Whether `f` has both convolutions and transpositions."""
    names = {o.kind.full_name for o in f.ops}
    return "stablehlo.convolution" in names and "stablehlo.transpose" in names


@cache
def rules_for(fast_math: frozenset[str], fold_elements: int) -> RuleSet:
    """All of hilo's rules that these options allow."""
    from hilo.rules import Rules  # rules are loaded with the first function that needs them
    from hilo.rules.fold import folding

    return Rules(folding(fold_elements), fast_math)
