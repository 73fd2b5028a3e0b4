"""Custom calls whose sizes are operands, as JAX writes them: native code against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hilo
from hilo.errors import Error

RNG = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def agree(text: str, *calls: tuple[Any, ...]) -> hilo.Executable:
    """Compile once; every call gives what the interpreter gives."""
    f = hilo.compile(text)
    for args in calls:
        for got, want in zip(f(*args), map(np.asarray, hilo.interpret(text, *args)), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    return f


@pytest.mark.parametrize("algorithm", ["DEFAULT", "PHILOX", "THREE_FRY"])
@pytest.mark.parametrize("element", ["ui64", "ui32", "ui8"])
def test_random_bits(algorithm: str, element: str) -> None:
    text = f"""func.func @main(%s: tensor<2xui64>, %n: tensor<1xi32>) -> (tensor<2xui64>, tensor<?x{element}>) {{
        %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %n)
            {{rng_algorithm = #stablehlo<rng_algorithm {algorithm}>}}
            : (tensor<2xui64>, tensor<1xi32>) -> (tensor<2xui64>, tensor<?x{element}>)
        return %0#0, %0#1 : tensor<2xui64>, tensor<?x{element}> }}"""
    state = np.array([1, 2], np.uint64)
    agree(text, *((state, np.array([n], np.int32)) for n in (0, 1, 2, 5, 8, 100)))


def test_pairs_of_random_numbers_along_an_axis_that_is_not_known() -> None:
    text = """func.func @main(%s: tensor<2xui64>, %n: tensor<2xi32>) -> tensor<?x?xui32> {
        %0:2 = stablehlo.custom_call @stablehlo.dynamic_rng_bit_generator(%s, %n)
            {rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}
            : (tensor<2xui64>, tensor<2xi32>) -> (tensor<2xui64>, tensor<?x?xui32>)
        return %0#1 : tensor<?x?xui32> }"""
    with pytest.raises(Error, match=r"depends on whether the size .* is even"):
        hilo.compile(text)


def test_top_k() -> None:
    text = """func.func @main(%x: tensor<2x?xf32>, %k: tensor<i32>) -> (tensor<2x?xf32>, tensor<2x?xi32>) {
        %0:2 = stablehlo.custom_call @stablehlo.dynamic_top_k(%x, %k)
            : (tensor<2x?xf32>, tensor<i32>) -> (tensor<2x?xf32>, tensor<2x?xi32>)
        return %0#0, %0#1 : tensor<2x?xf32>, tensor<2x?xi32> }"""
    f = agree(text, *((floats(2, n), np.int32(k)) for n, k in ((1, 1), (5, 2), (30, 30), (9, 0))))
    for run in (f, lambda *args: hilo.interpret(text, *args)):
        for k in (4, -1):
            with pytest.raises(Error):
                run(floats(2, 3), np.int32(k))


def test_approximate_top_k() -> None:
    text = """module {
      func.func private @gt(%a: tensor<f32>, %b: tensor<f32>, %c: tensor<i32>, %d: tensor<i32>) -> tensor<i1> {
        %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
        return %0 : tensor<i1> }
      func.func @main(%x: tensor<?x3xf32>, %i: tensor<?x3xi32>, %k: tensor<i32>) -> (tensor<?x3xf32>, tensor<?x3xi32>) {
        %z = stablehlo.constant dense<0.0> : tensor<f32>
        %m = stablehlo.constant dense<-1> : tensor<i32>
        %0:2 = stablehlo.custom_call @stablehlo.dynamic_approx_top_k(%x, %i, %z, %m, %k)
            {called_computations = [@gt], mhlo.backend_config = {reduction_dim = 0 : i64}}
            : (tensor<?x3xf32>, tensor<?x3xi32>, tensor<f32>, tensor<i32>, tensor<i32>)
            -> (tensor<?x3xf32>, tensor<?x3xi32>)
        return %0#0, %0#1 : tensor<?x3xf32>, tensor<?x3xi32> } }"""
    f = agree(text, *((floats(n, 3), np.arange(3 * n, dtype=np.int32).reshape(n, 3), np.int32(k))
                      for n, k in ((1, 1), (5, 2), (30, 30), (9, 0))))  # fmt: skip
    with pytest.raises(Error, match="sizes do not agree"):
        f(floats(4, 3), np.zeros((5, 3), np.int32), np.int32(1))


WINDOWS = """module {
  func.func private @f(%a: tensor<f32>, %b: tensor<i32>, %c: tensor<f32>, %d: tensor<i32>)
      -> (tensor<f32>, tensor<i32>) {
    %0 = stablehlo.add %a, %c : tensor<f32>
    %1 = stablehlo.maximum %b, %d : tensor<i32>
    return %0, %1 : tensor<f32>, tensor<i32> }
  func.func @main(%x: tensor<?xf32>, %y: tensor<?xi32>, %w: tensor<1xi32>, %s: tensor<1xi32>)
      -> (tensor<?xf32>, tensor<?xi32>) {
    %z = stablehlo.constant dense<2.0> : tensor<f32>
    %m = stablehlo.constant dense<-1> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<1xi32>
    %p = stablehlo.constant dense<[[1, 1]]> : tensor<1x2xi32>
    %0:2 = stablehlo.custom_call @stablehlo.dynamic_reduce_window(%x, %y, %z, %m, %w, %s, %one, %one, %p)
        {called_computations = [@f]} : (tensor<?xf32>, tensor<?xi32>, tensor<f32>, tensor<i32>, tensor<1xi32>,
        tensor<1xi32>, tensor<1xi32>, tensor<1xi32>, tensor<1x2xi32>) -> (tensor<?xf32>, tensor<?xi32>)
    return %0#0, %0#1 : tensor<?xf32>, tensor<?xi32> } }"""


def test_windows_of_several_inputs() -> None:
    cases = ((1, 1, 1), (5, 2, 1), (30, 30, 2), (9, 3, 3), (40, 2, 5), (0, 1, 1))
    f = agree(WINDOWS, *((floats(n), np.arange(n, dtype=np.int32), np.array([w], np.int32), np.array([s], np.int32))
                         for n, w, s in cases))  # fmt: skip
    with pytest.raises(Error, match="of a window must be positive, but is 0"):
        f(floats(3), np.zeros(3, np.int32), np.array([1], np.int32), np.array([0], np.int32))


def test_windows_that_are_known_are_plain_windows() -> None:
    sizes = "".join(f"%{name} = stablehlo.constant dense<{n}> : tensor<1xi32>\n" for name, n in (("w", 3), ("s", 1)))
    text = WINDOWS.replace("?", "8").replace("%w: tensor<1xi32>, %s: tensor<1xi32>", "%v: tensor<f32>")
    text = text.replace("%one = ", f"{sizes} %one = ")
    f = agree(text, (floats(8), np.arange(8, dtype=np.int32), np.float32(0)))
    assert repr(f.result_types) == "(f32[8], i32[8])"
