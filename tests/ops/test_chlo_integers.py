"""mulhi against Python's integers; chlo.dynamic_reshape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op, type_of

import hilo
from hilo.ir.dtypes import f32, i32, u32
from hilo.ir.module import Module, region
from hilo.ir.types import TensorType
from hilo.ops.chlo_integers import chlo_dynamic_reshape, mulhi


def both(kind: Any, *arrays: np.ndarray, **attrs: Any) -> list[np.ndarray]:
    m = Module({"main": region([type_of(x) for x in arrays], lambda *xs: kind(*xs, **attrs), "main")})
    return [run_op(kind, *arrays, **attrs), np.asarray(hilo.compile(m)(*arrays)[0])]


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"])
def test_upper_halves(dtype):
    info = np.iinfo(dtype)
    edges = [info.min, info.min + 1, -1 if info.min else 2, 0, 1, 3, info.max - 1, info.max]
    rng = np.random.default_rng(0)
    more = rng.integers(info.min, info.max, 40, dtype=dtype, endpoint=True).tolist()
    pairs = [(a, b) for a in edges for b in edges] + list(zip(more[::2], more[1::2]))
    x, y = (np.array([p[k] for p in pairs], dtype) for k in (0, 1))
    want = [(a * b) >> info.bits for a, b in pairs]
    for got in both(mulhi, x, y):
        assert got.tolist() == want


def test_dynamic_reshape():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for got in both(chlo_dynamic_reshape, x, np.array([6]), type=TensorType(f32, (6,))):
        np.testing.assert_array_equal(got, x.reshape(6))


@pytest.mark.parametrize(("rule", "kind", "types", "attrs"), [
    ("C1", mulhi, (TensorType(i32), TensorType(u32)), {}),
    ("I1", mulhi, (TensorType(f32), TensorType(f32)), {}),
    ("C2", chlo_dynamic_reshape, (TensorType(f32, (2,)), TensorType(i32, (1,))), {"type": TensorType(f32, (3,))}),
])  # fmt: skip
def test_refusals(rule, kind, types, attrs):
    refuses(rule, kind, types, **attrs)
