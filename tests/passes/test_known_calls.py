"""Custom calls that compiled code knows as ops: the same values, `info` and order as the calls have."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.custom_calls import registry
from hilo.ir.module import Module
from hilo.passes.inline import inline


def call(target: str, operands: str, results: str, attributes: str, more: str = "") -> Module:
    names = [f"%x{i}" for i in range(operands.count("tensor"))]
    head = ", ".join(f"{n}: {t.strip()}" for n, t in zip(names, operands.split(";"), strict=True))
    types, outs = operands.replace(";", ","), results.replace(";", ",")
    n = results.count("tensor")
    values = ", ".join(f"%0#{i}" for i in range(n)) if n > 1 else "%0"
    return hilo.parse(f"""{more}
    func.func @main({head}) -> ({outs}) {{
      %0{f":{n}" if n > 1 else ""} = stablehlo.custom_call @{target}({", ".join(names)}) {{{attributes}}}
        : ({types}) -> ({outs})
      return {values} : {outs}
    }}""")


def without_calls(m: Module) -> None:
    assert "custom_call" not in [o.kind.name for o in inline(m).ops]


@pytest.mark.parametrize("letter", "sdcz")
@pytest.mark.parametrize("uplo", "LU")
def test_cholesky(letter: str, uplo: str) -> None:
    d = {"s": "f32", "d": "f64", "c": "complex<f32>", "z": "complex<f64>"}[letter]
    m = call(f"lapack_{letter}potrf_ffi", f"tensor<5x3x3x{d}>", f"tensor<5x3x3x{d}>; tensor<5xi32>",
             f"mhlo.backend_config = {{uplo = {ord(uplo)} : ui8}}")  # fmt: skip
    without_calls(m)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((5, 3, 3))
    x = (x + 1j * rng.standard_normal((5, 3, 3)) if letter in "cz" else x) / 4
    x = x @ np.conj(np.swapaxes(x, -1, -2)) + np.eye(3)
    x[1], x[2, 1, 1], x[3, 2, 2], x[4, 0, 0] = 0, -9, np.nan, -1
    x = x.astype({"s": "f4", "d": "f8", "c": "c8", "z": "c16"}[letter])
    (factor, info), (want, numbers) = hilo.compile(m)(x), hilo.interpret(m, x)
    assert info.tolist() == [0, 1, 2, 3, 1]  # of NaN, as LAPACK's reference; libraries differ
    assert np.delete(numbers, 3).tolist() == [0, 1, 2, 1]
    np.testing.assert_allclose(factor[0], want[0], rtol=1e-5)


@pytest.mark.parametrize("side", "LR")
@pytest.mark.parametrize("trans", "NTC")
@pytest.mark.parametrize("uplo", "LU")
def test_triangular_solves(side: str, trans: str, uplo: str) -> None:
    codes = {"side": side, "trans_x": trans, "uplo": uplo, "diag": "U" if trans == "T" else "N"}
    config = ", ".join(f"{k} = {ord(v)} : ui8" for k, v in codes.items())
    m = call("lapack_ztrsm_ffi", "tensor<2x3x3xcomplex<f64>>; tensor<2x3x3xcomplex<f64>>",
             "tensor<2x3x3xcomplex<f64>>", f"mhlo.backend_config = {{{config}}}")  # fmt: skip
    without_calls(m)
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((2, 3, 3)) + 1j * rng.standard_normal((2, 3, 3)) for _ in "ab")
    np.testing.assert_allclose(hilo.compile(m)(a, b)[0], hilo.interpret(m, a, b)[0], rtol=1e-9)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("target", ["TopK", "mhlo.topk"])
def test_largest_and_smallest(target: str, largest: bool) -> None:
    m = call(target, "tensor<2x6xf32>", "tensor<2x3xf32>; tensor<2x3xi32>",
             f"mhlo.attributes = {{k = 3 : i64, largest = {str(largest).lower()}}}")  # fmt: skip
    without_calls(m)
    x = np.array([[1, 3, -0.0, 3, 0, np.nan], [2, np.inf, -np.inf, -1, 5, 5]], np.float32)
    for got, want in zip(hilo.compile(m)(x), hilo.interpret(m, x), strict=True):
        np.testing.assert_array_equal(got, want)


ORDER = """func.func @order(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}"""


@pytest.mark.parametrize("size", [4, 12])
def test_approximate_ones(size: int) -> None:
    m = call("ApproxTopK", "tensor<9x2xf32>; tensor<9x2xi32>; tensor<f32>; tensor<i32>",
             f"tensor<{size}x2xf32>; tensor<{size}x2xi32>",
             "called_computations = [@order], mhlo.backend_config = {aggregate_to_topk = true, "
             "recall_target = 0.9 : f32, reduction_dim = 0 : i64, "
             "reduction_input_size_override = -1 : i64, top_k = 4 : i64}", ORDER)  # fmt: skip
    without_calls(m)
    x = np.random.default_rng(2).standard_normal((9, 2)).astype(np.float32)
    i = np.broadcast_to(np.arange(9, dtype=np.int32)[:, None], (9, 2))
    args = (x, np.ascontiguousarray(i), np.array(-np.inf, np.float32), np.array(-1, np.int32))
    for got, want in zip(hilo.compile(m)(*args), hilo.interpret(m, *args), strict=True):
        np.testing.assert_array_equal(got, want)
    assert hilo.interpret(m, *args)[1][:4, 0].tolist() == np.argsort(-x[:, 0])[:4].tolist()


def test_what_the_user_registered_stays_a_call() -> None:
    m = call("mhlo.topk", "tensor<3xf32>", "tensor<1xf32>; tensor<1xi32>", "mhlo.attributes = {k = 1 : i64}")
    mine = registry.find("mhlo.topk").function
    registry.register("mhlo.topk", lambda x: [x[:1], np.zeros(1, np.int32)])
    try:
        assert hilo.compile(m)(np.array([1, 2, 3], np.float32))[0].tolist() == [1.0]
    finally:
        registry.unregister("mhlo.topk")
        registry.register("mhlo.topk", mine, builtin=True)


def test_approximate_ones_of_run_time_sizes() -> None:
    """As JAX writes it: the results' shapes are operands, too."""
    m = hilo.parse(f"""{ORDER}
    func.func @main(%x: tensor<?xf32>) -> (tensor<?xf32>, tensor<?xi32>) {{
      %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %k = stablehlo.subtract %n, %one : tensor<i32>
      %s = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
      %r = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
      %i = stablehlo.dynamic_iota %s, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
      %f = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %m = stablehlo.constant dense<-1> : tensor<i32>
      %0:2 = stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%x, %i, %f, %m, %k, %r, %r) {{
        called_computations = [@order], indices_of_shape_operands = dense<[5, 6]> : tensor<2xi64>,
        mhlo.backend_config = {{reduction_dim = 0 : i64}}}}
        : (tensor<?xf32>, tensor<?xi32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<1xi32>, tensor<1xi32>)
        -> (tensor<?xf32>, tensor<?xi32>)
      return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32>
    }}""")
    run = hilo.compile(m)
    for n in (2, 9):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        for got, want in zip(run(x), hilo.interpret(m, x), strict=True):
            np.testing.assert_array_equal(got, want)
            assert got.shape == (n - 1,)
