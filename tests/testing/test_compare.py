"""Comparing arrays, the summation allowance, and the program in f64 as arbiter."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hilo.ir.dtypes import bf16, c64, f16, f32, f64, i32
from hilo.ir.module import Module, region
from hilo.ir.types import TensorType
from hilo.ops.convert import convert
from hilo.ops.dot import dot_general
from hilo.ops.elementwise_arith import add, maximum
from hilo.ops.elementwise_math import exponential
from hilo.ops.reduce import body_of, reduce
from hilo.ops.shape import transpose
from hilo.testing import arbiter, compare
from hilo.testing.slack import summation_slack


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64])
def test_ulp_distance(dtype):
    one = np.ones(3, dtype)
    bits = one.view(f"u{one.itemsize}")
    other = (bits + np.array([0, 1, 5], bits.dtype)).view(dtype)
    assert compare.ulp_distance(one, other).tolist() == [0, 1, 5]
    assert compare.ulp_distance(other, one).tolist() == [0, 1, 5]
    tiny = np.array([1, 1, 0], bits.dtype).view(dtype)
    assert compare.ulp_distance(tiny, -tiny).tolist() == [2, 2, 0]
    big = np.array([np.inf], dtype)
    assert compare.ulp_distance(big, -big)[0] == 2 * int(big.view(bits.dtype)[0])


@pytest.mark.parametrize(("dtype", "eps"), [(f64, 2**-52), (f32, 2**-23), (f16, 2**-10), (bf16, 2**-7), (c64, 2**-23)])
def test_epsilon(dtype, eps):
    assert compare.epsilon(dtype) == eps


def test_equal_identical_close():
    a = np.array([0.0, np.nan, np.inf, 1.0], np.float32)
    b = np.array([-0.0, np.nan, np.inf, np.nextafter(np.float32(1), np.float32(2))], np.float32)
    assert compare.equal(a, b).tolist() == [True, False, True, False]
    assert compare.identical(a, b).tolist() == [False, True, True, False]
    assert compare.close(a, b, 1).tolist() == [True] * 4
    assert compare.close(a, b, 0).tolist() == [True, True, True, False]
    assert compare.close(a, -b, 3).tolist() == [True, True, False, False]
    assert compare.close(np.array([np.inf]), np.array([np.finfo(float).max]), 3).tolist() == [False]
    assert compare.close(np.array([1.0]), np.array([1.5]), 0, 0.5).tolist() == [True]
    assert compare.near(np.array([1.0, 1.0, np.inf]), np.array([1.0009, 1.0011, 1.0]), 1e-3).tolist() == [
        True,
        False,
        False,
    ]


def test_complex_by_parts_and_integers_exactly():
    z = np.array([1 + 2j], np.complex64)
    assert compare.close(z, z + np.complex64(1e-6j), 5).all()
    assert not compare.close(z, z + np.complex64(1), 5).any()
    assert not compare.close(np.array([5]), np.array([6]), 3, 10.0).any()
    assert compare.identical(np.array([True]), np.array([True])).all()
    assert "1 of 1 elements differ, first at [0]" in compare.difference(z, -z, np.array([False]))


def test_what_the_order_of_summation_may_change():
    t, x = TensorType(f32, (2, 3)), np.full((2, 3), -2, np.float32)
    dims = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (1,)}
    f = region(
        [t],
        lambda v: (
            transpose(dot_general(v, v, type=TensorType(f32, (2, 2)), **dims), permutation=(1, 0)),
            add(v, v),
            reduce(v, _zero(), dimensions=(1,), body=body_of(add, f32)),
            reduce(v, _zero(), dimensions=(1,), body=body_of(maximum, f32)),
        ),
        "main",
    )
    slack = summation_slack(Module({"main": f}), [x])
    np.testing.assert_allclose(slack[0], np.full((2, 2), 4 * 3 * 2**-23 * 12.0))
    assert slack[1] == 0.0
    np.testing.assert_allclose(slack[2], np.full((2,), 4 * 4 * 2**-23 * 6.0))
    assert slack[3] == 0.0


def _zero():
    from hilo.ir.op import Array
    from hilo.ops.constant import constant

    return constant(value=Array(np.float32(0)))


def test_the_program_in_f64_decides():
    t = TensorType(f32, (3,))
    module = Module({"main": region([t], exponential, "main")})
    x = np.array([0.5, 3, 10], np.float32)
    (truth,) = arbiter.in_f64(module, [x])
    assert truth.dtype == np.float64
    np.testing.assert_allclose(truth, np.exp(x.astype(np.float64)), rtol=1e-15)
    good = truth.astype(np.float32)
    worse = good * np.float32(1 + 1e-6)
    assert arbiter.closer(good, worse, truth, 3, 0.0).all()
    assert not arbiter.closer(worse, good, truth, 3, 0.0).any()
    assert not arbiter.closer(worse, worse * np.float32(2), truth, 3, 0.0).any()
    ints = Module({"main": region([t], lambda v: convert(v, type=TensorType(i32, (3,))), "main")})
    assert arbiter.in_f64(ints, [x]) is None
