"""Rematerialisation: temporaries fit a limit, results keep their bits, and what cannot fit is one clear error."""

from __future__ import annotations

import random

import numpy as np
import pytest

import hilo
from hilo.errors import Error
from hilo.ir.verify import verify
from hilo.options import Options
from hilo.passes.inline import inline
from hilo.passes.orders import Flow
from hilo.passes.remat import recompute

N = 32
T = f"tensor<{N}x{N}xf32>"


def program(seed: int, length: int = 40) -> str:
    """Random values of old and new ones: much stays alive for long."""
    r = random.Random(seed)
    lines = []
    for i in range(2, length + 2):
        a, b = (f"%{max(0, i - 1 - int(r.expovariate(0.15)))}" for _ in range(2))
        match r.choice("uubbbrdsn"):
            case "u":
                lines.append(f"%{i} = stablehlo.{r.choice(['cosine', 'tanh', 'negate'])} {a} : {T}")
            case "b":
                lines.append(f"%{i} = stablehlo.{r.choice(['add', 'subtract', 'maximum'])} {a}, {b} : {T}")
            case "r":
                lines.append(f"%{i} = stablehlo.reverse {a}, dims = [0] : {T}")
            case "d":
                lines.append(f"%{i} = stablehlo.dot_general {a}, {b}, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}")
            case "s":
                lines += [
                    f"%z{i} = stablehlo.constant dense<0.0> : tensor<f32>",
                    f"%s{i} = stablehlo.reduce({a} init: %z{i}) applies stablehlo.add across dimensions = [1] "
                    f": ({T}, tensor<f32>) -> tensor<{N}xf32>",
                    f"%b{i} = stablehlo.broadcast_in_dim %s{i}, dims = [0] : (tensor<{N}xf32>) -> {T}",
                    f"%{i} = stablehlo.subtract {b}, %b{i} : {T}",
                ]
            case _:
                lines.append(f"%q{i} = stablehlo.reshape {a} : ({T}) -> tensor<{N * N}xf32>")
                lines.append(f"%p{i} = stablehlo.cosine %q{i} : tensor<{N * N}xf32>")
                lines.append(f"%{i} = stablehlo.reshape %p{i} : (tensor<{N * N}xf32>) -> {T}")
    body = "\n".join(lines)
    total = "\n".join(
        f"%t{i} = stablehlo.add {f'%t{i - 1}' if i > 2 else '%1'}, %{length + 4 - 2 * i} : {T}"
        for i in range(2, length // 3)
    )
    return f"func.func @main(%0: {T}, %1: {T}) -> {T} {{ {body}\n{total}\n return %t{length // 3 - 1} : {T} }}"


LONG = f"""func.func @main(%x: {T}, %y: {T}) -> {T} {{
    %a = stablehlo.tanh %x : {T}
    %k = stablehlo.cosine %x : {T}
    %b = stablehlo.dot_general %a, %k, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    %c = stablehlo.dot_general %b, %y, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    %d = stablehlo.dot_general %c, %y, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    %e = stablehlo.dot_general %d, %a, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    %f = stablehlo.dot_general %e, %k, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    return %f : {T} }}"""


@pytest.mark.parametrize(("fuse", "part", "least"), [(True, 0.9, 2), (False, 0.75, 4)])
def test_fits_with_the_same_bits(fuse: bool, part: float, least: int) -> None:
    met = 0
    for text in (LONG, *map(program, range(12))):
        module = hilo.parse(text)
        r = np.random.default_rng(0)
        arrays = [r.standard_normal((N, N)).astype(np.float32) * np.float32(0.1) for _ in range(2)]
        free = hilo.compile(module, threads=1, options=Options(fuse=fuse))
        limit = int(free.memory().temporaries * part)
        try:
            f = hilo.compile(module, threads=1, options=Options(fuse=fuse, memory_limit=limit))
        except Error:
            continue
        met += 1
        assert f.memory().temporaries <= limit
        np.testing.assert_array_equal(f(*arrays)[0], free(*arrays)[0])
    assert met >= least


@pytest.mark.parametrize("seed", range(20))
def test_less_is_alive_and_the_function_is_valid(seed: int) -> None:
    f = inline(hilo.parse(program(seed)), "main")
    before = Flow(f).peak(range(len(f.ops)))
    g = recompute(f, 0)
    verify(g)
    assert Flow(g).peak(range(len(g.ops))) <= before
    assert recompute(f, before) is f


def test_activations_are_computed_again_rather_than_kept() -> None:
    f = inline(hilo.parse(LONG), "main")
    g = recompute(f, 2 * N * N * 4)
    names = [o.name for o in g.ops]
    assert (names.count("tanh"), names.count("cosine"), names.count("dot_general")) == (2, 2, 5)


def test_a_donated_argument_is_read_no_later() -> None:
    f = inline(hilo.parse(LONG), "main")
    assert recompute(f, 0, donated=[0]) is f


def test_what_cannot_fit_is_an_error_with_the_least_that_was_reached() -> None:
    with pytest.raises(Error, match=r"take [\d,]+ bytes at the least, more than the 64 that memory_limit"):
        hilo.compile(LONG, options=Options(memory_limit=64))


def test_limits_from_the_environment() -> None:
    assert Options.from_env({"HILO_MEMORY_LIMIT": "1000"}).memory_limit == 1000
    assert Options().memory_limit is None
    for wrong in ("-1", "many"):
        with pytest.raises(Error, match="HILO_MEMORY_LIMIT"):
            Options.from_env({"HILO_MEMORY_LIMIT": wrong})
