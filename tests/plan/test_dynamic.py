"""Programs with run-time sizes: one compilation, many sizes, checked against numpy and the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hilo
from hilo.errors import Error

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def agree(text: str, *calls: list[Any], rtol: float = 1e-5) -> hilo.Executable:
    """Compile once; every call gives what the interpreter gives."""
    f = hilo.compile(text)
    for args in calls:
        for got, want in zip(f(*args), hilo.interpret(text, *args), strict=True):
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)
    return f


def test_elementwise_at_every_size() -> None:
    text = """func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
        %0 = stablehlo.add %x, %y : tensor<?x3xf32>
        %1 = stablehlo.exponential %0 : tensor<?x3xf32>
        return %1 : tensor<?x3xf32> }"""
    f = agree(text, *([floats(n, 3), floats(n, 3)] for n in (0, 1, 2, 5, 17, 1000, 40_000)))
    assert repr(f.arg_types) == "(f32[n0_0,3], f32[n0_0,3])"


def test_sizes_that_must_agree() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>) -> tensor<?xf32> {
        %0 = stablehlo.add %x, %y : tensor<?xf32>
        return %0 : tensor<?xf32> }"""
    f = hilo.compile(text)
    with pytest.raises(Error, match=r"sizes do not agree: stablehlo.add .* they are 3 and 4"):
        f(floats(3), floats(4))
    with pytest.raises(Error, match=r"argument 0: expected f32\[\?\], got f32\[2,2\]"):
        f(floats(2, 2), floats(4))
    with pytest.raises(Error, match=r"expected f32\[\?\], got f64"):
        f(floats(3).astype(np.float64), floats(3))
    np.testing.assert_array_equal(f(np.ones((3, 2), np.float32)[:, 0], np.ones(3, np.float32))[0], 2)


def test_a_size_that_a_static_operand_fixes() -> None:
    text = """func.func @main(%x: tensor<?xf32>, %y: tensor<4xf32>) -> tensor<?xf32> {
        %0 = stablehlo.add %x, %y : (tensor<?xf32>, tensor<4xf32>) -> tensor<?xf32>
        return %0 : tensor<?xf32> }"""
    f = agree(text, [floats(4), floats(4)])
    assert repr(f.arg_types[0]) == "f32[4]"
    with pytest.raises(Error, match=r"argument 0: expected f32\[4\], got f32\[5\]"):
        f(floats(5), floats(4))


def test_bounds_are_checked() -> None:
    text = """func.func @main(%x: tensor<?x2xf32, #stablehlo.bounds<4, ?>>)
            -> tensor<?x2xf32, #stablehlo.bounds<4, ?>> {
        %0 = stablehlo.negate %x : tensor<?x2xf32, #stablehlo.bounds<4, ?>>
        return %0 : tensor<?x2xf32, #stablehlo.bounds<4, ?>> }"""
    f = agree(text, [floats(4, 2)], [floats(0, 2)])
    with pytest.raises(Error, match="argument 0: axis 0 must be at most 4, but is 5"):
        f(floats(5, 2))


