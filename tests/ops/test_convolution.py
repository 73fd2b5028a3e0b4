"""convolution against loops over windows in Python, its expansion, one refusal per constraint."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op

from hilo.ir.dtypes import bf16, f32, f64, from_numpy, i32
from hilo.ir.interpret import run
from hilo.ir.module import parameter, region
from hilo.ir.types import UNKNOWN, TensorType
from hilo.ops.convolution import DIMENSIONS, canonical_dimensions, convolution, is_canonical


def brute(x, w, out_shape, a: dict[str, Any]) -> np.ndarray:
    """Each product by itself, on Python integers."""
    out = np.zeros(out_shape, object)
    n = x.ndim - 2
    xs, ws, os = (a[f"{side}_spatial_dimensions"] for side in ("input", "kernel", "output"))
    groups, batches = a["feature_group_count"], a["batch_group_count"]
    outputs, inputs = w.shape[a["kernel_output_feature_dimension"]], w.shape[a["kernel_input_feature_dimension"]]
    for at in np.ndindex(*out_shape):
        o, b = at[a["output_feature_dimension"]], at[a["output_batch_dimension"]]
        if batches > 1:
            b += o // (outputs // batches) * out_shape[a["output_batch_dimension"]]
        for k in np.ndindex(*(w.shape[d] for d in ws)):
            place = []
            for d in range(n):
                p = at[os[d]] * a["window_strides"][d] + k[d] * a["rhs_dilation"][d] - a["padding"][d][0]
                q, r = divmod(p, a["lhs_dilation"][d])
                if r or not 0 <= q < x.shape[xs[d]]:
                    break
                place.append(q)
            else:
                for c in range(inputs):
                    i, j = [0] * x.ndim, [0] * x.ndim
                    i[a["input_batch_dimension"]] = b
                    i[a["input_feature_dimension"]] = o // (outputs // groups) * inputs + c
                    j[a["kernel_input_feature_dimension"]], j[a["kernel_output_feature_dimension"]] = c, o
                    for d in range(n):
                        i[xs[d]] = place[d]
                        j[ws[d]] = w.shape[ws[d]] - 1 - k[d] if a["window_reversal"][d] else k[d]
                    out[at] += int(x[tuple(i)]) * int(w[tuple(j)])
    return out


def random_convolution(seed: int, dtype: Any = np.int32) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Operands and attributes, all of them at random."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 3))
    rank = n + 2
    orders = [tuple(int(v) for v in rng.permutation(rank)) for _ in range(3)]
    a: dict[str, Any] = {}
    for side, order in zip((DIMENSIONS[:3], DIMENSIONS[3:6], DIMENSIONS[6:]), orders):
        spatial = order[:n]
        first, second = (f for f in side if "spatial" not in f)
        a |= {first: order[n], second: order[n + 1]}
        a |= {f: spatial for f in side if "spatial" in f}
    groups, batches = [(1, 1), (2, 1), (3, 1), (1, 2)][seed % 4]
    size, window = rng.integers(1, 6, n), rng.integers(1, 4, n)
    a |= {
        "window_strides": tuple(int(v) for v in rng.integers(1, 4, n)),
        "lhs_dilation": tuple(int(v) for v in rng.integers(1, 3, n)),
        "rhs_dilation": tuple(int(v) for v in rng.integers(1, 3, n)),
        "padding": tuple((int(p), int(q)) for p, q in rng.integers(-1, 5, (n, 2))),
        "window_reversal": tuple(bool(v) for v in rng.integers(0, 2, n)),
        "feature_group_count": groups,
        "batch_group_count": batches,
    }
    inputs, outputs, batch = int(rng.integers(1, 4)), int(rng.integers(1, 4)) * groups * batches, 2 * batches
    x_shape, w_shape, o_shape = [0] * rank, [0] * rank, [0] * rank
    x_shape[a["input_batch_dimension"]], x_shape[a["input_feature_dimension"]] = batch, inputs * groups
    w_shape[a["kernel_input_feature_dimension"]], w_shape[a["kernel_output_feature_dimension"]] = inputs, outputs
    o_shape[a["output_batch_dimension"]], o_shape[a["output_feature_dimension"]] = batch // batches, outputs
    for d in range(n):
        x_shape[a["input_spatial_dimensions"][d]] = int(size[d])
        w_shape[a["kernel_spatial_dimensions"][d]] = int(window[d])
        padded = (size[d] - 1) * a["lhs_dilation"][d] + 1 + sum(a["padding"][d])
        reach = (window[d] - 1) * a["rhs_dilation"][d] + 1
        o_shape[a["output_spatial_dimensions"][d]] = (
            int((padded - reach) // a["window_strides"][d] + 1) if padded > 0 and reach <= padded else 0
        )
    x, w = rng.integers(-9, 9, x_shape).astype(dtype), rng.integers(-9, 9, w_shape).astype(dtype)
    a["type"] = TensorType(from_numpy(x.dtype), o_shape)
    return x, w, a


@pytest.mark.parametrize("seed", range(60))
def test_products_one_by_one(seed):
    x, w, a = random_convolution(seed)
    want = brute(x, w, a["type"].shape, a)
    np.testing.assert_array_equal(run_op(convolution, x, w, **a), want.astype(np.int32))


@pytest.mark.parametrize("seed", range(60))
def test_expansions_mean_the_same(seed):
    x, w, a = random_convolution(seed)

    expand = convolution.expand
    assert expand is not None

    def expanded(p, q):
        made = convolution(p, q, **a)
        for _ in range(3):
            attrs = made.attrs.own() if made.kind is convolution else {}
            made = (expand(*made.operands, **attrs) if attrs else None) or made
        return made

    f = region([TensorType(i32, x.shape), TensorType(i32, w.shape)], expanded)
    for o in f.ops:
        assert o.kind is not convolution or is_canonical(o.attrs.own(), o.tensor.rank)
    (got,) = run(f, [x, w])
    np.testing.assert_array_equal(got, run_op(convolution, x, w, **a))


def test_types_accumulate_widely_and_round_once():
    a = canonical_dimensions(3)
    x, w = np.ones((1, 600, 1), bf16.np), np.ones((600, 1, 1), bf16.np)
    got = run_op(convolution, x, w, type=TensorType(bf16, (1, 1, 1)), **a)
    assert float(got[0, 0, 0]) == 600.0
    x8, w8 = np.full((1, 1, 4), 100, np.int8), np.full((1, 4, 1), 100, np.int8)
    assert run_op(convolution, x8, w8, type=TensorType(i32, (1, 1, 1)), **a).tolist() == [[[40000]]]


def test_padding_is_not_multiplied():
    x, w = np.ones((1, 2, 1), np.float32), np.full((3, 1, 1), np.inf, np.float32)
    got = run_op(convolution, x, w, padding=((1, 1),), type=TensorType(f32, (1, 2, 1)), **canonical_dimensions(3))
    assert np.isposinf(got).all()


def test_unknown_sizes():
    x, w = TensorType(f32, (UNKNOWN, UNKNOWN, 2)), TensorType(f32, (3, 2, 4))
    t = TensorType(f32, (UNKNOWN, UNKNOWN, 4))
    assert convolution(parameter(0, x), parameter(1, w), type=t, **canonical_dimensions(3)).type is t


X, W = TensorType(f32, (4, 6, 4)), TensorType(f32, (3, 4, 8))
OUT = TensorType(f32, (4, 4, 8))
BAD: list[tuple[str, Any, dict[str, Any]]] = [
    ("C1", (X, TensorType(f32, (3, 4))), {}),
    ("C13", (TensorType(f32, (3,)), TensorType(f32, (3,))), {}),
    ("C2", (X, W), {"window_strides": (1, 1)}),
    ("C3", (X, W), {"window_strides": (0,)}),
    ("C4", (X, W), {"padding": ((0, 0), (0, 0))}),
    ("C5", (X, W), {"lhs_dilation": ()}),
    ("C6", (X, W), {"lhs_dilation": (0,)}),
    ("C7", (X, W), {"rhs_dilation": (1, 1)}),
    ("C8", (X, W), {"rhs_dilation": (-1,)}),
    ("C9", (X, W), {"window_reversal": (False, True)}),
    ("C10", (X, W), {"batch_group_count": 3}),
    ("C11", (X, W), {"feature_group_count": 3}),
    ("C12", (X, W), {"input_spatial_dimensions": ()}),
    ("C13", (X, W), {"input_spatial_dimensions": (0,)}),
    ("C13", (X, W), {"input_feature_dimension": 3}),
    ("C14", (X, TensorType(f32, (3, 3, 8))), {}),
    ("C15", (X, TensorType(f32, (3, 4, 7))), {"batch_group_count": 2}),
    ("C16", (X, TensorType(f32, (3, 2, 7))), {"feature_group_count": 2}),
    ("C17", (X, W), {"kernel_spatial_dimensions": (0, 1)}),
    ("C18", (X, W), {"kernel_input_feature_dimension": 2}),
    ("C19", (X, W), {"output_spatial_dimensions": ()}),
    ("C20", (X, W), {"output_batch_dimension": -1}),
    ("C21", (X, W), {"feature_group_count": 0}),
    ("C22", (X, W), {"batch_group_count": -1}),
    ("C23", (X, W), {"feature_group_count": 2, "batch_group_count": 2}),
    ("C24", (X, W), {"precision_config": ("DEFAULT",) * 3}),
    ("C25", (X, W), {"type": TensorType(f32, (4, 5, 8))}),
    ("C26", (X, W), {"type": TensorType(f32, (4, 4))}),
    ("C27", (X, TensorType(i32, (3, 4, 8))), {}),
    ("C27", (X, W), {"type": TensorType(i32, (4, 4, 8))}),
]


@pytest.mark.parametrize(("rule", "types", "attrs"), BAD)
def test_refusals(rule, types, attrs):
    refuses(rule, convolution, types, **{**canonical_dimensions(3), "type": OUT, **attrs})


def test_cost_counts_products():
    t = TensorType(f64, (1, 4, 8))
    assert convolution.cost is not None
    x, w = TensorType(f64, (1, 6, 4)), TensorType(f64, (3, 4, 8))
    flops, _ = convolution.cost(x, w, out=t, **canonical_dimensions(3))
    assert flops == 2 * prod(t.shape) * 12
