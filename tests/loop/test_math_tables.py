"""The polynomials are what tools/fit_math.py derives, and as good as they say."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mpmath import mp, mpf

from hilo.loop.math import tables

H = mp.log(2) / 2
ROOT = mp.sqrt(2)
# (table, key): (the function that is approximated, the weight of its error, interval, log2 of the bound)
CLAIMS: dict[tuple[str, str], tuple[Callable[[Any], Any], Callable[[Any], Any], Any, Any, float]] = {
    ("EXP", "f32"): (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -H, H, -27.9),
    ("EXP", "f64"): (lambda r: (mp.expm1(r) - r) / r**2, lambda r: r**2 / mp.exp(r), -H, H, -56.0),
    ("LOG", "f32"): (lambda f: (mp.log1p(f) - f) / f**2, lambda f: f**2 / mp.log1p(f), 1 / ROOT - 1, ROOT - 1, -27.5),
    ("LOG", "f64"): (lambda f: (mp.log1p(f) - f) / f**2, lambda f: f**2 / mp.log1p(f), 1 / ROOT - 1, ROOT - 1, -56.0),
    ("SIN", "f64"): (lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z, 0, (mp.pi / 4) ** 2, -56.5),
    ("COS", "f64"): (lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, lambda z: z**2, 0, (mp.pi / 4) ** 2, -60.0),
    ("ATAN", "f64"): (lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, lambda z: z, 0, mpf(1), -56.0),
}


@pytest.mark.parametrize(("name", "key"), CLAIMS)
def test_error(name: str, key: str) -> None:
    f, weight, lo, hi, bound = CLAIMS[name, key]
    coefficients = getattr(tables, name)[key]
    with mp.workdps(40):
        worst = mpf(0)
        for i in range(1, 201):
            x = lo + (hi - lo) * mpf(i) / 201
            value = mpf(0)
            for c in reversed(coefficients):
                value = value * x + mpf(c)
            worst = max(worst, abs(weight(x) * (value - f(x))))
        assert mp.log(worst, 2) <= bound


def test_constants() -> None:
    with mp.workdps(60):
        for value, parts in ((mp.log(2), tables.LN2), (mp.pi / 2, tables.PI_2), (1 / mp.log(2), tables.LOG2E)):
            for key, digits in (("f32", 24), ("f64", 53)):
                rest = abs(value - sum(map(mpf, parts[key])))
                assert rest <= value * mpf(2) ** (-digits * len(parts[key]))
    with mp.workdps(400):
        total = sum(mpf(p) * mpf(2) ** (-48 * (k + 1)) for k, p in enumerate(tables.TWO_OVER_PI))
        assert abs(total - 2 / mp.pi) < mpf(2) ** (-48 * len(tables.TWO_OVER_PI))


def test_the_tool_gives_the_table() -> None:
    with mp.workdps(50):  # the tool sets the precision, too
        tool = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "fit_math.py"))
        h = mp.log(2) / 2 * mpf("1.001")
        fitted, _ = tool["fit"](tool["expm1_rest"], lambda r: r**2 / mp.exp(r), -h, h, 4, "f32")
    assert tuple(map(float, fitted)) == tables.EXP["f32"]
