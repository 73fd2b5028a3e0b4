"""Batch normalization against formulas in f64, and the gradient against differences; one refusal per constraint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op

from hilo.ir.dtypes import f32, f64, i32
from hilo.ir.types import UNKNOWN, Results, TensorType
from hilo.ops.batch_norm import batch_norm_grad, batch_norm_inference, batch_norm_training

EPSILON = 0.01


def formula(x: np.ndarray, scale, offset, mean, variance, d: int) -> np.ndarray:
    shape = [-1 if k == d else 1 for k in range(x.ndim)]
    s, o, m, v = (np.asarray(y).reshape(shape) for y in (scale, offset, mean, variance))
    return s * (x - m) / np.sqrt(v + EPSILON) + o


@pytest.mark.parametrize(("shape", "d"), [((4, 3, 5), 1), ((6, 2), 0), ((3,), 0), ((2, 3, 2, 4), 3), ((0, 3), 1)])
def test_formulas(shape, d):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    scale, offset, mean, variance = rng.uniform(0.5, 2.0, (4, shape[d]))
    attrs = {"epsilon": EPSILON, "feature_index": d}
    got = run_op(batch_norm_inference, x, scale, offset, mean, variance, **attrs)
    np.testing.assert_allclose(got, formula(x, scale, offset, mean, variance, d), rtol=1e-12)
    if not x.size:
        return
    others = tuple(k for k in range(len(shape)) if k != d)
    m, v = x.mean(others), x.var(others)
    got = run_op(batch_norm_training, x, scale, offset, **attrs)
    for g, w in zip(got, (formula(x, scale, offset, m, v, d), m, v), strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=1e-12)


def test_the_gradient_is_the_limit_of_differences():
    rng = np.random.default_rng(1)
    x, seed = rng.normal(size=(2, 4, 3, 2))
    scale, offset = rng.uniform(0.5, 2.0, (2, 3))
    attrs = {"epsilon": EPSILON, "feature_index": 1}

    def loss(x, scale, offset) -> float:
        return float((formula(x, scale, offset, x.mean((0, 2)), x.var((0, 2)), 1) * seed).sum())

    got = run_op(batch_norm_grad, x, scale, x.mean((0, 2)), x.var((0, 2)), seed, **attrs)
    for number, (value, grad) in enumerate(zip((x, scale, offset), got, strict=True)):
        for at in np.ndindex(value.shape):
            both = []
            for h in (1e-6, -1e-6):
                moved = [v.copy() for v in (x, scale, offset)]
                moved[number][at] += h
                both.append(loss(*moved))
            assert abs((both[0] - both[1]) / 2e-6 - grad[at]) < 1e-6


def test_each_step_rounds():
    x = np.array([[1.0, 3.0]], np.float16)
    half = np.array([1, 1], np.float16)
    got = run_op(batch_norm_inference, x, half, half, half, half, epsilon=1e-3, feature_index=1)
    want = half * ((x - half) / np.sqrt(half + np.float16(1e-3))) + half
    np.testing.assert_array_equal(got, want)


def test_unknown_sizes():
    x = TensorType(f32, (UNKNOWN, 3))
    f = TensorType(f32, (3,))
    assert batch_norm_training.infer(x, f, f, epsilon=0.1, feature_index=1) is Results([x, f, f])


X, F, G = TensorType(f32, (4, 3)), TensorType(f32, (3,)), TensorType(f32, (4,))
BAD: list[tuple[str, Any, tuple[Any, ...], int]] = [
    *(("C1", k, t, 2) for k, t in ((batch_norm_inference, (X, F, F, F, F)), (batch_norm_training, (X, F, F)),
                                   (batch_norm_grad, (X, F, F, F, X)))),
    ("C2", batch_norm_inference, (X, F, F, F, TensorType(f64, (3,))), 1),
    ("C2", batch_norm_training, (X, F, TensorType(f64, (3,))), 1),
    ("C2", batch_norm_grad, (X, F, F, F, TensorType(f64, (4, 3))), 1),
    *((f"C{i + 2}", batch_norm_inference, (X, *(G if k == i else F for k in range(1, 5))), 1) for i in range(1, 5)),
    ("C3", batch_norm_training, (X, G, F), 1),
    ("C4", batch_norm_training, (X, F, X), 1),
    ("C3", batch_norm_grad, (X, F, F, F, TensorType(f32, (3, 3))), 1),
    ("C4", batch_norm_grad, (X, F, G, F, X), 1),
    ("C5", batch_norm_grad, (X, G, G, G, X), 1),
    ("I1", batch_norm_training, (TensorType(i32, (4, 3)), F, F), 1),
    ("I1", batch_norm_training, (X, F), 1),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "kind", "types", "d"), BAD)
def test_refusals(rule, kind, types, d):
    refuses(rule, kind, types, epsilon=0.1, feature_index=d)
