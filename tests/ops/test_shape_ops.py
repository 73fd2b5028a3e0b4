"""iota, broadcast_in_dim, reshape, transpose, reverse: semantics, elements, constraints."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_runs import both_ways, numbers, op_with, refuses, run_op

from hilo.errors import Unsupported
from hilo.ir.dtypes import COMMON, bf16, f32, i1, i32
from hilo.ir.registry import lookup
from hilo.ir.types import UNKNOWN, TensorType
from hilo.ops.dynamic import get_dimension_size
from hilo.ops.shape import broadcast_in_dim, iota, matching_groups, reshape, reverse, transpose

shapes = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@pytest.mark.parametrize("dtype", [t for t in COMMON if t is not i1], ids=str)
def test_iota_counts_and_wraps(dtype):
    got = both_ways(iota, iota_dimension=0, type=TensorType(dtype, (300, 2)))
    count = np.arange(300)
    if dtype.is_int and dtype.bits == 8:
        count = count.astype(dtype.np)
    np.testing.assert_array_equal(got, np.broadcast_to(count[:, None], (300, 2)).astype(dtype.np))


def test_iota_rounds_to_nearest_even_in_bf16():
    got = both_ways(iota, iota_dimension=0, type=TensorType(bf16, (260,))).astype(np.float64)
    assert got[257] == 256.0
    assert got[259] == 260.0


def test_iota_constraints():
    refuses("C1", iota, [], iota_dimension=2, type=TensorType(f32, (2, 3)))
    refuses("C1", iota, [], iota_dimension=-1, type=TensorType(f32, (2, 3)))
    refuses("C1", iota, [], iota_dimension=0, type=TensorType(f32))


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_broadcast_in_dim_is_the_formula(data):
    out = data.draw(shapes)
    dims = tuple(data.draw(st.permutations(range(len(out))))[: data.draw(st.integers(0, len(out)))])
    x = numbers([out[d] if data.draw(st.booleans()) else 1 for d in dims])
    got = both_ways(broadcast_in_dim, x, broadcast_dimensions=dims, type=TensorType(f32, out))
    for at in np.ndindex(*out):
        assert got[at] == x[tuple(at[d] if n != 1 else 0 for d, n in zip(dims, x.shape, strict=True))]


def test_broadcast_in_dim_constraints():
    x = TensorType(f32, (2, 3))
    refuses("C1", broadcast_in_dim, [x], broadcast_dimensions=(0, 1), type=TensorType(i32, (2, 3)))
    refuses("C2", broadcast_in_dim, [x], broadcast_dimensions=(0,), type=x)
    refuses("C3", broadcast_in_dim, [x], broadcast_dimensions=(0, 2), type=x)
    refuses("C4", broadcast_in_dim, [x], broadcast_dimensions=(0, 0), type=TensorType(f32, (2, 3)))
    refuses("C5", broadcast_in_dim, [x], broadcast_dimensions=(1, 0), type=x)


@settings(max_examples=40, deadline=None)
@given(shapes, st.randoms(use_true_random=False))
def test_reshape_keeps_row_major_order(shape, random):
    factors = [p for n in shape for p in ([2, 2] if n == 4 else [n])]
    random.shuffle(factors)
    cut = random.randint(0, len(factors))
    out = (*factors[:cut], int(np.prod(factors[cut:], dtype=np.int64)), 1)
    x = numbers(shape, np.int32)
    np.testing.assert_array_equal(both_ways(reshape, x, type=TensorType(i32, out)), x.reshape(out))


def test_reshape_constraints():
    refuses("C1", reshape, [TensorType(f32, (6,))], type=TensorType(i32, (2, 3)))
    refuses("C2", reshape, [TensorType(f32, (6,))], type=TensorType(f32, (4,)))


@pytest.mark.parametrize("dtype", [np.complex64, np.bool_, np.float16])
@pytest.mark.parametrize("permutation", [(2, 0, 1), (0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_transpose(dtype, permutation):
    x = numbers((2, 3, 5), dtype)
    np.testing.assert_array_equal(both_ways(transpose, x, permutation=permutation), np.transpose(x, permutation))


def test_transpose_edges():
    assert both_ways(transpose, np.float32(3), permutation=()) == 3
    assert both_ways(transpose, numbers((2, 0, 4)), permutation=(1, 2, 0)).shape == (0, 4, 2)


def test_transpose_constraints():
    for permutation in ((0, 0), (0,), (0, 2), (0, 1, 2)):
        refuses("C2", transpose, [TensorType(f32, (2, 3))], permutation=permutation)


@pytest.mark.parametrize("dimensions", [(), (0,), (1,), (1, 0)])
def test_reverse(dimensions):
    x = numbers((3, 6), np.complex64)
    np.testing.assert_array_equal(
        both_ways(reverse, x, dimensions=dimensions), np.flip(x, dimensions) if dimensions else x
    )


def test_reverse_constraints():
    refuses("C2", reverse, [TensorType(f32, (2, 3))], dimensions=(1, 1))
    refuses("C3", reverse, [TensorType(f32, (2, 3))], dimensions=(2,))


def test_get_dimension_size():
    assert both_ways(get_dimension_size, numbers((2, 0, 5)), dimension=2) == 5
    assert both_ways(get_dimension_size, numbers((2, 0, 5)), dimension=1) == 0
    refuses("C1", get_dimension_size, [TensorType(f32, (2,))], dimension=1)
    assert op_with(get_dimension_size, TensorType(f32, (UNKNOWN,)), dimension=0).type is TensorType(i32)


def test_symbolic_results_are_not_evaluated():
    for kind, arrays, attrs in ((iota, (), {"iota_dimension": 0}), (reshape, (numbers((6,)),), {}),
                                (broadcast_in_dim, (numbers(()),), {"broadcast_dimensions": ()})):  # fmt: skip
        with pytest.raises(Unsupported, match="symbolic"):
            run_op(kind, *arrays, type=TensorType(f32, (UNKNOWN,)), **attrs)


def test_symbolic_dims_are_compatible_with_any():
    x = TensorType(f32, (UNKNOWN, 3))
    assert op_with(transpose, x, permutation=(1, 0)).shape == (3, UNKNOWN)
    assert op_with(reshape, x, type=TensorType(f32, (6,))).shape == (6,)
    assert op_with(broadcast_in_dim, x, broadcast_dimensions=(0, 1), type=TensorType(f32, (7, 3))).shape == (7, 3)


@pytest.mark.parametrize(
    ("a", "b", "groups"),
    [
        ((4, 6), (2, 2, 1, 6), [([0], [0, 1]), ([1], [2, 3])]),
        ((6,), (6,), [([0], [0])]),
        ((2, 3), (3, 2), [([0, 1], [0, 1])]),
        ((), (1,), [([], [0])]),
        ((0, 3), (5, 0), [([0, 1], [0, 1])]),
    ],
)
def test_matching_groups(a, b, groups):
    assert matching_groups(a, b) == groups


def test_sharding_rules_follow_axes():
    assert transpose.sharding(TensorType(f32, (2, 3)), out=TensorType(f32, (3, 2)), permutation=(1, 0)) == "ab->ba"
    assert reshape.sharding(TensorType(f32, (4, 6)), out=TensorType(f32, (2, 2, 6))) == "ab->cdb"
    assert (
        lookup("stablehlo.reverse").sharding(TensorType(f32, (4, 6)), out=TensorType(f32, (4, 6)), dimensions=(0,))
        == "ab->cb"
    )
