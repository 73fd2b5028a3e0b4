"""`hilo tune`: the table of gains, what is kept, mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from hilo import tune as tuning

Hilo = Callable[..., Result]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times as if ones and twos were the fastest."""
    monkeypatch.setattr(tuning, "ROUNDS", (1, 1))

    def times(self: object, steps: list) -> dict[str, float]:
        return {self.key(t): 0.25 if any(c.how and c.value in (1, 2) for c in t.choices) else 1.0  # type: ignore[attr-defined]
                for t in steps}  # fmt: skip

    monkeypatch.setattr(tuning._Tuner, "by_kernel", times)


WIDE = """func.func @main(%x: tensor<40x512xf32>) -> tensor<40xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<40x512xf32>, tensor<f32>) -> tensor<40xf32>
  return %s : tensor<40xf32>
}
"""


def test_gains_are_shown_and_kept(hilo: Hilo) -> None:
    Path("wide.mlir").write_text(WIDE)
    result = hilo("tune", "wide.mlir", "--seconds", "20")
    assert result.exit_code == 0, result.output
    assert "4.00x" in result.stdout
    assert "rows.unroll=1" in result.stdout
    assert "1 kernels are faster, kept beside the cache" in result.stdout
    assert list(Path("cache/tuned").rglob("*.entry"))
    assert "rows.unroll=1 (tuned)" in hilo("bench", "wide.mlir", "--seconds", "0", "--explain").stdout
    off = hilo("bench", "wide.mlir", "--seconds", "0", "--explain", HILO_TUNED="0").stdout
    assert "(tuned)" not in off


def test_a_dry_run_keeps_nothing(hilo: Hilo) -> None:
    Path("wide.mlir").write_text(WIDE)
    result = hilo("tune", "wide.mlir", "--seconds", "20", "--dry-run")
    assert "nothing is kept" in result.stdout
    assert not Path("cache/tuned").exists()


def test_weights_that_are_constants(hilo: Hilo) -> None:
    Path("dot.mlir").write_text(
        "func.func @main(%a: tensor<50x70xf32>, %b: tensor<70x90xf32>) -> tensor<50x90xf32> {\n"
        "  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]\n"
        "      : (tensor<50x70xf32>, tensor<70x90xf32>) -> tensor<50x90xf32>\n  return %0 : tensor<50x90xf32>\n}"
    )
    result = hilo("tune", "dot.mlir", "--bind", "1", "--seconds", "20")
    assert "kept beside the cache" in result.stdout, result.output
    assert "(tuned)" in hilo("bench", "dot.mlir", "--bind", "1", "--seconds", "0", "--explain").stdout
    assert "(tuned)" not in hilo("bench", "dot.mlir", "--seconds", "0", "--explain").stdout


def test_no_time(hilo: Hilo) -> None:
    result = hilo("tune", "rows.mlir", "x.npy", "--seconds", "0")
    assert result.exit_code == 0
    assert "0 variants" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "environment", "message"),
    [
        (("absent.mlir",), {}, "absent.mlir"),
        (("rows.mlir", "--entry", "other"), {}, "no function @other"),
        (("rows.mlir",), {"HILO_OPT": "0"}, "leave HILO_OPT and HILO_TARGET as they are"),
        (("rows.mlir",), {"HILO_TARGET": "x86-sse2"}, "leave HILO_OPT and HILO_TARGET as they are"),
        (("rows.mlir", "narrow.npy"), {}, "expected f32[4,8]"),
        (("rows.mlir", "--bind", "1"), {}, "--bind 1: arguments have numbers from 0 to 0"),
        (("rows.mlir", "--bind", "1-0"), {}, "--bind 1-0: arguments have numbers from 0 to 0"),
        (("rows.mlir", "--bind", "0-x"), {}, "--bind 0-x: arguments have numbers from 0 to 0"),
    ],
)
def test_mistakes_are_one_line(hilo: Hilo, arguments: tuple[str, ...], environment: dict[str, str],
                               message: str) -> None:  # fmt: skip
    result = hilo("tune", *arguments, "--seconds", "1", **environment)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert message in result.stderr


def test_help_has_examples(hilo: Hilo) -> None:
    assert "hilo tune model.mlir --same-bits --dry-run" in hilo("tune", "--help").stdout
