"""Regions of any kind in native code: what the interpreter gives, whatever a region holds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hilo
from hilo import build as B  # noqa: N812
from hilo.ir.dtypes import from_numpy, i1
from hilo.ir.module import Function, parameter
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.ops.fusion import composes_region
from hilo.options import Options
from hilo.passes.element_bodies import LOOPS
from hilo.pipeline import optimize
from hilo.rewrite.regions import regions
from hilo.testing.agree import agree
from hilo.testing.draw import any_dtype, draw, stablehlo
from hilo.testing.generate import Scope

Combine = Callable[..., Any]
R = np.random.default_rng(3)
X = R.integers(-50, 50, (4, 5)).astype(np.int32)
Y = R.normal(size=(3, 7)).astype(np.float32)
ZERO = np.asarray(0, np.int32)
Y[0, 2], Y[1, 1], Y[2, 5] = np.nan, -0.0, np.inf


# ---- ways to write max(a, b), which kernels compute inline or not
def _pair(a: Op, b: Op) -> Op:
    one = TensorType(a.dtype, (1,))
    second = B.broadcast_in_dim(b, broadcast_dimensions=(), type=one)
    return B.concatenate(B.reshape(a, type=one), second, dimension=0)


def _first(x: Op) -> Op:
    one = B.slice(x, start_indices=(0,), limit_indices=(1,), strides=(1,))
    return B.reshape(one, type=TensorType(x.dtype))


def by_if(a: Op, b: Op) -> Any:
    return B.if_(B.compare(a, b, comparison_direction="GT"), lambda: a, lambda: B.maximum(a, b))


def by_case(a: Op, b: Op) -> Any:
    k = B.convert(B.compare(a, b, comparison_direction="GT"), type=B.i32())
    return B.case(k, lambda: B.maximum(b, a), lambda: a, lambda: b)


def by_tensors(a: Op, b: Op) -> Any:
    both = _pair(a, b)
    return B.maximum(_first(both), _first(B.reverse(both, dimensions=(0,))))


def by_bits(a: Op, b: Op) -> Any:
    flipped = [B.bitcast_convert(x, type=B.u32()) for x in (B.maximum(a, b), a)]
    return B.bitcast_convert(B.xor(B.xor(flipped[0], flipped[1]), flipped[1]), type=TensorType(a.dtype))


def by_table(a: Op, b: Op) -> Any:
    """The larger one, by the number in a table of which operand it is."""
    k = B.convert(B.compare(a, b, comparison_direction="GT"), type=B.i32())
    at = B.reshape(B.dynamic_slice(B.constant(np.array([1, 0], np.int32)), k, slice_sizes=(1,)), type=B.i32())
    chosen = B.reshape(B.dynamic_slice(_pair(a, b), at, slice_sizes=(1,)), type=TensorType(a.dtype))
    return B.maximum(chosen, B.maximum(a, b))


def by_reduction(a: Op, b: Op) -> Any:
    return B.reduce(_pair(a, b), a, dimensions=(0,), body=B.maximum)


def by_sorting(a: Op, b: Op) -> Any:
    down = B.sort(_pair(a, b), dimension=0, comparator=lambda x, y: B.compare(x, y, comparison_direction="GT"))
    return B.maximum(_first(down), B.maximum(a, b))


def by_loop(a: Op, b: Op) -> Any:
    less, larger = lambda x, y: B.compare(x, y, comparison_direction="LT"), lambda x, y: (B.maximum(x, y), y)
    return B.maximum(B.while_(less, larger, a, b)[0], b)  # not less does not mean that there is no NaN


INLINE = (by_if, by_case, by_tensors, by_bits, by_table)
LOOPED = (by_reduction, by_sorting, by_loop)
BODIES = pytest.mark.parametrize("body", [*INLINE, *LOOPED], ids=lambda f: f.__name__)


def check(function: Combine, *arrays: Any) -> list[np.ndarray]:
    """The results of the interpreter, which every way to run the program gives too."""
    arrays = tuple(map(np.asarray, arrays))
    module = made(function, *arrays)
    found = agree(module, arrays, ways=("passes", "native", "constants", "skip simplify", "unfused"))
    assert found is None, found
    return [np.asarray(x) for x in hilo.interpret(module, *arrays)]


def made(function: Combine, *arrays: np.ndarray) -> hilo.Module:
    types = [TensorType(from_numpy(a.dtype), a.shape) for a in arrays]
    return B.module(B.function("main", types, function))


def kinds(function: Combine, *arrays: np.ndarray) -> set[str]:
    """The names of the ops that are left."""
    f = optimize(made(function, *arrays), "main", Options(fuse=False))
    return {o.kind.full_name for o in f.ops}


@BODIES
@pytest.mark.parametrize("x", [X, Y], ids=["i32", "f32"])
def test_reduce(body: Combine, x: np.ndarray) -> None:
    init = np.asarray(-9, x.dtype)
    for dims in ((0,), (1,), (0, 1), ()):
        (got,) = check(lambda v, i, d=dims: B.reduce(v, i, dimensions=d, body=body), x, init)
        assert np.array_equal(got, np.maximum(np.max(x, axis=dims), init), equal_nan=x.dtype == np.float32)


@pytest.mark.parametrize("body", INLINE, ids=lambda f: f.__name__)
def test_what_kernels_compute_inline_becomes_no_loop(body: Combine) -> None:
    names = kinds(lambda v, i: B.reduce(v, i, dimensions=(0,), body=body), X, ZERO)
    assert "stablehlo.while" not in names
    assert "stablehlo.reduce" in names


@pytest.mark.parametrize("body", LOOPED, ids=lambda f: f.__name__)
def test_what_they_cannot_becomes_a_loop(body: Combine) -> None:
    names = kinds(lambda v, i: B.reduce(v, i, dimensions=(0,), body=body), X, ZERO)
    assert "stablehlo.while" in names


@BODIES
def test_reduce_window(body: Combine) -> None:
    attrs: dict[str, Any] = {"window_dimensions": (2, 3), "window_strides": (1, 2), "base_dilations": (2, 1),
                             "window_dilations": (1, 2), "padding": ((1, 0), (2, -1))}  # fmt: skip
    check(lambda v, i: B.reduce_window(v, i, **attrs, body=body), X, np.int32(-60))


@pytest.mark.parametrize("padding", [((0, 0), (4, 0)), ((0, 0), (0, 4)), ((3, 0), (0, 0)), ((0, 3), (0, 0))])
def test_running_reductions(padding: Any) -> None:
    """Which are no commutative ones: the order counts."""

    def body(a: Op, b: Op) -> Any:
        return B.subtract(by_loop(a, b), b)

    size = tuple(1 + sum(p) for p in padding)
    check(lambda v, i: B.reduce_window(v, i, window_dimensions=size, padding=padding, body=body), X, np.int32(3))


@BODIES
def test_scatter(body: Combine) -> None:
    indices, updates = np.array([2, -1, 2, 7, 0], np.int32), R.integers(-90, 90, (5, 5)).astype(np.int32)
    attrs: dict[str, Any] = {"update_window_dims": (1,), "inserted_window_dims": (0,),
                             "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1}  # fmt: skip
    (got,) = check(lambda x, i, u: B.scatter(x, i, u, **attrs, update_computation=body), X, indices, updates)
    want = X.copy()
    for i, u in zip(indices, updates, strict=True):
        if 0 <= i < 4:
            want[i] = np.maximum(want[i], u)
    assert np.array_equal(got, want)


def test_scatter_with_batching_and_windows() -> None:
    """Of several inputs, in an order that counts, with index vectors along the first axis of indices of u8."""
    x, w = R.integers(0, 9, (3, 4, 5)).astype(np.int32), R.normal(size=(3, 4, 5)).astype(np.float32)
    s = np.array([[[0, 3], [1, 2], [200, 1]]], np.uint8)
    u, v = R.integers(0, 9, (3, 2, 2)).astype(np.int32), R.normal(size=(3, 2, 2)).astype(np.float32)
    attrs: dict[str, Any] = {"update_window_dims": (1,), "inserted_window_dims": (2,), "input_batching_dims": (0,),
                             "scatter_indices_batching_dims": (1,), "scatter_dims_to_operand_dims": (1,),
                             "index_vector_dim": 0}  # fmt: skip

    def body(a: Op, f: Op, b: Op, g: Op) -> Any:
        return B.subtract(by_loop(a, b), b), B.add(f, B.multiply(g, f))

    check(lambda *xs: B.scatter(*xs, **attrs, update_computation=body), x, w, s, u, v)


@BODIES
def test_select_and_scatter(body: Combine) -> None:
    attrs: dict[str, Any] = {"window_dimensions": (2, 2), "window_strides": (2, 1), "padding": ((0, 0), (1, 0))}
    s = R.integers(-90, 90, (2, 5)).astype(np.int32)

    def chooses(a: Op, b: Op) -> Op:
        return B.compare(body(a, b), a, comparison_direction="EQ")

    check(lambda x, s, i: B.select_and_scatter(x, s, i, **attrs, select=chooses, scatter=body), X, s, np.int32(-5))


def test_select_and_scatter_of_windows_in_padding() -> None:
    def chooses(a: Op, b: Op) -> Op:
        return B.compare(by_sorting(a, b), a, comparison_direction="EQ")

    attrs: dict[str, Any] = {"window_dimensions": (2,), "window_strides": (2,), "padding": ((2, 1),)}
    x, s = np.arange(5, dtype=np.int32), np.array([9, 8, 7, 6], np.int32)
    (got,) = check(lambda *v: B.select_and_scatter(*v, **attrs, select=chooses, scatter=B.add), x, s, np.int32(1))
    assert got.tolist() == [1, 9, 1, 8, 7]


@BODIES
def test_sort(body: Combine) -> None:
    x = R.integers(0, 9, (3, 37)).astype(np.int32)
    numbers = np.broadcast_to(np.arange(37, dtype=np.int64), (3, 37))

    def down(a: Op, b: Op, *_: Op) -> Op:
        return B.compare(body(a, b), b, comparison_direction="NE")

    got, order = check(lambda v, n: B.sort(v, n, dimension=1, comparator=down), x, numbers)
    assert np.array_equal(order, np.argsort(-x, axis=1, kind="stable"))
    assert np.array_equal(got, np.take_along_axis(x, order, 1))
    for dimension, shape in ((0, (3, 37)), (0, (0, 4)), (1, (4, 0)), (0, (1,)), (0, (2,))):
        check(lambda v, d=dimension: B.sort(v, dimension=d, comparator=down), np.resize(x, shape))


@BODIES
def test_map(body: Combine) -> None:
    y = R.integers(-50, 50, (4, 5)).astype(np.int32)
    (got,) = check(lambda a, b: B.map(a, b, dimensions=(0, 1), body=body), X, y)
    assert np.array_equal(got, np.maximum(X, y))
    check(lambda a, b: B.map(a, b, dimensions=(0, 1), body=body), X[:0], y[:0])


def test_total_order_of_floats_by_their_bits() -> None:
    """As JAX wrote it: keys of all NaNs and both zeros, compared as integers."""

    def key(x: Op) -> Op:
        bits = B.bitcast_convert(x, type=B.i32())
        flipped = B.xor(bits, B.constant(0x7FFFFFFF, B.i32()))
        return B.select(B.compare(bits, B.constant(0, B.i32()), comparison_direction="LT"), flipped, bits)

    x = np.array([1, -0.0, np.nan, 0.0, -np.inf, np.inf, -1, 1e-40], np.float32)
    (got,) = check(lambda v: B.sort(v, dimension=0, comparator=lambda a, b: B.compare(
        key(a), key(b), comparison_direction="LT")), x)  # fmt: skip
    assert np.array_equal(got, np.array([-np.inf, -1, -0.0, 0, 1e-40, 1, np.inf, np.nan], np.float32), equal_nan=True)
    assert np.signbit(got[2])


def test_captured_tensors() -> None:
    """A table that is looked up in a region."""
    table = R.normal(size=9).astype(np.float32)

    def weight(t: Op, k: Op) -> Op:
        return B.reshape(B.dynamic_slice(t, k, slice_sizes=(1,)), type=B.f32())

    ranks = R.permutation(9).astype(np.int32)
    (got,) = check(lambda v, t: B.sort(v, dimension=0, comparator=lambda a, b: B.compare(
        weight(t, a), weight(t, b), comparison_direction="LT")), ranks, table)  # fmt: skip
    assert np.array_equal(got, np.argsort(table))
    check(lambda v, i, t: B.reduce(v, i, dimensions=(0,), body=lambda a, b: B.maximum(
        weight(t, B.convert(a, type=B.i32())), b)), table, np.float32(0), table)  # fmt: skip


def test_captures_that_are_reductions() -> None:
    """The one is no part of the other's kernel."""

    def both(x: Op, i: Op) -> Any:
        most = B.reduce(x, i, dimensions=(0, 1), body=B.maximum)
        return B.reduce(x, i, dimensions=(0, 1), body=lambda a, b: B.minimum(B.maximum(a, b), B.negate(most)))

    check(both, X, ZERO)


