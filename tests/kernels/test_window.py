"""reduce_window, running reductions and select_and_scatter as kernels against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, check, s, with_small_caches

from hilo.errors import Unsupported
from hilo.ir.dtypes import bf16, c64, dtype, f16, f32, f64, i1, i8, i32, i64, u8
from hilo.ir.module import parameter, region
from hilo.ir.op import Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType

KINDS = ["add", "multiply", "maximum", "minimum", "subtract"]


def window(x: TensorType, kind: str = "add", **attrs) -> Op:
    e = TensorType(x.dtype)
    body = region([e, e], lambda a, b: s(kind)(a, b))
    return s("reduce_window")(parameter(0, x), parameter(1, e), body=body, **attrs)


@pytest.mark.parametrize("name", ["reduce_window", "select_and_scatter"])
@pytest.mark.parametrize("target", TARGETS)
def test_examples(name, target):
    kind = lookup(f"stablehlo.{name}")
    for types, attrs in kind.examples:
        check(kind(*(parameter(i, t) for i, t in enumerate(types)), **attrs), target)


@pytest.mark.parametrize("seed", range(30))
def test_random_windows(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, 9 if rank > 1 else 40, rank))
    t = TensorType([f32, i32, f64, i8, u8, bf16, c64][seed % 7], shape)
    plain = rng.random(rank) < 0.3

    def numbers(low, high, default):
        return tuple(default if p else int(v) for p, v in zip(plain, rng.integers(low, high, rank)))

    attrs = {
        "window_dimensions": numbers(1, 5, 1),
        "window_strides": numbers(1, 4, 1),
        "base_dilations": numbers(1, 4, 1),
        "window_dilations": numbers(1, 4, 1),
        "padding": tuple((0, 0) if p else (int(a), int(b)) for p, (a, b) in zip(plain, rng.integers(-2, 6, (rank, 2)))),
    }
    kinds = KINDS[:2] if t.dtype.is_complex else KINDS
    check(window(t, kinds[seed % len(kinds)], **attrs), TARGETS[seed % 3], tolerance=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    "dims", [((37,), 0), ((5, 33), 1), ((33, 5), 0), ((2, 17, 70), 1), ((3, 300), 0), ((2, 16), 1)]
)
@pytest.mark.parametrize("t", [f32, bf16, f16, f64, c64, i64, i8], ids=str)
def test_running_reductions(t, dims, reverse):
    shape, axis = dims
    sizes = [1] * len(shape)
    pads = [(0, 0)] * len(shape)
    sizes[axis] = shape[axis]
    pads[axis] = (0, shape[axis] - 1) if reverse else (shape[axis] - 1, 0)
    for k, kind in enumerate(("add", "multiply") if t.is_complex else ("add", "maximum", "subtract")):
        op = window(TensorType(t, shape), kind, window_dimensions=tuple(sizes), padding=tuple(pads))
        check(op, TARGETS[(k + len(shape)) % 3], tolerance=1e-4)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("target", TARGETS)
def test_long_running_reductions(target, reverse):
    """By blocks, fetched ahead, stored past the caches; the interpreter's order is another one."""
    for shape, axis in [((2600,), 0), ((3, 1104), 1), ((40, 64), 0)]:
        sizes = tuple(n if d == axis else 1 for d, n in enumerate(shape))
        pads = tuple(((0, n - 1) if reverse else (n - 1, 0)) if d == axis else (0, 0) for d, n in enumerate(shape))
        for t, kind in ((f32, "add"), (i32, "add"), (f64, "maximum"), (bf16, "add")):
            op = window(TensorType(t, shape), kind, window_dimensions=sizes, padding=pads)
            kernel = check(op, with_small_caches(target), tolerance=1e-4)
            assert "nontemporal" in kernel.text or reverse


def test_a_window_longer_than_the_axis_is_a_running_reduction():
    check(window(TensorType(i32, (21,)), window_dimensions=(30,), padding=((29, 0),)), "x86-avx2")


@pytest.mark.parametrize("seed", range(12))
def test_random_selections(seed):
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 4))
    shape = tuple(int(n) for n in rng.integers(1, 10, rank))
    plain = rng.random(rank) < 0.4
    size, strides = rng.integers(1, 4, rank), rng.integers(1, 4, rank)
    size[plain] = strides[plain] = 1
    pads = np.where(plain[:, None], 0, rng.integers(0, 3, (rank, 2)))
    count = [int(max(0, (n + lo + hi - w) // st + 1)) if n + lo + hi >= w else 0
             for n, w, st, (lo, hi) in zip(shape, size, strides, pads.tolist())]  # fmt: skip
    d = dtype(["f32", "i32", "f64", "bf16", "i8"][seed % 5])
    e = TensorType(d)
    op = s("select_and_scatter")(
        parameter(0, TensorType(d, shape)), parameter(1, TensorType(d, count)), parameter(2, e),
        window_dimensions=tuple(map(int, size)), window_strides=tuple(map(int, strides)),
        padding=tuple((int(a), int(b)) for a, b in pads),
        select=region([e, e], lambda a, b: s("compare")(a, b, comparison_direction=["GE", "LT", "GT"][seed % 3])),
        scatter=region([e, e], lambda a, b: s("add")(a, b)),
    )  # fmt: skip
    check(op, TARGETS[seed % 3])


def test_the_kernel_refuses_a_body_that_it_cannot_compute_inline():
    e = TensorType(f32)
    body = region([e, e], lambda a, b: s("reshape")(s("reduce")(s("reshape")(a, type=TensorType(f32, (1,))), b,
                  dimensions=(0,), body=region([e, e], lambda x, y: s("add")(x, y))), type=e))  # fmt: skip
    op = s("reduce_window")(parameter(0, TensorType(f32, (4,))), parameter(1, e), window_dimensions=(2,), body=body)
    with pytest.raises(Unsupported, match="in a region"):  # passes/element_loops.py makes a loop of it
        check(op, "x86-avx2")


def test_booleans():
    check(window(TensorType(i1, (4, 20)), "or", window_dimensions=(2, 3), padding=((1, 0), (1, 1))), "x86-avx512")
