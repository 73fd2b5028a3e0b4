"""Estimates and numbers of units by which two threads share work."""

from __future__ import annotations

import pytest
from contraction_runs import operand_types
from test_contraction import matmul

from hilo import kernels
from hilo.backend.target import Target
from hilo.ir.dtypes import f32
from hilo.ir.module import parameter, region
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType
from hilo.kernels.contraction_plan import plan, recipe
from hilo.kernels.contraction_units import FEW_UNITS, PIECE_NS, SHARED_NS, UNIT_NS, counts, divide, idle, wanted_units
from hilo.plan.entry import INLINE_COST

TARGET = Target.named("x86-avx512")


@pytest.mark.parametrize("most", [1, 7, 8, 16])
def test_even_numbers_of_units(most: int) -> None:
    for ns in (0.0, SHARED_NS, 4.5 * UNIT_NS, 10.5 * UNIT_NS, 1e9):
        count = wanted_units(ns, most)
        assert count <= most
        assert count % 2 == 0 or count in (1, most)
    assert wanted_units(0.0, 16) == 1
    assert wanted_units(SHARED_NS, 16) == min(FEW_UNITS, SHARED_NS // PIECE_NS)
    assert wanted_units(10.5 * UNIT_NS, 16) == 12


def taken_in_turns(work: list[int]) -> int:
    """What the slower of two threads does: each one half of the units, then those of the other that are left."""
    half = (len(work) + 1) // 2
    left = [work[:half], work[half:]]
    done = [0, 0]
    while any(left):
        t = 0 if done[0] <= done[1] else 1
        own = left[t] or left[1 - t]
        done[t] += own.pop(0)
    return max(done)


@pytest.mark.parametrize("size", [(37, 129), (97, 211), (131, 301), (1, 5), (7, 1), (64, 64), (1003, 17)])
@pytest.mark.parametrize("tile", [(1, 1), (8, 48), (14, 32)])
def test_what_two_threads_lose(size: tuple[int, int], tile: tuple[int, int]) -> None:
    """The estimate is right to within a unit, and exact where no unit changes hands."""
    tall, wide = (-(-n // t) for n, t in zip(size, tile, strict=True))
    for down in counts(min(tall, 20), 1, 6):
        for across in counts(min(wide, 20), 1, 6):
            for times in (1, 3):
                spans = [[min(n * (i + 1) // c * t, s) - min(n * i // c * t, s) for i in range(c)]
                         for n, c, t, s in zip((tall, wide), (down, across), tile, size, strict=True)]  # fmt: skip
                work = [r * c for r in spans[0] for c in spans[1]] * times
                assert sum(work) == size[0] * size[1] * times
                lost = 2 * taken_in_turns(work) / sum(work) - 1
                assert abs(idle(size, tile, (down, across), times) - lost) <= max(work) / sum(work) + 1e-9


def test_blocks_are_whole_tiles_that_cover_everything() -> None:
    for size in ((1, 1), (37, 144), (97, 224), (513, 96), (4001, 16), (2, 4000)):
        for tile in ((1, 1), (14, 32), (8, 48)):
            for times, units, fewest in ((1, 1, 1), (1, 4, 1), (1, 16, 2), (7, 7, 1), (64, 64, 1), (3, 64, 3)):
                (height, width), lost = divide(size, tile, times, units, fewest, 1e5, (100.0, 100.0))
                assert height % tile[0] == width % tile[1] == 0
                assert 0 < height < size[0] + tile[0]
                assert 0 < width < size[1] + tile[1]
                assert lost >= 0
                assert -(-size[0] // height) >= min(fewest, -(-size[0] // tile[0]))
                if units == 1:
                    assert -(-size[1] // width) == 1


@pytest.mark.parametrize(
    ("m", "k", "n"),
    [(37, 511, 129), (61, 131, 259), (97, 503, 211), (131, 127, 301), (150, 150, 150), (191, 193, 197), (257, 63, 65),
     (53, 769, 97), (100, 100, 100), (17, 4001, 31), (128, 784, 512), (300, 300, 300), (401, 199, 67),
     (1000, 1000, 1000)],
)  # fmt: skip
def test_two_threads_share_products_of_odd_sizes(m: int, k: int, n: int) -> None:
    """At most a tenth of their time is lost for units of different size."""
    r = recipe(f32, f32, f32, TARGET)
    p = plan((1, m, n, k), r, TARGET, b_row=n, b_column=1, inner=False, stream=False)
    _, _, down, across = p.blocks
    assert p.kind == "tile"
    assert p.units > 1
    assert idle((m, -(-n // p.lanes) * p.lanes), (p.rows, p.width), (down, across), 1) < 0.1


def test_few_multiply_adds_are_one_unit() -> None:
    p = plan((1, 32, 32, 32), recipe(f32, f32, f32, TARGET), TARGET, b_row=32, b_column=1, inner=False, stream=False)
    assert p.units == 1


def test_a_tall_product_is_cut_evenly() -> None:
    op = matmul(12544, 96, 16)
    (phase,) = kernels.lower(op, TARGET).phases
    assert [t.shape for t in operand_types(op)] == [(12544, 16), (16, 96)]
    assert phase.units % 2 == 0


def test_ends_of_short_rows_count() -> None:
    """4001 rows of 31: what is done at the end of each is most of the work, and worth a second thread."""
    add = region([TensorType(f32)] * 2, lambda a, b: lookup("stablehlo.add")(a, b))

    def cost(rows: int, columns: int, axis: int) -> float:
        x, zero = parameter(0, TensorType(f32, (rows, columns))), parameter(1, TensorType(f32))
        op = lookup("stablehlo.reduce")(x, zero, dimensions=(axis,), body=add)
        return sum(p.units * p.unit_cost for p in kernels.lower(op, TARGET).phases)

    assert cost(16004, 31, 1) > INLINE_COST
    assert cost(16004, 31, 1) > 2 * cost(31, 16004, 0)
