"""chlo.scan: order, carried values, what is refused, and its text."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.errors import Error
from hilo.formats.mlir_text import print_module

SCAN = """func.func @main(%x: tensor<2x4xf32>, %c: tensor<2xf32>) -> (tensor<2x4xf32>, tensor<2xf32>) {
  %0:2 = chlo.scan(%x) inits(%c) dimension=1 {
  ^bb0(%a: tensor<2xf32>, %b: tensor<2xf32>):
    %1 = stablehlo.subtract %a, %b : tensor<2xf32>
    stablehlo.return %1, %1 : tensor<2xf32>, tensor<2xf32>
  } : (tensor<2x4xf32>, tensor<2xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
  return %0#0, %0#1 : tensor<2x4xf32>, tensor<2xf32>
}"""


def alternating(x: np.ndarray, c: np.ndarray, columns: range) -> tuple[np.ndarray, np.ndarray]:
    out = np.empty_like(x)
    for i in columns:
        c = out[:, i] = x[:, i] - c
    return out, c


@pytest.mark.parametrize("reverse", [False, True])
def test_both_directions(reverse: bool) -> None:
    text = SCAN.replace("dimension=1", "dimension=1 attributes {is_reverse = true}") if reverse else SCAN
    m = hilo.parse(text)
    assert hilo.parse(print_module(m))["main"] == m["main"]
    x, c = np.arange(8, dtype=np.float32).reshape(2, 4) ** 2, np.array([3, -1], np.float32)
    want = alternating(x, c, range(3, -1, -1) if reverse else range(4))
    for got in (hilo.interpret(m, x, c), hilo.compile(m)(x, c)):
        for g, w in zip(got, want, strict=True):
            np.testing.assert_array_equal(g, w)


def test_turns_without_inputs() -> None:
    text = """func.func @main(%c: tensor<i32>) -> (tensor<5xi32>, tensor<i32>) {
      %0:2 = chlo.scan() inits(%c) dimension=0 attributes {scan_dim_size = 5 : i64} {
      ^bb0(%b: tensor<i32>):
        %1 = stablehlo.add %b, %b : tensor<i32>
        stablehlo.return %b, %1 : tensor<i32>, tensor<i32>
      } : (tensor<i32>) -> (tensor<5xi32>, tensor<i32>)
      return %0#0, %0#1 : tensor<5xi32>, tensor<i32>
    }"""
    m = hilo.parse(text)
    assert hilo.parse(print_module(m))["main"] == m["main"]
    for outs, last in (hilo.interpret(m, np.array(3, np.int32)), hilo.compile(m)(np.array(3, np.int32))):
        assert outs.tolist() == [3, 6, 12, 24, 48]
        assert int(last) == 96
    with pytest.raises(Error, match="without inputs needs a scan_dim_size"):
        hilo.parse(text.replace(" attributes {scan_dim_size = 5 : i64}", ""))


@pytest.mark.parametrize(("old", "new", "message"), [
    ("dimension=1", "dimension=2", "dimension 2 is no axis of input 0"),
    ("dimension=1", "dimension=0", "parameter 0 must be f32[4]"),
    ("dimension=1", "dimension=1 attributes {scan_dim_size = 3 : i64}", "has 4 slices along dimension 1, not 3"),
    ("%a: tensor<2xf32>, %b: tensor<2xf32>", "%a: tensor<2xf32>, %b: tensor<2xf32>, %d: tensor<2xf32>",
     "takes 3 values for 2 operands"),
    ("stablehlo.return %1, %1 : tensor<2xf32>, tensor<2xf32>", "stablehlo.return", "0 values for 1 carried"),
    ("-> (tensor<2x4xf32>, tensor<2xf32>) {\n", "-> (tensor<2x5xf32>, tensor<2xf32>) {\n", "2x5"),
])  # fmt: skip
def test_what_is_refused(old: str, new: str, message: str) -> None:
    assert old in SCAN
    with pytest.raises(Error) as e:
        hilo.parse(SCAN.replace(old, new))
    assert message in str(e.value)


def test_a_carried_value_keeps_its_type() -> None:
    text = SCAN.replace("stablehlo.return %1, %1 : tensor<2xf32>, tensor<2xf32>",
                        "%2 = stablehlo.convert %1 : (tensor<2xf32>) -> tensor<2xf64>\n"
                        "stablehlo.return %1, %2 : tensor<2xf32>, tensor<2xf64>")  # fmt: skip
    with pytest.raises(Error, match="for the carried"):
        hilo.parse(text)
