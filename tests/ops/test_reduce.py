"""reduce and map against sequential loops and exact sums."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from op_runs import numbers, refuses, run_op

from hilo.ir.dtypes import bf16, c64, f16, f32, f64, from_numpy, i8, i32, i64, u8
from hilo.ir.module import region
from hilo.ir.op import Array
from hilo.ir.types import TensorType
from hilo.ops.compare import compare, select
from hilo.ops.constant import constant
from hilo.ops.elementwise_arith import add, maximum, minimum, multiply, subtract
from hilo.ops.reduce import body_of, map_, reduce
from hilo.ops.regions import sole_op, widened
from hilo.ops.shape import broadcast_in_dim, reshape

S = TensorType(f32)


def fold(f, x: np.ndarray, init, dimensions) -> np.ndarray:
    """The reduction one element after the other, in row-major order, in Python."""
    kept = [d for d in range(x.ndim) if d not in dimensions]
    out = np.full([x.shape[d] for d in kept], init, object)
    for at in np.ndindex(*x.shape):
        to = tuple(at[d] for d in kept)
        out[to] = f(out[to], x[at])
    return out


@pytest.mark.parametrize("dimensions", [(), (0,), (1,), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 4, 5), (1, 7, 1), (2, 0, 3), (0, 0, 2)])
def test_integers_wrap_as_python_integers_modulo(shape, dimensions):
    x = np.random.default_rng(0).integers(-128, 128, shape).astype(np.int8)
    got = run_op(reduce, x, np.int8(100), dimensions=dimensions, body=body_of(add, i8))
    want = fold(lambda a, b: int(a) + int(b), x, 100, dimensions)
    assert (got == np.vectorize(lambda v: (int(v) + 128) % 256 - 128, otypes=[np.int8])(want)).all()
    got = run_op(reduce, x, np.int8(-5), dimensions=dimensions, body=body_of(maximum, i8))
    assert (got == fold(max, x, -5, dimensions).astype(np.int8)).all()


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_sums_are_rounded_once(dtype):
    x = np.random.default_rng(1).normal(size=(50, 300)).astype(dtype)
    t = from_numpy(x.dtype)
    got = run_op(reduce, x, np.asarray(0.25, dtype), dimensions=(1,), body=body_of(add, t))
    exact = np.array([float(sum(map(Fraction, map(float, row))) + Fraction(1, 4)) for row in x])
    if t.bits < 64:
        np.testing.assert_allclose(
            got.astype(np.float64), exact, rtol=2.0 ** {16: -8, 32: -23}[t.bits], atol=1e-6 if t.bits < 32 else 1e-9
        )
    else:
        np.testing.assert_allclose(got, exact, rtol=1e-13)


def test_a_sum_of_ones_does_not_stall():
    for t in (bf16, f16):
        one = np.ones(2048, t.np)
        assert run_op(reduce, one, np.zeros((), t.np), dimensions=(0,), body=body_of(add, t)) == 2048


def test_init_enters_once_and_negative_zero_survives():
    x = np.full((4,), -0.0, np.float32)
    assert np.signbit(run_op(reduce, x, np.float32(-0.0), dimensions=(0,), body=body_of(add, f32)))
    assert not np.signbit(run_op(reduce, x, np.float32(0.0), dimensions=(0,), body=body_of(add, f32)))
    empty = np.zeros((0, 3), np.float32)
    assert (run_op(reduce, empty, np.float32(5), dimensions=(0,), body=body_of(add, f32)) == 5).all()
    assert run_op(reduce, numbers((3,)), np.float32(2), dimensions=(0,), body=body_of(multiply, f32)).shape == ()
    ones = np.ones((9,), np.float32)
    assert run_op(reduce, ones, np.float32(2), dimensions=(0,), body=body_of(multiply, f32)) == 2


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 100])
def test_bodies_that_do_not_commute_combine_in_order(n):
    x = numbers((n, 3), np.int32)
    last = region([TensorType(i32)] * 2, lambda a, b: b)
    first = region([TensorType(i32)] * 2, lambda a, b: a)
    assert (run_op(reduce, x, np.int32(-1), dimensions=(0,), body=last) == x[-1]).all()
    assert (run_op(reduce, x, np.int32(-1), dimensions=(0,), body=first) == -1).all()


def test_argmax_of_two_operands():
    def body(a, i, b, j):
        greater = compare(b, a, comparison_direction="GT")
        return select(greater, b, a), select(greater, j, i)

    x, at = numbers((5, 40)), np.broadcast_to(np.arange(40, dtype=np.int32), (5, 40))
    types = [S, TensorType(i32)] * 2
    best, where = run_op(reduce, x, at, np.float32(-np.inf), np.int32(0), dimensions=(1,), body=region(types, body))
    np.testing.assert_array_equal(best, x.max(1))
    np.testing.assert_array_equal(where, x.argmax(1))


def test_a_captured_value_and_a_body_that_cannot_be_widened():
    body = region([S, S, S], lambda a, b, limit: minimum(maximum(a, b), limit))
    x = numbers((4, 6))
    got = run_op(reduce, x, np.float32(-9), np.float32(0.5), dimensions=(1,), body=body)
    np.testing.assert_array_equal(got, np.minimum(x.max(1), np.float32(0.5)))
    one = TensorType(f32, (1,))
    slow = region(
        [S, S],
        lambda a, b: reshape(add(broadcast_in_dim(a, broadcast_dimensions=(), type=one), reshape(b, type=one)), type=S),
    )
    assert widened(slow, (4,)) is None
    np.testing.assert_allclose(run_op(reduce, x, np.float32(1), dimensions=(1,), body=slow), 1 + x.sum(1), rtol=1e-6)


def test_a_wider_accumulator():
    x = np.full((300,), 100, np.int8)
    assert run_op(reduce, x, np.int8(1), dimensions=(0,), body=body_of(add, i32)) == 30001


def test_nan_and_complex():
    x = np.array([1, np.nan, 3], np.float32)
    assert np.isnan(run_op(reduce, x, np.float32(0), dimensions=(0,), body=body_of(maximum, f32)))
    z = numbers((6,), np.complex64)
    np.testing.assert_allclose(
        run_op(reduce, z, np.complex64(1j), dimensions=(0,), body=body_of(add, c64)), z.sum() + 1j, rtol=1e-6
    )


def test_constants_in_the_body_are_widened():
    def body(a, b):
        return add(a, multiply(b, constant(value=Array(np.float32(2)))))

    x = numbers((5,))
    np.testing.assert_allclose(
        run_op(map_, x, np.float32(0) * x, dimensions=(0,), body=region([S, S], body)), x, rtol=0
    )


def test_sole_op():
    assert sole_op(body_of(add, f32)) == "add"
    assert sole_op(region([S, S], lambda a, b: add(b, a))) == "add"
    assert sole_op(region([S, S], lambda a, b: add(a, a))) == ""
    assert sole_op(region([S, S], lambda a, b: a)) == ""
    assert sole_op(region([S, S], lambda a, b: subtract(a, add(a, b)))) == ""


def test_reduce_constraints():
    x, y = TensorType(f32, (2, 3)), TensorType(f32, (2, 4))
    plain = body_of(add, f32)
    two = region([S, S, S, S], lambda a, b, c, d: (a, b))
    refuses("C1", reduce, [x, y, S, S], dimensions=(0,), body=two)
    refuses("C2", reduce, [x, TensorType(f64)], dimensions=(0,), body=plain)
    refuses("I2", reduce, [x, x], dimensions=(0,), body=plain)
    refuses("C3", reduce, [x], dimensions=(0,), body=plain)
    refuses("C4", reduce, [x, S], dimensions=(2,), body=plain)
    refuses("C5", reduce, [x, S], dimensions=(0, 0), body=plain)
    refuses("C6", reduce, [x, S], dimensions=(0,), body=body_of(add, f16))
    refuses("C6", reduce, [x, S], dimensions=(0,), body=body_of(add, i32))
    refuses("C6", reduce, [x, S, S], dimensions=(0,), body=plain)


def test_map():
    x, y = numbers((2, 3)), numbers((2, 3), seed=1)
    np.testing.assert_array_equal(run_op(map_, x, y, dimensions=(0, 1), body=body_of(subtract, f32)), x - y)
    scaled = region([S, S], lambda a, k: multiply(a, k))
    np.testing.assert_array_equal(run_op(map_, x, np.float32(3), dimensions=(0, 1), body=scaled), x * np.float32(3))


def test_map_constraints():
    x = TensorType(f32, (2, 3))
    refuses("C1", map_, [x, TensorType(f32, (3, 2))], dimensions=(0, 1), body=body_of(add, f32))
    refuses("C2", map_, [], dimensions=(), body=region([], lambda: constant(value=Array(np.float32(1)))))
    refuses("C3", map_, [x, x], dimensions=(1, 0), body=body_of(add, f32))
    refuses("C3", map_, [x, x], dimensions=(0,), body=body_of(add, f32))
    refuses("C4", map_, [x, x], dimensions=(0, 1), body=body_of(add, f16))
    refuses("C4", map_, [x, x], dimensions=(0, 1), body=region([S, S], lambda a, b: (a, b)))


def test_unsigned_and_wide_integers():
    x = np.full((3,), 200, np.uint8)
    assert run_op(reduce, x, np.uint8(0), dimensions=(0,), body=body_of(add, u8)) == 600 % 256
    big = np.full((3,), 2**62, np.int64)
    assert run_op(reduce, big, np.int64(0), dimensions=(0,), body=body_of(add, i64)) == 3 * 2**62 - 2**64
