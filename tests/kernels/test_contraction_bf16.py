"""Products of bf16 by pairs (`fast_math` "bf16"): exact where sums are, on odd shapes; strict if not permitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from contraction_runs import Kernel, operand_types, place
from test_attention import program
from test_contraction import matmul

import hilo
from hilo.backend.target import Target
from hilo.ir import dtypes as d
from hilo.ir.op import Op
from hilo.kernels.contraction import lower, lower_block, lower_contraction
from hilo.kernels.contraction_algebra import Dim, classify
from hilo.kernels.contraction_plan import paired, recipe
from hilo.options import Options
from hilo.record import replace
from hilo.runtime.stores import tuned_of

FAST = Target.host().relaxed(frozenset({"bf16"}))
STRICT = Options(cache=False)
RELAXED = Options(cache=False, fast_math=frozenset({"bf16"}))
needs_hardware = pytest.mark.skipif(not FAST.has_dot_bf16, reason="this machine has no dot products of bf16")


def small(op: Op, seed: int = 0) -> list[np.ndarray]:
    """Whole numbers, whose sums are exact in any order."""
    rng = np.random.default_rng(seed)
    return [place(rng.integers(-8, 9, t.shape).astype(t.dtype.np)) for t in operand_types(op)]


def exact(op: Op, arrays: list[np.ndarray]) -> np.ndarray:
    assert op.kind.evaluate is not None
    return np.asarray(op.kind.evaluate(*arrays, **op.attrs))


@needs_hardware
@pytest.mark.parametrize(
    "op",
    [
        matmul(8, 9, 8, d.bf16, d.f32),
        matmul(19, 37, 21, d.bf16, d.f32),  # half a pair at the end of k
        matmul(19, 37, 21, d.bf16),
        matmul(33, 48, 18, d.bf16, d.f32, tb=True),  # both read where they lie
        matmul(33, 47, 17, d.bf16, d.f32, tb=True),
        matmul(17, 65, 34, d.bf16, d.f32, ta=True),
        matmul(17, 65, 35, d.bf16, d.f32, ta=True, tb=True),
        matmul(20, 30, 10, d.bf16, d.f32, batch=(2, 3)),
        matmul(20, 31, 11, d.bf16, d.f32, batch=(3,), tb=True),
        matmul(130, 1100, 601, d.bf16, d.f32),  # panels packed in blocks of k
        matmul(60, 520, 900, d.bf16, tb=True),
        matmul(64, 300, 2048, d.bf16, d.f32),  # rows of A a multiple of 4096 bytes apart
        matmul(12, 40, 20_001, d.bf16, d.f32),  # k shared out
    ],
    ids=lambda op: f"{op.operands[0].type}-{op.operands[1].type}",
)
def test_exact_sums_are_exact(op: Op) -> None:
    lowered = lower(op, FAST)
    assert any("dot_bf16" in h.name for p in lowered.phases for h in p.helpers)
    arrays = small(op)
    for pieces in (1, 3):
        (got,) = Kernel(lower(op, FAST), FAST)(arrays, [op.tensor], pieces)
        np.testing.assert_array_equal(got, exact(op, arrays))


def test_who_may_take_pairs() -> None:
    """Neither without the permission, nor other types, nor where packing would not pay."""
    fast = replace(Target.named("x86-avx512"), features="+avx512bf16").relaxed(frozenset({"bf16"}))
    strict = recipe(d.bf16, d.bf16, d.f32, fast)
    sizes = (1, 64, 64, 64)
    assert fast.has_dot_bf16
    assert not Target.named("x86-avx512").relaxed(frozenset({"bf16"})).has_dot_bf16
    assert not Target.host().relaxed(frozenset({"finite"})).has_dot_bf16
    assert paired(strict, d.bf16, d.bf16, sizes, fast).pairs
    assert not paired(strict, d.bf16, d.bf16, sizes, Target.named("x86-avx512")).pairs
    assert not paired(strict, d.bf16, d.f32, sizes, fast).pairs
    assert not paired(recipe(d.f16, d.f16, d.f32, fast), d.f16, d.f16, sizes, fast).pairs
    for few in ((1, 1, 64, 64), (1, 64, 1, 64), (1, 64, 64, 1)):
        assert not paired(strict, d.bf16, d.bf16, few, fast).pairs


PROGRAM = """func.func @main(%a: tensor<16x32xbf16>, %b: tensor<32x24xbf16>) -> tensor<16x24xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
     : (tensor<16x32xbf16>, tensor<32x24xbf16>) -> tensor<16x24xf32>
  return %0 : tensor<16x24xf32>
}"""


@needs_hardware
def test_only_the_permission_loses_subnormals() -> None:
    a = np.full((16, 32), 2.0**-130).astype(d.bf16.np)
    b = np.full((32, 24), 4.0).astype(d.bf16.np)
    want = np.full((16, 24), 32 * 2.0**-128, np.float32)
    np.testing.assert_array_equal(hilo.compile(PROGRAM, options=STRICT)(a, b)[0], want)
    np.testing.assert_array_equal(hilo.compile(PROGRAM, options=RELAXED)(a, b)[0], 0 * want)
    slow = RELAXED.replace(opt=0)
    np.testing.assert_array_equal(hilo.compile(PROGRAM, options=slow)(a, b)[0], want)


@needs_hardware
def test_bound_constants_lie_in_pairs() -> None:
    rng = np.random.default_rng(3)
    for m, n, k in ((40, 100, 77), (9, 17, 130), (70, 513, 300)):
        op = matmul(m, n, k, d.bf16, d.f32)
        a, b = (np.asarray(x) for x in small(op, int(rng.integers(99))))
        text = PROGRAM.replace("16x32", f"{m}x{k}").replace("32x24", f"{k}x{n}").replace("16x24", f"{m}x{n}")
        bound = hilo.compile(text, options=RELAXED, constants={1: b})
        np.testing.assert_array_equal(bound(a)[0], exact(op, [a, b]))
        assert bound.memory().constants >= -(-k // 2) * n * 4  # the panels, and not the original beside them
        assert bound.memory().constants < -(-k // 2) * (n + 48) * 4


@needs_hardware
def test_random_products_are_as_close_as_strict_ones() -> None:
    rng = np.random.default_rng(1)
    for m, n, k, tb in ((50, 70, 333, False), (31, 130, 512, True)):
        op = matmul(m, n, k, d.bf16, d.f32, tb=tb)
        arrays = [rng.standard_normal(t.shape).astype(t.dtype.np) for t in operand_types(op)]
        (got,) = Kernel(lower_contraction(op, FAST), FAST)(arrays, [op.tensor])
        x, y = (v.astype(np.float64) for v in arrays)
        want = x @ (y.T if tb else y)
        assert np.abs(got - want).max() < 4e-6 * k**0.5 * np.abs(want).max() / 4


@needs_hardware
@pytest.mark.parametrize(("rows", "depth"), [(77, 40), (130, 33), (259, 64)])
def test_attention_by_blocks_takes_pairs_in_all_of_them(rows: int, depth: int) -> None:
    """Blocks of rows, and the last one of another height, sum up in the same way: one thread or two, the same bits."""
    shape = (3, rows, depth)
    text = program(shape, shape, (0,), "bf16")
    rng = np.random.default_rng(5)
    arrays = [rng.standard_normal(shape).astype(d.bf16.np) for _ in range(3)]
    strict = np.asarray(hilo.compile(text, options=STRICT)(*arrays)[0]).astype(np.float32)
    one, two = (hilo.compile(text, options=RELAXED, threads=n) for n in (1, 2))
    assert 'kind = "attention"' in one.text("fuse")
    assert "dot_bf16" in one.text("llvm") or "dpbf16ps" in one.text("llvm")
    got = np.asarray(one(*arrays)[0])
    np.testing.assert_array_equal(got.view(np.uint16), np.asarray(two(*arrays)[0]).view(np.uint16))
    np.testing.assert_allclose(got.astype(np.float32), strict, rtol=2.0**-7, atol=2.0**-8)


@needs_hardware
def test_a_low_block_sums_up_like_the_whole() -> None:
    """Two rows alone would not be worth packing: as a block of more they take pairs all the same."""
    op = matmul(130, 66, 40, d.bf16, batch=(5,))
    c = classify(op)
    block = lower_block(op, c.block((Dim(2, 40, 0),)), FAST)
    alone = lower(matmul(2, 66, 40, d.bf16), FAST)
    assert block is not None
    for lowered, pairs in ((block, True), (alone, False)):
        assert any("dot_bf16" in h.name for p in lowered.phases for h in p.helpers) == pairs


@needs_hardware
def test_what_is_tuned_for_pairs_is_kept_apart(tmp_path: Path) -> None:
    options = Options(cache_dir=str(tmp_path))
    fast, strict = (tuned_of(options, t) for t in (FAST, Target.host()))
    fast.put("kernel", {"contraction.kc": "128"})
    assert fast.get("kernel") == {"contraction.kc": "128"}
    assert strict.get("kernel") == {}
