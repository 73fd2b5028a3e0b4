"""sort and top_k against Python's stable sort; one refusal per constraint."""

from __future__ import annotations

from functools import cmp_to_key
from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op

from hilo.ir.dtypes import c64, f32, f64, i1, i32, u8
from hilo.ir.module import Function, region
from hilo.ir.op import Array
from hilo.ir.types import UNKNOWN, Results, TensorType
from hilo.ops.checks import scalars
from hilo.ops.compare import compare, select
from hilo.ops.constant import constant
from hilo.ops.elementwise_bits import xor
from hilo.ops.shape import reshape
from hilo.ops.sort import sort, top_k

S = TensorType(f32)


def by(direction: str, *dtypes, key: int = 0) -> Function:
    return region(
        scalars(d for d in dtypes for _ in range(2)),
        lambda *e: compare(e[2 * key], e[2 * key + 1], comparison_direction=direction),
    )


@pytest.mark.parametrize("seed", range(20))
def test_rows_sorted_one_by_one(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = tuple(int(v) for v in rng.integers(0 if seed % 5 == 0 else 1, 12, rank))
    d = int(rng.integers(-rank, rank))
    x, tag = rng.integers(0, 4, shape).astype(np.int32), rng.integers(0, 200, shape).astype(np.uint8)
    direction = ["LT", "GT"][seed % 2]
    a, b = run_op(sort, x, tag, dimension=d, comparator=by(direction, i32, u8))
    xs, tags, got, other = (np.moveaxis(v, d, -1) for v in (x, tag, a, b))
    for at in np.ndindex(*xs.shape[:-1]):
        order = sorted(range(xs.shape[-1]), key=lambda i, at=at: xs[at][i] if direction == "LT" else -xs[at][i])
        assert got[at].tolist() == [xs[at][i] for i in order]
        assert other[at].tolist() == [tags[at][i] for i in order]


def test_a_comparator_of_two_keys():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, 50).astype(np.int32), rng.integers(0, 3, 50).astype(np.int32)

    def lexicographic(a, b, c, d):
        first, same = compare(a, b, comparison_direction="LT"), compare(a, b, comparison_direction="EQ")
        return select(same, compare(c, d, comparison_direction="GT"), first)

    got = run_op(sort, x, y, comparator=region(scalars([i32] * 4), lexicographic))
    want = sorted(zip(x.tolist(), y.tolist()), key=lambda p: (p[0], -p[1]))
    assert list(zip(got[0].tolist(), got[1].tolist())) == want


@pytest.mark.parametrize("make", [
    lambda a, b: constant(value=Array(np.asarray(True))),
    lambda a, b: compare(a, b, comparison_direction="NE"),
    lambda a, b: xor(compare(a, b, comparison_direction="LE"), compare(a, b, comparison_direction="EQ")),
])  # fmt: skip
def test_any_comparator_gives_a_permutation(make):
    x = np.array([3, 1, np.nan, 2, np.nan, 1, 0, -0.0, 7, np.inf] * 4, np.float32)
    got = run_op(sort, x, comparator=region([S, S], make))
    assert sorted(got.view(np.int32).tolist()) == sorted(x.view(np.int32).tolist())


def test_a_region_that_is_not_elementwise():
    e = TensorType(f64)
    one = TensorType(f64, (1,))

    def less(a, b):
        c = compare(reshape(a, type=one), reshape(b, type=one), comparison_direction="LT")
        return reshape(c, type=TensorType(i1))

    x = np.random.default_rng(0).normal(size=(2, 9))
    np.testing.assert_array_equal(run_op(sort, x, comparator=region([e, e], less)), np.sort(x, axis=-1))


def test_captures():
    x = np.array([5, 1, 4, 2], np.float32)
    less = region([S] * 3, lambda a, b, c: compare(a, c, comparison_direction="LT"))
    got = run_op(sort, x, np.asarray(3, np.float32), comparator=less)
    want = sorted(x.tolist(), key=cmp_to_key(lambda a, b: (b < 3) - (a < 3)))
    assert set(got[:2].tolist()) == set(want[:2])


X = TensorType(f32, (4, 5))
BAD: list[tuple[str, Any, dict[str, Any]]] = [
    ("C1", (), {}),
    ("C3", (X, TensorType(f32, (4, 4))), {"comparator": by("LT", f32, f32)}),
    ("C4", (X,), {"dimension": 2}),
    ("C4", (X,), {"dimension": -3}),
    ("C4", (S,), {"dimension": 0}),
    ("C5", (X,), {"comparator": by("LT", f64)}),
    ("C5", (X,), {"comparator": region([S, S], lambda a, b: a)}),
    ("C5", (X,), {"comparator": region([S], lambda a: compare(a, a, comparison_direction="LT"))}),
]


@pytest.mark.parametrize(("rule", "types", "attrs"), BAD)
def test_refusals(rule, types, attrs):
    refuses(rule, sort, types, **{"comparator": by("LT", f32), **attrs})


# ---- top_k
def test_top_k_is_in_total_order():
    x = np.array([[1, np.nan, -0.0, 0.0, 5, 5, -np.inf, -np.nan]], np.float32)
    values, where = run_op(top_k, x, k=8)
    assert where.tolist() == [[1, 4, 5, 0, 3, 2, 6, 7]]
    np.testing.assert_array_equal(values, x[:, where[0]])


@pytest.mark.parametrize("k", [0, 1, 7, 40])
def test_top_k_of_integers(k):
    x = np.random.default_rng(k).integers(0, 9, (3, 40)).astype(np.uint8)
    values, where = run_op(top_k, x, k=k)
    order = np.argsort(-x.astype(np.int64), axis=-1, kind="stable")[:, :k]
    np.testing.assert_array_equal(where, order)
    np.testing.assert_array_equal(values, np.take_along_axis(x, order, -1))


def test_top_k_of_unknown_sizes():
    t = top_k.infer(TensorType(f32, (UNKNOWN, UNKNOWN)), k=3, is_stable=False)
    assert isinstance(t, Results)
    assert [str(r) for r in t] == ["f32[?,3]", "i32[?,3]"]


@pytest.mark.parametrize(
    ("rule", "t", "k"), [("C1", S, 0), ("C2", X, -1), ("C3", X, 6), ("I1", TensorType(c64, (3,)), 1)]
)
def test_refused_top_k(rule, t, k):
    refuses(rule, top_k, (t,), k=k)
