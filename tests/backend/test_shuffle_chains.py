"""Chains of shuffles: LLVM is kept from looking through them, with the same values on every target."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from backend_runs import usable

from hilo.backend import cpu, jit, llvm
from hilo.backend.target import Target
from hilo.loop.builder import PTR, Builder, Func, VType

SCALARS = {"f32": np.float32, "f64": np.float64, "i32": np.int32}


def chain(t: VType, masks: list[list[int]]) -> Func:
    """Two vectors in memory, shuffled again and again: v, w = w, shuffle(v, w)."""
    func = Func("chain", [("source", PTR), ("result", PTR)])
    b = Builder(func)
    v, w = (b.load(b.gep(func.params[0], i * t.lanes * t.size), t) for i in (0, 1))
    for mask in masks:
        v, w = w, b.shuffle(v, w, mask)
    b.store(func.params[1], w)
    b.ret()
    return func


@pytest.mark.parametrize("scalar", SCALARS)
@pytest.mark.parametrize("lanes", [2, 4, 16, 32])
@pytest.mark.parametrize("target", usable(), ids=lambda t: t.name)
def test_values(target: Target, lanes: int, scalar: str) -> None:
    rng = np.random.default_rng(lanes)
    masks = [rng.integers(0, 2 * lanes, lanes).tolist() for _ in range(7)]
    data = rng.integers(-1000, 1000, 2 * lanes).astype(SCALARS[scalar])
    text = llvm.emit([chain(VType(scalar, lanes), masks)], target)
    whole = scalar != "i32" and lanes * data.itemsize <= target.vector_bytes
    assert text.count("= call") == (4 if whole else 0)  # behind all but the first, the fourth and the last
    code = jit.load([cpu.compile(text, target)], ["chain"])
    out = np.zeros(lanes, data.dtype)
    code.function("chain", ctypes.c_void_p, ctypes.c_void_p)(data.ctypes.data, out.ctypes.data)
    v, w = data[:lanes], data[lanes:]
    for mask in masks:
        v, w = w, np.concatenate([v, w])[mask]
    np.testing.assert_array_equal(out, w)

