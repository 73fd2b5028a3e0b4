"""All lanes of a vector combined into one, by every operation, on every target, in the interpreter and by numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from backend_runs import compile_llvm, usable

from hilo.backend.target import Target
from hilo.loop.builder import PTR, Builder, Func, VType
from hilo.loop.interpret import run

ROUNDS = 8  # vectors of each function
FLOATS = {"f32": np.float32, "f64": np.float64}
INTS = {"i16": np.int16, "i32": np.int32, "i64": np.int64}
HOWS: dict[str, Callable[[Any, Any], Any]] = {
    "fadd": np.add,
    "fmul": np.multiply,
    "add": np.add,
    "mul": np.multiply,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "smax": np.maximum,
    "smin": np.minimum,
    "umax": lambda x, y: np.where(x.astype(f"u{x.itemsize}") > y.astype(f"u{x.itemsize}"), x, y),
    "umin": lambda x, y: np.where(x.astype(f"u{x.itemsize}") < y.astype(f"u{x.itemsize}"), x, y),
}
CASES = [(how, scalar, lanes) for how in HOWS for scalar in (FLOATS if how[0] == "f" else INTS)
         for lanes in (1, 2, 4, 8, 16, 32)]  # fmt: skip


def function(how: str, scalar: str, lanes: int) -> Func:
    """Stores the lanes, combined, of each of ROUNDS vectors."""
    f = Func(f"{how}_{scalar}_{lanes}", [("x", PTR), ("y", PTR)])
    b, t = Builder(f), VType(scalar, lanes)
    for i in range(ROUNDS):
        v = b.load(b.gep(f.params[0], i * lanes * t.size), t)
        b.store(b.gep(f.params[1], i * t.size), b.across(how, v))
    b.ret()
    return f


def data(how: str, scalar: str, lanes: int) -> np.ndarray:
    """Values whose sums are rounded, with zeros of both signs and whole rows of them."""
    rng = np.random.default_rng(lanes)
    if scalar in FLOATS:
        x = rng.standard_normal((ROUNDS, lanes)) * (1 if how == "fmul" else 1e6 ** rng.standard_normal((ROUNDS, lanes)))
        x[:2] = -0.0
        x[1, -1] = 0.0
        x[2, 0] = np.inf
        x[3, -1] = np.nan
        return x.astype(FLOATS[scalar])
    info = np.iinfo(INTS[scalar])
    return rng.integers(info.min, info.max, (ROUNDS, lanes), INTS[scalar], endpoint=True)


@pytest.mark.parametrize("target", usable(), ids=lambda t: t.name)
def test_lanes_are_combined_halves_with_halves(target: Target) -> None:
    functions = {case: function(*case) for case in CASES}
    get = compile_llvm(list(functions.values()), target)
    for case, f in functions.items():
        x = data(*case)
        want = x
        with np.errstate(all="ignore"):
            while want.shape[1] > 1:
                n = want.shape[1] // 2
                want = HOWS[case[0]](want[:, :n], want[:, n:])
        got = np.empty(ROUNDS, x.dtype)
        get(f.name)(x.ctypes.data, got.ctypes.data)
        np.testing.assert_array_equal(bits(got), bits(want[:, 0]), err_msg=f"{case} on {target.name}")
        run(f, x.reshape(-1), got)
        np.testing.assert_array_equal(bits(got), bits(want[:, 0]), err_msg=f"{case} interpreted")


def bits(x: np.ndarray) -> np.ndarray:
    """The bits of each number; one NaN is as good as another."""
    return np.where(x == x, x.view(f"i{x.itemsize}"), -1)
