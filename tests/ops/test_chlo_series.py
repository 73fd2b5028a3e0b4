"""bessel_i1e, zeta and polygamma, interpreted and compiled, against mpmath and at their edges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op, type_of

import hilo
from hilo.ir.dtypes import bf16, f32, f64, i32
from hilo.ir.module import Module, region
from hilo.ir.types import TensorType
from hilo.ops.chlo_series import bessel_i1e, polygamma, zeta

mpmath = pytest.importorskip("mpmath", reason="mpmath, the oracle, is not installed")
EPS = {np.float64: 2.0**-52, np.float32: 2.0**-23}


def both(kind: Any, *arrays: np.ndarray) -> list[np.ndarray]:
    m = Module({"main": region([type_of(x) for x in arrays], lambda *xs: kind(*xs), "main")})
    return [run_op(kind, *arrays), np.asarray(hilo.compile(m)(*arrays)[0])]


@pytest.mark.parametrize(("dtype", "ulps"), [(np.float32, 1), (np.float64, 4)])
def test_bessel(dtype, ulps):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-9, 9, 60), 10 ** rng.uniform(-300 if dtype is np.float64 else -30, 3, 40),
                        [8.0, np.nextafter(8, 9), 40.0, 41.0, 1e30]]).astype(dtype)  # fmt: skip
    want = np.array([float(mpmath.exp(-abs(mpmath.mpf(float(v)))) * mpmath.besseli(1, mpmath.mpf(float(v))))
                     if abs(v) < 1e4 else float(1 / mpmath.sqrt(2 * mpmath.pi * float(v))) for v in x])  # fmt: skip
    for got in both(bessel_i1e, x):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=ulps * EPS[dtype])


def test_bessel_at_the_ends():
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan])
    for got in both(bessel_i1e, x):
        assert got[:4].tolist() == [0, 0, 0, 0]
        assert np.signbit(got[:4]).tolist() == [False, True, False, True]
        assert np.isnan(got[4])


@pytest.mark.parametrize(("dtype", "ulps"), [(np.float32, 1), (np.float64, 16)])
def test_zeta(dtype, ulps):
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(1.01, 30, 60), rng.integers(2, 9, 20)]).astype(dtype)
    q = np.concatenate([10 ** rng.uniform(-1, 2, 60), rng.integers(-6, 0, 20) + rng.uniform(0.25, 0.45, 20)])
    q = q.astype(dtype)
    want = np.array([float(mpmath.zeta(float(a), float(b))) for a, b in zip(x, q)])
    for got in both(zeta, x, q):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=ulps * EPS[dtype], atol=1e-14)


def test_zeta_at_its_edges():
    cases = [(1.0, 2.0, np.inf), (0.5, 2.0, np.nan), (2.0, 0.0, np.inf), (3.0, -2.0, np.nan), (2.5, -0.5, np.nan),
             (2.0, np.inf, 0.0), (np.inf, 2.0, 0.0), (np.nan, 1.0, np.nan), (2.0, np.nan, np.nan), (1e30, 0.5, np.inf),
             (1e30, 2.0, 0.0), (400.0, 1.0, 1.0)]  # fmt: skip
    x, q, want = map(np.array, zip(*cases))
    for got in both(zeta, x, q):
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("dtype", "ulps"), [(np.float32, 1), (np.float64, 16)])
def test_polygamma(dtype, ulps):
    rng = np.random.default_rng(0)
    n = rng.integers(0, 8, 60).astype(dtype)
    x = np.where(np.arange(60) < 40, 10 ** rng.uniform(-1, 2, 60), rng.integers(-4, 0, 60) + rng.uniform(0.3, 0.45, 60))
    x = x.astype(dtype)
    with mpmath.workdps(40):
        want = np.array([float(mpmath.polygamma(int(a), mpmath.mpf(float(b)))) for a, b in zip(n, x)])
    for got in both(polygamma, n, x):
        np.testing.assert_allclose(got.astype(np.float64), want, rtol=ulps * EPS[dtype], atol=1e-13)


def test_polygamma_at_its_edges():
    n = np.array([-1, 0.5, np.nan, 1, 2, 3, 1, 200], np.float32)
    x = np.array([1, 1, 1, 0, 0, np.inf, -1, 1], np.float32)
    want = np.array([np.nan, np.nan, np.nan, np.inf, np.nan, 0, np.inf, -np.inf], np.float32)
    for got in both(polygamma, n, x):
        np.testing.assert_array_equal(got, want)


def test_narrow_types_round_once():
    x = np.linspace(-20, 20, 99).astype(bf16.np)
    want = run_op(bessel_i1e, x.astype(np.float32)).astype(bf16.np)
    np.testing.assert_array_equal(run_op(bessel_i1e, x), want)


@pytest.mark.parametrize(("rule", "kind", "dtypes"), [
    ("I1", bessel_i1e, (i32,)), ("I1", zeta, (i32, i32)), ("C1", zeta, (f32, f64)), ("C1", polygamma, (f32, f64)),
])  # fmt: skip
def test_refusals(rule, kind, dtypes):
    refuses(rule, kind, [TensorType(d, (3,)) for d in dtypes])
