"""Every rule on its examples: for each element type, on nasty values, both sides must give the same bits."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from hilo.ir.dtypes import ALL as DTYPES
from hilo.ir.dtypes import DType
from hilo.ir.interpret import run
from hilo.ir.module import Function
from hilo.ir.types import TensorType
from hilo.options import FAST_MATH
from hilo.rewrite import Rule, RuleSet, rewrite
from hilo.rewrite.examples import function_of, instances
from hilo.rules import ALL
from hilo.rules.fold import folding

RULES = [*folding(65536), *ALL]
SMALL = [0, 1, 2, 3]  # exact in any order of a sum, in every type


def values(dtype: DType) -> list[object]:
    """The values of a type that rules get wrong."""
    if dtype.kind == "b":
        return [False, True]
    if dtype.is_int:
        low = -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0
        high = (1 << (dtype.bits - (dtype.kind == "i"))) - 1
        return [0, 1, high, low, high - 1, low + 1, high // 2, high // 3 + 1]
    with np.errstate(all="ignore"):
        tiny, most = {"f64": (5e-324, 1.7e308), "f16": (6e-8, 65504.0)}.get(dtype.part.name, (1e-45, 3.3e38))
        reals = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, tiny, -tiny, most, -most, 3.14159, -2.0]
        if not dtype.is_complex:
            return list(np.array(reals).astype(dtype.np))
        return [complex(a, b) for a, b in zip(reals, reals[5:] + reals[:5])]


def arrays(f: Function, seed: int, small: bool) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    found = []
    for t in f.param_types:
        assert isinstance(t, TensorType)
        pool = np.array(SMALL if small else values(t.dtype), np.uint64 if t.dtype.kind == "u" else None)
        with np.errstate(all="ignore"):
            pool = pool.astype(t.dtype.np)
        found.append(np.asarray(pool[rng.integers(0, len(pool), t.shape)]).reshape(t.shape))
    return found


def same(a: object, b: object) -> bool:
    if isinstance(a, tuple):
        return isinstance(b, tuple) and all(map(same, a, b))
    assert isinstance(a, np.ndarray)
    assert isinstance(b, np.ndarray)
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return equal_bits(a, b)


def equal_bits(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind == "c":
        return equal_bits(
            np.ascontiguousarray(a).reshape(-1).view(a.real.dtype),
            np.ascontiguousarray(b).reshape(-1).view(b.real.dtype),
        )
    if a.dtype.kind in "biu" or "int" in a.dtype.name:
        return bool((a == b).all())
    return bool(((a == b) & (np.signbit(a) == np.signbit(b)) | np.isnan(a) & np.isnan(b)).all())


def fired(rule: Rule, dtype: DType) -> Iterator[tuple[Function, Function]]:
    """Pairs of functions before and after the rule, for those of its instances that set it off."""
    rules = RuleSet("one", [rule])
    for op in instances(rule, dtype):
        f = function_of(op.results() or (op,))
        g = rewrite(f, rules)
        if g is not f:
            yield f, g


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.where)
def test_rule_keeps_bits(rule: Rule) -> None:
    checked = 0
    for dtype in DTYPES:
        for f, g in fired(rule, dtype):
            checked += 1
            if rule.changes_values:
                continue
            for seed in range(4):
                given = arrays(f, seed, small=rule.reorders_sums or seed == 3)
                want, got = run(f, given), run(g, given)
                assert len(want) == len(got)
                for a, b in zip(want, got):
                    assert same(a, b), f"{rule}\n{f.ops}\n-> {g.ops}\n{given}\n{a}\n{b}"
    assert checked, f"no example sets off {rule}"


def test_rules_that_change_values_say_which_option_allows_them() -> None:
    for rule in RULES:
        assert not rule.changes_values or rule.changes_values in FAST_MATH, rule


def test_a_wrong_rule_is_caught() -> None:
    from hilo.rewrite import Const, Var
    from hilo.rewrite.ops import add

    x = Var("x")
    with pytest.raises(AssertionError):
        test_rule_keeps_bits(add(x, Const(0.0)) >> x)


def test_a_rule_without_instance_is_caught() -> None:
    from hilo.rewrite import Var
    from hilo.rewrite.ops import transpose

    x = Var("x")
    with pytest.raises(AssertionError, match="no example"):
        test_rule_keeps_bits(transpose(x, permutation=(5, 4)) >> x)
