"""while, if, case, calls, composites, tuples and tokens."""

from __future__ import annotations

import numpy as np
import pytest
from op_runs import both_ways, refuses, run_op

from hilo.errors import Error, Unsupported, VerifyError
from hilo.ir.dtypes import f32, i1, i32, i64, u32
from hilo.ir.interpret import interpret, run
from hilo.ir.module import Function, Module, parameter, region
from hilo.ir.op import Array, Attrs
from hilo.ir.types import TOKEN, UNKNOWN, Results, TensorType, TupleType
from hilo.ops.calls import call, composite, custom_call
from hilo.ops.compare import compare
from hilo.ops.constant import constant
from hilo.ops.control import case, if_, while_
from hilo.ops.elementwise_arith import add, multiply
from hilo.ops.tuples import (
    after_all,
    create_token,
    get_tuple_element,
    optimization_barrier,
    partition_id,
    replica_id,
    tuple_,
)

S, N, P = TensorType(f32), TensorType(i32), TensorType(i1)


def number(n: int):
    return constant(value=Array(np.int32(n)))


def test_while_counts_with_a_captured_limit_and_step():
    cond = region([N, S, N, S], lambda i, x, limit, step: compare(i, limit, comparison_direction="LT"))
    body = region([N, S, N, S], lambda i, x, limit, step: (add(i, number(1)), multiply(x, step)))
    i, x = run_op(while_, np.int32(0), np.float32(1), np.int32(10), np.float32(2), cond=cond, body=body)
    assert (i, x) == (10, 1024)
    i, x = run_op(while_, np.int32(10), np.float32(1), np.int32(10), np.float32(2), cond=cond, body=body)
    assert (i, x) == (10, 1)


def test_while_swaps_what_it_carries():
    cond = region([N, S, S], lambda i, x, y: compare(i, number(3), comparison_direction="LT"))
    body = region([N, S, S], lambda i, x, y: (add(i, number(1)), y, x))
    assert run_op(while_, np.int32(0), np.float32(1), np.float32(2), cond=cond, body=body) == (3, 2, 1)


def test_while_constraints():
    good = {"cond": region([P], lambda p: p), "body": region([P], lambda p: p)}
    refuses("C1", while_, [N], **good)
    refuses("C1", while_, [P], **{**good, "cond": region([P], lambda p: number(1))})
    refuses("C1", while_, [P], **{**good, "cond": region([P], lambda p: (p, p))})
    refuses("C2", while_, [P], **{**good, "body": region([N], lambda p: p)})
    refuses("C2", while_, [P], **{**good, "body": region([P], lambda p: number(1))})
    refuses("C2", while_, [P], **{**good, "body": region([P], lambda p: (p, p))})


def test_if_takes_one_branch_only():
    endless = region(
        [N],
        lambda x: while_(
            constant(value=Array(np.True_)),
            x,
            cond=region([P, N], lambda p, x: p),
            body=region([P, N], lambda p, x: (p, x)),
        ).results()[1],
    )
    plain = region([N], lambda x: add(x, x))
    assert run_op(if_, np.True_, np.int32(21), true_branch=plain, false_branch=endless) == 42
    assert run_op(if_, np.False_, np.int32(21), true_branch=endless, false_branch=plain) == 42


def test_if_constraints_and_symbolic_results():
    good = {"true_branch": region([N], lambda x: x), "false_branch": region([N], lambda x: x)}
    refuses("I1", if_, [N, N], **good)
    refuses("I1", if_, [TensorType(i1, (1,)), N], **good)
    refuses("C1", if_, [P, S], **good)
    refuses("C1", if_, [P, N], **{**good, "false_branch": region([], lambda: number(1))})
    refuses("C2", if_, [P, N], **{**good, "false_branch": region([N], lambda x: (x, x))})
    a, b = TensorType(f32, (3,)), TensorType(f32, (UNKNOWN,))
    o = if_(
        *(parameter(i, t) for i, t in enumerate((P, a, b))),
        true_branch=region([a, b], lambda x, y: x),
        false_branch=region([a, b], lambda x, y: y),
    )
    assert o.type is b


