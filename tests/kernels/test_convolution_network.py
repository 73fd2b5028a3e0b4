"""Convolutions with what follows them, weights as arguments and bound, on one thread and two."""

from __future__ import annotations

import numpy as np
import pytest

import hilo

TARGETS = ["x86-avx512", "x86-avx2", "x86-sse2"]


def block(size: int, features: int, inner: int) -> tuple[str, list[np.ndarray]]:
    """A residual block: 1x1, 3x3 and 1x1 convolutions with normalization, and its arguments (whole numbers). What is
    added at the end is no argument, so that the sum takes its place."""
    x, y = f"tensor<1x{size}x{size}x{features}xf32>", f"tensor<1x{size}x{size}x{inner}xf32>"
    shapes = [(1, size, size, features), (1, 1, features, inner), (3, 3, inner, inner), (1, 1, inner, features)]
    names = [x, *(f"tensor<{'x'.join(map(str, s))}xf32>" for s in shapes[1:])]
    per = [f"tensor<{n}xf32>" for n in (inner, inner, features)]
    arguments = ("x0", "w1", "w2", "w3", "m1", "m2", "m3")
    args = ", ".join(f"%{n}: {t}" for n, t in zip(arguments, [*names, *per], strict=True))

    def conv(out: str, source: str, w: str, types: tuple[str, str, str], pad: int) -> str:
        return f"""%{out} = stablehlo.convolution(%{source}, %{w})
          dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {{pad = [[{pad}, {pad}], [{pad}, {pad}]]}}
          {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({types[0]}, {types[1]}) -> {types[2]}"""

    def relu(out: str, source: str, m: str, t: str, p: str, more: str = "") -> str:
        last = f"%{out}s" if not more else f"%{out}a"
        add = f"%{out}a = stablehlo.add %{out}s, %{more} : {t}" if more else ""
        return f"""%{out}b = stablehlo.broadcast_in_dim %{m}, dims = [3] : ({p}) -> {t}
          %{out}s = stablehlo.subtract %{source}, %{out}b : {t}
          {add}
          %{out}z = stablehlo.constant dense<0.0> : {t}
          %{out} = stablehlo.maximum {last}, %{out}z : {t}"""

    text = f"""func.func @main({args}) -> {x} {{
      %x = stablehlo.abs %x0 : {x}
      {conv("c1", "x", "w1", (x, names[1], y), 0)}
      {relu("r1", "c1", "m1", y, per[0])}
      {conv("c2", "r1", "w2", (y, names[2], y), 1)}
      {relu("r2", "c2", "m2", y, per[1])}
      {conv("c3", "r2", "w3", (y, names[3], x), 0)}
      {relu("r3", "c3", "m3", x, per[2], "x")}
      return %r3 : {x} }}"""
    rng = np.random.default_rng(0)
    shapes += [(inner,), (inner,), (features,)]
    return text, [rng.integers(-2, 3, s).astype(np.float32) for s in shapes]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("size", "features", "inner"), [(7, 512, 128), (15, 67, 33), (30, 64, 48), (4, 1024, 32)])
def test_block(target: str, size: int, features: int, inner: int) -> None:
    """Whole numbers: every order of summation gives the same bits."""
    text, arrays = block(size, features, inner)
    want = hilo.interpret(text, *arrays)[0]
    for threads in (1, 2):
        np.testing.assert_array_equal(hilo.compile(text, target=target, threads=threads)(*arrays)[0], want)
        bound = hilo.compile(text, target=target, threads=threads, constants=dict(enumerate(arrays[1:], 1)))
        np.testing.assert_array_equal(bound(arrays[0])[0], want)


def test_threads_do_not_change_bits() -> None:
    text, arrays = block(28, 96, 64)
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=a.shape).astype(np.float32) for a in arrays]
    for constants in ({}, dict(enumerate(arrays[1:], 1))):
        given = arrays[:1] if constants else arrays
        one, two = (hilo.compile(text, threads=t, constants=constants)(*given)[0] for t in (1, 2))
        np.testing.assert_array_equal(one, two)


def test_a_kernel_that_is_turned_around_is_not_copied() -> None:
    x, w, y = "tensor<2x8x9x20xf32>", "tensor<3x2x20x40xf32>", "tensor<2x6x8x40xf32>"
    text = f"""func.func @main(%x: {x}, %w: {w}) -> {y} {{
      %r = stablehlo.reverse %w, dims = [0, 1] : {w}
      %y = stablehlo.convolution(%x, %r) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
        window = {{reverse = [true, false]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({x}, {w}) -> {y}
      return %y : {y} }}"""
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-3, 4, s).astype(np.float32) for s in ((2, 8, 9, 20), (3, 2, 20, 40))]
    f = hilo.compile(text)
    assert "reverse" not in f.text("kernels")
    np.testing.assert_array_equal(f(*arrays)[0], hilo.interpret(text, *arrays)[0])
