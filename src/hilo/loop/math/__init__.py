"""Transcendental functions as loop IR, for any number of lanes: one function per op, `name(b, x: Elem, ...) -> Elem`.

They are built of the loop IR's own arithmetic (no library is called, no table is read but for huge arguments of sin and
cos), are within 2 units in the last place in f32 and f64 (lgamma and digamma: see gamma.py), and follow IEEE 754 for
zeros, infinities, NaN and subnormal numbers. Narrower floats are computed in f32 and rounded once, complex numbers in
f64.

exps.py, logs.py, trig.py, roots.py, powers.py, error.py, inverse.py, gamma.py and series.py hold the real functions, on
nodes; complexes.py and complex_angle.py the complex ones; tables.py (made by tools/fit_math.py) the polynomials.
Each is loaded when a program has a function of it. A kernel that has written a function out often enough calls it from
there on (loop/helpers.py). Imports loop, ir.dtypes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from hilo.loop.builder import Builder, Node
from hilo.loop.element import Elem
from hilo.loop.helpers import sparing

ElemFn = Callable[..., Elem]


def _function(real: str, cplx: str = "") -> ElemFn:
    """The op on elements of any float type, from its real version on nodes and its complex one on elements ("file.name"
    of each)."""

    def apply(b: Builder, *xs: Elem) -> Elem:
        x = xs[0]
        if x.dtype.is_complex:
            assert cplx, f"{real} has no complex version"

            def parts(b: Builder, *nodes: Node) -> tuple[Node, Node]:
                elems = [Elem(x.dtype, re, im) for re, im in zip(nodes[::2], nodes[1::2], strict=True)]
                e = _version(cplx)(b, *elems)
                assert e.im is not None
                return e.re, e.im

            both = [n for e in xs for n in (e.re, e.im) if n is not None]
            return Elem(x.dtype, *sparing(b, cplx, parts, both, 2))
        nodes = [e.re for e in xs]
        if x.dtype.name == "f8E8M0FNU":  # has all of f32's range, but no zero to underflow to
            nodes = [b.convert("fpext", n, "f64") for n in nodes]
        (r,) = sparing(b, real, lambda b, *nodes: (_version(real)(b, *nodes),), nodes)
        if x.dtype.bits < 32:
            from hilo.loop.arith.rounding import round_result

            r = round_result(b, r, x.dtype)
        return Elem(x.dtype, r)

    apply.__name__ = apply.__qualname__ = real.partition(".")[2]
    return apply


@cache
def _version(place: str) -> Callable[..., Any]:
    file, _, name = place.partition(".")
    return getattr(import_module(f"hilo.loop.math.{file}"), name)


exponential = _function("exps.exp", "complexes.exp")
exponential_minus_one = _function("exps.expm1", "complexes.expm1")
logistic = _function("exps.logistic", "complexes.logistic")
tanh = _function("exps.tanh", "complexes.tanh")
log = _function("logs.log", "complexes.log")
log_plus_one = _function("logs.log1p", "complexes.log1p")
sine = _function("trig.sin", "complexes.sin")
cosine = _function("trig.cos", "complexes.cos")
tan = _function("trig.tan", "complexes.tan")
sqrt = _function("roots.sqrt", "complexes.sqrt")
rsqrt = _function("roots.rsqrt", "complexes.rsqrt")
cbrt = _function("roots.cbrt", "complexes.cbrt")
power = _function("powers.power", "complexes.power")
atan2 = _function("inverse.atan2", "complex_angle.atan2")
erf = _function("error.erf")
erfc = _function("error.erfc")
erf_inv = _function("error.erf_inv")
sinh = _function("inverse.sinh", "complexes.sinh")
cosh = _function("inverse.cosh", "complexes.cosh")
asin = _function("inverse.asin", "complexes.asin")
acos = _function("inverse.acos", "complexes.acos")
atan = _function("inverse.atan", "complexes.atan")
asinh = _function("inverse.asinh", "complexes.asinh")
acosh = _function("inverse.acosh", "complexes.acosh")
atanh = _function("inverse.atanh", "complexes.atanh")
lgamma = _function("gamma.lgamma")
digamma = _function("gamma.digamma")
polygamma = _function("series.polygamma")
zeta = _function("series.zeta")
bessel_i1e = _function("series.bessel_i1e")
