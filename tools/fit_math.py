"""Derives the polynomials of hilo.loop.math and prints src/hilo/loop/math/tables.py.

    python tools/fit_math.py > src/hilo/loop/math/tables.py

Each table is the polynomial of least greatest weighted error on an interval (the exchange algorithm of Remez, on a
dense grid, in multiple precision). Coefficients for f32 are rounded one after the other, the lowest power first, and
the rest is fitted again each time. The error printed beside a table is that of the rounded coefficients.
"""

from __future__ import annotations

import struct
import sys
import textwrap
from collections.abc import Callable
from typing import Any

from mpmath import mp, mpf

mp.dps = 50
Fn = Callable[[Any], Any]


def to_type(x: Any, scalar: str) -> Any:
    x = float(x)  # mpf -> f64 rounds to nearest
    return mpf(struct.unpack("f", struct.pack("f", x))[0] if scalar == "f32" else x)


def chebyshev_grid(lo: Any, hi: Any, n: int) -> list[Any]:
    return [(lo + hi) / 2 - (hi - lo) / 2 * mp.cos(mp.pi * i / (n - 1)) for i in range(n)]


def horner(c: list[Any], x: Any) -> Any:
    r = mpf(0)
    for k in reversed(c):
        r = r * x + k
    return r


def remez(values: list[Any], weights: list[Any], xs: list[Any], low: int, degree: int) -> list[Any]:
    """c[low..degree] such that the greatest |weight * (sum c_k x^k - value)| on the grid is least."""
    n = degree - low + 1
    picks = [round(i * (len(xs) - 1) / n) for i in range(n + 1)]
    c: list[Any] = []
    for _ in range(30):
        a = mp.matrix(n + 1, n + 1)
        y = mp.matrix(n + 1, 1)
        for row, i in enumerate(picks):
            for k in range(n):
                a[row, k] = xs[i] ** (low + k)
            a[row, n] = (-1) ** row / weights[i]
            y[row] = values[i]
        solution = mp.lu_solve(a, y)
        c = [solution[k] for k in range(n)]
        level = abs(solution[n])
        err = [w * (horner(c, x) * x**low - v) for x, v, w in zip(xs, values, weights)]
        runs: list[int] = []  # the extremum of each stretch of one sign
        for i, e in enumerate(err):
            if runs and (err[runs[-1]] > 0) == (e > 0):
                if abs(e) > abs(err[runs[-1]]):
                    runs[-1] = i
            else:
                runs.append(i)
        while len(runs) > n + 1:  # drop the smaller end
            runs.pop(0 if abs(err[runs[0]]) < abs(err[runs[-1]]) else -1)
        if len(runs) < n + 1:
            raise ArithmeticError(f"the error changes sign only {len(runs)} times, not {n + 1}")
        picks = runs
        if max(abs(e) for e in err) < level * mpf("1.002"):
            break
    return c


def fit(f: Fn, weight: Fn, lo: Any, hi: Any, degree: int, scalar: str, points: int = 0) -> tuple[list[Any], float]:
    """Coefficients, lowest first, rounded to `scalar`; and log2 of the greatest weighted error."""
    xs = [x for x in chebyshev_grid(mpf(lo), mpf(hi), points or 24 * (degree + 4)) if x != 0]
    weights = [abs(weight(x)) for x in xs]
    floor = max(weights) / 50  # where the weight vanishes any polynomial will do, but the exchange wants a bound
    weights = [max(w, floor) for w in weights]
    values = [f(x) for x in xs]
    best = [to_type(k, scalar) for k in remez(values, weights, xs, 0, degree)]
    if scalar == "f32":
        best = min(best, round_in_turn(values, weights, xs, degree), key=lambda c: worst(c, values, weights, xs))
    return best, float(mp.log(worst(best, values, weights, xs), 2))


def worst(c: list[Any], values: list[Any], weights: list[Any], xs: list[Any]) -> Any:
    return max(abs(w * (horner(c, x) - v)) for x, v, w in zip(xs, values, weights))


def round_in_turn(values: list[Any], weights: list[Any], xs: list[Any], degree: int) -> list[Any]:
    """Round the lowest coefficient, fit the others again (least squares on the grid), and so on."""
    rounded: list[Any] = []
    for low in range(degree + 1):
        n = degree - low + 1
        normal, right = mp.zeros(n, n), mp.zeros(n, 1)
        for x, v, w in zip(xs, values, weights):
            row = [w * x ** (low + k) for k in range(n)]
            rest = w * (v - horner(rounded, x))
            for i in range(n):
                right[i] += row[i] * rest
                for j in range(n):
                    normal[i, j] += row[i] * row[j]
        rounded.append(to_type(mp.lu_solve(normal, right)[0], "f32"))
    return rounded


