"""Special functions of the reference: erf, erfc, erf_inv, lgamma, digamma, next_after.

Imports numpy and ir.dtypes only.

lgamma and digamma run in long double (see `numeric.elementwise`), the error functions in f64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hilo.ir.dtypes import from_numpy
from hilo.ops.numeric import LD, Arr, narrow, quiet, total_order


def on_floats(fn: Callable[[Arr], Arr]) -> Callable[..., Arr]:
    """The reference of a function evaluated in f64 whatever the operand's type, rounded once."""

    def evaluate(x: Arr, **_: Any) -> Arr:
        with np.errstate(all="ignore"):
            return narrow(np.asarray(fn(x.astype(np.float64))), from_numpy(x.dtype))

    return evaluate


def _each(fn: Callable[[float], float]) -> Callable[[Arr], Arr]:
    def run(x: Arr) -> Arr:
        return np.fromiter(map(fn, x.reshape(-1).tolist()), np.float64, x.size).reshape(x.shape)

    return run


erf = _each(math.erf)
erfc = _each(math.erfc)


def erf_inv(x: Arr) -> Arr:
    """The y with erf(y) = x, by Halley's iteration on erf (erfc towards the ends)."""
    a = np.abs(x)
    inside = a < 1
    a = np.where(inside, a, 0.5)
    log = -np.log1p(-a * a)
    s = 2 / (math.pi * 0.147) - log / 2
    y = np.sqrt(np.sqrt(s * s + log / 0.147) - s)  # to 3 digits (Winitzki)
    y = np.where(a < 1e-8, a * (math.sqrt(math.pi) / 2), y)
    for _ in range(4):
        error = np.where(a < 0.5, erf(y) - a, (1 - a) - erfc(y))  # 1 - a is exact
        step = error * (math.sqrt(math.pi) / 2) * np.exp(y * y)
        y = y - step / (1 + y * step)
    out = np.where(inside, y, np.where(np.abs(x) == 1, np.inf, np.nan))
    return np.where(x == 0, x, np.copysign(out, x))


_BERNOULLI = [
    (1, 6),
    (-1, 30),
    (1, 42),
    (-1, 30),
    (5, 66),
    (-691, 2730),
    (7, 6),
    (-3617, 510),
    (43867, 798),
    (-174611, 330),
]
_SHIFT = 24  # the asymptotic series start here; their first omitted term is below 2**-70
_EULER = LD("0.577215664901532860606512090082402431")
_HALF_LOG_2PI = LD("0.918938533204672741780329736405617640")
_PI = LD("3.14159265358979323846264338327950288")


def _zeta(n: int) -> Any:
    """Riemann's zeta function at an integer n >= 2, in long double (Euler and Maclaurin)."""
    k = np.arange(1, 20, dtype=LD)
    last = LD(20)
    total = np.sum(k ** LD(-n)) + last ** LD(1 - n) / (n - 1) + last ** LD(-n) / 2
    term = LD(n) * last ** LD(-n - 1) / 2
    for i, (p, q) in enumerate(_BERNOULLI[:6]):
        total += term * LD(p) / LD(q)
        j = 2 * i + 3
        term *= LD(n + j - 2) * LD(n + j - 1) / (LD(j) * LD(j + 1)) / last**2
    return total


_ZETAS: list[Any] = []


def _near_one(z: Arr) -> Arr:
    """lgamma(1 + z) for |z| <= 1/4, by its Taylor series."""
    if not _ZETAS:
        _ZETAS.extend(_zeta(k) / k * (-1) ** k for k in range(2, 40))
    total = np.zeros_like(z)
    for c in reversed(_ZETAS):
        total = (total + c) * z
    return (total - _EULER) * z


def _raised(x: Arr) -> tuple[Arr, Arr, Arr]:
    """(x + n >= _SHIFT, x (x + 1) ... (x + n - 1), 1/x + ... + 1/(x + n - 1)) for positive x."""
    product, inverses = np.ones_like(x), np.zeros_like(x)
    for _ in range(_SHIFT):
        low = x < _SHIFT
        product = np.where(low, product * x, product)
        inverses = np.where(low, inverses + 1 / x, inverses)
        x = np.where(low, x + 1, x)
    return x, product, inverses


