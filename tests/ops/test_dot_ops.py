"""dot_general and dot against exact arithmetic."""

from __future__ import annotations

from itertools import product

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_runs import numbers, op_with, refuses, run_op

from hilo.errors import Unsupported
from hilo.ir.dtypes import bf16, c64, f16, f32, f64, i8, i16, i32, i64, u8
from hilo.ir.types import UNKNOWN, TensorType
from hilo.ops.dot import dot, dot_general

NAMES = (
    "lhs_batching_dimensions",
    "rhs_batching_dimensions",
    "lhs_contracting_dimensions",
    "rhs_contracting_dimensions",
)
MATMUL = dict(zip(NAMES, ((), (), (1,), (0,)), strict=True))


def dims(*each):
    return dict(zip(NAMES, each, strict=True))


@settings(max_examples=50, deadline=None)
@given(st.data())
def test_any_dimensions_are_the_formula(data):
    sizes = st.integers(0, 3)
    batch, contract, left, right = (data.draw(st.lists(sizes, max_size=2)) for _ in range(4))
    tags = [*(("b", k) for k in range(len(batch))), *(("c", k) for k in range(len(contract)))]
    lhs = data.draw(st.permutations([*tags, *(("l", k) for k in range(len(left)))]))
    rhs = data.draw(st.permutations([*tags, *(("r", k) for k in range(len(right)))]))
    size = {"b": batch, "c": contract, "l": left, "r": right}
    x = numbers([size[t][k] for t, k in lhs], np.int32)
    y = numbers([size[t][k] for t, k in rhs], np.int32, 1)
    attrs = dims(
        *(
            tuple(side.index((t, k)) for k in range(len(size[t])))
            for t, side in (("b", lhs), ("b", rhs), ("c", lhs), ("c", rhs))
        )
    )
    free = [*((t, k) for t, k in lhs if t == "l"), *((t, k) for t, k in rhs if t == "r")]
    out = [*(("b", k) for k in range(len(batch))), *free]
    shape = [size[t][k] for t, k in out]
    got = run_op(dot_general, x, y, type=TensorType(i32, shape), **attrs)
    for at in np.ndindex(*shape):
        place = dict(zip(out, at, strict=True))
        total = 0
        for inner in product(*(range(n) for n in contract)):
            place.update({("c", k): i for k, i in enumerate(inner)})
            total += int(x[tuple(place[t] for t in lhs)]) * int(y[tuple(place[t] for t in rhs)])
        assert got[at] == total


@pytest.mark.parametrize(
    ("dtype", "out"), [(np.int8, i8), (np.int8, i16), (np.int8, i32), (np.uint8, u8), (np.int64, i64)]
)
def test_integers_are_exact_modulo_the_result(dtype, out):
    info = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(info.min, info.max, (5, 40), dtype)
    y = np.random.default_rng(1).integers(info.min, info.max, (40, 3), dtype)
    exact = x.astype(object) @ y.astype(object)
    want = np.vectorize(lambda v: int(v) % (1 << out.bits), otypes=[object])(exact)
    got = run_op(dot_general, x, y, type=TensorType(out, (5, 3)), **MATMUL)
    assert (np.vectorize(lambda v: int(v) % (1 << out.bits), otypes=[object])(got) == want).all()


@pytest.mark.parametrize(
    ("dtype", "out"),
    [
        (ml_dtypes.bfloat16, bf16),
        (ml_dtypes.bfloat16, f32),
        (np.float16, f16),
        (np.float16, f32),
        (np.float32, f32),
        (np.float64, f64),
    ],
)
def test_floats_are_rounded_once(dtype, out):
    x, y = numbers((4, 500), dtype), numbers((500, 3), dtype, 1)
    exact = x.astype(np.longdouble) @ y.astype(np.longdouble)
    got = run_op(dot_general, x, y, type=TensorType(out, (4, 3)), **MATMUL)
    digits = {bf16: 8, f16: 11, f32: 24, f64: 46}[out]
    np.testing.assert_allclose(got.astype(np.longdouble), exact, rtol=2.0**-digits * 1.01, atol=1e-13)


def test_booleans_and_complex():
    x, y = numbers((3, 4), np.bool_), numbers((4, 2), np.bool_, 1)
    got = run_op(
        dot_general,
        x,
        y,
        type=op_with(dot_general, *map(_t, (x, y)), type=TensorType(_t(x).dtype, (3, 2)), **MATMUL).tensor,
        **MATMUL,
    )
    np.testing.assert_array_equal(got, (x.astype(int) @ y.astype(int)) > 0)
    z, w = numbers((3, 4), np.complex64), numbers((4, 2), np.complex64, 1)
    np.testing.assert_allclose(run_op(dot_general, z, w, type=TensorType(c64, (3, 2)), **MATMUL), z @ w, rtol=1e-5)


def _t(x):
    from op_runs import type_of

    return type_of(x)


def test_nothing_to_contract_gives_zero():
    got = run_op(dot_general, numbers((2, 0)), numbers((0, 3)), type=TensorType(f32, (2, 3)), **MATMUL)
    assert not got.any()


