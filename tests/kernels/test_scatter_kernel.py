"""The scatter kernel where its work is split: along runs, by shares of destinations, along batches; any indices."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, aligned, s, with_small_caches

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, bf16, f32, i32, i64, u8
from hilo.ir.interpret import evaluate
from hilo.ir.module import parameter, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType


def scatter_rows(rows: int, count: int, length: int, dtype: DType = f32, index: DType = i32, how: str = "add") -> Op:
    """Rows of updates are combined with rows of the operand."""
    types = TensorType(dtype, (rows, length)), TensorType(index, (count, 1)), TensorType(dtype, (count, length))
    t = TensorType(dtype)
    body = region([t, t], lambda a, x: s(how)(a, x))
    return s("scatter")(*(parameter(i, t) for i, t in enumerate(types)), update_window_dims=(1,),
                        inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
                        update_computation=body)  # fmt: skip


CASES = [(50, 700, 24), (3, 700, 24), (7, 90, 1030), (7, 90, 1536), (1000, 130, 129), (50, 3000, 6), (4, 9000, 2)]


@pytest.mark.parametrize("target", [*TARGETS, "scalar"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("dtype", "index"), [(f32, i32), (bf16, i64)])
def test_any_indices_in_any_pieces(target, case, dtype, index):
    rows, count, length = case
    rng = np.random.default_rng(rows)
    op = scatter_rows(rows, count, length, dtype, index, "subtract")
    where = rng.integers(-2, rows + 2, (count, 1)).astype(index.np)
    where[5] = np.iinfo(index.np).min
    where[7] = np.iinfo(index.np).max
    x, y = (rng.normal(size=n).astype(dtype.np) for n in ((rows, length), (count, length)))
    want = np.asarray(evaluate(op, [x, where, y]))
    kernel = Kernel(op, Target.named(target))
    for pieces in (1, 3):
        (got,) = kernel(x, where, y, pieces=pieces)
        assert got.tobytes() == want.tobytes()


BLOCKS = [(700, 900, 64), (1000, 130, 129), (3, 700, 200), (90, 5, 1040), (40, 90, 1030), (513, 1, 72), (1, 30, 700)]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", BLOCKS)
@pytest.mark.parametrize(("dtype", "index"), [(f32, i32), (bf16, i64), (i32, u8)])
def test_block_by_block(target, case, dtype, index):
    """Updates sorted by blocks give the same bits, into a result elsewhere and in place, for any indices."""
    rows, count, length = case
    length *= 4 // dtype.itemsize
    rng = np.random.default_rng(rows)
    op = scatter_rows(rows, count, length, dtype, index, "subtract")
    where = rng.integers(0 if index is u8 else -2, min(rows + 2, 256), (count, 1)).astype(index.np)
    if count > 7 and index is not u8:
        where[5] = np.iinfo(index.np).min
        where[7] = np.iinfo(index.np).max
    x, y = (rng.normal(size=n).astype(dtype.np) for n in ((rows, length), (count, length)))
    want = np.asarray(evaluate(op, [x, where, y]))
    kernel = Kernel(op, with_small_caches(target))
    assert "blocks" in kernel.lowered.strategy
    for pieces in (1, 3):
        (got,) = kernel(x, where, y, pieces=pieces)
        assert got.tobytes() == want.tobytes()
    place, scratch = aligned(x.shape, x.dtype), aligned([kernel.lowered.scratch], np.dtype(np.uint8))
    place[...] = x
    kernel.run([place, where, y, place, scratch], pieces=2)
    assert place.tobytes() == want.tobytes()


def test_block_by_block_of_windows():
    """Rows that several dims number, of which some are indexed, in another order, and some are windows."""
    t = TensorType(f32)
    types = [TensorType(f32, (5, 6, 7, 64)), TensorType(i32, (2, 9)), TensorType(f32, (9, 3, 64)), t]
    body = region([t, t, t], lambda a, x, k: s("add")(a, s("multiply")(x, k)))
    op = s("scatter")(*(parameter(i, t) for i, t in enumerate(types)), update_window_dims=(1, 2),
                      inserted_window_dims=(0, 1), scatter_dims_to_operand_dims=(1, 0), index_vector_dim=0,
                      update_computation=body)  # fmt: skip
    rng = np.random.default_rng(0)
    where = rng.integers(-1, 7, (2, 9)).astype(np.int32)
    x, y, k = (rng.normal(size=types[i].shape).astype(np.float32) for i in (0, 2, 3))
    kernel = Kernel(op, with_small_caches("x86-avx512"))
    assert "blocks" in kernel.lowered.strategy
    np.testing.assert_allclose(kernel(x, where, y, k)[0], evaluate(op, [x, where, y, k]), rtol=1e-6)


def test_shares_of_destinations():
    kernel = Kernel(scatter_rows(50, 700, 24), Target.named("x86-avx2"))
    assert kernel.lowered.phases[-1].units > 1
