"""Selecting the largest elements: like sorting them all, whatever the order in which they come, on every target."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, dtype, f32, f64, i1, i64
from hilo.ir.interpret import evaluate
from hilo.ir.module import parameter
from hilo.ir.types import TensorType
from hilo.ops.sort import selects, top_k


def numbers(d: DType, n: int, how: str) -> np.ndarray:
    rng = np.random.default_rng(n)
    if d.is_int:
        info = np.iinfo(d.np)
        x = rng.integers(info.min, info.max, (3, n), dtype=d.np, endpoint=True)
        x = {"ties": x % 3, "equal": np.full_like(x, info.min)}.get(how, x)
    else:
        x = rng.normal(size=(3, n))
        x = {"ties": x.round(), "equal": np.ones_like(x)}.get(how, x)
    x = {"rising": np.sort(x, -1), "falling": -np.sort(-x.astype(np.float64), -1)}.get(how, x).astype(d.np)
    if d.is_float:
        for k, v in enumerate((0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf)):
            x[k % 3, k :: 70 + k] = v
    return x


@pytest.mark.parametrize("target", [*TARGETS, "scalar"])
@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "i8", "u8", "i16", "i32", "u32"])
@pytest.mark.parametrize(("n", "k"), [(256, 1), (1003, 250)])
def test_like_sorting(target, name, n, k):
    d = dtype(name)
    t = TensorType(d, (3, n))
    assert selects(t, k)
    op = top_k(parameter(0, t), k=k)
    kernel = Kernel(op, Target.named(target))
    for how in ("random", "rising", "falling", "ties", "equal"):
        x = numbers(d, n, how)
        for got, want in zip(kernel(x, pieces=2), evaluate(op, [x]), strict=True):
            assert got.tobytes() == want.tobytes()


def test_what_is_sorted_instead():
    cases = [(f32, 255, 1), (f32, 1000, 251), (f32, 1000, 0), (f64, 1000, 1), (i64, 1000, 1), (i1, 1000, 1)]
    assert not any(selects(TensorType(d, (n,)), k) for d, n, k in cases)
