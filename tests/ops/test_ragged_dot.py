"""chlo.ragged_dot: its three modes against plain loops, group sizes of every kind, what is refused, its text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hilo
from hilo.errors import Error
from hilo.formats.mlir_text import print_module
from hilo.ir.dtypes import f32, i32, i64
from hilo.ir.types import TensorType
from hilo.ops.ragged_dot import _NUMBERS, ragged_dot

FREE = """func.func @main(%x: tensor<200x5xf32>, %y: tensor<4x5x3xf32>, %n: tensor<4xi32>) -> tensor<200x3xf32> {
  %0 = "chlo.ragged_dot"(%x, %y, %n) {ragged_dot_dimension_numbers = #chlo.ragged_dot<
    lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1],
    rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>,
    precision_config = [#chlo<precision DEFAULT>, #chlo<precision HIGH>]}
    : (tensor<200x5xf32>, tensor<4x5x3xf32>, tensor<4xi32>) -> tensor<200x3xf32>
  return %0 : tensor<200x3xf32>
}"""


@pytest.mark.parametrize("sizes", [(50, 50, 50, 50), (0, 64, 0, 136), (199, 0, 0, 0), (0, 0, 0, 1), (64, 64, 64, 8),
                                   (-3, 10, 20, 500)])  # fmt: skip
def test_rows_are_multiplied_by_the_matrix_of_their_group(sizes: tuple[int, ...]) -> None:
    m = hilo.parse(FREE)
    assert hilo.parse(print_module(m))["main"] == m["main"]
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((200, 5), np.float32), rng.standard_normal((4, 5, 3), np.float32)
    y[2] = np.inf  # another group's numbers do not reach a row
    want, row = np.zeros((200, 3), np.float32), 0
    for g, n in enumerate(sizes):
        end = min(row + max(n, 0), 200)
        with np.errstate(invalid="ignore"):
            want[row:end] = x[row:end] @ y[g]
        row = end
    for got in (hilo.interpret(m, x, y, np.int32(sizes)), hilo.compile(m)(x, y, np.int32(sizes))):
        np.testing.assert_allclose(got[0] if isinstance(got, list) else got, want, rtol=1e-5, atol=1e-5)


def run(x: np.ndarray, y: np.ndarray, sizes: np.ndarray, numbers: Any, shape: tuple[int, ...]) -> list[np.ndarray]:
    from hilo.ir.interpret import interpret
    from hilo.ir.module import Function, Module, parameter, topological

    types = (TensorType(f32, x.shape), TensorType(f32, y.shape), TensorType(i64, sizes.shape))
    params = [parameter(i, t) for i, t in enumerate(types)]
    out = ragged_dot(*params, **dict(zip(_NUMBERS, numbers, strict=True)), type=TensorType(f32, shape))
    m = Module({"main": Function("main", params, topological([out], params), [out])})
    native = hilo.compile(m)(x, y, sizes)
    return [interpret(m, [x, y, sizes])[0], native if isinstance(native, np.ndarray) else native[0]]


def test_sizes_that_differ_by_batch() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((2, 9, 5), np.float32), rng.standard_normal((3, 2, 5, 4), np.float32)
    sizes = np.array([[2, 3, 4], [0, 8, 0]])
    want = np.zeros((2, 9, 4), np.float32)
    for b in range(2):
        row = 0
        for g, n in enumerate(sizes[b]):
            want[b, row : row + n] = x[b, row : row + n] @ y[g, b]
            row += n
    for got in run(x, y, sizes, ((0,), (1,), (2,), (2,), (1,), (0,)), want.shape):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("whole", [True, False])
def test_sums_by_group(whole: bool) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((2, 6, 9), np.float32), rng.standard_normal((2, 9, 4), np.float32)
    x[:, :, 8] = np.nan  # in no group
    sizes = np.array([4, 0, 3]) if whole else np.array([[4, 0, 3], [1, 2, 3]])
    want = np.zeros((3, 2, 6, 4), np.float32)
    for b in range(2):
        at = 0
        for g, n in enumerate(sizes if whole else sizes[b]):
            want[g, b] = x[b, :, at : at + n] @ y[b, at : at + n]
            at += n
    for got in run(x, y, sizes, ((0,), (0,), (2,), (1,), (2,), ()), want.shape):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)


def test_groups_of_a_batching_axis_change_nothing() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.standard_normal((3, 4, 5), np.float32), rng.standard_normal((3, 5, 2), np.float32)
    for got in run(x, y, np.array([1, 1]), ((0,), (0,), (2,), (1,), (0,), ()), (3, 4, 2)):
        np.testing.assert_allclose(got, x @ y, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("shapes", "numbers", "out", "message"), [
    (((4, 5), (3, 5, 7), (3,)), ((), (), (1,), (1,), (0, 1), (0,)), (4, 7), "one ragged axis"),
    (((4, 5), (3, 5, 7), (3,)), ((), (), (1,), (1,), (2,), (0,)), (4, 7), "is no axis of"),
    (((4, 5), (3, 5, 7), (3,)), ((), (), (1,), (1,), (0,), (3,)), (4, 7), "not all axes"),
    (((4, 5), (3, 5, 7), (3,)), ((), (), (1,), (1,), (0,), (1,)), (4, 7), "are used otherwise"),
    (((4, 5), (3, 5, 7), (3,)), ((), (), (1,), (1,), (0,), ()), (4, 7), "one group dimension, not"),
    (((4, 5), (3, 5, 7), (2,)), ((), (), (1,), (1,), (0,), (0,)), (4, 7), "2 group sizes for"),
    (((4, 5), (3, 5, 7), (4, 3)), ((), (), (1,), (1,), (0,), (0,)), (4, 7), "must be a vector"),
    (((4, 5), (3, 5, 7), ()), ((), (), (1,), (1,), (0,), (0,)), (4, 7), "integers along an axis"),
    (((4, 5), (3, 5, 7), (3,)), ((), (), (1,), (1,), (1,), (0,)), (3, 4, 7), "has no group dimension"),
    (((4, 5), (3, 6, 7), (3,)), ((), (), (1,), (1,), (0,), (0,)), (4, 7), "different sizes"),
    (((4, 5), (3, 5, 7), (3,)), ((), (), (1,), (1,), (0,), (0,)), (5, 7), "the result is"),
])  # fmt: skip
def test_what_is_refused(shapes: Any, numbers: Any, out: Any, message: str) -> None:
    x, y, n = (TensorType(d, s) for d, s in zip((f32, f32, i32), shapes, strict=True))
    with pytest.raises(Error) as e:
        ragged_dot.infer(x, y, n, precision_config=None, type=TensorType(f32, out),
                         **dict(zip(_NUMBERS, numbers, strict=True)))  # fmt: skip
    assert message in str(e.value)
