"""How parallel loops are cut: by shapes and cost alone, evenly for two threads."""

from __future__ import annotations

import pytest

import hilo
from hilo import pipeline
from hilo.backend.target import Target
from hilo.kernels.lowered import Phase
from hilo.loop.builder import I64, PTR, Func
from hilo.options import Options
from hilo.plan.entry import (
    CHUNK_COST,
    INLINE_COST,
    LITTLE_COST,
    MAX_CHUNKS,
    chunk_units,
    emit_entry,
    is_little,
    is_shared,
)


def phase(units: int, cost: float) -> Phase:
    return Phase(Func("f", [("bufs", PTR), ("begin", I64), ("end", I64)]), units, cost)


def larger_half(units: int, chunk: int) -> int:
    """Units of the thread that has more of them."""
    pieces = -(-units // chunk)
    return min(units, -(-pieces // 2) * chunk)


@pytest.mark.parametrize("units", [2, 3, 7, 9, 11, 29, 49, 100, 168, 280, 1000, 1021, 30011])
@pytest.mark.parametrize("cost", [10.0, 120.0, 312.0, 1500.0, 9000.0, 1e6])
def test_two_threads_have_about_the_same(units: int, cost: float) -> None:
    chunk = chunk_units(phase(units, cost))
    assert isinstance(chunk, int)
    assert 1 <= chunk <= units
    pieces = -(-units // chunk)
    assert pieces <= MAX_CHUNKS
    if pieces > 1:
        least = CHUNK_COST if units * cost > INLINE_COST else LITTLE_COST
        assert chunk * cost >= least / 2 - cost  # enough work for a piece
        assert larger_half(units, chunk) <= max(units / 2 * 1.07, -(-units // 2))


def test_odd_numbers_of_few_pieces() -> None:
    assert larger_half(280, 26) == 156  # by cost alone: six pieces of eleven
    assert larger_half(280, chunk_units(phase(280, 305.0))) == 140
    assert chunk_units(phase(3, 1e6)) == 1
    assert chunk_units(phase(1, 1e6)) == 1


def test_little_work_is_for_threads_that_are_awake() -> None:
    """From LITTLE_COST on, by halves; up to INLINE_COST nobody is woken."""
    for units in (2, 3, 8, 1001):
        alone, little, much = (phase(units, ns / units) for ns in (LITTLE_COST, LITTLE_COST + 1, INLINE_COST + 1))
        assert [is_shared(p) for p in (alone, little, much)] == [False, True, True]
        assert [is_little(p) for p in (little, much)] == [True, False]
        assert chunk_units(little) == -(-units // 2)
    assert not is_shared(phase(1, 1e9))


SUMS = """func.func @main(%x: tensor<{rows}x31xf32>) -> (tensor<{rows}x31xf32>, tensor<31xf32>) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %y = stablehlo.abs %x : tensor<{rows}x31xf32>
  %s = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<{rows}x31xf32>, tensor<f32>) -> tensor<31xf32>
  return %y, %s : tensor<{rows}x31xf32>, tensor<31xf32>
}}"""  # noqa: E501


@pytest.mark.parametrize("portable", [False, True])
def test_the_entry_says_what_is_little(portable: bool) -> None:
    """By a negative chunk, which only hilo's own loop knows."""

    def chunks(rows: int) -> list[int]:
        f = pipeline.optimize(hilo.parse(SUMS.format(rows=rows)), "main", Options.from_env())
        program = pipeline.plan(f, Target.named("x86-avx512"))
        (entry,) = emit_entry(program, portable=portable)
        return [int(n.args[-1].const) for n in entry.body.nodes if n.kind == "callptr"]

    assert chunks(40) == []
    assert [c < 0 for c in chunks(1501)] == ([] if portable else [True])
    assert [c < 0 for c in chunks(40011)] == [False]
