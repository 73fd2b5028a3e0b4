"""Zeros, infinities, NaN, subnormal numbers; the same bits for any number of lanes and in the interpreter."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
from math_runs import interpreted, native

from hilo.backend.target import Target
from hilo.ir import dtypes
from hilo.ir.dtypes import DType
from hilo.loop import math

INF, NAN = np.inf, np.nan
UNARY = [
    "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "tanh", "sine", "cosine", "tan", "sqrt",
    "rsqrt", "cbrt", "erf", "erfc", "erf_inv", "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh",
    "lgamma", "digamma",
]  # fmt: skip
ODD = ["exponential_minus_one", "log_plus_one", "tanh", "sine", "tan", "cbrt", "erf", "erf_inv", "sinh", "asin", "atan",
       "asinh", "atanh"]  # fmt: skip
BOTH = pytest.mark.parametrize("dtype", [dtypes.f32, dtypes.f64], ids=str)

# values at 0, -0, inf, -inf, 1, -1
TABLE = {
    "exponential": (1, 1, INF, 0, None, None),
    "exponential_minus_one": (0, -0.0, INF, -1, None, None),
    "log": (-INF, -INF, INF, NAN, 0, NAN),
    "log_plus_one": (0, -0.0, INF, NAN, None, -INF),
    "logistic": (0.5, 0.5, 1, 0, None, None),
    "tanh": (0, -0.0, 1, -1, None, None),
    "sine": (0, -0.0, NAN, NAN, None, None),
    "cosine": (1, 1, NAN, NAN, None, None),
    "tan": (0, -0.0, NAN, NAN, None, None),
    "sqrt": (0, -0.0, INF, NAN, 1, NAN),
    "rsqrt": (INF, -INF, 0, NAN, 1, NAN),
    "cbrt": (0, -0.0, INF, -INF, 1, -1),
    "erf": (0, -0.0, 1, -1, None, None),
    "erfc": (1, 1, 0, 2, None, None),
    "erf_inv": (0, -0.0, NAN, NAN, INF, -INF),
    "sinh": (0, -0.0, INF, -INF, None, None),
    "cosh": (1, 1, INF, INF, None, None),
    "asin": (0, -0.0, NAN, NAN, np.pi / 2, -np.pi / 2),
    "acos": (np.pi / 2, np.pi / 2, NAN, NAN, 0, np.pi),
    "atan": (0, -0.0, np.pi / 2, -np.pi / 2, np.pi / 4, -np.pi / 4),
    "asinh": (0, -0.0, INF, -INF, None, None),
    "acosh": (NAN, NAN, INF, NAN, 0, NAN),
    "atanh": (0, -0.0, NAN, NAN, INF, -INF),
    "lgamma": (INF, INF, INF, INF, 0, INF),
    "digamma": (NAN, NAN, INF, NAN, None, NAN),
}


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal in value and sign, or both NaN."""
    return ((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b))


@BOTH
@pytest.mark.parametrize("name", UNARY)
def test_table(name: str, dtype: DType) -> None:
    x = np.array([0.0, -0.0, INF, -INF, 1, -1], dtype.np)
    got = native(getattr(math, name), dtype)(x)
    for at, value, want in zip(x, got, TABLE[name]):
        if want is not None:
            assert same(value, dtype.np.type(want)), f"{name}({at}) = {value}, not {want}"


@BOTH
@pytest.mark.parametrize("name", UNARY)
def test_nan_of_any_payload(name: str, dtype: DType) -> None:
    one = np.array([INF], dtype.np).view(f"u{dtype.itemsize}")
    top = one.dtype.type(1 << (dtype.bits - 1))
    quiet = one.dtype.type(1 << (22 if dtype is dtypes.f32 else 51))
    bits = np.concatenate([one | quiet, one | quiet | 1, one | top | quiet | 12345, one | 1])
    assert np.isnan(native(getattr(math, name), dtype)(bits.view(dtype.np))).all()


@BOTH
@pytest.mark.parametrize("name", [n for n in ODD if n not in ("erf", "erf_inv", "cbrt")])
def test_subnormal_arguments_are_kept(name: str, dtype: DType) -> None:
    """These functions are x to within half an ulp there."""
    x = np.finfo(dtype.np).smallest_subnormal * np.array([1, 2, 3, 1000, 654_321, -1, -5, -999], dtype.np)
    assert np.array_equal(native(getattr(math, name), dtype)(x), x)


