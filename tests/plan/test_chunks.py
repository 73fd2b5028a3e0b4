"""How parallel loops are cut: by shapes and cost alone, evenly for two threads."""

from __future__ import annotations

import pytest

from hilo.kernels.lowered import Phase
from hilo.loop.builder import I64, PTR, Func
from hilo.plan.entry import CHUNK_COST, MAX_CHUNKS, chunk_units


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
        assert chunk * cost >= CHUNK_COST / 2 - cost  # enough work for a piece
        assert larger_half(units, chunk) <= max(units / 2 * 1.07, -(-units // 2))


def test_odd_numbers_of_few_pieces() -> None:
    assert larger_half(280, 26) == 156  # by cost alone: six pieces of eleven
    assert larger_half(280, chunk_units(phase(280, 305.0))) == 140
    assert chunk_units(phase(3, 1e6)) == 1
    assert chunk_units(phase(1, 1e6)) == 1
