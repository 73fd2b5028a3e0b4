"""Programs with run-time sizes and no expected results: native code against the interpreter, at two sizes.

A program is read, written and read again, and compiled once for all sizes. Imports the public face, lazily.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.formats import mlir_text
from hilo.ir.module import Module
from hilo.ir.types import TensorType, has_unknown_sizes
from hilo.testing import compare
from hilo.testing.runners import Runner

SIZES: Final = (5, 3)
ULPS: Final = 4
SLACK: Final = 1e-5  # of the largest magnitude: how sums are grouped is open


def is_dynamic(module: Module) -> bool:
    """Whether the module has run-time sizes in `main`."""
    return "main" in module.functions and has_unknown_sizes(module["main"])


def outcomes(module: Module, ways: Iterable[Runner]) -> dict[str, tuple[str, str]]:
    """By runner: ("pass", ""), ("fail", why) or ("skip", why)."""
    import hilo

    try:
        text = mlir_text.print_module(module)
        if mlir_text.print_module(mlir_text.parse(text)) != text:
            return {w.name: ("fail", "it reads back as another program") for w in ways}
        calls = examples(module)
        want = [hilo.interpret(module, *args) for args in calls]
    except Error as e:
        return {w.name: ("fail", str(e)) for w in ways}
    found = {}
    for way in ways:
        if way.name == "interpreter":
            found[way.name] = ("pass", "")
        elif way.constants:
            found[way.name] = ("skip", "constants: sizes are those of arguments")
        else:
            found[way.name] = _native(module, calls, want, threads=2 if "threads" in way.name else None)
    return found


def examples(module: Module) -> list[list[np.ndarray]]:
    """Arguments at each of `SIZES`."""
    from hilo.passes.example_sizes import example_sizes
    from hilo.passes.inline import inline

    rng = np.random.default_rng(0)
    f = inline(module, "main")
    return [[_random(t, rng) if value is None else value for t, value in example_sizes(f, n, module)] for n in SIZES]


def _random(t: TensorType, rng: np.random.Generator) -> np.ndarray:
    kind, dtype = t.dtype.kind, t.dtype.np
    if kind in "biu":
        return rng.integers(0, 2 if kind == "b" else 5, t.shape).astype(dtype)
    x = rng.standard_normal(t.shape)
    return np.asarray(x + 1j * rng.standard_normal(t.shape) if kind == "c" else x).astype(dtype)


def _native(module: Module, calls: list[Any], want: list[Any], threads: int | None) -> tuple[str, str]:
    import hilo

    try:
        f = hilo.compile(module, threads=threads)
        for args, expected in zip(calls, want, strict=True):
            for got, w in zip(f(*args), map(np.asarray, expected), strict=True):
                if got.shape != w.shape or got.dtype != w.dtype:
                    return "fail", f"a result of {got.dtype}{list(got.shape)} instead of {w.dtype}{list(w.shape)}"
                ok = _agree(got, w)
                if not ok.all():
                    return "fail", compare.difference(got, w, ok)
    except Error as e:
        return "fail", str(e)
    except Exception as e:  # a defect of hilo: the report must show it and go on
        return "fail", f"{type(e).__name__}: {e}"
    return "pass", ""


def _agree(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    if want.dtype.kind in "biu":
        return compare.equal(got, want)
    wide = want.astype(np.complex128)
    return compare.close(got, want, ULPS, SLACK * float(np.max(np.abs(wide[np.isfinite(wide)]), initial=0)))
