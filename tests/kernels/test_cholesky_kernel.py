"""Cholesky factors by blocks: against numpy in double precision, for all targets, odd sizes, and shared matrices."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, f32, f64
from hilo.ir.module import parameter
from hilo.ir.types import TensorType
from hilo.kernels import cholesky as blocks
from hilo.kernels import cholesky_code
from hilo.ops.linalg import cholesky


def matrices(batch: int, n: int, dtype: DType, lower: bool) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric positive definite matrices, NaN in the triangle that does not count; and their factors."""
    x = np.random.default_rng(n).normal(size=(batch, n, n))
    x = x @ x.transpose(0, 2, 1) / n + np.eye(n)
    factor = np.linalg.cholesky(x)
    other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
    x[:, other[0], other[1]] = np.nan
    return x.astype(dtype.np), factor if lower else factor.transpose(0, 2, 1)


def check(batch: int, n: int, dtype: DType, lower: bool, target: Target) -> Kernel:
    x, want = matrices(batch, n, dtype, lower)
    kernel = Kernel(cholesky(parameter(0, TensorType(dtype, x.shape)), lower=lower), target)
    (got,) = kernel(x)
    assert np.abs(got - want).max() < 60 * np.finfo(dtype.np).eps
    assert kernel(x, pieces=1)[0].tobytes() == got.tobytes()
    return kernel


@pytest.mark.parametrize("target", [*TARGETS, "scalar"])
@pytest.mark.parametrize("dtype", [f32, f64])
@pytest.mark.parametrize(("batch", "n", "lower"), [(1, 48, True), (5, 50, False), (2, 97, True), (1, 131, False)])
def test_sizes(target, dtype, batch, n, lower):
    check(batch, n, dtype, lower, Target.named(target))


@pytest.mark.parametrize(("batch", "n", "lower"), [(1, 101, True), (3, 250, False), (2, 129, True), (1, 333, False)])
def test_matrices_that_threads_share(batch, n, lower, monkeypatch):
    monkeypatch.setattr(blocks, "ALONE", 0)
    for dtype in (f32, f64):
        kernel = check(batch, n, dtype, lower, Target.host())
        assert len(kernel.lowered.phases) >= 5


@pytest.mark.parametrize("lower", [True, False])
def test_however_it_is_cut_the_bits_are_the_same(lower, monkeypatch):
    """By one thread, by several, in small blocks and in large ones."""
    x, _ = matrices(1, 300, f32, lower)
    results = []
    for alone, block in ((0, 32), (0, 64), (0, 160), (1000, 32), (1000, 96)):
        monkeypatch.setattr(blocks, "ALONE", alone)
        monkeypatch.setattr(cholesky_code, "BLOCK", block)
        kernel = Kernel(cholesky(parameter(0, TensorType(f32, x.shape)), lower=lower), Target.host())
        results += [kernel(x, pieces=n)[0].tobytes() for n in (1, 2, 5)]
    assert len(set(results)) == 1


def test_what_is_not_positive_definite_is_nan_from_there_on():
    x = np.eye(80, dtype=np.float32)
    x[60, 60] = -1
    kernel = Kernel(cholesky(parameter(0, TensorType(f32, (80, 80))), lower=True), Target.host())
    (got,) = kernel(x)
    np.testing.assert_array_equal(got[:60, :60], np.eye(60))
    assert np.isnan(got[60, 60])
    np.testing.assert_array_equal(np.triu(got, 1), 0)
