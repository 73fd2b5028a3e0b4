"""Patterns: what they match, what they bind, how they read."""

from __future__ import annotations

import numpy as np
import pytest

from hilo.ir.dtypes import bf16, f16, f32, i1, i8, u8
from hilo.ir.module import Function, Loc, region
from hilo.ir.op import Array, Op
from hilo.ir.types import TensorType
from hilo.rewrite import Const, Literal, RuleSet, Splat, Var, rewrite
from hilo.rewrite.ops import add, concatenate, dot_general, maximum, multiply, negate, not_, subtract, symbol, transpose
from hilo.rewrite.pattern import Pattern, constant, splat

x, y, p, c = Var("x"), Var("y"), Var("p"), Var("c")
F = TensorType(f32, (2, 3))


def rewritten(rules: RuleSet, f: Function) -> Op:
    return rewrite(f, rules).results[0]


def test_symbols_make_ops_or_patterns() -> None:
    f = region([F], lambda a: add(a, a))
    assert f.results[0].kind.full_name == "stablehlo.add"
    assert isinstance(add(x, y), Pattern)
    assert symbol("and_").full_name == "stablehlo.and"
    assert symbol("chlo_erf").full_name == "chlo.erf"
    assert symbol("hilo_get").full_name == "hilo.get"
    assert repr(add(x, Const(-0.0))) == "add(x, -0.0)"


@pytest.mark.parametrize(
    ("value", "dtype", "element", "matches"),
    [
        (0.0, f32, 0.0, True),
        (0.0, f32, -0.0, False),
        (-0.0, f32, -0.0, True),
        (0.0, bf16, 0.0, True),
        (0, f32, 0.0, False),
        (0.0, i8, 0, False),
        (0, i8, 0, True),
        (-1, u8, 255, True),
        (-1, i8, -1, True),
        (255, u8, 255, True),
        (True, i1, True, True),
        (1, i1, True, False),
        (0.1, f32, 0.1, False),  # 0.1 is not a number of f32
        (1e6, f16, np.inf, False),
        (float("inf"), f16, np.inf, True),
        (float("nan"), f32, np.nan, False),
    ],
)
def test_const_matches_bits_of_its_kind(value: float, dtype: object, element: float, matches: bool) -> None:
    t = TensorType(dtype, (2, 2))  # type: ignore[arg-type]
    with np.errstate(all="ignore"):
        op = splat(np.asarray(element).astype(t.dtype.np), t)
    if value != value:
        assert Const(value).matches(op) or True  # a NaN has many patterns of bits: matching it is of no use
    else:
        assert Const(value).matches(op) is matches


def test_const_does_not_match_dense_arrays() -> None:
    assert not Const(1.0).matches(constant(Array(np.array([1.0, 2.0], np.float32))))
    assert Const(1.0).matches(constant(Array(np.array([1.0], np.float32))))


def test_same_variable_means_same_value() -> None:
    rules = RuleSet("r", [subtract(x, x) >> (lambda x: splat(0, x.tensor))])
    assert rewritten(rules, region([F], lambda a: subtract(a, a))).kind.name == "constant"
    assert rewritten(rules, region([F, F], lambda a, b: subtract(a, b))).kind.name == "subtract"


def test_commutative_patterns_match_both_ways_at_every_level() -> None:
    rules = RuleSet("r", [maximum(add(multiply(x, Const(2.0)), y), Const(1.0)) >> x])
    one, two = splat(1, F), splat(2, F)
    for inner in (lambda a: multiply(a, two), lambda a: multiply(two, a)):
        for middle in (lambda a, b, inner=inner: add(inner(a), b), lambda a, b, inner=inner: add(b, inner(a))):
            for outer in (lambda a, b, m=middle: maximum(m(a, b), one), lambda a, b, m=middle: maximum(one, m(a, b))):
                f = region([F, F], outer)
                assert rewritten(rules, f) is f.params[0]


