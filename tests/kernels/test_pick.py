"""argmax and argmin: recognised by what their bodies do; right with NaNs, ties, infinities, on every target."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import Kernel

import hilo
from hilo.backend.target import Target
from hilo.ir.dtypes import f32
from hilo.ir.module import Function, parameter
from hilo.ir.types import TensorType
from hilo.kernels.pick import picks
from hilo.ops.fusion import fusion

TARGETS = ["x86-avx512", "x86-avx2", "x86-sse2"]
NAMES = {"float32": "f32", "float64": "f64", "int32": "i32", "int8": "i8", "uint16": "ui16", "int64": "i64"}


def program(
    shape: tuple[int, int], axis: int, dtype: type, most: bool = True, index: str = "i32", tie: str = "LT"
) -> str:
    """The body that JAX writes."""
    e = NAMES[np.dtype(dtype).name]
    m, n = shape
    x, i, o = f"tensor<{m}x{n}x{e}>", f"tensor<{m}x{n}x{index}>", shape[1 - axis]
    v, j = f"tensor<{e}>", f"tensor<{index}>"
    kind = "FLOAT" if e[0] == "f" else "UNSIGNED" if e[0] == "u" else "SIGNED"
    infinity = {"f32": "0x{}F800000", "f64": "0x{}FF0000000000000"}
    if e in infinity:
        worst = infinity[e].format("F" if most else "7")
    else:
        worst = str(np.iinfo(dtype).min if most else np.iinfo(dtype).max)
    return f"""func.func @main(%x: {x}) -> (tensor<{o}x{e}>, tensor<{o}x{index}>) {{
      %i = stablehlo.iota dim = {axis} : {i}
      %a = stablehlo.constant dense<{worst}> : {v}
      %b = stablehlo.constant dense<0> : {j}
      %r:2 = stablehlo.reduce(%x init: %a), (%i init: %b) across dimensions = [{axis}]
        : ({x}, {i}, {v}, {j}) -> (tensor<{o}x{e}>, tensor<{o}x{index}>)
      reducer(%p: {v}, %s: {v}) (%q: {j}, %t: {j}) {{
        %1 = stablehlo.compare {"GT" if most else "LT"}, %p, %s, {kind} : ({v}, {v}) -> tensor<i1>
        %2 = stablehlo.compare NE, %p, %p, {kind} : ({v}, {v}) -> tensor<i1>
        %3 = stablehlo.or %1, %2 : tensor<i1>
        %4 = stablehlo.compare EQ, %p, %s, {kind} : ({v}, {v}) -> tensor<i1>
        %5 = stablehlo.compare {tie}, %q, %t, SIGNED : ({j}, {j}) -> tensor<i1>
        %6 = stablehlo.and %4, %5 : tensor<i1>
        %7 = stablehlo.or %3, %6 : tensor<i1>
        %8 = stablehlo.select %3, %p, %s : tensor<i1>, {v}
        %9 = stablehlo.select %7, %q, %t : tensor<i1>, {j}
        stablehlo.return %8, %9 : {v}, {j}
      }}
      return %r#0, %r#1 : tensor<{o}x{e}>, tensor<{o}x{index}> }}"""


def values(shape: tuple[int, int], dtype: type) -> np.ndarray:
    rng = np.random.default_rng(shape[0])
    x = rng.integers(0, 6, shape).astype(dtype)
    if np.dtype(dtype).kind == "f":
        x[rng.random(shape) < 0.02] = np.nan
        x[rng.random(shape) < 0.1] = np.inf
        x[0] = -np.inf
    return x


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("most", [True, False])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(7, 33), (40, 300), (3, 5), (2, 70_000), (70_000, 2)])
def test_floats(target: str, most: bool, axis: int, shape: tuple[int, int]) -> None:
    x = values(shape, np.float32)
    got, where = hilo.compile(program(shape, axis, np.float32, most), target=target)(x)
    first = (np.argmax if most else np.argmin)(x, axis)  # numpy, too, takes the first NaN
    np.testing.assert_array_equal(where, first)
    np.testing.assert_array_equal(got, np.take_along_axis(x, np.expand_dims(first, axis), axis).squeeze(axis))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int8, np.uint16, np.int64])
@pytest.mark.parametrize("index", ["i32", "i64"])
def test_types(dtype: type, index: str) -> None:
    x = values((20, 130), dtype)
    got, where = hilo.compile(program((20, 130), 1, dtype, True, index))(x)
    np.testing.assert_array_equal(where, x.argmax(1))
    np.testing.assert_array_equal(got, x[np.arange(20), x.argmax(1)])


@pytest.mark.parametrize("index", ["i8", "i32"])
@pytest.mark.parametrize("most", [True, False])
def test_indices_that_wrap_around_and_initial_pairs(index: str, most: bool) -> None:
    text = program((9, 300), 1, np.float32, most, index)
    for start in ("dense<0> :", "dense<7> :"):
        for worst in (None, "dense<4.0>"):
            other = text.replace("dense<0> :", start)
            if worst is not None:
                other = other.replace("dense<0xFF800000>", worst).replace("dense<0x7F800000>", worst)
            x = values((9, 300), np.float32)
            x[4] = 3.0
            for got, want in zip(hilo.compile(other)(x), hilo.interpret(other, x), strict=True):
                np.testing.assert_array_equal(got, want)


def test_beside_a_reduction_in_order() -> None:
    """Accumulated values then begin with the initial ones."""
    text = program((9, 300), 1, np.float32).replace("dense<0> :", "dense<7> :")
    text = text.replace("dense<0xFF800000>", "dense<4.0>")
    text = text.replace("-> (tensor<9xf32>, tensor<9xi32>) {", "-> (tensor<9xf32>, tensor<9xi32>, tensor<9xf32>) {", 1)
    text = text.replace("return %r#0, %r#1 : tensor<9xf32>, tensor<9xi32>", """%d = stablehlo.reduce(%x init: %a)
        across dimensions = [1] : (tensor<9x300xf32>, tensor<f32>) -> tensor<9xf32>
      reducer(%p: tensor<f32>, %q: tensor<f32>) {
        %1 = stablehlo.subtract %p, %q : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }
      return %r#0, %r#1, %d : tensor<9xf32>, tensor<9xi32>, tensor<9xf32>""")
    x = values((9, 300), np.float32)
    x[4] = 3.0
    op = fusion(parameter(0, TensorType(f32, x.shape)), body=hilo.parse(text)["main"], kind="rows")
    got, want = Kernel(op, Target.named("x86-avx512"))(x), hilo.interpret(text, x)
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])


def test_recognition() -> None:
    def body(text: str) -> Function:
        return next(o for o in hilo.parse(text)["main"].ops if o.name == "reduce").attrs["body"]

    largest, smallest = (body(program((4, 4), 1, np.float32, most)) for most in (True, False))
    assert picks(largest, True)
    assert not picks(largest, False)
    assert picks(smallest, False)
    assert not picks(smallest, True)
    assert not picks(body(program((4, 4), 1, np.float32, True, tie="GT")), True)