ASSERT = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %r = stablehlo.remainder %n, %two : tensor<i32>
    %ok = stablehlo.compare EQ, %r, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%ok, %n) {error_message = "the size {0} is odd", has_side_effect = true}
        : (tensor<i1>, tensor<i32>) -> ()
    %0 = stablehlo.negate %x : tensor<?xf32>
    return %0 : tensor<?xf32> }"""


def test_shape_assertion() -> None:
    f = hilo.compile(ASSERT)
    np.testing.assert_array_equal(f(np.ones(4, np.float32))[0], -np.ones(4))
    with pytest.raises(Error, match="the size 5 is odd"):
        f(np.ones(5, np.float32))


def test_softmax_of_rows_of_unknown_length_and_number() -> None:
    text = """func.func @main(%x: tensor<?x?xf32>) -> tensor<?x?xf32> {
        %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x?xf32>) -> tensor<i32>
        %m = stablehlo.get_dimension_size %x, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
        %n1 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %m1 = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
        %s = stablehlo.concatenate %n1, %m1, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %0 = stablehlo.reduce(%x init: %low) applies stablehlo.maximum across dimensions = [1]
            : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
        %1 = stablehlo.dynamic_broadcast_in_dim %0, %s, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
        %2 = stablehlo.subtract %x, %1 : tensor<?x?xf32>
        %3 = stablehlo.exponential %2 : tensor<?x?xf32>
        %4 = stablehlo.reduce(%3 init: %zero) applies stablehlo.add across dimensions = [1]
            : (tensor<?x?xf32>, tensor<f32>) -> tensor<?xf32>
        %5 = stablehlo.dynamic_broadcast_in_dim %4, %s, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>
        %6 = stablehlo.divide %3, %5 : tensor<?x?xf32>
        return %6 : tensor<?x?xf32> }"""
    agree(text, *([floats(n, m)] for n, m in ((1, 1), (3, 7), (5, 64), (2, 3000), (0, 4), (4, 0))))


def test_contraction_of_a_run_time_number_of_rows() -> None:
    text = """func.func @main(%x: tensor<?x40xf32>, %w: tensor<40x70xf32>) -> tensor<?x70xf32> {
        %0 = stablehlo.dot %x, %w : (tensor<?x40xf32>, tensor<40x70xf32>) -> tensor<?x70xf32>
        return %0 : tensor<?x70xf32> }"""
    w = floats(40, 70)
    agree(text, *([floats(n, 40), w] for n in (0, 1, 2, 7, 13, 14, 15, 29, 64, 333)))


@pytest.mark.parametrize("shapes", [("4x?", "?x5", "4x5"), ("?x6", "6x?", "?x?"), ("?x?", "?x3", "?x3")])
def test_contractions_of_run_time_sizes_elsewhere(shapes: tuple[str, str, str]) -> None:
    a, b, c = shapes
    text = f"""func.func @main(%x: tensor<{a}xf32>, %y: tensor<{b}xf32>) -> tensor<{c}xf32> {{
        %0 = stablehlo.dot %x, %y : (tensor<{a}xf32>, tensor<{b}xf32>) -> tensor<{c}xf32>
        return %0 : tensor<{c}xf32> }}"""

    def sized(s: str, n: list[int]) -> np.ndarray:
        return floats(*(n.pop() if d == "?" else int(d) for d in s.split("x")))

    for k in (0, 1, 3, 20):
        x = sized(a, [k, k])
        inner = x.shape[1]
        y = floats(inner, int(b.split("x")[1]) if b.split("x")[1] != "?" else k + 2)
        agree(text, [x, y])


def test_concatenation_pad_slice_and_iota_of_run_time_sizes() -> None:
    text = """func.func @main(%x: tensor<?x2xf32>, %y: tensor<?x2xf32>)
            -> (tensor<?x2xf32>, tensor<?x5xf32>, tensor<?xi32>) {
        %v = stablehlo.constant dense<9.0> : tensor<f32>
        %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<?x2xf32>, tensor<?x2xf32>) -> tensor<?x2xf32>
        %1 = stablehlo.pad %0, %v, low = [1, 2], high = [0, 1], interior = [1, 0]
            : (tensor<?x2xf32>, tensor<f32>) -> tensor<?x5xf32>
        %n = stablehlo.get_dimension_size %0, dim = 0 : (tensor<?x2xf32>) -> tensor<i32>
        %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %2 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
        return %0, %1, %2 : tensor<?x2xf32>, tensor<?x5xf32>, tensor<?xi32> }"""
    agree(text, *([floats(n, 2), floats(m, 2)] for n, m in ((0, 0), (1, 0), (3, 4), (50, 7))))


def test_a_reshape_that_merges_a_run_time_axis() -> None:
    text = """func.func @main(%x: tensor<?x4x3xf32>, %s: tensor<2xi64>) -> tensor<?x3xf32> {
        %0 = stablehlo.dynamic_reshape %x, %s : (tensor<?x4x3xf32>, tensor<2xi64>) -> tensor<?x3xf32>
        %1 = stablehlo.negate %0 : tensor<?x3xf32>
        return %1 : tensor<?x3xf32> }"""
    f = agree(text, *([floats(n, 4, 3), np.array([4 * n, 3])] for n in (1, 5)))
    with pytest.raises(Error, match="sizes do not agree"):
        f(floats(2, 4, 3), np.array([7, 3]))


def test_an_axis_that_may_or_may_not_be_stretched() -> None:
    text = """func.func @main(%x: tensor<?x3xf32>, %n: tensor<i32>) -> tensor<?x3xf32> {
        %three = stablehlo.constant dense<3> : tensor<1xi32>
        %0 = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %1 = stablehlo.concatenate %0, %three, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %2 = stablehlo.dynamic_broadcast_in_dim %x, %1, dims = [0, 1]
            : (tensor<?x3xf32>, tensor<2xi32>) -> tensor<?x3xf32>
        return %2 : tensor<?x3xf32> }"""
    f = agree(text, [floats(1, 3), np.int32(4)], [floats(4, 3), np.int32(4)], [floats(1, 3), np.int32(1)])
    with pytest.raises(Error, match="must have size 1 or"):
        f(floats(2, 3), np.int32(4))
    with pytest.raises(Error):
        f(floats(1, 3), np.int32(-1))


def test_loops_keep_their_sizes() -> None:
    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
        %i = stablehlo.constant dense<0> : tensor<i32>
        %k = stablehlo.constant dense<3> : tensor<i32>
        %one = stablehlo.constant dense<1> : tensor<i32>
        %r:2 = stablehlo.while(%a = %i, %b = %x) : tensor<i32>, tensor<?xf32>
          cond { %c = stablehlo.compare LT, %a, %k : (tensor<i32>, tensor<i32>) -> tensor<i1>
            stablehlo.return %c : tensor<i1> }
          do { %d = stablehlo.add %a, %one : tensor<i32>
            %e = stablehlo.add %b, %b : tensor<?xf32>
            stablehlo.return %d, %e : tensor<i32>, tensor<?xf32> }
        return %r#1 : tensor<?xf32> }"""
    agree(text, *([floats(n)] for n in (0, 1, 9, 500)))