def _lgamma_positive(x: Arr) -> Arr:
    up, product, _ = _raised(x)
    inverse = 1 / up
    series = np.zeros_like(x)
    for k, (p, q) in reversed(list(enumerate(_BERNOULLI, 1))):
        series = series * inverse * inverse + LD(p) / LD(q * 2 * k * (2 * k - 1))
    stirling = (up - LD(0.5)) * np.log(up) - up + _HALF_LOG_2PI + series * inverse - np.log(product)
    stirling = np.where(np.isinf(x), x, stirling)
    near1, near2 = np.abs(x - 1) <= 0.25, np.abs(x - 2) <= 0.25
    z = np.where(near1, x - 1, np.where(near2, x - 2, 0))
    taylor = _near_one(z)
    return np.where(near1, taylor, np.where(near2, taylor + np.log1p(z), stirling))


def lgamma(x: Arr) -> Arr:
    """log |gamma(x)|; at negative x by reflection (near its zeros there to an absolute, not a relative, error)."""
    x = x.astype(LD)
    positive = x > 0
    main = _lgamma_positive(np.where(np.isnan(x), 1, np.where(positive, x, 1 - x)))
    sine = np.abs(_sine_of_pi(np.where(np.isfinite(x), x, 0)))
    tiny = np.abs(x) < 1e-15  # where 1 - x would lose x
    reflected = np.where(tiny, -np.log(np.abs(x)), np.log(_PI / sine) - main)
    out = np.where(positive, main, reflected)
    pole = (x <= 0) & (x == np.trunc(x)) | np.isinf(x)
    return np.where(np.isnan(x), x, np.where(pole, np.inf, out + 0.0))  # lgamma(1) is +0


def _sine_of_pi(x: Arr) -> Arr:
    """|sin(pi x)| up to sign, exactly reduced."""
    return np.sin(_PI * (x - np.rint(x)))


def digamma(x: Arr) -> Arr:
    """The derivative of lgamma; at negative x by reflection. NaN at its poles 0, -1, -2 ... and at -inf."""
    x = x.astype(LD)
    positive = x > 0
    at = np.where(np.isnan(x), 1, np.where(positive, x, 1 - x))
    up, _, inverses = _raised(at)
    inverse = 1 / up
    series = np.zeros_like(x)
    for k, (p, q) in reversed(list(enumerate(_BERNOULLI, 1))):
        series = (series + LD(p) / LD(q * 2 * k)) * inverse * inverse
    main = np.where(np.isinf(at), at, np.log(up) - inverse / 2 - series - inverses)
    part = np.where(np.isfinite(x), x - np.rint(x), 0)
    out = np.where(positive, main, main - _PI / np.tan(_PI * part))
    pole = (x <= 0) & (x == np.trunc(x))
    return np.where(np.isnan(x) | pole, np.nan, out)


@quiet
def next_after(x: Arr, y: Arr, **_: Any) -> Arr:
    """The value next to x towards y, in the operands' own type."""
    t = from_numpy(x.dtype)
    if t.bits < 16:
        return _next_of_few(x, y)
    ints = f"i{t.np.itemsize}"
    a, b = total_order(x), total_order(y)
    step = np.where(a < b, 1, -1)
    key = np.where((x == 0) & (y != 0), np.where(np.signbit(y), -2, 1), a + step).astype(ints)  # from either zero
    low = np.asarray(key & ((1 << (t.bits - 1)) - 1))
    bits = np.asarray(np.where(key < 0, key ^ ((1 << (t.bits - 1)) - 1), low).astype(ints))
    out = np.where(x == y, y, bits.view(t.np))
    return np.where(np.isnan(x), x, np.where(np.isnan(y), y, out))


def _next_of_few(x: Arr, y: Arr) -> Arr:
    """`next_after` in a type of at most 256 values, found in the sorted list of them."""
    t = from_numpy(x.dtype)
    every = np.arange(1 << t.bits, dtype=np.uint8).view(t.np).astype(np.float32)
    known = np.unique(every[~np.isnan(every)])
    a, b = x.astype(np.float32), y.astype(np.float32)
    at = np.searchsorted(known, np.where(np.isnan(a), known[0], a))
    step = (b > a).astype(int) - (b < a)
    out = known[np.clip(at + step, 0, len(known) - 1)]
    out = np.where(out == 0, np.copysign(np.float32(0), a), out)
    return narrow(np.where(np.isnan(a) | (a == b), np.where(np.isnan(a), a, b), np.where(np.isnan(b), b, out)), t)
