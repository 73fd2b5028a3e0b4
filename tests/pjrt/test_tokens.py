"""Tokens at a program's edges: arrays of nothing go in, buffers of the type token come out."""

from __future__ import annotations

import numpy as np
from pjrt_client import C, a_host

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
    assert loaded.arguments[0] == (1, (0,), (0,))
    assert [loaded.results[0], loaded.results[2]] == [(C["TOKEN"], (), ())] * 2
    results = loaded.native(np.zeros(0, np.bool_), np.array([1, 2], np.float32))
    assert [r.shape for r in results] == [(0,), (2,), (0,)]
    assert results[1].tolist() == [2, 4]
    assert noted == [[1, 2]]


def test_tokens_may_be_given_in_turn() -> None:
    text = """
    func.func @main(%t: !stablehlo.token, %x: tensor<2xf32>) -> (tensor<2xf32>, !stablehlo.token) {
      %y = stablehlo.add %x, %x : tensor<2xf32>
      return %y, %t : tensor<2xf32>, !stablehlo.token
    }"""
    with a_host() as host:
        loaded = host.compile(text)
        t, x = host.put(np.zeros(0, np.bool_)), host.put(np.array([1, 2], np.float32))
        for _ in range(3):
            y, u = host.run(loaded, [t, x])
            assert host.get(y).tolist() == [2, 4]
            assert host.api.buffer_element_type(buffer=u).type == C["TOKEN"]
            assert host.raw(u) == b""
            host.free(t, y)
            t = u
        host.free(t, x)
        host.api.loaded_executable_destroy(executable=loaded)
