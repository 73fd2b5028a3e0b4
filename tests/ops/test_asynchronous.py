"""Futures: programs with async_start and async_done in every form, interpreted and compiled; collective_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import run_op

import hilo
from hilo.errors import Error, Unsupported, VerifyError
from hilo.formats import bytecode, hlo_text
from hilo.formats.mlir_text import parse, print_module
from hilo.ir.dtypes import bf16, f32, i32
from hilo.ir.module import Module, region
from hilo.ir.types import FutureType, OpaqueType, TensorType
from hilo.ops.asynchronous import MAY_START
from hilo.ops.collective_reduce import collective_reduce
from hilo.ops.elementwise_arith import add
from hilo.ops.reduce import body_of
from hilo.passes.futures import lower_futures
from hilo.testing import widen
from hilo.testing.pieces import all_ops

X = np.arange(16, dtype=np.float32).reshape(4, 4)
FUTURE = "!stablehlo.future<tensor<4x4xf32>>"
START = """
  %f = "stablehlo.async_start"(%x) ({
  ^bb0(%a: tensor<4x4xf32>):
    %r = "stablehlo.all_reduce"(%a) ({
    ^bb1(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0]]> : tensor<1x1xi64>} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    stablehlo.return %r : tensor<4x4xf32>
  }) : (tensor<4x4xf32>) -> !stablehlo.future<tensor<4x4xf32>>
"""
DONE = f'%d = "stablehlo.async_done"(%f) : ({FUTURE}) -> tensor<4x4xf32>\n'
PLAIN = f"func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {{{START}{DONE} return %d : tensor<4x4xf32>}}"
SLICED = """
func.func @main(%x: tensor<4x4xf32>, %i: tensor<i32>) -> tensor<2x4xf32> {
  %f = "stablehlo.async_start"(%x, %i, %i) ({
  ^bb0(%a: tensor<4x4xf32>, %b: tensor<i32>, %c: tensor<i32>):
    %r = stablehlo.dynamic_slice %a, %b, %c, sizes = [2, 4]
    : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
    stablehlo.return %r : tensor<2x4xf32>
  }) : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> !stablehlo.future<tensor<2x4xf32>>
  %d = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<2x4xf32>>) -> tensor<2x4xf32>
  return %d : tensor<2x4xf32>
}"""
# A future that a branch waits for, that is given to a function and comes back, that is an argument and a result.
FAR = f"""
func.func @through(%f: {FUTURE}) -> {FUTURE} {{ return %f : {FUTURE} }}
func.func @main(%x: tensor<4x4xf32>, %c: tensor<i1>, %g: {FUTURE}) -> (tensor<4x4xf32>, {FUTURE}) {{
  {START}
  %t = call @through(%f) : ({FUTURE}) -> {FUTURE}
  %b = "stablehlo.if"(%c) ({{
    %d = "stablehlo.async_done"(%t) : ({FUTURE}) -> tensor<4x4xf32>
    stablehlo.return %d : tensor<4x4xf32>
  }}, {{
    %d = "stablehlo.async_done"(%g) : ({FUTURE}) -> tensor<4x4xf32>
    stablehlo.return %d : tensor<4x4xf32>
  }}) : (tensor<i1>) -> tensor<4x4xf32>
  return %b, %f : tensor<4x4xf32>, {FUTURE}
}}"""
INSIDE = f"""
func.func @main(%x: tensor<4x4xf32>, %n: tensor<i32>) -> tensor<4x4xf32> {{
  %z = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %w:2 = stablehlo.while(%i = %z, %v = %x) : tensor<i32>, tensor<4x4xf32>
    cond {{
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      {START.replace("(%x)", "(%v)")} {DONE}
      %next = stablehlo.add %d, %d : tensor<4x4xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %next : tensor<i32>, tensor<4x4xf32>
    }}
  return %w#1 : tensor<4x4xf32>
}}"""


def runs(text: str, *arrays: Any) -> list[np.ndarray]:
    """The results, interpreted; the same are required of native code."""
    module = parse(text)
    want, got = hilo.interpret(module, *arrays), hilo.compile(module)(*arrays)
    for w, g in zip(want, got, strict=True):
        np.testing.assert_array_equal(np.asarray(g), w)
    return want


def test_a_future_is_what_its_operation_gives():
    np.testing.assert_array_equal(runs(PLAIN, X)[0], X)
    np.testing.assert_array_equal(runs(SLICED, X, np.int32(9))[0], X[2:])
    for c, want in ((True, X), (False, X + 1)):
        b, f = runs(FAR, X, np.bool_(c), X + 1)
        np.testing.assert_array_equal(b, want)
        np.testing.assert_array_equal(f, X)
    np.testing.assert_array_equal(runs(INSIDE, X, np.int32(3))[0], 8 * X)


def test_a_body_may_use_the_operands_themselves():
    """As in the specification's examples."""
    text = """
    func.func @main(%x: tensor<4x4xf32>, %i: tensor<i32>) -> tensor<2x4xf32> {
      %f = "stablehlo.async_start"(%x, %i) ({
        %r = stablehlo.dynamic_slice %x, %i, %i, sizes = [2, 4]
        : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x4xf32>
        stablehlo.return %r : tensor<2x4xf32>
      }) : (tensor<4x4xf32>, tensor<i32>) -> !stablehlo.future<tensor<2x4xf32>>
      %d = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<2x4xf32>>) -> tensor<2x4xf32>
      return %d : tensor<2x4xf32>
    }"""
    module = parse(text)
    np.testing.assert_array_equal(runs(text, X, np.int32(1))[0], X[1:3])
    assert print_module(parse(print_module(module))) == print_module(module)
    with pytest.raises(VerifyError, match="C3"):
        parse(text.replace('async_start"(%x, %i)', 'async_start"(%x, %x)').replace(
            "tensor<i32>) -> !", "tensor<4x4xf32>) -> !"))  # fmt: skip


