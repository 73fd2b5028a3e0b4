"""Contractions against the interpreter: random dims in random order, all types, all targets; blocks, epilogues."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from contraction_runs import Kernel, operand_types, place, random
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hilo.backend.target import Target
from hilo.ir import dtypes as d
from hilo.ir.dtypes import DType
from hilo.ir.module import parameter
from hilo.ir.op import Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType
from hilo.kernels.contraction import lower, lower_contraction
from hilo.kernels.contraction_algebra import classify
from hilo.kernels.contraction_plan import (
    TURNED_BYTES,
    Plan,
    least_traffic,
    plan,
    recipe,
    turned_bytes,
)
from hilo.kernels.contraction_units import balanced
from hilo.kernels.epilogue import Epilogue
from hilo.loop import arith
from hilo.record import replace

TARGETS = [t for t in map(Target.named, ("host", "x86-avx512", "x86-avx2", "x86-sse2")) if Target.host().includes(t)]
TYPES = [
    (d.f32, d.f32),
    (d.f64, d.f64),
    (d.bf16, d.bf16),
    (d.bf16, d.f32),
    (d.f16, d.f16),
    (d.f32, d.f64),
    (d.f32, d.bf16),
    (d.i8, d.i32),
    (d.i8, d.i8),
    (d.i8, d.i64),
    (d.u8, d.u32),
    (d.u8, d.u8),
    (d.i16, d.i32),
    (d.u16, d.u16),
    (d.u16, d.u32),
    (d.i32, d.i32),
    (d.u32, d.u64),
    (d.i64, d.i64),
    (d.u64, d.u64),
    (d.i1, d.i1),
    (d.c64, d.c64),
    (d.c128, d.c128),
    (d.c64, d.c128),
]


def dot_general(
    lhs: TensorType, rhs: TensorType, lb: tuple, rb: tuple, lc: tuple, rc: tuple, out: DType, **more: Any
) -> Op:
    free = [n for i, n in enumerate(lhs.shape) if i not in (*lb, *lc)] + [
        n for i, n in enumerate(rhs.shape) if i not in (*rb, *rc)
    ]
    return lookup("stablehlo.dot_general")(
        parameter(0, lhs),
        parameter(1, rhs),
        lhs_batching_dimensions=lb,
        rhs_batching_dimensions=rb,
        lhs_contracting_dimensions=lc,
        rhs_contracting_dimensions=rc,
        type=TensorType(out, [*(lhs.shape[i] for i in lb), *free]),
        **more,
    )


def matmul(
    m: int,
    n: int,
    k: int,
    dtype: DType = d.f32,
    out: DType | None = None,
    *,
    ta: bool = False,
    tb: bool = False,
    batch: tuple[int, ...] = (),
    **more: Any,
) -> Op:
    nb = len(batch)
    lhs = TensorType(dtype, (*batch, k, m) if ta else (*batch, m, k))
    rhs = TensorType(dtype, (*batch, n, k) if tb else (*batch, k, n))
    b = tuple(range(nb))
    return dot_general(lhs, rhs, b, b, (nb if ta else nb + 1,), (nb + 1 if tb else nb,), out or dtype, **more)


def operands(op: Op, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [place(random(t, rng)) for t in operand_types(op)]


def compare(got: np.ndarray, want: np.ndarray, k: int, acc_bits: int = 24) -> None:
    assert got.dtype == want.dtype
    if got.dtype.kind in "biu":
        np.testing.assert_array_equal(got, want)
        return
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    eps = {2: 2.0**-7 if got.dtype.name == "bfloat16" else 2.0**-10}.get(got.dtype.itemsize, 0)
    scale = 4 * max(1, k) ** 0.5 * 2.0**-acc_bits
    x, y = got.astype(wide), want.astype(wide)
    np.testing.assert_allclose(x, y, rtol=eps + 8 * scale, atol=8 * scale * max(1, k) ** 0.5)


def check(op: Op, target: Target, pieces: int = 3, seed: int = 0) -> None:
    arrays = operands(op, seed)
    kernel = Kernel(lower(op, target), target)
    (got,) = kernel(arrays, [op.tensor], pieces)
    assert op.kind.evaluate is not None
    k = classify(op).sizes[3]
    wide = any(t in (d.f64, d.c128) for t in (op.tensor.dtype, arrays and operand_types(op)[0].dtype))
    both_wide = wide and operand_types(op)[0].dtype in (d.f64, d.c128)
    compare(got, op.kind.evaluate(*arrays, **op.attrs), k, 50 if both_wide else 24)


@st.composite
def contractions(draw: st.DrawFn) -> Op:
    """A dot_general with up to two dims of each role, in any order in each operand."""
    size = st.sampled_from([0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 40])
    roles = {r: draw(st.lists(size, max_size=2)) for r in "bmnk"}
    if sum(map(len, roles.values())) and np.prod([x for v in roles.values() for x in v], dtype=float) > 3e6:
        roles["b"] = []
    lhs = draw(st.permutations([(r, i) for r in "bmk" for i in range(len(roles[r]))]))
    rhs = draw(st.permutations([(r, i) for r in "bnk" for i in range(len(roles[r]))]))
    dtype, out = draw(st.sampled_from(TYPES))

    def where(order: list[tuple[str, int]], role: str) -> tuple[int, ...]:
        return tuple(order.index((role, i)) for i in range(len(roles[role])))

    types = [TensorType(dtype, [roles[r][i] for r, i in order]) for order in (lhs, rhs)]
    return dot_general(*types, where(lhs, "b"), where(rhs, "b"), where(lhs, "k"), where(rhs, "k"), out)


COUNT = int(os.environ.get("HILO_TEST_EXAMPLES", "60"))


@settings(max_examples=COUNT, deadline=None, suppress_health_check=list(HealthCheck))
@given(contractions(), st.sampled_from(TARGETS), st.integers(1, 3), st.integers(0, 99))
def test_any_contraction(op: Op, target: Target, pieces: int, seed: int) -> None:
    check(op, target, pieces, seed)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("dtype", "out"), TYPES, ids=lambda t: t.name)
def test_types(target: Target, dtype: DType, out: DType) -> None:
    check(matmul(19, 37, 21, dtype, out), target)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("dtype", [d.f32, d.f64, d.bf16, d.i32], ids=lambda t: t.name)
def test_columns_with_k_contiguous_are_turned(target: Target, dtype: DType) -> None:
    """Squares at the end of k overlap, shorter ones and columns that are not there are handled."""
    for n, k in ((1, 3), (17, 1), (31, 7), (33, 15), (50, 16), (40, 17), (15, 40), (100, 33)):
        check(matmul(20, n, k, dtype, dtype, tb=True), target)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    "op",
    [
        matmul(1, 1, 1),
        matmul(64, 64, 64),
        matmul(1, 300, 200),
        matmul(1, 300, 200, tb=True),
        matmul(300, 1, 200),
        matmul(300, 1, 200, ta=True),
        matmul(3, 90, 130, tb=True),
        matmul(90, 5, 130, tb=True),
        matmul(200, 5, 30, ta=True),  # computed transposed
        matmul(100, 10, 784),
        matmul(784, 10, 100, ta=True),
        matmul(4, 5, 0),
        matmul(0, 5, 4),
        matmul(16, 256, 600, tb=True),
        matmul(33, 48, 17, ta=True, tb=True),
        matmul(20, 30, 10, batch=(2, 3)),
        matmul(1, 7, 100_000),
        matmul(2, 1, 100_000, d.i8, d.i32),
        matmul(7, 9, 40, d.i8, d.i32, ta=True, tb=True),
    ],
    ids=lambda op: f"{op.operands[0].type}-{op.operands[1].type}-{op.attrs['lhs_contracting_dimensions'][0]}",
)
def test_shapes(target: Target, op: Op) -> None:
    check(op, target)


@pytest.mark.parametrize(
    "op",
    [
        matmul(130, 1100, 600),  # units in both directions, panels packed in blocks of k
        matmul(5, 3000, 300),  # few rows: B streamed
        matmul(20, 2100, 330),
        matmul(64, 300, 1024),  # rows of A a multiple of 4096 bytes apart
        matmul(60, 520, 900, tb=True),  # B turned, in panels
        matmul(40, 60, 20_000),  # k shared out
        matmul(100, 10, 9000, ta=True),
        matmul(30, 33, 12_000, d.bf16, tb=True),
        matmul(20, 40, 9000, d.i16, d.i32),
        matmul(5, 3000, 300, d.bf16),
        matmul(60, 520, 900, d.bf16, tb=True),
        matmul(3, 300, 900, d.bf16, tb=True),
        matmul(1, 3000, 300, d.bf16),
        matmul(1, 3001, 303),  # B in no near cache: fetched ahead
        matmul(2, 1501, 701, tb=True),
        matmul(300, 1, 700, d.bf16, d.f32),
        matmul(130, 700, 900, d.bf16),  # sums kept between blocks of k
        matmul(70, 530, 400, d.i8, d.i32),
    ],
    ids=lambda op: f"{op.operands[0].type}-{op.operands[1].type}",
)
def test_blocks(op: Op) -> None:
    check(op, TARGETS[0])


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(
    "op",
    [
        matmul(1024, 97, 61, ta=True),  # rows of A side by side, steps of k a multiple of a page apart
        matmul(1024, 200, 300, ta=True),  # k in blocks
        matmul(2048, 101, 17, ta=True, tb=True),
        matmul(512, 113, 77, d.f64, ta=True),
        matmul(1024, 145, 33, ta=True, batch=(2,)),
    ],
    ids=lambda op: "x".join(map(str, operand_types(op)[0].shape)),
)
def test_blocks_of_rows_that_lie_side_by_side_are_copied(target: Target, op: Op) -> None:
    c = classify(op)
    r = recipe(c.lhs.dtype, c.rhs.dtype, c.out.dtype, target)
    p = plan(c.sizes, r, target, b_row=c.sizes[2], b_column=1, inner=False, stream=False, a_turned=True)
    assert p.turned_a
    assert turned_bytes(p.block_m, p.rows, p.block_k, r.size) <= TURNED_BYTES
    check(op, target)


def test_units_of_copied_rows_give_the_same_bits() -> None:
    op, target = matmul(1024, 160, 300, ta=True), Target.host()
    arrays = operands(op)
    kernel = Kernel(lower(op, target), target)
    one, many = (kernel(arrays, [op.tensor], pieces)[0].copy() for pieces in (1, 5))
    np.testing.assert_array_equal(one, many)


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize("n", [64, 80, 61])
def test_results_that_no_cache_holds_go_past_it(target: Target, n: int) -> None:
    small = replace(target, l3=8 << 10)
    op = matmul(100, n, 40)
    helpers = lower(op, small).phases[-1].helpers
    assert any(f.name.endswith("s") for f in helpers) == (n % 16 == 0 and target.vector_bytes >= 32)
    check(op, small)


def test_the_transposed_product_where_it_takes_fewer_vectors() -> None:
    target = Target.named("x86-avx512")
    assert "transposed" in lower(matmul(31, 17, 400, ta=True), target).reason  # 17 x 2 vectors rather than 31 x 2
    assert "transposed" not in lower(matmul(19, 17, 400, ta=True), target).reason


def test_blocks_that_read_the_least() -> None:
    assert least_traffic(1024, 256, 8, (32, 144)) == (8, 1)
    assert least_traffic(256, 1024, 8, (56, 96)) == (1, 8)
    assert least_traffic(1024, 1024, 8, (32, 96)) in ((2, 4), (4, 2))
    assert least_traffic(10, 10, 8, (32, 96)) == (1, 1)


@pytest.mark.parametrize("k", [2048, 2100, 3001, 4001])
def test_k_is_shared_out_evenly_where_both_operands_are_cut_by_it(k: int) -> None:
    """Parts are whole rows of both, so that threads read what they wrote themselves, and there is an even number."""
    target = Target.named("x86-avx512")
    op = matmul(31, 17, k, ta=True)
    first = lower(op, target).phases[0]
    assert first.units % 2 == 0
    assert "k is all there is to share out" in lower(op, target).reason
    assert "k is all there is" not in lower(matmul(31, 17, k), target).reason  # rows of A are apart, too
    check(op, TARGETS[0], pieces=2)


def test_results_do_not_depend_on_how_units_are_shared_out() -> None:
    op = matmul(130, 700, 300)
    arrays = operands(op)
    kernel = Kernel(lower(op, TARGETS[0]), TARGETS[0])
    results = [kernel(arrays, [op.tensor], pieces)[0].tobytes() for pieces in (1, 2, 7)]
    assert len(set(results)) == 1
    assert kernel.lowered.phases[-1].units > 1


def test_dot() -> None:
    dot = lookup("stablehlo.dot")
    for lhs, rhs, out in (((4, 3), (3, 5), (4, 5)), ((3,), (3, 5), (5,)), ((4, 3), (3,), (4,)), ((3,), (3,), ())):
        op = dot(
            parameter(0, TensorType(d.f32, lhs)), parameter(1, TensorType(d.f32, rhs)), type=TensorType(d.f32, out)
        )
        check(op, TARGETS[0])


def test_nan_and_infinity_pass_through() -> None:
    op = matmul(20, 20, 20)
    a, b = operands(op)
    a[3, 4], b[5, 6], b[7, 8] = np.nan, np.inf, -0.0
    (got,) = Kernel(lower(op, TARGETS[0]), TARGETS[0])([a, b], [op.tensor])
    want = a.astype(np.float64) @ b
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    np.testing.assert_array_equal(np.isinf(got), np.isinf(want))


def test_wrap_around_of_extreme_integers() -> None:
    for dtype, out in ((d.i8, d.i32), (d.i16, d.i32), (d.i32, d.i32), (d.i8, d.i8), (d.u8, d.u32)):
        op = matmul(18, 20, 50, dtype, out)
        a, b = operands(op)
        info = np.iinfo(dtype.np)
        a[...], b[...] = info.min if info.min else info.max, info.min if info.min else info.max
        b[:, 3] = info.max
        for target in TARGETS:
            (got,) = Kernel(lower(op, target), target)([a, b], [op.tensor])
            np.testing.assert_array_equal(got, op.kind.evaluate(a, b, **op.attrs))  # type: ignore[misc]


@pytest.mark.parametrize("target", TARGETS, ids=lambda t: t.name)
@pytest.mark.parametrize(("dtype", "out"), [(d.f32, d.f32), (d.bf16, d.bf16), (d.f32, d.i32)])
@pytest.mark.parametrize(("m", "n", "k"), [(33, 70, 20), (1, 70, 40), (70, 1, 40), (5, 9, 800)])
def test_epilogue(target: Target, dtype: DType, out: DType, m: int, n: int, k: int) -> None:
    """max(x + bias[n] + residual[m, n], 0), perhaps converted."""
    op = matmul(m, n, k, dtype)
    bias, residual = TensorType(dtype, (n,)), TensorType(dtype, (m, n))

    def build(b: Any, at: Any, acc: Any, sources: Any) -> Any:
        x = arith.add(b, arith.add(b, acc, sources[0](at[1:])), sources[1](at))
        return arith.convert(b, arith.maximum(b, x, arith.zero(b, dtype)), out)

    epilogue = Epilogue(TensorType(out, (m, n)), (bias, residual), build)
    rng = np.random.default_rng(3)
    arrays = [*operands(op), *(place(random(t, rng)) for t in (bias, residual))]
    kernel = Kernel(lower_contraction(op, target, epilogue), target)
    (got,) = kernel(arrays, [epilogue.out])
    x = op.kind.evaluate(*arrays[:2], **op.attrs)  # type: ignore[misc]
    want = np.maximum((x + arrays[2]) + arrays[3], 0).astype(out.np)
    if out is d.i32:
        assert np.abs(got - want).max() <= 1
    else:
        tolerance = 2e-2 if dtype is d.bf16 else 1e-4
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance * k**0.5
        )


def test_algorithms() -> None:
    """Operands are rounded as an algorithm of one component says; several components are at least as exact."""
    for a, exact in (
        (("bf16", "bf16", "f32", 1, 1, 1, False), True),
        (("tf32", "tf32", "f32", 1, 1, 1, False), True),
        (("bf16", "bf16", "f32", 3, 3, 6, False), False),
        (("f64", "f64", "f64", 1, 1, 1, False), True),
    ):
        op = matmul(10, 20, 30, algorithm=a)
        arrays = operands(op)
        (got,) = Kernel(lower(op, TARGETS[0]), TARGETS[0])(arrays, [op.tensor])
        want = op.kind.evaluate(*arrays, **op.attrs)  # type: ignore[misc]
        np.testing.assert_allclose(got, want, rtol=2e-6 if exact else 1e-5, atol=2e-6 if exact else 1e-5)


def test_classification_merges_what_it_can() -> None:
    x, y = TensorType(d.f32, (2, 3, 4, 5)), TensorType(d.f32, (2, 4, 5, 6))
    c = classify(dot_general(x, y, (0,), (0,), (2, 3), (1, 2), d.f32))
    assert c.sizes == (2, 3, 6, 20)
    assert [len(g) for g in (c.batch, c.m, c.n, c.k)] == [1, 1, 1, 1]
    turned = classify(dot_general(x, y, (0,), (0,), (3, 2), (2, 1), d.f32))
    assert turned.k == c.k


def test_plans_cover_everything_and_depend_on_shapes_only() -> None:
    target = Target.named("x86-avx512")
    r = recipe(d.f32, d.f32, d.f32, target)
    for sizes in ((1, 64, 64, 64), (1, 1024, 1024, 1024), (7, 33, 65, 1), (1, 8, 4096, 4096), (1, 5, 9, 1_000_000)):
        p = plan(sizes, r, target, b_row=sizes[2], b_column=1, inner=False, stream=False)
        assert isinstance(p, Plan)
        assert p.rows * p.vectors <= 28
        assert p.block_m % p.rows == 0
        assert p.block_n % p.width == 0
        assert p.units * p.block_m * p.block_n * p.split_k >= np.prod(sizes)
        assert p.unit_cost > 0
    assert balanced(100, 30) == 25
