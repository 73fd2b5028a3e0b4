"""Accuracy in f32: all exponents, both signs, and the regions where each function is hardest; the reference is f64."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from math_runs import every_nth_f32, native, ulps
from scipy import special

from hilo.ir import dtypes
from hilo.loop import math
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.ops import numeric_special

Arr = np.ndarray
RNG = np.random.default_rng(20)


def logistic(x: Arr) -> Arr:
    return np.where(x < -40, np.exp(x), 1 / (1 + np.exp(-x)))


def erf_inv_points() -> Arr:
    return np.concatenate([RNG.uniform(-1, 1, 200_000), 1 - np.exp(RNG.uniform(-17, 0, 100_000))])


# name: (reference, greatest error in ulps, further points)
FUNCTIONS: dict[str, tuple[Callable[..., Arr], float, Arr]] = {
    "exponential": (np.exp, 1.0, RNG.uniform(-105, 90, 300_000)),
    "exponential_minus_one": (np.expm1, 1.6, RNG.uniform(-18, 90, 300_000)),
    "log": (np.log, 1.0, RNG.uniform(0.3, 3, 300_000)),
    "log_plus_one": (np.log1p, 1.6, RNG.uniform(-1, 3, 300_000)),
    "logistic": (logistic, 2.0, RNG.uniform(-104, 20, 300_000)),
    "tanh": (np.tanh, 1.4, RNG.uniform(-10, 10, 300_000)),
    "sine": (np.sin, 1.7, RNG.uniform(-150_000, 150_000, 300_000)),
    "cosine": (np.cos, 1.7, RNG.uniform(-150_000, 150_000, 300_000)),
    "tan": (np.tan, 0.51, RNG.uniform(-100, 100, 100_000)),
    "sqrt": (np.sqrt, 0.5, RNG.uniform(0, 4, 100_000)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1.6, RNG.uniform(0, 4, 100_000)),
    "cbrt": (np.cbrt, 0.8, RNG.uniform(-8, 8, 100_000)),
    "erf": (special.erf, 1.2, RNG.uniform(-4, 4, 300_000)),
    "erfc": (special.erfc, 1.9, RNG.uniform(-4, 10.1, 100_000)),
    "erf_inv": (special.erfinv, 2.0, erf_inv_points()),
    "sinh": (np.sinh, 1.7, RNG.uniform(-90, 90, 200_000)),
    "cosh": (np.cosh, 1.6, RNG.uniform(-90, 90, 200_000)),
    "asin": (np.arcsin, 0.51, RNG.uniform(-1, 1, 100_000)),
    "acos": (np.arccos, 0.51, RNG.uniform(-1, 1, 100_000)),
    "atan": (np.arctan, 0.52, RNG.uniform(-3, 3, 100_000)),
    "asinh": (np.arcsinh, 0.51, RNG.uniform(-3, 3, 100_000)),
    "acosh": (np.arccosh, 0.51, RNG.uniform(1, 3, 100_000)),
    "atanh": (np.arctanh, 0.51, RNG.uniform(-1, 1, 100_000)),
    "lgamma": (lambda x: numeric_special.lgamma(x).astype(np.float64), 0.51, RNG.uniform(-20, 20, 20_000)),
    "digamma": (lambda x: numeric_special.digamma(x).astype(np.float64), 0.51, RNG.uniform(-20, 20, 20_000)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_exponent(name: str) -> None:
    reference, bound, points = FUNCTIONS[name]
    x = np.concatenate([every_nth_f32(8209 if "gamma" not in name else 160_001), points.astype(np.float32)])
    with np.errstate(all="ignore"):
        want = reference(x.astype(np.float64))
    error = ulps(native(getattr(math, name), dtypes.f32)(x), want)
    worst = np.argmax(error)
    assert error[worst] <= bound, f"{name}({x[worst]!r}) is off by {error[worst]:.2f} ulp"


def test_power() -> None:
    x = np.concatenate([np.exp(RNG.uniform(-100, 88, 200_000)), RNG.uniform(0.9, 1.1, 100_000)]).astype(np.float32)
    y = (RNG.uniform(-104, 89, x.size) / np.log(x.astype(np.float64))).astype(np.float32)
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64))
    assert ulps(native(math.power, dtypes.f32, 2)(x, y), want).max() <= 0.51


def test_atan2_of_all_sizes() -> None:
    y, x = RNG.integers(0, 1 << 32, (2, 300_000), dtype=np.uint32).view(np.float32)
    with np.errstate(all="ignore"):
        want = np.arctan2(y.astype(np.float64), x.astype(np.float64))
    assert ulps(native(math.atan2, dtypes.f32, 2)(y, x), want).max() <= 0.52


def test_exponential_at_its_ends() -> None:
    x = np.float32([88.72283, 88.72284, 89, 1e30, -87.33654, -87.4, -103.97208, -103.97209, -104.5, -1e30])
    got = native(math.exponential, dtypes.f32)(x)
    with np.errstate(all="ignore"):
        assert np.array_equal(got[1:4], np.exp(x[1:4].astype(np.float64)).astype(np.float32))
        assert ulps(got, np.exp(x.astype(np.float64))).max() <= 1
    assert got[6] == np.float32(1e-45)
    assert got[7] == 0 or got[7] == np.float32(1e-45)
    assert not got[8:].any()


def test_reduction_at_multiples_of_half_pi() -> None:
    """The f32 numbers nearest to multiples of pi/2, where most of the digits cancel."""
    n = np.concatenate([np.arange(1, 200_000), (2.0 ** RNG.uniform(18, 126, 20_000)).round()])
    x = (n * (np.pi / 2)).astype(np.float32)
    for fn, reference in ((math.sine, np.sin), (math.cosine, np.cos), (math.tan, np.tan)):
        assert ulps(native(fn, dtypes.f32)(x), reference(x.astype(np.float64))).max() <= 1.7


@pytest.mark.parametrize("power", [-1, -3, -13, -14, 1])
@pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=str)
def test_exponential_of_a_part_is_that_of_the_product(dtype: dtypes.DType, power: int) -> None:
    """A factor that is a power of two enters the constants, which changes no bit."""
    c = 2.0**power
    given = [every_nth_f32(30_011), RNG.uniform(-900, 900, 50_000)]
    if dtype is dtypes.f64:
        given.append(RNG.integers(0, 1 << 64, 50_000, dtype=np.uint64).view(np.float64))
    with np.errstate(all="ignore"):
        x = np.concatenate(given).astype(dtype.np)
        product = x * np.asarray(c, dtype.np)

    def of_part(b: Builder, e: Elem) -> Elem:
        return math.exponential(b, Elem(dtype, b.fmul(e.re, c)))

    got, want = native(of_part, dtype)(x), native(math.exponential, dtype)(product)
    np.testing.assert_array_equal(got.view(f"u{dtype.itemsize}"), want.view(f"u{dtype.itemsize}"))
