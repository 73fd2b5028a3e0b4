"""CHLO functions that are series: bessel_i1e, zeta, polygamma. Imports ir, ops.

The reference sums in long double, by other formulas where there are some.
"""

from __future__ import annotations

from math import factorial

import numpy as np

from hilo.ir.registry import op
from hilo.ops import numeric, numeric_special
from hilo.ops.elementwise_base import binary, examples, flops, math, pointwise, unary
from hilo.ops.numeric import LD, Arr

_TERMS = 24  # of zeta's sum; the rest is below 2^-64 of it
_BERNOULLI = ((1, 6), (-1, 30), (1, 42), (-1, 30), (5, 66), (-691, 2730), (7, 6), (-3617, 510), (43867, 798))


def bessel_i1e_of(x: Arr) -> Arr:
    """exp(-|x|) I1(x): the power series up to 40, the asymptotic one beyond."""
    a = np.abs(x.astype(LD))
    near = np.where(a <= 40, a, 0)
    term = near / 2
    total = term.copy()
    for k in range(1, 110):
        term = term * (near / 2) ** 2 / (LD(k) * LD(k + 1))
        total = total + term
    far = np.where(a > 40, a, 41)
    term = np.ones_like(far)
    series = term.copy()
    for k in range(1, 40):
        term = term * -(LD(4) - LD(2 * k - 1) ** 2) / (LD(8 * k) * far)
        series = series + term
    pi = LD("3.14159265358979323846264338327950288")
    out = np.where(a <= 40, total * np.exp(-near), series / np.sqrt(2 * pi * far))
    out = np.where(np.isinf(a), 0, out)
    return np.copysign(np.where(np.isnan(x), np.nan, out), x)


def _positive_zeta(x: Arr, q: Arr) -> Arr:
    total = np.zeros_like(q)
    for k in range(_TERMS):
        total = total + (q + k) ** -x
    at = q + _TERMS
    last = at**-x
    rest = at / (x - 1) + LD(1) / 2
    factor = x / at
    for k, (p, r) in enumerate(_BERNOULLI):
        rest = rest + factor * LD(p) / LD(r) / LD(factorial(2 * k + 2))
        factor = factor * (x + 2 * k + 1) * (x + 2 * k + 2) / at**2
    return np.where(np.isinf(q), 0, total + np.where(last == 0, 0, last * rest))


def zeta_of(x: Arr, q: Arr) -> Arr:
    """Hurwitz' zeta function."""
    x, q = x.astype(LD), q.astype(LD)
    negative = q < 0
    fraction = np.where(negative, q - np.floor(q), 1)
    main = _positive_zeta(x, np.where(negative, fraction, q))
    turned = _positive_zeta(x, np.where(negative, 1 - fraction, 1)) - _positive_zeta(x, np.where(negative, 1 - q, 1))
    even = np.floor(x / 2) == x / 2
    r = np.where(negative, main + np.where(even, turned, -turned), main)
    r = np.where((q <= 0) & (np.floor(q) == q), np.where(even, np.inf, np.nan), r)
    lost = ((q <= 0) & (np.floor(x) != x)) | (x < 1) | np.isnan(x) | np.isnan(q)
    return np.where((x == 1) & ~np.isnan(q), np.inf, np.where(lost, np.nan, r))


def polygamma_of(n: Arr, x: Arr) -> Arr:
    """The n-th derivative of digamma."""
    n, x = n.astype(LD), x.astype(LD)
    product = np.ones_like(n)
    for k in range(1, 171):
        product = np.where(n >= k, product * k, product)
    product = np.where(n > 170, np.inf, product)
    value = product * zeta_of(n + 1, x)
    value = np.where(np.floor(n / 2) == n / 2, -value, value)
    value = np.where(n == 0, numeric_special.digamma(x), value)
    return np.where((n >= 0) & (np.floor(n) == n), value, np.nan)


@op("bessel_i1e", dialect="chlo")
class bessel_i1e:
    """exp(-|x|) times the modified Bessel function of order 1. Floats."""

    infer = unary("f")
    evaluate = numeric.elementwise(bessel_i1e_of)
    scalar = math("bessel_i1e")
    sharding = pointwise
    cost = flops(60)
    examples = examples("f")


@op("zeta", dialect="chlo")
class zeta:
    """Hurwitz' zeta function of x and q: the sum of (q + k)^-x over k = 0, 1 ... Floats.

    inf for x = 1, NaN for x < 1. For q <= 0 only whole x mean something; at whole q it is inf for even x, else NaN.
    Within a few units in the last place in f64, more where terms cancel left of 0.
    """

    infer = binary("f")
    evaluate = numeric.elementwise(zeta_of)
    scalar = math("zeta")
    sharding = pointwise
    cost = flops(400)
    examples = examples("f", 2)


@op("polygamma", dialect="chlo")
class polygamma:
    """The n-th derivative (n = 0, 1 ..., a float) of digamma at x; NaN for any other n. Floats. Accurate as zeta is."""

    infer = binary("f")
    evaluate = numeric.elementwise(polygamma_of)
    scalar = math("polygamma")
    sharding = pointwise
    cost = flops(600)
    examples = examples("f", 2)
