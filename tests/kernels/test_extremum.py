"""Reductions to the greatest and least float: NaN wins, whatever its sign; zeros in order; all bits as interpreted."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import hilo

SPECIAL = ([0.0, -0.0], [np.nan, 1, -2], [-np.nan, np.inf, -np.inf], [-np.inf], [np.inf], [1, 2, -3, 1e-40, -1e-40],
           [-0.0, -1], [-np.nan, -1], [1, 3])  # fmt: skip
NUMPY = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}


def text(op: str, dtype: str, shape: tuple[int, int], axis: int, init: str) -> str:
    array, result = f"tensor<{shape[0]}x{shape[1]}x{dtype}>", f"tensor<{shape[1 - axis]}x{dtype}>"
    return f"""func.func @main(%a: {array}) -> {result} {{
        %c = stablehlo.constant dense<{init}> : tensor<{dtype}>
        %r = stablehlo.reduce(%a init: %c) applies stablehlo.{op} across dimensions = [{axis}]
            : ({array}, tensor<{dtype}>) -> {result}
        return %r : {result}
    }}"""


@pytest.mark.parametrize("target", ["host", "x86-avx2", "x86-sse2"])
@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize(("dtype", "init"), [("f32", "0xFF800000"), ("f32", "0x7FC00000"), ("f32", "0x80000000"),
                                             ("bf16", "0x7F80"), ("f16", "0.0")])  # fmt: skip
def test_special_values(op: str, dtype: str, init: str, target: str) -> None:
    for shape, axis in (((9, 1), 1), ((5, 37), 1), ((70, 33), 0)):
        module = hilo.parse(text(op, dtype, shape, axis, init))
        compiled = hilo.compile(module, target=target)
        for values in SPECIAL:
            a = np.random.default_rng(1).choice(np.array(values, np.float32).astype(NUMPY[dtype]), shape)
            got, want = (np.asarray(x, np.float32) for x in (compiled(a), hilo.interpret(module, a)))
            nan = np.isnan(want)
            np.testing.assert_array_equal(np.isnan(got), nan)
            np.testing.assert_array_equal(got[~nan].view(np.uint32), want[~nan].view(np.uint32))
