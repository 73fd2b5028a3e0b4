"""Each numbered constraint of the elementwise ops is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from constraints import DROP, Base, check_case, each_case, refusal

from hilo.errors import VerifyError


def _unary(names: str, dtype: str) -> list[Base]:
    shape = ("C1", {"result": f"4x{dtype}"})
    return [Base(f"stablehlo.{n}", [f"3x{dtype}"], result=f"3x{dtype}", cases=[shape]) for n in names.split()]


def _binary(names: str, dtype: str, other: str) -> list[Base]:
    return [
        Base(f"stablehlo.{n}", [f"2x3x{dtype}"] * 2, result=f"2x3x{dtype}", cases=[
            ("C1", {1: f"2x4x{dtype}"}), ("C1", {1: f"3x{dtype}"}), ("C1", {0: f"2x3x{other}"}),
            ("C1", {"result": f"2x3x{other}"}), ("C1", {"result": f"3x2x{dtype}"}),
            ("C1", {0: f"?x3x{dtype}, #stablehlo.bounds<1, ?>"}),
            ("C1", {"result": f"2x?x{dtype}, #stablehlo.bounds<?, 2>"}),
        ])
        for n in names.split()
    ]  # fmt: skip


BASES: list[Base] = [
    *_unary("cbrt ceil cosine exponential exponential_minus_one floor log log_plus_one logistic negate "
            "round_nearest_afz round_nearest_even rsqrt sign sine sqrt tan tanh", "f32"),
    *_unary("count_leading_zeros not popcnt", "i32"),
    *_binary("add atan2 divide maximum minimum multiply power remainder subtract", "f32", "f64"),
    *_binary("and or shift_left shift_right_arithmetic shift_right_logical xor", "i32", "ui32"),
    Base("stablehlo.abs", ["3xcomplex<f32>"], result="3xf32", cases=[
        ("C1", {"result": "4xf32"}), ("C2", {"result": "3xf64"}), ("C2", {"result": "3xcomplex<f32>"}),
    ]),
    Base("stablehlo.real", ["3xcomplex<f32>"], result="3xf32", cases=[
        ("C1", {"result": "4xf32"}), ("C2", {"result": "3xf64"}),
    ]),
    Base("stablehlo.imag", ["3xcomplex<f32>"], result="3xf32", cases=[
        ("C1", {"result": "3x1xf32"}), ("C2", {"result": "3xf16"}),
    ]),
    Base("stablehlo.is_finite", ["3xf32"], result="3xi1", cases=[("C1", {"result": "i1"})]),
    Base("stablehlo.complex", ["3xf32", "3xf32"], result="3xcomplex<f32>", cases=[
        ("C1", {1: "3xf64"}), ("C1", {1: "4xf32"}), ("C2", {"result": "4xcomplex<f32>"}),
        ("C3", {"result": "3xcomplex<f64>"}),
    ]),
    Base("stablehlo.convert", ["3xf32"], result="3xi8", cases=[("C1", {"result": "4xi8"})]),
    Base("stablehlo.bitcast_convert", ["3x4xi8"], result="3xi32", cases=[
        ("C1", {"result": "3x4xi32"}), ("C1", {"result": "2xi32"}), ("C1", {"result": "3x4x2xi2"}),
        ("C1", {"result": "3x3xui8"}), ("C2", {"result": "3xcomplex<f32>"}),
    ]),
    Base("stablehlo.reduce_precision", ["3xf32"], {"exponent_bits": 5, "mantissa_bits": 10}, "3xf32", cases=[
        ("C1", {"result": "3xf64"}), ("C2", {"exponent_bits": 0}), ("C3", {"mantissa_bits": -1}),
    ]),
    Base("stablehlo.compare", ["3xf32", "3xf32"],
         {"comparison_direction": "#stablehlo<comparison_direction LT>"}, "3xi1", cases=[
        ("C1", {1: "3xf64"}), ("C2", {1: "4xf32"}), ("C2", {"result": "4xi1"}),
        ("C3", {"compare_type": "#stablehlo<comparison_type SIGNED>"}),
        ("C3", {"compare_type": "#stablehlo<comparison_type UNSIGNED>"}),
        ("C3", {"compare_type": "#stablehlo<comparison_type FLOAT>", 0: "3xi32", 1: "3xi32"}),
        ("C3", {"compare_type": "#stablehlo<comparison_type SIGNED>", 0: "3xui32", 1: "3xui32"}),
    ]),
    Base("stablehlo.select", ["3xi1", "3xf32", "3xf32"], result="3xf32", cases=[
        ("C1", {0: "2xi1"}), ("C1", {0: "1x3xi1"}), ("C2", {2: "3xf64"}), ("C2", {2: "4xf32"}),
        ("C2", {"result": "3xf64"}), ("C2", {"result": "4xf32"}),
    ]),
    Base("stablehlo.clamp", ["f32", "3xf32", "3xf32"], result="3xf32", cases=[
        ("C1", {0: "4xf32"}), ("C2", {2: "4xf32"}), ("C2", {2: "1xf32"}), ("C3", {0: "f64"}), ("C3", {2: "3xi32"}),
        ("C4", {"result": "4xf32"}), ("C4", {"result": "3xf64"}),
    ]),
    Base("stablehlo.uniform_quantize", ["3xf32"], result="3x!quant.uniform<i8:f32, 0.5:3>", cases=[
        ("C1", {"result": "4x!quant.uniform<i8:f32, 0.5:3>"}), ("C2", {"result": "3x!quant.uniform<i8:f16, 0.5:3>"}),
    ]),
    Base("stablehlo.uniform_dequantize", ["3x!quant.uniform<i8:f32, 0.5:3>"], result="3xf32", cases=[
        ("C1", {"result": "4xf32"}), ("C2", {"result": "3xf16"}),
    ]),
    Base("chlo.next_after", ["3xf32", "3xf32"], result="3xf32", cases=[("C1", {1: "4xf32"})]),
]  # fmt: skip


@pytest.mark.parametrize(("base", "rule", "changes"), each_case(BASES))
def test_constraints(base: Base, rule: str, changes: dict[Any, Any]):
    check_case(base, rule, changes)


@pytest.mark.parametrize(
    ("op", "operands", "result"),
    [("add", ["f32"], "f32"), ("add", ["f32"] * 3, "f32"), ("select", ["i1", "f32"], "f32"), ("tanh", [], "f32")],
)
def test_wrong_numbers_of_operands(op: str, operands: list[str], result: str):
    e = refusal(Base(f"stablehlo.{op}", operands, result=result), {})
    assert e is not None
    assert "operand" in str(e) or "type" in str(e)


@pytest.mark.parametrize("op", ["floor", "tanh", "cosine"])
def test_element_types(op: str):
    e = refusal(Base(f"stablehlo.{op}", ["3xi32"], result="3xi32"), {})
    assert isinstance(e, VerifyError)
    assert e.rule == "I1"


def test_a_missing_attribute_is_named():
    base = next(b for b in BASES if b.op == "stablehlo.compare")
    e = refusal(base, {"comparison_direction": DROP})
    assert e is not None
    assert "comparison_direction" in str(e)


@pytest.mark.parametrize(
    ("operands", "attrs", "text"),
    [
        (["3xf32"], {}, "the op takes 2 operands, not 1"),
        (["3xf32"] * 3, {}, "the op takes 2 operands, not 3"),
        (["3xf32"] * 2, {"comparison_direction": DROP}, "attribute 'comparison_direction' is missing"),
        (["3xf32"] * 2, {"dimension": 1}, "the op has no attribute 'dimension'"),
    ],
)
def test_what_does_not_fit_is_named(operands: list[str], attrs: dict[Any, Any], text: str):
    lt = {"comparison_direction": "#stablehlo<comparison_direction LT>"}
    e = refusal(Base("stablehlo.compare", operands, lt, "3xi1"), attrs)
    assert isinstance(e, VerifyError)
    assert text in str(e)


@pytest.mark.parametrize(
    ("other", "hint"),
    [("3xf64", "stablehlo.convert"), ("f32", "broadcast_in_dim"), ("1xf32", "broadcast_in_dim"), ("4xf32", "")],
)
def test_hints(other: str, hint: str):
    e = refusal(Base("stablehlo.add", ["3xf32", other], result="3xf32"), {})
    assert isinstance(e, VerifyError)
    assert hint in str(e)
    assert bool(hint) == (";" in str(e))


def test_a_misspelled_op_has_a_hint():
    e = refusal(Base("stablehlo.exponental", ["3xf32"], result="3xf32"), {})
    assert "is stablehlo.exponential meant?" in str(e)
