"""Small kernels that run side by side, as units of one parallel loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hilo
from hilo.backend.target import Target
from hilo.options import Options
from hilo.pipeline import optimize, plan
from hilo.plan import entry
from hilo.plan.program import Call, While
from hilo.plan.together import Group, Places, Together, arrange
from hilo.testing.agree import agree
from hilo.testing.generate import generate, inputs

UPDATE = """func.func @main({args}) -> ({types}) {{
{body}
  return {results} : {types}
}}"""


def updates(n: int, size: int = 900) -> str:
    """n independent updates of a parameter, which are kernels of their own: shapes differ."""
    types = [f"tensor<{size + i}xf32>" for i in range(n)]
    args = ", ".join(f"%p{i}: {t}, %g{i}: {t}" for i, t in enumerate(types))
    body = "\n".join(f"  %s{i} = stablehlo.tanh %g{i} : {t}\n  %q{i} = stablehlo.subtract %p{i}, %s{i} : {t}"
                     for i, t in enumerate(types))  # fmt: skip
    return UPDATE.format(args=args, types=", ".join(types), body=body, results=", ".join(f"%q{i}" for i in range(n)))


def arranged(text: str, alone: float = 2000.0, unit: float = 500.0) -> list[object]:
    program = plan(optimize(hilo.parse(text), "main", Options()), Target.named("x86-avx2"))
    return list(arrange(program.steps, Places(program), alone, unit))


def test_independent_kernels_become_units() -> None:
    (group,) = arranged(updates(20))
    assert isinstance(group, Together)
    assert sum(len(u) for u in group.units) == 20
    assert len(group.units) > 4
    assert group.pointers == 60


def test_little_work_stays_as_it_is() -> None:
    assert all(isinstance(s, Call) for s in arranged(updates(20), alone=1e6))


def test_a_kernel_with_work_of_its_own_stays_alone() -> None:
    assert [type(s) for s in arranged(updates(3, 100_000))] == [Call] * 3


CHAINS = """func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = stablehlo.dot_general %y, %y, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %d = stablehlo.dot_general %b, %b, contracting_dims = [1] x [0] : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %a, %b, %c, %d : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}"""  # noqa: E501


def test_what_depends_on_one_chain_is_behind_it() -> None:
    (group,) = arranged(CHAINS, alone=12_000.0, unit=1.0)
    assert isinstance(group, Together)
    assert [len(u) for u in group.units] == [2, 2]
    first, second = ({id(b.root()) for b in u[0].results} & {id(b.root()) for b in u[1].operands} for u in group.units)
    assert first
    assert second


def test_memory_used_again_is_a_dependence() -> None:
    """The first value lies in the memory of the last result until that is written."""
    text = CHAINS.replace("return %a, %b, %c, %d : tensor<64x64xf32>, tensor<64x64xf32>, ", "return %c, %d : ")
    text = text.replace("-> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>)",
                        "-> (tensor<64x64xf32>, tensor<64x64xf32>)")  # fmt: skip
    steps = arranged(text, alone=12_000.0, unit=1.0)
    assert not any(isinstance(s, Together) and sum(map(len, s.units)) == 4 for s in steps)


def test_what_depends_on_two_chains_ends_the_group() -> None:
    text = CHAINS.replace("dot_general %b, %b", "dot_general %b, %a")
    steps = arranged(text, alone=12_000.0, unit=1.0)
    assert not any(isinstance(s, Together) and len(s.units) == 2 and sum(map(len, s.units)) == 4 for s in steps)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups form from little work on, so that programs of tests have them."""
    monkeypatch.setattr(entry, "INLINE_COST", 1000.0)
    monkeypatch.setattr(entry, "CHUNK_COST", 1.0)


