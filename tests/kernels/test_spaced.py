"""Every second, third ... element of an array: by contiguous loads, never beyond the array's ends."""

from __future__ import annotations

import numpy as np
import pytest
from contraction_runs import place
from kernel_runs import TARGETS, Kernel, check, compare, constant, fused, random_array, reduce, s

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, bf16, c64, f32, f64, i1, i8, i64
from hilo.ir.interpret import evaluate
from hilo.ir.op import Op
from hilo.ir.types import TensorType


def column(t: TensorType, start: int, step: int) -> Op:
    """f(x) = x[:, start::step] + x[:, start::step], on few columns."""
    limit = t.shape[1] - t.shape[1] % step if t.shape[1] % step <= start else t.shape[1]

    def build(x: Op) -> Op:
        part = s("slice")(x, start_indices=(0, start), limit_indices=(t.shape[0], limit), strides=(1, step))
        return s("or")(part, part) if t.dtype is i1 else s("add")(part, part)

    return fused([t], build)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, f64, bf16, i8, i1, i64, c64], ids=str)
@pytest.mark.parametrize("step", [2, 3, 4, 5, 7, 8, 9])
def test_strided_slices(dtype: DType, step: int, target: str) -> None:
    for size, start in ((40 * step, step - 1), (41 * step + 1, 1), (3 * step, 0)):
        t = TensorType(dtype, (2, size))
        op = column(t, start, step)
        x = place(random_array(np.random.default_rng(step), t))
        compare(Kernel(op, Target.named(target))(x)[0], evaluate(op, [x]), 0)


@pytest.mark.parametrize("target", TARGETS)
def test_ends_of_strided_rows(target: str) -> None:
    """The last element is a group's first, of groups that the array does not fill; some lanes lie in the padding."""
    t = TensorType(f32, (1, 3 * 37 + 1))
    x = place(random_array(np.random.default_rng(1), t))

    def build(x: Op) -> Op:
        part = s("slice")(x, start_indices=(0, 0), limit_indices=(1, 3 * 37 + 1), strides=(1, 3))
        zero = constant(0, f32)
        return s("pad")(part, zero, edge_padding_low=(0, 2), edge_padding_high=(0, 5), interior_padding=(0, 0))

    op = fused([t], build)
    compare(Kernel(op, Target.named(target))(x)[0], evaluate(op, [x]), 0)


@pytest.mark.parametrize("shape", [(33, 3), (32, 2), (50, 4), (17, 7), (5, 8), (64, 3)])
def test_columns_side_by_side(shape: tuple[int, int]) -> None:
    """Sums of a few elements that lie side by side: groups are read once for all of them."""
    for dtype in (f32, f64):
        op = fused([TensorType(dtype, shape)], lambda x: reduce(s("multiply")(x, x), [1]), kind="rows")
        for target in TARGETS:
            check(op, target, arrays=[place(random_array(np.random.default_rng(2), TensorType(dtype, shape)))])
