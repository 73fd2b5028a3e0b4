"""Orders of ops: few bytes alive, parameters first, operands before ops, donated arguments read before they go."""

from __future__ import annotations

import random

import pytest

import hilo
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ir.verify import verify
from hilo.passes.inline import inline
from hilo.passes.orders import Flow, depth_first, eager, greedy
from hilo.passes.schedule import peak_bytes, schedule
from hilo.testing.generate import generate

T = "tensor<1000xf32>"


def main(text: str) -> Function:
    return inline(hilo.parse(text), "main")


def position(f: Function, name: str) -> int:
    return next(i for i, o in enumerate(f.ops) if o.name == name)


@pytest.mark.parametrize("seed", range(0, 60))
def test_every_order_is_valid(seed: int) -> None:
    f = inline(generate(seed, 20), "main")
    r = random.Random(seed)
    flow = Flow(f)
    base = depth_first(flow)
    for order in (base, greedy(flow), eager(flow, base, r.choice([0, 10**4, 10**9]))[0]):
        assert sorted(order) == list(range(len(f.ops)))
        assert [f.ops[i] for i in order[: len(f.params)]] == list(f.params)
        verify(f.replace(ops=[f.ops[i] for i in order]))
    assert eager(flow, base, 10**9)[1] == flow.peak(eager(flow, base, 10**9)[0])
    best = schedule(f)
    assert peak_bytes(best.ops, best.results) <= peak_bytes(f.ops, f.results)
    assert flow.least() <= flow.peak(base)


def test_a_value_that_frees_a_larger_one_comes_early() -> None:
    """Three slices of a large value, of which the last is used late: the large one is dead after all three."""
    large = "tensor<3000xf32>"
    f = main(f"""func.func @main(%x: {large}) -> tensor<f32> {{
        %0 = stablehlo.reverse %x, dims = [0] : {large}
        %1 = stablehlo.slice %0 [0:1000] : ({large}) -> {T}
        %2 = stablehlo.slice %0 [1000:2000] : ({large}) -> {T}
        %3 = stablehlo.dot_general %1, %2, contracting_dims = [] x [] : ({T}, {T}) -> tensor<1000x1000xf32>
        %4 = stablehlo.slice %0 [2000:3000] : ({large}) -> {T}
        %5 = stablehlo.dot_general %3, %4, contracting_dims = [0] x [0] : (tensor<1000x1000xf32>, {T}) -> {T}
        %6 = stablehlo.dot_general %5, %4, contracting_dims = [0] x [0] : ({T}, {T}) -> tensor<f32>
        return %6 : tensor<f32> }}""")
    g = schedule(f)
    names = [o.name for o in g.ops]
    assert names.index("dot_general") > max(i for i, n in enumerate(names) if n == "slice")


def test_donated_arguments_are_read_before_they_are_written_over() -> None:
    text = f"""func.func @main(%w: {T}, %g: {T}) -> ({T}, {T}) {{
        %0 = stablehlo.subtract %w, %g : {T}
        %1 = stablehlo.reverse %w, dims = [0] : {T}
        return %0, %1 : {T}, {T} }}"""
    f = main(text)
    assert schedule(f) is f
    g = schedule(f, [0])
    assert position(g, "reverse") < position(g, "subtract")
    verify(g)


def test_what_depends_on_the_new_value_may_read_the_old_one() -> None:
    f = main(f"""func.func @main(%w: {T}, %g: {T}) -> ({T}, {T}) {{
        %0 = stablehlo.subtract %w, %g : {T}
        %1 = stablehlo.dynamic_update_slice %0, %w, %c : ({T}, {T}, tensor<i32>) -> {T}
        return %0, %1 : {T}, {T} }}""".replace("%0 =", "%c = stablehlo.constant dense<0> : tensor<i32>\n %0 =", 1))
    verify(schedule(f, [0]))


def test_peaks() -> None:
    f = main(f"""func.func @main(%x: {T}) -> {T} {{
        %0 = stablehlo.reverse %x, dims = [0] : {T}
        %1 = stablehlo.reverse %0, dims = [0] : {T}
        %2 = stablehlo.cosine %1 : {T}
        return %2 : {T} }}""")
    assert peak_bytes(f.ops, f.results) == 8000  # reversed twice; the cosine is written over its operand

    def names(ops: list[Op]) -> list[str]:
        return [o.name for o in ops]

    assert names(list(schedule(f).ops)) == names(list(f.ops))