@pytest.mark.parametrize(
    ("index", "chosen"), [(0, 10), (1, 11), (2, 12), (3, 12), (-1, 12), (-(2**31), 12), (2**31 - 1, 12)]
)
def test_case_takes_the_last_branch_out_of_range(index, chosen):
    branches = tuple(region([], lambda k=k: number(10 + k)) for k in range(3))
    assert run_op(case, np.int32(index), branches=branches) == chosen


def test_case_constraints():
    one = region([], lambda: number(1))
    refuses("I1", case, [TensorType(i64)], branches=(one,))
    refuses("C1", case, [N], branches=())
    refuses("C2", case, [N], branches=(one, region([N], lambda x: x)))
    refuses("C3", case, [N], branches=(one, region([], lambda: constant(value=Array(np.float32(1))))))


def calling(kind=call, **attrs) -> Module:
    twice = region([S], lambda x: add(x, x), "twice")
    main = region([S], lambda x: kind(x, type=S, **attrs), "main")
    return Module({"main": main, "twice": twice})


def test_calls_and_composites_run_the_function_they_name():
    assert interpret(calling(callee="twice"), [np.float32(4)]) == [8]
    assert interpret(calling(composite, name="my.op", decomposition="twice"), [np.float32(4)]) == [8]
    with pytest.raises(Error, match="no function @other"):
        interpret(calling(callee="other"), [np.float32(4)])
    with pytest.raises(Error, match="no function @twice"):
        run(calling(callee="twice")["main"], [np.float32(4)])


def test_endless_recursion_is_an_error():
    with pytest.raises(Error, match="calling itself"):
        interpret(calling(callee="main"), [np.float32(4)])


def test_composite_constraints():
    refuses("C1", composite, [S], name="op", decomposition="f", type=S)
    refuses("C1", composite, [S], name="0.op", decomposition="f", type=S)
    refuses("C1", composite, [S], name="my.op.%", decomposition="f", type=S)
    refuses("C2", composite, [S], name="my.op", decomposition="", type=S)


def test_custom_calls_name_their_target():
    o = custom_call(call_target_name="my_gpu_kernel", type=Results([]))
    with pytest.raises(Unsupported, match="my_gpu_kernel"):
        run(Function("f", [], [o], []), [])


def test_custom_call_constraints():
    pair = TupleType([S, N])

    def alias(output, operand, inside):
        return Attrs(output_tuple_indices=output, operand_index=operand, operand_tuple_indices=inside)

    good = {"call_target_name": "f", "type": TupleType([N])}
    assert custom_call(parameter(0, pair), **good, output_operand_aliases=(alias((0,), 0, (1,)),)).type is good["type"]
    for wrong in (((0,), 1, ()), ((1,), 0, (1,)), ((0,), 0, (2,)), ((0,), 0, (0,)), ((0, 0), 0, ())):
        wrong = alias(*wrong)
        refuses("I7", custom_call, [pair], **good, output_operand_aliases=(wrong,))
    refuses("I2", custom_call, [S], call_target_name="", type=S)
    refuses("I4", custom_call, [S], call_target_name="f", type=S, api_version=4, backend_config="text")
    refuses("I4", custom_call, [S], call_target_name="f", type=S, api_version=3, backend_config=Attrs(a=1))


def test_tuples():
    pair = tuple_(number(1), constant(value=Array(np.float32(2))))
    assert pair.type is TupleType([N, S])
    one = get_tuple_element(pair, index=1)
    assert run(Function("f", [], [*pair.operands, pair, one], [one]), []) == [2]
    refuses("C1", get_tuple_element, [TupleType([N])], index=1)
    refuses("C1", get_tuple_element, [TupleType([N])], index=-1)
    refuses("I1", get_tuple_element, [N], index=0)


def test_barrier_tokens_and_ids():
    assert run_op(optimization_barrier, np.int32(1), np.float32(2)) == (1, 2)
    assert run_op(optimization_barrier, np.int32(1)) == 1
    token = create_token()
    assert after_all(token, token).type is TOKEN
    with pytest.raises(VerifyError):
        after_all(number(1))
    for kind in (partition_id, replica_id):
        assert both_ways(kind) == 0
        assert kind().type is TensorType(u32)
