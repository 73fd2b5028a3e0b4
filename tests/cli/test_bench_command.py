"""`hilo bench`: figures as tables and as JSON, kernels with strategies and reasons, -O0."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from hilo.runtime import limits
from hilo.runtime.limits import Limits

Hilo = Callable[..., Result]


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "measure", lambda threads: Limits(1e9, 1e9, 1e9))


def test_figures(hilo: Hilo) -> None:
    result = hilo("bench", "rows.mlir", "--seconds", "0")
    assert result.exit_code == 0
    for word in ("compile", "call, median", "of 5 calls", "temporaries"):
        assert word in result.stdout
    assert "kernel" not in result.stdout


def test_kernels_with_their_reasons(hilo: Hilo) -> None:
    result = hilo("bench", "rows.mlir", "x.npy", "--seconds", "0", "--explain", "--threads", "1")
    assert result.exit_code == 0
    for word in ("rows.mlir:", "exponential+reduce f32[4]", "rows: 1 pass over a row of 32 bytes", "rows.unroll="):
        assert word in result.stdout


@pytest.mark.parametrize("order", ["time", "order"])
def test_json(hilo: Hilo, order: str) -> None:
    result = hilo("bench", "rows.mlir", "--seconds", "0", "--explain", "--json", "--sort", order, "-O0")
    assert result.exit_code == 0
    figures = json.loads(result.stdout)
    assert figures["calls"] == 5
    assert 0 < figures["best"] <= figures["median"]
    assert figures["limits"] == {"fma": 1e9, "copy": 1e9, "read": 1e9}
    kernels = figures["kernels"]
    assert {k["strategy"] for k in kernels} == {"elementwise loop", "rows"}
    assert all(k["runs"] == 1 and k["reason"] and k["of_limit"] >= 0 for k in kernels)
    seconds = [k["seconds"] for k in kernels]
    assert order == "order" or seconds == sorted(seconds, reverse=True)
    assert order == "time" or [k["op"].split()[0] for k in kernels] == ["exponential", "reduce"]


def test_pins_of_the_environment_are_shown_and_checked(hilo: Hilo) -> None:
    result = hilo("bench", "rows.mlir", "--seconds", "0", "--explain", HILO_PIN="rows.unroll=1")
    assert "rows.unroll=1 (pinned)" in result.stdout
    result = hilo("bench", "rows.mlir", HILO_PIN="rows.unroll=3")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "rows.unroll=3: this kernel has no such choice" in result.stderr


def test_quick_code(hilo: Hilo) -> None:
    assert hilo("run", "rows.mlir", "x.npy", "-O0").stdout == hilo("run", "rows.mlir", "x.npy", "-O", "1").stdout
    assert hilo("run", "rows.mlir", "x.npy", "-O0", "--check").exit_code == 0
    assert "hilo.fusion" in hilo("compile", "rows.mlir", "--to=schedule").stdout
    assert "hilo.fusion" not in hilo("compile", "rows.mlir", "--to=schedule", "-O0").stdout
    assert hilo("compile", "rows.mlir", "-O0").exit_code == 0
    assert hilo("compile", "rows.mlir", "-O2").exit_code == 2


def test_help_has_examples(hilo: Hilo) -> None:
    assert "hilo bench model.mlir --explain --json" in hilo("bench", "--help").stdout
    assert "-O0" in hilo("compile", "--help").stdout


def test_run_time_sizes(hilo: Hilo) -> None:
    Path("dynamic.mlir").write_text(
        "func.func @main(%x: tensor<?x8xf32>) -> tensor<?x8xf32> {\n"
        "  %0 = stablehlo.exponential %x : tensor<?x8xf32>\n  return %0 : tensor<?x8xf32>\n}"
    )
    result = hilo("bench", "dynamic.mlir", "--seconds", "0", "--dim", "5", "--explain", "--json")
    (kernel,) = json.loads(result.stdout)["kernels"]
    assert kernel["runs"] == 1
    assert "choose them with --dim N" in hilo("bench", "dynamic.mlir").stderr
