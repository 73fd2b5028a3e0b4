"""What `backend.x86_*` write becomes the same bytes without LLVM as with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product

import pytest
from x86_lines import by_llvm, code_of

from hilo.backend.elf import symbols
from hilo.backend.target import Target
from hilo.backend.x86.assembler import Assembler
from hilo.backend.x86.text import assemble
from hilo.backend.x86_products import assembly
from hilo.loop.butterfly import Butterflies
from hilo.loop.nodes import Func
from hilo.loop.product import Depthwise, Packing, Product, Turning

WIDE, FEWER = Target.named("x86-avx512"), Target.named("x86-avx2")
LANES = {"f32": 16, "f64": 8, "i32": 16, "i64": 8}
WINDOWS = ((3, 1, 1, 5, 1, 6, 3), (3, 1, 1, 4, 1, 4, 1), (3, 2, 1, 4, 0, 9, 2), (5, 2, 1, 3, 2, 8, 3),
           (3, 1, 3, 6, 3, 9, 3), (7, 1, 1, 8, 3, 12, 3))  # fmt: skip

Kind = Product | Packing | Turning | Depthwise | Butterflies


def tiles(scalar: str, lanes: int) -> Iterator[Product]:
    flags = (False, True)
    for rows, vectors in ((14, 2), (8, 3), (24, 1), (13, 2), (1, 4), (2, 1)):
        for segments, masked, half, touches in product(flags, flags, flags, flags):
            if lanes == LANES[scalar] or not (masked or half):
                yield Product("fma", scalar, rows, vectors, lanes, segments, masked and not segments, 2,
                              "bf16" if touches and scalar == "f32" else "", touches, half, half)  # fmt: skip


def written(scalar: str) -> Iterator[Kind]:
    lanes = LANES[scalar]
    yield from (Packing(scalar, "", vectors, lanes) for vectors in (1, 3, 7))
    yield Turning(scalar, "", lanes)
    if scalar[0] == "i":
        return
    yield from tiles(scalar, lanes)
    for radix, (turned, streams, inverse) in product((2, 3, 4, 5, 7, 8, 9, 16), product((False, True), repeat=3)):
        yield Butterflies(radix, scalar, lanes // 2, turned, streams, inverse, True)
    yield from (Depthwise(scalar, lanes, masked, *window) for window in WINDOWS for masked in (False, True))


def agree(written: Iterable[Kind], target: Target) -> int:
    """The functions, one after the other in one file: their code is LLVM's, and what others see of them. Gives how many
    there are."""
    lines: list[str] = []
    public: dict[str, bool] = {}
    for i, p in enumerate(written):
        made = assembly(Func(f"f{i}", [], product=p), target, private=i % 3 == 0)
        if made is not None:
            public[f"f{i}"] = i % 3 != 0
            lines += made
    assembler = Assembler()
    assemble(assembler, lines)
    file = assembler.finish()
    assert code_of(file) == by_llvm(lines)
    assert symbols(file) == (set(public), set())
    assert {name: not private for name, private in assembler.functions} == public
    return len(public)


@pytest.mark.parametrize(("scalar", "count"), [("f32", 100), ("f64", 100), ("i32", 4), ("i64", 4)])
def test_functions(scalar: str, count: int) -> None:
    assert agree(written(scalar), WIDE) >= count


def test_dot_products() -> None:
    assert agree([Product("dot4", "i32", rows, 2, 16) for rows in (14, 3)], Target.named("x86-avx512-vnni")) == 2


@pytest.mark.parametrize(("scalar", "lanes"), [("f32", 8), ("f64", 4)])
def test_functions_for_half_as_wide_vectors(scalar: str, lanes: int) -> None:
    windows = (Depthwise(scalar, lanes, False, *window) for window in WINDOWS)
    assert agree([*tiles(scalar, lanes), *windows], FEWER) >= 10
