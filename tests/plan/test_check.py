"""The check of plans: right ones pass, and one in which two live buffers share a place does not."""

from __future__ import annotations

import itertools

import pytest

import hilo
from hilo.backend.target import Target
from hilo.errors import Error
from hilo.options import Options
from hilo.pipeline import optimize, plan
from hilo.plan.check import check_plan
from hilo.plan.program import Program
from hilo.testing.generate import generate

T = "tensor<64x64xf32>"
TEXT = f"""func.func @main(%x: {T}, %y: {T}) -> {T} {{
    %a = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    %b = stablehlo.dot_general %a, %y, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    %c = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    %d = stablehlo.dot_general %c, %b, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    %e = stablehlo.dot_general %d, %a, contracting_dims = [1] x [0] : ({T}, {T}) -> {T}
    return %e : {T} }}"""


def planned(text: str) -> Program:
    return plan(optimize(hilo.parse(text), "main", Options()), Target.host())


@pytest.mark.parametrize("seed", range(40))
def test_plans_are_right(seed: int) -> None:
    module = generate(seed, 20)
    given = dict.fromkeys(range(len(module["main"].params)))
    for fuse in (True, False):
        f = optimize(module, "main", Options(fuse=fuse), donated=given)
        check_plan(plan(f, Target.host(), given))


def test_places_that_two_live_values_share_are_found() -> None:
    program = planned(TEXT)
    check_plan(program)
    own = [b for b in program.buffers if b.shares is None]
    found = 0
    for a, b in itertools.permutations(own, 2):
        if a.first < b.first <= a.last and a.type is not None and b.type is not None:
            before = b.offset, b.inside
            b.offset, b.inside = a.offset, a.inside
            with pytest.raises(Error, match="internal error: dot_general reads"):
                check_plan(program)
            b.offset, b.inside = before
            found += 1
    assert found >= 2
