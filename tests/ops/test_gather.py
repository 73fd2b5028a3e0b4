"""gather against the specification's formula, for any dimension numbers and index types."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_runs import both_ways, numbers, refuses, run_op

from hilo.ir.dtypes import f32, i32
from hilo.ir.types import TensorType
from hilo.ops.gather import gather

EXTREME = {
    np.int8: [-128, -1, 0, 1, 127],
    np.uint8: [0, 1, 255],
    np.int32: [-(2**31), 0, 3, 2**31 - 1],
    np.int64: [-(2**63), -1, 2, 2**63 - 1],
    np.uint64: [0, 1, 2**63, 2**64 - 1],
    np.int16: [0, 2, -7],
}


def formula(
    x,
    s,
    *,
    offset_dims,
    collapsed_slice_dims,
    operand_batching_dims,
    start_indices_batching_dims,
    start_index_map,
    index_vector_dim,
    slice_sizes,
    shape,
):
    """Index by index, as the specification says it, in Python integers."""
    out = np.zeros(shape, x.dtype)
    batch_dims = [d for d in range(len(shape)) if d not in offset_dims]
    hidden = [*collapsed_slice_dims, *operand_batching_dims]
    for at in np.ndindex(*shape):
        batch = [at[d] for d in batch_dims]
        start = [0] * x.ndim
        for k, d in enumerate(start_index_map):
            place = list(batch)
            if index_vector_dim < s.ndim:
                place.insert(index_vector_dim, k)
            start[d] = min(max(int(s[tuple(place)]), 0), x.shape[d] - slice_sizes[d])
        for d, e in zip(operand_batching_dims, start_indices_batching_dims, strict=True):
            start[d] = batch[e - (index_vector_dim < e)]
        offset = iter([at[d] for d in offset_dims])
        out[at] = x[tuple(start[d] + (0 if d in hidden else next(offset)) for d in range(x.ndim))]
    return out


@st.composite
def cases(draw):
    rank = draw(st.integers(0, 3))
    shape = [draw(st.integers(1, 4)) for _ in range(rank)]
    dims = draw(st.permutations(range(rank)))
    batching = sorted(dims[: draw(st.integers(0, rank))])
    rest = [d for d in dims if d not in batching]
    collapsed = sorted(rest[: draw(st.integers(0, len(rest)))])
    index_map = tuple(draw(st.permutations(rest))[: draw(st.integers(0, len(rest)))])
    free = [draw(st.integers(0, 2)) for _ in range(draw(st.integers(0, 2)))]
    order = draw(st.permutations([*(("b", d) for d in batching), *(("f", k) for k in range(len(free)))]))
    s_shape = [shape[k] if t == "b" else free[k] for t, k in order]
    implied = len(index_map) == 1 and draw(st.booleans())
    vector = len(s_shape) if implied else draw(st.integers(0, len(s_shape)))
    s_batching = []
    for d in batching:
        e = order.index(("b", d))
        s_batching.append(e + (not implied and vector <= e))
    batch_shape = list(s_shape)
    if not implied:
        s_shape.insert(vector, len(index_map))
    sizes = tuple(1 if d in collapsed or d in batching else draw(st.integers(0, n)) for d, n in enumerate(shape))
    offsets = rank - len(batching) - len(collapsed)
    offset_dims = tuple(sorted(draw(st.permutations(range(len(batch_shape) + offsets)))[:offsets]))
    dtype = draw(st.sampled_from(list(EXTREME)))
    count = int(np.prod(s_shape, dtype=np.int64))
    values = draw(st.lists(st.sampled_from(EXTREME[dtype]), min_size=count, max_size=count))
    s = np.array(values, dtype).reshape(s_shape)
    return (
        numbers(shape, np.int32),
        s,
        {
            "offset_dims": offset_dims,
            "collapsed_slice_dims": tuple(collapsed),
            "operand_batching_dims": tuple(batching),
            "start_indices_batching_dims": tuple(s_batching),
            "start_index_map": index_map,
            "index_vector_dim": vector,
            "slice_sizes": sizes,
        },
    )


@settings(max_examples=150, deadline=None)
@given(cases())
def test_gather_is_the_formula(case):
    x, s, attrs = case
    got = run_op(gather, x, s, **attrs)
    np.testing.assert_array_equal(got, formula(x, s, shape=got.shape, **attrs))


@settings(max_examples=30, deadline=None)
@given(cases())
def test_elements_are_the_same(case):
    x, s, attrs = case
    both_ways(gather, x, s, **attrs)


def test_collapsed_axes_without_elements_give_zeros():
    """Valid, though there is nothing to gather."""
    x, s = numbers((0, 3), np.float32), np.array([0, 5], np.int32)
    got = both_ways(gather, x, s, offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,),
                    index_vector_dim=1, slice_sizes=(0, 3))  # fmt: skip
    assert got.shape == (2, 3)
    assert not got.any()


def test_embedding_rows():
    x, s = numbers((7, 3), np.complex64), np.array([[6], [-1], [2], [100]], np.int32)
    got = both_ways(
        gather,
        x,
        s,
        offset_dims=(1,),
        collapsed_slice_dims=(0,),
        start_index_map=(0,),
        index_vector_dim=1,
        slice_sizes=(1, 3),
    )
    np.testing.assert_array_equal(got, x[[6, 0, 2, 6]])


X, S = TensorType(f32, (5, 3)), TensorType(i32, (4, 1))
GOOD = {
    "offset_dims": (1,),
    "collapsed_slice_dims": (0,),
    "start_index_map": (0,),
    "index_vector_dim": 1,
    "slice_sizes": (1, 3),
}
B = {
    "offset_dims": (1,),
    "collapsed_slice_dims": (),
    "operand_batching_dims": (0,),
    "start_indices_batching_dims": (0,),
    "start_index_map": (1,),
    "index_vector_dim": 1,
    "slice_sizes": (1, 2),
}
SB = TensorType(i32, (5, 1))


@pytest.mark.parametrize(
    ("rule", "base", "types", "changes"),
    [
        ("C1", GOOD, (X, S), {"collapsed_slice_dims": ()}),
        ("C2", GOOD, (X, S), {"index_vector_dim": 3}),
        ("C3", GOOD, (X, S), {"start_index_map": (0, 1)}),
        ("C3", GOOD, (X, TensorType(i32, (4, 1))), {"index_vector_dim": 2, "start_index_map": (0, 1)}),
        ("C4", {**GOOD, "slice_sizes": (1, 1), "collapsed_slice_dims": ()}, (X, S), {"offset_dims": (1, 0)}),
        ("C5", GOOD, (X, S), {"offset_dims": (2,)}),
        ("C6", GOOD, (X, S), {"offset_dims": (), "collapsed_slice_dims": (0, 0)}),
        ("C7", GOOD, (X, S), {"offset_dims": (), "collapsed_slice_dims": (1, 0), "slice_sizes": (1, 1)}),
        ("C8", GOOD, (X, S), {"collapsed_slice_dims": (2,)}),
        ("C9", GOOD, (X, S), {"slice_sizes": (2, 3)}),
        (
            "C10",
            B,
            (TensorType(f32, (2, 2)), TensorType(i32, (2, 2, 0))),
            {
                "offset_dims": (),
                "operand_batching_dims": (1, 0),
                "start_indices_batching_dims": (0, 1),
                "index_vector_dim": 2,
                "start_index_map": (),
                "slice_sizes": (1, 1),
            },
        ),
        ("C11", B, (X, SB), {"operand_batching_dims": (2,)}),
        ("C12", B, (X, SB), {"slice_sizes": (2, 2)}),
        (
            "C13",
            B,
            (TensorType(f32, (5, 5)), SB),
            {
                "offset_dims": (),
                "operand_batching_dims": (0, 1),
                "start_indices_batching_dims": (0, 0),
                "slice_sizes": (1, 1),
            },
        ),
        ("C14", B, (X, SB), {"start_indices_batching_dims": (2,)}),
        ("C15", B, (X, SB), {"start_indices_batching_dims": (1,)}),
        ("C16", B, (X, SB), {"start_indices_batching_dims": ()}),
        ("C17", B, (X, TensorType(i32, (4, 1))), {}),
        ("C18", B, (X, SB), {"start_index_map": (0,)}),
        ("C19", GOOD, (X, S), {"start_index_map": (2,)}),
        ("C20", GOOD, (X, S), {"slice_sizes": (1,)}),
        ("C21", GOOD, (X, S), {"slice_sizes": (1, 4)}),
        ("I2", GOOD, (X, TensorType(f32, (4, 1))), {}),
    ],
)
def test_gather_constraints(rule, base, types, changes):
    refuses(rule, gather, types, **{**base, **changes})
