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
from hilo.kernels.contraction_plan import FEW_UNITS, SHARED_NS, UNIT_NS, wanted_units
from hilo.plan.entry import INLINE_COST

TARGET = Target.named("x86-avx512")


@pytest.mark.parametrize("most", [1, 7, 8, 16])
def test_even_numbers_of_units(most: int) -> None:
    for ns in (0.0, SHARED_NS, 4.5 * UNIT_NS, 10.5 * UNIT_NS, 1e9):
        count = wanted_units(ns, most)
        assert count <= most
        assert count % 2 == 0 or count in (1, most)
    assert wanted_units(0.0, 16) == 1
    assert wanted_units(SHARED_NS, 16) == FEW_UNITS
    assert wanted_units(10.5 * UNIT_NS, 16) == 12


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
