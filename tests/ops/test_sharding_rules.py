"""Sharding rules: one letter per axis of every operand and result of every example, and some by hand."""

from __future__ import annotations

import pytest

import hilo.ops  # noqa: F401
from hilo.ir.dtypes import f32, i32, u64
from hilo.ir.module import parameter
from hilo.ir.registry import REGISTRY
from hilo.ir.types import Results, TensorType, result_types
from hilo.ops.concat_pad import concatenate
from hilo.ops.elementwise_arith import add
from hilo.ops.gather import gather
from hilo.ops.random import rng_bit_generator
from hilo.ops.reduce import body_of, reduce
from hilo.ops.scatter import scatter
from hilo.ops.sharding import axis_names
from hilo.ops.slicing import dynamic_update_slice


def rule(kind, types, attrs) -> str:
    o = kind(*(parameter(i, t) for i, t in enumerate(types)), **attrs)
    if isinstance(kind.sharding, str):
        return kind.sharding
    return kind.sharding(*types, out=o.type, **o.attrs.own())


def ranks(types) -> list[int]:
    return [t.rank if isinstance(t, TensorType) else 0 for t in types]


STRUCTURAL = [k for k in REGISTRY.values() if k.examples and k.dialect == "stablehlo"]


@pytest.mark.parametrize("kind", STRUCTURAL, ids=lambda k: k.name)
def test_rules_fit_the_shapes(kind):
    for types, attrs in kind.examples:
        o = kind(*(parameter(i, t) for i, t in enumerate(types)), **attrs)
        left, right = rule(kind, types, attrs).split("->")
        for part, ts in ((left, types), (right, result_types(o.type))):
            assert [len(p) for p in part.split(",")] == (ranks(ts) or [0]), (types, attrs)


def test_names_are_distinct_however_many():
    assert len(set(axis_names(1300))) == 1300


def test_some_rules():
    x, y, s = TensorType(f32, (5, 3)), TensorType(f32, (4, 3)), TensorType(i32, (4, 1))
    rows = {
        "scatter_dims_to_operand_dims": (0,),
        "index_vector_dim": 1,
        "inserted_window_dims": (0,),
        "update_window_dims": (1,),
    }
    assert rule(scatter, (x, s, y), {**rows, "update_computation": body_of(add, f32)}) == "ab,cd,cb->ab"
    take = {
        "offset_dims": (1,),
        "collapsed_slice_dims": (0,),
        "start_index_map": (0,),
        "index_vector_dim": 1,
        "slice_sizes": (1, 3),
    }
    assert rule(gather, (x, s), take) == "ab,cd->cb"
    assert rule(reduce, (x, TensorType(f32)), {"dimensions": (0,), "body": body_of(add, f32)}) == "ab,->b"
    assert rule(concatenate, (x, x), {"dimension": 0}) == "ba,ca->da"
    assert (
        rule(dynamic_update_slice, (x, TensorType(f32, (1, 3)), TensorType(i32), TensorType(i32)), {}) == "cb,ab,,->cb"
    )
    state = TensorType(u64, (2,))
    assert rule(rng_bit_generator, (state,), {"rng_algorithm": "PHILOX", "type": Results([state, x])}) == "a->b,cd"