def test_a_future_of_unknown_size():
    text = PLAIN.replace("4x4xf32", "?x4xf32")
    np.testing.assert_array_equal(runs(text, X[:3])[0], X[:3])
    np.testing.assert_array_equal(runs(text, X[:0])[0], X[:0])


def test_a_quantized_future():
    text = PLAIN.replace("4x4xf32", "4x4x!quant.uniform<i8:f32, 0.5:3>")
    text = text.replace("tensor<f32>", "tensor<!quant.uniform<i8:f32, 0.5:3>>")
    x = np.arange(16, dtype=np.int8).reshape(4, 4)
    np.testing.assert_array_equal(runs(text, x)[0], x)


@pytest.mark.parametrize("text", [PLAIN, SLICED, FAR, INSIDE])
def test_text_and_artifacts_keep_futures(text: str):
    module = parse(text)
    printed = print_module(module)
    assert print_module(parse(printed)) == printed
    for version in ("1.15.0", "current"):
        assert print_module(bytecode.parse(bytecode.write(module, version))) == printed
    with pytest.raises(Error, match=r"needs StableHLO 1\.15\.0"):
        bytecode.write(module, "1.14.0")


def test_hlo_text_of_futures():
    for text, arrays in ((PLAIN, [X]), (SLICED, [X, np.int32(1)]), (INSIDE, [X, np.int32(2)])):
        module = parse(text)
        written = hlo_text.print_module(module)
        assert "async-start" in written
        assert "async-done" in written
        for w, g in zip(hilo.interpret(module, *arrays), hilo.interpret(hlo_text.parse(written), *arrays), strict=True):
            np.testing.assert_array_equal(g, w)


def test_hlo_text_has_no_futures_at_edges():
    with pytest.raises(Unsupported, match="future"):
        hlo_text.print_module(parse(FAR))


def test_future_types():
    one = FutureType([TensorType(f32, (2,))])
    assert one is FutureType([TensorType(f32, (2,))])
    assert not isinstance(one, OpaqueType)
    assert str(one) == "future<f32[2]>"
    f = parse("func.func private @f() -> !stablehlo.future<tensor<2xf32>, tensor<?xi32>>")["f"]
    assert f.result_types == (FutureType([TensorType(f32, (2,)), parse(
        "func.func private @g() -> tensor<?xi32>")["g"].result_types[0]]),)  # fmt: skip
    for text, message in (("<>", "without a type"), ("<i32>", "tensors"), ("<!stablehlo.token>", "tensors")):
        with pytest.raises(Error, match=message):
            parse(f"func.func private @f() -> !stablehlo.future{text}")


