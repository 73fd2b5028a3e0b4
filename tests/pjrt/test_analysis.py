"""What a program says of its costs, its memory and its optimized form."""

from __future__ import annotations

from pathlib import Path

import pytest

from hilo.formats.protobuf import fields
from hilo.pjrt import compiler
from hilo.pjrt.analysis import costs_of

MLP = b"""
module @jit_mlp {
  func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.tanh %0 : tensor<8x4xf32>
    %2 = stablehlo.add %1, %0 : tensor<8x4xf32>
    return %2 : tensor<8x4xf32>
  }
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path))


def test_costs() -> None:
    costs = compiler.compile("mlir", MLP, b"").cost_analysis()
    assert costs["flops"] == 2 * 8 * 16 * 4 + 32
    assert costs["transcendentals"] == 32
    assert costs["bytes accessed"] >= sum(costs[f"bytes accessed{side}{{}}"] for side in ("0", "1", "out"))
    assert (costs["bytes accessed0{}"], costs["utilization1{}"], costs["bytes accessedout{}"]) == (512, 1, 128)
    assert 0 < costs["optimal_seconds"] < 1e-3


def test_a_program_that_does_nothing() -> None:
    p = compiler.compile("mlir", b"func.func @main() { return }", b"")
    assert (p.arguments, p.results, p.native()) == ([], [], [])
    assert p.cost_analysis()["flops"] == 0
    assert p.memory_stats()["argument_size_in_bytes"] == 0
    assert p.optimized_program()[0] == "hlo_with_config"


def test_memory() -> None:
    p = compiler.compile("mlir", MLP, b"")
    m = p.memory_stats()
    assert (m["argument_size_in_bytes"], m["output_size_in_bytes"], m["alias_size_in_bytes"]) == (768, 128, 0)
    assert m["peak_memory_in_bytes"] == 768 + 128 + m["temp_size_in_bytes"]
    assert p.code_size() == m["generated_code_size_in_bytes"] > 0
    assert all(type(n) is int and n >= 0 for n in m.values())
    text = b"""func.func @main(%x: tensor<8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8xf32> {
      %0 = stablehlo.negate %x : tensor<8xf32>
      return %0 : tensor<8xf32>
    }"""
    m = compiler.compile("mlir", text, b"").memory_stats()
    assert (m["alias_size_in_bytes"], m["peak_memory_in_bytes"]) == (32, 32)


def test_code_size_is_known_of_programs_that_call_out() -> None:
    text = b"""func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
      %0 = stablehlo.custom_call @Sharding(%x) : (tensor<2x2xf32>) -> tensor<2x2xf32>
      %1, %2 = stablehlo.custom_call @Qr(%0) : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>)
      return %1 : tensor<2x2xf32>
    }"""
    assert compiler.compile("mlir", text, b"").code_size() > 0


def test_the_optimized_program_shows_kernels() -> None:
    form, data = compiler.compile("mlir", MLP, b"").optimized_program()
    assert form == "hlo_with_config"
    module = dict(fields(data))[1]
    assert isinstance(module, bytes)
    for word in (b"jit_mlp", b"dot", b"fusion", b"kOutput", b"tanh"):
        assert word in module


def test_other_layouts_are_bitcasts() -> None:
    text = b"""func.func @main(%x: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}) -> tensor<2x3xf32> {
      %0 = stablehlo.negate %x : tensor<2x3xf32>
      return %0 : tensor<2x3xf32>
    }"""
    _, data = compiler.compile("mlir", text, b"").optimized_program()
    assert data.count(b"\x12\x07bitcast") == 1  # the opcode


def test_what_hlo_has_no_form_for_is_a_call() -> None:
    text = b"func.func @main(%x: tensor<2xf6E2M3FN>) -> tensor<2xf6E2M3FN> { return %x : tensor<2xf6E2M3FN> }"
    _, data = compiler.compile("mlir", text, b"").optimized_program()
    assert b"hilo.program" in data


def test_costs_of_a_program_that_was_not_compiled() -> None:
    text = b"""
      func.func private @twice(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
        %0 = stablehlo.exponential %x : tensor<3x4xf32>
        %1 = stablehlo.add %0, %x : tensor<3x4xf32>
        return %1 : tensor<3x4xf32>
      }
      func.func @main(%x: tensor<3x4xf32>) -> tensor<3x3xf32> {
        %0 = call @twice(%x) : (tensor<3x4xf32>) -> tensor<3x4xf32>
        %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [1]
          : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x3xf32>
        return %1 : tensor<3x3xf32>
      }"""
    found = costs_of(text)
    assert found["transcendentals"] == 12
    assert found["flops"] == 12 + 2 * 3 * 4 * 3
    assert found["bytes accessed"] == 48 * 2 + 48 * 3 + 48 * 2 + 36
    assert found["bytes accessedout{}"] == 36
    assert "optimal_seconds" not in found
