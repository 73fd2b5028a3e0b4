"""Random programs run the same in all ways; a way that is wrong is found and named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hilo
from hilo.ir.op import OpDef
from hilo.ir.registry import lookup
from hilo.ir.verify import verify
from hilo.testing.agree import WAYS, agree, kinds
from hilo.testing.generate import generate, inputs

SEEDS = range(48)
_TEXT = """func.func @main(%x: tensor<5xf32>, %y: tensor<5xf32>)
    -> (tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>) {
  %a = stablehlo.subtract %x, %y : tensor<5xf32>
  %b = stablehlo.exponential %a : tensor<5xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<5xf32>, tensor<f32>) -> tensor<f32>
  %t = stablehlo.sine %s : tensor<f32>
  return %a, %b, %s, %t : tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<f32>
}"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path))


@pytest.fixture
def broken_subtract(monkeypatch: pytest.MonkeyPatch) -> OpDef:
    """Native subtraction that adds."""
    kind, other = lookup("stablehlo.subtract"), lookup("stablehlo.add")
    monkeypatch.setattr(kind, "scalar", other.scalar)
    return kind


@pytest.mark.parametrize("seed", SEEDS)
def test_random_programs_agree(seed: int) -> None:
    module = generate(seed, 12 + seed % 3 * 12)
    verify(module, types=True)
    ways = [WAYS[(seed + k * 5) % len(WAYS)] for k in range(2)]
    assert agree(module, inputs(module, seed), ways=["passes", "native", *ways]) is None


def test_programs_are_the_same_every_time() -> None:
    for seed in range(5):
        a, b = generate(seed), generate(seed)
        assert a["main"] == b["main"]
        for x, y in zip(inputs(a, 3), inputs(b, 3), strict=True):
            assert x.tobytes() == y.tobytes()
            assert x.dtype == y.dtype
    assert generate(1)["main"] != generate(2)["main"]
    assert len(generate(1, 40)["main"].ops) > 2 * len(generate(1, 5)["main"].ops)


def test_programs_hold_what_there_is() -> None:
    """If few ops came up, agreement would say little."""
    mains = [generate(seed, 30)["main"] for seed in range(200)]
    ops = {o.kind.full_name for f in mains for o in f.ops}
    assert len(ops) > 100
    names = ("while", "if", "case", "reduce", "dot_general", "gather", "scatter", "sort", "dynamic_slice",
             "reduce_window")  # fmt: skip
    assert {f"stablehlo.{name}" for name in names} <= ops
    types = [t for f in mains for t in f.param_types]
    assert any(t.size == 0 for t in types)  # type: ignore[attr-defined]
    assert any(t.rank == 0 for t in types)  # type: ignore[attr-defined]
    assert {"exact", "function", "sum", "open"} == {k for f in mains for k in kinds(f)}


def test_kinds_of_results() -> None:
    assert kinds(hilo.parse(_TEXT)["main"]) == ["exact", "function", "sum", "open"]


def test_a_wrong_op_is_found(broken_subtract: OpDef) -> None:
    module = hilo.parse(_TEXT)
    arrays = [np.arange(5, dtype=np.float32), np.ones(5, np.float32)]
    found = agree(module, arrays)
    assert found is not None
    assert found.startswith("native: result 0")
    assert agree(module, arrays, ways=["passes"]) is None
    assert (agree(module, arrays, ways=["unfused"]) or "").startswith("unfused: result 0")


def test_a_wrong_op_behind_rounded_values_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    module = hilo.parse(_TEXT)
    f = module["main"]
    module = module.replace({"main": f.replace(results=f.results[3:])})
    arrays = [np.arange(5, dtype=np.float32), np.ones(5, np.float32)]
    assert agree(module, arrays) is None
    monkeypatch.setattr(lookup("stablehlo.sine"), "scalar", lookup("stablehlo.cosine").scalar)
    assert (agree(module, arrays) or "").startswith("check: ")


def test_errors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise KeyError("lost")

    monkeypatch.setattr(lookup("stablehlo.subtract"), "scalar", fails)
    arrays = [np.zeros(5, np.float32)] * 2
    assert agree(hilo.parse(_TEXT), arrays, ways=["native"]) == "native: error: KeyError: 'lost'"
    assert "no way 'nothing'" in (agree(hilo.parse(_TEXT), arrays, ways=["nothing"]) or "")
    with pytest.raises(hilo.Error, match="takes 2 arguments"):
        agree(hilo.parse(_TEXT), arrays[:1])
