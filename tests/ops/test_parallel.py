"""Collectives over grids of processes, against the specification's words in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from op_runs import type_of

import hilo
from hilo.errors import Error, Unsupported, VerifyError
from hilo.ir.dtypes import bf16, f32, f64, i32
from hilo.ir.module import Function, Module, region
from hilo.ir.op import Op
from hilo.ir.process import Grid
from hilo.ir.types import TensorType
from hilo.ops import collective_sends as sends
from hilo.ops import collectives as c
from hilo.ops.collective_reduce import collective_reduce
from hilo.ops.elementwise_arith import add, maximum, multiply, subtract
from hilo.ops.groups import BOTH, FLAT, PARTITION, REPLICA, group_of
from hilo.ops.mesh import groups_along
from hilo.ops.reduce import body_of
from hilo.ops.tuples import partition_id, replica_id

GRIDS: list[Any] = [(2, 2), (3, 1), (1, 3), (2, 3), (1, 1), (3, 2)]
NO_CHANNEL, ON_CHANNEL = None, (1, 0)


def module(build: Callable[..., Any], *types: Any) -> Module:
    return Module({"main": region(types, build, "main")})


def spread(grid: Any, shape: tuple[int, ...], dtype: Any = np.float32) -> list[np.ndarray]:
    """Values that differ in each process."""
    rng = np.random.default_rng(0)
    return [rng.integers(-9, 9, shape).astype(dtype) for _ in range(grid[0] * grid[1])]


def run(kind: Any, arrays: list[Any], *grid: int, **attrs: Any) -> list[list[np.ndarray]]:
    inputs = [a if isinstance(a, tuple) else (a,) for a in arrays]
    m = module(lambda *xs: _values(kind(*xs, **attrs)), *map(type_of, inputs[0]))
    return hilo.interpret_parallel(m, inputs, replicas=grid[0], partitions=grid[1])


def _values(o: Op) -> tuple[Op, ...]:
    return o.results()


def grouped(how: str, groups: Any, replicas: int, partitions: int) -> list[list[int]]:
    """The strategies of the specification, as numbers of processes."""
    if how == REPLICA:
        return [[r * partitions + p for r in g] for g in groups for p in range(partitions)]
    if how == PARTITION:
        return [[r * partitions + p for p in g] for g in groups for r in range(replicas)]
    if how == BOTH:
        return [[r * partitions + p for p in range(partitions) for r in g] for g in groups]
    return [list(g) for g in groups]


def strategies(replicas: int, partitions: int) -> list[tuple[str, Any, dict[str, Any]]]:
    """(strategy, groups, attributes) that cover a grid: all in one, and as many as there are."""
    out: list[tuple[str, Any, dict[str, Any]]] = []
    for how, n, attrs in (
        (REPLICA, replicas, {"channel_handle": NO_CHANNEL}), (BOTH, replicas, {"channel_handle": ON_CHANNEL}),
        (FLAT, replicas * partitions, {"channel_handle": ON_CHANNEL, "use_global_device_ids": True}),
    ):  # fmt: skip
        out += [(how, (tuple(reversed(range(n))),), attrs), (how, tuple((k,) for k in range(n)), attrs)]
        if n % 2 == 0 and n > 2:
            out.append((how, tuple((k, k + n // 2) for k in range(n // 2)), attrs))
    return out


@pytest.mark.parametrize("grid", GRIDS)
def test_groups(grid):
    for how, groups, _ in [*strategies(*grid), (PARTITION, (tuple(range(grid[1])),), {})]:
        wanted = grouped(how, groups, *grid)

        def group(p, how=how, groups=groups):
            return group_of(p, how, groups, "C1", "C2")

        for n, got in enumerate(Grid(*grid).run(group)):
            assert got is not None
            assert [r * grid[1] + p for r, p in got] == next(g for g in wanted if n in g)


def test_the_examples_of_the_specification():
    def flat(how: str, groups: Any, replicas: int, partitions: int) -> set[Any]:
        return set(Grid(replicas, partitions).run(lambda p: group_of(p, how, groups, "C1")))

    pairs = ((0, 1), (2, 3))
    assert flat(REPLICA, pairs, 4, 2) == {((0, 0), (1, 0)), ((0, 1), (1, 1)), ((2, 0), (3, 0)), ((2, 1), (3, 1))}
    assert flat(PARTITION, ((0, 1),), 4, 2) == {((r, 0), (r, 1)) for r in range(4)}
    assert flat(BOTH, pairs, 4, 2) == {((0, 0), (1, 0), (0, 1), (1, 1)), ((2, 0), (3, 0), (2, 1), (3, 1))}
    halves = ((0, 1, 2, 3), (4, 5, 6, 7))
    assert flat(FLAT, halves, 4, 2) == {((0, 0), (0, 1), (1, 0), (1, 1)), ((2, 0), (2, 1), (3, 0), (3, 1))}


@pytest.mark.parametrize("grid", GRIDS)
def test_ids(grid):
    m = module(lambda: (replica_id(), partition_id()))
    got = hilo.interpret_parallel(m, [()] * (grid[0] * grid[1]), replicas=grid[0], partitions=grid[1])
    assert [tuple(map(int, each)) for each in got] == list(product(range(grid[0]), range(grid[1])))
    assert {x.dtype for each in got for x in each} == {np.dtype(np.uint32)}


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("axis", [0, 1])
def test_all_gather(grid, axis):
    xs = spread(grid, (2, 3))
    for how, groups, attrs in strategies(*grid):
        for g in grouped(how, groups, *grid):
            want = np.concatenate([xs[k] for k in g], axis)
            got = run(c.all_gather, xs, *grid, all_gather_dim=axis, replica_groups=groups,
                      type=TensorType(f32, want.shape), **attrs)  # fmt: skip
            for k in g:
                np.testing.assert_array_equal(got[k][0], want)


@pytest.mark.parametrize("grid", GRIDS)
def test_all_reduce_with_any_body(grid):
    """`a - b` and `2ab + a` neither commute nor associate: a chain from the left, in the group's order."""
    odd = region([TensorType(f32)] * 2, lambda a, b: add(multiply(add(a, a), b), a))
    for body, f in ((body_of(add, f32), lambda a, b: a + b), (body_of(maximum, f32), np.maximum),
                    (body_of(subtract, f32), lambda a, b: a - b), (odd, lambda a, b: (a + a) * b + a)):  # fmt: skip
        xs = spread(grid, (2, 3))
        for how, groups, attrs in strategies(*grid):
            got = run(c.all_reduce, xs, *grid, replica_groups=groups, computation=body, **attrs)
            for g in grouped(how, groups, *grid):
                want = xs[g[0]]
                for k in g[1:]:
                    want = f(want, xs[k])
                for k in g:
                    np.testing.assert_array_equal(got[k][0], want)


