"""Handlers that jaxlib brings, called through XLA's FFI: its LAPACK kernels run natively on hilo's buffers."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
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


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Handlers that are compiled with jaxlib's headers."""
    import jaxlib

    compiler = shutil.which("g++") or shutil.which("clang++")
    include = Path(jaxlib.__file__).parent / "include"
    if compiler is None or not include.exists():
        pytest.skip("needs a C++ compiler and jaxlib's headers")
    library = tmp_path_factory.mktemp("handlers") / "handlers.so"
    source = Path(__file__).parent / "handlers.cc"
    subprocess.run([compiler, "-std=c++17", "-O1", "-shared", "-fPIC", "-pthread", f"-I{include}", str(source), "-o",
                    str(library)], check=True)  # fmt: skip
    return library


def test_states_scratch_memory_and_threads(handlers: Path) -> None:
    library = ctypes.CDLL(str(handlers))
    library.counter_id.restype = library.counter_info.restype = ctypes.c_void_p
    hilo.register_ffi_type("Counter", library.counter_id(), library.counter_info())
    stages = {"instantiate": (handlers, "start"), "execute": (handlers, "execute")}
    hilo.register_custom_call("count", stages, convention="xla-ffi")
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %r = stablehlo.custom_call @count(%x) {api_version = 4 : i32, backend_config = {
        name = "abc", add = array<i64: 1, 2>, scale = {k = 2.0 : f32}, start = 100 : i64}}
        : (tensor<3xf32>) -> tensor<3xf32>
      return %r : tensor<3xf32> }"""
    x = np.arange(3, dtype=np.float32)
    f = hilo.compile(text)
    assert [f(x)[0].tolist() for _ in range(2)] == [[107, 109, 111], [108, 110, 112]]
    assert library.alive() == 1
    del f
    gc.collect()
    assert library.alive() == 0
    with pytest.raises(hilo.Error, match="'count' failed: start is missing"):
        hilo.compile(text.replace("start = 100 : i64", "begin = 100 : i64"))


def test_results_that_are_ready_later(handlers: Path) -> None:
    hilo.register_custom_call("later", (handlers, "later"), convention="xla-ffi")
    text = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %t = stablehlo.create_token : !stablehlo.token
      %r = stablehlo.custom_call @later(%x, %t) {api_version = 4 : i32, backend_config = {fail = false}}
        : (tensor<3xf32>, !stablehlo.token) -> tensor<3xf32>
      return %r : tensor<3xf32> }"""
    x = np.arange(3, dtype=np.float32)
    assert run(text, x)[0].tolist() == [0, 1, 2]
    with pytest.raises(hilo.Error, match="'later' failed: it failed later"):
        run(text.replace("false", "true"), x)
