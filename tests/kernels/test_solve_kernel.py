"""Triangular solves for one column, on every target: both triangles, turned or not, odd sizes, batches."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, unaligned

from hilo.backend.target import Target
from hilo.ir.dtypes import f32, f64
from hilo.ir.module import parameter
from hilo.ir.types import TensorType
from hilo.ops.linalg import triangular_solve


@pytest.mark.parametrize("target", [*TARGETS, "scalar"])
@pytest.mark.parametrize(("n", "dtype"), [(1, f64), (15, f32), (67, f32), (150, f64)])
def test_one_column(target, n, dtype):
    rng = np.random.default_rng(n)
    for lower, how, unit in product((True, False), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"), (True, False)):
        a = rng.normal(size=(2, n, n)) / n + (0 if unit else np.eye(n))
        y = rng.normal(size=(2, n, 1))
        half = np.tril(a, -1) if lower else np.triu(a, 1)
        half = half + np.eye(n) * (1 if unit else a)
        want = np.linalg.solve(half if how == "NO_TRANSPOSE" else half.transpose(0, 2, 1), y)
        other = np.triu_indices(n, 1) if lower else np.tril_indices(n, -1)
        a[:, other[0], other[1]] = np.nan
        types = TensorType(dtype, a.shape), TensorType(dtype, y.shape)
        op = triangular_solve(*(parameter(i, t) for i, t in enumerate(types)), left_side=True, lower=lower,
                              unit_diagonal=unit, transpose_a=how)  # fmt: skip
        (got,) = Kernel(op, Target.named(target))(*(unaligned(x.astype(dtype.np)) for x in (a, y)))
        assert np.abs(got - want).max() < 20 * np.finfo(dtype.np).eps * np.abs(want).max()
