"""Reference functions against mpmath: f32 rounded once, f64 within one ulp; special values; next_after."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from support import edges, made, same_bits, ulps

from hilo.ir import dtypes
from hilo.ir.dtypes import from_numpy
from hilo.ir.interpret import run as interpret
from hilo.ir.module import Function
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType

INF, NAN = math.inf, math.nan
mp: Any = mpmath.mp

# name, mpmath's function, ranges of real arguments
REAL: dict[str, tuple[Any, list[tuple[float, float]]]] = {
    "stablehlo.exponential": (mp.exp, [(-100, 88), (-1e-3, 1e-3)]),
    "stablehlo.exponential_minus_one": (mp.expm1, [(-20, 80), (-1e-6, 1e-6)]),
    "stablehlo.log": (mp.log, [(0, 1e6), (0.9, 1.1)]),
    "stablehlo.log_plus_one": (mp.log1p, [(-1, 1e6), (-1e-6, 1e-6)]),
    "stablehlo.logistic": (lambda x: 1 / (1 + mp.exp(-x)), [(-80, 40)]),
    "stablehlo.tanh": (mp.tanh, [(-10, 10), (-1e-3, 1e-3)]),
    "stablehlo.sine": (mp.sin, [(-10, 10), (1e5, 1e15)]),
    "stablehlo.cosine": (mp.cos, [(-10, 10), (1e5, 1e15)]),
    "stablehlo.tan": (mp.tan, [(-10, 10), (1e5, 1e15)]),
    "stablehlo.sqrt": (mp.sqrt, [(0, 1e10)]),
    "stablehlo.rsqrt": (lambda x: 1 / mp.sqrt(x), [(0, 1e10)]),
    "stablehlo.cbrt": (lambda x: mp.sign(x) * mp.cbrt(abs(x)), [(-1e10, 1e10)]),
    "chlo.erf": (mp.erf, [(-4, 4), (-1e-3, 1e-3)]),
    "chlo.erfc": (mp.erfc, [(-4, 9)]),
    "chlo.erf_inv": (mp.erfinv, [(-1, 1), (0.999, 1), (-1e-6, 1e-6)]),
    "chlo.sinh": (mp.sinh, [(-80, 80), (-1e-3, 1e-3)]),
    "chlo.cosh": (mp.cosh, [(-80, 80)]),
    "chlo.tan": (mp.tan, [(-10, 10)]),
    "chlo.asin": (mp.asin, [(-1, 1)]),
    "chlo.acos": (mp.acos, [(-1, 1)]),
    "chlo.atan": (mp.atan, [(-100, 100)]),
    "chlo.asinh": (mp.asinh, [(-1e6, 1e6), (-1e-3, 1e-3)]),
    "chlo.acosh": (mp.acosh, [(1, 1e6), (1, 1.001)]),
    "chlo.atanh": (mp.atanh, [(-1, 1), (-1e-3, 1e-3)]),
    "chlo.lgamma": (lambda x: mp.log(abs(mp.gamma(x))), [(0, 30), (0.9, 1.1), (1.9, 2.1), (100, 1e6), (-1e-6, 1e-6)]),
    "chlo.digamma": (mp.digamma, [(1.5, 30), (0, 1.4), (100, 1e6), (-20.3, -20.2)]),
}
CANCELS = {"chlo.lgamma": [(-20, 0)], "chlo.digamma": [(-20, 1.5)]}  # relative to 1 here, since they cross zero


def samples(spans: list[tuple[float, float]], t: Any, n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(5)
    x = np.concatenate([rng.uniform(lo, hi, n) for lo, hi in spans]).astype(t)
    for lo, hi in spans:
        assert ((x > lo) & (x < hi)).any()
    inside = np.zeros(x.shape, bool)
    for lo, hi in spans:
        inside |= (x > lo) & (x < hi)
    return x[inside]


def exact(fn: Any, x: np.ndarray) -> list[Any]:
    with mpmath.workprec(200):
        return [mp.re(fn(mp.mpf(float(v)))) for v in x]


def nearest_f32(v: Any) -> np.float32:
    """The f32 nearest to an mpmath number (in two steps that cannot round twice: 200 bits to 30 to 24)."""
    f = np.float32(float(v))
    around = [np.nextafter(f, np.float32(-INF)), f, np.nextafter(f, np.float32(INF))]
    return min(around, key=lambda c: abs(mp.mpf(float(c)) - v))


@pytest.mark.parametrize("name", REAL)
def test_f32_is_the_nearest(name: str) -> None:
    fn, spans = REAL[name]
    x = samples(spans, np.float32)
    with mpmath.workprec(200):
        want = np.array([nearest_f32(v) for v in exact(fn, x)], np.float32)
    same_bits(lookup(name).evaluate(x), want, x, what=name)  # type: ignore[misc]


@pytest.mark.parametrize("name", REAL)
def test_f64_is_within_one_ulp(name: str) -> None:
    fn, spans = REAL[name]
    x = samples(spans, np.float64)
    got = lookup(name).evaluate(x)  # type: ignore[misc]
    far = ulps(got, np.array([float(v) for v in exact(fn, x)]))
    allowed = 2 if name in ("chlo.erf_inv", "chlo.erfc", "chlo.erf") else 1
    at = int(np.argmax(far))
    assert far[at] <= allowed, f"{name}({x[at]!r}) is {far[at]} ulp off"


@pytest.mark.parametrize("name", CANCELS)
def test_gamma_functions_where_they_cross_zero(name: str) -> None:
    x = samples(CANCELS[name], np.float64, 200)
    got = lookup(name).evaluate(x)  # type: ignore[misc]
    want = exact(REAL[name][0], x)
    assert max(float(abs(mp.mpf(float(g)) - w) / max(1, abs(w))) for g, w in zip(got, want)) < 2.3e-16


COMPLEX: dict[str, Any] = {
    "stablehlo.exponential": mp.exp, "stablehlo.log": mp.log, "stablehlo.sqrt": mp.sqrt, "stablehlo.sine": mp.sin,
    "stablehlo.cosine": mp.cos, "stablehlo.tanh": mp.tanh, "stablehlo.tan": mp.tan,
    "stablehlo.rsqrt": lambda z: 1 / mp.sqrt(z),
    "stablehlo.exponential_minus_one": mp.expm1, "stablehlo.log_plus_one": lambda z: mp.log(1 + z),
    "stablehlo.logistic": lambda z: 1 / (1 + mp.exp(-z)), "stablehlo.cbrt": lambda z: mp.exp(mp.log(z) / 3),
    "chlo.sinh": mp.sinh, "chlo.cosh": mp.cosh, "chlo.asin": mp.asin, "chlo.acos": mp.acos, "chlo.atan": mp.atan,
    "chlo.asinh": mp.asinh, "chlo.acosh": mp.acosh, "chlo.atanh": mp.atanh, "chlo.square": lambda z: z * z,
}  # fmt: skip


@pytest.mark.parametrize("name", COMPLEX)
@pytest.mark.parametrize("t", [np.complex64, np.complex128], ids=lambda t: t.__name__)
def test_complex_functions_by_parts(name: str, t: Any) -> None:
    rng = np.random.default_rng(6)
    x = rng.standard_normal((80, 2)) * 2.0 ** rng.integers(-12, 3, (80, 2))
    z = (x[:, 0] + 1j * x[:, 1]).astype(t)
    got = lookup(name).evaluate(z)  # type: ignore[misc]
    with mpmath.workprec(300):
        want = [COMPLEX[name](mp.mpc(complex(v))) for v in z]
    part = np.float32 if t is np.complex64 else np.float64
    for g, w, v in zip(got, want, z):
        for a, b in ((g.real, w.real), (g.imag, w.imag)):
            assert ulps(np.array([a]), np.array([b], part))[0] <= 1, (name, v, g, w)


def test_log_plus_one_of_complex_numbers_near_the_unit_circle() -> None:
    angle = np.linspace(0.1, 3, 50)
    z = np.cos(angle) - 1 + 1j * np.sin(angle)
    got = lookup("stablehlo.log_plus_one").evaluate(z)  # type: ignore[misc]
    with mpmath.workprec(300):
        want = np.array([complex(mp.log(1 + mp.mpc(complex(v)))) for v in z])
    assert (ulps(got.real, want.real) <= 1).all()


SPECIAL: dict[str, list[tuple[float, float]]] = {
    "chlo.erf": [(INF, 1), (-INF, -1), (-0.0, -0.0), (NAN, NAN)],
    "chlo.erfc": [(INF, 0), (-INF, 2), (0, 1), (NAN, NAN)],
    "chlo.erf_inv": [(1, INF), (-1, -INF), (-0.0, -0.0), (1.5, NAN), (-2, NAN), (NAN, NAN), (INF, NAN)],
    "chlo.lgamma": [
        (0, INF),
        (-0.0, INF),
        (-3, INF),
        (1, 0),
        (2, 0),
        (INF, INF),
        (-INF, INF),
        (NAN, NAN),
        (-1e300, INF),
    ],
    "chlo.digamma": [(0, NAN), (-0.0, NAN), (-2, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "chlo.asin": [(1.1, NAN), (-0.0, -0.0), (NAN, NAN)],
    "chlo.acosh": [(0.5, NAN), (1, 0), (INF, INF), (-INF, NAN)],
    "chlo.atanh": [(1, INF), (-1, -INF), (2, NAN), (-0.0, -0.0)],
    "chlo.sinh": [(INF, INF), (-INF, -INF), (-0.0, -0.0), (1000, INF)],
    "chlo.cosh": [(INF, INF), (-INF, INF), (0, 1)],
    "stablehlo.log": [(0, -INF), (-0.0, -INF), (-1, NAN), (INF, INF)],
    "stablehlo.log_plus_one": [(-1, -INF), (-2, NAN), (-0.0, -0.0), (INF, INF)],
    "stablehlo.sqrt": [(-0.0, -0.0), (-1, NAN), (INF, INF)],
    "stablehlo.rsqrt": [(0, INF), (-0.0, -INF), (INF, 0), (-1, NAN)],
    "stablehlo.cbrt": [(-8, -2), (-0.0, -0.0), (-INF, -INF)],
    "stablehlo.logistic": [(INF, 1), (-INF, 0), (0, 0.5), (NAN, NAN)],
    "stablehlo.sine": [(INF, NAN), (-0.0, -0.0)],
    "stablehlo.tanh": [(INF, 1), (-INF, -1), (-0.0, -0.0)],
}


@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name: str) -> None:
    for t in (dtypes.bf16, dtypes.f16, dtypes.f32, dtypes.f64):
        with np.errstate(over="ignore"):
            x, want = (np.array(c).astype(t.np) for c in zip(*SPECIAL[name]))
        same_bits(lookup(name).evaluate(x), want, x, what=name)  # type: ignore[misc]


def test_power_of_special_values() -> None:
    """C's pow, as IEEE 754 has it."""
    cases = [(0, -3, INF), (-0.0, -3, -INF), (-0.0, -2, INF), (-0.0, 3, -0.0), (-1, INF, 1), (-1, -INF, 1), (1, NAN, 1),
             (NAN, 0, 1),
             (0.5, -INF, INF), (2, -INF, 0), (-INF, -3, -0.0), (-INF, 3, -INF), (-INF, 2, INF), (INF, -1, 0),
             (-2, 0.5, NAN),
             (-2, 3, -8), (-8, 1 / 3, NAN), (-INF, -(2.0**63), 0), (2, 10, 1024)]  # fmt: skip
    for t in (np.float32, np.float64, np.float16, dtypes.bf16.np):
        x, y, want = (np.array(c).astype(t) for c in zip(*cases[: -2 if t is np.float16 else None]))
        same_bits(lookup("stablehlo.power").evaluate(x, y), want, x, y)  # type: ignore[misc]