def test_all_reduce_of_several_and_promotion():
    xs = [(np.full((2,), k + 1, np.float32), np.full((3,), k + 5, np.float32)) for k in range(3)]
    got = run(c.all_reduce, xs, 3, 1, replica_groups=((0, 1, 2),), computation=body_of(add, f64))
    for a, b in got:
        assert (a.tolist(), b.tolist(), a.dtype) == ([6, 6], [18, 18, 18], np.float64)
    halves = [np.full((2,), 2.0**k, bf16.np) for k in (0, 8)]  # 257 is no bf16
    (a, *_), _ = run(c.all_reduce, halves, 2, 1, replica_groups=(), computation=body_of(add, f32))
    assert (a.dtype, a.tolist()) == (np.float32, [257, 257])


def test_groups_that_are_not_uniform():
    """Rows are filled up with -1."""
    xs = spread((3, 1), (2,))
    got = run(c.all_reduce, xs, 3, 1, replica_groups=((0, 2), (1, -1)), computation=body_of(add, f32))
    np.testing.assert_array_equal(got[0][0], xs[0] + xs[2])
    np.testing.assert_array_equal(got[1][0], xs[1])
    np.testing.assert_array_equal(got[2][0], xs[0] + xs[2])


@pytest.mark.parametrize("grid", [(2, 2), (2, 3), (3, 2)])
def test_no_groups_are_one_of_everybody(grid):
    xs = spread(grid, (2,))
    got = run(c.all_reduce, xs, *grid, replica_groups=(), computation=body_of(add, f32))
    for n, (each,) in enumerate(got):
        np.testing.assert_array_equal(each, sum(xs[n % grid[1] :: grid[1]]))
    got = run(c.all_reduce, xs, *grid, replica_groups=(), computation=body_of(add, f32), channel_handle=ON_CHANNEL)
    for (each,) in got:
        np.testing.assert_array_equal(each, sum(xs))


