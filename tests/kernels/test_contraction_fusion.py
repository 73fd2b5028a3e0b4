"""Contractions with what follows them in one kernel: the same bits as kernels one after the other, on every target."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hilo
from hilo.options import Options

TARGETS = ["x86-avx512", "x86-avx2", "x86-sse2"]
NAMES = {"float32": "f32", "float64": "f64", "bfloat16": "bf16", "int32": "i32", "int8": "i8"}


def tensor(dtype: np.typing.DTypeLike, *shape: int) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}{NAMES[np.dtype(dtype).name]}>"


def values(dtype: np.typing.DTypeLike, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(sum(shape))
    return (rng.integers(-9, 9, shape) if np.dtype(dtype).kind == "i" else rng.standard_normal(shape)).astype(dtype)


def check(text: str, arrays: list[np.ndarray], target: str = "host", kernels: int = 1, **more: object) -> None:
    fused = hilo.compile(text, target=target, **more)  # type: ignore[arg-type]
    alone = hilo.compile(text, target=target, options=Options(fuse=False), **more)  # type: ignore[arg-type]
    names = {line.split()[0] for line in fused.text("kernels").splitlines()[1:] if "contraction_" not in line}
    assert len([n for n in names if "fusion" in n]) >= kernels > 0
    assert not any("dot_general" in n for n in names)
    for x, y in zip(fused(*arrays), alone(*arrays), strict=True):
        np.testing.assert_array_equal(x.view(np.uint8), y.view(np.uint8))


def layer(
    dtype: np.typing.DTypeLike, m: int, k: int, n: int, weights: str = "[1] x [0]"
) -> tuple[str, list[np.ndarray]]:
    """tanh(x W + bias) * 0.5 + residual, where the residual takes part in another shape."""
    b = (n, k) if weights.endswith("[1]") else (k, n)
    x, w, v, c, flat = (tensor(dtype, *s) for s in ((m, k), b, (n,), (m, n), (m * n,)))
    text = f"""func.func @main(%x: {x}, %w: {w}, %v: {v}, %r: {flat}) -> {flat} {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = {weights} : ({x}, {w}) -> {c}
      %1 = stablehlo.broadcast_in_dim %v, dims = [1] : ({v}) -> {c}
      %2 = stablehlo.add %0, %1 : {c}
      %3 = stablehlo.tanh %2 : {c}
      %h = stablehlo.constant dense<0.5> : {c}
      %4 = stablehlo.multiply %3, %h : {c}
      %5 = stablehlo.reshape %4 : ({c}) -> {flat}
      %6 = stablehlo.add %5, %r : {flat}
      return %6 : {flat} }}"""
    return text, [values(dtype, m, k), values(dtype, *b), values(dtype, n), values(dtype, m * n)]


SHAPES = [(33, 70, 77), (1, 70, 90), (3, 200, 40), (130, 40, 3), (70, 20, 1), (64, 700, 96), (5, 3, 5), (200, 16, 7)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weights", ["[1] x [0]", "[1] x [1]"])
def test_layers(target: str, shape: tuple[int, int, int], weights: str) -> None:
    text, arrays = layer(np.float32, *shape, weights)
    check(text, arrays, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [np.float64, ml_dtypes.bfloat16], ids=["f64", "bf16"])
def test_types(target: str, dtype: type) -> None:
    text, arrays = layer(dtype, 33, 70, 45)
    check(text, arrays, target)


@pytest.mark.parametrize("threads", [1, 2])
def test_long_k_that_is_shared_out(threads: int) -> None:
    text, arrays = layer(np.float32, 5, 90_000, 6)
    check(text, arrays, threads=threads)


@pytest.mark.parametrize("target", TARGETS)
def test_integers_become_floats(target: str) -> None:
    x, w, c, s = tensor(np.int8, 20, 50), tensor(np.int8, 50, 33), tensor(np.int32, 20, 33), tensor(np.float32, 20, 33)
    text = f"""func.func @main(%x: {x}, %w: {w}, %s: {s}) -> {s} {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {c}
      %1 = stablehlo.convert %0 : ({c}) -> {s}
      %2 = stablehlo.multiply %1, %s : {s}
      return %2 : {s} }}"""
    check(text, [values(np.int8, 20, 50), values(np.int8, 50, 33), values(np.float32, 20, 33)], target)


def test_operands_may_take_part_in_what_follows() -> None:
    t = tensor(np.float32, 40, 40)
    text = f"""func.func @main(%x: {t}, %w: {t}) -> {t} {{
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({t}, {t}) -> {t}
      %1 = stablehlo.add %0, %x : {t}
      %2 = stablehlo.subtract %1, %w : {t}
      return %2 : {t} }}"""
    x, w = values(np.float32, 40, 40), values(np.float32, 40, 40) + 1
    check(text, [x, w])
    check(text, [x], constants={1: w})
    square = text.replace("%w: ", "%unused: ").replace("%w", "%x")
    check(square, [x, w])


def test_bound_weights() -> None:
    text, (x, w, v, r) = layer(np.float32, 33, 70, 77)
    check(text, [x, r], constants={1: w, 2: v})


def test_batches() -> None:
    x, w, c = tensor(np.float32, 6, 17, 20), tensor(np.float32, 6, 20, 35), tensor(np.float32, 6, 17, 35)
    text = f"""func.func @main(%x: {x}, %w: {w}, %r: {c}) -> {c} {{
      %0 = stablehlo.dot_general %x, %w, batching_dims = [0] x [0], contracting_dims = [2] x [1] : ({x}, {w}) -> {c}
      %1 = stablehlo.maximum %0, %r : {c}
      return %1 : {c} }}"""
    check(text, [values(np.float32, 6, 17, 20), values(np.float32, 6, 20, 35), values(np.float32, 6, 17, 35)])


def test_a_product_with_other_users_stays_alone() -> None:
    t = tensor(np.float32, 40, 40)
    text = f"""func.func @main(%x: {t}) -> ({t}, {t}) {{
      %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : ({t}, {t}) -> {t}
      %1 = stablehlo.tanh %0 : {t}
      return %0, %1 : {t}, {t} }}"""
    assert "dot_general" in hilo.compile(text).text("kernels")