@pytest.mark.parametrize("t", [dtypes.bf16, dtypes.f16, dtypes.f32, dtypes.f64], ids=str)
def test_next_after(t: Any) -> None:
    x = edges(t)
    with np.errstate(invalid="ignore"):
        x = x[~np.isnan(x)]
    for to in (INF, -INF, 0.0, 1.0):
        y = np.full(x.shape, to).astype(t.np)
        got = lookup("chlo.next_after").evaluate(x, y)  # type: ignore[misc]
        if t.bits >= 32:
            with np.errstate(over="ignore"):
                same_bits(got, np.nextafter(x, y), x, y)
        else:
            wide, moved = x.astype(np.float64), got.astype(np.float64)
            assert ((moved == wide) == (wide == to)).all()
            assert ((moved > wide) == (to > wide)).all()
            steps = ulps(got[np.isfinite(wide)], x[np.isfinite(wide)])  # -0 and +0 are one step apart there
            assert ((steps == (wide != to)[np.isfinite(wide)]) | (x[np.isfinite(wide)].astype(float) == 0)).all()
    same_bits(
        lookup("chlo.next_after").evaluate(np.array([1, NAN], t.np), np.array([NAN, 1], t.np)),
        np.array([NAN, NAN], t.np),
    )  # type: ignore[misc]


