"""bf16 and f16: every value of both types, against f64 rounded once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from math_runs import native
from scipy import special

from hilo.ir import dtypes
from hilo.ir.dtypes import DType
from hilo.loop import math
from hilo.ops import numeric, numeric_special

Arr = np.ndarray
FUNCTIONS: dict[str, Callable[[Arr], Arr]] = {
    "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p,
    "logistic": lambda x: np.where(x < -40, np.exp(x), 1 / (1 + np.exp(-x))), "tanh": np.tanh, "sine": np.sin,
    "cosine": np.cos, "tan": np.tan, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt,
    "erf": special.erf, "erfc": special.erfc, "erf_inv": special.erfinv, "sinh": np.sinh, "cosh": np.cosh,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "lgamma": lambda x: numeric_special.lgamma(x).astype(np.float64),
    "digamma": lambda x: numeric_special.digamma(x).astype(np.float64),
}  # fmt: skip


def rank(x: Arr) -> Arr:
    """Neighbouring floats are one apart; both zeros are 0."""
    bits = x.view(np.int16).astype(np.int32)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


@pytest.mark.parametrize("dtype", [dtypes.bf16, dtypes.f16], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_values(name: str, dtype: DType) -> None:
    x = np.arange(1 << 16, dtype=np.uint16).view(dtype.np)
    held = x.astype(np.float32)
    result = native(getattr(math, name), dtype)(held)
    with np.errstate(all="ignore"):
        got = result.astype(dtype.np)
        assert np.array_equal(got.astype(np.float32), result, equal_nan=True), "results are held exactly"
        want = numeric.narrow(FUNCTIONS[name](held.astype(np.float64)), dtype)
        nan = np.isnan(want.astype(np.float32))
    assert np.array_equal(nan, np.isnan(result))
    off = np.abs(rank(got) - rank(want))[~nan]
    assert off.max() <= 1
    assert np.count_nonzero(off) <= 60  # of 65,536: where f32's error crosses a tie