def test_constant_tables_of_any_size() -> None:
    for n in (1, 7, 500):
        table = R.permutation(n).astype(np.int32)

        def rank(k: Op, t: np.ndarray = table) -> Op:
            return B.reshape(B.dynamic_slice(B.constant(t), k, slice_sizes=(1,)), type=B.i32())

        x = np.arange(-1, n + 2, dtype=np.int32)
        check(lambda v: B.sort(v, dimension=0, comparator=lambda a, b: B.compare(
            rank(a), rank(b), comparison_direction="LT")), x)  # fmt: skip


def test_several_operands_of_mixed_types() -> None:
    """One ignored, one constant, one complex, one captured."""
    xs = [X, R.normal(size=X.shape).astype(np.float16), R.normal(size=X.shape) + 1j, X % 2 == 0]
    inits = [np.int32(1), np.float16(2), np.complex128(1j), np.bool_(True)]

    def body(*each: Op) -> Any:
        a, _, _, p, b, _, y, q, c = each
        return B.maximum(a, B.maximum(b, c)), B.constant(np.float16(3)), y, B.if_(p, lambda: q, lambda: p)

    def all_of(*v: Op) -> Any:
        return B.reduce(*v[:-1], dimensions=(1,), body=lambda *elements: body(*elements, v[-1]))

    check(all_of, *xs, *inits, np.int32(7))