def test_the_same_bits_on_any_number_of_threads(eager: None) -> None:
    text = updates(30)
    rng = np.random.default_rng(5)
    xs = [rng.standard_normal(900 + i // 2).astype(np.float32) for i in range(60)]
    want = hilo.compile(text, threads=1)(*xs)
    f = hilo.compile(text, threads=2)
    assert ".row0" in f.text("llvm")
    for _ in range(20):
        for a, b in zip(want, f(*xs), strict=True):
            np.testing.assert_array_equal(a, b)


def test_donated_arguments_are_read_before_they_are_written() -> None:
    """Result i lies where argument i is, which the kernel before it reads: then they do not run side by side."""
    n, t = 12, "tensor<900xf32>"
    body = "\n".join(
        f"  %q{i} = stablehlo.dot_general %p{i}, %p{i + 1}, contracting_dims = [0] x [0] : ({t}, {t}) -> tensor<f32>\n"
        f"  %b{i} = stablehlo.broadcast_in_dim %q{i}, dims = [] : (tensor<f32>) -> {t}\n"
        f"  %r{i} = stablehlo.multiply %b{i}, %p{i} : {t}"
        for i in range(n)
    )
    args = ", ".join(f"%p{i}: {t}" for i in range(n + 1))
    results = ", ".join(f"%{x}{i}" for x in "rq" for i in range(n))
    text = UPDATE.format(args=args, types=", ".join([t] * n + ["tensor<f32>"] * n), body=body, results=results)
    f = optimize(hilo.parse(text), "main", Options())
    for donated, together in (({}, True), ({i: i for i in range(n)}, False)):
        program = plan(f, Target.named("x86-avx2"), donated)
        assert len(program.aliases) == len(donated)
        row = arrange(program.steps, Places(program), 2000.0, 1.0)
        assert any(isinstance(s, Together) for s in row) == together


def test_chains_against_all_pairs() -> None:
    """Which chain a step joins, for random accesses, as a look at all pairs says."""
    rng = np.random.default_rng(8)
    for _ in range(200):
        group, taken = Group(), []
        for _ in range(12):
            begin = rng.integers(0, 400, 3)
            touched = [(int(b), int(b + n), bool(w)) for b, n, w in
                       zip(begin, rng.integers(1, 60, 3), rng.integers(0, 2, 3), strict=True)]  # fmt: skip
            needed = {chain for chain, other in taken for b, e, w in touched for x, y, v in other
                      if b < y and x < e and (w or v)}  # fmt: skip
            step: Any = object()
            count = len(group.chains)
            assert group.takes(step, touched) == (len(needed) < 2)
            if len(needed) < 2:
                chain = needed.pop() if needed else count
                assert group.chains[chain][-1] is step
                taken.append((chain, touched))


LOOP = """func.func @main(%n: tensor<i32>, %x: tensor<96x96xf32>, %y: tensor<96x96xf32>) -> (tensor<96x96xf32>, tensor<96x96xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:3 = stablehlo.while(%i = %zero, %a = %x, %b = %y) : tensor<i32>, tensor<96x96xf32>, tensor<96x96xf32>
  cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %j = stablehlo.add %i, %one : tensor<i32>
    %ta = stablehlo.tanh %a : tensor<96x96xf32>
    %tb = stablehlo.tanh %b : tensor<96x96xf32>
    %p = stablehlo.dot_general %ta, %tb, contracting_dims = [1] x [0] : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xf32>
    %q = stablehlo.dot_general %tb, %ta, contracting_dims = [1] x [0] : (tensor<96x96xf32>, tensor<96x96xf32>) -> tensor<96x96xf32>
    stablehlo.return %j, %p, %q : tensor<i32>, tensor<96x96xf32>, tensor<96x96xf32>
  }
  return %r#1, %r#2 : tensor<96x96xf32>, tensor<96x96xf32>
}"""  # noqa: E501


def test_bodies_of_loops() -> None:
    """What a loop carries is reached through pointers, which go to different places: both products run side by side."""
    program = plan(optimize(hilo.parse(LOOP), "main", Options()), Target.named("x86-avx2"))
    (loop,) = (s for s in program.steps if isinstance(s, While))
    row = arrange(loop.body, Places(program), 40_000.0, 1.0)
    assert any(isinstance(s, Together) and len(s.units) == 2 for s in row)


def test_loops_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry, "INLINE_COST", 40_000.0)
    rng = np.random.default_rng(7)
    xs = [np.int32(9), *rng.standard_normal((2, 96, 96)).astype(np.float32)]
    one, two = (hilo.compile(LOOP, threads=t) for t in (1, 2))
    for _ in range(10):
        for a, b in zip(one(*xs), two(*xs), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int, eager: None) -> None:
    module = generate(seed, 40)
    assert agree(module, inputs(module, seed), ways=("native", "unfused")) is None
