"""The driver: fixed points, regions, several results, rules that never end."""

from __future__ import annotations

import pytest

from hilo.errors import Error
from hilo.ir.dtypes import f32, i1, i32
from hilo.ir.module import Function, parameter, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.ir.verify import verify
from hilo.rewrite import PACK, Const, RuleSet, Var, rewrite
from hilo.rewrite.driver import FIRED
from hilo.rewrite.ops import add, if_, multiply, negate, reduce, subtract
from hilo.rewrite.pattern import splat

x, y = Var("x"), Var("y")
F = TensorType(f32, (3,))
S = TensorType(f32)


def test_nothing_matches_gives_the_same_object() -> None:
    f = region([F], lambda a: negate(a))
    assert rewrite(f, RuleSet("r", [add(x, Const(0.0)) >> x])) is f


def test_one_walk_reaches_the_fixed_point() -> None:
    rules = RuleSet(
        "r", [negate(negate(x)) >> x, add(x, negate(y)) >> (lambda x, y: subtract(x, y)), subtract(x, x) >> Const(0.0)]
    )
    f = region([F, F], lambda a, b: add(add(a, negate(b)), negate(add(a, negate(negate(negate(b)))))))
    g = rewrite(f, rules)
    verify(g, types=True)
    names = [o.kind.name for o in g.ops]
    assert g.results[0].kind.name == "subtract"
    assert rewrite(g, rules) is g
    assert "add" not in names


def test_long_chains_do_not_recurse() -> None:
    rules = RuleSet("r", [negate(negate(x)) >> x, add(x, Const(0.0)) >> x])
    a = parameter(0, F)
    ops, v = [a], a
    for _ in range(20_000):
        v = negate(v)
        ops.append(v)
    g = rewrite(Function("f", [a], ops, [v]), rules)
    assert g.results[0] is a


def test_fresh_chains_do_not_recurse() -> None:
    """One firing makes 5,000 ops, each of which a rule matches: many firings, but of one generation."""

    def grow(x: Op) -> Op:
        for _ in range(5000):
            x = add(x, splat(0.0, x.tensor))
        return x

    rules = RuleSet("r", [multiply(x, Const(3.0)) >> (lambda x: grow(x)), add(x, Const(0.0)) >> x])
    g = rewrite(region([F], lambda a: multiply(a, splat(3.0, F))), rules)
    assert g.results[0] is g.params[0]


def test_rules_without_end_are_an_error_that_names_them() -> None:
    rules = RuleSet("r", [add(x, y) >> (lambda x, y: subtract(x, y)), subtract(x, y) >> (lambda x, y: add(x, y))])
    with pytest.raises(Error, match=r"does not come to an end.*test_driver.py"):
        rewrite(region([F, F], lambda a, b: add(a, b)), rules)


def test_growing_rules_are_an_error_too() -> None:
    rules = RuleSet("r", [negate(x) >> (lambda x: negate(add(x, x)))])
    with pytest.raises(Error, match="does not come to an end"):
        rewrite(region([F], lambda a: negate(a)), rules)


def test_a_rule_must_keep_the_type() -> None:
    rules = RuleSet("r", [negate(x) >> (lambda x: splat(0.0, S))])
    with pytest.raises(Error, match="internal error: rule"):
        rewrite(region([F], lambda a: negate(a)), rules)


def test_regions_are_rewritten_once_each() -> None:
    calls: list[Op] = []

    def seen(op: Op, x: Op) -> Op:
        calls.append(op)
        return x

    body = region([S, S], lambda a, b: add(a, negate(negate(b))))
    again = region([S, S], lambda a, b: add(a, negate(negate(b))))

    def two(a: Op, i: Op) -> Op:
        return add(reduce(a, i, dimensions=(0,), body=body), reduce(negate(a), i, dimensions=(0,), body=again))

    f = region([F, S], two)
    g = rewrite(f, RuleSet("r", [negate(negate(x)) >> seen]))
    verify(g, types=True)
    assert len(calls) == 1
    assert all(
        len(o.attrs["body"].ops) == 4 for o in g.ops if o.kind.name == "reduce"
    )  # the inner negate is dead, not gone


def test_several_results_are_replaced_by_a_pack() -> None:
    rules = RuleSet("r")

    @rules.rule(if_)
    def unwrap(op: Op) -> Op:
        return PACK.make(op.operands[1:])

    branch = region([F, S], lambda a, b: (a, b))

    def body(p: Op, a: Op, b: Op) -> tuple[Op, ...]:
        return if_(p, a, b, true_branch=branch, false_branch=branch).results()

    f = region([TensorType(i1), F, S], body)
    g = rewrite(f, rules)
    assert g.results == (g.params[1], g.params[2])
    assert not any(o.kind is PACK for o in g.ops)


def test_fired_rules_are_counted() -> None:
    rule = negate(negate(x)) >> x
    counts: dict[object, int] = {}
    token = FIRED.set(counts)  # type: ignore[arg-type]
    try:
        rewrite(region([F], lambda a: negate(negate(negate(negate(a))))), RuleSet("r", [rule]))
    finally:
        FIRED.reset(token)
    assert counts == {rule: 2}


def test_integers_do_not_match_float_constants() -> None:
    t = TensorType(i32, (2,))
    f = region([t], lambda a: add(a, splat(0, t)))
    assert rewrite(f, RuleSet("r", [add(x, Const(0.0)) >> x])) is f
