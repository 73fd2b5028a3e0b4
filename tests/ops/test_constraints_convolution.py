"""Each numbered constraint of convolution, batch normalization, composite and their like is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from constraints import Base, check_case, each_case

from hilo.errors import VerifyError
from hilo.formats.mlir_text import parse

_PRECISION = "#stablehlo<precision DEFAULT>"


def _spatial(name: str, lengths: str, positive: str) -> list[tuple[str, dict[Any, Any]]]:
    values = [(lengths, [1]), (lengths, [1, 1, 1]), (positive, [0, 1]), (positive, [1, -1])]
    return [(rule, {name: v}) for rule, v in values]


def _dims(side: str, named: tuple[str, str], lengths: str, unique: str) -> list[tuple[str, dict[Any, Any]]]:
    """What is wrong with one side's dimension numbers."""
    spatial = f"{side}_spatial_dimensions"
    return [
        (lengths, {spatial: [1]}), (lengths, {spatial: []}), (unique, {spatial: [1, 1]}), (unique, {spatial: [1, 4]}),
        (unique, {named[0]: 1}), (unique, {named[1]: 4}), (unique, {named[0]: -1}),
    ]  # fmt: skip


CONVOLUTION = Base("stablehlo.convolution", ["2x6x7x4xf32", "3x2x4x6xf32"], {
    "window_strides": [1, 2], "padding": [[0, 0], [1, 0]], "lhs_dilation": [1, 1], "rhs_dilation": [1, 1],
    "window_reversal": [False, False], "feature_group_count": 1, "batch_group_count": 1,
    "precision_config": f"[{_PRECISION}, {_PRECISION}]",
    "input_batch_dimension": 0, "input_feature_dimension": 3, "input_spatial_dimensions": [1, 2],
    "kernel_input_feature_dimension": 2, "kernel_output_feature_dimension": 3, "kernel_spatial_dimensions": [0, 1],
    "output_batch_dimension": 0, "output_feature_dimension": 3, "output_spatial_dimensions": [1, 2],
}, "2x4x4x6xf32", cases=[
    ("C1", {1: "3x2x4xf32"}), *_spatial("window_strides", "C2", "C3"),
    *[("C4", {"padding": f"dense<0> : tensor<{s}xi64>"}) for s in ("2", "1x2", "2x3", "2x2x2")],
    *_spatial("lhs_dilation", "C5", "C6"), *_spatial("rhs_dilation", "C7", "C8"),
    ("C9", {"window_reversal": [True]}), ("C10", {"batch_group_count": 3}), ("C11", {"feature_group_count": 3}),
    *_dims("input", ("input_batch_dimension", "input_feature_dimension"), "C12", "C13"),
    ("C14", {1: "3x2x5x6xf32"}), ("C14", {"feature_group_count": 2}),
    ("C15", {"batch_group_count": 2, 1: "3x2x4x5xf32"}), ("C16", {"feature_group_count": 4, 1: "3x2x1x6xf32"}),
    *_dims("kernel", ("kernel_input_feature_dimension", "kernel_output_feature_dimension"), "C17", "C18"),
    *_dims("output", ("output_batch_dimension", "output_feature_dimension"), "C19", "C20"),
    ("C21", {"feature_group_count": 0}), ("C22", {"batch_group_count": -1}),
    ("C23", {"feature_group_count": 2, "batch_group_count": 2}),
    ("C24", {"precision_config": f"[{', '.join([_PRECISION] * 3)}]"}), ("C25", {"result": "2x4x5x6xf32"}),
    ("C25", {"result": "1x4x4x6xf32"}), ("C25", {"result": "2x4x4x5xf32"}), ("C26", {"result": "2x4x4xf32"}),
    ("C27", {1: "3x2x4x6xf64"}), ("C27", {1: "3x2x4x6xi32"}), ("C27", {"result": "2x4x4x6xi32"}),
])  # fmt: skip

_NORM: dict[str, Any] = {"epsilon": "0.001 : f32", "feature_index": 1}


def _vectors(rules: dict[int, str]) -> list[tuple[str, dict[Any, Any]]]:
    """What is wrong with the operands that hold one number for each feature."""
    return [(rule, {i: t}) for i, rule in rules.items() for t in ("4xf32", "f32", "3x1xf32")]


