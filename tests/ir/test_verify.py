"""Verification of functions and modules: each way to be ill-formed is found."""

from __future__ import annotations

import numpy as np
import pytest

from hilo.errors import VerifyError
from hilo.ir.dtypes import f32, i1, i32
from hilo.ir.module import Function, Module, parameter, region
from hilo.ir.op import Array, Attrs, Op
from hilo.ir.types import TensorType
from hilo.ir.verify import verify
from hilo.ops.calls import call
from hilo.ops.constant import constant
from hilo.ops.control import if_, while_
from hilo.ops.elementwise_arith import add
from hilo.ops.shape import transpose

X = TensorType(f32, (2, 3))
P = TensorType(i1)


def bad(item, message, **options):
    with pytest.raises(VerifyError, match=message):
        verify(item, **options)


def test_good_functions():
    f = region([X], lambda x: add(x, transpose(transpose(x, permutation=(1, 0)), permutation=(1, 0))), "main")
    verify(f, types=True)
    verify(Module({"main": f}), types=True)


def test_order():
    p = parameter(0, X)
    a = add(p, p)
    b = add(a, a)
    bad(Function("f", [p], [p, b, a], [b]), "before it is defined")
    bad(Function("f", [p], [p, b], [b]), "before it is defined")
    bad(Function("f", [p], [p, a, a], [a]), "twice")
    bad(Function("f", [p], [p, a], [b]), "result 0 of f")


def test_parameters():
    p, q = parameter(0, X), parameter(1, X)
    bad(Function("f", [p, q], [q, p], [p]), "parameter 0 of f does not stand at its place")
    bad(Function("f", [p], [], [p]), "does not stand at its place")
    bad(Function("f", [q], [q], [q]), "not numbered 0")
    bad(Function("f", [p], [p, q], [p]), "among the ops")


def test_regions_are_closed():
    p, x = parameter(0, P), parameter(1, X)
    inner = parameter(0, X)
    open_region = Function("r", [inner], [inner, leak := add(inner, x)], [leak])
    good = region([X], lambda v: v)
    o = if_(p, x, true_branch=good, false_branch=open_region)
    bad(Function("f", [p, x], [p, x, o], [o]), "from outside of r")
    nested = while_(
        p,
        x,
        cond=region([P, X], lambda q, v: q),
        body=Function("b", (b := region([P, X], lambda q, v: (q, v))).params, b.ops, [*b.params[:1], x]),
    )
    bad(Function("f", [p, x], [p, x, nested], []), "result 1 of b")


def test_types_are_inferred_anew_on_demand():
    p = parameter(0, X)
    wrong = Op(transpose, (p,), Attrs(permutation=(1, 0)), X)
    f = Function("f", [p], [p, wrong], [wrong])
    verify(f)
    bad(f, "should be f32.3,2.", types=True)
    broken = Op(transpose, (p,), Attrs(permutation=(0, 0)), X)
    bad(Function("f", [p], [p, broken], [broken]), "does not permute", types=True)


def test_calls():
    one = region([X], lambda x: x, "one")

    def module(build):
        return Module({"main": region([X], build, "main"), "one": one})

    verify(module(lambda x: call(x, callee="one", type=X)))
    bad(module(lambda x: call(x, callee="two", type=X)), "no function @two")
    bad(module(lambda x: call(x, x, callee="one", type=X)), "@one takes")
    bad(module(lambda x: call(x, callee="one", type=TensorType(i32))), "@one returns")
    bad(Module({"main": one}), "is in the module as @main")


def test_a_large_function_is_checked_without_recursion():
    def chain(x):
        for _ in range(30000):
            x = add(x, x)
        return x

    verify(region([X], chain))
    verify(region([], lambda: constant(value=Array(np.float32(1)))))
