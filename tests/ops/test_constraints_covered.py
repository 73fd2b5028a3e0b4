"""Every numbered constraint that an op checks has a case in a table; programs changed at random give errors only."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import pytest
import test_constraints_collectives
import test_constraints_convolution
import test_constraints_dynamic
import test_constraints_elementwise
import test_constraints_regions
import test_constraints_shape
from constraints import DROP, Base, rules_in
from hypothesis import given, settings
from hypothesis import strategies as st

from hilo.errors import Error
from hilo.formats.mlir_text import parse, print_module
from hilo.ir.registry import REGISTRY, lookup
from hilo.ir.verify import verify

lookup("stablehlo.add")  # fills the registry
BASES: list[Base] = [
    *test_constraints_collectives.BASES, *test_constraints_convolution.BASES, *test_constraints_dynamic.BASES,
    *test_constraints_elementwise.BASES, *test_constraints_regions.BASES, *test_constraints_shape.BASES,
]  # fmt: skip
COVERED: dict[str, set[str]] = {}
for _base in BASES:
    COVERED.setdefault(_base.op, set()).update(rule for rule, _ in _base.cases)
COVERED["stablehlo.composite"] = {"C1", "C2", "C3", "C4"}  # test_constraints_convolution.test_composite
COVERED["stablehlo.unary_einsum"] |= {"C4", "C6"}  # of two operands: those of einsum
COVERED["stablehlo.dynamic_gather"] |= {"C9", "C12"}  # test_constraints_dynamic.test_constant_operands

@pytest.mark.parametrize("name", sorted(n for n in REGISTRY if n.startswith("stablehlo.")))
def test_every_constraint_has_a_case(name: str):
    missing = rules_in(REGISTRY[name]) - COVERED.get(name, set())
    assert not missing, f"no test breaks {', '.join(sorted(missing))} of {name}"


# -- random changes -----------------------------------------------------------------------------

_TYPES = ["f32", "3xf32", "2x3xf32", "0x3xf64", "2x3xi32", "i1", "3xi1", "?xf32", "2x?xf32", "4xui8", "2xcomplex<f32>",
          "!stablehlo.token", "tuple<tensor<f32>>", "3x!quant.uniform<i8:f32, 0.1:3>", "2x3x4x5xf32",
          "?x3xf32, #stablehlo.bounds<4, ?>", "1x1x1xbf16", "f8E4M3FN", "f32"]  # fmt: skip
_VALUES: list[Any] = [0, 1, -1, 3, 1 << 40, -(1 << 63), True, [], [0], [1, 0], [0, 0, 0], [-1, 5], [1 << 40, 1],
          [[0, 1]], [[1, 2], [-5, 7]], "unit", '"text"', "@f", "f32", "dense<1> : tensor<i64>", "[1, 2]", "{a = 1}",
          "dense<> : tensor<0x2xi64>", "1.5 : f32", "#stablehlo<precision HIGH>", "#stablehlo.gather<>",
          DROP]  # fmt: skip
_REGIONS = [
    *{r for b in BASES for r in b.regions.values()}, test_constraints_regions.TUPLE, test_constraints_regions.NOTHING,
    "{ }", DROP,
]  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(st.integers(0, 1 << 32), st.integers(1, 3))
def test_random_changes_give_errors_only(seed: int, changes: int):
    rng = random.Random(seed)
    base = rng.choice(BASES)
    changed = dict(change_at_random(base, rng) for _ in range(changes))
    with contextlib.suppress(Error):
        module = parse(base.text(changed))
        verify(module, types=True)
        parse(print_module(module))


def change_at_random(base: Base, rng: random.Random) -> tuple[Any, Any]:
    """One change of an operand, an attribute, a region, or the results."""
    kinds: list[Any] = ["result", len(base.operands), *range(len(base.operands)), *base.attrs, *base.regions]
    what = rng.choice(kinds)
    if isinstance(what, int) or what == "result":
        return what, rng.choice(_TYPES)
    return what, rng.choice(_REGIONS if what in base.regions else _VALUES)
