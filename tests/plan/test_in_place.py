"""Donated arguments are updated in place: no copy step, the same addresses, the interpreter's values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import hilo
from hilo.ir import dtypes
from hilo.ir.types import TensorType
from hilo.plan.donate import donations
from hilo.plan.program import Buffer, Copy, Program, While
from hilo.plan.times import Times
from hilo.runtime import _native
from hilo.runtime.executable import Executable

MODULES = Path(__file__).parents[2] / "benchmarks" / "modules"


VECTOR = TensorType(dtypes.f32, (16,))


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


def consume(f: Executable, arrays: list[np.ndarray]) -> tuple[list[np.ndarray], list[int]]:
    """Results of a call that gives its arguments up, and where those were."""
    given = [_native.empty(a.dtype, a.shape) for a in arrays]  # like results of hilo: aligned as results must be
    for i, a in enumerate(arrays):
        given[i][...] = a
    where = [address(g) for g in given]
    return f.consume(given), where


def copies(f: Executable) -> list[Copy]:
    """The steps of the program that copy whole buffers from one place to another."""
    out = []
    program = f.memory().program
    stack = list(program.steps)
    while stack:
        s = stack.pop()
        if isinstance(s, While):
            stack += [*s.cond, *s.body]
        elif isinstance(s, Copy) and s.source.nbytes > 64:
            pair = (s.target.root(), s.source.root())
            same = any(pair == (program.results[r], program.arguments[a]) for r, a in program.aliases)
            if pair[0] is not pair[1] and not same:
                out.append(s)
    return out


def test_a_step_with_a_cache_and_an_optimizer() -> None:
    """Weights, both moments and the cache of keys and values: eight arguments, all updated in place."""
    module = hilo.load(MODULES / "online_step_4x513.mlir")
    f = hilo.compile(module, threads=1)
    assert f.memory().aliases == tuple((i, i) for i in range(8))
    assert not copies(f)
    r = np.random.default_rng(0)
    arrays = []
    for i, t in enumerate(module["main"].param_types):
        shape = t.shape  # pyright: ignore[reportAttributeAccessIssue]
        a = r.standard_normal(shape, np.float32) * 0.05 if shape else np.asarray(17, np.int32)
        arrays.append(np.abs(a) if i in (4, 5) else a)
    got, where = consume(f, arrays)
    assert [address(g) for g in got[:8]] == where[:8]
    plain = f(*arrays)
    for a, b in zip(got, plain, strict=True):
        np.testing.assert_array_equal(a, b)
    for g, before in zip(got[6:8], arrays[6:8], strict=True):  # one position of the cache changed
        changed = (g != before).any(axis=(0, 1, 3))
        assert changed.nonzero()[0].tolist() == [17]


LOOP = """func.func @main(%x: tensor<1000x64xf32> {{tf.aliasing_output = 0 : i32}}, %n: tensor<i32>,
    %u: tensor<1x64xf32>) -> tensor<1000x64xf32> {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<1000x64xf32>
  cond {{
    %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %next = stablehlo.add %i, %one : tensor<i32>
    {update}
    stablehlo.return %next, %b : tensor<i32>, tensor<1000x64xf32>
  }}
  return %r#1 : tensor<1000x64xf32>
}}"""
SLICE = """%c = stablehlo.constant dense<0> : tensor<i32>
    %old = stablehlo.dynamic_slice %a, %i, %c, sizes = [1, 64]
        : (tensor<1000x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1x64xf32>
    %new = stablehlo.add %old, %u : tensor<1x64xf32>
    %b = stablehlo.dynamic_update_slice %a, %new, %i, %c
        : (tensor<1000x64xf32>, tensor<1x64xf32>, tensor<i32>, tensor<i32>) -> tensor<1000x64xf32>"""
SCATTER = """%at = stablehlo.reshape %i : (tensor<i32>) -> tensor<1x1xi32>
    %b = "stablehlo.scatter"(%a, %at, %u) ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %s = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %s : tensor<f32>
    }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
        scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}
      : (tensor<1000x64xf32>, tensor<1x1xi32>, tensor<1x64xf32>) -> tensor<1000x64xf32>"""


@pytest.mark.parametrize("update", [SLICE, SCATTER], ids=["dynamic_update_slice", "scatter"])
def test_updates_in_loops(update: str) -> None:
    """A loop that changes a row in each turn works in the memory of the argument."""
    module = hilo.parse(LOOP.format(update=update))
    f = hilo.compile(module, threads=1)
    assert f.memory().aliases == ((0, 0),)
    assert f.memory().temporaries < 4096  # no second place for the table
    assert not copies(f)
    r = np.random.default_rng(1)
    x, u = r.standard_normal((1000, 64)).astype(np.float32), r.standard_normal((1, 64)).astype(np.float32)
    arrays = [x, np.asarray(7, np.int32), u]
    (got,), where = consume(f, arrays)
    assert address(got) == where[0]
    np.testing.assert_array_equal(got, hilo.interpret(module, *arrays)[0])
    np.testing.assert_array_equal(got, f(*arrays)[0])


def test_a_wish_for_a_certain_result_comes_first() -> None:
    t = "tensor<1024xf32>"
    text = f"""func.func @main(%x: {t} {{tf.aliasing_output = 1 : i32}}, %y: {t} {{jax.buffer_donor = true}})
        -> ({t}, {t}) {{
        %0 = stablehlo.add %x, %y : {t}
        %1 = stablehlo.multiply %x, %0 : {t}
        return %0, %1 : {t}, {t} }}"""
    assert hilo.compile(text).memory().aliases == ((0, 1), (1, 0))


def test_as_many_arguments_as_possible_find_a_result() -> None:
    """Both results suit the first argument; the last one, which is read for longer, suits only one of them."""
    t = "tensor<1024xf32>"
    text = f"""func.func @main(%x: {t}, %y: {t}) -> ({t}, {t}) {{
        %0 = stablehlo.add %x, %y : {t}
        %1 = stablehlo.multiply %x, %0 : {t}
        return %0, %1 : {t}, {t} }}"""
    assert len(hilo.compile(text, donate=(0, 1)).memory().aliases) == 2
    results = [Buffer("result", 64, i, type=VECTOR, first=3 + i, last=9) for i in range(2)]
    arguments = [Buffer("argument", 64, i, type=VECTOR, first=1, last=last) for i, last in enumerate((1, 2))]
    late = Buffer("argument", 64, 2, type=VECTOR, first=1, last=3)
    program = Program("p", [*arguments, late], results, [])
    assert donations(program, (0, 2), Times()) == [(0, 0), (1, 2)]
    assert donations(program, (2, 0), Times()) == [(0, 0), (1, 2)]
    assert donations(program, {0: 1, 2: None}, Times()) == [(0, 0), (1, 2)]  # rather two than the one that was meant
    assert len(donations(program, (0, 1, 2), Times())) == 2


def test_readers_of_a_donated_argument_come_before_what_is_written_over_it() -> None:
    """The program asks for the new weights first, and for a product with the old ones then."""
    t = "tensor<256x256xf32>"
    text = f"""func.func @main(%w: {t} {{tf.aliasing_output = 0 : i32}}, %g: {t}) -> ({t}, {t}) {{
        %0 = stablehlo.subtract %w, %g : {t}
        %1 = stablehlo.dot_general %g, %w, contracting_dims = [1] x [1] : ({t}, {t}) -> {t}
        %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : ({t}, {t}) -> {t}
        return %0, %2 : {t}, {t} }}"""
    f = hilo.compile(text, threads=1)
    assert f.memory().aliases == ((0, 0),)
    r = np.random.default_rng(2)
    arrays = [r.standard_normal((256, 256), np.float32) for _ in range(2)]
    got, where = consume(f, arrays)
    assert address(got[0]) == where[0]
    for a, b in zip(got, f(*arrays), strict=True):
        np.testing.assert_array_equal(a, b)