@pytest.mark.parametrize(
    ("algorithm", "error"),
    [
        (("bf16", "bf16", "f32", 1, 1, 1, False), 2**-8),
        (("bf16", "bf16", "f32", 2, 2, 3, False), 2**-15),
        (("bf16", "bf16", "f32", 3, 3, 6, False), 2**-22),
        (("bf16", "bf16", "f32", 1, 1, 6, False), 2**-22),
        (("bf16", "bf16", "f32", 3, 3, 9, False), 2**-22),
        (("tf32", "tf32", "f32", 1, 1, 1, False), 2**-10),
        (("tf32", "tf32", "f32", 2, 2, 3, False), 2**-20),
        (("f32", "f32", "f64", 1, 1, 1, False), 2**-23),
    ],
)
def test_algorithms_are_as_exact_as_they_say_and_not_more(algorithm, error):
    x, y = np.abs(numbers((8, 64))), np.abs(numbers((64, 8), seed=1))
    got = run_op(dot_general, x, y, type=TensorType(f32, (8, 8)), algorithm=algorithm, **MATMUL)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    off = np.abs(got - exact).max() / exact.max()
    assert off < 2 * error
    if algorithm[3:6] == (1, 1, 1) and algorithm[2] == "f32":
        assert off > error / 64


def test_dot_general_constraints():
    x, y = TensorType(f32, (2, 3)), TensorType(f32, (3, 4))
    t = TensorType(f32, (2, 4))
    refuses("C1", dot_general, [x, y], type=t, **dims((0,), (), (1,), (0,)))
    refuses("C2", dot_general, [x, y], type=t, **dims((), (), (1,), ()))
    refuses("C3", dot_general, [x, y], type=t, **dims((), (), (1, 1), (0, 1)))
    refuses("C4", dot_general, [x, y], type=t, **dims((), (), (0, 1), (0, 0)))
    refuses("C5", dot_general, [x, y], type=t, **dims((2,), (0,), (), ()))
    refuses("C6", dot_general, [x, y], type=t, **dims((), (), (-1,), (0,)))
    refuses("C7", dot_general, [x, y], type=t, **dims((0,), (2,), (), ()))
    refuses("C8", dot_general, [x, y], type=t, **dims((), (), (1,), (2,)))
    refuses("C9", dot_general, [x, y], type=t, **dims((0,), (0,), (), ()))
    refuses("C10", dot_general, [x, y], type=t, **dims((), (), (0,), (0,)))
    refuses("C11", dot_general, [x, y], type=t, precision_config=("HIGH",) * 3, **MATMUL)
    refuses("C12", dot_general, [x, y], type=TensorType(f32, (4, 2)), **MATMUL)
    refuses("C13", dot_general, [x, TensorType(i32, (3, 4))], type=t, **MATMUL)
    exact = ("f32", "f32", "f32", 1, 1, 1, False)
    refuses("C21", dot_general, [x, y], type=t, precision_config=("HIGH", "DEFAULT"), algorithm=exact, **MATMUL)
    refuses("C22", dot_general, [x, y], type=t, algorithm=("f32", "f32", "f32", 0, 1, 1, False), **MATMUL)
    refuses("C23", dot_general, [x, y], type=t, algorithm=("f32", "f32", "f32", 1, 0, 1, False), **MATMUL)
    refuses("C24", dot_general, [x, y], type=t, algorithm=("f32", "f32", "f32", 1, 1, 0, False), **MATMUL)


@pytest.mark.parametrize(
    "algorithm",
    [
        ("bf16", "bf16", "f32", 1, 1, 5, False),
        ("f128", "f32", "f32", 1, 1, 1, False),
        ("bf16", "bf16", "i32", 1, 1, 1, False),
        ("bf16", "bf16", "f32", 1, 3, 3, False),
    ],
)
def test_unknown_algorithms_are_refused(algorithm):
    with pytest.raises(Unsupported, match="dot algorithm"):
        op_with(
            dot_general,
            TensorType(f32, (2, 3)),
            TensorType(f32, (3, 4)),
            type=TensorType(f32, (2, 4)),
            algorithm=algorithm,
            **MATMUL,
        )


@pytest.mark.parametrize(("a", "b"), [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4)), ((2, 0), (0,))])
def test_dot(a, b):
    x, y = numbers(a, np.int32), numbers(b, np.int32, 1)
    got = run_op(dot, x, y, type=TensorType(i32, (x @ y).shape))
    np.testing.assert_array_equal(got, x @ y)


def test_dot_checks_its_operands():
    x = TensorType(f32, (2, 3))
    refuses("", dot, [x, x], type=TensorType(f32, (2, 3)))
    refuses("", dot, [x, TensorType(f64, (3,))], type=TensorType(f32, (2,)))
    refuses("", dot, [TensorType(f32), x], type=TensorType(f32, (3,)))


def test_symbolic_dims_and_sharding():
    x, y = TensorType(f32, (UNKNOWN, 3)), TensorType(f32, (3, 4))
    assert op_with(dot_general, x, y, type=TensorType(f32, (UNKNOWN, 4)), **MATMUL).shape == (UNKNOWN, 4)
    batched = dims((0,), (2,), (2,), (1,))
    types = TensorType(f32, (5, 2, 3)), TensorType(f32, (4, 3, 5))
    assert dot_general.sharding(*types, out=TensorType(f32, (5, 2, 4)), type=None, **batched) == "abc,dca->abd"
    assert dot_general.cost is not None
    assert dot_general.cost(*types, out=TensorType(f32, (5, 2, 4)), **batched)[0] == 2 * 5 * 2 * 4 * 3