def test_a_future_of_several_is_refused():
    text = "func.func @main(%f: !stablehlo.future<tensor<f32>, tensor<f32>>) { return }"
    with pytest.raises(Unsupported, match="future"):
        hilo.compile(parse(text))


def test_an_argument_for_a_future_is_checked():
    module = parse(f"func.func @main(%f: {FUTURE}) -> {FUTURE} {{ return %f : {FUTURE} }}")
    for runner in (hilo.interpret, lambda m, x: hilo.compile(m)(x)):
        with pytest.raises(Error, match="argument 0"):
            runner(module, np.zeros(3))


def test_futures_between_processes():
    text = PLAIN.replace("@main", "@one").replace("dense<[[0]]> : tensor<1x1xi64>", "dense<[[0, 1]]> : tensor<1x2xi64>")
    main = """
    func.func @main(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
      %r:2 = "interpreter.run_parallel"(%x, %x) {programs = [[@one], [@one]]}
        : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
      return %r#0, %r#1 : tensor<4x4xf32>, tensor<4x4xf32>
    }"""
    for got in hilo.interpret(parse(text + main), X):
        np.testing.assert_array_equal(got, 2 * X)


def test_a_widened_program_has_wide_futures():
    (got,) = hilo.interpret(widen.widen(parse(PLAIN)), X.astype(np.float64))
    assert got.dtype == np.float64


def test_functions_without_futures_stay_the_same():
    f = parse("func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }")["main"]
    assert lower_futures(f) is f


def test_what_may_start_exists():
    assert set(MAY_START) <= {d.full_name for d in all_ops()}


ADD = body_of(add, f32)


@pytest.mark.parametrize(("groups", "scale"), [(((0,),), 1), ((), 1), (((0, -1),), 1), (((1,),), 0)])
@pytest.mark.parametrize("rooted", [False, True])
def test_collective_reduce_of_one_process(groups: Any, scale: int, rooted: bool):
    arrays = [X, X[0], *([np.zeros(2, np.int32)] if rooted else [])]
    attrs = {"replica_groups": groups, "computation": ADD, "has_dynamic_root": rooted}
    types = [TensorType(f32, (4, 4)), TensorType(f32, (4,)), *([TensorType(i32, (2,))] if rooted else [])]
    module = Module({"main": region(types, lambda *xs: collective_reduce(*xs, **attrs).results(), "main")})
    for results in (run_op(collective_reduce, *arrays, **attrs), hilo.compile(module)(*arrays)):
        for got, x in zip(results, arrays, strict=False):
            np.testing.assert_array_equal(np.asarray(got), scale * x)


def test_collective_reduce_may_promote():
    x = np.ones((3,), bf16.np)
    assert run_op(collective_reduce, x, replica_groups=(), computation=ADD).dtype == np.float32
    assert run_op(collective_reduce, x, replica_groups=((2,),), computation=ADD).dtype == np.float32


def test_collective_reduce_in_all_formats():
    text = """
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %r = "stablehlo.collective_reduce"(%x) ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) {replica_groups = dense<[[0]]> : tensor<1x1xi64>} : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32>
    }"""
    module = parse(text)
    printed = print_module(module)
    assert print_module(parse(printed)) == printed
    for version in ("1.19.0", "current"):
        assert print_module(bytecode.parse(bytecode.write(module, version))) == printed
    with pytest.raises(Error, match=r"stablehlo.collective_reduce: the op needs StableHLO 1\.19\.0"):
        bytecode.write(module, "1.18.0")
    written = hlo_text.print_module(module)
    assert "collective-reduce" in written
    assert print_module(hlo_text.parse(written)).count("stablehlo.collective_reduce") == 1
    rooted = text.replace("(%x) ({", "(%x, %o) ({").replace("{replica", "{has_dynamic_root, replica")
    rooted = rooted.replace("(%x: tensor<4xf32>)", "(%x: tensor<4xf32>, %o: tensor<1xi32>)")
    rooted = rooted.replace(": (tensor<4xf32>) ->", ": (tensor<4xf32>, tensor<1xi32>) ->")
    with pytest.raises(Unsupported, match="root"):
        hlo_text.print_module(parse(rooted))
