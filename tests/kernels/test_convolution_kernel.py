"""The convolution kernel against the interpreter, in the one layout that it takes."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, check

from hilo.errors import Unsupported
from hilo.ir.dtypes import dtype
from hilo.ir.module import parameter
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.ops.convolution import canonical_dimensions, convolution
from hilo.ops.window_axes import Axis

DTYPES = [("f32", "f32"), ("bf16", "bf16"), ("i8", "i32"), ("f64", "f64"), ("f16", "f32"), ("c64", "c64"), ("u8", "u8"),
          ("i1", "i1")]  # fmt: skip


def conv(x, w, axes: list[Axis], types=("f32", "f32"), groups: int = 1) -> Op:
    count = [a.count(n) for a, n in zip(axes, x[1:-1])]
    d, out = map(dtype, types)
    return convolution(
        parameter(0, TensorType(d, x)), parameter(1, TensorType(d, w)),
        window_strides=tuple(a.stride for a in axes), padding=tuple((a.low, a.high) for a in axes),
        lhs_dilation=tuple(a.base for a in axes), rhs_dilation=tuple(a.dilation for a in axes),
        feature_group_count=groups, type=TensorType(out, (x[0], *count, w[-1])), **canonical_dimensions(len(x)),
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(48))
def test_random(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    plain = rng.random(n) < 0.2
    axes = [Axis(1) if p else Axis(*(int(rng.integers(lo, hi)) for lo, hi in
                                     ((1, 4), (1, 3), (-2, 4), (-2, 4), (1, 3), (1, 3)))) for p in plain]  # fmt: skip
    axes = [a if a.count(6) else Axis(a.size) for a in axes]
    groups = int(rng.choice([1, 1, 2, 5]))
    inputs, outputs = int(rng.integers(1, 8)), int(rng.integers(1, 40)) * groups
    sizes = [int(v) for v in rng.integers(5, 9 if n > 1 else 30, n)]
    x, w = (2, *sizes, inputs * groups), (*(a.size for a in axes), inputs, outputs)
    check(conv(x, w, axes, DTYPES[seed % len(DTYPES)], groups), TARGETS[seed % 3], tolerance=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_depthwise_with_and_without_a_multiplier(target):
    for multiplier in (1, 2):
        axes = [Axis(3, 1, 1, 1), Axis(3, 2, 1, 1)]
        check(conv((1, 7, 9, 37), (3, 3, 1, 37 * multiplier), axes, groups=37), target)


def test_infinite_weights_meet_no_padding():
    x, w = np.ones((1, 20, 2), np.float32), np.full((3, 2, 19), np.inf, np.float32)
    check(conv(x.shape, w.shape, [Axis(3, 1, 2, 3)]), "x86-avx2", arrays=[x, w])


def test_another_layout_must_be_legalized():
    t = TensorType(dtype("f32"), (2, 2))
    op = convolution(parameter(0, t), parameter(1, t), type=t, **{**canonical_dimensions(2), "input_batch_dimension": 1,
                     "input_feature_dimension": 0})  # fmt: skip
    with pytest.raises(Unsupported, match="layout"):
        check(op, "x86-avx2")
