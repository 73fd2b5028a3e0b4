"""The scatter kernel where its work is split: along runs, by shares of destinations, along batches; any indices."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, s

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, bf16, f32, i32, i64
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


def test_shares_of_destinations():
    kernel = Kernel(scatter_rows(50, 700, 24), Target.named("x86-avx2"))
    assert kernel.lowered.phases[-1].units > 1
