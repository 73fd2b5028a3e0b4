"""The kernel of depthwise convolutions against the interpreter, and where it is taken."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, check

from hilo.backend.target import Target
from hilo.ir.dtypes import dtype
from hilo.ir.module import parameter
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels import convolution_depthwise
from hilo.ops.convolution import canonical_dimensions, convolution
from hilo.ops.window_axes import Axis

AVX512, AVX2 = "x86-avx512", "x86-avx2"


def depthwise(size: tuple[int, ...], features: int, axes: list[Axis], types=("f32", "f32"),
              turned: tuple[bool, ...] = (), batch: int = 1) -> Op:  # fmt: skip
    d, out = map(dtype, types)
    count = [a.count(n) for a, n in zip(axes, size, strict=True)]
    w = (*(a.size for a in axes), 1, features)
    return convolution(
        parameter(0, TensorType(d, (batch, *size, features))), parameter(1, TensorType(d, w)),
        window_strides=tuple(a.stride for a in axes), padding=tuple((a.low, a.high) for a in axes),
        lhs_dilation=tuple(a.base for a in axes), rhs_dilation=tuple(a.dilation for a in axes),
        feature_group_count=features, window_reversal=turned or (False,) * len(axes),
        type=TensorType(out, (batch, *count, features)), **canonical_dimensions(len(size) + 2),
    )  # fmt: skip


def is_tiled(op: Op, target: str) -> bool:
    return convolution_depthwise.lower(op, Target.named(target)) is not None


@pytest.mark.parametrize("seed", range(40))
def test_random(seed):
    rng = np.random.default_rng(seed)
    axes = [Axis(int(rng.integers(1, 8)), int(rng.integers(1, 4)), int(rng.integers(0, 5)), int(rng.integers(0, 5)), 1,
                 int(rng.integers(1, 3))) for _ in range(int(rng.integers(1, 3)))]  # fmt: skip
    size = tuple(int(rng.integers(a.reach, 48 // len(axes) + a.reach)) for a in axes)
    types = (("f32", "f32"), ("f32", "f32"), ("f64", "f64"), ("bf16", "f32"), ("f16", "f16"))[seed % 5]
    turned = tuple(bool(r) for r in rng.random(len(axes)) < 0.3)
    op = depthwise(size, int(rng.integers(9, 80)), axes, types, turned, int(rng.integers(1, 3)))
    check(op, TARGETS[seed % 3], tolerance=2e-3 if "f16" in types else 1e-4)


@pytest.mark.parametrize("width", [1, 2, 3, 7, 8, 13, 14, 15, 16, 27, 28, 29, 30, 57])
@pytest.mark.parametrize("axis", [Axis(3, 1, 1, 1), Axis(3, 2, 0, 1), Axis(5, 1, 2, 2), Axis(3, 1, 4, 5)])
def test_rows_of_any_width(width, axis):
    if axis.count(width):
        check(depthwise((4, width), 33, [axis, axis], turned=(True, True)), AVX2, tolerance=1e-4)


def test_usual_windows_have_tiles():
    for size, stride in ((56, 1), (28, 2), (14, 1), (7, 1), (57, 1), (15, 2)):
        for taps in (3, 5, 7):
            axis = Axis(taps, stride, taps // 2, taps // 2)
            assert is_tiled(depthwise((size, size), 100, [axis, axis]), AVX512)
    assert is_tiled(depthwise((64,), 64, [Axis(4, 1, 3, 0)]), AVX2)  # causal, along time


def test_others_go_another_way():
    axis = Axis(3, 1, 1, 1)
    assert not is_tiled(depthwise((20, 20), 3, [axis, axis]), AVX512)  # too few features for vectors
    assert not is_tiled(depthwise((20, 20), 64, [axis, Axis(9, 1, 4, 4)]), AVX512)  # too many weights for registers
    assert not is_tiled(depthwise((20, 20), 64, [axis, Axis(3, 1, 1, 1, 2)]), AVX512)  # holes in lhs
    assert not is_tiled(depthwise((4, 4, 20), 64, [axis] * 3), AVX512)
    assert not is_tiled(depthwise((20, 20), 64, [axis, axis], ("i8", "i32")), AVX512)


def test_infinite_weights_meet_no_padding():
    op = depthwise((5, 20), 32, [Axis(3, 1, 1, 1), Axis(3, 1, 2, 2)])
    assert is_tiled(op, AVX2)
    x, w = np.ones((1, 5, 20, 32), np.float32), np.full((3, 3, 1, 32), np.inf, np.float32)
    check(op, AVX2, arrays=[x, w])


def test_the_same_bits_however_units_are_cut():
    op = depthwise((30, 29), 70, [Axis(3, 1, 1, 1), Axis(3, 1, 1, 1)])
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(o.tensor.shape).astype(np.float32) for o in op.operands]
    kernel = Kernel(op, Target.named(AVX2))
    assert kernel.lowered.phases[-1].units > 4
    (one,), (many,) = kernel(*arrays, pieces=1), kernel(*arrays, pieces=13)
    np.testing.assert_array_equal(one, many)
