"""select_and_scatter by vectors against the interpreter, bit for bit: overlaps, padding, NaN, ties, any combination."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_runs import Kernel, evaluate, region, s

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, dtype
from hilo.ir.module import parameter
from hilo.ir.op import Op
from hilo.ir.types import TensorType

TARGETS = [t for t in ("x86-avx512", "x86-avx2", "x86-sse2") if Target.host().includes(Target.named(t))]
Pads = tuple[tuple[int, int], ...]


def pooled(shape: tuple[int, ...], size: tuple[int, ...], strides: tuple[int, ...], pads: Pads, d: DType | str = "f32",
           direction: str = "GE", scatter: str = "add") -> Op:  # fmt: skip
    d = dtype(d) if isinstance(d, str) else d
    count = [max(0, (n + lo + hi - w) // st + 1) for n, w, st, (lo, hi) in zip(shape, size, strides, pads, strict=True)]
    e = TensorType(d)
    return s("select_and_scatter")(
        parameter(0, TensorType(d, shape)), parameter(1, TensorType(d, count)), parameter(2, e),
        window_dimensions=size, window_strides=strides, padding=pads,
        select=region([e, e], lambda a, b: s("compare")(a, b, comparison_direction=direction)),
        scatter=region([e, e], lambda a, b: s(scatter)(a, b)),
    )  # fmt: skip


def values(t: TensorType, seed: int, few: bool) -> np.ndarray:
    """Values with ties (`few`), NaNs and both zeros among them."""
    rng = np.random.default_rng(seed)
    if t.dtype.is_int:
        return rng.integers(-3 if few else -100, 4 if few else 101, t.shape).astype(t.dtype.np)
    x = rng.integers(-2, 3, t.shape) if few else rng.standard_normal(t.shape)
    x = np.where(rng.random(t.shape) < 0.1, np.nan, np.where(rng.random(t.shape) < 0.1, -0.0, x)) if few else x
    return x.astype(t.dtype.np)


def check(op: Op, target: str, by_vectors: bool, seed: int = 0) -> None:
    kernel = Kernel(op, Target.named(target))
    assert ("by vectors" in kernel.lowered.strategy) == by_vectors
    for few in (True, False):
        arrays = [values(o.tensor, seed + i, few and i == 0) for i, o in enumerate(op.operands)]
        want = np.asarray(evaluate(op, arrays))
        for pieces in (1, 4):
            (got,) = kernel(*arrays, pieces=pieces)
            assert same(got, want), (op, pieces)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.dtype.kind in "iu":
        return bool((a == b).all())
    nan = np.isnan(b)
    return bool((np.isnan(a) == nan).all()) and a[~nan].tobytes() == b[~nan].tobytes()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("size", "strides", "pads"),
    [
        ((1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (0, 1), (1, 1), (0, 0))),  # overlapping
        ((1, 2, 2, 1), (1, 2, 2, 1), ((0, 0),) * 4),
        ((1, 2, 3, 1), (1, 1, 4, 1), ((0, 0), (2, 3), (0, 0), (0, 0))),  # windows in padding alone
    ],
)
@pytest.mark.parametrize("channels", [5, 16, 37])
def test_channels_last(target: str, size: Any, strides: Any, pads: Any, channels: int) -> None:
    for batch in (1, 3):
        check(pooled((batch, 7, 9, channels), size, strides, pads), target, True)


@pytest.mark.parametrize(
    ("width", "size", "stride", "pads"),
    [
        (40, 3, 2, (1, 1)),
        (40, 3, 2, (0, 0)),
        (35, 2, 2, (0, 0)),
        (37, 3, 1, (1, 1)),
        (41, 5, 1, (7, 6)),  # windows in padding alone
        (50, 4, 3, (2, 0)),
        (67, 7, 4, (3, 3)),
        (90, 2, 5, (0, 1)),  # elements that no window has
        (99, 16, 8, (4, 11)),
        (60, 1, 3, (0, 0)),
        (60, 3, 3, (-4, -2)),
    ],
)
@pytest.mark.parametrize("direction", ["GE", "GT", "LT"])
def test_rows(width: int, size: int, stride: int, pads: tuple[int, int], direction: str) -> None:
    op = pooled((2, 5, width), (1, 2, size), (1, 2, stride), ((0, 0), (1, 0), pads), direction=direction)
    check(op, "x86-avx512", True)
    check(pooled((width,), (size,), (stride,), (pads,), direction=direction), "x86-avx512", True)


@pytest.mark.parametrize("scatter", ["subtract", "multiply", "maximum"])
def test_any_combination_in_the_sources_order(scatter: str) -> None:
    for shape, size, strides, pads in (
        ((3, 40), (2, 3), (1, 1), ((1, 0), (1, 1))),
        ((6, 5, 33), (2, 3, 1), (1, 1, 1), ((1, 0), (1, 1), (0, 0))),
    ):
        check(pooled(shape, size, strides, pads, scatter=scatter), "x86-avx512", True)


@pytest.mark.parametrize("d", ["f64", "bf16", "f16", "i8", "u8", "i16", "i32", "i64", "f8E4M3FN"])
def test_types(d: str) -> None:
    check(pooled((2, 4, 70), (1, 3, 3), (1, 2, 2), ((0, 0), (1, 1), (1, 1)), d), "x86-avx512", True)
    check(pooled((2, 4, 5, 33), (1, 3, 2, 1), (1, 1, 2, 1), ((0, 0), (1, 1), (1, 0), (0, 0)), d), "x86-avx512", True)


def test_what_stays_on_the_general_way() -> None:
    wide = pooled((3, 400), (1, 20), (1, 10), ((0, 0), (0, 0)))
    check(wide, "x86-avx512", False)
    check(pooled((3, 400), (1, 3), (1, 9), ((0, 0), (0, 0))), "x86-avx512", False)
    check(pooled((3, 40), (1, 3), (1, 2), ((0, 0), (0, 0))), "x86-avx2", False)
    check(pooled((12, 3), (3, 3), (3, 3), ((0, 0), (0, 0))), "x86-avx512", False)  # one window in a row
    check(pooled((3, 12, 2), (1, 3, 1), (1, 3, 1), ((0, 0),) * 3, "c64", direction="EQ"), "x86-avx512", False)
