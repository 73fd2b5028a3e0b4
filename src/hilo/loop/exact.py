"""Fused multiply-add in numpy, rounded once: what `fma` means in the loop IR. Imports nothing of hilo."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """a * b + c with one rounding, for arrays of f32 or f64."""
    if a.dtype == np.float32:
        # The product is exact in f64. The sum is rounded to odd, which makes the second rounding harmless.
        p, wide_c = a.astype(np.float64) * b, c.astype(np.float64)
        return _add_to_odd(p, wide_c).astype(np.float32)
    return _fma64(a, b, c)


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _add_to_odd(a: Any, b: Any) -> Any:
    """a + b in f64, rounded to odd: where inexact, to the neighbour whose last bit is set."""
    s, e = _two_sum(a, b)
    bits = np.asarray(s).view(np.int64)
    towards = np.where((e > 0) == (s > 0), 1, -1)  # which neighbour lies on the side of the error
    fix = (e != 0) & np.isfinite(s) & np.isfinite(e) & (bits & 1 == 0)
    return np.where(fix, bits + towards, bits).view(np.float64)


def _two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """a * b as an exact sum of two f64 (Veltkamp's splitting; for magnitudes far from the ends of the range)."""
    p = a * b
    ca, cb = a * 134217729.0, b * 134217729.0
    ah, bh = ca - (ca - a), cb - (cb - b)
    al, bl = a - ah, b - bh
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _fma64(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Boldo and Melquiond: exact product and sums, the low parts added to odd; near the ends of the range fractions."""
    a, b, c = np.broadcast_arrays(a, b, c)
    uh, ul = _two_product(a, b)
    th, tl = _two_sum(c, ul)
    vh, vl = _two_sum(uh, th)
    out = np.array(vh + _add_to_odd(tl, vl))
    product = np.abs(a * b)
    finite = np.isfinite(a) & np.isfinite(b)
    simple = np.where(finite & ~np.isfinite(c), c, a * b + c)  # a product that overflows is still finite
    out = np.where(~np.isfinite(simple) | (a == 0) | (b == 0), simple, out)
    finite &= np.isfinite(c)
    large = (np.abs(a) > 2.0**960) | (np.abs(b) > 2.0**960) | (product > 2.0**960) | (np.abs(c) > 2.0**1000)
    small = (product < 2.0**-900) & (a != 0) & (b != 0)
    for i in zip(*np.nonzero(finite & (large | small))) if out.ndim else [()] * bool(finite & (large | small)):
        exact = Fraction(float(a[i])) * Fraction(float(b[i])) + Fraction(float(c[i]))
        out[i] = _round(exact) if exact else a[i] * b[i] + c[i]
    return out


def _round(x: Fraction) -> float:
    try:
        return float(x) if x else 0.0
    except OverflowError:
        return float("inf") if x > 0 else float("-inf")