@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_comparators_that_are_no_order(n: int) -> None:
    """Some permutation of each row comes out, in native code as well."""
    x = R.integers(0, 5, (2, n)).astype(np.int32)

    def always(a: Op, b: Op) -> Op:
        return B.compare(a, a, comparison_direction="EQ")

    def odd(a: Op, b: Op) -> Op:
        return B.compare(by_loop(B.and_(B.add(a, b), B.constant(1, B.i32())), B.constant(0, B.i32())),
                         B.constant(1, B.i32()), comparison_direction="EQ")  # fmt: skip

    for comparator in (always, odd):
        module = made(lambda v, c=comparator: B.sort(v, dimension=1, comparator=c), x)
        (got,) = hilo.compile(module)(x)
        assert np.array_equal(np.sort(got, axis=1), np.sort(x, axis=1))


@pytest.mark.parametrize("seed", range(12))
def test_any_region_as_a_comparator(seed: int) -> None:
    r = random.Random(seed)
    x = parameter(0, TensorType(any_dtype(r), (2, r.choice((1, 2, 9, 17, 40)))))
    scope = Scope(r, [x], {}, depth=1)
    comparator = scope.body([TensorType(x.dtype)] * 2, [TensorType(i1)])
    sort = stablehlo("sort", x, dimension=1, comparator=comparator)
    module = hilo.Module({"main": Function("main", [x], [x, sort], [sort]), **scope.functions})
    values = draw(r, x.tensor)
    for got in (hilo.compile(module)(values)[0], hilo.interpret(module, values)[0]):
        for a, b in zip(np.asarray(got), values, strict=True):
            assert sorted(e.tobytes() for e in a) == sorted(e.tobytes() for e in b)


