"""Donation: results take an argument's memory where it is read no more, and only in calls that give arrays up."""

from __future__ import annotations

import numpy as np

import hilo
from hilo.runtime import _native

N = 1 << 16
T = f"tensor<{N}xf32>"


def address(a: np.ndarray) -> int:
    return a.__array_interface__["data"][0]


def consume(text: str, *arrays: np.ndarray, donate: tuple[int, ...] = ()) -> tuple[list[np.ndarray], list[int]]:
    """Results of a call that gives its arguments up, and where those were."""
    f = hilo.compile(text, donate=donate)
    given = [_native.empty(a.dtype, a.shape) for a in arrays]  # like results of hilo: aligned as results must be
    for g, a in zip(given, arrays, strict=True):
        g[...] = a
    del g, a
    where = [address(a) for a in given]
    return f.consume(given), where


def program(body: str, attrs: str = "") -> str:
    return f"func.func @main(%x: {T}{attrs}, %y: {T}) -> {T} {{ {body} }}"


X, Y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
ADD = program(f"%0 = stablehlo.add %x, %y : {T}\n return %0 : {T}")


def test_a_result_takes_the_place_of_a_donated_argument() -> None:
    (r,), where = consume(ADD, X, Y, donate=(0,))
    assert address(r) == where[0]
    np.testing.assert_array_equal(r, X + Y)


def test_an_argument_that_is_read_twice_at_once() -> None:
    (r,), where = consume(program(f"%0 = stablehlo.add %x, %x : {T}\n return %0 : {T}"), X, Y, donate=(0,))
    assert address(r) == where[0]
    np.testing.assert_array_equal(r, X + X)
    moved = f"%0 = stablehlo.reverse %x, dims = [0] : {T}\n %1 = stablehlo.add %x, %0 : {T}\n return %1 : {T}"
    (r,), where = consume(program(moved), X, Y, donate=(0,))
    assert address(r) != where[0]
    np.testing.assert_array_equal(r, X + X[::-1])


def test_the_program_may_donate() -> None:
    text = program(f"%0 = stablehlo.add %x, %y : {T}\n return %0 : {T}", " {tf.aliasing_output = 0 : i32}")
    (r,), where = consume(text, X, Y)
    assert address(r) == where[0]


def test_nothing_is_taken_unasked() -> None:
    (r,), where = consume(ADD, X, Y)
    assert address(r) not in where
    f = hilo.compile(ADD, donate=(0, 1))
    x = X.copy()
    np.testing.assert_array_equal(f(x, Y)[0], X + Y)
    np.testing.assert_array_equal(x, X)


def test_an_argument_that_is_read_later_stays() -> None:
    text = program(
        f"""%0 = stablehlo.reverse %x, dims = [0] : {T}
        return %0 : {T}"""
    )
    (r,), _ = consume(text, X, Y, donate=(0,))
    np.testing.assert_array_equal(r, X[::-1])


def test_an_argument_that_is_a_result() -> None:
    (r,), where = consume(program(f"return %x : {T}"), X, Y, donate=(0,))
    np.testing.assert_array_equal(r, X)
    assert address(r) == where[0]


def test_one_argument_for_two_results() -> None:
    text = f"func.func @main(%x: {T}) -> ({T}, {T}) {{ return %x, %x : {T}, {T} }}"
    (r, s), _ = consume(text, X, donate=(0,))
    np.testing.assert_array_equal(r, X)
    np.testing.assert_array_equal(s, X)
    assert address(r) != address(s)


def test_views_keep_their_memory() -> None:
    f = hilo.compile(ADD, donate=(0,))
    x = X.copy()
    view = x[1:3]
    given = [x, Y.copy()]
    del x
    (r,) = f.consume(given)
    np.testing.assert_array_equal(view, X[1:3])
    np.testing.assert_array_equal(r, X + Y)


def test_in_a_loop() -> None:
    text = f"""func.func @main(%x: {T}, %y: {T}) -> ({T}, {T}) {{
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %r:3 = stablehlo.while(%i = %zero, %a = %x, %b = %y) : tensor<i32>, {T}, {T}
      cond {{
        %n = stablehlo.constant dense<37> : tensor<i32>
        %p = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %one = stablehlo.constant dense<1> : tensor<i32>
        %next = stablehlo.add %i, %one : tensor<i32>
        %s = stablehlo.add %a, %y : {T}
        stablehlo.return %next, %b, %s : tensor<i32>, {T}, {T}
      }}
      return %r#1, %r#2 : {T}, {T}
    }}"""
    module = hilo.parse(text)
    got = hilo.compile(module, donate=(0, 1)).consume([X.copy(), Y.copy()])
    for g, w in zip(got, hilo.interpret(module, X, Y), strict=True):
        np.testing.assert_array_equal(g, w)


def test_results_of_run_time_sizes_take_arguments_of_the_same_sizes() -> None:
    text = """func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>, %z: tensor<?x3xf32>)
            -> (tensor<?x3xf32>, tensor<?x3xf32>) {
        %0 = stablehlo.add %x, %y : tensor<?x3xf32>
        %1 = stablehlo.concatenate %z, %z, dim = 0 : (tensor<?x3xf32>, tensor<?x3xf32>) -> tensor<?x3xf32>
        return %0, %1 : tensor<?x3xf32>, tensor<?x3xf32> }"""
    x, y, z = (np.full((n, 3), n, np.float32) for n in (5, 5, 4))
    (a, b), where = consume(text, x, y, z, donate=(0, 2))
    assert address(a) == where[0]
    assert address(b) != where[2]  # twice as large
    np.testing.assert_array_equal(a, x + y)
    np.testing.assert_array_equal(b, np.concatenate([z, z]))
    (a, b), _ = consume(text, x[:0], y[:0], z, donate=(0, 2))
    assert a.shape == (0, 3)
    np.testing.assert_array_equal(b, np.concatenate([z, z]))