@pytest.mark.parametrize("body", [
    """%i = stablehlo.constant dense<[0, 2]> : tensor<2xi64>
       %0 = "stablehlo.scatter"(%x, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0],
         inserted_window_dims = [1, 2], scatter_dims_to_operand_dims = [1, 2]>}> ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>):
             %s = stablehlo.add %a, %b : tensor<f32>
             stablehlo.return %s : tensor<f32> })
                 : (tensor<?x4x6xf32>, tensor<2xi64>, tensor<?xf32>) -> tensor<?x4x6xf32>""",
    """%z = stablehlo.constant dense<0.0> : tensor<f32>
       %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 1, 2, 3>,
         padding = dense<[[0, 0], [1, 0], [2, 0]]> : tensor<3x2xi64>}> ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>):
             %s = stablehlo.maximum %a, %b : tensor<f32>
             stablehlo.return %s : tensor<f32> }) : (tensor<?x4x6xf32>, tensor<f32>) -> tensor<?x4x6xf32>""",
    """%z = stablehlo.constant dense<0.0> : tensor<f32>
       %0 = "stablehlo.reduce_window"(%x, %z) <{window_dimensions = array<i64: 3, 1, 1>,
         padding = dense<[[1, 1], [0, 0], [0, 0]]> : tensor<3x2xi64>}> ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>):
             %s = stablehlo.add %a, %b : tensor<f32>
             stablehlo.return %s : tensor<f32> }) : (tensor<?x4x6xf32>, tensor<f32>) -> tensor<?x4x6xf32>""",
    """%0 = "stablehlo.sort"(%x) <{dimension = 2 : i64, is_stable = true}> ({
           ^bb0(%a: tensor<f32>, %b: tensor<f32>):
             %s = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
             stablehlo.return %s : tensor<i1> }) : (tensor<?x4x6xf32>) -> tensor<?x4x6xf32>""",
    "%0 = stablehlo.reverse %x, dims = [0, 2] : tensor<?x4x6xf32>",
])  # fmt: skip
def test_other_ops(body: str) -> None:
    text = f"""func.func @main(%x: tensor<?x4x6xf32>, %u: tensor<?xf32>) -> tensor<?x4x6xf32> {{
        {body}
        return %0 : tensor<?x4x6xf32> }}"""
    agree(text, *([floats(n, 4, 6), floats(n)] for n in (0, 1, 3, 11)))


def test_threads_change_nothing() -> None:
    text = """func.func @main(%x: tensor<?x64xf32>, %w: tensor<64x64xf32>) -> tensor<?x64xf32> {
        %0 = stablehlo.dot %x, %w : (tensor<?x64xf32>, tensor<64x64xf32>) -> tensor<?x64xf32>
        %1 = stablehlo.tanh %0 : tensor<?x64xf32>
        return %1 : tensor<?x64xf32> }"""
    one, two = (hilo.compile(text, threads=n) for n in (1, 2))
    w = floats(64, 64)
    for n in (1, 100, 5000):
        x = floats(n, 64)
        assert one(x, w)[0].tobytes() == two(x, w)[0].tobytes()


