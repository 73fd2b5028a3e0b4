"""Collectives of one process, interpreted and compiled; exchange with the host; one refusal per constraint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op, type_of

import hilo
from hilo.errors import Unsupported
from hilo.ir.dtypes import bf16, f32, f64, i32
from hilo.ir.interpret import interpret
from hilo.ir.module import Module, parameter, region
from hilo.ir.types import TOKEN, Results, TensorType
from hilo.ops import collective_sends as sends
from hilo.ops import collectives as c
from hilo.ops.elementwise_arith import add
from hilo.ops.host import infeed, outfeed, recv, send
from hilo.ops.reduce import body_of
from hilo.ops.tuples import create_token

X = np.arange(6, dtype=np.float32).reshape(2, 3)
T = TensorType(f32, (2, 3))
ADD = body_of(add, f32)
ONE = {"replica_groups": ((0,),)}


def both(kind: Any, *arrays: np.ndarray, **attrs: Any) -> list[Any]:
    m = Module({"main": region([type_of(x) for x in arrays], lambda *xs: kind(*xs, **attrs).results(), "main")})
    return [run_op(kind, *arrays, **attrs), hilo.compile(m)(*arrays)[0]]


@pytest.mark.parametrize(("kind", "attrs"), [
    (c.all_reduce, {**ONE, "computation": ADD}),
    (c.all_gather, {**ONE, "all_gather_dim": 1, "type": T}),
    (c.all_to_all, {**ONE, "split_dimension": 0, "concat_dimension": 1, "split_count": 1}),
    (c.reduce_scatter, {**ONE, "scatter_dimension": 0, "computation": ADD, "type": T}),
    (sends.collective_permute, {"source_target_pairs": ((0, 0),)}),
    (sends.collective_broadcast, ONE),
    (c.cross_replica_sum, ONE),
])  # fmt: skip
def test_a_process_alone_keeps_what_it_has(kind, attrs):
    for got in both(kind, X, **attrs):
        np.testing.assert_array_equal(np.asarray(got), X)


def test_a_process_that_nobody_sends_to_gets_zeros():
    for kind, attrs in ((sends.collective_permute, {"source_target_pairs": ()}),
                        (sends.collective_broadcast, {"replica_groups": ((1,),)})):  # fmt: skip
        for got in both(kind, X, **attrs):
            np.testing.assert_array_equal(np.asarray(got), 0 * X)


def test_reductions_may_promote():
    x = np.ones((3,), bf16.np)
    for got in both(c.all_reduce, x, replica_groups=(), computation=ADD):
        assert np.asarray(got).dtype == np.float32
    two = c.all_reduce(parameter(0, T), parameter(1, T), computation=ADD, **ONE)
    assert two.type is Results([T, T])


def test_several_processes_are_refused_at_run_time():
    for kind, attrs in ((c.all_reduce, {"replica_groups": ((0, 1),), "computation": ADD}),
                        (sends.collective_permute, {"source_target_pairs": ((0, 1), (1, 0))})):  # fmt: skip
        m = Module({"main": region([T], lambda x, k=kind, a=attrs: k(x, **a), "main")})
        for run in (lambda m=m: interpret(m, [X]), lambda m=m: hilo.compile(m)):
            with pytest.raises(Unsupported, match="several processes"):
                run()


def test_queues_are_refused_at_run_time():
    f = region([T], lambda x: outfeed(x, infeed(create_token(), type=TOKEN), outfeed_config="c"))
    m = Module({"main": f.replace(results=f.params, name="main")})
    for run in (lambda: interpret(m, [X]), lambda: hilo.compile(m)(X)):
        with pytest.raises(Unsupported, match=r"stablehlo\.infeed: there is no queue"):
            run()


G = {"replica_groups": ((0, 1), (2, 3))}
TWO = {"split_dimension": 0, "concat_dimension": 0, "split_count": 2}
SCATTER = {**G, "scatter_dimension": 0, "computation": ADD, "type": T}
BAD: list[tuple[str, Any, tuple[Any, ...], dict[str, Any]]] = [
    ("C1", c.all_reduce, (T,), {"replica_groups": ((0, 0),), "computation": ADD}),
    ("C3", c.all_reduce, (T,), {"replica_groups": ((0, 2),), "computation": ADD}),
    ("C4", c.all_reduce, (T,), {**G, "computation": ADD, "use_global_device_ids": True, "channel_handle": (0, 1)}),
    ("C5", c.all_reduce, (T,), {**G, "computation": body_of(add, i32)}),
    ("C1", c.all_gather, (T,), {**G, "all_gather_dim": 2, "type": T}),
    ("C2", c.all_gather, (T,), {"replica_groups": ((1, 1),), "all_gather_dim": 0, "type": T}),
    ("C4", c.all_gather, (T,), {"replica_groups": ((-1, 0),), "all_gather_dim": 0, "type": T}),
    ("C5", c.all_gather, (T,), {**G, "all_gather_dim": 0, "type": T, "use_global_device_ids": True}),
    ("C6", c.all_gather, (T,), {**G, "all_gather_dim": 0, "type": TensorType(f32, (3, 3))}),
    ("C1", c.all_to_all, (T,), {**G, "split_dimension": 2, "concat_dimension": 0, "split_count": 2}),
    ("C2", c.all_to_all, (T,), {**G, "split_dimension": 1, "concat_dimension": 0, "split_count": 2}),
    ("C3", c.all_to_all, (T,), {**G, "split_dimension": 0, "concat_dimension": -1, "split_count": 2}),
    ("C4", c.all_to_all, (T,), {**G, "split_dimension": 0, "concat_dimension": 0, "split_count": 0}),
    ("C5", c.all_to_all, (T,), {**TWO, "replica_groups": ((0, 0),)}),
    ("C7", c.all_to_all, (T,), {**TWO, "replica_groups": ((0, 5),)}),
    ("C8", c.all_to_all, (T,), {**G, "split_dimension": 1, "concat_dimension": 0, "split_count": 3}),
    ("C1", c.reduce_scatter, (T,), {**SCATTER, "scatter_dimension": 1, "type": TensorType(f32, (2, 2))}),
    ("C2", c.reduce_scatter, (T,), {**SCATTER, "scatter_dimension": 2}),
    ("C3", c.reduce_scatter, (T,), {**SCATTER, "replica_groups": ((0, 0),)}),
    ("C5", c.reduce_scatter, (T,), {**SCATTER, "replica_groups": ((0, 3),)}),
    ("C6", c.reduce_scatter, (T,), {**SCATTER, "use_global_device_ids": True}),
    ("C7", c.reduce_scatter, (T,), {**G, "scatter_dimension": 0, "computation": body_of(add, i32), "type": T}),
    ("C8", c.reduce_scatter, (T,), {**SCATTER, "type": TensorType(f32, (1, 2))}),
    ("C9", c.reduce_scatter, (T,), {**SCATTER, "type": TensorType(f64, (1, 3))}),
    ("C1", sends.collective_permute, (T,), {"source_target_pairs": ((0, 1, 2),)}),
    ("C2", sends.collective_permute, (T,), {"source_target_pairs": ((0, 1), (0, 2))}),
    ("C3", sends.collective_permute, (T,), {"source_target_pairs": ((0, 1), (2, 1))}),
    ("C4", sends.collective_permute, (T,), {"source_target_pairs": ((0, -1),)}),
    ("C1", sends.collective_broadcast, (T,), {"replica_groups": ((2, 2),)}),
    ("C2", sends.collective_broadcast, (T,), {"replica_groups": ((-1,),)}),
    ("C3", sends.collective_broadcast, (), {"replica_groups": ((0,),)}),
    ("C4", sends.collective_broadcast, (T, T), {"replica_groups": ((0,),), "has_dynamic_root": True}),
    ("I1", infeed, (T,), {"type": Results([TOKEN])}),
    ("C1", infeed, (TOKEN,), {"type": Results([])}),
    ("C2", infeed, (TOKEN,), {"type": Results([TOKEN, TOKEN])}),
    ("C3", infeed, (TOKEN,), {"type": Results([T])}),
    ("I1", outfeed, (T,), {}),
    *((f"C{i}", kind, operands, {"channel_handle": (1, 1), "source_target_pairs": pairs, **more})
      for kind, operands, more in ((send, (T, TOKEN), {}), (recv, (TOKEN,), {"type": Results([T, TOKEN])}))
      for i, pairs in ((1, ((0,),)), (2, ((0, 1), (0, 2))), (3, ((0, 1), (2, 1))), (4, ((0, -1),)))),
    ("C5", send, (T, TOKEN), {"channel_handle": (1, 1), "is_host_transfer": True}),
    ("C5", recv, (TOKEN,), {"channel_handle": (1, 2), "type": Results([TOKEN])}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "kind", "types", "attrs"), BAD)
def test_refusals(rule, kind, types, attrs):
    refuses(rule, kind, types, **attrs)
