"""Triangular solves for one column and for many, on every target: both triangles, turned or not, odd sizes."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, unaligned

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, f32, f64
from hilo.ir.module import parameter
from hilo.ir.types import TensorType
from hilo.kernels import solve_columns
from hilo.ops.linalg import triangular_solve

WAYS = list(product((True, False), ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"), (True, False)))


def check(target: Target, n: int, columns: int, dtype: DType, lower: bool, how: str, unit: bool) -> Kernel:
    """Two systems, with NaN where nothing may be read, against numpy; in one piece and in several."""
    rng = np.random.default_rng(n)
    a = rng.normal(size=(2, n, n)) / n + (0 if unit else np.eye(n))
    y = rng.normal(size=(2, n, columns))
    half = np.tril(a, -1) if lower else np.triu(a, 1)
    half = half + np.eye(n) * (1 if unit else a)
    want = np.linalg.solve(half if how == "NO_TRANSPOSE" else half.transpose(0, 2, 1), y)
    other = np.triu_indices(n, 0 if unit else 1) if lower else np.tril_indices(n, 0 if unit else -1)
    a[:, other[0], other[1]] = np.nan
    types = TensorType(dtype, a.shape), TensorType(dtype, y.shape)
    op = triangular_solve(*(parameter(i, t) for i, t in enumerate(types)), left_side=True, lower=lower,
                          unit_diagonal=unit, transpose_a=how)  # fmt: skip
    kernel = Kernel(op, target)
    operands = [unaligned(x.astype(dtype.np)) for x in (a, y)]
    (got,) = kernel(*operands)
    assert np.abs(got - want).max() < 20 * np.finfo(dtype.np).eps * np.abs(want).max()
    assert kernel(*operands, pieces=1)[0].tobytes() == got.tobytes()
    return kernel


@pytest.mark.parametrize("target", [*TARGETS, "scalar"])
@pytest.mark.parametrize(("n", "dtype"), [(1, f64), (15, f32), (67, f32), (150, f64)])
def test_one_column(target, n, dtype):
    for way in WAYS:
        check(Target.named(target), n, 1, dtype, *way)


@pytest.fixture
def from_few_rows_on(monkeypatch):
    """Copies pay always, so that small systems go that way."""
    monkeypatch.setattr(solve_columns, "SMALLEST", 1)


@pytest.mark.parametrize("target", [*TARGETS, "scalar"])
@pytest.mark.parametrize(("n", "columns", "dtype"), [(5, 33, f32), (67, 64, f32), (45, 19, f64), (101, 100, f64)])
def test_many_columns(target, n, columns, dtype, from_few_rows_on):
    for way in WAYS:
        check(Target.named(target), n, columns, dtype, *way)


def test_long_strips_are_in_scratch(from_few_rows_on, monkeypatch):
    size = solve_columns.STACK_BYTES
    for way in WAYS:
        on_stack = check(Target.host(), 77, 70, f32, *way).lowered.scratch
        monkeypatch.setattr(solve_columns, "STACK_BYTES", 0)
        assert check(Target.host(), 77, 70, f32, *way).lowered.scratch > on_stack
        monkeypatch.setattr(solve_columns, "STACK_BYTES", size)


def test_columns_are_solved_for_side_by_side():
    """64 columns are two units."""
    kernel = check(Target.named("x86-avx512"), 128, 64, f32, True, "NO_TRANSPOSE", False)
    assert [p.units for p in kernel.lowered.phases] == [2 * 16, 2 * 2]


@pytest.mark.parametrize(("n", "columns"), [(33, 40), (64, 17), (83, 129)])
def test_the_bits_are_those_of_row_by_row(n, columns, from_few_rows_on, monkeypatch):
    """With zeros of both signs, infinities and NaN among the values: padding takes part in nothing."""
    rng = np.random.default_rng(n)
    y = rng.normal(size=(n, columns)).astype(np.float32)
    y[:, 0], y[:, 1], y[5, 2], y[7, 3] = 0.0, -0.0, np.inf, np.nan
    for lower, how, unit in WAYS:
        a = (rng.normal(size=(n, n)) / n + np.eye(n)).astype(np.float32)
        op = triangular_solve(parameter(0, TensorType(f32, a.shape)), parameter(1, TensorType(f32, y.shape)),
                              left_side=True, lower=lower, unit_diagonal=unit, transpose_a=how)  # fmt: skip
        (got,) = Kernel(op, Target.named("x86-avx512"))(a, y)
        monkeypatch.setattr(solve_columns, "SMALLEST", n + 1)
        kernel = Kernel(op, Target.named("x86-avx512"))
        monkeypatch.setattr(solve_columns, "SMALLEST", 1)
        assert len(kernel.lowered.phases) == 1
        np.testing.assert_array_equal(kernel(a, y)[0].view(np.int32), got.view(np.int32))
