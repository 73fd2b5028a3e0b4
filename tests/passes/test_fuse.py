"""Fusion: what becomes one kernel, what stays alone, and that programs keep their values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import hilo
from hilo.ir.dtypes import DType, f32, i32
from hilo.ir.interpret import run
from hilo.ir.module import Function, region
from hilo.ir.op import Array, Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType, result_types
from hilo.options import Options
from hilo.passes.fuse import fuse
from hilo.passes.schedule import peak_bytes, schedule


def s(name: str) -> Callable[..., Op]:
    return lookup(f"stablehlo.{name}")


def f(shape: Sequence[int] = (), dtype: DType = f32) -> TensorType:
    return TensorType(dtype, shape)


def constant(value: Any, shape: Sequence[int] = ()) -> Op:
    return s("constant")(value=Array(np.float32(value), shape))


def broadcast(x: Op, shape: Sequence[int], dims: Sequence[int]) -> Op:
    return s("broadcast_in_dim")(x, broadcast_dimensions=tuple(dims), type=f(shape))


def reduce(x: Op, dims: Sequence[int], kind: str = "add", init: float = 0.0) -> Op:
    body = region([f(), f()], lambda a, b: s(kind)(a, b))
    return s("reduce")(x, constant(init), dimensions=tuple(dims), body=body)


def kernels(g: Function) -> list[Op]:
    """The ops that need a kernel."""
    return [o for o in g.ops if o.name not in ("parameter", "get", "constant", "reshape")]


def checked(f: Function, options: Options | None = None) -> Function:
    """The fused function, after checking that it computes the same."""
    g = fuse(f, options)
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.5, 1.5, t.shape).astype(t.dtype.np) for t in f.param_types if isinstance(t, TensorType)]
    for a, b in zip(run(f, arrays), run(g, arrays), strict=True):
        np.testing.assert_array_equal(a, b)
    place = {o: i for i, o in enumerate(g.ops)}
    assert all(place[x] < place[o] for o in g.ops for x in o.operands)
    return g


def softmax(x: Op) -> Op:
    kept = list(range(len(x.shape) - 1))
    last = [len(x.shape) - 1]
    e = s("exponential")(s("subtract")(x, broadcast(reduce(x, last, "maximum", -np.inf), x.shape, kept)))
    return s("divide")(e, broadcast(reduce(e, last), x.shape, kept))


def test_a_chain_is_one_loop() -> None:
    g = checked(region([f((8, 9)), f((9,))], lambda x, y: s("tanh")(s("add")(x, broadcast(y, (8, 9), [1])))))
    (k,) = kernels(g)
    assert k.name == "fusion"
    assert k.attrs["kind"] == "loop"


def test_softmax_is_one_region() -> None:
    (k,) = kernels(checked(region([f((64, 100))], softmax)))
    assert k.attrs["kind"] == "rows"


def test_axes_of_size_one_do_not_part_a_region() -> None:
    def build(x: Op) -> Op:
        total = reduce(x, [1])
        y = s("reshape")(s("subtract")(x, broadcast(total, x.shape, [0])), type=f((1, 64, 100)))
        return s("divide")(y, broadcast(reduce(y, [2]), y.shape, [0, 1]))

    assert len(kernels(checked(region([f((64, 100))], build)))) == 1


def test_a_value_needed_outside_is_a_further_result() -> None:
    def build(x: Op, y: Op) -> tuple[Op, Op]:
        total = s("add")(x, y)
        return softmax(total), total

    (k,) = kernels(checked(region([f((64, 100)), f((64, 100))], build)))
    assert len(k.attrs["body"].results) == 2


def test_statistics_of_columns_stay_parallel() -> None:
    """A reduction over many rows and the loop that uses it are two kernels: one alone would have little to split."""

    def build(x: Op) -> Op:
        return s("subtract")(x, broadcast(reduce(x, [0]), x.shape, [1]))

    g = checked(region([f((20_000, 16))], build))
    assert [k.attrs["kind"] for k in kernels(g)] == ["rows", "loop"]


def test_cheap_values_are_computed_again() -> None:
    def build(x: Op) -> tuple[Op, Op]:
        scaled = s("multiply")(x, constant(2.0, (5000,)))
        a = reduce(scaled, [0])
        b = s("exponential")(s("reverse")(scaled, dimensions=(0,)))
        return a, b

    g = checked(region([f((5000,))], build))
    assert all(x.kind.name == "parameter" for k in kernels(g) for x in k.operands)


def test_expensive_values_are_not() -> None:
    """A window of shifted values: the exponential is computed once, not once per use."""

    def build(x: Op) -> Op:
        e = s("exponential")(x)
        parts = [s("slice")(e, start_indices=(k,), limit_indices=(k + 5000,), strides=(1,)) for k in range(4)]
        return s("add")(s("add")(parts[0], parts[1]), s("add")(parts[2], parts[3]))

    g = checked(region([f((5003,))], build))
    assert [k.name for k in kernels(g)] == ["exponential", "fusion"]


def test_shifts_of_shifts_do_not_explode() -> None:
    def build(x: Op) -> Op:
        for _ in range(30):
            n = x.shape[0] - 3
            parts = [s("slice")(x, start_indices=(k,), limit_indices=(k + n,), strides=(1,)) for k in range(4)]
            x = s("add")(s("add")(parts[0], parts[1]), s("subtract")(parts[2], parts[3]))
        return x

    g = checked(region([f((300,))], build))
    assert sum(len(k.attrs["body"].ops) for k in kernels(g) if k.name == "fusion") < 2000


def test_a_long_recurrence_is_linear() -> None:
    def build(x: Op) -> Op:
        for _ in range(300):
            x = s("add")(s("multiply")(x, constant(0.5, (7,))), s("abs")(x))
        return x

    g = checked(region([f((7,))], build), Options(fusion_ops=64))
    assert 10 <= len(kernels(g)) <= 30
    assert sum(len(k.attrs["body"].ops) for k in kernels(g) if k.name == "fusion") < 2000


def test_large_transpositions_read_from_memory() -> None:
    """Tiles are turned as they are loaded: what follows joins them, what comes before does not."""

    def build(x: Op) -> Op:
        return s("negate")(s("transpose")(s("tanh")(x), permutation=(1, 0)))

    assert [k.name for k in kernels(checked(region([f((300, 400))], build)))] == ["tanh", "fusion"]
    assert len(kernels(checked(region([f((3, 4))], build)))) == 1


def test_no_cycles_between_groups() -> None:
    """A value used in a group and by something that leads back into it must come from outside of it."""

    def build(x: Op, w: Op) -> Op:
        a = s("add")(x, x)
        dims = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}
        none = {"lhs_batching_dimensions": (), "rhs_batching_dimensions": ()}
        d = s("dot_general")(a, w, **dims, **none, type=f((70, 70)))
        return s("multiply")(s("tanh")(a), d)

    g = checked(region([f((70, 70)), f((70, 70))], build))
    assert [k.name for k in kernels(g)] == ["add", "fusion"]  # the product joins the fusion, what it reads does not


def test_loops_are_fused_inside() -> None:
    body = region([f((9,)), f((), i32)], lambda x, i: (s("add")(s("multiply")(x, x), x), s("add")(i, i)))
    cond = region([f((9,)), f((), i32)], lambda x, i: s("compare")(
        i, s("constant")(value=Array(np.int32(8))), comparison_direction="LT"))  # fmt: skip

    def build(x: Op, i: Op) -> tuple[Op, ...]:
        return s("while")(x, i, cond=cond, body=body).results()

    g = fuse(region([f((9,)), f((), i32)], build))
    loop = next(o for o in g.ops if o.name == "while")
    assert "fusion" in [o.name for o in loop.attrs["body"].ops]


@pytest.mark.parametrize("width", [6, 30])
def test_schedule_keeps_few_bytes_alive(width: int) -> None:
    """Independent branches one after the other, not side by side."""

    def build(x: Op) -> Op:
        branches = [s("reverse")(x, dimensions=(0,)) for _ in range(width)]
        small = [reduce(b, [0]) for b in branches]
        total = small[0]
        for y in small[1:]:
            total = s("add")(total, y)
        return total

    h = region([f((1000,))], build)
    by_kind = sorted(h.ops, key=lambda o: ("parameter", "constant", "reverse", "reduce", "add").index(o.name))
    wide = h.replace(ops=by_kind)
    order = schedule(wide)
    assert peak_bytes(order.ops, order.results) < peak_bytes(wide.ops, wide.results) / 2
    assert schedule(order) is order


@pytest.mark.parametrize("results", ["%a#1", "%a#1, %a#0", "%a#1, %b", "%b"])
@pytest.mark.parametrize("fuse", [True, False])
def test_one_result_of_a_reduction_of_several_values_is_used(results: str, fuse: bool) -> None:
    n = results.count("%")
    types = ", ".join(["tensor<3xi32>"] * n)
    body = f"""func.func @main(%x: tensor<3x5xi32>, %y: tensor<3x5xi32>) -> ({types}) {{
      %z = stablehlo.constant dense<0> : tensor<i32>
      %r:2 = stablehlo.reduce(%x init: %z), (%y init: %z) across dimensions = [1]
          : (tensor<3x5xi32>, tensor<3x5xi32>, tensor<i32>, tensor<i32>) -> (tensor<3xi32>, tensor<3xi32>)
          reducer(%p: tensor<i32>, %q: tensor<i32>) (%s: tensor<i32>, %t: tensor<i32>) {{
        %m = stablehlo.maximum %p, %q : tensor<i32>
        %u = stablehlo.add %s, %t : tensor<i32>
        stablehlo.return %m, %u : tensor<i32>, tensor<i32>
      }}
      %c = stablehlo.constant dense<[1, 2, 3]> : tensor<3xi32>
      %a0 = stablehlo.add %r#0, %c : tensor<3xi32>
      %a1 = stablehlo.multiply %r#1, %c : tensor<3xi32>
      %b = stablehlo.subtract %r#0, %r#1 : tensor<3xi32>
      return {results.replace("#", "")} : {types}
    }}"""
    x = np.arange(15, dtype=np.int32).reshape(3, 5)
    want = hilo.interpret(body, x, -x)
    got = hilo.compile(body, options=hilo.Options(fuse=fuse))(x, -x)
    for g, w in zip(got, want, strict=True):
        np.testing.assert_array_equal(g, w)


def test_indices_of_extremes_need_no_table_of_positions() -> None:
    """What uses the index sums over other dims: the reduction is a region, with the iota in it, all the same."""
    body = """func.func @main(%x: tensor<300x31xf32>) -> (tensor<300x31xf32>, tensor<31xf32>) {
      %z = stablehlo.constant dense<0x7F800000> : tensor<f32>
      %n = stablehlo.constant dense<0> : tensor<i32>
      %i = stablehlo.iota dim = 1 : tensor<300x31xi32>
      %r:2 = stablehlo.reduce(%x init: %z), (%i init: %n) across dimensions = [1]
          : (tensor<300x31xf32>, tensor<300x31xi32>, tensor<f32>, tensor<i32>) -> (tensor<300xf32>, tensor<300xi32>)
          reducer(%p: tensor<f32>, %q: tensor<f32>) (%s: tensor<i32>, %t: tensor<i32>) {
        %c = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %m = stablehlo.select %c, %p, %q : tensor<i1>, tensor<f32>
        %u = stablehlo.select %c, %s, %t : tensor<i1>, tensor<i32>
        stablehlo.return %m, %u : tensor<f32>, tensor<i32>
      }
      %b = stablehlo.broadcast_in_dim %r#1, dims = [0] : (tensor<300xi32>) -> tensor<300x31xi32>
      %e = stablehlo.compare EQ, %b, %i : (tensor<300x31xi32>, tensor<300x31xi32>) -> tensor<300x31xi1>
      %h = stablehlo.convert %e : (tensor<300x31xi1>) -> tensor<300x31xf32>
      %o = stablehlo.constant dense<0.0> : tensor<f32>
      %v = stablehlo.reduce(%h init: %o) applies stablehlo.add across dimensions = [0]
          : (tensor<300x31xf32>, tensor<f32>) -> tensor<31xf32>
      return %h, %v : tensor<300x31xf32>, tensor<31xf32>
    }"""
    module = hilo.parse(body)
    f = hilo.compile(module, threads=1)
    assert "iota" not in f.text("plan")
    x = np.random.default_rng(0).standard_normal((300, 31)).astype(np.float32)
    for got, want in zip(f(x), hilo.interpret(module, x), strict=True):
        np.testing.assert_array_equal(got, want)


def test_spread_values_are_read_again() -> None:
    """A difference of a small value with itself, spread both ways, is computed in both sums rather than stored, however
    much was read for the small value."""

    def body(*xs: Op) -> tuple[Op, ...]:
        y = xs[0]
        for x in xs[1:]:
            y = s("add")(y, x)
        d = s("subtract")(broadcast(y, (32, 32, 3), (1, 2)), broadcast(y, (32, 32, 3), (0, 2)))
        return y, reduce(s("multiply")(d, d), [2]), reduce(s("exponential")(d), [1])

    g = checked(region([f((32, 3))] * 40, body))
    assert not any(getattr(t, "shape", ()) == (32, 32, 3) for o in kernels(g) for t in result_types(o.type))


def test_a_full_group_leaves_what_comes_before_to_another() -> None:
    """A sum of many expensive values: the next terms are computed where they are added up, not each by a kernel."""

    def body(x: Op) -> Op:
        total = x
        for i in range(120):
            total = s("add")(total, s("sine")(s("multiply")(x, constant(i / 8, (64,)))))
        return total

    g = checked(region([f((64,))], body))
    assert len(kernels(g)) <= 12
