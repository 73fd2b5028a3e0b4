"""What the specification asks for without a number, and what the dialect adds, is refused in words."""

from __future__ import annotations

from typing import Any

import pytest
from constraints import Base, refusal

from hilo.errors import Error
from hilo.formats.mlir_text import parse

_CALL = Base("stablehlo.custom_call", ["2x3xf32", "!stablehlo.token"], {"call_target_name": '"f"'}, ["4xf32", "i1"])
ACCURACY = "#stablehlo.result_accuracy<{}, mode = #stablehlo.result_accuracy_mode<{}>>"
_OPERANDS = "[dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>]"
_RESULTS = "[dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]"


@pytest.mark.parametrize(
    ("operands", "results", "message"),
    [
        (_OPERANDS, _RESULTS, ""),
        (_OPERANDS, "", "for the operands alone or for the results alone"),
        ("", _RESULTS, "for the operands alone or for the results alone"),
        ("[dense<[1, 0]> : tensor<2xindex>]", _RESULTS, "1 operand layouts for 2 operands"),
        (_OPERANDS, "[dense<0> : tensor<1xindex>]", "1 result layouts for 2 results"),
        (_OPERANDS.replace("[1, 0]", "[1, 1]"), _RESULTS, "layout (1, 1) of operand 0 must be a permutation"),
        (_OPERANDS.replace("[1, 0]> : tensor<2x", "[1, 0, 2]> : tensor<3x"), _RESULTS, "a permutation of the 2 axes"),
        (_OPERANDS.replace("<> : tensor<0x", "<0> : tensor<1x"), _RESULTS, "of the 0 axes of !stablehlo.token"),
    ],
)
def test_layouts_of_custom_calls(operands: str, results: str, message: str):
    given = {"operand_layouts": operands, "result_layouts": results}
    e = refusal(_CALL, {k: v for k, v in given.items() if v})
    assert (e is None) == (not message)
    assert message in str(e or "")


@pytest.mark.parametrize(
    ("base", "changes", "message"),
    [
        (Base("stablehlo.reshape", ["6xf32"], result="?xf32"), {}, "use dynamic_reshape for run-time sizes"),
        (Base("stablehlo.reshape", ["6xf32"], result="?x1xf32, #stablehlo.bounds<6, ?>"), {}, ""),
        (Base("stablehlo.reshape", ["6xf32"], result="?x?xf32, #stablehlo.bounds<6, 1>"), {}, "at most one bounded"),
        (Base("stablehlo.iota", [], {"iota_dimension": 0}, "?xi32"), {}, "use dynamic_iota for run-time sizes"),
        (Base("stablehlo.broadcast_in_dim", ["f32"], {"broadcast_dimensions": []}, "?xf32"), {},
         "dynamic_broadcast_in_dim"),
        (Base("stablehlo.tanh", ["f32"], result="f32"),
         {"result_accuracy": ACCURACY.format("ulps = 2", "HIGHEST")}, "they must be 0"),
        (Base("stablehlo.tanh", ["f32"], result="f32"),
         {"result_accuracy": ACCURACY.format("atol = -1.0", "TOLERANCE")}, "must not be negative"),
    ],
)  # fmt: skip
def test_ops(base: Base, changes: dict[Any, Any], message: str):
    e = refusal(base, changes)
    assert (e is None) == (not message)
    assert message in str(e or "")


SCAN = """func.func @f(%x: tensor<2x3xf32>, %y: tensor<{1}>) {{
  %0:2 = chlo.scan(%x) {0} dimension = 0 {{
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
    stablehlo.return %b, %b : tensor<3xf32>, tensor<3xf32>
  }} : (tensor<2x3xf32>, tensor<{1}>) -> (tensor<2x3xf32>, tensor<{1}>)
  return
}}"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("func.func private @f() -> !stablehlo.nothing", "no type of StableHLO"),
        ("func.func private @f() -> !stablehlo.future<i32>", "the types of a future are tensors"),
        ("func.func private @f() -> !stablehlo.future<tensor<2xi32>, tensor<f32>>", ""),
        ("module attributes {a.b = #stablehlo.dot<lhs_batching_dimensions = [0], lhs_batching_dimensions = [0]>} {}",
         "expected one of the fields"),
        ("module attributes {a.b = #stablehlo.gather<offset_dims = [0], index_vector_dim = 1,>} {}", ""),
        ("module attributes {a.b = #stablehlo.gather<offset_dims = 0>} {}", "expected '['"),
        ("module attributes {a.b = #stablehlo.conv<[b, 0, f]x[i, o, 1]->[b, 0, f]>} {}", "not numbered 0, 1"),
        ("func.func private @f(tensor<?xf32, #stablehlo.bounds<4, 4>>)", "2 bounds for 1 dimensions"),
        ("func.func private @f(tensor<4xf32, #stablehlo.bounds<4>>)", "only a ? can have a bound"),
        ('func.func @f() { stablehlo.custom_call @g() {backend_config = "a" : tensor<3xf32>} : () -> () return }',
         "a string with a type"),
        ("func.func private @f(tensor<4x!quant.uniform<si8:f32, 1.0>>)", "is no quantized type"),
        ("func.func private @f(tensor<4x!quant.any<i8:f32>>)", "is not supported"),
        (SCAN.format("inits (%y)", "3xf32"), ""),
        (SCAN.format("inits (%y)", "2x3xf32"), "for the init 1 of type tensor<2x3xf32>"),
        (SCAN.format("inits (%y)", "3xf32").replace("(%x)", "(%y)"), "for the input 0 of type tensor<3xf32>"),
    ],
)  # fmt: skip
def test_types_and_attributes(text: str, message: str):
    if not message:
        parse(text)
        return
    with pytest.raises(Error) as e:
        parse(text)
    assert message in str(e.value)


@pytest.mark.parametrize(
    ("t", "rule"),
    [
        ("3x!quant.uniform<i8<-9:500>:f32, 0.5>", "C3"),
        ("3x!quant.uniform<i8:f32, -0.5>", "C5"),
        ("3x!quant.uniform<i8:f16, 100000.0>", "C6"),
        ("3x!quant.uniform<i8:f16, 1.0e-9>", "C6"),
        ("3x!quant.uniform<i8<-9:9>:f32, 0.5:10>", "C7"),
        ("3x!quant.uniform<i8:f32, 0.5:128>", "C8"),
        ("3x!quant.uniform<i8:f32:-1, {0.5}>", "C11"),
        ("3x!quant.uniform<i8:f32:1, {0.5}>", "C12"),
        ("3x!quant.uniform<i8:f32:0, {0.5, 0.25}>", "C13"),
    ],
)
def test_quantized_element_types(t: str, rule: str):
    e = refusal(Base("stablehlo.optimization_barrier", [t], result=t), {})
    assert getattr(e, "rule", None) == rule, e
