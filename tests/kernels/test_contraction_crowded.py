"""Rows of A that fall into one set of the first-level cache: which tiles are chosen, and what they compute."""

from __future__ import annotations

import re

import numpy as np
import pytest
from contraction_runs import Kernel
from test_contraction import TARGETS, check, matmul, operands

from hilo.backend.target import Target
from hilo.ir import dtypes as d
from hilo.ir.dtypes import DType
from hilo.ir.op import Op
from hilo.kernels.contraction import lower
from hilo.kernels.contraction_plan import CROWDED_ROWS, crowds, recipe
from hilo.kernels.contraction_plan import plan as plan_product
from hilo.kernels.convolution_plan import Problem, crowded
from hilo.kernels.convolution_plan import plan as plan_convolution
from hilo.kernels.pins import pinned
from hilo.ops.window_axes import Axis

WIDE = Target.named("x86-avx512")


@pytest.mark.parametrize(
    ("rows", "stride", "is_so"),
    [
        (14, 4096, True),
        (9, 8192, True),
        (8, 4096, False),  # a set holds them all
        (14, 4092, True),
        (14, 3 * 4096 + 4, True),
        (14, 4120, False),
        (14, 4000, False),
        (14, 2048, False),  # two sets
        (14, 4088, False),  # likewise, as lines end
        (24, 2048, True),
        (24, 64, False),
        (24, 0, False),  # together, or not known
        (0, 4096, False),
    ],
)
def test_which_rows_crowd_a_set(rows: int, stride: int, is_so: bool) -> None:
    assert crowds(rows, stride) is is_so


def tile_of(op: Op) -> tuple[int, int]:
    """Rows and columns of the tiles of a product, as its kernel says."""
    found = re.search(r"tiles (\d+)x(\d+)", lower(op, WIDE).strategy)
    assert found is not None
    return int(found[1]), int(found[2])


@pytest.mark.parametrize("tb", [False, True])
@pytest.mark.parametrize(("m", "n"), [(64, 64), (128, 128), (90, 200), (256, 128), (40, 17)])
def test_tiles_take_few_rows_where_these_crowd_a_set(m: int, n: int, tb: bool) -> None:
    for k in (1023, 1024, 1025, 2047, 2048):
        assert tile_of(matmul(m, n, k, tb=tb))[0] <= CROWDED_ROWS
    for k in (512, 1024):
        assert tile_of(matmul(m, n, k, d.f64, tb=tb))[0] <= CROWDED_ROWS


def test_three_vectors_stay_together_where_rows_are_few() -> None:
    assert tile_of(matmul(300, 40, 1024)) == (8, 48)
    assert tile_of(matmul(64, 64, 1024, tb=True)) == (8, 32)


@pytest.mark.parametrize("k", [64, 512, 960, 1000, 1030, 2000, 2080])
def test_tiles_stay_tall_where_rows_lie_apart(k: int) -> None:
    assert tile_of(matmul(130, 256, k, tb=True))[0] > CROWDED_ROWS


def test_it_is_the_distance_of_rows_that_counts() -> None:
    sizes = (1, 128, 128, 1024)
    r = recipe(d.f32, d.f32, d.f32, WIDE)
    plans = [plan_product(sizes, r, WIDE, b_row=128, b_column=1, inner=False, stream=False, a_row=n)
             for n in (0, 1040, 1024)]  # fmt: skip
    assert plans[0] == plans[1]
    assert plans[2].rows <= CROWDED_ROWS < plans[0].rows


@pytest.mark.parametrize("k", [1000, 1023, 1024, 1025, 2047])
def test_rows_that_are_copied_lie_apart(k: int) -> None:
    """Rows that another type needs copied are so, with a line between them where they would crowd a set."""
    assert tile_of(matmul(130, 256, k, d.f16))[0] > CROWDED_ROWS


def test_panels_that_are_slow_to_read_are_turned_once() -> None:
    """Columns of B that crowd a set take longer to turn: units are blocks of columns, so that each is turned once."""
    r = recipe(d.f32, d.f32, d.f32, WIDE)

    def blocks(k: int) -> tuple[int, ...]:
        row = {"b_row": 1, "b_column": k, "inner": True, "stream": False}
        return plan_product((1, 64, 64, k), r, WIDE, **row, a_row=k).blocks

    assert blocks(1024)[2] == blocks(2047)[2] == 1


@pytest.mark.parametrize(("inputs", "is_so"), [(1023, True), (1024, True), (1025, True), (2048, True),
                                               (512, False), (1000, False), (1040, False)])  # fmt: skip
def test_rows_of_a_convolution_that_crowd_a_set_are_copied(inputs: int, is_so: bool) -> None:
    p = plan_convolution(Problem(1, (196,), (196,), (Axis(),), inputs, 256), 4, 16, WIDE, True, True)
    assert p is not None
    assert crowded(p, 4) is is_so


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", [d.f32, d.f64, d.bf16, d.f16], ids=lambda t: t.name)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 64, 1024), (33, 50, 2047), (17, 31, 1025)])
def test_what_they_compute(target: Target, dtype: DType, m: int, n: int, k: int) -> None:
    check(matmul(m, n, k, dtype, dtype, tb=True), target)
    check(matmul(m, n, k, dtype, dtype, batch=(2,)), target)


def test_tiles_do_not_change_the_sums() -> None:
    """Each element's products are added up in the same order, whatever the tile, in blocks of the same k."""
    op, target = matmul(64, 64, 1024, tb=True), Target.host()
    arrays = operands(op)
    results = []
    for pin in ("", "6x64", "8x48", "14x32", "24x16"):
        if target.registers < 32 and pin:
            continue
        with pinned({"contraction.kc": "256", **({"contraction.tile": pin} if pin else {})}):
            lowered = lower(op, target)
        for pieces in (1, 2, 5):
            results += Kernel(lowered, target)(arrays, [op.tensor], pieces)
    assert all(np.array_equal(x, results[0]) for x in results)
