"""What TensorFlow's converter leaves of sizes known only at run time becomes StableHLO. Needs no TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.errors import Unsupported
from hilo.tensorflow.open_sizes import finished

X = np.random.default_rng(0).standard_normal((5, 4)).astype(np.float32)


def run(body: str, out: str, *arrays: np.ndarray) -> np.ndarray:
    """The value `%r` of `body`, interpreted and compiled."""
    text = f"""module {{
  func.func @main(%arg0: tensor<?x4xf32>) -> {out} {{
{body}
    return %r : {out}
  }}
}}"""
    made = finished(text)
    (want,) = hilo.interpret(made, *arrays)
    (got,) = hilo.compile(made)(*arrays)
    np.testing.assert_array_equal(got, want)
    return want


SLICED = """    %b = stablehlo.constant dense<[{begin}]> : tensor<{n}xi32>
    %e = stablehlo.constant dense<[{end}]> : tensor<{n}xi32>
    %s = stablehlo.constant dense<[{step}]> : tensor<{n}xi32>
    %r = "tf.StridedSlice"(%arg0, %b, %e, %s) <{{{masks}}}> {{device = ""}} : (tensor<?x4xf32>, tensor<{n}xi32>, \
tensor<{n}xi32>, tensor<{n}xi32>) -> {out}"""


@pytest.mark.parametrize(("begin", "end", "step", "masks", "out", "want"), [
    ("1, 0", "0, 0", "1, 1", {"begin": 2, "end": 3}, "?x4", lambda x: x[1:]),
    ("-2, 1", "0, 3", "1, 1", {"end": 1}, "?x2", lambda x: x[-2:, 1:3]),
    ("0, 0", "-1, 0", "2, 2", {"begin": 2, "end": 2}, "?x2", lambda x: x[0:-1:2, ::2]),
    ("4, 0", "2, 4", "1, 1", {}, "?x4", lambda x: x[4:2]),
    ("9, 0", "12, 4", "1, 1", {}, "?x4", lambda x: x[9:12]),
    ("0, 1", "0, 2", "1, 1", {"ellipsis": 1, "shrink_axis": 2}, "?", lambda x: x[..., 1]),
    ("0, 0, 0", "0, 0, 0", "1, 1, 1", {"begin": 5, "end": 5, "new_axis": 2}, "?x1x4", lambda x: x[:, None]),
    ("2", "3", "1", {"shrink_axis": 1}, "4", lambda x: x[2]),
    ("-1", "0", "1", {"shrink_axis": 1}, "4", lambda x: x[-1]),
])  # fmt: skip
def test_strided_slices(begin, end, step, masks, out, want):
    names = ("begin", "ellipsis", "end", "new_axis", "shrink_axis")
    text = ", ".join(f"{m}_mask = {masks.get(m, 0)} : i64" for m in names)
    t = f"tensor<{out}xf32>"
    body = SLICED.format(begin=begin, end=end, step=step, masks=text, n=begin.count(",") + 1, out=t)
    np.testing.assert_array_equal(run(body, t, X), want(X))


@pytest.mark.parametrize(("mode", "how"), [("REFLECT", "reflect"), ("SYMMETRIC", "symmetric")])
def test_mirrored(mode, how):
    body = f"""    %p = stablehlo.constant dense<[[0, 0], [2, 1]]> : tensor<2x2xi32>
    %r = "tf.MirrorPad"(%arg0, %p) <{{mode = "{mode}"}}> : (tensor<?x4xf32>, tensor<2x2xi32>) -> tensor<?x7xf32>"""
    np.testing.assert_array_equal(run(body, "tensor<?x7xf32>", X), np.pad(X, [(0, 0), (2, 1)], how))


def test_sizes_are_computed():
    body = """    %c0 = arith.constant 0 : index
    %c-1 = arith.constant -1 : index
    %c2 = arith.constant 2 : index
    %dim = tensor.dim %arg0, %c0 : tensor<?x4xf32>
    %0 = arith.muli %dim, %c2 : index
    %1 = arith.subi %0, %dim : index
    %from_elements = tensor.from_elements %1, %c2, %c2 : tensor<3xindex>
    %2 = stablehlo.dynamic_reshape %arg0, %from_elements : (tensor<?x4xf32>, tensor<3xindex>) -> tensor<?x2x2xf32>
    %3 = shape.shape_of %2 : tensor<?x2x2xf32> -> tensor<3xindex>
    %head, %tail = "shape.split_at"(%3, %c-1) : (tensor<3xindex>, index) -> (!shape.shape, !shape.shape)
    %4 = shape.concat %head, %tail : !shape.shape, !shape.shape -> !shape.shape
    %5 = shape.to_extent_tensor %4 : !shape.shape -> tensor<3xindex>
    %6 = arith.index_cast %5 : tensor<3xindex> to tensor<3xi32>
    %r = "tf.Reshape"(%2, %6) {device = ""} : (tensor<?x2x2xf32>, tensor<3xi32>) -> tensor<?x?x2xf32>"""
    np.testing.assert_array_equal(run(body, "tensor<?x?x2xf32>", X), X.reshape(5, 2, 2))


def test_what_is_left_of_a_reshape():
    body = """    %c = stablehlo.constant dense<-1> : tensor<1xi32>
    %0 = shape.shape_of %arg0 : tensor<?x4xf32> -> tensor<2xindex>
    %1 = arith.index_cast %0 : tensor<2xindex> to tensor<2xi32>
    %2 = stablehlo.slice %1 [0:1] : (tensor<2xi32>) -> tensor<1xi32>
    %3 = stablehlo.concatenate %2, %c, %c_1, dim = 0 : (tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<3xi32>
    %r = "tf.Reshape"(%arg0, %3) {device = ""} : (tensor<?x4xf32>, tensor<3xi32>) -> tensor<?x?x2xf32>"""
    body = "    %c_1 = stablehlo.constant dense<2> : tensor<1xi32>\n" + body
    np.testing.assert_array_equal(run(body, "tensor<?x?x2xf32>", X), X.reshape(5, -1, 2))


def test_regions_of_constraints_are_opened():
    """Their names may be those of other regions; regions inside of them end with braces, too."""
    body = """    %w = shape.const_witness true
    %one = stablehlo.constant dense<1> : tensor<i32>
    %0 = shape.shape_of %arg0 : tensor<?x4xf32> -> tensor<2xindex>
    %2 = shape.assuming %w -> (tensor<?x4xf32>) {
      %9 = shape.broadcast %0, %0 : tensor<2xindex>, tensor<2xindex> -> tensor<2xindex>
      %10 = stablehlo.dynamic_broadcast_in_dim %arg0, %9, dims = [0, 1] : (tensor<?x4xf32>, tensor<2xindex>) \
-> tensor<?x4xf32>
      %11:2 = stablehlo.while(%i = %one, %v = %10) : tensor<i32>, tensor<?x4xf32>
      cond {
        %20 = stablehlo.compare LT, %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %20 : tensor<i1>
      } do {
        stablehlo.return %i, %v : tensor<i32>, tensor<?x4xf32>
      }
      shape.assuming_yield %11#1 : tensor<?x4xf32>
    }
    %3 = shape.assuming %w -> (tensor<?x4xf32>) {
      %9 = stablehlo.add %2, %2 : tensor<?x4xf32>
      shape.assuming_yield %9 : tensor<?x4xf32>
    }
    %r = stablehlo.negate %3 : tensor<?x4xf32>"""
    np.testing.assert_array_equal(run(body, "tensor<?x4xf32>", X), -2 * X)


@pytest.mark.parametrize("n", [1, 0, 3])
def test_shapes_broadcast_as_numpys(n):
    body = """    %c = shape.const_shape [1, 1] : tensor<2xindex>
    %0 = shape.shape_of %arg0 : tensor<?x4xf32> -> tensor<2xindex>
    %1 = shape.broadcast %c, %0 : tensor<2xindex>, tensor<2xindex> -> tensor<2xindex>
    %r = stablehlo.dynamic_broadcast_in_dim %arg0, %1, dims = [0, 1] : (tensor<?x4xf32>, tensor<2xindex>) \
-> tensor<?x4xf32>"""
    np.testing.assert_array_equal(run(body, "tensor<?x4xf32>", X[:n]), X[:n])


def test_an_op_without_a_form_is_named():
    body = '    %r = "tf.Softplus"(%arg0) : (tensor<?x4xf32>) -> tensor<?x4xf32>'
    with pytest.raises(Unsupported, match=r"tf\.Softplus: there is no form"):
        run(body, "tensor<?x4xf32>", X)