def test_sizes_that_are_computed() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<?xf32> {
        %z = stablehlo.constant dense<0.0> : tensor<f32>
        %0 = stablehlo.reduce(%x init: %z) applies stablehlo.add across dimensions = [0]
            : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        %1 = stablehlo.convert %0 : (tensor<f32>) -> tensor<i32>
        %2 = stablehlo.reshape %1 : (tensor<i32>) -> tensor<1xi32>
        %3 = stablehlo.dynamic_broadcast_in_dim %z, %2, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
        return %3 : tensor<?xf32> }"""
    f = hilo.compile(text)
    assert [f(np.full(4, n, np.float32))[0].shape for n in (0, 1, 3)] == [(0,), (4,), (12,)]


def test_shapes_that_are_fixed_when_compiling() -> None:
    text = """func.func @main(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
        %0 = stablehlo.negate %x : tensor<?x3xf32>
        return %0 : tensor<?x3xf32> }"""
    f = hilo.compile(text, shapes={0: (4, 3)})
    assert repr(f.result_types) == "(f32[4,3],)"
    np.testing.assert_array_equal(f(np.ones((4, 3), np.float32))[0], -np.ones((4, 3)))
    with pytest.raises(Error, match="expected f32"):
        f(np.ones((5, 3), np.float32))
    with pytest.raises(Error, match="cannot be"):
        hilo.compile(text, shapes={0: (4, 2)})
    with pytest.raises(Error, match="no argument 3"):
        hilo.compile(text, shapes={3: (4, 2)})


def test_assertions_hold_with_fixed_shapes_too() -> None:
    assert hilo.compile(ASSERT, shapes={0: (4,)})(np.ones(4, np.float32))[0].shape == (4,)
    with pytest.raises(Error, match="the size 5 is odd"):
        hilo.compile(ASSERT, shapes={0: (5,)})(np.ones(5, np.float32))


def test_windows_of_run_time_sizes() -> None:
    """A running sum along an axis of unknown size, as JAX writes it."""
    text = """module {
      func.func private @plus(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
        %0 = stablehlo.add %a, %b : tensor<f32>
        return %0 : tensor<f32> }
      func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
        %zero = stablehlo.constant dense<0.0> : tensor<f32>
        %one = stablehlo.constant dense<1> : tensor<1xi32>
        %none = stablehlo.constant dense<0> : tensor<1xi32>
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
        %w = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %low = stablehlo.subtract %w, %one : tensor<1xi32>
        %both = stablehlo.concatenate %low, %none, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %p = stablehlo.reshape %both : (tensor<2xi32>) -> tensor<1x2xi32>
        %r = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %zero, %w, %one, %one, %one, %p)
            {called_computations = [@plus]} : (tensor<?xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>,
            tensor<1xi32>, tensor<1x2xi32>) -> tensor<?xf32>
        return %r : tensor<?xf32> } }"""
    f = hilo.compile(text)
    for n in (1, 2, 9, 33):
        x = floats(n)
        np.testing.assert_allclose(f(x)[0], np.cumsum(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("n", [1 << 40, 1 << 45, 1 << 61, (1 << 62) + 1, (1 << 63) - 1])
def test_sizes_beyond_all_memory_are_an_error(n: int) -> None:
    """Also where the bytes of a temporary are few modulo 2^64."""
    text = """func.func @main(%n: tensor<i64>, %x: tensor<4xf32>) -> tensor<1xf32> {
        %0 = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
        %four = stablehlo.constant dense<4> : tensor<1xi64>
        %v = stablehlo.constant dense<2.0> : tensor<f32>
        %s = stablehlo.concatenate %0, %four, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
        %b = stablehlo.dynamic_broadcast_in_dim %x, %s, dims = [1] : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x4xf32>
        %w = stablehlo.constant dense<1.0> : tensor<4x64xf32>
        %d = stablehlo.dot %b, %w : (tensor<?x4xf32>, tensor<4x64xf32>) -> tensor<?x64xf32>
        %r = stablehlo.reduce(%d init: %v) applies stablehlo.add across dimensions = [1]
            : (tensor<?x64xf32>, tensor<f32>) -> tensor<?xf32>
        %t = "stablehlo.slice"(%r) <{start_indices = array<i64: 0>, limit_indices = array<i64: 1>,
            strides = array<i64: 1>}> : (tensor<?xf32>) -> tensor<1xf32>
        return %t : tensor<1xf32> }"""
    f = hilo.compile(text)
    assert f(np.int64(3), np.ones(4, np.float32))[0] == 258
    with pytest.raises((Error, MemoryError)):
        f(np.int64(n), np.ones(4, np.float32))


# ruff: noqa: E501
OTHER_AXES = {
    "sort along": ("""%0:2 = "stablehlo.sort"(%x, %x) <{dimension = 1 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<f32>, %d: tensor<f32>):
          %p = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1> }) : (tensor<2x?xf32>, tensor<2x?xf32>) -> (tensor<2x?xf32>, tensor<2x?xf32>)
        return %0#0 : tensor<2x?xf32>""", "tensor<2x?xf32>"),
    "sort across": ("""%0 = "stablehlo.sort"(%x) <{dimension = 0 : i64, is_stable = true}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
          stablehlo.return %p : tensor<i1> }) : (tensor<2x?xf32>) -> tensor<2x?xf32>
        return %0 : tensor<2x?xf32>""", "tensor<2x?xf32>"),
    "pooling": ("""%i = stablehlo.constant dense<3.0> : tensor<f32>
        %0 = "stablehlo.reduce_window"(%x, %i) ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %p = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %p : tensor<f32> }) {window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>,
          padding = dense<[[0, 0], [2, 1]]> : tensor<2x2xi64>, base_dilations = array<i64: 1, 2>}
          : (tensor<2x?xf32>, tensor<f32>) -> tensor<2x?xf32>
        return %0 : tensor<2x?xf32>""", "tensor<2x?xf32>"),
    "depthwise": ("""%w = stablehlo.constant dense<[[[1.0, 2.0]], [[3.0, 4.0]]]> : tensor<2x1x2xf32>
        %i = stablehlo.constant dense<0.0> : tensor<f32>
        %s = stablehlo.reduce(%x init: %i) applies stablehlo.add across dimensions = [0] : (tensor<2x?xf32>, tensor<f32>) -> tensor<?xf32>
        %m = stablehlo.get_dimension_size %x, dim = 1 : (tensor<2x?xf32>) -> tensor<i32>
        %n = stablehlo.reshape %m : (tensor<i32>) -> tensor<1xi32>
        %one = stablehlo.constant dense<1> : tensor<1xi32>
        %two = stablehlo.constant dense<2> : tensor<1xi32>
        %z = stablehlo.concatenate %one, %n, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
        %y = stablehlo.dynamic_broadcast_in_dim %s, %z, dims = [1] : (tensor<?xf32>, tensor<3xi32>) -> tensor<1x?x2xf32>
        %0 = "stablehlo.convolution"(%y, %w) {dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
          batch_group_count = 1 : i64, feature_group_count = 2 : i64, padding = dense<[[1, 2]]> : tensor<1x2xi64>}
          : (tensor<1x?x2xf32>, tensor<2x1x2xf32>) -> tensor<1x?x2xf32>
        return %0 : tensor<1x?x2xf32>""", "tensor<1x?x2xf32>"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_AXES)
