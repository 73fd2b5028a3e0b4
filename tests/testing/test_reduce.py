"""Failing programs become small, and the pass that breaks them is named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hilo
from hilo.ir.module import Module
from hilo.ir.registry import lookup
from hilo.ir.verify import verify
from hilo.rewrite import RuleSet, Var
from hilo.rewrite.ops import symbol
from hilo.testing.bisect import bisect
from hilo.testing.generate import generate, inputs
from hilo.testing.reduce import failing_way, fails_in, raises, reduce, smaller

_TEXT = """func.func @main(%x: tensor<5xf32>, %y: tensor<5xf32>, %n: tensor<i32>) -> (tensor<5xf32>, tensor<5xf32>) {
  %a = stablehlo.add %x, %y : tensor<5xf32>
  %p = stablehlo.constant dense<true> : tensor<i1>
  %b = "stablehlo.if"(%p) ({
    %q = stablehlo.multiply %a, %x : tensor<5xf32>
    %d = stablehlo.subtract %q, %y : tensor<5xf32>
    stablehlo.return %d : tensor<5xf32>
  }, {
    stablehlo.return %a : tensor<5xf32>
  }) : (tensor<i1>) -> tensor<5xf32>
  %c = call @f(%b) : (tensor<5xf32>) -> tensor<5xf32>
  return %c, %a : tensor<5xf32>, tensor<5xf32>
}
func.func private @f(%x: tensor<5xf32>) -> tensor<5xf32> {
  %r = stablehlo.negate %x : tensor<5xf32>
  return %r : tensor<5xf32>
}"""
_ARRAYS = [np.arange(5, dtype=np.float32), np.full(5, 3, np.float32), np.array(2, np.int32)]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path))


@pytest.fixture
def broken_subtract(monkeypatch: pytest.MonkeyPatch) -> None:
    """Native subtraction that adds."""
    monkeypatch.setattr(lookup("stablehlo.subtract"), "scalar", lookup("stablehlo.add").scalar)


def names(module: Module) -> list[str]:
    return [o.kind.name for o in module["main"].ops]


def test_a_wrong_op_is_all_that_is_left(broken_subtract: None) -> None:
    module = hilo.parse(_TEXT)
    way, found = failing_way(module, _ARRAYS)
    assert way == "native"
    fails = fails_in(way, found)
    small, arrays = reduce(module, _ARRAYS, fails)
    verify(small, types=True)
    assert set(small.functions) == {"main"}
    assert [n for n in names(small) if n not in ("parameter", "constant")] == ["subtract"]
    assert fails(small, arrays)
    culprit = bisect(small, arrays, lambda o: fails_in(way, found, options=o)(small, arrays))
    assert culprit is not None
    assert culprit.label == ""
    assert "stablehlo.subtract" in culprit.detail


def test_random_programs_are_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup("stablehlo.maximum"), "scalar", lookup("stablehlo.minimum").scalar)
    reduced = 0
    for seed in range(12):
        module = generate(seed, 25)
        arrays = inputs(module, seed)
        way, found = failing_way(module, arrays, ways=["native"])
        if not way:
            continue
        small, kept = reduce(module, arrays, fails_in(way, found), seconds=10)
        verify(small, types=True)
        assert fails_in(way, found)(small, kept)
        assert len(small["main"].ops) <= 6, small
        reduced += 1
        if reduced == 3:
            break
    assert reduced


def test_a_wrong_rule_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from hilo.passes import simplify

    x, y = Var("x"), Var("y")
    wrong = RuleSet("wrong", [symbol("negate")(symbol("multiply")(x, y)) >> x])
    right = simplify.rules_for
    monkeypatch.setattr(simplify, "rules_for", lambda *options: wrong + right(*options))
    module = hilo.parse(_TEXT.replace("stablehlo.subtract %q, %y", "stablehlo.multiply %q, %y"))
    way, found = failing_way(module, _ARRAYS)
    assert way == "passes"
    small, arrays = reduce(module, _ARRAYS, fails_in(way, found))
    assert [n for n in names(small) if n not in ("parameter", "constant")] == ["multiply", "negate"]
    culprit = bisect(small, arrays, lambda o: fails_in(way, found, options=o)(small, arrays))
    assert culprit is not None
    assert culprit.label == "rules"
    assert len(culprit.rules) == 1
    assert culprit.rules[0].startswith("negate(multiply")
    assert "wrong by itself: negate" in str(culprit)


def test_errors_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise hilo.Error("no code for it")

    monkeypatch.setattr(lookup("stablehlo.multiply"), "scalar", fails)
    small, _ = reduce(hilo.parse(_TEXT), _ARRAYS, raises("no code"))
    assert [n for n in names(small) if n not in ("parameter", "constant")] == ["multiply"]


def test_a_program_that_does_not_fail_is_refused() -> None:
    module = hilo.parse(_TEXT)
    assert failing_way(module, _ARRAYS, ways=["passes", "native"]) == ("", "")
    with pytest.raises(hilo.Error, match="does not fail"):
        reduce(module, _ARRAYS, raises("anything"))
    assert bisect(module, _ARRAYS, lambda _: False) is None


def test_loops_that_lose_their_end_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from hilo.testing import reduce as room

    monkeypatch.setattr(room, "PATIENCE", 0.3)
    text = """func.func @main(%x: tensor<i32>) -> tensor<i32> {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r = stablehlo.while(%i = %x) : tensor<i32>
      cond { %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
             stablehlo.return %c : tensor<i1> }
      do { %j = stablehlo.add %i, %one : tensor<i32>
           stablehlo.return %j : tensor<i32> }
      return %r : tensor<i32>
    }"""

    def fails(module: Module, arrays: list[np.ndarray]) -> bool:
        hilo.interpret(module, *arrays)
        return any(o.kind.name == "while" for o in module["main"].ops)

    small, arrays = reduce(hilo.parse(text), [np.array(0, np.int32)], fails)
    assert fails(small, arrays)


def test_smaller_regions_are_well_formed() -> None:
    for seed in range(20):
        f = generate(seed, 15)["main"]
        for k, g in enumerate(smaller(f)):
            verify(g, types=True)
            assert g.param_types == f.param_types
            assert g.result_types == f.result_types
            if k > 30:
                break
