"""`hilo run --check`: quiet about right programs; names the op whose kernel is broken, wherever it stands."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import hilo
from hilo import kernels
from hilo.cli import main
from hilo.ir.registry import lookup
from hilo.testing.check import check_program

SOFTMAX = """func.func @main(%x: tensor<16x24xf32>) -> tensor<16x24xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %m = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
      : (tensor<16x24xf32>, tensor<f32>) -> tensor<16xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<16xf32>) -> tensor<16x24xf32>
  %d = stablehlo.subtract %x, %mb : tensor<16x24xf32>
  %e = stablehlo.exponential %d : tensor<16x24xf32>
  %s = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1]
      : (tensor<16x24xf32>, tensor<f32>) -> tensor<16xf32>
  %sb = stablehlo.broadcast_in_dim %s, dims = [0] : (tensor<16xf32>) -> tensor<16x24xf32>
  %r = stablehlo.divide %e, %sb : tensor<16x24xf32>
  return %r : tensor<16x24xf32>
}"""

AMPLIFIED = """func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %a = stablehlo.exponential %x : tensor<64xf32>
  %b = stablehlo.sine %a : tensor<64xf32>
  %c = stablehlo.subtract %b, %a : tensor<64xf32>
  %d = stablehlo.tan %c : tensor<64xf32>
  return %d : tensor<64xf32>
}"""

LOOP = """func.func @main(%x: tensor<8x8xf32>, %n: tensor<i32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<8x8xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %q = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
        : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %t = stablehlo.tanh %q : tensor<8x8xf32>
    stablehlo.return %next, %t : tensor<i32>, tensor<8x8xf32>
  }
  return %r#1 : tensor<8x8xf32>
}"""

INPUTS: dict[str, list[Any]] = {
    SOFTMAX: [np.random.default_rng(0).standard_normal((16, 24)).astype(np.float32)],
    AMPLIFIED: [np.linspace(-3, 3, 64, dtype=np.float32)],
    LOOP: [np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32), np.int32(5)],
}


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`broken(op)`: the native element of an elementwise op comes out one unit too large from now on."""

    def breaks(name: str) -> None:
        kind = lookup(name)
        right = kind.scalar
        assert right is not None

        def scalar(b: Any, out: Any, *xs: Any, **attrs: Any) -> Any:
            value = right(b, out, *xs, **attrs)
            return type(value)(value.dtype, b.fadd(value.re, 1.0), value.im)

        monkeypatch.setattr(kind, "scalar", scalar)

    return breaks


@pytest.mark.parametrize("text", INPUTS)
@pytest.mark.parametrize("target", ["host", "x86-sse2"])
def test_right_programs_agree(text: str, target: str) -> None:
    assert check_program(hilo.parse(text), INPUTS[text], target=target) is None


@pytest.mark.parametrize(
    ("text", "op", "line"),
    [
        (SOFTMAX, "stablehlo.exponential", 8),
        (SOFTMAX, "stablehlo.divide", 12),
        (AMPLIFIED, "stablehlo.sine", 3),
        (AMPLIFIED, "stablehlo.tan", 5),
        (LOOP, "stablehlo.tanh", 12),
    ],
)
def test_a_broken_element_is_named_with_its_place(broken: Any, text: str, op: str, line: int) -> None:
    broken(op)
    found = check_program(hilo.parse(text), INPUTS[text])
    assert found is not None
    assert found.startswith(f"{op} -> "), found
    assert f":{line}:" in found, found
    assert "elements differ" in found


def test_a_broken_strategy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The contraction's kernel does only half of its work, inside of a loop."""
    right = kernels.lower

    def lower(op: Any, target: Any) -> Any:
        lowered = right(op, target)
        if op.kind.name == "dot_general":
            lowered.phases[-1].units //= 2
        return lowered

    monkeypatch.setattr(kernels, "lower", lower)
    found = check_program(hilo.parse(LOOP), INPUTS[LOOP])
    assert found is not None
    assert found.startswith("stablehlo.dot_general -> f32[8,8]"), found


def test_the_command_names_the_op_and_fails(broken: Any, tmp_path: Any) -> None:
    path = tmp_path / "softmax.mlir"
    path.write_text(SOFTMAX)
    arguments = ["run", str(path), "--random", "0", "--check"]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    broken("stablehlo.exponential")
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert "differ: stablehlo.exponential" in result.stderr
    assert len(result.stderr.splitlines()) == 1
