"""Chebyshev coefficients of exp(-x) I1(x) for loop/math/series.py, with mpmath: `python tools/fit_bessel.py`.

Up to 2 it is x times a series in x - 1, up to 8 a series in (x - 5) / 3, beyond 1 / sqrt(x) times one in 16 / x - 1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp

mp.mp.dps = 40


def chebyshev(f: Callable[[Any], Any], n: int) -> list[float]:
    """The first `n` coefficients of `f` on [-1, 1], the first one halved."""
    points = [mp.cos(mp.pi * (k + mp.mpf(1) / 2) / 64) for k in range(64)]
    values = [f(t) for t in points]
    out = []
    for j in range(n):
        terms = (v * mp.cos(j * mp.pi * (k + mp.mpf(1) / 2) / 64) for k, v in enumerate(values))
        out.append(float(mp.fsum(terms) * 2 / 64 / (2 if j == 0 else 1)))
    return out


def scaled(x: Any) -> Any:
    return mp.exp(-x) * mp.besseli(1, x)


def near(t: Any) -> Any:
    x = t + 1
    return scaled(x) / x if x else mp.mpf(1) / 2


def middle(t: Any) -> Any:
    return scaled(3 * t + 5)


def far(t: Any) -> Any:
    return scaled(16 / (t + 1)) * mp.sqrt(16 / (t + 1))


if __name__ == "__main__":
    for name, f, n in (("NEAR", near, 21), ("MIDDLE", middle, 25), ("FAR", far, 26)):
        print(f"_{name}: Final = (")
        for c in chebyshev(f, n):
            print(f"    {c!r},")
        print(")")