@pytest.mark.parametrize("grid", [(2, 2), (3, 1), (1, 3), (2, 3)])
@pytest.mark.parametrize(("split", "concat"), list(product((0, 1), (0, 1))))
def test_all_to_all(grid, split, concat):
    xs = spread(grid, (6, 6))
    for channel, how in ((NO_CHANNEL, REPLICA), (ON_CHANNEL, PARTITION)):
        n = grid[0] if channel is None else grid[1]
        for groups in ((tuple(reversed(range(n))),), tuple((k,) for k in range(n))):
            count = len(groups[0])
            got = run(c.all_to_all, xs, *grid, split_dimension=split, concat_dimension=concat, split_count=count,
                      replica_groups=groups, channel_handle=channel)  # fmt: skip
            for g in grouped(how, groups, *grid):
                for place, k in enumerate(g):
                    want = np.concatenate([np.split(xs[s], count, split)[place] for s in g], concat)
                    np.testing.assert_array_equal(got[k][0], want)


@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("axis", [0, 1])
def test_reduce_scatter(grid, axis):
    for how, groups, attrs in strategies(*grid):
        wanted = grouped(how, groups, *grid)
        n = len(wanted[0])
        shape = [2, 2]
        shape[axis] = 2 * n
        xs = spread(grid, tuple(shape))
        got = run(c.reduce_scatter, xs, *grid, scatter_dimension=axis, replica_groups=groups,
                  computation=body_of(subtract, f32), type=TensorType(f32, (2, 2)), **attrs)  # fmt: skip
        for g in wanted:
            whole = xs[g[0]] - sum((xs[k] for k in g[1:]), np.zeros(shape, np.float32))
            for place, k in enumerate(g):
                np.testing.assert_array_equal(got[k][0], np.split(whole, n, axis)[place])


def test_collective_permute():
    xs = spread((4, 1), (2, 2))
    pairs = ((0, 1), (1, 2), (3, 3))
    for grid, channel in (((4, 1), NO_CHANNEL), ((1, 4), ON_CHANNEL)):
        attrs = {"source_target_pairs": pairs, "channel_handle": channel}
        got = [x for (x,) in run(sends.collective_permute, xs, *grid, **attrs)]
        for n, want in enumerate((0 * xs[0], xs[0], xs[1], xs[3])):
            np.testing.assert_array_equal(got[n], want)
    ring = run(sends.collective_permute, xs, 4, 1, source_target_pairs=((0, 1), (1, 2), (2, 3), (3, 0)))
    for n in range(4):
        np.testing.assert_array_equal(ring[n][0], xs[n - 1])
    none = run(sends.collective_permute, xs, 4, 1, source_target_pairs=())
    assert not any(x.any() for (x,) in none)
    xs = spread((2, 2), (2,))  # each column of the grid for itself
    got = run(sends.collective_permute, xs, 2, 2, source_target_pairs=((0, 1),))
    for n, want in enumerate((0 * xs[0], 0 * xs[0], xs[0], xs[1])):
        np.testing.assert_array_equal(got[n][0], want)


def test_collective_broadcast():
    xs = spread((4, 1), (1, 2))
    got = run(sends.collective_broadcast, xs, 4, 1, replica_groups=((2, 1),))
    for n, want in enumerate((0 * xs[0], xs[2], xs[2], 0 * xs[0])):
        np.testing.assert_array_equal(got[n][0], want)
    attrs = {"replica_groups": ((1, 0),), "channel_handle": ON_CHANNEL}
    got = run(sends.collective_broadcast, spread((2, 2), (2,)), 2, 2, **attrs)
    xs = spread((2, 2), (2,))
    for n, want in enumerate((xs[1], xs[1], xs[3], xs[3])):
        np.testing.assert_array_equal(got[n][0], want)


def test_collective_broadcast_with_a_root_of_its_own_for_each_operand():
    arrays = [(np.full((2,), k, np.float32), np.full((1,), 10 + k, np.float32), np.array([2, 0], np.int32))
              for k in range(3)]  # fmt: skip
    got = run(sends.collective_broadcast, arrays, 3, 1, replica_groups=((1, 2, 0),), has_dynamic_root=True)
    for a, b in got:
        assert (a.tolist(), b.tolist()) == ([0, 0], [11])
    wrong = [(x, y, np.array([3, 0], np.int32)) for x, y, _ in arrays]
    with pytest.raises(VerifyError, match="C6"):
        run(sends.collective_broadcast, wrong, 3, 1, replica_groups=((1, 2, 0),), has_dynamic_root=True)


