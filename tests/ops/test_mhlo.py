"""What is left of MHLO in programs: parsed in its own forms, run, written back and into artifacts."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.errors import Error, Unsupported
from hilo.formats import bytecode
from hilo.formats.mlir_text import print_module

PROGRAM = """module {
  func.func @main(%arg0: tensor<2x4xf32>) -> (tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x3xi32>, tensor<8xi32>) {
    %0 = mhlo.copy %arg0 : tensor<2x4xf32>
    %1 = stablehlo.create_token : !stablehlo.token
    %2 = mhlo.add_dependency %0, %1 : (tensor<2x4xf32>, !stablehlo.token) -> tensor<2x4xf32>
    %3 = mhlo.erf %2 : tensor<2x4xf32>
    %4:2 = mhlo.topk(%0, k = 3, largest = false) : tensor<2x4xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
    %5 = mhlo.bitcast %0 : (tensor<2x4xf32>) -> tensor<8xi32>
    return %3, %4#0, %4#1, %5 : tensor<2x4xf32>, tensor<2x3xf32>, tensor<2x3xi32>, tensor<8xi32>
  }
}
"""
X = np.array([[0.5, -1, 2, 0], [3, 1, -2, 7]], np.float32)


def check(results: list[np.ndarray]) -> None:
    erf, values, places, bits = results
    np.testing.assert_allclose(erf[0, :2], [0.5204999, -0.8427008], rtol=1e-6)
    assert values.tolist() == [[-1, 0, 0.5], [-2, 1, 3]]
    assert places.tolist() == [[1, 3, 0], [2, 1, 0]]
    assert bits.tolist() == X.reshape(8).view(np.int32).tolist()


def test_a_program() -> None:
    m = hilo.parse(PROGRAM)
    printed = print_module(m)
    assert "mhlo.copy %arg0 : tensor<2x4xf32>" in printed
    assert "mhlo.topk(%0, k = 3, largest = false)" in printed
    assert hilo.parse(printed)["main"] == m["main"]
    check(list(hilo.interpret(m, X)))
    check(list(hilo.compile(m)(X)))
    check(list(hilo.interpret(bytecode.parse(bytecode.write(m)), X)))


def test_the_generic_form() -> None:
    m = hilo.parse("""func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = "mhlo.copy"(%x) {cross_program_prefetch_index = 0 : i32} : (tensor<3xf32>) -> tensor<3xf32>
      %1 = "mhlo.sinh"(%0) : (tensor<3xf32>) -> tensor<3xf32>
      return %1 : tensor<3xf32>
    }""")
    assert [o.kind.full_name for o in m["main"].ops[1:]] == ["mhlo.copy", "chlo.sinh"]
    np.testing.assert_allclose(hilo.interpret(m, X[0, :3])[0], np.sinh(X[0, :3]), rtol=1e-6)


def test_functions_as_custom_calls() -> None:
    m = hilo.parse("""func.func @main(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
      %0 = stablehlo.custom_call @mhlo.erf(%x) {mhlo.attributes = {}, mhlo.version = 1 : i64}
        : (tensor<2x4xf32>) -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }""")
    for got in (hilo.interpret(m, X)[0], hilo.compile(m)(X)[0]):
        np.testing.assert_allclose(got[0, :2], [0.5204999, -0.8427008], rtol=1e-6)


@pytest.mark.parametrize(("op", "message"), [
    ('"mhlo.bitcast"(%x) : (tensor<2x4xf32>) -> tensor<9xi32>', "differ in size"),
    ('"mhlo.bitcast"(%x) {source_layout = dense<[0, 1]> : tensor<2xindex>, result_layout = dense<0> : tensor<1xindex>}'
     " : (tensor<2x4xf32>) -> tensor<8xi32>", "layout"),
    ('"mhlo.add_dependency"(%x, %x) : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>', "must be a token"),
])  # fmt: skip
def test_what_is_refused(op: str, message: str) -> None:
    with pytest.raises((Error, Unsupported), match=message):
        hilo.parse(f"func.func @main(%x: tensor<2x4xf32>) {{\n  %0 = {op}\n  return\n}}")
