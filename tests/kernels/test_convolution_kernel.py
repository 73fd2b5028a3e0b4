"""The convolution kernel against the interpreter, in the one layout that it takes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, check

from hilo.backend.target import Target
from hilo.errors import Unsupported
from hilo.ir.dtypes import dtype
from hilo.ir.module import parameter
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels import convolution as convolution_kernel
from hilo.kernels.convolution_axes import runs
from hilo.ops.convolution import canonical_dimensions, convolution
from hilo.ops.window_axes import Axis

DTYPES = [("f32", "f32"), ("bf16", "bf16"), ("i8", "i32"), ("f64", "f64"), ("f16", "f32"), ("c64", "c64"), ("u8", "u8"),
          ("i1", "i1")]  # fmt: skip


@pytest.fixture(autouse=True)
def small_ones_too(monkeypatch):
    """Small convolutions take the way of large ones."""
    monkeypatch.setattr(convolution_kernel, "SMALL", 1)


def conv(x, w, axes: list[Axis], types=("f32", "f32"), groups: int = 1, turned: tuple[bool, ...] = ()) -> Op:
    count = [a.count(n) for a, n in zip(axes, x[1:-1])]
    d, out = map(dtype, types)
    return convolution(
        parameter(0, TensorType(d, x)), parameter(1, TensorType(d, w)),
        window_strides=tuple(a.stride for a in axes), padding=tuple((a.low, a.high) for a in axes),
        lhs_dilation=tuple(a.base for a in axes), rhs_dilation=tuple(a.dilation for a in axes),
        feature_group_count=groups, window_reversal=turned or (False,) * len(axes),
        type=TensorType(out, (x[0], *count, w[-1])), **canonical_dimensions(len(x)),
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
    turned = tuple(bool(r) for r in rng.random(n) < 0.3)
    check(conv(x, w, axes, DTYPES[seed % len(DTYPES)], groups, turned), TARGETS[seed % 3], tolerance=1e-4)


@pytest.mark.parametrize("seed", range(36))
def test_many_features(seed):
    """Panels, their edges, blocks of k, groups, units of rows and of panels."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 3))
    axes = [Axis(*(int(rng.integers(lo, hi)) for lo, hi in ((1, 5), (1, 4), (-2, 4), (-2, 4), (1, 4), (1, 3))))
            for _ in range(n)]  # fmt: skip
    axes = [a if a.count(9) else Axis(a.size, low=a.size, high=a.size) for a in axes]
    groups = int(rng.choice([1, 1, 1, 2]))
    inputs, outputs = int(rng.integers(1, 90)), int(rng.choice([16, 32, 48, 64, 67, 96, 130])) * groups
    sizes = [int(v) for v in rng.integers(9, 19 if n > 1 else 300, n)]
    x, w = (int(rng.integers(1, 10)), *sizes, inputs * groups), (*(a.size for a in axes), inputs, outputs)
    types = [("f32", "f32"), ("f32", "f32"), ("f64", "f64"), ("bf16", "bf16"), ("f16", "f32")][seed % 5]
    turned = tuple(bool(r) for r in rng.random(n) < 0.3)
    check(conv(x, w, axes, types, groups, turned), TARGETS[seed % 3], tolerance=2e-4)


@pytest.mark.parametrize("batch", [1, 3])
def test_three_spatial_axes(batch):
    axes = [Axis(2, 1, 1, 0), Axis(3, 2, 1, 1), Axis(3, 1, 1, 1)]
    op = conv((batch, 4, 7, 6, 20), (2, 3, 3, 20, 40), axes)
    assert convolution_kernel.planned(op, Target.named("x86-avx2")) is not None
    check(op, "x86-avx2", tolerance=1e-4)


def test_taps_per_output_are_those_of_the_definition():
    values = ((1, 2, 5), (1, 2, 3), (-1, 0, 3), (0, 2), (1, 2, 3), (1, 2), (0, 1, 4, 7))
    for size, stride, low, high, base, dilation, n in itertools.product(*values):
        axis = Axis(size, stride, low, high, base, dilation)
        seen = {}
        for r in runs(axis, n, axis.count(n)):
            for i in range(r.count):
                taps = range(r.lo, r.hi, r.tap_step)
                seen[r.first + i * r.step] = [(k, r.at + i * r.move + j * r.reach) for j, k in enumerate(taps)]
        for o in range(axis.count(n)):
            at = [(k, o * stride + k * dilation - low) for k in range(size)]
            want = [(k, p // base) for k, p in at if p % base == 0 and 0 <= p < axis.spread(n)]
            assert seen[o] == want


def test_a_unit_of_work_sums_up_the_same_whatever_its_neighbours():
    axes = [Axis(3, 1, 1, 1), Axis(3, 1, 1, 1)]
    op = conv((1, 28, 28, 70), (3, 3, 70, 64), axes)
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=o.shape).astype(np.float32) for o in op.operands]
    kernel = Kernel(op, Target.named("x86-avx2"))
    assert kernel.lowered.phases[-1].units > 1
    (one,), (many,) = kernel(*arrays, pieces=1), kernel(*arrays, pieces=50)
    np.testing.assert_array_equal(one, many)


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
