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
from hilo.testing import compare

Arr = np.ndarray
FUNCTIONS: dict[str, Callable[..., Arr]] = {
    "exponential": reference.exponential, "exponential_minus_one": reference.exponential_minus_one, "log": np.log,
    "log_plus_one": reference.log_plus_one, "logistic": reference.logistic, "tanh": np.tanh, "sine": np.sin,
    "cosine": np.cos, "tan": np.tan, "sqrt": np.sqrt, "rsqrt": reference.rsqrt, "cbrt": reference.cbrt,
    "sinh": np.sinh, "cosh": np.cosh, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh,
    "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip


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


@pytest.mark.parametrize("name", FUNCTIONS)
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
    z = np.array([complex(np.inf, 0.0), complex(-np.inf, 1.0), complex(800, np.pi / 2), complex(715, 1.5707)])
    got = interpreted(math.exponential, dtypes.c128)(z)
    assert got[0] == complex(np.inf, 0)
    assert got[1] == 0
    assert np.isfinite(got[3].real)  # e^715 is not


@pytest.mark.parametrize("name", ["exponential", "exponential_minus_one", "logistic"])
def test_endless_imaginary_parts(name: str) -> None:
    """There is no e^z, of whatever real part; so StableHLO's own tests want it."""
    z = np.array([complex(x, y) for x in (-np.inf, -1, 0, 2, np.inf, np.nan) for y in (np.inf, -np.inf, np.nan)])
    for got in (interpreted(getattr(math, name), dtypes.c128)(z), numeric.elementwise(FUNCTIONS[name])(z)):
        assert np.isnan(got.real).all()
        assert np.isnan(got.imag).all()


@pytest.mark.parametrize("dtype", [dtypes.c64, dtypes.c128], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_ends_of_the_range(name: str, dtype: DType) -> None:
    """Parts of the largest, the least normal and the least magnitudes beside moderate and special ones."""
    z = grid(dtype)
    got = interpreted(getattr(math, name), dtype)(z)
    want = numeric.elementwise(FUNCTIONS[name])(z)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(want.real), np.abs(want.imag))
        slack = np.where(np.isfinite(size), 4.0 * np.spacing(size), 0.0).astype(np.float64)
    ok = compare.close(got, want, 1, slack if dtype is dtypes.c128 else 0.0)
    assert ok.all(), list(zip(z[~ok], got[~ok], want[~ok]))[:5]


def grid(dtype: DType) -> Arr:
    info = np.finfo(dtype.part.np)
    some = [0.0, 0.3, 1.0, 2.5, 700.0, info.max, info.max / 2, info.tiny, info.smallest_subnormal, np.sqrt(info.max)]
    parts = np.array([*some, *(-x for x in some), np.inf, -np.inf, np.nan], dtype.part.np)
    z = np.empty((parts.size, parts.size), dtype.np)
    z.real, z.imag = parts[:, None], parts[None, :]
    return z.reshape(-1)


def test_both_parts_of_square_roots() -> None:
    """A part is right though it is subnormal and the other one is huge."""
    z = grid(dtypes.c128)
    z = z[np.isfinite(z)]
    ok = compare.close(interpreted(math.sqrt, dtypes.c128)(z), numeric.elementwise(np.sqrt)(z), 2)
    assert ok.all(), z[~ok]


def test_logistic_of_imaginary_numbers() -> None:
    """The real part is 1/2 however near the pole is."""
    z = 1j * np.array([0.0, 1.0, 3.14159265, np.pi, -3.1415])
    assert (numeric.elementwise(reference.logistic)(z).real == 0.5).all()
    assert np.allclose(interpreted(math.logistic, dtypes.c128)(z).real, 0.5, rtol=1e-15, atol=0)


def test_power() -> None:
    rng = np.random.default_rng(24)
    x, y = rng.uniform(-3, 3, (2, 1000, 2)).astype(np.float32).view(np.complex64)[..., 0]
    got = interpreted(math.power, dtypes.c64)(x, y)
    want = numeric.elementwise(reference.power)(x, y)
    assert distance(got, want, dtypes.c64).max() <= 1
    zero, one = np.zeros(1, np.complex64), np.ones(1, np.complex64)
    assert interpreted(math.power, dtypes.c64)(zero, zero)[0] == 1
    assert interpreted(math.power, dtypes.c64)(zero, one)[0] == 0


def pairs(dtype: DType, size: float) -> tuple[Arr, Arr]:
    """Numbers of magnitudes exp(-size) to exp(size), and small whole ones, among which are all cuts and poles."""
    rng = np.random.default_rng(25)
    x = np.exp(rng.uniform(-size, size, (2, 2000, 2))) * rng.choice([-1, 1], (2, 2000, 2))
    x[:, ::2] = np.rint(rng.uniform(-3, 3, (2, 1000, 2)))
    z = np.empty(x.shape[:2], dtype.np)
    z.real, z.imag = x[..., 0], x[..., 1]
    return z[0], z[1]


@pytest.mark.parametrize(("dtype", "size"), [(dtypes.c64, 1), (dtypes.c64, 85), (dtypes.c128, 1), (dtypes.c128, 700)])
def test_atan2(dtype: DType, size: float) -> None:
    y, x = pairs(dtype, size)
    ends = np.random.default_rng(26).choice(grid(dtype), (2, 2000))
    y, x = np.concatenate([y, ends[0]]), np.concatenate([x, ends[1]])
    got, want = interpreted(math.atan2, dtype)(y, x), numeric.elementwise(reference.atan2)(y, x)
    eps = float(np.finfo(dtype.np).eps)
    slack = 4 * eps * np.maximum(np.nan_to_num(np.abs(want), posinf=0.0), eps).astype(np.float64)
    ok = compare.close(got, want, 1, slack)
    assert ok.all(), list(zip(y[~ok], x[~ok], got[~ok], want[~ok]))[:5]


def test_atan2_is_its_definition() -> None:
    y, x = (z.astype(np.clongdouble)[1::2] for z in pairs(dtypes.c128, 1))
    log = np.log((x + 1j * y) / np.sqrt(x * x + y * y))
    got = interpreted(math.atan2, dtypes.c128)(y.astype(np.complex128), x.astype(np.complex128))
    assert np.abs(got - (log.imag - 1j * log.real)).max() < 1e-14


def test_atan2_of_real_numbers() -> None:
    some = np.array([0.5, -3.0, 1e300, -1e300, 1e-300, -1e-300, 5e-324, 0.0])
    y, x = (a.reshape(-1) for a in np.meshgrid(some, some[:-1]))
    for f in (interpreted(math.atan2, dtypes.c128), numeric.elementwise(reference.atan2)):
        got = f(y.astype(np.complex128), x.astype(np.complex128))
        assert np.allclose(got.real, np.arctan2(y, x), rtol=1e-15, atol=0)
        assert (got.imag == 0).all()


def test_atan2_at_its_poles() -> None:
    """x^2 + y^2 = 0; and what is not finite."""
    y = np.array([1j, -1j, 2, 0, complex(0, np.inf), complex(np.nan, 1)])
    x = np.array([1, 1, 2j, 0, 1, 1], np.complex128)
    for f in (interpreted(math.atan2, dtypes.c128), numeric.elementwise(reference.atan2)):
        got = f(y, x)
        assert (got[:3] == [complex(0, np.inf), complex(0, -np.inf), complex(0, -np.inf)]).all()
        assert np.isnan(got[3:].real).all()
        assert np.isnan(got[3:].imag).all()


def test_cbrt_of_the_largest_numbers() -> None:
    """Scaling them to about 1 takes a power of two that is no normal number if it is done in one step."""
    most = np.finfo(np.float64).max
    z = np.array([most, complex(1, most), complex(-most, -most), complex(most / 2, 1)])
    got = interpreted(math.cbrt, dtypes.c128)(z)
    assert distance(got, numeric.elementwise(reference.cbrt)(z), dtypes.c128).max() <= 4
