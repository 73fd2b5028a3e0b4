"""The complex functions, against numpy in long double; and Annex G's special values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from math_runs import interpreted

from hilo.ir import dtypes
from hilo.ir.dtypes import DType
from hilo.loop import math
from hilo.ops import numeric
from hilo.ops import numeric_complex as reference

Arr = np.ndarray
FUNCTIONS: dict[str, Callable[..., Arr]] = {
    "exponential": np.exp, "exponential_minus_one": reference.exponential_minus_one, "log": np.log,
    "log_plus_one": reference.log_plus_one, "logistic": reference.logistic, "tanh": np.tanh, "sine": np.sin,
    "cosine": np.cos, "tan": np.tan, "sqrt": np.sqrt, "rsqrt": reference.rsqrt, "cbrt": reference.cbrt,
    "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip


EXPONENTIALS = ("exponential", "exponential_minus_one", "logistic")


def numbers(dtype: DType, n: int = 1500) -> Arr:
    rng = np.random.default_rng(23)
    size = 60 if dtype is dtypes.c64 else 300
    z = np.concatenate([
        rng.uniform(-3, 3, (n, 2)),
        rng.uniform(-50, 50, (n, 2)),
        np.exp(rng.uniform(-size, size, (n, 2))) * rng.choice([-1, 1], (n, 2)),
        [1, 0] + rng.uniform(-1e-3, 1e-3, (n, 2)),
        [0, 1] + rng.uniform(-1e-3, 1e-3, (n, 2)),
    ])  # fmt: skip
    out = np.empty(len(z), dtype.np)
    out.real, out.imag = z[:, 0], z[:, 1]
    return out


def distance(got: Arr, want: Arr, dtype: DType) -> Arr:
    """|got - want| / |want| in units of the type's epsilon, where both are finite."""
    with np.errstate(all="ignore"):
        d = np.hypot((got.real - want.real).astype(float), (got.imag - want.imag).astype(float))
        d = d / np.abs(want.astype(np.clongdouble)).astype(float) / np.finfo(dtype.np).eps
    return np.where(np.isfinite(want) & (want != 0), d, 0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_c64(name: str) -> None:
    """Both parts are right to an ulp: the reference rounds the exact result once."""
    z = numbers(dtypes.c64)
    got = interpreted(getattr(math, name), dtypes.c64)(z)
    want = numeric.elementwise(FUNCTIONS[name])(z)
    finite = np.isfinite(want)
    assert np.array_equal(finite, np.isfinite(got))
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        g, w = np.where(finite, g, 0), np.where(finite, w, 0)
        assert (np.abs(g - w)[finite] <= np.maximum(np.spacing(np.abs(w)), 1e-45)[finite]).all()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_c128(name: str) -> None:
    z = numbers(dtypes.c128, 300)
    got = interpreted(getattr(math, name), dtypes.c128)(z)
    want = numeric.elementwise(FUNCTIONS[name])(z)
    assert np.array_equal(np.isfinite(want), np.isfinite(got))
    assert distance(got, want, dtypes.c128).max() <= 4


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if n not in EXPONENTIALS])
def test_special_values(name: str) -> None:
    some = [0.0, -0.0, 1, -1, 0.5, -2, np.inf, -np.inf, np.nan]
    x, y = (a.reshape(-1) for a in np.meshgrid(some, some))
    z = np.empty(x.size, np.complex128)
    z.real, z.imag = x, y
    got = interpreted(getattr(math, name), dtypes.c128)(z)
    want = numeric.elementwise(FUNCTIONS[name])(z)
    free = np.isnan(want.real) | np.isnan(want.imag)  # Annex G leaves the sign of the other part open
    for g, w in ((got.real, want.real), (got.imag, want.imag)):
        g, w = np.where(free, np.abs(g), g), np.where(free, np.abs(w), w)
        with np.errstate(invalid="ignore"):
            close = (np.abs(g - w) <= 1e-14 * np.abs(w)) | (g == w)
        wrong = ~(close & (np.signbit(g) == np.signbit(w)) | np.isnan(g) & np.isnan(w))
        assert not wrong.any(), list(zip(z[wrong], got[wrong], want[wrong]))


def test_infinite_exponentials() -> None:
    z = np.array([complex(-np.inf, np.inf), complex(np.inf, np.nan), complex(np.inf, 0.0), complex(800, np.pi / 2)])
    got = interpreted(math.exponential, dtypes.c128)(z)
    assert got[0] == 0
    assert got[1].real == np.inf
    assert np.isnan(got[1].imag)
    assert got[2] == complex(np.inf, 0)
    small = interpreted(math.exponential, dtypes.c128)(np.array([complex(715, 1.5707)]))[0]
    assert np.isfinite(small.real)  # e^715 is not


def test_power() -> None:
    rng = np.random.default_rng(24)
    x, y = rng.uniform(-3, 3, (2, 1000, 2)).astype(np.float32).view(np.complex64)[..., 0]
    got = interpreted(math.power, dtypes.c64)(x, y)
    want = numeric.elementwise(reference.power)(x, y)
    assert distance(got, want, dtypes.c64).max() <= 1
    zero, one = np.zeros(1, np.complex64), np.ones(1, np.complex64)
    assert interpreted(math.power, dtypes.c64)(zero, zero)[0] == 1
    assert interpreted(math.power, dtypes.c64)(zero, one)[0] == 0


def test_atan2() -> None:
    rng = np.random.default_rng(25)
    y, x = rng.uniform(-3, 3, (2, 1000, 2)).astype(np.float32).view(np.complex64)[..., 0]
    got = interpreted(math.atan2, dtypes.c64)(y, x)
    assert distance(got, numeric.elementwise(reference.atan2)(y, x), dtypes.c64).max() <= 1


def test_cbrt_of_the_largest_numbers() -> None:
    """Scaling them to about 1 takes a power of two that is no normal number if it is done in one step."""
    most = np.finfo(np.float64).max
    z = np.array([most, complex(1, most), complex(-most, -most), complex(most / 2, 1)])
    got = interpreted(math.cbrt, dtypes.c128)(z)
    assert distance(got, numeric.elementwise(reference.cbrt)(z), dtypes.c128).max() <= 4
