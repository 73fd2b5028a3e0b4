"""Legalising leaves only ops that are compiled, or says what is in the way; simplifying keeps bits and ends."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hilo.errors import Unsupported
from hilo.ir.dtypes import DType, f32, i1, i32
from hilo.ir.interpret import run
from hilo.ir.module import Function, Loc, parameter, region
from hilo.ir.op import Array, Op
from hilo.ir.types import UNKNOWN, TensorType
from hilo.ir.verify import verify
from hilo.options import Options
from hilo.passes.legalize import legalize
from hilo.passes.simplify import simplify
from hilo.rewrite.ops import (
    abs_,
    add,
    broadcast_in_dim,
    chlo_broadcast_add,
    compare,
    concatenate,
    convert,
    custom_call,
    divide,
    dot,
    dot_general,
    exponential,
    if_,
    iota,
    maximum,
    multiply,
    negate,
    reduce,
    reshape,
    sine,
    subtract,
    transpose,
    while_,
)  # fmt: skip
from hilo.rewrite.pattern import constant, splat

F = TensorType(f32, (3,))
S = TensorType(f32)
I = TensorType(i32)


def names(f: Function) -> list[str]:
    return [o.kind.name for o in f.ops if o.kind.name != "parameter"]


# ---- legalize
def test_chlo_expands_in_regions_too() -> None:
    body = region([S, S], lambda a, b: chlo_broadcast_add(a, b))
    f = legalize(
        region(
            [TensorType(f32, (2, 3)), F, S],
            lambda a, b, i: reduce(chlo_broadcast_add(a, b), i, dimensions=(0, 1), body=body),
        )
    )
    verify(f, types=True)
    assert {o.kind.dialect for o in f.ops} == {"stablehlo", "hilo"}
    assert {o.kind.dialect for o in f.results[0].attrs["body"].ops} == {"stablehlo", "hilo"}


def test_dot_becomes_dot_general() -> None:
    for shapes in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 4)), ((2, 3), (3, 4))):
        types = [TensorType(f32, s) for s in shapes]
        out = TensorType(f32, (*shapes[0][:-1], *shapes[1][1:]))
        f = region(types, lambda a, b, out=out: dot(a, b, type=out))
        g = legalize(f)
        verify(g, types=True)
        assert names(g) == ["dot_general"]
        arrays = [np.arange(t.size, dtype=np.float32).reshape(t.shape) for t in types]
        np.testing.assert_array_equal(run(f, arrays)[0], run(g, arrays)[0])


def test_markers_vanish_and_other_custom_calls_are_named() -> None:
    f = region([F], lambda a: custom_call(a, call_target_name="Sharding", type=F))
    assert legalize(f).results[0].kind.name == "parameter"
    loc = Loc("file", file="model.py", line=7, col=1)
    unknown = custom_call.kind.make(
        (parameter(0, F),), custom_call(parameter(0, F), call_target_name="mystery", type=F).attrs, loc
    )
    g = Function("main", unknown.operands, [*unknown.operands, unknown], [unknown])
    with pytest.raises(Unsupported, match=r"model.py:7:1: stablehlo.custom_call: .*'mystery'"):
        legalize(g)


def test_symbolic_dims_are_refused_with_their_type() -> None:
    t = TensorType(f32, (UNKNOWN, 3))
    with pytest.raises(Unsupported, match="symbolic dimension"):
        legalize(region([t], lambda a: negate(a)))


# ---- simplify
def test_simplify_is_idempotent_and_says_when_nothing_changed() -> None:
    f = region([F, F], lambda a, b: add(multiply(a, splat(1.0, F)), negate(negate(b))))
    g = simplify(f)
    assert names(g) == ["add"]
    assert simplify(g) is g


def test_softmax_of_frameworks_becomes_its_core() -> None:
    t, row = TensorType(f32, (4, 8)), TensorType(f32, (4,))
    largest = region([S, S], lambda a, b: maximum(a, b))
    total = region([S, S], lambda a, b: add(a, b))

    def softmax(x: Op) -> Op:
        m = reduce(x, splat(-np.inf, S), dimensions=(1,), body=largest)
        m = maximum(splat(-np.inf, row), m)
        keep = broadcast_in_dim(m, broadcast_dimensions=(0,), type=TensorType(f32, (4, 1)))
        e = exponential(subtract(x, broadcast_in_dim(keep, broadcast_dimensions=(0, 1), type=t)))
        s = reduce(e, splat(0.0, S), dimensions=(1,), body=total)
        s = broadcast_in_dim(s, broadcast_dimensions=(0,), type=TensorType(f32, (4, 1)))
        return divide(e, broadcast_in_dim(s, broadcast_dimensions=(0, 1), type=t))

    f = region([t], softmax)
    g = simplify(f)
    verify(g, types=True)
    want = ["broadcast_in_dim", "broadcast_in_dim", "divide", "exponential", "reduce", "reduce", "subtract"]
    assert sorted(n for n in names(g) if n != "constant") == want
    x = np.random.default_rng(0).standard_normal((4, 8), np.float32)
    assert run(f, [x])[0].tobytes() == run(g, [x])[0].tobytes()


def test_a_recurrence_with_two_uses_stays_linear() -> None:
    def steps(x: Op) -> Op:
        for _ in range(60):
            x = add(multiply(x, x), sine(x))
        return x

    f = region([F], steps)
    assert len(simplify(legalize(f)).ops) == len(f.ops)


def test_wide_concatenation() -> None:
    t = TensorType(f32, (2,))
    f = region([t] * 1200, lambda *a: concatenate(*a, dimension=0))
    assert simplify(f) is f


def test_fold_is_bounded_and_splats_are_free() -> None:
    options = Options(fold_elements=100)
    huge = TensorType(f32, (1 << 40,))
    f = region([], lambda: add(splat(1.0, huge), splat(2.0, huge)))
    g = simplify(f, options)
    assert names(g) == ["constant"]
    assert g.results[0].attrs["value"].is_splat
    small, big = (constant(Array(np.arange(n, dtype=np.float32))) for n in (50, 200))
    assert names(simplify(region([], lambda: add(small, small)), options)) == ["constant"]
    assert names(simplify(region([], lambda: add(big, big)), options)) == ["constant", "add"]


def test_transcendental_functions_and_iota_are_not_folded() -> None:
    assert names(simplify(region([], lambda: exponential(splat(1.0, F))))) == ["constant", "exponential"]
    f = region([], lambda: iota(iota_dimension=0, type=F))
    assert simplify(f) is f


def test_fast_math_rules_only_where_named() -> None:
    f = region([F], lambda a: subtract(a, a))
    assert simplify(f) is f
    assert names(simplify(f, Options(fast_math=frozenset({"finite"})))) == ["constant"]


def test_a_one_hot_product_is_a_gather_only_where_allowed() -> None:
    wide, table = TensorType(i32, (4, 6)), TensorType(f32, (6, 2))

    def lookup(index: Op, rows: Op) -> Op:
        column = reshape(index, type=TensorType(i32, (4, 1)))
        every = broadcast_in_dim(
            iota(iota_dimension=0, type=TensorType(i32, (6,))), broadcast_dimensions=(1,), type=wide
        )
        hot = compare(
            broadcast_in_dim(column, broadcast_dimensions=(0, 1), type=wide), every, comparison_direction="EQ"
        )
        return dot(convert(hot, type=wide.with_dtype(f32)), rows, type=TensorType(f32, (4, 2)))

    f = legalize(region([TensorType(i32, (4,)), table], lookup))
    assert "gather" not in names(simplify(f))
    g = simplify(f, Options(fast_math=frozenset({"gather"})))
    verify(g, types=True)
    assert "gather" in names(g)
    assert "dot_general" not in names(g)
    arrays = [np.array([0, 5, -1, 6], np.int32), np.arange(12, dtype=np.float32).reshape(6, 2)]
    np.testing.assert_array_equal(run(f, arrays)[0], run(g, arrays)[0])


@pytest.mark.parametrize("dtype", [i32, f32], ids=str)
def test_a_product_with_a_one_hot_matrix_on_the_right_takes_columns_by_whole_numbers(dtype: DType) -> None:
    tall = TensorType(dtype, (6, 4))

    def lookup(index: Op, table: Op) -> Op:
        every = broadcast_in_dim(index, broadcast_dimensions=(1,), type=tall)
        hot = compare(every, iota(iota_dimension=0, type=tall), comparison_direction="EQ")
        numbers = {"lhs_contracting_dimensions": (1,), "rhs_contracting_dimensions": (0,)}
        return dot_general(table, convert(hot, type=tall.with_dtype(f32)), **numbers, type=TensorType(f32, (2, 3, 4)))

    f = region([TensorType(dtype, (4,)), TensorType(f32, (2, 6, 3))], lookup)
    g = simplify(f, Options(fast_math=frozenset({"gather"})))
    verify(g, types=True)
    assert ("gather" in names(g)) == dtype.is_int
    arrays = [np.array([0, 5, -1, 6]).astype(dtype.np), np.arange(36, dtype=np.float32).reshape(2, 6, 3)]
    np.testing.assert_array_equal(run(f, arrays)[0], run(g, arrays)[0])


def test_a_decided_branch_is_inlined_and_its_code_simplified() -> None:
    yes, no = region([F], lambda a: negate(negate(a))), region([F], lambda a: sine(a))

    def build(a: Op) -> Op:
        p = compare(splat(1, I), splat(2, I), comparison_direction="LT")
        return if_(p, a, true_branch=yes, false_branch=no)

    g = simplify(region([F], build))
    assert g.results == g.params


def test_an_invariant_of_a_loop_becomes_a_capture_and_a_constant_goes_inside() -> None:
    def build(n: Op, a: Op, w: Op) -> tuple[Op, ...]:
        operands = (splat(0, I), a, w, splat(2.0, F), n)
        types = [o.type for o in operands]
        cond = region(types, lambda i, x, w, c, n: compare(i, n, comparison_direction="LT"))
        body = region(types, lambda i, x, w, c, n: (add(i, splat(1, I)), add(multiply(x, c), w), w, c))
        return while_(*operands, cond=cond, body=body).results()

    f = region([I, F, F], build)
    g = simplify(f)
    verify(g, types=True)
    loop = next(o for o in g.ops if o.kind.name == "while")
    assert len(loop.attrs["body"].results) == 2
    assert len(loop.operands) == 4  # i, x and the captures n, w
    x = np.arange(3, dtype=np.float32)
    for n in (0, 1, 5):
        for a, b in zip(run(f, [np.asarray(n, np.int32), x, x]), run(g, [np.asarray(n, np.int32), x, x])):
            np.testing.assert_array_equal(a, b)


def test_invariant_work_leaves_loops_but_broadcasts_stay() -> None:
    t = TensorType(f32, (3, 3))

    def build(n: Op, a: Op, w: Op, s: Op) -> tuple[Op, ...]:
        operands = (splat(0, I), a, w, s, n)
        types = [o.type for o in operands]

        def body(i: Op, x: Op, w: Op, s: Op, n: Op) -> tuple[Op, ...]:
            wide = broadcast_in_dim(s, broadcast_dimensions=(), type=t)
            return add(i, splat(1, I)), add(multiply(x, exponential(transpose(w, permutation=(1, 0)))), wide)

        def cond(i: Op, x: Op, w: Op, s: Op, n: Op) -> Op:
            return compare(i, add(n, n), comparison_direction="LT")

        return while_(*operands, cond=region(types, cond), body=region(types, body)).results()

    f = region([I, t, t, S], build)
    g = simplify(f)
    verify(g, types=True)
    loop = next(o for o in g.ops if o.kind.name == "while")
    assert "exponential" in names(g)
    assert sorted(names(loop.attrs["body"])) == ["add", "add", "broadcast_in_dim", "constant", "multiply"]
    assert names(loop.attrs["cond"]) == ["compare"]
    x = np.arange(9, dtype=np.float32).reshape(3, 3) / 8
    for n in (0, 2):
        arrays = [np.asarray(n, np.int32), x, x - 1, np.asarray(2, np.float32)]
        for a, b in zip(run(f, arrays), run(g, arrays)):
            np.testing.assert_array_equal(a, b)
    assert simplify(g) is g


def test_effects_stay_where_branches_are_decided() -> None:
    say = region([F], lambda a: custom_call(a, call_target_name="print", has_side_effect=True, type=F))
    f = region(
        [F], lambda a: if_(splat(True, TensorType(i1)), a, true_branch=say, false_branch=region([F], lambda a: a))
    )
    assert "if" in names(simplify(f))


def test_many_dims() -> None:
    t = TensorType(f32, (1,) * 12 + (2, 3))
    f = region([t], lambda a: reshape(transpose(abs_(a), permutation=(*range(12), 13, 12)), type=TensorType(f32, (6,))))
    g = simplify(f)
    verify(g, types=True)
    x = np.arange(-3, 3, dtype=np.float32).reshape(t.shape)
    np.testing.assert_array_equal(run(f, [x])[0], run(g, [x])[0])


@pytest.mark.parametrize("name", ["mnist_dense_step", "while_cg_512", "threefry_4m", "mlp_step", "gpt2_decode_kv256"])
def test_real_programs_stay_valid(name: str, shared: Path) -> None:
    from hilo.formats import mlir_text
    from hilo.passes.inline import inline

    module = mlir_text.parse((shared / "bench" / f"{name}.mlir").read_text())
    f = legalize(inline(module))
    g = simplify(f)
    verify(g, types=True)
    assert g.param_types == f.param_types
    assert g.result_types == f.result_types
    assert simplify(g) is g
