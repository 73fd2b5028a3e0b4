"""Handlers that jaxlib brings, called through XLA's FFI: its LAPACK kernels run natively on hilo's buffers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import hilo
from hilo.custom_calls import registry

pytest.importorskip("jaxlib", reason="needs jaxlib")


@pytest.fixture(scope="module", autouse=True)
def kernels() -> Iterator[None]:
    from jaxlib import lapack

    registry.known()  # loads those that hilo brings
    before = dict(registry._TARGETS)
    lapack._lapack.initialize()
    for name, capsule, version in lapack.registrations()["cpu"]:
        if version == 1:
            hilo.register_custom_call(name, capsule, convention="xla-ffi")
    yield
    registry._TARGETS.clear()
    registry._TARGETS.update(before)


def run(text: str, *arrays: np.ndarray) -> list[Any]:
    native = hilo.compile(text)(*arrays)
    for a, b in zip(native, hilo.interpret(text, *arrays), strict=True):
        np.testing.assert_array_equal(a, b)
    return native


COLUMNS = "dense<[1, 2, 0]> : tensor<3xindex>"


def test_cholesky() -> None:
    text = f"""func.func @main(%x: tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2xi32>) {{
      %r:2 = stablehlo.custom_call @lapack_spotrf_ffi(%x) {{
        mhlo.backend_config = {{uplo = 76 : ui8}}, api_version = 4 : i32,
        operand_layouts = [{COLUMNS}], result_layouts = [{COLUMNS}, dense<0> : tensor<1xindex>],
        output_operand_aliases = [#stablehlo.output_operand_alias<
          output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]
      }} : (tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2xi32>)
      return %r#0, %r#1 : tensor<2x3x3xf32>, tensor<2xi32> }}"""
    a = np.random.default_rng(0).standard_normal((2, 3, 3)).astype(np.float32)
    x = a @ a.transpose(0, 2, 1) + 3 * np.eye(3, dtype=np.float32)
    low, info = run(text, x)
    assert info.tolist() == [0, 0]
    np.testing.assert_allclose(np.tril(low), np.linalg.cholesky(x), rtol=1e-5, atol=1e-6)


def test_symmetric_eigenvalues() -> None:
    order = "dense<[0, 1]> : tensor<2xindex>"
    text = f"""func.func @main(%x: tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4xf64>, tensor<i32>) {{
      %r:3 = stablehlo.custom_call @lapack_dsyevd_ffi(%x) {{
        backend_config = {{mode = 86 : ui8, uplo = 76 : ui8}}, api_version = 4 : i32,
        operand_layouts = [{order}],
        result_layouts = [{order}, dense<0> : tensor<1xindex>, dense<> : tensor<0xindex>]
      }} : (tensor<4x4xf64>) -> (tensor<4x4xf64>, tensor<4xf64>, tensor<i32>)
      return %r#0, %r#1, %r#2 : tensor<4x4xf64>, tensor<4xf64>, tensor<i32> }}"""
    a = np.random.default_rng(1).standard_normal((4, 4))
    x = a + a.T
    vectors, values, info = run(text, x)
    assert info == 0
    np.testing.assert_allclose(x @ vectors, vectors * values, atol=1e-12)


def test_the_handlers_errors() -> None:
    text = """func.func @main(%x: tensor<3x3xf32>) -> tensor<3x3xf32> {
      %r = stablehlo.custom_call @lapack_spotrf_ffi(%x) {api_version = 4 : i32, backend_config = {}}
        : (tensor<3x3xf32>) -> tensor<3x3xf32>
      return %r : tensor<3x3xf32> }"""
    with pytest.raises(hilo.Error, match=r"stablehlo.custom_call: custom call target 'lapack_spotrf_ffi' failed: "):
        hilo.compile(text)(np.zeros((3, 3), np.float32))
