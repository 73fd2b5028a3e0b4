"""slice, dynamic_slice, dynamic_update_slice, concatenate, pad: semantics, elements, constraints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_runs import both_ways, numbers, op_with, refuses

from hilo.ir.dtypes import f32, f64, i8, i32, i64
from hilo.ir.types import UNKNOWN, TensorType
from hilo.ops.concat_pad import concatenate, pad
from hilo.ops.slicing import dynamic_slice, dynamic_update_slice, slice_

X = TensorType(f32, (4, 6))
I = TensorType(i32)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_slice_is_numpys(data):
    x = numbers(data.draw(st.lists(st.integers(0, 6), max_size=3)))
    ranges = [sorted((data.draw(st.integers(0, n)), data.draw(st.integers(0, n)))) for n in x.shape]
    strides = tuple(data.draw(st.integers(1, 3)) for _ in x.shape)
    starts, limits = tuple(a for a, _ in ranges), tuple(b for _, b in ranges)
    got = both_ways(slice_, x, start_indices=starts, limit_indices=limits, strides=strides)
    np.testing.assert_array_equal(got, x[tuple(map(slice, starts, limits, strides))])


def test_slice_constraints():
    refuses("C2", slice_, [X], start_indices=(0,), limit_indices=(1, 1), strides=(1, 1))
    refuses("C3", slice_, [X], start_indices=(-1, 0), limit_indices=(1, 1), strides=(1, 1))
    refuses("C3", slice_, [X], start_indices=(2, 0), limit_indices=(1, 1), strides=(1, 1))
    refuses("C3", slice_, [X], start_indices=(0, 0), limit_indices=(1, 7), strides=(1, 1))
    refuses("C4", slice_, [X], start_indices=(0, 0), limit_indices=(1, 1), strides=(1, 0))


STARTS = [
    (np.int32(1), np.int32(2)),
    (np.int32(-5), np.int32(99)),
    (np.int32(2**31 - 1), np.int32(-(2**31))),
    (np.int64(2**63 - 1), np.int64(-(2**63))),
    (np.uint64(2**64 - 1), np.uint64(1)),
    (np.uint8(255), np.uint8(0)),
    (np.int8(127), np.int8(-128)),
    (np.uint32(2**32 - 1), np.uint32(3)),
    (np.int16(1), np.int16(1)),
]


def clamped(start, size: int, n: int) -> int:
    return min(max(int(start), 0), n - size)


@pytest.mark.parametrize("starts", STARTS, ids=str)
def test_dynamic_slice_moves_its_start_inside(starts):
    x = numbers((5, 300))
    a, b = (clamped(s, m, n) for s, m, n in zip(starts, (2, 3), x.shape, strict=True))
    got = both_ways(dynamic_slice, x, *map(np.asarray, starts), slice_sizes=(2, 3))
    np.testing.assert_array_equal(got, x[a : a + 2, b : b + 3])


@pytest.mark.parametrize("starts", STARTS, ids=str)
def test_dynamic_update_slice_moves_its_start_inside(starts):
    x, u = numbers((5, 30)), numbers((2, 3), seed=1)
    a, b = (clamped(s, m, n) for s, m, n in zip(starts, (2, 3), x.shape, strict=True))
    want = x.copy()
    want[a : a + 2, b : b + 3] = u
    np.testing.assert_array_equal(both_ways(dynamic_update_slice, x, u, *map(np.asarray, starts)), want)


def test_dynamic_slices_of_nothing_and_of_everything():
    x, zero = numbers((5,)), np.asarray(np.int32(9))
    assert both_ways(dynamic_slice, x, zero, slice_sizes=(0,)).size == 0
    np.testing.assert_array_equal(both_ways(dynamic_slice, x, zero, slice_sizes=(5,)), x)
    np.testing.assert_array_equal(both_ways(dynamic_update_slice, x, numbers((0,)), zero), x)
    assert both_ways(dynamic_update_slice, np.float32(1), np.float32(2)) == 2


def test_dynamic_slice_constraints():
    refuses("C2", dynamic_slice, [X, I], slice_sizes=(1, 1))
    refuses("C2", dynamic_slice, [X, I, I], slice_sizes=(1,))
    refuses("C3", dynamic_slice, [X, I, TensorType(i64)], slice_sizes=(1, 1))
    refuses("C3", dynamic_slice, [X, I, TensorType(f32)], slice_sizes=(1, 1))
    refuses("C4", dynamic_slice, [X, I, I], slice_sizes=(5, 1))
    refuses("C4", dynamic_slice, [X, I, I], slice_sizes=(-1, 1))


def test_dynamic_update_slice_constraints():
    u = TensorType(f32, (2, 2))
    refuses("C2", dynamic_update_slice, [X, TensorType(f64, (2, 2)), I, I])
    refuses("C3", dynamic_update_slice, [X, TensorType(f32, (2,)), I, I])
    refuses("C4", dynamic_update_slice, [X, u, I])
    refuses("C5", dynamic_update_slice, [X, u, I, TensorType(i8)])
    refuses("C6", dynamic_update_slice, [X, TensorType(f32, (5, 2)), I, I])


@pytest.mark.parametrize(
    ("sizes", "dimension"), [((2,), 0), ((2, 3, 1), 1), ((0, 2, 0, 5), 0), ((0, 0), 2), ((1,) * 9, 1)]
)
def test_concatenate(sizes, dimension):
    xs = [numbers([n if d == dimension else 3 for d in range(3)], np.complex64, k) for k, n in enumerate(sizes)]
    np.testing.assert_array_equal(both_ways(concatenate, *xs, dimension=dimension), np.concatenate(xs, dimension))


def test_concatenate_constraints():
    refuses("C1", concatenate, [X, TensorType(f64, (4, 6))], dimension=0)
    refuses("C2", concatenate, [X, TensorType(f32, (4, 5))], dimension=0)
    refuses("C2", concatenate, [X, TensorType(f32, (4,))], dimension=0)
    refuses("C3", concatenate, [], dimension=0)
    refuses("C4", concatenate, [X], dimension=2)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_pad_is_the_formula(data):
    x = numbers(data.draw(st.lists(st.integers(0, 4), max_size=2)))
    low, high, inner = [], [], []
    for n in x.shape:
        i = data.draw(st.integers(0, 2))
        spread = n + max(n - 1, 0) * i
        l = data.draw(st.integers(-3, 3))
        low.append(l)
        high.append(data.draw(st.integers(max(-3, -spread - l), 3)) if spread + l >= -3 else -spread - l)
        inner.append(i)
    value = np.float32(-7)
    attrs = {"edge_padding_low": tuple(low), "edge_padding_high": tuple(high), "interior_padding": tuple(inner)}
    got = both_ways(pad, x, value, **attrs)
    want = np.full(got.shape, value)
    for at in np.ndindex(*x.shape):
        to = tuple(l + a * (i + 1) for a, l, i in zip(at, low, inner, strict=True))
        if all(0 <= t < n for t, n in zip(to, got.shape, strict=True)):
            want[to] = x[at]
    np.testing.assert_array_equal(got, want)


def test_pad_constraints():
    def padding(low, high, inner):
        return {"edge_padding_low": low, "edge_padding_high": high, "interior_padding": inner}

    x, v = TensorType(f32, (3,)), TensorType(f32)
    refuses("C1", pad, [x, TensorType(i32)], **padding((0,), (0,), (0,)))
    refuses("C1", pad, [x, x], **padding((0,), (0,), (0,)))
    refuses("C2", pad, [x, v], **padding((0, 0), (0,), (0,)))
    refuses("C3", pad, [x, v], **padding((0,), (0,), (-1,)))
    refuses("C4", pad, [x, v], **padding((-2,), (-2,), (0,)))


def test_symbolic_dims():
    x = TensorType(f32, (UNKNOWN, 6))
    assert op_with(slice_, x, start_indices=(0, 0), limit_indices=(2, 3), strides=(1, 1)).shape == (2, 3)
    assert op_with(concatenate, x, X, dimension=1).shape == (4, 12)
    assert not op_with(concatenate, x, X, dimension=0).tensor.is_static
