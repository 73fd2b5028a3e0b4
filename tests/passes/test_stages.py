"""Programs with sizes that they compute themselves: native code against the interpreter, errors."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.errors import Error, Unsupported
from hilo.inspection import text_after
from hilo.passes.inline import inline
from hilo.passes.stages import stages

COUNT = """
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<1xi32>
    %from = stablehlo.constant dense<0> : tensor<1xi32>
    %e = stablehlo.exponential %x : tensor<?xf32>
    %s = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?xf32>) -> tensor<i32>
    %s1 = stablehlo.reshape %s : (tensor<i32>) -> tensor<1xi32>
    %limit = stablehlo.dynamic_broadcast_in_dim %t, %s1, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
    %m = stablehlo.compare GT, %e, %limit : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xi1>
    %i = stablehlo.convert %m : (tensor<?xi1>) -> tensor<?xi32>
    %c = stablehlo.reduce(%i init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
    %c1 = stablehlo.reshape %c : (tensor<i32>) -> tensor<1xi32>"""
"""How many elements of exp(x) are above t."""


def program(result: str, body: str) -> str:
    return f"func.func @main(%x: tensor<?xf32>, %t: tensor<f32>) -> {result} {{ {COUNT}\n{body} }}"


SLICE = program("tensor<?xf32>", """
    %r = stablehlo.real_dynamic_slice %e, %from, %c1, %one
        : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
    return %r : tensor<?xf32>""")
CASES = {
    "slice": SLICE,
    "broadcast": program("tensor<?x2xf32>", """
        %two = stablehlo.constant dense<2> : tensor<1xi32>
        %b = stablehlo.concatenate %c1, %two, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %r = stablehlo.dynamic_broadcast_in_dim %t, %b, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x2xf32>
        return %r : tensor<?x2xf32>"""),
    "iota and pad": program("tensor<?xi32>", """
        %p = stablehlo.dynamic_iota %c1, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
        %q = stablehlo.dynamic_pad %p, %c, %c1, %one, %from
            : (tensor<?xi32>, tensor<i32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xi32>
        %r = stablehlo.add %q, %q : tensor<?xi32>
        return %r : tensor<?xi32>"""),
    "twice": program("tensor<?xi32>", """
        %p = stablehlo.dynamic_iota %c1, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
        %k = stablehlo.reduce(%p init: %zero) applies stablehlo.add across dimensions = [0]
            : (tensor<?xi32>, tensor<i32>) -> tensor<i32>
        %k1 = stablehlo.reshape %k : (tensor<i32>) -> tensor<1xi32>
        %r = stablehlo.dynamic_iota %k1, dim = 0 : (tensor<1xi32>) -> tensor<?xi32>
        return %r : tensor<?xi32>"""),
    "bounded": program("tensor<?xf32, #stablehlo.bounds<9>>", """
        %v = stablehlo.constant dense<[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<9xf32>
        %p = "stablehlo.set_dimension_size"(%v, %c) {dimension = 0 : i64}
            : (tensor<9xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<9>>
        %r = stablehlo.add %p, %p : tensor<?xf32, #stablehlo.bounds<9>>
        return %r : tensor<?xf32, #stablehlo.bounds<9>>"""),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_sizes_that_are_computed(name: str) -> None:
    text = CASES[name]
    f = hilo.compile(text)
    for n in (0, 1, 5, 40):
        x = np.random.default_rng(n).standard_normal(n).astype(np.float32)
        for t in (np.float32(0), np.float32(1.5), np.float32(100)):
            for got, want in zip(f(x, t), hilo.interpret(text, x, t), strict=True):
                assert got.shape == want.shape
                np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_stage_for_each_size_that_follows_from_another() -> None:
    def count(text: str) -> int:
        return len(stages(inline(hilo.parse(text), "main")))

    assert count("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }") == 1
    assert count(CASES["slice"]) == 2
    assert count(CASES["twice"]) == 3


def test_what_both_parts_need_is_computed_once() -> None:
    first, second = stages(inline(hilo.parse(SLICE), "main"))
    assert [o.name for o in second.function.ops].count("exponential") == 0
    assert second.inputs == (2, 3)  # results of the first, no argument
    assert first.inputs == (0, 1)


def test_arguments_are_checked_first() -> None:
    f = hilo.compile(SLICE)
    with pytest.raises(Error, match=r"argument 1: expected f32\[\], got f64"):
        f(np.ones(3, np.float32), np.float64(1))
    with pytest.raises(Error, match="takes 2 arguments, got 1"):
        f(np.ones(3, np.float32))
    given = [np.ones(3, np.float32), np.float32(1)]
    assert f.consume(given)[0].shape == (3,)
    assert given == []


def test_a_computed_size_that_does_not_fit() -> None:
    f = hilo.compile(program("tensor<?xf32>", """
        %four = stablehlo.constant dense<4> : tensor<1xi32>
        %end = stablehlo.add %c1, %four : tensor<1xi32>
        %r = stablehlo.real_dynamic_slice %e, %from, %end, %one
            : (tensor<?xf32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
        return %r : tensor<?xf32>"""))  # fmt: skip
    with pytest.raises(Error, match=r"a slice leaves .*: start 0, limit 7, stride 1 along an axis of size 3"):
        f(np.ones(3, np.float32), np.float32(0))
    bounded = hilo.compile(program("tensor<?xi32, #stablehlo.bounds<4>>", """
        %r = stablehlo.dynamic_iota %c1, dim = 0 : (tensor<1xi32>) -> tensor<?xi32, #stablehlo.bounds<4>>
        return %r : tensor<?xi32, #stablehlo.bounds<4>>"""))  # fmt: skip
    assert bounded(np.ones(4, np.float32), np.float32(0))[0].shape == (4,)
    with pytest.raises(Error, match="a size of 5 is beyond the bound of"):
        bounded(np.ones(5, np.float32), np.float32(0))


def test_sizes_that_a_branch_computes_inside_of_itself_are_refused() -> None:
    text = program("tensor<f32>", """
        %p = stablehlo.compare GT, %c, %zero : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %f0 = stablehlo.constant dense<0.0> : tensor<f32>
        %r = "stablehlo.if"(%p) ({
            %g = stablehlo.convert %t : (tensor<f32>) -> tensor<i32>
            %g1 = stablehlo.reshape %g : (tensor<i32>) -> tensor<1xi32>
            %b = stablehlo.dynamic_broadcast_in_dim %t, %g1, dims = [] : (tensor<f32>, tensor<1xi32>) -> tensor<?xf32>
            %k = stablehlo.reduce(%b init: %f0) applies stablehlo.add across dimensions = [0]
                : (tensor<?xf32>, tensor<f32>) -> tensor<f32>
            stablehlo.return %k : tensor<f32>
        }, { stablehlo.return %f0 : tensor<f32> }) : (tensor<i1>) -> tensor<f32>
        return %r : tensor<f32>""")
    with pytest.raises(Unsupported, match="computes inside of a loop or a branch"):
        hilo.compile(text)


def test_texts_of_the_stages_come_in_order() -> None:
    text = text_after(hilo.parse(SLICE), "fuse")
    assert text.count("func.func") == 2
    assert text.index("exponential") < text.index("slice")
