"""cholesky and triangular_solve, interpreted and compiled, against numpy; one refusal per constraint."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op, type_of

import hilo
from hilo.ir.dtypes import f32, f64, i32
from hilo.ir.module import Module, region
from hilo.ir.types import UNKNOWN, TensorType
from hilo.ops.linalg import TRANSPOSES, cholesky, triangular_solve


def both(kind: Any, *arrays: np.ndarray, **attrs: Any) -> list[np.ndarray]:
    """The op's value interpreted and compiled."""
    m = Module({"main": region([type_of(x) for x in arrays], lambda *xs: kind(*xs, **attrs), "main")})
    return [run_op(kind, *arrays, **attrs), np.asarray(hilo.compile(m)(*arrays)[0])]


def matrices(rng: np.random.Generator, shape: Any, dtype: Any) -> np.ndarray:
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize(("shape", "dtype"), [
    ((1, 1), np.float32), ((7, 7), np.float64), ((2, 3, 5, 5), np.complex128), ((40, 40), np.float64),
    ((65, 65), np.complex64), ((3, 20, 20), np.float32),
])  # fmt: skip
def test_factors(shape, dtype, lower):
    rng = np.random.default_rng(0)
    m = matrices(rng, shape, dtype)
    a = m @ np.conj(np.swapaxes(m, -1, -2)) + shape[-1] * np.eye(shape[-1], dtype=dtype)
    garbage = np.triu(np.full(shape[-2:], np.nan), 1)  # in the triangle that must not be read
    a = np.where(np.isnan(garbage if lower else garbage.T), np.nan, a).astype(dtype)
    want = np.linalg.cholesky(a)
    want = want if lower else np.conj(np.swapaxes(np.linalg.cholesky(np.conj(np.swapaxes(a, -1, -2))), -1, -2))
    eps = 1e-10 if np.finfo(dtype).bits == 64 else 1e-4
    for got in both(cholesky, a, lower=lower):
        np.testing.assert_allclose(got, want, rtol=eps, atol=eps)


def test_no_factor_is_nan():
    a = np.array([[4, 2, 0], [2, -1, 0], [0, 0, 1]], np.float32)
    for got in both(cholesky, a, lower=True):
        assert got[0, 0] == 2.0
        assert np.isnan(got[1, 1])


@pytest.mark.parametrize(("lower", "left", "unit", "how"), list(product([0, 1], [0, 1], [0, 1], TRANSPOSES)))
def test_solves(lower, left, unit, how):
    rng = np.random.default_rng(0)
    for dtype, n, columns, batch in ((np.float64, 6, 35, ()), (np.complex128, 4, 3, (2,)), (np.float32, 9, 1, (2, 2))):
        a = matrices(rng, (*batch, n, n), dtype) / n
        np.einsum("...ii->...i", a)[...] += 1 if not unit else np.nan  # a unit diagonal is not read
        kept = np.tril(a) if lower else np.triu(a)
        if unit:
            np.einsum("...ii->...i", kept)[...] = 1
        hidden = np.triu(np.ones((n, n)), 1) if lower else np.tril(np.ones((n, n)), -1)
        a = np.where(hidden > 0, np.nan, a).astype(dtype)
        b = matrices(rng, (*batch, *((n, columns) if left else (columns, n))), dtype)
        flags = {"left_side": bool(left), "lower": bool(lower), "unit_diagonal": bool(unit), "transpose_a": how}
        m = {"NO_TRANSPOSE": kept, "TRANSPOSE": np.swapaxes(kept, -1, -2)}.get(how, np.conj(np.swapaxes(kept, -1, -2)))
        eps = 1e-9 if dtype is not np.float32 else 1e-3
        for x in both(triangular_solve, a, b, **flags):
            assert x.dtype == dtype
            np.testing.assert_allclose(m @ x if left else x @ m, b, rtol=eps, atol=eps)


def test_unknown_sizes():
    t = TensorType(f32, (UNKNOWN, UNKNOWN))
    assert cholesky.infer(t, lower=True) is t


X, Y = TensorType(f32, (2, 3, 3)), TensorType(f32, (2, 3, 4))
FLAGS = {"left_side": True, "lower": True, "unit_diagonal": False, "transpose_a": "NO_TRANSPOSE"}
BAD: list[tuple[str, Any, Any, dict[str, Any]]] = [
    ("I1", cholesky, (TensorType(i32, (3, 3)),), {}),
    ("C2", cholesky, (TensorType(f32, (3,)),), {}),
    ("C3", cholesky, (Y,), {}),
    ("C1", triangular_solve, (X, TensorType(f64, (2, 3, 4))), FLAGS),
    ("C2", triangular_solve, (X, TensorType(f32, (3, 4))), FLAGS),
    ("C2", triangular_solve, (TensorType(f32, (3,)), TensorType(f32, (3,))), FLAGS),
    ("C3", triangular_solve, (X, TensorType(f32, (3, 3, 4))), FLAGS),
    ("C3", triangular_solve, (Y, Y), FLAGS),
    ("C3", triangular_solve, (X, Y), {**FLAGS, "left_side": False}),
    ("I6", triangular_solve, (X, Y), {**FLAGS, "transpose_a": "TRANSPOSE_INVALID"}),
]


@pytest.mark.parametrize(("rule", "kind", "types", "attrs"), BAD)
def test_refusals(rule, kind, types, attrs):
    refuses(rule, kind, types, **attrs)