def test_subnormal_results() -> None:
    x = np.linspace(-103.9, -87, 5000).astype(np.float32)
    want = np.exp(x.astype(np.float64))
    assert np.abs(native(math.exponential, dtypes.f32)(x) - want).max() <= 0.51 * 2.0**-149 + want.max() * 2.0**-23
    low = native(math.logistic, dtypes.f32)(np.float32([-100]))[0]
    assert abs(low - np.exp(-100.0)) <= 1.01 * 2.0**-149
    x = np.linspace(26.55, 27.3, 50)
    tail = native(math.erfc, dtypes.f64)(x)
    want = np.array([float(mpmath.erfc(mpmath.mpf(v))) for v in x.tolist()])
    assert np.abs(tail - want).max() <= 2 * 5e-324


@BOTH
def test_power_of_special_numbers(dtype: DType) -> None:
    """IEEE 754's table: C's pow, which numpy calls, in f64."""
    numbers = [0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, 2.5, 1e9, 16777217]
    numbers += [INF, -INF, NAN, 1e-40, -1e-40, 3e38, -3e38]
    x, y = (a.reshape(-1).astype(dtype.np) for a in np.meshgrid(numbers, numbers))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64)).astype(dtype.np)
    got = native(math.power, dtype, 2)(x, y)
    with np.errstate(invalid="ignore"):
        close = (np.abs(got - want) <= np.spacing(np.abs(want))) & (np.signbit(got) == np.signbit(want))
    bad = ~(same(got, want) | close)
    assert not bad.any(), list(zip(x[bad], y[bad], got[bad], want[bad]))


@BOTH
def test_atan2_of_special_numbers(dtype: DType) -> None:
    numbers = [0.0, -0.0, 1, -1, 2.5, -3, INF, -INF, NAN, 1e-40, -1e-40, 3e38, -3e38]
    y, x = (a.reshape(-1).astype(dtype.np) for a in np.meshgrid(numbers, numbers))
    want = np.arctan2(y.astype(np.float64), x.astype(np.float64)).astype(dtype.np)
    got = native(math.atan2, dtype, 2)(y, x)
    with np.errstate(invalid="ignore"):
        close = (np.abs(got - want) <= np.spacing(np.abs(want))) & (np.signbit(got) == np.signbit(want))
    bad = ~(same(got, want) | close)
    assert not bad.any(), list(zip(y[bad], x[bad], got[bad], want[bad]))


def points(dtype: DType) -> np.ndarray:
    rng = np.random.default_rng(22)
    some = [0.0, -0.0, INF, -INF, NAN, 1, -1, 1e-40, -1e-310, 3e38, 1e300, -88, 89, 710, -745]
    with np.errstate(over="ignore"):
        x = np.array([*some, *rng.uniform(-5, 5, 60), *(np.exp(rng.uniform(-60, 60, 40)) * rng.choice([-1, 1], 40))])
        return x.astype(dtype.np)


@BOTH
@pytest.mark.parametrize("name", UNARY)
def test_same_bits_everywhere(name: str, dtype: DType) -> None:
    fn, x = getattr(math, name), points(dtype)
    want = native(fn, dtype)(x)
    for other in (native(fn, dtype, lanes=1)(x), interpreted(fn, dtype)(x)):
        wrong = ~same(want, other)
        assert not wrong.any(), list(zip(x[wrong], want[wrong], other[wrong]))


@BOTH
@pytest.mark.parametrize("name", ["power", "atan2"])
def test_same_bits_everywhere_of_two(name: str, dtype: DType) -> None:
    fn, x = getattr(math, name), points(dtype)
    y = x[::-1].copy()
    want = native(fn, dtype, 2)(x, y)
    for other in (native(fn, dtype, 2, lanes=1)(x, y), interpreted(fn, dtype)(x, y)):
        assert same(want, other).all()


@pytest.mark.parametrize("target", ["x86-avx2", "x86-sse2"])
def test_same_bits_on_smaller_machines(target: str) -> None:
    """fma is one rounding everywhere, be it an instruction or a call."""
    machine = Target.named(target)
    if not Target.host().includes(machine):
        pytest.skip(f"this machine does not run {target} code")
    x = points(dtypes.f32)
    for name in ("exponential", "log", "tanh", "sine", "erf", "cbrt"):
        fn = getattr(math, name)
        assert same(native(fn, dtypes.f32)(x), native(fn, dtypes.f32, target=machine)(x)).all(), name


def test_odd_numbers_of_lanes() -> None:
    """Three lanes: the joining of lanes in the test for huge arguments, and everything else, works for any number."""
    x = np.array([0.5, 1e20, -3, 7, 1e30, 2, 2e5], np.float32)
    for fn in (math.sine, math.exponential, math.power):
        operands = 2 if fn is math.power else 1
        args = (x, x)[:operands]
        assert same(native(fn, dtypes.f32, operands, lanes=3)(*args), native(fn, dtypes.f32, operands)(*args)).all()
