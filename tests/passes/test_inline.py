"""Inlining: values, regions, composites, recursion, trees of calls."""

from __future__ import annotations

import numpy as np
import pytest

from hilo.errors import Error
from hilo.ir.dtypes import f32, i32
from hilo.ir.interpret import interpret, run
from hilo.ir.module import Function, Loc, Module, parameter, region
from hilo.ir.op import Op
from hilo.ir.types import Results, TensorType, Type
from hilo.ir.verify import verify
from hilo.passes.inline import inline
from hilo.passes.simplify import simplify
from hilo.rewrite.ops import add, compare, composite, func_call, multiply, negate, while_
from hilo.rewrite.pattern import splat

F = TensorType(f32, (3,))
I = TensorType(i32)
X = np.arange(3, dtype=np.float32)


def call(name: str, *operands: Op, type: Type = F) -> Op:  # noqa: A002
    return func_call(*operands, callee=name, type=type)


def module(**functions: Function) -> Module:
    return Module({name: f.replace(name=name) for name, f in functions.items()})


def test_a_function_without_calls_is_itself() -> None:
    m = module(main=region([F], lambda a: negate(a)))
    assert inline(m) is m["main"]


def test_calls_of_calls_with_several_results() -> None:
    two = Results([F, F])
    m = module(
        main=region([F], lambda a: add(*call("both", a, type=two).results())),
        both=region([F], lambda a: (call("neg", a), call("neg", add(a, a)))),
        neg=region([F], lambda a: negate(a)),
        unused=region([F], lambda a: call("nowhere", a)),
    )
    f = inline(m)
    verify(f, types=True)
    assert [o.kind.name for o in f.ops] == ["parameter", "negate", "add", "negate", "add"]
    np.testing.assert_array_equal(run(f, [X])[0], interpret(m, [X])[0])


def test_results_that_are_parameters() -> None:
    m = module(
        main=region([F, F], lambda a, b: call("swap", a, b, type=Results([F, F])).results()),
        swap=region([F, F], lambda a, b: (b, a)),
    )
    f = inline(m)
    assert f.results == (f.params[1], f.params[0])


def test_calls_in_regions() -> None:
    types = [I, F]

    def loop(i: Op, a: Op) -> Op:
        cond = region(types, lambda i, x: compare(i, splat(3, I), comparison_direction="LT"))
        body = region(types, lambda i, x: (add(i, splat(1, I)), call("double", x)))
        return while_(i, a, cond=cond, body=body).results()[1]

    m = module(main=region(types, loop), double=region([F], lambda a: add(a, a)))
    f = inline(m)
    verify(f, types=True)
    np.testing.assert_array_equal(run(f, [np.asarray(0, np.int32), X])[0], 8 * X)


def test_composites_are_their_decomposition() -> None:
    m = module(
        main=region([F], lambda a: composite(a, name="my.op", decomposition="impl", type=F)),
        impl=region([F], lambda a: multiply(a, a)),
    )
    np.testing.assert_array_equal(run(inline(m), [X])[0], X * X)


def test_calls_of_the_same_function_on_the_same_operands_are_one() -> None:
    """Calls in a binary tree of depth 200: without sharing they would never end."""
    functions = {"f0": region([F], lambda a: negate(a))}
    for i in range(1, 200):
        functions[f"f{i}"] = region([F], lambda a, i=i: add(call(f"f{i - 1}", a), call(f"f{i - 1}", a)))
    m = module(main=region([F], lambda a: call("f199", a)), **functions)
    f = inline(m)
    assert len(f.ops) == 201


def test_long_chains_of_calls() -> None:
    functions = {"f0": region([F], lambda a: negate(a))}
    for i in range(1, 3000):
        functions[f"f{i}"] = region([F], lambda a, i=i: call(f"f{i - 1}", a))
    f = inline(module(main=region([F], lambda a: call("f2999", a)), **functions))
    assert len(f.ops) == 2


def test_recursion_is_an_error_that_names_the_cycle() -> None:
    m = module(
        main=region([F], lambda a: call("even", a)),
        even=region([F], lambda a: call("odd", a)),
        odd=region([F], lambda a: call("even", a)),
    )
    with pytest.raises(Error, match="@even -> @odd -> @even"):
        inline(m)


def test_unknown_functions_and_wrong_types_are_errors() -> None:
    with pytest.raises(Error, match="no function @nowhere"):
        inline(module(main=region([F], lambda a: call("nowhere", a))))
    with pytest.raises(Error, match="no function @main"):
        inline(module(other=region([F], lambda a: a)))
    wrong = module(main=region([F], lambda a: call("scalar", a)), scalar=region([I], lambda a: a))
    with pytest.raises(Error, match="does not fit @scalar"):
        inline(wrong)


def test_locations_become_call_sites() -> None:
    inner, outer = (Loc("file", file=f"{n}.py", line=1, col=2) for n in ("callee", "caller"))
    p = parameter(0, F)
    body = Op(negate.kind, (p,), negate(p).attrs, F, inner)
    q = parameter(0, F)
    at = func_call.kind.make((q,), call("callee", q).attrs, outer)
    m = module(main=Function("main", [q], [q, at], [at]), callee=Function("callee", [p], [p, body], [body]))
    loc = inline(m).results[0].loc
    assert loc.kind == "callsite"
    assert loc.children == (inner, outer)
    assert str(loc) == "callee.py:1:2"


def test_inlined_and_simplified() -> None:
    m = module(main=region([F], lambda a: call("neg", call("neg", a))), neg=region([F], lambda a: negate(a)))
    f = simplify(inline(m))
    assert f.results == f.params