OUT = sys.stdout
HEADER = '''"""Polynomials and constants of loop.math. Made by tools/fit_math.py: change that, not this file.

The key is the type of the arithmetic; `f32_in_f64` serves f32 results computed in f64. Lowest power first. The errors
are those of the approximation; rounding comes on top.
"""

from __future__ import annotations

from typing import Final
'''


def packed(numbers: list[Any], indent: int) -> str:
    text = " ".join(f"{float(k)!r}," for k in numbers)
    return textwrap.fill(text, 118, initial_indent=" " * indent, subsequent_indent=" " * indent)


def table(name: str, comment: str, **fits: tuple[list[Any], float]) -> None:
    print(f"{name}: Final = {{  # {comment}", file=OUT)
    for key, (c, err) in fits.items():
        print(f'    "{key}": (  # error 2^{err:.1f}', file=OUT)
        print(packed(c, 8), file=OUT)
        print("    ),", file=OUT)
    print("}", file=OUT)


def split(value: Any, scalar: str, parts: int) -> list[Any]:
    out = []
    for _ in range(parts):
        out.append(to_type(value, scalar))
        value = value - out[-1]
    return out


def constants(name: str, value: Any, parts: int, comment: str) -> None:
    print(f"{name}: Final = {{  # {comment}", file=OUT)
    for scalar in ("f32", "f64"):
        print(f'    "{scalar}": ({", ".join(repr(float(p)) for p in split(value, scalar, parts))},),', file=OUT)
    print("}", file=OUT)


def expm1_rest(r: Any) -> Any:
    return (mp.expm1(r) - r) / r**2


def log_rest(f: Any) -> Any:
    return (mp.log1p(f) - f) / f**2


def in_z(f: Fn) -> Fn:
    return lambda z: f(mp.sqrt(z))