def test_kernels_along_a_run_time_axis(name: str) -> None:
    body, result = OTHER_AXES[name]
    agree(f"func.func @main(%x: tensor<2x?xf32>) -> {result} {{ {body} }}",
          *([floats(2, n)] for n in (0, 1, 2, 7, 8, 9, 16, 17, 100, 1000)))  # fmt: skip


def test_top_k_of_an_axis_that_may_be_too_short() -> None:
    f = hilo.compile("""func.func @main(%x: tensor<?x?xf32>) -> (tensor<?x3xf32>, tensor<?x3xi32>) {
        %0:2 = chlo.top_k(%x, k = 3) : tensor<?x?xf32> -> (tensor<?x3xf32>, tensor<?x3xi32>)
        return %0#0, %0#1 : tensor<?x3xf32>, tensor<?x3xi32> }""")
    for m, n in ((0, 3), (1, 3), (4, 40), (3, 8)):
        x = floats(m, n)
        values, where = f(x)
        np.testing.assert_array_equal(values, -np.sort(-x, axis=1)[:, :3])
        np.testing.assert_array_equal(np.take_along_axis(x, where, 1), values)
    with pytest.raises(Error, match="top_k takes 3 elements of an axis of size 2"):
        f(floats(4, 2))


def test_batches_of_transforms_and_solves() -> None:
    text = """func.func @main(%x: tensor<?x60xcomplex<f32>>, %a: tensor<?x3x3xf32>) -> (tensor<?x60xcomplex<f32>>, tensor<?x3x3xf32>) {
        %0 = stablehlo.fft %x, type = FFT, length = [60] : (tensor<?x60xcomplex<f32>>) -> tensor<?x60xcomplex<f32>>
        %1 = stablehlo.cholesky %a, lower = true : tensor<?x3x3xf32>
        return %0, %1 : tensor<?x60xcomplex<f32>>, tensor<?x3x3xf32> }"""
    f = hilo.compile(text)
    for n in (0, 1, 7):
        x = floats(n, 60).astype(np.complex64)
        a = np.eye(3, dtype=np.float32) * 2 + np.zeros((n, 1, 1), np.float32)
        got, factor = f(x, a)
        np.testing.assert_allclose(got, np.fft.fft(x), atol=1e-4)
        np.testing.assert_allclose(factor, np.linalg.cholesky(a) if n else a, rtol=1e-6)
