"""The interpreter: arguments, freeing of values, errors with op and place."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from hilo.errors import Error
from hilo.ir.dtypes import bf16, f32, i32
from hilo.ir.interpret import interpret, run
from hilo.ir.module import Function, Loc, Module, parameter, region
from hilo.ir.op import OpDef
from hilo.ir.types import UNKNOWN, Results, TensorType
from hilo.ops.calls import custom_call
from hilo.ops.elementwise_arith import add
from hilo.ops.shape import reshape

X = TensorType(f32, (2,))
ADD = Module({"main": region([X, X], lambda x, y: add(x, y), "main")})


def test_results():
    assert interpret(ADD, [np.ones(2, np.float32)] * 2)[0].tolist() == [2, 2]
    assert interpret(ADD, [memoryview(np.ones(2, np.float32)), np.ones(2, np.float32)])[0].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ([np.ones(2, np.float32)], "takes 2 arguments, but got 1"),
        ([np.ones(2), np.ones(2, np.float32)], r"argument 0 of @main is f64\[2\], but f32\[2\] is wanted"),
        ([np.ones(2, np.float32), np.ones((2, 1), np.float32)], r"argument 1 of @main is f32\[2,1\]"),
        ([np.ones(2, np.float32), np.ones(3, np.float32)], r"argument 1 of @main is f32\[3\]"),
        ([np.ones(2, ">f4"), np.ones(2, np.float32)], "element type >f4"),
        ([np.array(["a", "b"]), np.ones(2, np.float32)], "element type <U1"),
        ([[1.0, 2.0], np.ones(2, np.float32)], r"f64\[2\]"),
    ],
)
def test_arguments_are_checked_never_cast(arrays, message):
    with pytest.raises(Error, match=message):
        interpret(ADD, arrays)


def test_an_unknown_entry():
    with pytest.raises(Error, match="no function @other; there are: @main"):
        interpret(ADD, [], "other")


def test_symbolic_parameters_take_any_size():
    t = TensorType(f32, (UNKNOWN,))
    m = Module({"main": region([t], lambda x: add(x, x), "main")})
    assert interpret(m, [np.ones(5, np.float32)])[0].tolist() == [2] * 5


def test_errors_carry_op_and_place():
    o = custom_call(call_target_name="far", type=Results([]), loc=Loc("file", file="a.mlir", line=3, col=7))
    with pytest.raises(Error, match=r"^a.mlir:3:7: stablehlo.custom_call: .*'far'"):
        run(Function("f", [], [o], []), [])


def test_an_op_without_semantics():
    kind = OpDef("mystery", infer=lambda x: x)
    with pytest.raises(Error, match="mystery: this op cannot be evaluated"):
        run(region([X], lambda x: kind(x)), [np.ones(2, np.float32)])


def test_values_are_freed_after_their_last_use():
    alive: list[weakref.ref[np.ndarray]] = []
    most = 0

    def evaluate(x):
        nonlocal most
        out = x + 1
        alive.append(weakref.ref(out))
        gc.collect()
        most = max(most, sum(r() is not None for r in alive))
        return out

    kind = OpDef("count", infer=lambda x: x, evaluate=evaluate)

    def chain(x):
        for _ in range(20):
            x = kind(x)
        return x

    assert run(region([X], chain), [np.zeros(2, np.float32)])[0].tolist() == [20, 20]
    assert most <= 2


def test_a_result_may_be_a_parameter_twice_and_unused_values_go():
    p = parameter(0, X)
    f = Function("f", [p], [p, add(p, p)], [p, p])
    a = np.ones(2, np.float32)
    got = run(f, [a])
    assert got[0] is a
    assert got[1] is a


def test_rank_0_values_are_arrays():
    t = TensorType(bf16)
    got = run(region([t], lambda x: reshape(add(x, x), type=t)), [np.ones((), bf16.np)])[0]
    assert isinstance(got, np.ndarray)
    assert got.shape == ()


def test_deep_functions_do_not_recurse():
    def chain(x):
        for _ in range(20000):
            x = add(x, x)
        return x

    t = TensorType(i32)
    assert run(region([t], chain), [np.ones((), np.int32)])[0] == 0
