"""Random programs: what they hold, that they follow from their seed, and that regions of any kind agree everywhere."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from hilo.errors import Error
from hilo.formats.mlir_text import parse, print_module
from hilo.ir.module import Function, parameter
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.ir.verify import verify
from hilo.rewrite.regions import regions
from hilo.testing import generate_others, generate_regions
from hilo.testing.agree import agree
from hilo.testing.draw import SHAPES, any_dtype
from hilo.testing.generate import WAYS, Scope, _elementwise, _examples, generate, inputs
from hilo.testing.pieces import INTERNAL, all_ops

# What random programs do not hold, and why.
NEVER = {
    "hilo.guards": "made by passes/shapes.py, of sizes known at run time",
    "stablehlo.custom_call": "runs what the outside registers",
    "stablehlo.infeed": "needs a partner outside", "stablehlo.outfeed": "needs a partner outside",
    "stablehlo.recv": "needs a partner outside", "stablehlo.send": "needs a partner outside",
    "interpreter.print": "for people to read", "interpreter.probe": "writes files",
    "interpreter.run_parallel": "runs functions of a module for several processes",
    "stablehlo.rng": "no function of its operands",
    "stablehlo.batch_norm_training": "its errors have no known bound",
    "stablehlo.batch_norm_grad": "its errors have no known bound",
    "chlo.polygamma": "its errors have no known bound", "chlo.zeta": "its errors have no known bound",
}  # fmt: skip


def ops(f: Function) -> Iterator[Op]:
    stack = [f]
    while stack:
        for o in stack.pop().ops:
            yield o
            stack += regions(o)


def test_programs_follow_from_their_seed() -> None:
    for seed in range(12):
        assert print_module(generate(seed)) == print_module(generate(seed))
    assert print_module(generate(1)) != print_module(generate(2))


def test_programs_are_valid_and_read_back() -> None:
    for seed in range(60):
        module = generate(seed, 12)
        verify(module)
        text = print_module(parse(print_module(module)))  # constants that regions capture are made inside
        assert print_module(parse(text)) == text


def test_every_op_may_be_generated() -> None:
    made = {d.full_name for d in (*_elementwise(), *(d for d, _ in _examples()))}
    for seed in range(12):
        r = random.Random(seed)
        params = [parameter(i, TensorType(any_dtype(r), r.choice(SHAPES))) for i in range(4)]
        scope = Scope(r, params, {})
        scope.grow(8)
        for way in WAYS:
            try:
                o = way(scope)
            except (Error, ValueError, IndexError, OverflowError):
                continue
            if o is not None:
                made |= {x.kind.full_name for x in ops(Function("f", params, _needed(o), [o]))}
    missing = {d.full_name for d in all_ops()} - made - set(INTERNAL)
    assert missing == set(NEVER)


def _needed(o: Op) -> list[Op]:
    from hilo.ir.module import topological

    return topological([o])


@pytest.mark.parametrize("way", [*generate_regions.WAYS, *generate_others.WAYS], ids=lambda f: f.__name__)
def test_ways_make_something(way: object) -> None:
    """Not only attempts that do not fit."""
    count: Counter[bool] = Counter()
    for seed in range(30):
        r = random.Random(seed)
        scope = Scope(r, [parameter(i, TensorType(any_dtype(r), r.choice(SHAPES))) for i in range(6)], {})
        scope.grow(6)
        try:
            count[way(scope) is not None] += 1  # type: ignore[operator]
        except (Error, ValueError, IndexError, OverflowError):
            continue
    assert count[True] > 3


@pytest.mark.parametrize("seed", range(20))
def test_all_ways_to_run_agree(seed: int) -> None:
    module = generate(1000 + seed, 8)
    assert agree(module, inputs(module, seed), ways=("passes", "native", "constants", "skip simplify")) is None