def test_collective_reduce():
    xs = spread((4, 1), (2,))
    attrs = {"computation": body_of(subtract, f32)}
    got = run(collective_reduce, xs, 4, 1, replica_groups=((2, 0),), **attrs)
    for n, want in enumerate((0 * xs[0], 0 * xs[0], xs[2] - xs[0], 0 * xs[0])):
        np.testing.assert_array_equal(got[n][0], want)
    rooted = [(x, np.array([1], np.int32)) for x in xs]
    got = run(collective_reduce, rooted, 4, 1, replica_groups=((2, 0),), has_dynamic_root=True, **attrs)
    for n, want in enumerate((xs[2] - xs[0], 0 * xs[0], 0 * xs[0], 0 * xs[0])):
        np.testing.assert_array_equal(got[n][0], want)


def test_cross_replica_sum():
    xs = spread((2, 2), (2,))
    got = run(c.cross_replica_sum, xs, 2, 2, replica_groups=((0, 1),))
    for n, (x,) in enumerate(got):
        np.testing.assert_array_equal(x, xs[n % 2] + xs[n % 2 + 2])


def test_zero_sizes():
    xs = [np.zeros((0, 3), np.float32)] * 2
    (x,), _ = run(c.all_gather, xs, 2, 1, all_gather_dim=0, replica_groups=((0, 1),), type=TensorType(f32, (0, 3)))
    assert x.shape == (0, 3)
    (x,), _ = run(c.all_reduce, xs, 2, 1, replica_groups=((0, 1),), computation=body_of(add, f32))
    assert x.shape == (0, 3)


