"""Each numbered constraint of the ops with regions and windows is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from constraints import Base, check_case, combine, each_case, region

TWO = region(
    "a: f32, i: i32, b: f32, j: i32", "s: f32, k: i32",
    "%s = stablehlo.add %a, %b : tensor<f32>\n %k = stablehlo.add %i, %j : tensor<i32>",
)  # fmt: skip
TWO_F32 = region("a: f32, b: f32, c: f32, d: f32", "a: f32, b: f32")
NOTHING = region("a: f32, b: f32", "")
TUPLE = region(
    "a: f32, b: f32", "t: tuple<tensor<f32>>",
    '%t = "stablehlo.tuple"(%a) : (tensor<f32>) -> tuple<tensor<f32>>',
)  # fmt: skip
VECTORS = region("a: 2xf32, b: 2xf32", "a: 2xf32")
THREE = region("a: f32, b: f32, c: f32", "a: f32")
MIXED = region("a: f32, b: f64", "a: f32")
GREATER = region(
    "a: f32, b: f32", "c: i1", "%c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>"
)


def _body(rule: str, name: str = "body") -> list[tuple[str, dict[Any, Any]]]:
    """What is wrong with a region that combines f32."""
    regions = [NOTHING, TUPLE, VECTORS, THREE, MIXED, combine("i32"), combine("f16")]
    return [(rule, {name: r}) for r in regions]


def _ones(name: str, lengths: str, positive: str) -> list[tuple[str, dict[Any, Any]]]:
    """What is wrong with an attribute of one positive number for each of two axes."""
    values = [(lengths, [1]), (lengths, [1, 1, 1]), (positive, [1, 0]), (positive, [-1, 1])]
    return [(rule, {name: v}) for rule, v in values]


PADDING: list[Any] = ["dense<0> : tensor<2xi64>", "dense<0> : tensor<1x2xi64>", "dense<0> : tensor<2x3xi64>",
                      "dense<0> : tensor<2x2x2xi64>"]  # fmt: skip
SCATTER: dict[str, Any] = {
    "update_window_dims": [2], "inserted_window_dims": [1], "input_batching_dims": [0],
    "scatter_indices_batching_dims": [0], "scatter_dims_to_operand_dims": [1], "index_vector_dim": 2,
}  # fmt: skip

BASES: list[Base] = [
    Base("stablehlo.reduce", ["2x3xf32", "f32"], {"dimensions": [1]}, "2xf32", {"body": combine()}, [
        ("C2", {1: "f64"}), ("C3", {"body": TWO_F32}), ("C4", {"dimensions": [2]}), ("C4", {"dimensions": [-1]}),
        ("C5", {"dimensions": [1, 1]}), *_body("C6"), ("C7", {"result": "3xf32"}), ("C8", {"result": "2xf64"}),
    ]),
    Base("stablehlo.reduce", ["2x3xf32", "2x3xi32", "f32", "i32"], {"dimensions": [1]}, ["2xf32", "2xi32"],
         {"body": TWO}, [
        ("C1", {1: "2x4xi32"}), ("C3", {"results": ["2xf32", "2xi32", "2xi32"]}), ("C6", {"body": combine()}),
    ]),
    Base("stablehlo.reduce_window", ["4x6xf32", "f32"], {
        "window_dimensions": [2, 3], "window_strides": [2, 1], "base_dilations": [1, 2], "window_dilations": [1, 2],
        "padding": [[0, 0], [1, -1]],
    }, "2x7xf32", {"body": combine()}, [
        ("C1", {"body": TWO_F32}), ("C3", {1: "f64"}), *_ones("window_dimensions", "C4", "C5"),
        *_ones("window_strides", "C6", "C7"), *_ones("base_dilations", "C8", "C9"),
        *_ones("window_dilations", "C10", "C11"), *[("C12", {"padding": p}) for p in PADDING], *_body("C13"),
        ("C15", {"result": "2x6xf32"}), ("C16", {"result": "2x7xf64"}),
    ]),
    Base("stablehlo.reduce_window", ["4xf32", "4xi32", "f32", "i32"], {"window_dimensions": [2]}, ["3xf32", "3xi32"],
         {"body": TWO}, [
        ("C1", {"results": ["3xf32"]}), ("C2", {1: "5xi32"}), ("C15", {"results": ["3xf32", "4xi32"]}),
    ]),
    Base("stablehlo.select_and_scatter", ["4x6xf32", "2x3xf32", "f32"], {
        "window_dimensions": [2, 2], "window_strides": [2, 2], "padding": [[0, 0], [0, 0]],
    }, "4x6xf32", {"select": GREATER, "scatter": combine()}, [
        ("C1", {1: "2x3xf64"}), ("C2", {1: "2x2xf32"}), ("C3", {2: "f64"}), *_ones("window_dimensions", "C4", "C5"),
        *_ones("window_strides", "C6", "C7"), *[("C8", {"padding": p}) for p in PADDING],
        ("C9", {"select": combine()}), ("C9", {"select": NOTHING}), *_body("C10", "scatter"),
        ("C11", {"result": "6x4xf32"}), ("C12", {"result": "4x6xf64"}),
    ]),
    Base("stablehlo.scatter", ["2x3x4xf32", "2x5x1xi32", "2x5x4xf32"], SCATTER, "2x3x4xf32",
         {"update_computation": combine()}, [
        ("C2", {"inserted_window_dims": []}), ("C2", {"inserted_window_dims": [1, 2]}), ("C4", {2: "2x5xf32"}),
        ("C4", {2: "2x6x4xf32"}), ("C4", {2: "2x5x5xf32"}), ("C5", {"update_computation": TWO_F32}),
        ("C6", {2: "2x5x4xf64"}), ("C8", {"update_window_dims": [3]}), ("C8", {"update_window_dims": [-1]}),
        ("C9", {"inserted_window_dims": [0]}), ("C11", {"inserted_window_dims": [3]}),
        ("C13", {"input_batching_dims": [3]}), ("C15", {"scatter_indices_batching_dims": [3]}),
        ("C16", {"scatter_indices_batching_dims": [2]}), ("C17", {"scatter_indices_batching_dims": []}),
        ("C18", {"scatter_indices_batching_dims": [1]}), ("C19", {"scatter_dims_to_operand_dims": [1, 2]}),
        ("C20", {"scatter_dims_to_operand_dims": [0]}), ("C21", {"scatter_dims_to_operand_dims": [3]}),
        ("C22", {"index_vector_dim": 4}), ("C22", {"index_vector_dim": -1}), *_body("C23", "update_computation"),
        ("C24", {"result": "2x4x3xf32"}), ("C25", {"result": "2x3x4xf64"}),
    ]),
    Base("stablehlo.scatter", ["2x3x4xf32", "2x3x1xi32", "2x3xf32"], {
        "input_batching_dims": [0, 1], "scatter_indices_batching_dims": [0, 1], "update_window_dims": [],
        "inserted_window_dims": [2], "scatter_dims_to_operand_dims": [2], "index_vector_dim": 2,
    }, "2x3x4xf32", {"update_computation": combine()}, [
        ("C12", {"input_batching_dims": [1, 0]}), ("C14", {"scatter_indices_batching_dims": [0, 0]}),
    ]),
    Base("stablehlo.scatter", ["2x3x4xf32", "5x2xi32", "5x4xf32"], {
        "update_window_dims": [1], "inserted_window_dims": [0, 1], "scatter_dims_to_operand_dims": [0, 1],
        "index_vector_dim": 1,
    }, "2x3x4xf32", {"update_computation": combine()}, [
        ("C7", {"update_window_dims": [1, 0], "inserted_window_dims": [1], 2: "5x4x3xf32"}),
        ("C7", {"update_window_dims": [1, 1], "inserted_window_dims": [1], 2: "5x4x3xf32"}),
        ("C10", {"inserted_window_dims": [1, 0]}),
    ]),
    Base("stablehlo.scatter", ["3xf32", "3xi32", "5x1xi32", "5xf32", "5xi32"], {
        "inserted_window_dims": [0], "scatter_dims_to_operand_dims": [0], "index_vector_dim": 1,
    }, ["3xf32", "3xi32"], {"update_computation": TWO}, [
        ("C1", {1: "4xi32"}), ("C3", {4: "6xi32"}), ("C5", {"results": ["3xf32"]}),
    ]),
    Base("stablehlo.map", ["2x3xf32", "2x3xf32"], {"dimensions": [0, 1]}, "2x3xf32", {"computation": combine()}, [
        ("C1", {1: "3x2xf32"}), ("C1", {"result": "3x2xf32"}), ("C3", {"dimensions": [1, 0]}),
        ("C3", {"dimensions": [0]}), ("C4", {"computation": THREE}), ("C4", {"computation": TUPLE}),
        ("C4", {"computation": NOTHING}), ("C4", {"computation": VECTORS}), ("C4", {"computation": combine("f64")}),
        ("C4", {"result": "2x3xf64"}),
    ]),
    Base("stablehlo.map", [], {"dimensions": []}, "f32", {"computation": region(
        "", "c: f32", "%c = stablehlo.constant dense<1.0> : tensor<f32>")}, [("C2", {})]),
    Base("stablehlo.sort", ["3x4xf32"], {"dimension": 1}, "3x4xf32", {"comparator": GREATER}, [
        ("C2", {"result": "4x3xf32"}), ("C2", {"result": "3x4xf64"}), ("C4", {"dimension": 2}),
        ("C4", {"dimension": -3}), ("C5", {"comparator": combine()}), ("C5", {"comparator": NOTHING}),
        ("C5", {"comparator": THREE}),
    ]),
    Base("stablehlo.sort", [], {"dimension": 0}, "", {"comparator": GREATER}, [("C1", {})]),
    Base("stablehlo.sort", ["3xf32", "3xi32"], {"dimension": 0}, ["3xf32", "3xi32"], {"comparator": region(
        "a: f32, b: f32, i: i32, j: i32", "c: i1",
        "%c = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>")}, [
        ("C2", {"results": ["3xf32"]}), ("C3", {1: "4xi32"}), ("C5", {"comparator": GREATER}),
    ]),
    Base("stablehlo.while", ["f32", "i1"], {}, ["f32", "i1"], {
        "cond": region("x: f32, p: i1", "p: i1"), "body": region("x: f32, p: i1", "x: f32, p: i1"),
    }, [
        ("C1", {"cond": region("x: f32, p: i1", "x: f32")}), ("C1", {"cond": region("p: i1", "p: i1")}),
        ("C1", {"cond": region("x: f64, p: i1", "p: i1")}), ("C1", {"cond": region("x: f32, p: i1", "p: i1, p: i1")}),
        ("C2", {"body": region("x: f32, p: i1", "p: i1, x: f32")}), ("C2", {"body": region("x: f32", "x: f32")}),
        ("C2", {"body": region("x: f32, p: i1", "x: f32")}), ("C3", {"results": ["f64", "i1"]}),
        ("C3", {"results": ["2xf32", "i1"]}),
    ]),
    Base("stablehlo.if", ["i1"], {}, "i1", {
        "true_branch": region("", "p: i1", "%p = stablehlo.constant dense<true> : tensor<i1>"),
        "false_branch": region("", "p: i1", "%p = stablehlo.constant dense<false> : tensor<i1>"),
    }, [
        ("C1", {"true_branch": region("q: i1", "q: i1")}), ("C1", {"false_branch": region("q: i1", "q: i1")}),
        ("C2", {"false_branch": region("", "p: i8", "%p = stablehlo.constant dense<0> : tensor<i8>")}),
        ("C2", {"false_branch": region("", "")}), ("C3", {"result": "i8"}), ("C3", {"result": "2xi1"}),
        ("C3", {"results": ["i1", "i1"]}),
    ]),
    Base("stablehlo.case", ["i32"], {}, "i1", {
        "0": region("", "p: i1", "%p = stablehlo.constant dense<true> : tensor<i1>"),
        "1": region("", "p: i1", "%p = stablehlo.constant dense<false> : tensor<i1>"),
    }, [
        ("C2", {"1": region("q: i1", "q: i1")}), ("C3", {"1": region("", "")}),
        ("C3", {"1": region("", "p: i8", "%p = stablehlo.constant dense<0> : tensor<i8>")}),
        ("C4", {"result": "i8"}), ("C4", {"result": "2xi1"}),
    ]),
    Base("stablehlo.case", ["i32"], {}, "i1", {}, [("C1", {})]),
    Base("stablehlo.rng_bit_generator", ["2xui64"], {"rng_algorithm": "#stablehlo<rng_algorithm THREE_FRY>"},
         ["2xui64", "3xf32"], {}, [
        ("C1", {"results": ["3xui64", "3xf32"]}), ("C1", {"results": ["2xi64", "3xf32"]}),
        ("C1", {"results": ["2xui64"]}),
        ("C2", {0: "3xui64", "results": ["3xui64", "3xf32"]}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("base", "rule", "changes"), each_case(BASES))
def test_constraints(base: Base, rule: str, changes: dict[Any, Any]):
    check_case(base, rule, changes)
