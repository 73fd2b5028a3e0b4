"""Complex functions of the reference, in a type wider than the result's (see `numeric.elementwise`).

Imports numpy only.

Where numpy's own function (C's, with its special values) is accurate in the wider type it is used as it is; the others
are written so that no cancellation between large parts is left.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.ops.numeric import Arr

PI = np.arctan2(np.longdouble(0), np.longdouble(-1))


def build(re: Any, im: Any) -> Arr:
    """re + i im, part by part (arithmetic with 1j would make NaNs out of infinities)."""
    re, im = np.broadcast_arrays(re, im)
    out = np.empty(re.shape, np.clongdouble if re.dtype == np.longdouble else np.complex128)
    out.real, out.imag = re, im
    return out


def _split(x: Arr) -> tuple[Arr, Arr]:
    """x = high + low, where the product of two such pieces is exact in x's type (53-bit values in long double)."""
    high = np.ascontiguousarray(x.astype(np.float64)).reshape(x.shape)
    high = np.asarray(high.view(np.uint64) & np.uint64(0xFFFF_FFFF_F800_0000)).view(np.float64).astype(x.dtype)
    return high, x - high


def sum_of_products(a: Arr, b: Arr, c: Arr, d: Arr) -> Arr:
    """a * b + c * d without loss by cancellation."""
    if a.dtype != np.longdouble:
        return a * b + c * d  # f32 values in f64: the products are exact
    terms = [x * y for p, q in ((a, b), (c, d)) for x in _split(p) for y in _split(q)]
    plain = a * b + c * d
    total, lost = np.zeros_like(plain), np.zeros_like(plain)
    for t in terms:
        total, lost = _add(total, lost, t)
    exact = total + lost
    return np.where(np.isfinite(exact), exact, plain)


def multiply(x: Arr, y: Arr) -> Arr:
    re = sum_of_products(x.real, y.real, -x.imag, y.imag)
    return build(re, sum_of_products(x.real, y.imag, x.imag, y.real))


def divide(x: Arr, y: Arr) -> Arr:
    """x / y, scaled against overflow; infinities and zeros as in C's Annex G."""
    a, b, c, d = x.real, x.imag, y.real, y.imag
    largest = np.maximum(np.abs(c), np.abs(d))
    usable = np.isfinite(largest) & (largest > 0)
    scale = np.where(usable, np.frexp(np.where(usable, largest, 1))[1] - 1, 0)
    cs, ds = np.ldexp(c, -scale), np.ldexp(d, -scale)
    norm = cs * cs + ds * ds
    re = np.ldexp(sum_of_products(a, cs, b, ds) / norm, -scale)
    im = np.ldexp(sum_of_products(b, cs, -a, ds) / norm, -scale)
    lost = np.isnan(re) & np.isnan(im)
    by_zero = lost & (norm == 0) & ~(np.isnan(a) & np.isnan(b))
    infinite = np.copysign(np.inf, c)
    re, im = np.where(by_zero, infinite * a, re), np.where(by_zero, infinite * b, im)
    big_x = lost & (np.isinf(a) | np.isinf(b)) & np.isfinite(c) & np.isfinite(d)
    ab, bb = _boxed(a), _boxed(b)
    re, im = np.where(big_x, np.inf * (ab * c + bb * d), re), np.where(big_x, np.inf * (bb * c - ab * d), im)
    big_y = lost & (np.isinf(c) | np.isinf(d)) & np.isfinite(a) & np.isfinite(b)
    cb, db = _boxed(c), _boxed(d)
    return build(np.where(big_y, 0 * (a * cb + b * db), re), np.where(big_y, 0 * (b * cb - a * db), im))


def _boxed(x: Arr) -> Arr:
    """+-1 for infinities, +-0 for all else."""
    return np.copysign(np.where(np.isinf(x), 1, 0).astype(x.dtype), x)


def sign(x: Arr) -> Arr:
    size = np.hypot(x.real, x.imag)
    out = divide(x, build(size, np.zeros_like(size)))
    out = np.where((x.real == 0) & (x.imag == 0), build(np.zeros_like(size), np.zeros_like(size)), out)
    return np.where(np.isnan(x.real) | np.isnan(x.imag), build(size * np.nan, size * np.nan), out)


def power(x: Arr, y: Arr) -> Arr:
    """exp(y log x).

    Anything to the power 0 is 1; 0 to a power with positive real part is 0, with a negative one inf + NaN i.
    """
    out = np.power(x, y)
    zero = (x.real == 0) & (x.imag == 0)
    out = np.where(zero & (y.real > 0), np.zeros_like(out), out)
    out = np.where(zero & (y.real < 0), build(np.full_like(x.real, np.inf), np.full_like(x.real, np.nan)), out)
    return np.where((y.real == 0) & (y.imag == 0), np.ones_like(out), out)


def rsqrt(x: Arr) -> Arr:
    root = np.sqrt(x)
    return divide(np.ones_like(root), root)


def cbrt(x: Arr) -> Arr:
    """The principal root: the argument is divided by three."""
    size, angle = np.cbrt(np.hypot(x.real, x.imag)), np.arctan2(x.imag, x.real) / 3
    return np.where((x.real == 0) & (x.imag == 0), x, build(size * np.cos(angle), size * np.sin(angle)))


