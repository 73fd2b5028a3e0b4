"""Older ops against numpy, interpreted and compiled; one refusal per constraint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op, type_of

import hilo
from hilo.ir.dtypes import bf16, f16, f32, f64, i1, i32, i64, u8
from hilo.ir.module import Module, region
from hilo.ir.types import TensorType
from hilo.ops.older import broadcast, einsum, rng, torch_index_select, unary_einsum


def both(kind: Any, *arrays: np.ndarray, **attrs: Any) -> list[np.ndarray]:
    m = Module({"main": region([type_of(x) for x in arrays], lambda *xs: kind(*xs, **attrs), "main")})
    return [run_op(kind, *arrays, **attrs), np.asarray(hilo.compile(m)(*arrays)[0])]


def whole(shape: Any, seed: int = 0, dtype: Any = np.int32) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 9, shape).astype(dtype)


@pytest.mark.parametrize(("config", "a", "b"), [
    ("ab,bc->ac", (2, 3), (3, 4)), ("abc,acd->abd", (2, 3, 4), (2, 4, 5)), ("ab,cd->dbca", (2, 3), (4, 5)),
    ("abc,cb->", (2, 3, 4), (4, 3)), ("ab,c->a", (2, 3), (4,)), ("a,a->a", (5,), (5,)), ("ab, b -> ba", (2, 3), (3,)),
    (",a->a", (), (3,)), ("ab,bc->ac", (2, 0), (0, 3)),
])  # fmt: skip
def test_einsum(config, a, b):
    x, y = whole(a), whole(b, 1)
    for got in both(einsum, x, y, einsum_config=config):
        np.testing.assert_array_equal(got, np.einsum(config, x, y))


@pytest.mark.parametrize("config", ["abc->b", "abc->cab", "abc->", "abc->abc"])
def test_unary_einsum(config):
    x = whole((2, 3, 4))
    for got in both(unary_einsum, x, einsum_config=config):
        np.testing.assert_array_equal(got, np.einsum(config, x))


@pytest.mark.parametrize(("shape", "index", "dim", "batch"), [
    ((5, 3), (4,), 0, 0), ((2, 5, 3), (2, 4), 1, 1), ((2, 5, 3), (2, 2), 2, 0), ((2, 2, 5), (2, 2, 3), 2, 2),
    ((4,), (), 0, 0), ((3, 4), (0,), 1, 0),
])  # fmt: skip
def test_index_select(shape, index, dim, batch):
    x, at = whole(shape), np.random.default_rng(1).integers(-2, 8, index).astype(np.int64)
    inside = np.clip(at, 0, shape[dim] - 1)
    want = np.empty((*shape[:dim], *index[batch:], *shape[dim + 1 :]), x.dtype)
    for b in np.ndindex(*shape[:batch]):
        want[b] = np.take(x[b], inside[b], axis=dim - batch)
    for got in both(torch_index_select, x, at, dim=dim, batch_dims=batch):
        np.testing.assert_array_equal(got, want)


def test_broadcast():
    x = whole((2, 3))
    for got in both(broadcast, x, broadcast_sizes=(4, 1)):
        np.testing.assert_array_equal(got, np.broadcast_to(x, (4, 1, 2, 3)))


@pytest.mark.parametrize("d", [f32, f64, f16, bf16], ids=str)
def test_numbers_are_spread_as_they_should(d):
    n = 20000
    t = TensorType(d, (n,))
    a, b = np.asarray(-1, d.np), np.asarray(3, d.np)
    for got in both(rng, a, b, np.array([n]), rng_distribution="UNIFORM", type=t):
        x = got.astype(np.float64)
        assert x.min() >= -1
        assert x.max() <= 3 if d.bits == 16 else x.max() < 3
        counts = np.histogram(x, 16, (-1, 3))[0]
        assert abs(counts - n / 16).max() < 6 * np.sqrt(n / 16)
    for got in both(rng, a, b, np.array([n]), rng_distribution="NORMAL", type=t):
        x = (got.astype(np.float64) + 1) / 3
        assert np.isfinite(x).all()
        assert abs(x.mean()) < 0.04
        assert abs(x.std() - 1) < 0.04
        assert abs((x**4).mean() - 3) < 0.3


def test_whole_numbers_are_below_the_limit():
    for got in both(rng, np.asarray(-3, np.int32), np.asarray(4, np.int32), np.array([700]), rng_distribution="UNIFORM",
                    type=TensorType(i32, (700,))):  # fmt: skip
        assert set(got.tolist()) == set(range(-3, 4))
    for got in both(rng, np.asarray(5, np.uint8), np.asarray(5, np.uint8), np.array([7]), rng_distribution="UNIFORM",
                    type=TensorType(u8, (7,))):  # fmt: skip
        assert got.tolist() == [5] * 7


S, V, X = TensorType(f32), TensorType(i64, (1,)), TensorType(f32, (4, 3))
R = {"rng_distribution": "UNIFORM", "type": TensorType(f32, (3,))}
BAD: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = [
    ("C1", broadcast, (X,), {"broadcast_sizes": (-1,)}),
    *((rule, einsum, (X, X), {"einsum_config": c}) for rule, c in (
        ("C1", "ab->ab"), ("C1", "ab,ab"), ("C1", "a1,ab->b"), ("C2", "abc,ab->a"), ("C3", "aa,ab->b"),
        ("C4", "ab,ba->a"),
        ("C5", "ab,ab->c"), ("C5", "ab,ab->aa"))),
    ("C6", einsum, (X, TensorType(f64, (4, 3))), {"einsum_config": "ab,ab->a"}),
    ("C2", unary_einsum, (X,), {"einsum_config": "a->a"}),
    ("I2", torch_index_select, (X, X), {"dim": 0}),
    ("C1", torch_index_select, (X, V), {"dim": 2}),
    ("C2", torch_index_select, (X, V), {"dim": 0, "batch_dims": 1}),
    ("C3", torch_index_select, (X, V), {"dim": 1, "batch_dims": 1}),
    ("I1", rng, (X, S, V), R),
    ("C1", rng, (S, TensorType(f64), V), R),
    ("C1", rng, (S, S, V), {**R, "type": TensorType(f64, (3,))}),
    ("C2", rng, (TensorType(i1), TensorType(i1), V), {"rng_distribution": "NORMAL", "type": TensorType(i1, (3,))}),
    ("C3", rng, (S, S, TensorType(i64, (2,))), R),
    ("I4", rng, (S, S, V), {**R, "rng_distribution": "POISSON"}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "kind", "types", "attrs"), BAD)
def test_refusals(rule, kind, types, attrs):
    refuses(rule, kind, types, **attrs)
