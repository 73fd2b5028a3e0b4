"""cse merges equal ops, dce drops what nothing needs, control flow loses what nobody reads."""

from __future__ import annotations

import numpy as np

from hilo.ir.dtypes import f32, i1, i32
from hilo.ir.interpret import run
from hilo.ir.module import Function, parameter, region
from hilo.ir.op import Array, Op
from hilo.ir.types import TOKEN, TensorType
from hilo.ir.verify import verify
from hilo.passes.cse import cse
from hilo.passes.dce import dce
from hilo.rewrite.ops import add, case, compare, custom_call, if_, multiply, negate, reduce, subtract, transpose, while_
from hilo.rewrite.pattern import constant, splat

F = TensorType(f32, (3,))
S = TensorType(f32)
I = TensorType(i32)


def names(f: Function) -> list[str]:
    return [o.kind.name for o in f.ops if o.kind.name != "parameter"]


def function(types: list[TensorType], build: object) -> Function:
    """All that `build` makes, used or not: it gives (ops, results)."""
    params = [parameter(i, t) for i, t in enumerate(types)]
    ops, results = build(*params)  # type: ignore[operator]
    return Function("main", params, [*params, *ops], results)


# ---- cse
def test_equal_ops_merge_in_one_walk() -> None:
    f = region([F, F], lambda a, b: multiply(negate(add(a, b)), negate(add(a, b))))
    g = cse(f)
    assert names(g) == ["add", "negate", "multiply"]
    assert cse(g) is g


def test_commuted_operands_merge_but_only_where_they_commute() -> None:
    assert names(cse(region([F, F], lambda a, b: multiply(add(a, b), add(b, a))))) == ["add", "multiply"]
    f = region([F, F], lambda a, b: multiply(subtract(a, b), subtract(b, a)))
    assert cse(f) is f


def test_constants_merge_by_bits_and_type() -> None:
    def build(a: Op) -> Op:
        zeros = [splat(v, F) for v in (0.0, -0.0, 0.0)]
        return add(add(add(a, zeros[0]), zeros[1]), zeros[2])

    assert names(cse(region([F], build))).count("constant") == 2


def test_attributes_matter() -> None:
    t = TensorType(f32, (2, 2, 2))
    f = region([t], lambda a: add(transpose(a, permutation=(1, 0, 2)), transpose(a, permutation=(0, 2, 1))))
    assert cse(f) is f


def test_equal_regions_merge() -> None:
    bodies = [region([S, S], lambda a, b: add(a, b), name=n) for n in ("one", "two")]
    f = region([F, S], lambda a, i: add(*(reduce(a, i, dimensions=(0,), body=b) for b in bodies)))
    assert names(cse(f)) == ["reduce", "add"]


def test_regions_are_merged_inside() -> None:
    body = region([S, S], lambda a, b: multiply(add(a, b), add(a, b)))
    g = cse(region([F, S], lambda a, i: reduce(a, i, dimensions=(0,), body=body)))
    assert names(g.results[0].attrs["body"]) == ["add", "multiply"]


def test_effects_do_not_merge() -> None:
    def build(a: Op) -> tuple[list[Op], list[Op]]:
        calls = [custom_call(a, call_target_name="print", has_side_effect=True, type=F) for _ in range(2)]
        return calls, calls

    f = function([F], build)
    assert cse(f) is f


# ---- dce
def test_unused_ops_go_parameters_and_effects_stay() -> None:
    def build(a: Op, b: Op) -> tuple[list[Op], list[Op]]:
        dead = negate(a)
        argument = add(b, b)
        call = custom_call(argument, call_target_name="print", has_side_effect=True, type=TOKEN)
        return [dead, add(dead, dead), argument, call, used := negate(b)], [used]

    f = function([F, F], build)
    g = dce(f)
    assert names(g) == ["add", "custom_call", "negate"]
    assert len(g.params) == 2
    assert dce(g) is g


def loop(*more: Op, body: object, start: Op, others: list[Op]) -> Op:
    operands = [start, *others, *more]
    types = [o.type for o in operands]
    limit = lambda i, *_: compare(i, splat(4, I), comparison_direction="LT")
    return while_(*operands, cond=region(types, limit), body=region(types, body))  # type: ignore[arg-type]


def count(i: Op) -> Op:
    return add(i, splat(1, I))


def test_while_loses_values_that_nothing_reads() -> None:
    def build(i: Op, a: Op, b: Op, c: Op) -> Op:
        w = loop(c, start=i, others=[a, b], body=lambda i, x, y, c: (count(i), add(x, x), multiply(y, c)))
        return w.results()[1]

    f = region([I, F, F, F], build)
    g = dce(f)
    verify(g, types=True)
    w = next(o for o in g.ops if o.kind.name == "while")
    assert len(w.operands) == 2  # i and x; y and the capture c are gone
    arrays = [np.int32(0).reshape(()), *(np.arange(3, dtype=np.float32) for _ in range(3))]
    np.testing.assert_array_equal(run(f, arrays)[0], run(g, arrays)[0])


def test_while_keeps_what_a_kept_value_needs() -> None:
    def build(i: Op, a: Op, b: Op) -> Op:
        return loop(start=i, others=[a, b], body=lambda i, x, y: (count(i), add(x, y), negate(y))).results()[1]

    f = region([I, F, F], build)
    assert dce(f) is f


def test_while_down_to_one_value() -> None:
    def build(i: Op, a: Op) -> Op:
        return loop(start=i, others=[a], body=lambda i, x: (count(i), add(x, x))).results()[0]

    g = dce(region([I, F], build))
    verify(g, types=True)
    assert g.results[0].kind.name == "while"
    assert run(g, [np.asarray(0, np.int32), np.zeros(3, np.float32)])[0] == 4


def test_branches_lose_results_and_captures_that_nothing_reads() -> None:
    yes = region([F, F], lambda a, b: (add(a, a), multiply(b, b)))
    no = region([F, F], lambda a, b: (a, b))

    def build(p: Op, a: Op, b: Op) -> Op:
        return if_(p, a, b, true_branch=yes, false_branch=no).results()[0]

    g = dce(region([TensorType(i1), F, F], build))
    verify(g, types=True)
    assert len(g.results[0].operands) == 2
    assert g.results[0].type is F

    def cases(p: Op, a: Op, b: Op) -> Op:
        return case(p, a, b, branches=(yes, no, yes)).results()[1]

    h = dce(region([I, F, F], cases))
    verify(h, types=True)
    assert len(h.results[0].operands) == 2
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(run(h, [np.asarray(5, np.int32), x, x + 1])[0], (x + 1) ** 2)


def test_an_if_for_its_effect_stays() -> None:
    say = region([F], lambda a: custom_call(a, call_target_name="print", has_side_effect=True, type=F))
    quiet = region([F], lambda a: a)

    def build(p: Op, a: Op) -> tuple[list[Op], list[Op]]:
        return [if_(p, a, true_branch=say, false_branch=quiet)], [a]

    g = dce(function([TensorType(i1), F], build))
    verify(g, types=True)
    assert names(g) == ["if"]
    inside = g.ops[-1].attrs["true_branch"]
    assert names(inside) == ["custom_call"]


def test_big_constants_are_looked_at_once() -> None:
    big = Array(np.arange(1 << 20, dtype=np.float32))
    f = region([TensorType(f32, (1 << 20,))], lambda a: add(add(a, constant(big)), constant(big)))
    assert names(cse(f)).count("constant") == 1
