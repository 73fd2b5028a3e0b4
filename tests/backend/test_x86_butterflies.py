"""Passes of Fourier transforms written as assembly do what LLVM makes of the same functions' bodies, bit by bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from backend_runs import compile_llvm, usable

from hilo.backend.target import Target
from hilo.backend.x86_products import assembly, covers
from hilo.kernels.fft_passes import Form, Pass, function
from hilo.loop.butterfly import ROOT
from hilo.loop.nodes import SIZES, Func, VType

TARGETS = [t for t in usable() if t.vector_bytes == 64]
DTYPES = {"f32": np.float32, "f64": np.float64}


def made(target: Target, scalar: str, p: Pass, inverse: bool = False) -> Func:
    lanes = target.vector_bytes // (2 * SIZES[scalar])
    return function(Form(VType(scalar), lanes, inverse, target.has_fma, True), p)


def both(f: Func, target: Target) -> tuple[Any, Any]:
    """`f` as assembly, and by LLVM."""
    assert assembly(f, target) is not None
    plain = Func(f.name, [], f.ret, **{k: v for k, v in f.attrs.items() if k != "product"})
    plain.params, plain.body = f.params, f.body
    return compile_llvm([f], target)(f.name), compile_llvm([plain], target)(f.name)


def aligned(size: int) -> np.ndarray:
    room = np.zeros(size + 64, np.uint8)
    return room[-room.ctypes.data % 64 :][:size]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("scalar", ["f32", "f64"])
@pytest.mark.parametrize("radix", [2, 3, 4, 5, 6, 7, 8, 9, 10, 16])
@pytest.mark.parametrize(("turned", "streams"), [(True, False), (False, False), (False, True)])
@pytest.mark.parametrize("inverse", [False, True])
def test_passes(target, scalar, radix, turned, streams, inverse):
    f = made(target, scalar, Pass(radix, turned, streams, 0, 0, 0, 0, 0, 0), inverse)
    functions = both(f, target)
    rng = np.random.default_rng(radix)
    table = rng.standard_normal(4 * radix * ROOT).astype(DTYPES[scalar])
    source = rng.standard_normal(1 << 15).astype(DTYPES[scalar])
    source[77], source[78], source[5] = -0.0, np.inf, np.nan
    at = source.ctypes.data + (0 if streams else source.itemsize)
    for turns, inner in ((1, 64), (3, 64), (2, 192), (0, 64), (2, 0)):
        left = []
        for run in functions:
            to = aligned(1 << 17)
            run(table.ctypes.data, at, to.ctypes.data, turns, inner, inner, 1024, 64 * 320, 256 if inner == 192 else 64)
            left.append(to.tobytes())
        assert left[0] == left[1], (turns, inner)
        assert (turns == 0 or inner == 0) == (not any(left[0]))


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
def test_what_has_no_code(target):
    assert covers(made(target, "f32", Pass(8, True, False, 0, 0, 0, 0, 0, 0)), target)
    half = Form(VType("f32"), 4, False, True, True)
    assert not covers(function(half, Pass(8, True, False, 0, 0, 0, 0, 0, 0)), target)
    assert not covers(made(target, "f32", Pass(13, True, False, 0, 0, 0, 0, 0, 0)), target)
