"""reduce_window and select_and_scatter against loops over windows in Python; one refusal per constraint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op

from hilo.ir.dtypes import bf16, f32, f64, i1, i8, i32
from hilo.ir.module import region
from hilo.ir.types import UNKNOWN, TensorType
from hilo.ops.compare import compare
from hilo.ops.elementwise_arith import add, maximum, subtract
from hilo.ops.reduce import body_of
from hilo.ops.reduce_window import reduce_window, select_and_scatter

S = TensorType(f32)
ADD = body_of(add, f32)


def brute(f, x: np.ndarray, init: Any, size, strides, base, dilation, padding) -> np.ndarray:
    """Window by window on the padded array of (element or None)."""
    spread = [(n - 1) * b + 1 if n else 0 for n, b in zip(x.shape, base)]
    full = [lo + n + hi for n, (lo, hi) in zip(spread, padding)]
    reach = [(w - 1) * d + 1 for w, d in zip(size, dilation)]
    count = [max(0, (n - r) // s + 1) if n > 0 else 0 for n, r, s in zip(full, reach, strides)]
    out = np.full(count, init, object)
    for o in np.ndindex(*count):
        for k in np.ndindex(*size):
            at = [i * s + j * d - p[0] for i, s, j, d, p in zip(o, strides, k, dilation, padding)]
            if all(a % b == 0 and 0 <= a // b < n for a, b, n in zip(at, base, x.shape)):
                out[o] = f(out[o], x[tuple(a // b for a, b in zip(at, base))])
    return out


@pytest.mark.parametrize("seed", range(40))
def test_windows_one_by_one(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(0, 4))
    x = rng.integers(-50, 50, rng.integers(0 if seed % 7 == 0 else 1, 6, rank)).astype(np.int32)
    size, strides, base, dilation = (tuple(int(v) for v in rng.integers(1, 4, rank)) for _ in range(4))
    padding = tuple((int(a), int(b)) for a, b in rng.integers(-2, 5, (rank, 2)))
    f, kind = [(lambda a, b: int(a) + int(b), add), (max, maximum), (lambda a, b: int(a) - int(b), subtract)][seed % 3]
    got = run_op(reduce_window, x, np.int32(7), window_dimensions=size, window_strides=strides, base_dilations=base,
                 window_dilations=dilation, padding=padding, body=body_of(kind, i32))  # fmt: skip
    want = brute(f, x, 7, size, strides, base, dilation, padding)
    np.testing.assert_array_equal(got, want.astype(np.int32))


@pytest.mark.parametrize("padding", [((4, 0),), ((0, 4),)])
def test_running_reductions(padding):
    x = np.arange(1, 6, dtype=np.float64)
    got = run_op(reduce_window, x, np.float64(0.5), window_dimensions=(5,), padding=padding, body=body_of(add, f64))
    want = np.cumsum(x) if padding[0][0] else np.cumsum(x[::-1])[::-1]
    np.testing.assert_array_equal(got, want + 0.5)


def test_narrow_sums_round_once():
    x = np.ones(600, bf16.np)
    got = run_op(reduce_window, x, x[0] * 0, window_dimensions=(600,), body=body_of(add, bf16))
    assert got.astype(np.float64).tolist() == [600.0]
    got = run_op(reduce_window, x, x[0] * 0, window_dimensions=(600,), padding=((599, 0),), body=body_of(add, bf16))
    assert [float(got[-1]), float(got[99])] == [600.0, 100.0]


def test_body_may_promote_and_capture():
    x = np.array([100, 100, 100], np.int8)
    got = run_op(reduce_window, x, np.int8(1), window_dimensions=(2,), body=body_of(add, i32))
    assert got.dtype == np.int32
    assert got.tolist() == [201, 201]
    body = region([TensorType(i8)] * 3, lambda a, b, c: add(a, maximum(b, c)))
    got = run_op(reduce_window, np.array([1, 9, 2], np.int8), np.int8(0), np.int8(5), window_dimensions=(2,), body=body)
    assert got.tolist() == [14, 14]


def test_unknown_sizes_give_unknown_numbers_of_windows():
    t = reduce_window.infer(TensorType(f32, (UNKNOWN, 4)), S, window_dimensions=(2, 1), body=ADD,
                            **reduce_window.attrs)  # fmt: skip
    assert isinstance(t, TensorType)
    assert not t.is_static
    assert t.shape[1] == 4


X = TensorType(f32, (4, 5))
BAD: list[tuple[str, Any, dict[str, Any]]] = [
    ("C1", (X,), {}),
    ("C2", (X, TensorType(f32, (4, 4)), S, S), {"body": region([S] * 4, lambda a, b, c, d: (add(a, c), add(b, d)))}),
    ("C3", (X, TensorType(f64)), {}),
    ("I2", (X, TensorType(f32, (1,))), {}),
    ("C4", (X, S), {"window_dimensions": (1,)}),
    ("C5", (X, S), {"window_dimensions": (0, 1)}),
    ("C6", (X, S), {"window_strides": (1,)}),
    ("C7", (X, S), {"window_strides": (1, 0)}),
    ("C8", (X, S), {"base_dilations": (1, 1, 1)}),
    ("C9", (X, S), {"base_dilations": (-1, 1)}),
    ("C10", (X, S), {"window_dilations": ()}),
    ("C11", (X, S), {"window_dilations": (1, 0)}),
    ("C12", (X, S), {"padding": ((0, 0),)}),
    ("C12", (X, S), {"padding": ((0, 0), (0,))}),
    ("C13", (X, S), {"body": body_of(add, i32)}),
    ("C13", (X, S), {"body": region([S], lambda a: a)}),
]


@pytest.mark.parametrize(("rule", "types", "attrs"), BAD)
def test_refusals(rule, types, attrs):
    refuses(rule, reduce_window, types, **{"window_dimensions": (1, 1), "body": ADD, **attrs})


# ---- select_and_scatter
GE = region([S, S], lambda a, b: compare(a, b, comparison_direction="GE"))


@pytest.mark.parametrize("seed", range(20))
def test_selections_one_by_one(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(0, 3))
    x = rng.integers(-3, 3, rng.integers(1, 7, rank)).astype(np.int32)
    size, strides = (tuple(int(v) for v in rng.integers(1, 4, rank)) for _ in range(2))
    pads = tuple((int(a), int(b)) for a, b in rng.integers(0, 3, (rank, 2)))
    ones = (1,) * rank
    count = brute(max, x, -99, size, strides, ones, ones, pads).shape
    source = rng.integers(-9, 9, count).astype(np.int32)
    e = TensorType(i32)
    got = run_op(
        select_and_scatter, x, source, np.int32(3), window_dimensions=size, window_strides=strides, padding=pads,
        select=region([e, e], lambda a, b: compare(a, b, comparison_direction="GE")), scatter=body_of(subtract, i32),
    )  # fmt: skip
    want = np.full(x.shape, 3, np.int32)
    for o in np.ndindex(*count):
        best = None
        for k in np.ndindex(*size):
            at = tuple(i * s + j - p[0] for i, s, j, p in zip(o, strides, k, pads))
            if all(0 <= a < n for a, n in zip(at, x.shape)) and (best is None or not x[best] >= x[at]):
                best = at
        if best is not None:
            want[best] -= source[o]
    np.testing.assert_array_equal(got, want)


BAD_SELECTIONS: list[tuple[str, Any, dict[str, Any]]] = [
    ("C1", (X, TensorType(f64, (4, 5)), S), {}),
    ("C2", (X, TensorType(f32, (4, 4)), S), {}),
    ("C3", (X, X, TensorType(i32)), {}),
    ("C4", (X, X, S), {"window_dimensions": (1,)}),
    ("C5", (X, X, S), {"window_dimensions": (1, 0)}),
    ("C6", (X, X, S), {"window_strides": (1,)}),
    ("C7", (X, X, S), {"window_strides": (1, -1)}),
    ("C8", (X, X, S), {"padding": ((0, 0), (0, 0), (0, 0))}),
    ("C9", (X, X, S), {"select": ADD}),
    ("C9", (X, X, S), {"select": region([TensorType(i32)] * 2, lambda a, b: compare(a, b, comparison_direction="GE"))}),
    ("C10", (X, X, S), {"scatter": GE}),
    ("C10", (X, X, S), {"scatter": region([S], lambda a: a)}),
    ("I3", (X, X, TensorType(f32, (1,))), {}),
]


@pytest.mark.parametrize(("rule", "types", "attrs"), BAD_SELECTIONS)
def test_refused_selections(rule, types, attrs):
    refuses(rule, select_and_scatter, types, **{"window_dimensions": (1, 1), "select": GE, "scatter": ADD, **attrs})


def test_select_gives_booleans():
    assert GE.result_types == (TensorType(i1),)
