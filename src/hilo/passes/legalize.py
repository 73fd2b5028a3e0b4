"""Legalising: ops that are made of simpler ops become those (CHLO, `dot`); what hilo cannot compile is named. Imports
ir, rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from hilo.errors import Error, Unsupported
from hilo.ir.module import Function
from hilo.ir.op import Op, OpDef
from hilo.ir.types import QUANTIZED, OpaqueType, TensorType, Type, UnrankedType, result_types
from hilo.rewrite import PACK, Rule, RuleSet, rewrite
from hilo.rewrite.ops import custom_call, dot, dot_general
from hilo.rewrite.pattern import Pattern, Symbol
from hilo.rewrite.regions import has_regions, regions


def legalize(f: Function) -> Function:
    """`f` with every op that has an `expand` expanded, in regions too, until none is left.

    Raises `Unsupported`, with op and location, for what cannot be compiled.
    """
    if QUANTIZED:  # there are quantized types
        from hilo.passes.quantized import lower_quantized

        f = lower_quantized(f)
    f = rewrite(f, _expansions())
    if has_regions(f) and not all(map(_is_plain, f.ops)):
        from hilo.passes.element_loops import element_loops

        f = element_loops(f)
    _check(f)
    return f


def _is_plain(op: Op) -> bool:
    """Whether kernels take `op` as it is, with its regions if it has some."""
    inside = list(regions(op))
    if not inside:
        return True
    from hilo.ops.fusion import INLINE, composes_region

    return op.kind.full_name in INLINE and all(map(composes_region, inside))


class Expansions(RuleSet):
    """A rule for every kind of op that has an `expand`, made when such an op is met; and those that are given."""

    def rules_for(self, kind: OpDef) -> Sequence[tuple[Rule, Pattern]]:
        given = super().rules_for(kind)
        if not kind.expand:
            return given
        rule = _expansion(kind)
        return [(rule, rule.patterns[0]), *given]


@cache
def _expansions() -> RuleSet:
    rules = Expansions("expand")
    rules.rule(custom_call)(_simpler_call)
    rules.rule(dot)(dot_is_general)
    return rules


def _simpler_call(op: Op) -> Op | None:
    from hilo.passes.custom_calls import simpler_call

    return simpler_call(op)


def _expansion(kind: OpDef) -> Rule:
    name = kind.full_name

    def expand(op: Op) -> Op | None:
        assert kind.expand is not None
        unranked = next((x.type for x in op.operands if isinstance(x.type, UnrankedType)), None)
        if unranked is not None:
            raise Unsupported(f"values of type {unranked} cannot be compiled", loc=op.loc, op=name)
        try:
            simpler = kind.expand(*op.operands, **op.attrs.own())
        except Error as e:
            raise e.at(op.loc, name) from None
        return PACK.make(simpler) if isinstance(simpler, tuple) else simpler

    return Rule([Symbol(name).any], expand, "passes/legalize.py", name=f"expand {name}")


def dot_is_general(op: Op) -> Op:
    """`dot` contracts the last dim of its lhs with the first of its rhs."""
    last = op.operands[0].tensor.rank - 1
    return dot_general(
        *op.operands,
        lhs_contracting_dimensions=(last,),
        rhs_contracting_dimensions=(0,),
        precision_config=op.attrs["precision_config"],
        type=op.type,
    )


def _check(f: Function) -> None:
    """Raise for the first op of `f` or its regions that cannot be compiled."""
    fine: set[Type] = set()  # types that have been looked at
    plain: set[OpDef] = set()  # kinds of ops that need no look: an op's kind always has regions, or never
    done: set[int] = set()  # of functions, which `f` keeps alive
    stack = [f]
    while stack:
        g = stack.pop()
        if id(g) in done:
            continue
        done.add(id(g))
        for op in g.ops:
            if op.type not in fine:
                for t in result_types(op.type):
                    _check_type(op, t)
                fine.add(op.type)
            if op.kind not in plain:
                _check_kind(op)
                inside = list(regions(op))
                stack += inside
                if not inside and op.kind.name not in ("rng_bit_generator", "custom_call"):
                    plain.add(op.kind)


def _check_kind(op: Op) -> None:
    name = op.kind.full_name
    if name == "stablehlo.custom_call":
        from hilo.custom_calls import registry

        try:
            registry.find(op.attrs["call_target_name"])
        except Error as e:
            raise e.at(op.loc, name) from None
    if name == "stablehlo.rng_bit_generator":  # an artifact may hold one with a state that the spec does not allow
        op.kind.make(op.operands, op.attrs, op.loc)
    if name == "func.call":
        raise Unsupported(f"a call of @{op.attrs['callee']} is left after inlining", loc=op.loc, op=name)


def _check_type(op: Op, t: Type) -> None:
    if isinstance(t, TensorType):
        if not all(isinstance(d, int) or d.is_known for d in t.shape):
            problem = f"{t} has a symbolic dimension that follows from nothing"
            raise Unsupported(problem, loc=op.loc, op=op.kind.full_name)
    elif isinstance(t, OpaqueType) and t.text != "!stablehlo.token":
        raise Unsupported(f"values of type {t} cannot be compiled", loc=op.loc, op=op.kind.full_name)
