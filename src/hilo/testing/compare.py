"""Comparing arrays: ULP distances, equality of bits, the checks of StableHLO's test data. Imports ir.dtypes."""

from __future__ import annotations

import numpy as np

from hilo.ir.dtypes import DType, from_numpy

APART = (1 << 64) - 1  # steps between numbers and what is none
_BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def parts(x: np.ndarray) -> list[np.ndarray]:
    """The real and imaginary part of a complex array, or the array itself."""
    return [np.real(x), np.imag(x)] if x.dtype.kind == "c" else [x]


def bits(x: np.ndarray) -> np.ndarray:
    """The bytes of each (not complex) element as an unsigned integer."""
    x = np.ascontiguousarray(x).reshape(x.shape)
    return x.view(np.uint8 if x.dtype == np.bool_ else _BITS[x.dtype.itemsize])


def ulp_distance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """How many steps of representable values lie between elements of float arrays, as u64; 0.0 and -0.0 are one value.

    NaNs count as numbers beyond infinity; treat them apart.
    """
    width = 8 * a.dtype.itemsize
    sign = np.uint64(1 << (width - 1))
    x, y = bits(a).astype(np.uint64), bits(b).astype(np.uint64)
    p, q = x & ~sign, y & ~sign
    apart = np.where(p > q, p - q, q - p)
    return np.asarray(np.where((x ^ y) & sign, p + q, apart))


def steps_apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`ulp_distance` of real floats; where one is not finite, 0 if they are the same (NaNs are), else APART."""
    finite = np.isfinite(a) & np.isfinite(b)
    return np.where(finite, ulp_distance(a, b), np.where(identical(a, b), np.uint64(0), np.uint64(APART)))


def magnitudes(x: np.ndarray) -> np.ndarray:
    """Absolute values in f64; of complex numbers, the sum of the parts' absolute values."""
    with np.errstate(all="ignore"):
        return np.asarray(sum(np.abs(p.astype(np.float64)) for p in parts(x)))


def epsilon(dtype: DType) -> float:
    """The distance from 1 to the next value of a float type (of a complex type's parts)."""
    one = np.ones((), dtype.part.np)
    return float((bits(one) + 1).astype(_BITS[one.dtype.itemsize]).view(one.dtype).astype(np.float64)) - 1.0


def equal(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where elements are equal as numbers: 0.0 equals -0.0, NaN equals nothing."""
    with np.errstate(all="ignore"):
        return np.asarray(got == want)


def identical(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where elements have the same bits, or are both NaN (in the same parts)."""
    same = np.ones(got.shape, np.bool_)
    for g, w in zip(parts(got), parts(want), strict=True):
        same &= (bits(g) == bits(w)) | (_nan(g) & _nan(w))
    return same


def close(got: np.ndarray, want: np.ndarray, ulps: int, slack: np.ndarray | float = 0.0) -> np.ndarray:
    """Where elements are at most `ulps` apart, or differ by at most `slack` in value; NaNs equal NaNs.

    Other values that are not finite must have the same bits. Complex numbers by parts; integers and booleans exactly.
    """
    if from_numpy(got.dtype).kind in "biu":
        return equal(got, want)
    ok = np.ones(got.shape, np.bool_)
    for g, w in zip(parts(got), parts(want), strict=True):
        wide_g, wide_w = g.astype(np.float64), w.astype(np.float64)
        finite = np.isfinite(wide_g) & np.isfinite(wide_w)
        with np.errstate(all="ignore"):
            near = (ulp_distance(g, w) <= ulps) | (np.abs(wide_g - wide_w) <= slack)
        ok &= np.where(finite, near, (bits(g) == bits(w)) | (_nan(g) & _nan(w)))
    return ok


def near(got: np.ndarray, want: np.ndarray, absolute: float) -> np.ndarray:
    """Where elements differ by at most `absolute` (by parts); what is not finite must be the same; integers exactly."""
    if from_numpy(got.dtype).kind in "biu":
        return equal(got, want)
    return close(got, want, 0, absolute)


def both_nan(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where both are NaN."""
    return _nan(got) & _nan(want)


def _nan(x: np.ndarray) -> np.ndarray:
    return np.asarray(x != x) if from_numpy(x.dtype).kind in "fc" else np.zeros(x.shape, np.bool_)


def difference(got: np.ndarray, want: np.ndarray, ok: np.ndarray) -> str:
    """One line on the first element that is wrong, for a report."""
    at = tuple(int(k) for k in np.argwhere(~ok)[0]) if got.ndim else ()
    return f"{int((~ok).sum())} of {ok.size} elements differ, first at {list(at)}: {got[at]!r} instead of {want[at]!r}"
