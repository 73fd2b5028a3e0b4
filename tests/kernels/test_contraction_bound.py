"""Contractions with constant operands: laid out once, right for every target, shape and type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import numpy.typing
import pytest

import hilo
from hilo.ir import dtypes
from hilo.kernels.contraction_algebra import Dim
from hilo.kernels.contraction_bound import Panels

TARGETS = ["x86-avx512", "x86-avx2", "x86-sse2"]
TYPES = [np.float64, ml_dtypes.bfloat16, np.float16, np.int32, np.int8, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2,
         ml_dtypes.int4]  # fmt: skip
NAMES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "float16": "f16", "int32": "i32", "int8": "i8",
         "float8_e4m3fn": "f8E4M3FN", "float8_e5m2": "f8E5M2", "int4": "i4"}


def tensor(shape: tuple[int, ...], dtype: np.typing.DTypeLike) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{NAMES[np.dtype(dtype).name]}>"


def product(a: np.ndarray, b: np.ndarray, dims: str, out: tuple[int, ...], dtype: np.typing.DTypeLike) -> str:
    x, y, z = tensor(a.shape, a.dtype), tensor(b.shape, b.dtype), tensor(out, dtype)
    return f"""func.func @main(%a: {x}, %b: {y}) -> {z} {{
      %r = stablehlo.dot_general %a, %b, {dims} : ({x}, {y}) -> {z}
      return %r : {z} }}"""


def values(shape: tuple[int, ...], dtype: np.typing.DTypeLike, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(dtype)


def check(text: str, arrays: list[np.ndarray], target: str) -> None:
    """Whole numbers: every order of summation gives the same bits, bound or not."""
    want = hilo.interpret(text, *arrays)[0]
    for bound in (0, 1):
        f = hilo.compile(text, target=target, constants={bound: arrays[bound]}, threads=1)
        np.testing.assert_array_equal(f(arrays[1 - bound])[0], want)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("m", "k", "n"), [(33, 70, 77), (128, 900, 60), (1, 64, 64), (5, 1000, 3), (70, 20, 1), (40, 3, 200),
                        (90, 40, 24), (57, 33, 17), (60, 50, 40), (31, 20, 8), (64, 300, 1000)]
)  # fmt: skip
def test_matrices(target: str, m: int, k: int, n: int) -> None:
    a = values((m, k), np.float32, 0)
    for turned in (0, 1):
        b = values((n, k) if turned else (k, n), np.float32, 1)
        check(product(a, b, f"contracting_dims = [1] x [{turned}]", (m, n), np.float32), [a, b], target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", TYPES, ids=lambda d: np.dtype(d).name)
def test_types(target: str, dtype: type) -> None:
    a, b = values((20, 50), dtype, 0), values((50, 45), dtype, 1)
    out = np.int32 if dtype is np.int8 else np.float32 if dtype is not np.float64 and dtype is not np.int32 else dtype
    check(product(a, b, "contracting_dims = [1] x [0]", (20, 45), out), [a, b], target)


@pytest.mark.parametrize("target", TARGETS)
def test_batches_and_several_dims(target: str) -> None:
    a, b = values((3, 4, 19, 5), np.float32, 0), values((5, 3, 37, 4), np.float32, 1)
    dims = "batching_dims = [0] x [1], contracting_dims = [1, 3] x [3, 0]"
    check(product(a, b, dims, (3, 19, 37), np.float32), [a, b], target)


def test_the_original_is_not_kept() -> None:
    a, b = values((64, 96), np.float32, 0), values((96, 64), np.float32, 1)
    text = product(a, b, "contracting_dims = [1] x [0]", (64, 64), np.float32)
    f = hilo.compile(text, constants={1: b}, threads=1)
    assert f.memory().constants == b.nbytes


def test_layout() -> None:
    b = np.arange(15, dtype=np.float32).reshape(3, 5)
    panels = Panels((), (Dim(3, 1, 5),), (Dim(5, 0, 1),), 2, (2, 2, 2), dtypes.f32)
    want = [[0, 1, 5, 6, 2, 3, 7, 8, 4, 0, 9, 0, 10, 11, 12, 13, 14, 0]]
    np.testing.assert_array_equal(panels.arrange(b), want)
    alone = Panels((), (Dim(3, 1, 5),), (Dim(5, 0, 1),), 3, (6,), dtypes.f32)
    np.testing.assert_array_equal(alone.arrange(b)[0, :6], [0, 1, 2, 3, 4, 0])
