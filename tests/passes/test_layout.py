"""Transpositions move behind what lies between convolutions, and vanish there."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.passes.layout import layout
from hilo.passes.legalize import legalize
from hilo.passes.simplify import simplify

CHANNELS_FIRST = "[b, f, 0, 1]x[o, i, 0, 1]->[b, f, 0, 1]"


def tensor(*shape: int) -> str:
    return f"tensor<{''.join(f'{n}x' for n in shape)}f32>"


X, Y, W1, W2, C = tensor(2, 5, 8, 9), tensor(2, 6, 8, 9), tensor(6, 5, 3, 3), tensor(6, 6, 1, 1), tensor(6)
POOLED, JOINED = tensor(2, 6, 4, 5), tensor(2, 12, 4, 5)

NETWORK = f"""func.func @main(%x: {X}, %w1: {W1}, %w2: {W2}, %m: {C}) -> ({tensor(2, 12)}, {Y}) {{
  %0 = stablehlo.convolution(%x, %w1) dim_numbers = {CHANNELS_FIRST}, window = {{pad = [[1, 1], [1, 1]]}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({X}, {W1}) -> {Y}
  %1 = stablehlo.broadcast_in_dim %m, dims = [1] : ({C}) -> {Y}
  %2 = stablehlo.subtract %0, %1 : {Y}
  %zero = stablehlo.constant dense<0.0> : {Y}
  %3 = stablehlo.maximum %2, %zero : {Y}
  %4 = stablehlo.convolution(%3, %w2) dim_numbers = {CHANNELS_FIRST}, window = {{}}
    {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({Y}, {W2}) -> {Y}
  %5 = stablehlo.add %4, %3 : {Y}
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %6 = "stablehlo.reduce_window"(%5, %low) <{{window_dimensions = array<i64: 1, 1, 2, 3>,
    window_strides = array<i64: 1, 1, 2, 2>, padding = dense<[[0, 0], [0, 0], [0, 0], [1, 1]]> : tensor<4x2xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %r = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %r : tensor<f32>
  }}) : ({Y}, tensor<f32>) -> {POOLED}
  %7 = stablehlo.concatenate %6, %6, dim = 1 : ({POOLED}, {POOLED}) -> {JOINED}
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %8 = stablehlo.reduce(%7 init: %none) applies stablehlo.add across dimensions = [2, 3] : ({JOINED}, tensor<f32>)
    -> {tensor(2, 12)}
  return %8, %5 : {tensor(2, 12)}, {Y} }}"""


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = ((2, 5, 8, 9), (6, 5, 3, 3), (6, 6, 1, 1), (6,))
    return [rng.integers(-3, 4, s).astype(np.float32) for s in shapes]


def test_a_network_turns_its_input_and_its_result() -> None:
    f = hilo.compile(NETWORK)
    for got, want in zip(f(*arrays()), hilo.interpret(NETWORK, *arrays()), strict=True):
        np.testing.assert_array_equal(got, want)
    turned = [line for line in f.text("simplify").splitlines() if "stablehlo.transpose" in line]
    large = [line for line in turned if "x8x9" in line or "8x9x" in line]
    assert len(large) == 2, turned


def test_a_second_time_there_is_nothing_to_do() -> None:
    f = legalize(hilo.parse(NETWORK)["main"])
    once = simplify(f)
    assert once is not f
    assert layout(once) is once


def test_bound_weights_are_turned_once() -> None:
    x, *weights = arrays()
    f = hilo.compile(NETWORK, constants=dict(enumerate(weights, 1)))
    for got, want in zip(f(x), hilo.interpret(NETWORK, x, *weights), strict=True):
        np.testing.assert_array_equal(got, want)
    assert "tensor<6x5x3x3xf32>" not in f.text("simplify")


@pytest.mark.parametrize("permutation", ["[1, 0, 2, 3]", "[0, 2, 1, 3]", "[3, 1, 2, 0]", "[0, 3, 2, 1]"])
def test_reductions_in_any_layout(permutation: str) -> None:
    """The axes that a reduction leaves may be in another order than before."""
    order = [int(c) for c in permutation if c.isdigit()]
    shape = [(2, 6, 8, 9)[d] for d in order]
    text = f"""func.func @main(%x: {X}, %w1: {W1}) -> {tensor(*shape[:1], *shape[2:])} {{
      %0 = stablehlo.convolution(%x, %w1) dim_numbers = {CHANNELS_FIRST}, window = {{pad = [[1, 1], [1, 1]]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({X}, {W1}) -> {Y}
      %1 = stablehlo.transpose %0, dims = {permutation} : ({Y}) -> {tensor(*shape)}
      %none = stablehlo.constant dense<0.0> : tensor<f32>
      %2 = stablehlo.reduce(%1 init: %none) applies stablehlo.add across dimensions = [1] :
        ({tensor(*shape)}, tensor<f32>) -> {tensor(*shape[:1], *shape[2:])}
      return %2 : {tensor(*shape[:1], *shape[2:])} }}"""
    given = arrays()[:2]
    np.testing.assert_array_equal(hilo.compile(text)(*given)[0], hilo.interpret(text, *given)[0])