CASES: list[tuple[str, Any, dict[str, Any], tuple[int, int]]] = [
    ("C3", c.all_reduce, {"replica_groups": ((0, 1),), "computation": body_of(add, f32)}, (1, 2)),
    ("C2", c.all_reduce, {"replica_groups": ((0,),), "computation": body_of(add, f32)}, (2, 1)),
    ("C2", c.all_reduce, {"replica_groups": ((0, 1),), "computation": body_of(add, f32), "channel_handle": (1, 0),
                          "use_global_device_ids": True}, (2, 2)),
    ("C3", c.all_gather, {"replica_groups": ((0,),), "all_gather_dim": 0, "type": TensorType(f32, (4,))}, (2, 1)),
    ("C4", c.all_gather, {"replica_groups": ((0, 1),), "all_gather_dim": 0, "type": TensorType(f32, (8,))}, (1, 1)),
    ("C6", c.all_gather, {"replica_groups": ((0, 1),), "all_gather_dim": 0, "type": TensorType(f32, (4,))}, (2, 1)),
    ("C6", c.all_to_all, {"replica_groups": ((0, 1),), "split_dimension": 0, "concat_dimension": 0,
                          "split_count": 2}, (4, 1)),
    ("C7", c.all_to_all, {"replica_groups": ((0, 1),), "split_dimension": 0, "concat_dimension": 0,
                          "split_count": 2, "channel_handle": (1, 0)}, (2, 1)),
    ("C1", c.reduce_scatter, {"replica_groups": ((0, 1, 2),), "scatter_dimension": 0, "channel_handle": (1, 0),
                              "computation": body_of(add, f32), "type": TensorType(f32, (2,))}, (3, 1)),
    ("C4", c.reduce_scatter, {"replica_groups": ((0, 1),), "scatter_dimension": 0, "computation": body_of(add, f32),
                              "type": TensorType(f32, (2,))}, (3, 1)),
    ("C5", c.reduce_scatter, {"replica_groups": ((0, 1),), "scatter_dimension": 0, "computation": body_of(add, f32),
                              "type": TensorType(f32, (2,))}, (1, 1)),
    ("C8", c.reduce_scatter, {"replica_groups": ((0, 1),), "scatter_dimension": 0, "channel_handle": (1, 0),
                              "computation": body_of(add, f32), "type": TensorType(f32, (4,))}, (2, 1)),
    ("C4", sends.collective_permute, {"source_target_pairs": ((0, 2),)}, (2, 2)),
    ("C4", sends.collective_permute, {"source_target_pairs": ((0, 1),), "channel_handle": (1, 0)}, (2, 1)),
    ("C2", sends.collective_broadcast, {"replica_groups": ((0, 5),)}, (2, 2)),
    ("C2", collective_reduce, {"replica_groups": ((0, 5),), "computation": body_of(add, f32)}, (2, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "kind", "attrs", "grid"), CASES)
def test_what_only_a_grid_can_break(rule, kind, attrs, grid):
    with pytest.raises(VerifyError) as e:
        run(kind, spread(grid, (4,)), *grid, **attrs)
    assert (e.value.rule, e.value.op) == (rule, kind.full_name), e.value


def programs(**functions: Function) -> Module:
    return Module({k: f.replace(name=k) for k, f in functions.items()})


def summing(shape: tuple[int, ...] = (2,), dtype: Any = f32, channel: Any = None) -> Function:
    t = TensorType(dtype, shape)
    return region([t], lambda x: c.all_reduce(x, replica_groups=(), computation=body_of(add, dtype),
                                              channel_handle=channel))  # fmt: skip


def test_processes_that_differ():
    gathering = region([TensorType(f32, (2,))], lambda x: c.all_gather(
        x, all_gather_dim=0, replica_groups=(), type=TensorType(f32, (4,))))  # fmt: skip
    keeping = region([TensorType(f32, (2,))], lambda x: x)
    x = np.ones((2,), np.float32)
    m = programs(a=summing(), b=summing((3,)), c=summing(dtype=f64), d=gathering, e=keeping)
    same = hilo.interpret_parallel(m, [[x], [x]], replicas=2, entry=["a", "a"])
    assert [r.tolist() for (r,) in same] == [[2, 2], [2, 2]]
    for other, y, words in (("b", np.ones((3,), np.float32), r"operand 0 is float32\[\d\] in process"),
                            ("c", np.ones((2,)), r"operand 0 is float\d\d\[2\] in process"),
                            ("d", x, r"would wait for ever in stablehlo.all_reduce for \(1, 0\); "
                                     r"\(1, 0\) waits in stablehlo.all_gather for \(0, 0\)"),
                            ("e", x, r"would wait for ever .* \(1, 0\) has ended")):  # fmt: skip
        with pytest.raises(Error, match=words) as e:
            hilo.interpret_parallel(m, [[x], [y]], replicas=2, entry=["a", other])
        assert e.value.op == "stablehlo.all_reduce" or other in "bc"


def test_what_does_not_fit_the_grid():
    m = programs(main=summing())
    x = np.ones((2,), np.float32)
    with pytest.raises(Error, match=r"1 lists of arguments for 4 processes \(2 replicas by 2 partitions\)"):
        hilo.interpret_parallel(m, [[x]], replicas=2, partitions=2)
    with pytest.raises(Error, match=r"process \(1, 0\): @main takes 1 arguments, but got 0"):
        hilo.interpret_parallel(m, [[x], []], replicas=2)
    with pytest.raises(Error, match=r"process \(0, 1\): argument 0 of @main is i32\[2\]"):
        hilo.interpret_parallel(m, [[x], [x.astype(i32.np)]], partitions=2)
    with pytest.raises(Error, match="no function @f; there are @main"):
        hilo.interpret_parallel(m, [[x]], entry=["f"])
    with pytest.raises(Error, match="2 functions for 1 processes"):
        hilo.interpret_parallel(m, [[x]], entry=["main", "main"])
    with pytest.raises(Unsupported, match="interpret_parallel"):
        hilo.interpret(programs(main=region([TensorType(f32)], lambda x: c.all_reduce(
            x, replica_groups=((0, 1),), computation=body_of(add, f32)))), np.float32(1))  # fmt: skip


def test_collectives_in_loops_and_quantized():
    text = """
    func.func @main(%n: tensor<i32>, %x: tensor<2x!quant.uniform<i8:f32, 0.5:3>>)
        -> (tensor<i32>, tensor<2x!quant.uniform<i8:f32, 0.5:3>>) {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %r:2 = stablehlo.while(%i = %zero, %s = %n) : tensor<i32>, tensor<i32>
      cond {
        %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %t = "stablehlo.all_reduce"(%s) ({
          ^bb0(%a: tensor<i32>, %b: tensor<i32>):
            %m = stablehlo.add %a, %b : tensor<i32>
            stablehlo.return %m : tensor<i32>
        }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<i32>) -> tensor<i32>
        %j = stablehlo.add %i, %one : tensor<i32>
        stablehlo.return %j, %t : tensor<i32>, tensor<i32>
      }
      %p = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}
          : (tensor<2x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<2x!quant.uniform<i8:f32, 0.5:3>>
      return %r#1, %p : tensor<i32>, tensor<2x!quant.uniform<i8:f32, 0.5:3>>
    }"""
    x = np.array([7, -7], np.int8)
    three = np.int32(3)
    got = hilo.interpret_parallel(text, [[three, x], [three, x]], replicas=2)
    assert [int(n) for n, _ in got] == [24, 24]
    assert got[1][1].tolist() == [7, -7]
    assert got[0][1].tolist() == [3, 3]  # zero, quantized


# -- groups along the axes of a mesh
def axes_of(mesh: str, *axes: str) -> str:
    refs = ", ".join(f"#stablehlo.axis_ref<{a}>" for a in axes)
    return f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{refs}]>"