def test_broadcast_ops_equal_their_expansion() -> None:
    for kind in (lookup("chlo.broadcast_add"), lookup("chlo.broadcast_compare"), lookup("chlo.broadcast_select"),
                 lookup("chlo.broadcast_complex"), lookup("chlo.broadcast_shift_left")):  # fmt: skip
        for types, attrs in kind.examples:
            op = made(kind, types, attrs)
            xs = [np.resize(edges(x.dtype), x.shape) if x.size else np.zeros(x.shape, x.dtype.np) for x in types]
            assert kind.expand is not None
            assert kind.evaluate is not None
            expanded = kind.expand(*op.operands, **op.attrs.own())
            from hilo.ir.module import topological

            body = Function("f", op.operands, topological([expanded], op.operands), [expanded])
            same_bits(np.asarray(interpret(body, xs)[0]), kind.evaluate(*xs, **op.attrs.own()), what=kind)


def test_broadcasting_along_named_axes() -> None:
    x, y = np.arange(2, dtype=np.int32), np.arange(6, dtype=np.int32).reshape(2, 3)
    kind = lookup("chlo.broadcast_add")
    assert kind.evaluate is not None
    assert kind.evaluate(x, y, broadcast_dimensions=(0,)).tolist() == [[0, 1, 2], [4, 5, 6]]
    assert (
        kind.evaluate(y, np.int32(1)[()] * np.ones((), np.int32), broadcast_dimensions=None).tolist()
        == (y + 1).tolist()
    )
    assert made(
        kind, [TensorType(from_numpy(a.dtype), a.shape) for a in (x, y)], {"broadcast_dimensions": (0,)}
    ).shape == (2, 3)
