"""Tokens at a program's edges are arrays of nothing."""

from __future__ import annotations

import numpy as np

import hilo
from hilo.pjrt import compiler

PROGRAM = b"""
func.func @main(%t: !stablehlo.token, %x: tensor<2xf32>) -> (!stablehlo.token, tensor<2xf32>, !stablehlo.token) {
  %u = stablehlo.custom_call @test_tokens.note(%t, %x) {has_side_effect = true}
    : (!stablehlo.token, tensor<2xf32>) -> !stablehlo.token
  %v = stablehlo.after_all %u, %t : !stablehlo.token
  %y = stablehlo.add %x, %x : tensor<2xf32>
  return %v, %y, %t : !stablehlo.token, tensor<2xf32>, !stablehlo.token
}"""


def test_tokens_are_arrays_of_nothing() -> None:
    noted: list[list[float]] = []

    @hilo.register_custom_call("test_tokens.note")
    def note(x: np.ndarray) -> None:
        noted.append(x.tolist())

    loaded = compiler.compile("mlir", PROGRAM, b"")
    nothing = (1, (0,), (0,))
    assert [loaded.arguments[0], loaded.results[0], loaded.results[2]] == [nothing] * 3
    results = loaded.native(np.zeros(0, np.bool_), np.array([1, 2], np.float32))
    assert [r.shape for r in results] == [(0,), (2,), (0,)]
    assert results[1].tolist() == [2, 4]
    assert noted == [[1, 2]]