_NORM_CASES: list[tuple[str, dict[Any, Any]]] = [
    ("C1", {"feature_index": 2}), ("C1", {"feature_index": -1}), ("C2", {1: "3xf64"}), ("C2", {2: "3xf16"}),
]  # fmt: skip
NORMS: list[Base] = [
    Base("stablehlo.batch_norm_inference", ["2x3xf32", *["3xf32"] * 4], _NORM, "2x3xf32", cases=[
        *_NORM_CASES, *_vectors({1: "C3", 2: "C4", 3: "C5", 4: "C6"}), ("C7", {"result": "3x2xf32"}),
        ("C7", {"result": "2x3xf64"}),
    ]),
    Base("stablehlo.batch_norm_training", ["2x3xf32", *["3xf32"] * 2], _NORM, ["2x3xf32", "3xf32", "3xf32"], cases=[
        *_NORM_CASES, *_vectors({1: "C3", 2: "C4"}), ("C7", {"results": ["3x2xf32", "3xf32", "3xf32"]}),
    ]),
    Base("stablehlo.batch_norm_grad", ["2x3xf32", *["3xf32"] * 3, "2x3xf32"], _NORM, ["2x3xf32", "3xf32", "3xf32"],
         cases=[
        *_NORM_CASES, ("C2", {4: "2x3xf64"}), ("C3", {4: "2x4xf32"}), ("C3", {4: "2xf32"}),
        *_vectors({2: "C4", 3: "C4"}), ("C5", {1: "4xf32", 2: "4xf32", 3: "4xf32"}),
        ("C3", {"results": ["2x4xf32", "3xf32", "3xf32"]}), ("C2", {"results": ["2x3xf64", "3xf32", "3xf32"]}),
    ]),
]  # fmt: skip
TOP_K = Base("chlo.top_k", ["2x5xf32"], {"k": 3}, ["2x3xf32", "2x3xi32"], cases=[
    ("C1", {0: "f32"}), ("C2", {"k": -1}), ("C3", {"k": 6}),
])  # fmt: skip
LINALG: list[Base] = [
    Base("stablehlo.cholesky", ["2x3x3xf32"], {"lower": True}, "2x3x3xf32", cases=[
        ("C1", {"result": "2x3x4xf32"}), ("C1", {"result": "2x3x3xf64"}), ("C2", {0: "3xf32"}),
        ("C3", {0: "2x3x4xf32"}),
    ]),
    *(Base("stablehlo.fft", ["2x3x4xcomplex<f32>"], {
        "fft_type": f"#stablehlo<fft_type {kind}>", "fft_length": [3, 4],
    }, "2x3x4xcomplex<f32>", cases=[
        ("C1", {0: "4xcomplex<f32>"}), ("C2", {0: "2x3x4xf32"}), ("C2", {"result": "2x3x4xcomplex<f64>"}),
        ("C3", {"fft_length": []}), ("C3", {0: "1x2x3x4xcomplex<f32>", "fft_length": [1, 2, 3, 4]}),
        ("C5", {"result": "2x3x3xcomplex<f32>"}),
    ]) for kind in ("FFT", "IFFT")),
    Base("stablehlo.fft", ["3x4xf32"], {"fft_type": "#stablehlo<fft_type RFFT>", "fft_length": [4]},
         "3x3xcomplex<f32>", cases=[
        ("C2", {0: "3x4xcomplex<f32>"}), ("C2", {"result": "3x3xf32"}), ("C4", {"fft_length": [5]}),
        ("C5", {"result": "3x4xcomplex<f32>"}),
    ]),
    Base("stablehlo.fft", ["3x3xcomplex<f32>"], {"fft_type": "#stablehlo<fft_type IRFFT>", "fft_length": [4]},
         "3x4xf32", cases=[
        ("C2", {0: "3x3xf32"}), ("C2", {"result": "3x4xcomplex<f32>"}), ("C5", {"fft_length": [7]}),
        ("C5", {"result": "3x3xf32"}),
    ]),
    Base("stablehlo.triangular_solve", ["2x3x3xf32", "2x3x4xf32"], {
        "left_side": True, "lower": True, "unit_diagonal": False, "transpose_a": "#stablehlo<transpose NO_TRANSPOSE>",
    }, "2x3x4xf32", cases=[
        ("C1", {1: "2x3x4xf64"}), ("C2", {1: "3x4xf32"}), ("C2", {0: "3xf32", 1: "3xf32"}), ("C3", {0: "2x3x4xf32"}),
        ("C3", {1: "2x4x3xf32"}), ("C3", {1: "1x3x4xf32"}), ("C3", {"left_side": False}),
        ("C4", {"result": "2x4x3xf32"}), ("C4", {"result": "2x3x4xf64"}),
    ]),
]  # fmt: skip
BASES: list[Base] = [CONVOLUTION, *NORMS, TOP_K, *LINALG]


@pytest.mark.parametrize(("base", "rule", "changes"), each_case(BASES))
def test_constraints(base: Base, rule: str, changes: dict[Any, Any]):
    check_case(base, rule, changes)


COMPOSITE = """func.func @main(%x: tensor<f32>) -> {result} {{
  %0 = "stablehlo.composite"(%x) {{name = "{name}", decomposition = @{callee}}} : (tensor<f32>) -> {result}
  return %0 : {result}
}}
func.func private @f({parameters}) -> tensor<f32> {{
  %c = stablehlo.constant dense<1.0> : tensor<f32>
  return %c : tensor<f32>
}}
"""


@pytest.mark.parametrize(
    ("rule", "changes"),
    [
        ("", {}),
        ("C1", {"name": "no_dot"}), ("C1", {"name": "a."}), ("C1", {"name": "1.b"}), ("C1", {"name": ""}),
        ("C2", {"callee": "g"}),
        ("C3", {"parameters": ""}), ("C3", {"parameters": "%y: tensor<f64>"}),
        ("C3", {"parameters": "%y: tensor<f32>, %z: tensor<f32>"}),
        ("C4", {"result": "tensor<f64>"}), ("C4", {"result": "tensor<2xf32>"}),
    ],
)  # fmt: skip
def test_composite(rule: str, changes: dict[str, str]):
    fields = {"name": "my.op", "callee": "f", "parameters": "%y: tensor<f32>", "result": "tensor<f32>", **changes}
    if not rule:
        parse(COMPOSITE.format(**fields))
        return
    with pytest.raises(VerifyError) as e:
        parse(COMPOSITE.format(**fields))
    assert (e.value.rule, e.value.op) == (rule, "stablehlo.composite")
