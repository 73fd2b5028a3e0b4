"""Targets that XLA's own programs call: decompositions, and the largest elements."""

from __future__ import annotations

import numpy as np
import pytest

import hilo

TUPLE = """func.func @main(%x: {x}) -> ({a}, {b}) {{
  %0 = stablehlo.custom_call @{target}(%x) {{{attrs}}} : ({x}) -> tuple<{a}, {b}>
  %1 = stablehlo.get_tuple_element %0[0] : (tuple<{a}, {b}>) -> {a}
  %2 = stablehlo.get_tuple_element %0[1] : (tuple<{a}, {b}>) -> {b}
  return %1, %2 : {a}, {b}
}}"""


def test_qr_and_its_reflectors() -> None:
    text = TUPLE.format(target="Qr", attrs="", x="tensor<2x4x3xf32>", a="tensor<2x4x3xf32>", b="tensor<2x3xf32>")
    x = np.random.default_rng(0).standard_normal((2, 4, 3), np.float32)
    packed, tau = hilo.interpret(hilo.parse(text), x)
    q = hilo.interpret(hilo.parse("""func.func @main(%x: tensor<2x4x3xf32>, %t: tensor<2x3xf32>) -> tensor<2x4x3xf32> {
      %0 = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%x, %t)
        : (tensor<2x4x3xf32>, tensor<2x3xf32>) -> tensor<2x4x3xf32>
      return %0 : tensor<2x4x3xf32>
    }"""), packed, tau)[0]  # fmt: skip
    np.testing.assert_allclose(q @ np.triu(packed)[:, :3], x, atol=1e-5)


def test_eigh_reads_the_triangle_that_its_configuration_says() -> None:
    a = np.array([[2.0, 7.0], [1.0, 2.0]], np.float32)
    for lower, want in ((1, [1.0, 3.0]), (0, [-5.0, 9.0])):
        text = TUPLE.format(target="Eigh", attrs=f'backend_config = "{lower},1,15,0.00001"', x="tensor<2x2xf32>",
                            a="tensor<2x2xf32>", b="tensor<2xf32>")  # fmt: skip
        v, w = hilo.interpret(hilo.parse(text), a)
        np.testing.assert_allclose(w, want, atol=1e-5)
        np.testing.assert_allclose(np.abs(v), np.full((2, 2), 0.5**0.5), atol=1e-5)
    assert np.isnan(hilo.interpret(hilo.parse(text), np.full((2, 2), np.nan, np.float32))[0]).all()


TOP = """func.func @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func @main(%x: tensor<3x9xf32>) -> (tensor<3x4xf32>, tensor<3x4xi32>) {
  %i = stablehlo.iota dim = 1 : tensor<3x9xi32>
  %f = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %n = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %f, %n) {called_computations = [@greater], mhlo.backend_config = {
    aggregate_to_topk = true, recall_target = 0.95 : f32, reduction_dim = 1 : i64,
    reduction_input_size_override = -1 : i64, top_k = 4 : i64}}
    : (tensor<3x9xf32>, tensor<3x9xi32>, tensor<f32>, tensor<i32>) -> (tensor<3x4xf32>, tensor<3x4xi32>)
  return %0#0, %0#1 : tensor<3x4xf32>, tensor<3x4xi32>
}"""


def test_approximate_answers_are_exact() -> None:
    x = np.random.default_rng(1).standard_normal((3, 9), np.float32)
    order = np.argsort(-x, axis=1, kind="stable")[:, :4]
    values, places = hilo.interpret(hilo.parse(TOP), x)
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("target", ["mhlo.topk", "TopK"])
def test_top_k(target: str, largest: bool) -> None:
    text = f"""func.func @main(%x: tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {{
      %0:2 = stablehlo.custom_call @{target}(%x) {{mhlo.attributes = {{k = 3 : i64, largest = {str(largest).lower()}}},
        mhlo.version = 1 : i64}} : (tensor<2x5xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
      return %0#0, %0#1 : tensor<2x3xf32>, tensor<2x3xi32>
    }}"""
    x = np.array([[1, 3, -0.0, 3, 0], [2, np.inf, -np.inf, -1, 5]], np.float32)
    values, places = hilo.interpret(hilo.parse(text), x)
    assert places.tolist() == ([[1, 3, 0], [1, 4, 0]] if largest else [[2, 4, 0], [2, 3, 0]])
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))