def exponential(z: Arr) -> Arr:
    """e^x (cos y + i sin y); NaN in both parts where y is infinite or NaN, whatever x."""
    out = np.exp(z)
    none = np.full_like(z.real, np.nan)
    return np.where(np.isfinite(z.imag), out, build(none, none))


def exponential_minus_one(z: Arr) -> Arr:
    x, y = z.real, z.imag
    half = np.sin(y / 2)
    re = np.expm1(x) * np.cos(y) - 2 * half * half
    e = np.exp(x)
    full = exponential(z)
    return build(np.where(np.isfinite(e) & np.isfinite(y), re, full.real - 1), np.where(y == 0, y, full.imag))


def log_plus_one(z: Arr) -> Arr:
    """log(1 + z): its real part is log1p(2x + x^2 + y^2) / 2 near the unit circle, without cancellation."""
    x, y = z.real, z.imag
    inner = sum_of_squares_and(x, y)
    size = np.hypot(1 + x, y)
    near = (size > 0.5) & (size < 2)
    re = np.where(near, np.log1p(np.where(near, inner, 0)) / 2, np.log(size))
    return build(re, np.arctan2(y, 1 + x))


def sum_of_squares_and(x: Arr, y: Arr) -> Arr:
    """2x + x^2 + y^2, without loss by cancellation for 53-bit values."""
    total, lost = 2 * x, np.zeros_like(x)
    for p in (x, y):
        for t in (u * v for u in _split(p) for v in _split(p)):
            total, lost = _add(total, lost, t)
    return total + lost


def _add(total: Arr, lost: Arr, term: Arr) -> tuple[Arr, Arr]:
    """total + term, and what rounding has lost so far."""
    new = total + term
    back = new - total
    return new, lost + ((total - (new - back)) + (term - back))


def logistic(z: Arr) -> Arr:
    """1 / (1 + exp(-z)); near the pole at pi i, 1 + exp(-x) cos(y) = 2 exp(-x) cos(y/2)^2 - expm1(-x)."""
    x, y = z.real, z.imag
    e, half = exponential(-z), np.cos(y / 2)
    near = (np.abs(x) < 1) & (np.abs(y) < 1e6)
    below = np.where(near, 2 * np.exp(-x) * half * half - np.expm1(-x), 1 + e.real)
    out = divide(np.ones_like(z), build(below, e.imag))
    return np.where(np.isinf(e.real) | np.isinf(e.imag), exponential(z), out)


def atan2(y: Arr, x: Arr) -> Arr:
    """-i log((x + i y) / sqrt(x^2 + y^2)), by principal branches; signs of zeros do not count.

    With u = x + i y and v = x - i y this is -i log(u / sqrt(u v)): the real part is half the angle of u / v, or half a
    turn from there, the imaginary one log|v / u| / 2. NaN in both parts unless all is finite, and for two zeros;
    where u or v is 0 only the imaginary part is infinite.
    """
    u, v = build(x.real - y.imag, x.imag + y.real), build(x.real + y.imag, x.imag - y.real)
    inner = sum_of_products(x.real, y.real, x.imag, y.imag)
    outer = sum_of_products(x.real, y.imag, -x.imag, y.real)
    p, q = u.real**2 + u.imag**2, v.real**2 + v.imag**2
    size = np.abs(np.arctan2(2 * inner, sum_of_products(u.real, v.real, u.imag, v.imag))) / 2
    re = on_branch(size, inner, u, v, sum_of_products(x.real, x.imag, y.real, y.imag))
    im = np.copysign(np.log1p(4 * np.abs(outer) / np.minimum(p, q)) / 4, outer)
    re = np.where((p == 0) | (q == 0), 0, re)
    bad = ~(np.isfinite(x) & np.isfinite(y)) | ((p == 0) & (q == 0))
    return build(np.where(bad, np.nan, re), np.where(bad, np.nan, im))


def on_branch(size: Arr, inner: Arr, u: Arr, v: Arr, square: Arr) -> Arr:
    """The angle of u / sqrt(u v), which is +-`size` or half a turn from there.

    The sum of the angles of u and v is that of u v but for a whole turn. `inner` has the sign of sin(angle of u / v),
    `square` that of the imaginary part of u v: they decide where rounding could.
    """
    a, b = np.arctan2(u.imag + 0, u.real), np.arctan2(v.imag + 0, v.real)
    angle, total = (a - b) / 2, a + b
    beyond = ((total > 2.5) & (square < 0)) | (total > 3.5) | ((total < -2.5) & (square >= 0)) | (total < -3.5)
    angle = np.where(beyond, angle - np.copysign(np.pi, angle), angle)
    back = np.abs(angle) > np.pi / 2
    negative = np.where(np.abs(angle) < 0.1, inner < 0, np.where(np.abs(angle) > 3, inner > 0, angle < 0))
    size = np.where(back, PI - size, size)
    return np.where(negative, -size, size)


def square(z: Arr) -> Arr:
    """((x - y)(x + y), 2xy)."""
    x, y = z.real, z.imag
    xy = x * y
    return build((x - y) * (x + y), xy + xy)
