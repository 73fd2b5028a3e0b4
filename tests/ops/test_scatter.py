"""scatter against the specification's formula, for any dimension numbers, index types, and bodies."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from op_runs import numbers, refuses, run_op
from test_gather import EXTREME

from hilo.ir.dtypes import bf16, f32, f64, i32
from hilo.ir.module import region
from hilo.ir.types import TensorType
from hilo.ops.elementwise_arith import add, maximum, multiply, subtract
from hilo.ops.reduce import body_of
from hilo.ops.scatter import scatter

REPLACE = region([TensorType(i32)] * 2, lambda a, b: b)


def formula(
    f,
    x,
    s,
    u,
    *,
    update_window_dims,
    inserted_window_dims,
    input_batching_dims,
    scatter_indices_batching_dims,
    scatter_dims_to_operand_dims,
    index_vector_dim,
):
    """Update by update in row-major order, as the specification says it, in Python integers."""
    out = x.copy()
    scatter_dims = [d for d in range(u.ndim) if d not in update_window_dims]
    hidden = [*inserted_window_dims, *input_batching_dims]
    for at in np.ndindex(*u.shape):
        batch = [at[d] for d in scatter_dims]
        start = [0] * x.ndim
        for k, d in enumerate(scatter_dims_to_operand_dims):
            place = list(batch)
            if index_vector_dim < s.ndim:
                place.insert(index_vector_dim, k)
            start[d] = int(s[tuple(place)])
        for d, e in zip(input_batching_dims, scatter_indices_batching_dims, strict=True):
            start[d] = batch[e - (index_vector_dim < e)]
        window = iter([at[d] for d in update_window_dims])
        to = tuple(start[d] + (0 if d in hidden else next(window)) for d in range(x.ndim))
        if all(0 <= t < n for t, n in zip(to, x.shape, strict=True)):
            out[to] = f(out[to], u[at])
    return out


@st.composite
def cases(draw):
    rank = draw(st.integers(0, 3))
    shape = [draw(st.integers(1, 4)) for _ in range(rank)]
    dims = draw(st.permutations(range(rank)))
    batching = sorted(dims[: draw(st.integers(0, rank))])
    rest = [d for d in dims if d not in batching]
    inserted = sorted(rest[: draw(st.integers(0, len(rest)))])
    to = tuple(draw(st.permutations(rest))[: draw(st.integers(0, len(rest)))])
    free = [draw(st.integers(0, 3)) for _ in range(draw(st.integers(0, 2)))]
    order = draw(st.permutations([*(("b", d) for d in batching), *(("f", k) for k in range(len(free)))]))
    batch = [shape[k] if t == "b" else free[k] for t, k in order]
    vector = draw(st.integers(0, len(batch)))
    s_batching = tuple(e + (vector <= e) for e in (order.index(("b", d)) for d in batching))
    s_shape = [*batch[:vector], len(to), *batch[vector:]]
    window = [draw(st.integers(0, n)) for d, n in enumerate(shape) if d not in batching and d not in inserted]
    window_dims = tuple(sorted(draw(st.permutations(range(len(batch) + len(window))))[: len(window)]))
    w, b = iter(window), iter(batch)
    u_shape = [next(w) if d in window_dims else next(b) for d in range(len(batch) + len(window))]
    dtype = draw(st.sampled_from(list(EXTREME)))
    count = int(np.prod(s_shape, dtype=np.int64))
    near = st.sampled_from([0, 1, 2, *EXTREME[dtype]])
    s = np.array(draw(st.lists(near, min_size=count, max_size=count)), dtype).reshape(s_shape)
    return (
        numbers(shape, np.int32),
        s,
        numbers(u_shape, np.int32, 1),
        {
            "update_window_dims": window_dims,
            "inserted_window_dims": tuple(inserted),
            "input_batching_dims": tuple(batching),
            "scatter_indices_batching_dims": s_batching,
            "scatter_dims_to_operand_dims": to,
            "index_vector_dim": vector,
        },
    )


@settings(max_examples=200, deadline=None)
@given(cases(), st.sampled_from(["add", "replace", "subtract"]))
def test_scatter_is_the_formula(case, what):
    x, s, u, attrs = case
    f, body = {
        "add": (lambda a, b: a + b, body_of(add, i32)),
        "replace": (lambda a, b: b, REPLACE),
        "subtract": (lambda a, b: a - b, body_of(subtract, i32)),
    }[what]
    got = run_op(scatter, x, s, u, update_computation=body, **attrs)
    np.testing.assert_array_equal(got, formula(f, x, s, u, **attrs))


VECTOR = {"inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1}


def test_updates_of_one_place_round_each_time():
    """A scatter is not a sum: bf16 stays where adding one no longer changes it."""
    x, s = np.zeros((2,), ml_dtypes.bfloat16), np.zeros((300,), np.int32)
    got = run_op(scatter, x, s, np.ones((300,), x.dtype), update_computation=body_of(add, bf16), **VECTOR)
    assert got[0] == 256


def test_several_operands_and_captures():
    body = region(
        [TensorType(f32), TensorType(i32)] * 2 + [TensorType(f32)],
        lambda a, i, b, j, k: (add(a, multiply(b, k)), maximum(i, j)),
    )
    x, y = numbers((4,)), np.arange(4, dtype=np.int32)
    s = np.array([3, 3, 9, 0], np.int64)
    u, v = numbers((4,), seed=1), np.full((4,), 7, np.int32)
    got = run_op(scatter, x, y, s, u, v, np.float32(2), update_computation=body, **VECTOR)
    want = x.copy()
    for k, to in enumerate(s):
        if to < 4:
            want[to] += u[k] * np.float32(2)
    np.testing.assert_array_equal(got[0], want)
    np.testing.assert_array_equal(got[1], [7, 1, 2, 7])


def test_windows_that_stick_out_lose_only_what_is_outside():
    x, s, u = np.zeros((5,), np.int32), np.array([3], np.int32), np.ones((4,), np.int32)
    got = run_op(
        scatter,
        x,
        s,
        u,
        update_computation=body_of(add, i32),
        update_window_dims=(0,),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=0,
    )
    np.testing.assert_array_equal(got, [0, 0, 0, 1, 1])


X, S, U = TensorType(f32, (5, 3)), TensorType(i32, (4, 1)), TensorType(f32, (4, 3))
GOOD = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0,),
    "index_vector_dim": 1,
}
B = {
    "update_window_dims": (1,),
    "input_batching_dims": (0,),
    "scatter_indices_batching_dims": (0,),
    "scatter_dims_to_operand_dims": (1,),
    "index_vector_dim": 1,
}
SB, UB = TensorType(i32, (5, 1)), TensorType(f32, (5, 2))
SUM = body_of(add, f32)
TWO = region([TensorType(f32)] * 4, lambda a, b, c, d: (a, b))
SQUARE = TensorType(f32, (5, 5))


@pytest.mark.parametrize(
    ("rule", "base", "types", "changes"),
    [
        ("C1", GOOD, (X, TensorType(f32, (5, 4)), S, U, U), {"update_computation": TWO}),
        ("C2", GOOD, (X, S, U), {"inserted_window_dims": ()}),
        ("C3", GOOD, (X, X, S, U, TensorType(f32, (4, 2))), {"update_computation": TWO}),
        ("C4", GOOD, (X, S, TensorType(f32, (4, 4))), {}),
        ("C4", GOOD, (X, S, TensorType(f32, (3, 3))), {}),
        ("C4", GOOD, (X, S, TensorType(f32, (4, 3, 1))), {}),
        ("C5", GOOD, (X, S, U), {"update_computation": TWO}),
        ("C6", GOOD, (X, S, TensorType(f64, (4, 3))), {}),
        (
            "C7",
            {**GOOD, "inserted_window_dims": ()},
            (X, S, TensorType(f32, (4, 5, 3))),
            {"update_window_dims": (2, 1)},
        ),
        ("C8", GOOD, (X, S, U), {"update_window_dims": (2,)}),
        ("C9", GOOD, (X, S, TensorType(f32, (4,))), {"inserted_window_dims": (0, 0), "update_window_dims": ()}),
        ("C10", GOOD, (X, S, TensorType(f32, (4,))), {"inserted_window_dims": (1, 0), "update_window_dims": ()}),
        ("C11", GOOD, (X, S, U), {"inserted_window_dims": (2,)}),
        (
            "C12",
            B,
            (SQUARE, TensorType(i32, (5, 5, 0)), TensorType(f32, (5, 5))),
            {
                "update_window_dims": (),
                "input_batching_dims": (1, 0),
                "scatter_indices_batching_dims": (0, 1),
                "scatter_dims_to_operand_dims": (),
                "index_vector_dim": 2,
            },
        ),
        ("C13", B, (X, SB, UB), {"input_batching_dims": (2,)}),
        (
            "C14",
            B,
            (SQUARE, TensorType(i32, (5, 0)), TensorType(f32, (5,))),
            {
                "update_window_dims": (),
                "input_batching_dims": (0, 1),
                "scatter_indices_batching_dims": (0, 0),
                "scatter_dims_to_operand_dims": (),
            },
        ),
        ("C15", B, (X, SB, UB), {"scatter_indices_batching_dims": (2,)}),
        ("C16", B, (X, SB, UB), {"scatter_indices_batching_dims": (1,)}),
        ("C17", B, (X, SB, UB), {"scatter_indices_batching_dims": ()}),
        ("C18", B, (X, TensorType(i32, (4, 1)), TensorType(f32, (4, 2))), {}),
        ("C19", GOOD, (X, S, U), {"scatter_dims_to_operand_dims": (0, 1)}),
        ("C20", B, (X, SB, UB), {"scatter_dims_to_operand_dims": (0,)}),
        ("C21", GOOD, (X, S, U), {"scatter_dims_to_operand_dims": (2,)}),
        ("C22", GOOD, (X, S, U), {"index_vector_dim": 3}),
        ("C23", GOOD, (X, S, U), {"update_computation": body_of(add, i32)}),
        ("I2", GOOD, (X, TensorType(f32, (4, 1)), U), {}),
    ],
)
def test_scatter_constraints(rule, base, types, changes):
    refuses(rule, scatter, types, **{"update_computation": SUM, **base, **changes})
