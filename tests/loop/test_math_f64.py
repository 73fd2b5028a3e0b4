"""Accuracy in f64, on samples, against multiple precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from math_runs import native

from hilo.ir import dtypes
from hilo.loop import math

Arr = np.ndarray
RNG = np.random.default_rng(21)


def error(got: float, want: Any) -> float:
    """|got - want| in units of the last place; want is exact."""
    near = float(want) if not mp.isnan(want) else np.nan
    if not np.isfinite(near) or not np.isfinite(got):
        return 0.0 if got == near or (np.isnan(got) and np.isnan(near)) else np.inf
    exponent = max(int(mp.floor(mp.log(abs(want), 2))) if want else -1074, -1022)
    return float(abs(mp.mpf(got) - want) / mp.mpf(2) ** (exponent - 52))


def uniform(lo: float, hi: float, n: int = 250) -> Arr:
    return RNG.uniform(lo, hi, n)


def spread(lo: float, hi: float, n: int = 150) -> Arr:
    """Magnitudes e^lo to e^hi, both signs."""
    return np.exp(RNG.uniform(lo, hi, n)) * RNG.choice([-1, 1], n)


def cat(*arrays: Arr) -> Arr:
    return np.concatenate(arrays)


def cube_root(x: Any) -> Any:
    return mp.sign(x) * mp.cbrt(abs(x))


ANGLES = cat(uniform(-10, 10), spread(0, 709, 300), spread(-40, 1), np.arange(1, 100) * (np.pi / 2))
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], float, Arr]] = {
    "exponential": (mp.exp, 1.0, cat(uniform(-746, 710), uniform(-2, 2), spread(-40, 1))),
    "exponential_minus_one": (mp.expm1, 2.0, cat(uniform(-40, 710), uniform(-2, 2), spread(-40, 1))),
    "log": (mp.log, 1.0, cat(abs(spread(-740, 709)), uniform(0.3, 3, 500), 1 + spread(-36, -1))),
    "log_plus_one": (mp.log1p, 1.2, cat(abs(spread(-740, 709)), uniform(-0.99, 3, 500), spread(-36, -1))),
    "logistic": (lambda x: 1 / (1 + mp.exp(-x)), 2.0, cat(uniform(-745, 40), uniform(-5, 5), spread(-40, 1))),
    "tanh": (mp.tanh, 2.0, cat(uniform(-20, 20), uniform(-2, 2), spread(-40, 1))),
    "sine": (mp.sin, 0.8, ANGLES),
    "cosine": (mp.cos, 0.8, ANGLES),
    "tan": (mp.tan, 1.0, ANGLES),
    "sqrt": (mp.sqrt, 0.5, abs(spread(-740, 709))),
    "rsqrt": (lambda x: 1 / mp.sqrt(x), 1.6, abs(spread(-740, 709))),
    "cbrt": (cube_root, 0.6, cat(spread(-740, 709), uniform(-8, 8))),
    "erf": (mp.erf, 1.2, cat(uniform(-6, 6), spread(-40, 1))),
    "erfc": (mp.erfc, 2.0, cat(uniform(-6, 27.2), uniform(0, 1.5), spread(-40, 1))),
    "erf_inv": (mp.erfinv, 2.0, cat(uniform(-1, 1, 150), 1 - abs(spread(-36, -1, 80)), spread(-40, -1, 50))),
    "sinh": (mp.sinh, 1.8, cat(uniform(-711, 711), uniform(-2, 2), spread(-40, 1))),
    "cosh": (mp.cosh, 1.5, cat(uniform(-711, 711), uniform(-2, 2), spread(-40, 1))),
    "asin": (mp.asin, 1.8, cat(uniform(-1, 1), 1 - abs(spread(-36, -1)), spread(-40, -1))),
    "acos": (mp.acos, 1.8, cat(uniform(-1, 1), 1 - abs(spread(-36, -1)), spread(-40, -1))),
    "atan": (mp.atan, 1.5, cat(uniform(-3, 3), spread(-40, 40))),
    "asinh": (mp.asinh, 1.8, cat(uniform(-3, 3), spread(-40, 709))),
    "acosh": (mp.acosh, 2.0, cat(1 + abs(spread(-36, 4)), abs(spread(0, 709)) + 1)),
    "atanh": (mp.atanh, 1.5, cat(uniform(-1, 1), 1 - abs(spread(-36, -1)), spread(-40, -1))),
    "lgamma": (mp.loggamma, 2.2, cat(uniform(0, 20), 1 + spread(-30, -2), 2 + spread(-30, -2), abs(spread(-300, 200)))),
    "digamma": (mp.digamma, 2.0, cat(uniform(0, 20), 1.4616321449683623 + spread(-30, -2, 50), abs(spread(-300, 200)))),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_samples(name: str) -> None:
    reference, bound, x = FUNCTIONS[name]
    with mp.workdps(40):
        got = native(getattr(math, name), dtypes.f64)(x)
        errors = [error(g, reference(mp.mpf(v))) for g, v in zip(got.tolist(), x.tolist())]
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, f"{name}({float(x[worst])!r}) is off by {errors[worst]:.2f} ulp"


def test_power() -> None:
    x = cat(abs(spread(-700, 700, 300)), uniform(0.5, 2, 300), 1 + spread(-30, -3, 300))
    y = RNG.uniform(-745, 709, x.size) / np.log(x)
    got = native(math.power, dtypes.f64, 2)(x, y)
    with mp.workdps(40):
        errors = [error(g, mp.mpf(u) ** mp.mpf(v)) for g, u, v in zip(got.tolist(), x.tolist(), y.tolist())]
    assert max(errors) <= 1.2


def test_atan2() -> None:
    y, x = cat(spread(-5, 5, 300), spread(-300, 300, 300)), cat(spread(-5, 5, 300), spread(-300, 300, 300))
    got = native(math.atan2, dtypes.f64, 2)(y, x)
    with mp.workdps(40):
        errors = [error(g, mp.atan2(mp.mpf(u), mp.mpf(v))) for g, u, v in zip(got.tolist(), y.tolist(), x.tolist())]
    assert max(errors) <= 1.5


def test_sine_of_the_hardest_argument() -> None:
    """6381956970095103 * 2^797 is the f64 nearest to a multiple of pi/2: 61 digits cancel."""
    x = np.array([6381956970095103.0 * 2.0**797, -6381956970095103.0 * 2.0**797])
    with mp.workdps(400):
        want = [(mp.sin(mp.mpf(v)), mp.cos(mp.mpf(v))) for v in x.tolist()]
    got = zip(native(math.sine, dtypes.f64)(x).tolist(), native(math.cosine, dtypes.f64)(x).tolist())
    for (s, c), (ws, wc) in zip(got, want):
        assert error(s, ws) <= 0.8
        assert error(c, wc) <= 0.8


def test_negative_gamma() -> None:
    x = uniform(-12, 0)
    with mp.workdps(40):
        for fn, reference in ((math.lgamma, lambda v: mp.log(abs(mp.gamma(v)))), (math.digamma, mp.digamma)):
            for g, v in zip(native(fn, dtypes.f64)(x).tolist(), x.tolist()):
                want = float(reference(mp.mpf(v)))
                assert abs(g - want) <= 2e-15 * max(1, abs(want), abs(v) ** 1.5)
