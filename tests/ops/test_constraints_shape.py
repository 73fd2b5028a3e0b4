"""Each numbered constraint of the ops that move, cut and index elements, and of dot_general, is refused by name."""

from __future__ import annotations

from typing import Any

import pytest
from constraints import Base, check_case, each_case

_PRECISION = "#stablehlo<precision DEFAULT>"


def _algorithm(lhs: int = 1, rhs: int = 1, primitive: int = 1) -> str:
    return (
        "#stablehlo.dot_algorithm<lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32, "
        f"lhs_component_count = {lhs}, rhs_component_count = {rhs}, num_primitive_operations = {primitive}, "
        "allow_imprecise_accumulation = false>"
    )


GATHER: dict[str, Any] = {
    "offset_dims": [2], "collapsed_slice_dims": [1], "operand_batching_dims": [0],
    "start_indices_batching_dims": [0], "start_index_map": [1], "index_vector_dim": 2, "slice_sizes": [1, 1, 4],
}  # fmt: skip

BASES: list[Base] = [
    Base("stablehlo.iota", [], {"iota_dimension": 1}, "2x3xi32", cases=[
        ("C1", {"iota_dimension": 2}), ("C1", {"iota_dimension": -1}),
    ]),
    Base("stablehlo.broadcast_in_dim", ["1x3xf32"], {"broadcast_dimensions": [2, 1]}, "2x3x4xf32", cases=[
        ("C1", {"result": "2x3x4xf64"}), ("C2", {"broadcast_dimensions": [1]}),
        ("C3", {"broadcast_dimensions": [3, 1]}), ("C3", {"broadcast_dimensions": [-1, 1]}),
        ("C4", {"broadcast_dimensions": [1, 1]}), ("C5", {"broadcast_dimensions": [1, 2]}), ("C5", {0: "2x3xf32"}),
    ]),
    Base("stablehlo.reshape", ["2x3xf32"], result="6xf32", cases=[
        ("C1", {"result": "6xi32"}), ("C2", {"result": "5xf32"}), ("C2", {"result": "f32"}),
    ]),
    Base("stablehlo.transpose", ["2x3x4xf32"], {"permutation": [2, 0, 1]}, "4x2x3xf32", cases=[
        ("C1", {"result": "4x2x3xf64"}), ("C2", {"permutation": [0, 1]}), ("C2", {"permutation": [0, 0, 1]}),
        ("C2", {"permutation": [0, 1, 3]}), ("C3", {"result": "2x4x3xf32"}),
    ]),
    Base("stablehlo.reverse", ["2x3xf32"], {"dimensions": [1]}, "2x3xf32", cases=[
        ("C1", {"result": "3x2xf32"}), ("C1", {"result": "2x3xi32"}), ("C2", {"dimensions": [1, 1]}),
        ("C3", {"dimensions": [2]}), ("C3", {"dimensions": [-1]}),
    ]),
    Base("stablehlo.slice", ["4x6xf32"],
         {"start_indices": [1, 0], "limit_indices": [3, 6], "strides": [1, 2]}, "2x3xf32", cases=[
        ("C1", {"result": "2x3xf64"}), ("C2", {"strides": [1]}), ("C2", {"start_indices": [1]}),
        ("C2", {"limit_indices": [3, 6, 1]}), ("C3", {"start_indices": [-1, 0]}), ("C3", {"limit_indices": [3, 7]}),
        ("C3", {"start_indices": [4, 0]}), ("C4", {"strides": [1, 0]}), ("C4", {"strides": [-1, 2]}),
        ("C5", {"result": "2x4xf32"}), ("C3", {0: "4x?xf32, #stablehlo.bounds<?, 5>"}),
    ]),
    Base("stablehlo.dynamic_slice", ["4x6xf32", "i32", "i32"], {"slice_sizes": [2, 6]}, "2x6xf32", cases=[
        ("C1", {"result": "2x6xf64"}), ("C2", {"slice_sizes": [2]}), ("C2", {3: "i32"}), ("C3", {2: "i64"}),
        ("C3", {2: "1xi32"}), ("C4", {"slice_sizes": [5, 6]}), ("C4", {"slice_sizes": [-1, 6]}),
        ("C5", {"result": "2x5xf32"}),
    ]),
    Base("stablehlo.dynamic_update_slice", ["4x6xf32", "2x3xf32", "i32", "i32"], {}, "4x6xf32", cases=[
        ("C1", {"result": "4x5xf32"}), ("C1", {"result": "4x6xf64"}), ("C2", {1: "2x3xf64"}), ("C3", {1: "2xf32"}),
        ("C4", {4: "i32"}), ("C5", {3: "i64"}), ("C6", {1: "5x3xf32"}),
    ]),
    Base("stablehlo.concatenate", ["2x3xf32", "2x1xf32"], {"dimension": 1}, "2x4xf32", cases=[
        ("C1", {1: "2x1xf64"}), ("C2", {1: "3x1xf32"}), ("C2", {1: "2xf32"}), ("C4", {"dimension": 2}),
        ("C4", {"dimension": -1}), ("C5", {"result": "2x4xf64"}), ("C6", {"result": "2x5xf32"}),
    ]),
    Base("stablehlo.concatenate", [], {"dimension": 0}, "2xf32", cases=[("C3", {})]),
    Base("stablehlo.pad", ["2x3xf32", "f32"],
         {"edge_padding_low": [0, 1], "edge_padding_high": [1, -1], "interior_padding": [1, 0]}, "4x3xf32", cases=[
        ("C1", {1: "f64"}), ("C1", {1: "1xf32"}), ("C1", {"result": "4x3xf64"}), ("C2", {"edge_padding_low": [0]}),
        ("C2", {"edge_padding_high": [1, -1, 0]}), ("C2", {"interior_padding": []}),
        ("C3", {"interior_padding": [1, -1]}), ("C4", {"result": "4x4xf32"}), ("C4", {"edge_padding_high": [1, -9]}),
        ("C4", {0: "2x?xf32, #stablehlo.bounds<?, 2>", "edge_padding_high": [1, -9]}),
    ]),
    Base("stablehlo.get_dimension_size", ["2x3xf32"], {"dimension": 1}, "i32", cases=[
        ("C1", {"dimension": 2}), ("C1", {"dimension": -1}), ("C1", {0: "f32"}),
    ]),
    Base("stablehlo.get_tuple_element", ["tuple<tensor<f32>, tensor<i32>>"], {"index": "1 : i32"}, "i32", cases=[
        ("C1", {"index": "2 : i32"}), ("C1", {"index": "-1 : i32"}), ("C2", {"result": "f32"}),
        ("C2", {"result": "2xi32"}),
    ]),
    Base("stablehlo.tuple", ["f32", "i32"], {}, "tuple<tensor<f32>, tensor<i32>>", cases=[
        ("C1", {"result": "tuple<tensor<f32>>"}), ("C1", {"result": "tuple<tensor<f32>, tensor<f32>>"}),
    ]),
    Base("stablehlo.optimization_barrier", ["f32", "i32"], {}, ["f32", "i32"], cases=[
        ("C1", {"results": ["f32", "f32"]}), ("C1", {"results": ["f32", "2xi32"]}), ("C1", {"results": ["f32"]}),
    ]),
    Base("stablehlo.constant", [], {"value": "dense<1> : tensor<2xi32>"}, "2xi32", cases=[
        ("C1", {"result": "3xi32"}), ("C1", {"result": "2xi64"}),
    ]),
    Base("stablehlo.gather", ["2x3x4xf32", "2x5x1xi32"], GATHER, "2x5x4xf32", cases=[
        ("C1", {"offset_dims": [1, 2]}), ("C1", {"operand_batching_dims": [], "start_indices_batching_dims": []}),
        ("C2", {"index_vector_dim": 4}), ("C2", {"index_vector_dim": -1}), ("C3", {"start_index_map": [1, 2]}),
        ("C3", {1: "2x5x2xi32"}), ("C4", {"offset_dims": [2, 1], "collapsed_slice_dims": []}),
        ("C4", {"offset_dims": [2, 2], "collapsed_slice_dims": []}), ("C5", {"offset_dims": [3]}),
        ("C5", {"offset_dims": [-1]}), ("C6", {"collapsed_slice_dims": [0]}),
        ("C7", {"collapsed_slice_dims": [2, 1], "offset_dims": []}), ("C8", {"collapsed_slice_dims": [3]}),
        ("C9", {"slice_sizes": [1, 2, 4]}), ("C11", {"operand_batching_dims": [3]}),
        ("C10", {"operand_batching_dims": [1, 0], "collapsed_slice_dims": [], "start_indices_batching_dims": [0, 1]}),
        ("C12", {"slice_sizes": [2, 1, 4]}), ("C14", {"start_indices_batching_dims": [3]}),
        ("C13", {"operand_batching_dims": [0, 1], "collapsed_slice_dims": [], "start_indices_batching_dims": [0, 0]}),
        ("C15", {"start_indices_batching_dims": [2]}), ("C16", {"start_indices_batching_dims": []}),
        ("C17", {"start_indices_batching_dims": [1]}), ("C18", {"start_index_map": [0]}),
        ("C18", {"start_index_map": [1, 1], 1: "2x5x2xi32"}), ("C19", {"start_index_map": [3]}),
        ("C20", {"slice_sizes": [1, 1]}), ("C21", {"slice_sizes": [1, 1, 5]}), ("C21", {"slice_sizes": [1, 1, -1]}),
        ("C22", {"result": "2x5x3xf32"}), ("C22", {"result": "2x5xf32"}), ("C23", {"result": "2x5x4xf64"}),
    ]),
    Base("stablehlo.dot_general", ["5x2x3xf32", "4x3x5xf32"], {
        "lhs_batching_dimensions": [0], "rhs_batching_dimensions": [2],
        "lhs_contracting_dimensions": [2], "rhs_contracting_dimensions": [1],
    }, "5x2x4xf32", cases=[
        ("C1", {"rhs_batching_dimensions": []}), ("C2", {"lhs_contracting_dimensions": []}),
        ("C3", {"lhs_batching_dimensions": [2]}), ("C4", {"rhs_batching_dimensions": [1]}),
        ("C5", {"lhs_batching_dimensions": [3]}), ("C6", {"lhs_contracting_dimensions": [-1]}),
        ("C7", {"rhs_batching_dimensions": [3]}), ("C8", {"rhs_contracting_dimensions": [7]}),
        ("C9", {1: "4x3x6xf32"}), ("C10", {1: "4x2x5xf32"}),
        ("C11", {"precision_config": f"[{', '.join([_PRECISION] * 3)}]"}),
        ("C12", {"result": "5x4x2xf32"}), ("C12", {"result": "2x4xf32"}), ("C13", {1: "4x3x5xi32"}),
        ("C13", {1: "4x3x5xf64"}), ("C13", {1: "4x3x5xbf16"}), ("C13", {0: "5x2x3xf8E5M2"}),
        ("C13", {0: "5x2x3xui8", 1: "4x3x5xi8"}), ("C13", {0: "5x2x3xi8", 1: "4x3x5xi32"}),
        ("", {0: "5x2x3xf8E5M2", 1: "4x3x5xf8E4M3FN"}), ("C13", {0: "5x2x3xf8E5M2", 1: "4x3x5xf4E2M1FN"}),
        ("", {1: "4x3x5xbf16", "algorithm": _algorithm()}), ("C13", {1: "4x3x5xi32", "algorithm": _algorithm()}),
        ("C21", {"algorithm": _algorithm(), "precision_config": f"[#stablehlo<precision HIGHEST>, {_PRECISION}]"}),
        ("C22", {"algorithm": _algorithm(lhs=0)}), ("C23", {"algorithm": _algorithm(rhs=-1)}),
        ("C24", {"algorithm": _algorithm(primitive=0)}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("base", "rule", "changes"), each_case(BASES))
def test_constraints(base: Base, rule: str, changes: dict[Any, Any]):
    check_case(base, rule, changes)
