"""Random programs without the sizes of their arguments: compiled for any, they give what they gave."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.ir.types import has_unknown_sizes
from hilo.ir.verify import verify
from hilo.passes.inline import inline
from hilo.testing import compare
from hilo.testing.agree import kinds
from hilo.testing.generate import generate, inputs
from hilo.testing.unsized import unsized


@pytest.mark.parametrize("seed", [*range(24), 72, 115])  # the last ones hold tuples
def test_programs_without_sizes_agree(seed: int) -> None:
    module = generate(seed, 8)
    found, arrays = unsized(module), inputs(module, seed)
    if found is None:
        assert not any(a.ndim for a in arrays)
        return
    verify(found, types=True)
    want = hilo.interpret(module, *arrays)
    exact = [k == "exact" for k in kinds(inline(module, "main"))]
    for got in (hilo.interpret(found, *arrays), hilo.compile(found)(*arrays)):
        for g, w, is_exact in zip(map(np.asarray, got), map(np.asarray, want), exact, strict=True):
            assert g.shape == w.shape
            assert not is_exact or compare.identical(g, w).all()


def test_integers_that_reduce_to_nothing_or_by_odd_bodies() -> None:
    """They are followed as if they were sizes; the program has others that are."""
    text = """func.func @main(%x: tensor<?xi32>, %y: tensor<0x1xi32>)
        -> (tensor<1xi32>, tensor<i32>, tensor<?xi32>) {
      %i = stablehlo.constant dense<7> : tensor<i32>
      %r = "stablehlo.reduce"(%y, %i) <{dimensions = array<i64: 0>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %c = stablehlo.add %a, %b : tensor<i32>
        stablehlo.return %c : tensor<i32>
      }) : (tensor<0x1xi32>, tensor<i32>) -> tensor<1xi32>
      %k = stablehlo.constant dense<[5, 3]> : tensor<2xi32>
      %s = "stablehlo.reduce"(%k, %i) <{dimensions = array<i64: 0>}> ({
      ^bb0(%a: tensor<i32>, %b: tensor<i32>):
        %c = stablehlo.multiply %a, %a : tensor<i32>
        stablehlo.return %c : tensor<i32>
      }) : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
      return %r, %s, %x : tensor<1xi32>, tensor<i32>, tensor<?xi32>
    }"""
    arrays = [np.zeros(3, np.int32), np.zeros((0, 1), np.int32)]
    first, second, _ = hilo.compile(text)(*arrays)
    assert np.array_equal(first, [7])
    assert second == 7**4


def test_other_sizes_are_served_or_refused() -> None:
    module = unsized(hilo.parse("""func.func @main(%x: tensor<4x3xf32>, %y: tensor<4x3xf32>) -> tensor<4x3xf32> {
      %r = stablehlo.add %x, %y : tensor<4x3xf32>
      return %r : tensor<4x3xf32>
    }"""))
    assert module is not None
    assert has_unknown_sizes(module["main"])
    f = hilo.compile(module)
    for n in (0, 1, 7):
        x = np.ones((n, 3), np.float32)
        assert np.array_equal(f(x, x)[0], x + x)
    with pytest.raises(hilo.Error):
        f(np.ones((2, 3), np.float32), np.ones((3, 3), np.float32))