def test_sizes_known_at_run_time() -> None:
    """One program for all of them; a size of zero among them."""

    def most(a: Op, b: Op) -> Op:
        return B.compare(by_loop(a, b), b, comparison_direction="NE")

    def sums(x: Op, s: Op, i: Op, u: Op) -> Any:
        column = B.reduce(x, i, dimensions=(0,), body=by_loop)
        attrs: dict[str, Any] = {"update_window_dims": (1,), "inserted_window_dims": (0,),
                                 "scatter_dims_to_operand_dims": (0,), "index_vector_dim": 1}  # fmt: skip
        moved = B.scatter(x, s, u, **attrs, update_computation=by_loop)
        return column, B.sort(x, dimension=0, comparator=most), B.map(x, x, dimensions=(0, 1), body=by_sorting), moved

    module = B.module(B.function("main", [B.i32(None, 3), B.i32(2), B.i32(), B.i32(2, 3)], sums))
    native = hilo.compile(module)
    for n in (0, 1, 9):
        x, u = (R.integers(-9, 9, (m, 3)).astype(np.int32) for m in (n, 2))
        arguments = (x, np.array([0, 4], np.int32), ZERO, u)
        for got, want in zip(native(*arguments), hilo.interpret(module, *arguments), strict=True):
            assert np.array_equal(got, want)


def test_large_ones_take_their_time_and_no_more() -> None:
    """Nothing is copied for each element."""
    n = 100_000
    x = R.integers(0, 1 << 30, n).astype(np.int32)
    zero = np.asarray(0, np.int32)
    (got,) = hilo.compile(made(lambda v, i: B.reduce(v, i, dimensions=(0,), body=by_loop), x, zero))(x, zero)
    assert got == x.max()
    sort = made(lambda v: B.sort(v, dimension=0, comparator=lambda a, b: B.compare(
        by_loop(a, b), a, comparison_direction="NE")), x)  # fmt: skip
    (got,) = hilo.compile(sort)(x)
    assert np.array_equal(got, np.sort(x))


def test_regions_of_every_loop_are_ones_that_kernels_compute() -> None:
    """None of the ops that take elements is left with another region."""
    f = optimize(made(lambda v, i: B.reduce(v, i, dimensions=(0,), body=by_sorting), X, ZERO), "main",
                 Options(fuse=False))  # fmt: skip
    stack, found = [f], 0
    while stack:
        for o in stack.pop().ops:
            found += 1
            stack += regions(o)
            assert o.kind.full_name not in LOOPS or all(map(composes_region, regions(o)))
    assert found > 20