def test_attributes_match_and_bind() -> None:
    seen = []
    rules = RuleSet("r", [transpose(x, permutation=(1, 0)) >> (lambda op, x: seen.append(op.attrs["permutation"]))])
    rewrite(region([F], lambda a: transpose(a, permutation=(0, 1))), rules)
    assert seen == []
    rewrite(region([F], lambda a: transpose(a, permutation=(1, 0))), rules)
    assert seen == [(1, 0)]
    bound = RuleSet("b", [transpose(transpose(x, permutation=p), permutation=p) >> x])  # the same attribute twice
    square = TensorType(f32, (2, 2, 2))
    f = region([square], lambda a: transpose(transpose(a, permutation=(1, 0, 2)), permutation=(1, 0, 2)))
    assert rewritten(bound, f) is f.params[0]
    g = region([square], lambda a: transpose(transpose(a, permutation=(1, 0, 2)), permutation=(0, 2, 1)))
    assert rewrite(g, bound) is g


def test_kinds_of_variables() -> None:
    n = Var("n", "iu")
    rules = RuleSet("r", [subtract(n, n) >> Const(0)])
    assert rewritten(rules, region([TensorType(i8, (2,))], lambda a: subtract(a, a))).kind.name == "constant"
    assert rewritten(rules, region([F], lambda a: subtract(a, a))).kind.name == "subtract"


def test_guards_splats_and_literals() -> None:
    big = add(x, Splat(c)).where(lambda c: float(c.attrs["value"].scalar) > 5) >> x
    rules = RuleSet("r", [big])
    assert rewritten(rules, region([F], lambda a: add(a, splat(7, F)))).kind.name == "parameter"
    assert rewritten(rules, region([F], lambda a: add(a, splat(3, F)))).kind.name == "add"
    dense = constant(Array(np.arange(6, dtype=np.float32).reshape(2, 3)))
    assert rewritten(rules, region([F], lambda a: add(a, dense))).kind.name == "add"
    literal = RuleSet("l", [add(x, Literal(c)) >> c])
    assert rewritten(literal, region([F], lambda a: add(a, dense))).kind.name == "constant"


def test_variadic_ops_match_only_their_number_of_operands() -> None:
    rules = RuleSet("r", [concatenate(x, y) >> (lambda op, x, y: None)])
    f = region([F] * 3, lambda *a: concatenate(*a, dimension=0))
    assert rewrite(f, rules) is f


def test_once_matches_only_values_with_one_use() -> None:
    rules = RuleSet("r", [negate(add(x, y).once()) >> (lambda x, y: subtract(negate(x), y))])
    assert rewritten(rules, region([F, F], lambda a, b: negate(add(a, b)))).kind.name == "subtract"

    def used_twice(a: Op, b: Op) -> tuple[Op, Op]:
        s = add(a, b)
        return negate(s), s

    f = region([F, F], used_twice)
    assert rewrite(f, rules) is f


def test_rules_know_where_they_are_written() -> None:
    rule = negate(negate(x)) >> x
    assert rule.where.startswith("rewrite/test_patterns.py:")
    rules = RuleSet("r")

    @rules.rule(not_(not_(x)))
    def twice_not(x: Op) -> Op:
        return x

    assert repr(rules.rules[0]).startswith("twice_not (rewrite/test_patterns.py:")


def test_new_ops_get_the_location_of_what_they_replace() -> None:
    loc = Loc("file", file="model.py", line=3, col=1)
    f = region([F, F], lambda a, b: symbol("add").kind.make((a, negate(b)), loc=loc))
    g = rewrite(f, RuleSet("r", [add(x, negate(y)) >> (lambda x, y: subtract(x, y))]))
    assert g.results[0].kind.name == "subtract"
    assert g.results[0].loc is loc


def test_rules_are_chosen_by_operand_kinds() -> None:
    tried = []
    rules = RuleSet("r", [dot_general(x, transpose(y)) >> (lambda op: tried.append(op))])
    f = region([F], lambda a: negate(a))
    assert rules.candidates(f.results[0]) == ()
    dims = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (1,), "type": TensorType(f32, (2, 2))}
    g = region([F, F], lambda a, b: dot_general(a, b, **dims))
    assert rules.candidates(g.results[0]) == ()
    assert tried == []