def main() -> None:
    print(HEADER, file=OUT)
    constants("LN2", mp.log(2), 3, "parts of log(2)")
    constants("PI_2", mp.pi / 2, 3, "parts of pi/2")
    constants("LOG2E", 1 / mp.log(2), 2, "log2(e)")
    mp.dps = 400
    digits = int(mp.floor(2 / mp.pi * mpf(2) ** (48 * 26)))
    pieces = [(digits >> (48 * (25 - k))) & ((1 << 48) - 1) for k in range(26)]
    print("TWO_OVER_PI: Final = (  # 2/pi is the sum of TWO_OVER_PI[k] 2^(-48 (k + 1))", file=OUT)
    print(packed(pieces, 4) + "\n)", file=OUT)
    mp.dps = 50
    h = mp.log(2) / 2 * mpf("1.001")
    wexp: Fn = lambda r: r**2 / mp.exp(r)
    table("EXP", "(exp(r) - 1 - r) / r^2, |r| <= log(2)/2; error relative to exp",
          f32=fit(expm1_rest, wexp, -h, h, 4, "f32"),
          f64=fit(expm1_rest, wexp, -h, h, 9, "f64"),
          f32_in_f64=fit(expm1_rest, wexp, -h, h, 5, "f64"))  # fmt: skip
    wexpm1: Fn = lambda r: r**2 / mp.expm1(r)
    table("EXPM1", "(exp(r) - 1 - r) / r^2, |r| <= log(2)/2; error relative to expm1",
          f32=fit(expm1_rest, wexpm1, -h, h, 5, "f32"), f64=fit(expm1_rest, wexpm1, -h, h, 10, "f64"))  # fmt: skip
    h2 = mpf("0.5005")
    table("EXP2", "(2^f - 1) / f, |f| <= 1/2; error relative to 2^f",
          f32=fit(lambda f: (2**f - 1) / f, lambda f: f / 2**f, -h2, h2, 5, "f32"))  # fmt: skip
    a, b = mp.sqrt(mpf(1) / 2) - 1 - mpf("1e-5"), mp.sqrt(2) - 1 + mpf("1e-5")
    wlog: Fn = lambda f: f**2 / mp.log1p(f)
    table("LOG", "(log1p(f) - f) / f^2, sqrt(1/2) <= 1 + f <= sqrt(2); error relative to log1p",
          f32=fit(log_rest, wlog, a, b, 8, "f32"), f64=fit(log_rest, wlog, a, b, 20, "f64"),
          f32_in_f64=fit(log_rest, wlog, a, b, 13, "f64"))  # fmt: skip
    q = (mp.pi / 4 * mpf("1.0005")) ** 2
    sin_rest = in_z(lambda x: (mp.sin(x) - x) / x**3)
    wsin = in_z(lambda x: x**3 / mp.sin(x))
    cos_rest: Fn = lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2
    wcos: Fn = lambda z: z**2 / mp.cos(mp.sqrt(z))
    table("SIN", "(sin(r) - r) / r^3 in r^2, |r| <= pi/4; error relative to sin",
          f32=fit(sin_rest, wsin, 0, q, 2, "f32"), f64=fit(sin_rest, wsin, 0, q, 6, "f64"),
          f32_in_f64=fit(sin_rest, wsin, 0, q, 3, "f64"))  # fmt: skip
    table("COS", "(cos(r) - 1 + r^2/2) / r^4 in r^2, |r| <= pi/4; error relative to cos",
          f32=fit(cos_rest, wcos, 0, q, 2, "f32"), f64=fit(cos_rest, wcos, 0, q, 5, "f64"),
          f32_in_f64=fit(cos_rest, wcos, 0, q, 3, "f64"))  # fmt: skip
    t = mpf("0.6251") ** 2
    table("TANH", "(tanh(x) - x) / x^3 in x^2, |x| <= 5/8; error relative to tanh",
          f32=fit(in_z(lambda x: (mp.tanh(x) - x) / x**3), in_z(lambda x: x**3 / mp.tanh(x)), 0, t, 4, "f32"))
    erf_rest = in_z(lambda x: (mp.erf(x) - x) / x)
    werf = in_z(lambda x: x / mp.erf(x))
    table("ERF", "(erf(x) - x) / x in x^2, |x| <= 1; error relative to erf",
          f32=fit(erf_rest, werf, 0, 1, 6, "f32"), f64=fit(erf_rest, werf, 0, 1, 12, "f64"),
          f32_in_f64=fit(erf_rest, werf, 0, 1, 7, "f64"))  # fmt: skip
    log2_erfc: Fn = lambda x: mp.log(mp.erfc(x), 2)
    table("LOG2_ERFC", "log2(erfc(x)), 1 <= x <= 4; error relative to erf",
          f32=fit(log2_erfc, lambda x: mp.erfc(x), mpf("0.999"), 4, 7, "f32"))  # fmt: skip
    # erfcx(x) = exp(x^2) erfc(x) as a polynomial in t = (x - 4) / (x + 4), with x = 4 (1 + t) / (1 - t)
    erfcx: Fn = lambda t: mp.exp((4 * (1 + t) / (1 - t)) ** 2) * mp.erfc(4 * (1 + t) / (1 - t))
    scaled: Fn = lambda t: erfcx(t) * (1 + 8 * (1 + t) / (1 - t))
    te = (mpf("27.5") - 4) / (mpf("27.5") + 4)
    table("ERFCX", "exp(x^2) erfc(x) (1 + 2 x) in (x - 4) / (x + 4), 1 <= x <= 27.5; relative error",
          f64=fit(scaled, lambda t: 1 / scaled(t), mpf("-0.6001"), te, 20, "f64"))  # fmt: skip
    # erfc in f32: u = 3/4 / (x + 3/2) comes close enough to erfcx(x) for what is left to be small; polynomials in t
    place: Fn = lambda t: mpf("0.75") / (t + mpf("0.1875")) - mpf("1.5")
    left: Fn = lambda t: mp.exp(place(t) ** 2) * mp.erfc(place(t)) / (t + mpf("0.1875")) - 1
    follows: Fn = lambda t: (2 / (mp.sqrt(mp.pi) * mp.exp(place(t) ** 2) * mp.erfc(place(t))) - 2 * place(t)) / (
        t + mpf("0.1875")
    )
    first, last = mpf("0.75") / mpf("11.6") - mpf("0.1875"), mpf("0.5") - mpf("0.1875")
    table("ERFCX_BESIDE", "exp(x^2) erfc(x) / u - 1 in u - 3/16, u = 3/4 / (x + 3/2), 0 <= x <= 10.1; relative error",
          f32=fit(left, lambda t: 1 / (1 + left(t)), first, last, 10, "f32"))  # fmt: skip
    table("ERFCX_FOLLOWS", "u d(log(exp(x^2) erfc(x)))/du / (3/4) in u - 3/16, of the same u; error",
          f32=fit(follows, lambda t: mpf(1), first, last, 1, "f32"))  # fmt: skip
    at = in_z(lambda x: (mp.atan(x) - x) / x**3)
    wat = in_z(lambda x: x**3 / mp.atan(x))
    table("ATAN", "(atan(x) - x) / x^3 in x^2, |x| <= 1; error relative to atan",
          f64=fit(at, wat, 0, mpf("1.0001"), 19, "f64"), f32_in_f64=fit(at, wat, 0, mpf("1.0001"), 9, "f64"))
    ss = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)
    atanh_log = in_z(lambda x: (mp.atanh(x) / x - 1 - x**2 / 3) / x**4)
    table("ATANH_LOG", "(atanh(s) / s - 1 - s^2/3) / s^4 in s^2, s = f / (2 + f); error relative to atanh",
          f64=fit(atanh_log, in_z(lambda x: x**5 / mp.atanh(x)), 0, (ss * mpf("1.001")) ** 2, 7, "f64"))  # fmt: skip
    odd: list[tuple[str, Fn, Any, int, int]] = [
        ("ASIN", mp.asin, mpf("0.5001"), 11, 4), ("ASINH", mp.asinh, mpf("0.5001"), 11, 4),
        ("ATANH", mp.atanh, mpf("0.5001"), 13, 6), ("SINH", mp.sinh, mpf("1.0001"), 6, 3),
    ]  # fmt: skip
    for name, f, end, d64, d32 in odd:
        g = in_z(lambda x, f=f: (f(x) - x) / x**3)
        w = in_z(lambda x, f=f: x**3 / f(x))
        table(name, f"({name.lower()}(x) - x) / x^3 in x^2, |x| <= {float(end):.1f}; relative error",
              f32=fit(g, w, 0, end**2, d32, "f32"), f64=fit(g, w, 0, end**2, d64, "f64"))  # fmt: skip
    def inv(w: Any) -> Any:  # erf_inv(x) / x at w = -log(1 - x^2)
        x = mp.sqrt(-mp.expm1(-w))
        return mp.erfinv(x) / x if w > 0 else mp.sqrt(mp.pi) / 2

    g0 = mp.sqrt(mp.pi) / 2
    center: Fn = lambda v: (inv(v + mpf("3.125")) - g0) / (v + mpf("3.125"))
    wcenter: Fn = lambda v: (v + mpf("3.125")) / inv(v + mpf("3.125"))
    lo, hi = mpf("-3.1249"), mpf("3.13")
    table("ERF_INV_CENTER", "(erf_inv(x) / x - sqrt(pi)/2) / w in w - 3.125, w = -log(1 - x^2) <= 6.25; error",
          f32=fit(center, wcenter, lo, hi, 9, "f32", 200),
          f64=fit(center, wcenter, lo, hi, 23, "f64", 300))  # fmt: skip
    ends = [("TAIL", "3.25", "2.499", "4.001", 19, 9), ("END", "5", "3.999", "6.07", 19, 0)]
    for name, mid, first, last, d64, d32 in ends:
        g = lambda v, mid=mid: inv((v + mpf(mid)) ** 2)
        w = lambda v, g=g: 1 / g(v)
        fits = {"f64": fit(g, w, mpf(first) - mpf(mid), mpf(last) - mpf(mid), d64, "f64", 300)}
        if d32:
            fits["f32"] = fit(g, w, mpf(first) - mpf(mid), mpf(last) - mpf(mid), d32, "f32", 200)
        table(f"ERF_INV_{name}", f"erf_inv(x) / x in sqrt(w) - {mid}, {first} <= sqrt(w) <= {last}", **fits)

    def lg(v: Any) -> Any:  # at x = 2 + v
        return mp.loggamma(2 + v) / (v * (1 + v)) if v else 1 - mp.euler

    table("LGAMMA", "lgamma(x) / ((x - 1) (x - 2)) in x - 2, 5/4 <= x <= 9/4; relative error",
          f64=fit(lg, lambda v: 1 / lg(v), mpf("-0.7501"), mpf("0.2501"), 20, "f64"))  # fmt: skip
    def stirling(z: Any) -> Any:
        x = mp.sqrt(1 / z)
        return x * (mp.loggamma(x) - (x - 0.5) * mp.log(x) + x - mp.log(2 * mp.pi) / 2)

    table("STIRLING", "x (lgamma(x) - Stirling's formula) in x^-2, x >= 8.5; error of the term at 8.5",
          f64=fit(stirling, lambda z: mp.sqrt(z), mpf("1e-12"), 1 / mpf("8.49") ** 2, 6, "f64"))  # fmt: skip
    root = mp.findroot(mp.digamma, mpf("1.4616321449683623"))
    constants("DIGAMMA_ROOT", root, 2, "where digamma is 0")
    dg: Fn = lambda v: mp.digamma(v + mpf("1.5")) / (v + mpf("1.5") - root)
    table("DIGAMMA", "digamma(x) / (x - root) in x - 1.5, |x - 1.5| <= 1/2; relative error",
          f64=fit(dg, lambda v: 1 / dg(v), mpf("-0.5001"), mpf("0.5001"), 22, "f64"))  # fmt: skip
    asym: Fn = lambda z: (mp.digamma(mp.sqrt(1 / z)) - mp.log(mp.sqrt(1 / z)) + mp.sqrt(z) / 2) / z
    table("DIGAMMA_FAR", "(digamma(x) - log(x) + 1/(2 x)) x^2 in x^-2, x >= 8; absolute error of the whole",
          f64=fit(asym, lambda z: z, mpf("1e-12"), 1 / mpf("7.99") ** 2, 7, "f64"))  # fmt: skip


if __name__ == "__main__":
    main()
