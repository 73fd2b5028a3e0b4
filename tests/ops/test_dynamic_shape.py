"""Ops whose shapes are operands: values, what they become when compiled, one refusal per constraint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op

import hilo
from hilo.ir.dtypes import f32, i32, i64
from hilo.ir.interpret import interpret
from hilo.ir.module import Module, region
from hilo.ir.op import Array
from hilo.ir.registry import lookup
from hilo.ir.types import UNKNOWN, TensorType
from hilo.ops.constant import constant
from hilo.ops.convolution import canonical_dimensions
from hilo.ops.dynamic_conv import dynamic_conv
from hilo.ops.dynamic_shape import (
    dynamic_broadcast_in_dim,
    dynamic_gather,
    dynamic_iota,
    dynamic_pad,
    dynamic_reshape,
    known,
    real_dynamic_slice,
    set_dimension_size,
)

X = np.arange(12, dtype=np.float32).reshape(3, 4)


def ints(*values: int, dtype: Any = np.int64) -> np.ndarray:
    return np.array(values, dtype)


def const(*values: int) -> Any:
    return constant(value=Array(ints(*values)))


def test_values_with_static_results():
    got = run_op(dynamic_reshape, X, ints(2, 6), type=TensorType(f32, (2, 6)))
    np.testing.assert_array_equal(got, X.reshape(2, 6))
    t = TensorType(f32, (2, 3, 4))
    got = run_op(dynamic_broadcast_in_dim, X, ints(2, 3, 4), broadcast_dimensions=(1, 2), type=t)
    np.testing.assert_array_equal(got, np.broadcast_to(X, (2, 3, 4)))
    got = run_op(dynamic_iota, ints(2, 3), iota_dimension=1, type=TensorType(i32, (2, 3)))
    np.testing.assert_array_equal(got, [[0, 1, 2]] * 2)
    got = run_op(real_dynamic_slice, X, ints(1, 0), ints(3, 4), ints(1, 2), type=TensorType(f32, (2, 2)))
    np.testing.assert_array_equal(got, X[1:3, 0:4:2])
    got = run_op(set_dimension_size, X, np.asarray(4, np.int32), dimension=1, type=TensorType(f32, (3, 4)))
    np.testing.assert_array_equal(got, X)
    attrs = {"offset_dims": (1,), "collapsed_slice_dims": (0,), "start_index_map": (0,), "index_vector_dim": 1}
    got = run_op(dynamic_gather, X, ints(2, 0), ints(1, 3), type=TensorType(f32, (2, 3)), **attrs)
    np.testing.assert_array_equal(got, X[[2, 0], :3])


@pytest.mark.parametrize("low", [(0, 2), (-1, 3), (5, -2)])
@pytest.mark.parametrize("interior", [(0, 0), (2, 1)])
def test_pads_are_those_of_pad(low, interior):
    high = (2, 1)
    pad = lookup("stablehlo.pad")
    seven = np.asarray(7, np.float32)
    want = run_op(pad, X, seven, edge_padding_low=low, edge_padding_high=high, interior_padding=interior)
    got = run_op(dynamic_pad, X, seven, ints(*low), ints(*high), ints(*interior),
                 type=TensorType(f32, want.shape))  # fmt: skip
    np.testing.assert_array_equal(got, want)


def test_unknown_sizes_come_from_the_operands():
    u = TensorType(f32, (UNKNOWN, UNKNOWN))
    assert lookup("stablehlo.dynamic_reshape").evaluate(X, ints(6, 2), type=u).shape == (6, 2)  # type: ignore[misc]
    assert dynamic_iota.evaluate(ints(3, 5), iota_dimension=0, type=u).shape == (3, 5)  # type: ignore[misc]
    assert real_dynamic_slice.evaluate(X, ints(0, 1), ints(3, 4), ints(2, 1), type=u).shape == (2, 3)  # type: ignore[misc]
    assert set_dimension_size.evaluate(X, np.int32(2), dimension=0, type=u).shape == (2, 4)  # type: ignore[misc]
    got = dynamic_pad.evaluate(X, np.float32(0), ints(1, 0), ints(0, 2), ints(1, 0), type=u)  # type: ignore[misc]
    assert got.shape == (6, 6)


def test_constants_become_static_ops():
    def build(x):
        s = real_dynamic_slice(x, const(0, 1), const(3, 3), const(2, 1), type=TensorType(f32, (2, 2)))
        p = dynamic_pad(s, constant(value=Array(np.float32(0))), const(0, 1), const(1, 0), const(0, 0),
                        type=TensorType(f32, (3, 3)))  # fmt: skip
        return dynamic_reshape(p, const(9), type=TensorType(f32, (9,)))

    m = Module({"main": region([TensorType(f32, (3, 4))], build, "main")})
    from hilo.passes.legalize import legalize

    names = {o.kind.name for o in legalize(m["main"]).ops}
    assert {"slice", "pad", "reshape"} <= names
    assert not any("dynamic" in n for n in names)
    np.testing.assert_array_equal(np.asarray(hilo.compile(m)(X)[0]), interpret(m, [X])[0])


@pytest.mark.parametrize("as_constant", [True, False])
def test_convolution_pads_at_run_time(as_constant):
    rng = np.random.default_rng(0)
    x, w = rng.integers(-5, 5, (2, 6, 3)).astype(np.float32), rng.integers(-5, 5, (2, 3, 4)).astype(np.float32)
    types = [TensorType(f32, x.shape), TensorType(f32, w.shape)]
    pads = np.array([[2, 1]])
    attrs = {**canonical_dimensions(3), "window_strides": (2,), "type": TensorType(f32, (2, 4, 4))}

    def build(p, q, *padding):
        return dynamic_conv(p, q, padding[0] if padding else constant(value=Array(pads)), **attrs)

    m = Module({"main": region(types if as_constant else [*types, TensorType(i64, (1, 2))], build, "main")})
    args = [x, w] if as_constant else [x, w, pads]
    want = run_op(lookup("stablehlo.convolution"), x, w, padding=((2, 1),), **attrs)
    np.testing.assert_array_equal(interpret(m, args)[0], want)
    np.testing.assert_array_equal(np.asarray(hilo.compile(m)(*args)[0]), want)


def test_known_values():
    size = lookup("stablehlo.get_dimension_size")
    found: list[Any] = []

    def build(x):
        n = size(x, dimension=1)
        found.append(known(lookup("stablehlo.add")(n, n)))
        found.append(known(x))
        return n

    region([TensorType(f32, (3, 4))], build)
    assert int(found[0]) == 8
    assert found[1] is None


T, V2, V1 = TensorType(f32, (3, 4)), TensorType(i64, (2,)), TensorType(i64, (1,))
S = TensorType(f32)
BAD: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = [
    ("C1", dynamic_reshape, (T, V1), {"type": TensorType(i32, (12,))}),
    ("C2", dynamic_reshape, (T, V1), {"type": TensorType(f32, (13,))}),
    ("C4", dynamic_reshape, (T, V2), {"type": TensorType(f32, (12,))}),
    ("C1", dynamic_broadcast_in_dim, (T, V2), {"type": TensorType(i32, (3, 4))}),
    ("C2", dynamic_broadcast_in_dim, (T, V2), {"broadcast_dimensions": (0,)}),
    ("C3", dynamic_broadcast_in_dim, (T, V2), {"broadcast_dimensions": (0, 2)}),
    ("C4", dynamic_broadcast_in_dim, (T, V2), {"broadcast_dimensions": (0, 0)}),
    ("C5", dynamic_broadcast_in_dim, (T, V2), {"broadcast_dimensions": (1, 0)}),
    ("C7", dynamic_broadcast_in_dim, (T, V1), {}),
    ("C8", dynamic_broadcast_in_dim, (T, V2),
     {"known_expanding_dimensions": (0,), "known_nonexpanding_dimensions": (0,)}),
    ("C9", dynamic_broadcast_in_dim, (T, V2), {"known_expanding_dimensions": (2,)}),
    ("C10", dynamic_broadcast_in_dim, (T, V2), {"known_nonexpanding_dimensions": (-1,)}),
    ("C1", dynamic_iota, (V1,), {"iota_dimension": 1, "type": TensorType(f32, (3,))}),
    ("C2", dynamic_iota, (V2,), {"iota_dimension": 0, "type": TensorType(f32, (3,))}),
    ("C1", dynamic_pad, (T, TensorType(i32), V2, V2, V2), {"type": T}),
    ("C2", dynamic_pad, (T, S, V2, V1, V2), {"type": T}),
    ("C4", dynamic_pad, (T, S, V2, V2, V2), {"type": TensorType(f32, (3,))}),
    ("I2", real_dynamic_slice, (T, V2, V1, V2), {"type": T}),
    ("C1", real_dynamic_slice, (T, V2, V2, V2), {"type": V2}),
    ("C1", set_dimension_size, (T, TensorType(i32)), {"dimension": 2, "type": T}),
    ("C2", set_dimension_size, (T, TensorType(i32)), {"dimension": 1, "type": TensorType(f32, (4, 4))}),
    ("I2", set_dimension_size, (T, V1), {"dimension": 1, "type": T}),
    ("C4", dynamic_conv, (TensorType(f32, (1, 4, 2)), TensorType(f32, (2, 2, 3)), V2),
     {**canonical_dimensions(3), "type": TensorType(f32, (1, 3, 3))}),
    ("C14", dynamic_conv, (TensorType(f32, (1, 4, 2)), TensorType(f32, (2, 3, 3)), TensorType(i64, (1, 2))),
     {**canonical_dimensions(3), "type": TensorType(f32, (1, 3, 3))}),
    ("C20", dynamic_gather, (T, V1, V1), {"type": T}),
    ("C23", dynamic_gather, (T, V1, V2), {"type": V2}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "kind", "types", "attrs"), BAD)
def test_refusals(rule, kind, types, attrs):
    if kind is dynamic_broadcast_in_dim:
        attrs = {"broadcast_dimensions": (0, 1), "type": T, **attrs}
    refuses(rule, kind, types, **attrs)
