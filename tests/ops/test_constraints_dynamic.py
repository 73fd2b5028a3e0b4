"""Each numbered constraint of the ops whose shapes are operands is refused by name, constant operands included."""

from __future__ import annotations

from typing import Any

import pytest
from constraints import Base, check_case, each_case
from test_constraints_convolution import CONVOLUTION
from test_constraints_shape import GATHER

from hilo.errors import VerifyError
from hilo.formats.mlir_text import parse

_CONV = {k: v for k, v in CONVOLUTION.attrs.items() if k != "padding"}
_GATHER = {k: v for k, v in GATHER.items() if k != "slice_sizes"}

BASES: list[Base] = [
    Base("stablehlo.dynamic_reshape", ["2x3xf32", "1xi32"], {}, "?xf32", cases=[
        ("C1", {"result": "?xi32"}), ("C2", {"result": "5xf32"}), ("C4", {1: "2xi32"}), ("C4", {1: "?xi32"}),
        ("C4", {1: "1xf32"}), ("C4", {1: "i32"}),
    ]),
    Base("stablehlo.dynamic_broadcast_in_dim", ["1x3xf32", "3xi64"], {
        "broadcast_dimensions": [2, 1], "known_expanding_dimensions": [0], "known_nonexpanding_dimensions": [1],
    }, "2x3x?xf32", cases=[
        ("C1", {"result": "2x3x4xf64"}), ("C2", {"broadcast_dimensions": [1]}),
        ("C3", {"broadcast_dimensions": [3, 1]}),
        ("C4", {"broadcast_dimensions": [1, 1]}), ("C5", {"broadcast_dimensions": [1, 0]}), ("C7", {1: "2xi64"}),
        ("C7", {1: "?xi64"}), ("C8", {"known_nonexpanding_dimensions": [0]}),
        ("C9", {"known_expanding_dimensions": [2]}), ("C10", {"known_nonexpanding_dimensions": [-1]}),
    ]),
    Base("stablehlo.dynamic_iota", ["2xi32"], {"iota_dimension": 1}, "?x3xf32", cases=[
        ("C1", {"iota_dimension": 2}), ("C2", {0: "3xi32"}), ("C2", {0: "?xi32"}),
    ]),
    Base("stablehlo.dynamic_pad", ["2x3xf32", "f32", "2xi32", "2xi32", "2xi32"], {}, "?x?xf32", cases=[
        ("C1", {1: "f64"}), ("C1", {"result": "?x?xf64"}), ("C2", {2: "3xi32"}), ("C2", {3: "2xi64"}),
        ("C2", {4: "2xf32"}), ("C4", {"result": "?xf32"}),
    ]),
    Base("stablehlo.real_dynamic_slice", ["5x9xf32", "2xi32", "2xi32", "2xi32"], {}, "?x?xf32", cases=[
        ("C1", {"result": "?x?xf64"}), ("C1", {"result": "?xf32"}), ("I2", {1: "3xi32"}),
    ]),
    Base("stablehlo.dynamic_gather", ["2x3x4xf32", "2x5x1xi32", "3xi32"], _GATHER, "2x5x?xf32", cases=[
        ("C1", {"offset_dims": [1, 2]}), ("C2", {"index_vector_dim": 4}), ("C3", {"start_index_map": [1, 2]}),
        ("C4", {"offset_dims": [2, 1], "collapsed_slice_dims": []}), ("C5", {"offset_dims": [3]}),
        ("C6", {"collapsed_slice_dims": [0]}), ("C7", {"collapsed_slice_dims": [2, 1], "offset_dims": []}),
        ("C8", {"collapsed_slice_dims": [3]}), ("C11", {"operand_batching_dims": [3]}),
        ("C10", {"operand_batching_dims": [1, 0], "collapsed_slice_dims": [], "start_indices_batching_dims": [0, 1]}),
        ("C13", {"operand_batching_dims": [0, 1], "collapsed_slice_dims": [], "start_indices_batching_dims": [0, 0]}),
        ("C14", {"start_indices_batching_dims": [3]}), ("C15", {"start_indices_batching_dims": [2]}),
        ("C16", {"start_indices_batching_dims": []}), ("C17", {"start_indices_batching_dims": [1]}),
        ("C18", {"start_index_map": [0]}), ("C19", {"start_index_map": [3]}), ("C20", {2: "2xi32"}),
        ("C21", {"result": "2x5x5xf32"}), ("C22", {"result": "2x4x?xf32"}), ("C22", {"result": "2x5xf32"}),
        ("C23", {"result": "2x5x?xf64"}),
    ]),
    Base("stablehlo.dynamic_conv", ["2x6x7x4xf32", "3x2x4x6xf32", "2x2xi64"], _CONV, "2x?x?x6xf32", cases=[
        *[(rule, c) for rule, c in CONVOLUTION.cases if rule not in ("C4", "C25")], ("C4", {2: "1x2xi64"}),
        ("C4", {2: "4xi64"}), ("C4", {2: "2x2xf32"}), ("C25", {"result": "1x?x?x6xf32"}),
        ("C25", {"result": "2x?x?x5xf32"}),
    ]),
    Base("stablehlo.set_dimension_size", ["2x3xf32", "i32"], {"dimension": 1}, "2x?xf32", cases=[
        ("C1", {"dimension": 2}), ("C1", {"dimension": -1}), ("C2", {"result": "3x?xf32"}),
        ("C2", {"result": "2x?xf64"}),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("base", "rule", "changes"), each_case(BASES))
def test_constraints(base: Base, rule: str, changes: dict[Any, Any]):
    check_case(base, rule, changes)


def _constants(texts: str) -> str:
    values = [t.strip() for t in texts.split(";")]
    return "\n".join(
        f"%c{i} = stablehlo.constant dense<{v}> : tensor<{v.count(',') + 1}xi32>" for i, v in enumerate(values)
    )


GATHERED = "tensor<?x3x4xf32>, tensor<2x5x1xi32>"
GATHER_DIMS = f"dimension_numbers = #stablehlo.gather<{', '.join(f'{k} = {v}' for k, v in _GATHER.items())}>"
VALUES = [
    ("dynamic_reshape", "[6]", "tensor<2x3xf32>", "tensor<?xf32>", "", "dynamic_reshape", ""),
    ("dynamic_reshape", "[5]", "tensor<2x3xf32>", "tensor<?xf32>", "", "dynamic_reshape", "C2"),
    ("dynamic_reshape", "[6]", "tensor<2x?xf32>", "tensor<4xf32>", "", "dynamic_reshape", "C4"),
    ("dynamic_reshape", "[-6]", "tensor<2x?xf32>", "tensor<?xf32>", "", "dynamic_reshape", "C4"),
    ("broadcast", "[3, 4]", "tensor<4xf32>", "tensor<?x?xf32>", "broadcast_dimensions = array<i64: 1>",
     "dynamic_broadcast_in_dim", ""),
    ("broadcast", "[3, 5]", "tensor<4xf32>", "tensor<?x?xf32>", "broadcast_dimensions = array<i64: 1>",
     "dynamic_broadcast_in_dim", "C5"),
    ("broadcast", "[2, 4]", "tensor<4xf32>", "tensor<3x4xf32>", "broadcast_dimensions = array<i64: 1>",
     "dynamic_broadcast_in_dim", "C7"),
    ("iota", "[2, 3]", "", "tensor<2x?xf32>", "iota_dimension = 0 : i64", "dynamic_iota", ""),
    ("iota", "[2, 3]", "", "tensor<4x?xf32>", "iota_dimension = 0 : i64", "dynamic_iota", "C2"),
    ("iota", "[2, -3]", "", "tensor<2x?xf32>", "iota_dimension = 0 : i64", "dynamic_iota", "C2"),
    ("slice", "[1]; [5]; [2]", "tensor<6xf32>", "tensor<?xf32>", "", "real_dynamic_slice", ""),
    ("slice", "[1]; [7]; [2]", "tensor<6xf32>", "tensor<?xf32>", "", "real_dynamic_slice", "C3"),
    ("slice", "[1]; [5]; [0]", "tensor<6xf32>", "tensor<?xf32>", "", "real_dynamic_slice", "C4"),
    ("slice", "[1]; [5]; [2]", "tensor<6xf32>", "tensor<3xf32>", "", "real_dynamic_slice", "C5"),
    ("pad", "[1]; [0]; [2]", "tensor<3xf32>, tensor<f32>", "tensor<?xf32>", "", "dynamic_pad", ""),
    ("pad", "[1]; [0]; [-1]", "tensor<3xf32>, tensor<f32>", "tensor<?xf32>", "", "dynamic_pad", "C3"),
    ("pad", "[1]; [0]; [2]", "tensor<3xf32>, tensor<f32>", "tensor<9xf32>", "", "dynamic_pad", "C4"),
    ("pad", "[-4]; [0]; [0]", "tensor<3xf32>, tensor<f32>", "tensor<?xf32>", "", "dynamic_pad", "C4"),
    ("gather", "[1, 1, 4]", GATHERED, "tensor<2x5x?xf32>", GATHER_DIMS, "dynamic_gather", ""),
    ("gather", "[1, 2, 4]", GATHERED, "tensor<2x5x?xf32>", GATHER_DIMS, "dynamic_gather", "C9"),
    ("gather", "[2, 1, 4]", GATHERED, "tensor<2x5x?xf32>", GATHER_DIMS, "dynamic_gather", "C12"),
    ("gather", "[1, 1, 5]", GATHERED, "tensor<2x5x?xf32>", GATHER_DIMS, "dynamic_gather", "C21"),
    ("gather", "[1, 1, -1]", GATHERED, "tensor<2x5x?xf32>", GATHER_DIMS, "dynamic_gather", "C21"),
    ("gather", "[1, 1, 3]", GATHERED, "tensor<2x?x4xf32>", GATHER_DIMS, "dynamic_gather", "C22"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "constants", "operands", "result", "attrs", "op", "rule"), VALUES)
def test_constant_operands(what: str, constants: str, operands: str, result: str, attrs: str, op: str, rule: str):
    given = [t for t in operands.split(", ") if t]
    names = [f"%v{i}" for i in range(len(given))]
    sizes = [f"%c{i}" for i in range(constants.count(";") + 1)]
    types = [*given, *(f"tensor<{c.count(',') + 1}xi32>" for c in constants.split(";"))]
    text = f"""func.func @main({", ".join(f"{n}: {t}" for n, t in zip(names, given, strict=True))}) -> {result} {{
      {_constants(constants)}
      %r = "stablehlo.{op}"({", ".join([*names, *sizes])}) {{{attrs}}} : ({", ".join(types)}) -> {result}
      return %r : {result} }}"""
    if not rule:
        parse(text)
        return
    with pytest.raises(VerifyError) as e:
        parse(text)
    assert (e.value.rule, e.value.op) == (rule, f"stablehlo.{op}"), e.value