def inline(axes: dict[str, int], ids: str = "") -> str:
    text = ", ".join(f'#stablehlo.mesh_axis<name = "{k}", size = {n}>' for k, n in axes.items())
    return f"#stablehlo.mesh<axes = [{text}]{ids}>"


X, Y = 'name = "x"', 'name = "y"'
XY = {"x": 2, "y": 3}


@pytest.mark.parametrize(("text", "want"), [
    (axes_of(inline(XY), X), [[0, 3], [1, 4], [2, 5]]),
    (axes_of(inline(XY), Y), [[0, 1, 2], [3, 4, 5]]),
    (axes_of(inline(XY), X, Y), [[0, 1, 2, 3, 4, 5]]),
    (axes_of(inline(XY), Y, X), [[0, 3, 1, 4, 2, 5]]),
    (axes_of(inline(XY)), [[0], [1], [2], [3], [4], [5]]),
    (axes_of(inline({"x": 2, "y": 2}, ", device_ids = dense<[0, 2, 1, 3]> : tensor<4xi64>"), X), [[0, 1], [2, 3]]),
    (axes_of(inline({}, ", device_ids = dense<0> : tensor<1xi64>")), [[0]]),
    (axes_of(inline({"x": 4}), 'name = "x", sub_axis_info = (1)2'), [[0, 2], [1, 3]]),
    (axes_of(inline({"x": 4}), 'name = "x", sub_axis_info = (2)2'), [[0, 1], [2, 3]]),
    (axes_of(inline({"x": 8}), 'name = "x", sub_axis_info = (4)2', 'name = "x", sub_axis_info = (1)2'),
     [[0, 4, 1, 5], [2, 6, 3, 7]]),
])  # fmt: skip
def test_axes_of_a_mesh(text, want):
    assert [list(g) for g in groups_along(text, None)] == want


@pytest.mark.parametrize(("text", "words"), [
    (axes_of(inline(XY), 'name = "z"'), "no axis 'z'; it has x, y"),
    (axes_of(inline(XY), X, X), "overlap"),
    (axes_of(inline({"x": 4}), 'name = "x", sub_axis_info = (1)3'), "do not divide its size 4"),
    (axes_of(inline({"x": 4}), 'name = "x", sub_axis_info = (4)2'), "do not divide its size 4"),
    (axes_of(inline({"x": 4}, ", device_ids = dense<[0, 1]> : tensor<2xi64>"), X), "4 devices lists 2"),
    (axes_of(inline({"x": 1 << 40}), X), "too large"),
    (axes_of("@mesh", X), "@mesh, which is not known here"),
])  # fmt: skip
def test_axes_that_a_mesh_does_not_have(text, words):
    with pytest.raises(Error, match=words):
        groups_along(text, None)


@pytest.mark.parametrize("mesh", ["@m", inline({"x": 2, "y": 2}, ", device_ids = dense<[0, 2, 1, 3]> : tensor<4xi64>")])
def test_collectives_along_axes(mesh):
    text = f"""module {{
      sdy.mesh @m = <["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>
      func.func @main(%x: tensor<1xf32>) -> tensor<2xf32> {{
        %y = "stablehlo.all_gather"(%x) {{all_gather_dim = 0 : i64, replica_groups = {axes_of(mesh, X)}}}
            : (tensor<1xf32>) -> tensor<2xf32>
        return %y : tensor<2xf32>
      }}
    }}"""
    got = hilo.interpret_parallel(text, [[np.full((1,), k, np.float32)] for k in range(4)], replicas=4)
    assert [y.tolist() for (y,) in got] == [[0, 1], [0, 1], [2, 3], [2, 3]]
    with pytest.raises(Unsupported, match="need several processes"):
        hilo.interpret(text, np.zeros((1,), np.float32))
