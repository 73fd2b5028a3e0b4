"""Reductions by panels of long rows against the interpreter: chosen where arrays are large, pinned where small."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from kernel_runs import (
    TARGETS,
    Kernel,
    aligned,
    broadcast,
    check,
    compare,
    constant,
    fused,
    random_array,
    reduce,
    s,
)

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, bf16, c64, f16, f32, f64, i1, i8, i32, u64
from hilo.ir.interpret import evaluate
from hilo.ir.module import parameter, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels.pins import pinned

CASES = [
    ((7, 100), (0,)), ((33, 17), (0,)), ((8, 64), (0,)), ((2, 3), (0,)), ((3, 35, 40), (1,)),
    ((9, 5, 33), (0, 1)), ((5, 3, 9, 37), (0, 2)), ((4, 2, 3, 4), (1,)), ((3, 1, 50), (0,)), ((5, 4, 3, 6, 2), (0, 3)),
]  # fmt: skip


def panels(op: Op, target: str, together: int, tolerance: float, arrays: list[np.ndarray] | None = None) -> Kernel:
    """Check the kernel of `op` that takes `together` places at a time."""
    with pinned({"rows.together": str(together)}):
        kernel = check(op, target, tolerance=tolerance, arrays=arrays)
    assert f"{together} places at a time" in kernel.lowered.reason
    return kernel


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, f64, bf16, f16, i32, i8, u64, c64, i1], ids=str)
def test_sums_and_extrema(dtype: DType, target: str) -> None:
    for shape, dims in CASES:
        params = [parameter(0, TensorType(dtype, shape)), parameter(1, TensorType(dtype))]
        panels(reduce(params[0], dims, first=params[1]), target, 2, 1e-5)
        if dtype is not c64:
            panels(reduce(params[0], dims, "maximum", first=params[1]), target, 2, 0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("together", [2, 4, 8])
def test_rows_that_remain(together: int, target: str) -> None:
    """Numbers of rows that are no multiple of those taken together, with NaNs and both zeros among their values."""
    rng = np.random.default_rng(1)
    for n in (8, 9, 15, 16, 23):
        x = rng.integers(-3, 3, (n, 45)).astype(np.float32)
        x[rng.random(x.shape) < 0.01] = np.nan
        x[:, 3] = -0.0
        for kind, init in (("add", -0.0), ("minimum", np.inf), ("maximum", -np.inf), ("multiply", 1)):
            op = reduce(parameter(0, TensorType(f32, x.shape)), (0,), kind, first=parameter(1, TensorType(f32)))
            first = np.asarray(init, np.float32)
            got = panels(op, target, together, 0, [x, first])(x, first)[0]
            assert np.signbit(got[3]) == np.signbit(evaluate(op, [x, first])[3])  # type: ignore[index]


def argmax(x: Op, i: Op, d: int) -> Op:
    """The largest value with its index, NaN before all others, of equal ones the first."""
    f, n = TensorType(x.dtype), TensorType(i.dtype)

    def body(a: Op, j: Op, b: Op, k: Op) -> tuple[Op, Op]:
        better = s("or")(s("compare")(a, b, comparison_direction="GT"), s("compare")(a, a, comparison_direction="NE"))
        same = s("compare")(a, b, comparison_direction="EQ")
        first = s("and")(same, s("compare")(j, k, comparison_direction="LT"))
        return s("select")(better, a, b), s("select")(s("or")(better, first), j, k)

    return s("reduce")(x, i, constant(-np.inf, x.dtype), constant(0, i.dtype), dimensions=(d,),
                       body=region([f, n, f, n], body))  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_pairs(target: str) -> None:
    for shape, d in [((50, 6), 0), ((70, 40), 0), ((3, 19, 37), 1), ((2500, 111), 0)]:
        t, n = TensorType(f32, shape), TensorType(i32, shape)

        def build(x: Op, d: int = d, n: TensorType = n) -> tuple[Op, ...]:
            return argmax(x, s("iota")(iota_dimension=d, type=n), d).results()

        x = np.random.default_rng(0).integers(0, 5, shape).astype(np.float32)
        x[x.shape[0] // 2 :, ..., 3] = np.nan
        panels(fused([t], build, "rows"), target, 4, 0, [x])


def moments(x: Op) -> tuple[Op, ...]:
    """Mean of x, and of its squares."""
    sums = [reduce(v, [0]) for v in (x, s("multiply")(x, x))]
    n = constant(x.shape[0], x.dtype, sums[0].shape)
    return tuple(s("divide")(v, n) for v in sums)


def bias_gradient(x: Op, d: Op) -> tuple[Op, ...]:
    """The gradient before a rectifier, and of the bias that was added there."""
    zero = constant(0, x.dtype, x.shape)
    g = s("select")(s("compare")(x, zero, comparison_direction="GT"), d, zero)
    return g, reduce(g, [0])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("build", [moments, bias_gradient, lambda x, y: moments(s("add")(x, s("tanh")(y)))])
def test_several_results(build: Callable[..., tuple[Op, ...]], target: str) -> None:
    """Small ones in one phase; large ones in chunks, which the results of the full size are part of."""
    count = 1 if build is moments else 2
    for shape in [(30, 70), (9, 16)]:
        panels(fused([TensorType(f32, shape)] * count, build, "rows"), target, 4, 2e-5)
    kernel = panels(fused([TensorType(f32, (2111, 131))] * count, build, "rows"), target, 4, 2e-5)
    assert len(kernel.lowered.phases) == 2


def test_result_in_place_of_an_operand() -> None:
    for shape in [(40, 70), (2111, 131)]:
        t = TensorType(f32, shape)
        op = fused([t, t], bias_gradient, "rows")
        with pinned({"rows.together": "8"}):
            kernel = Kernel(op, Target.named("x86-avx512"))
        assert kernel.lowered.in_place == ((0, 0), (1, 0))
        x, d = (random_array(np.random.default_rng(i), t) for i in range(2))
        place, sums = aligned(shape, d.dtype), aligned(shape[1:], d.dtype)
        place[...] = d
        kernel.run([x, place, place, sums, aligned([kernel.lowered.scratch], np.dtype(np.uint8))], pieces=3)
        for got, want in zip((place, sums), evaluate(op, [x, d]), strict=True):
            compare(got, np.asarray(want), 1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "dims"), [((40_000, 40), (0,)), ((700, 3, 7, 21), (0, 2)), ((3, 9000, 20), (1,)), ((1 << 16, 24), (0,))]
)
def test_long_sums_keep_their_digits(shape: tuple[int, ...], dims: tuple[int, ...], target: str) -> None:
    x = np.random.default_rng(3).uniform(0.5, 1.5, shape).astype(np.float32)
    op = reduce(parameter(0, TensorType(f32, shape)), dims, first=parameter(1, TensorType(f32)))
    with pinned({"rows.together": "2"}):
        got = Kernel(op, Target.named(target))(x, np.zeros((), np.float32))[0]
    assert np.abs(got / x.astype(np.float64).sum(axis=dims) - 1).max() < 4e-7


@pytest.mark.parametrize(("shape", "d"), [((5000, 300), 0), ((4099, 4101), 0), ((7, 1500, 301), 1), ((40, 100_001), 0)])
def test_large_arrays_take_panels_and_do_not_depend_on_pieces(shape: tuple[int, ...], d: int) -> None:
    x = np.random.default_rng(5).normal(size=shape).astype(np.float32)
    op = reduce(parameter(0, TensorType(f32, shape)), (d,), first=parameter(1, TensorType(f32)))
    kernel = Kernel(op, Target.named("x86-avx512"))
    assert "panels of" in kernel.lowered.reason
    results = [kernel(x, np.zeros((), np.float32), pieces=n)[0] for n in (1, 2, 7)]
    assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()
    np.testing.assert_allclose(results[0], x.sum(axis=d, dtype=np.float64), rtol=1e-5, atol=1e-4)


def test_what_stays_in_registers() -> None:
    """Rows that are read as a whole anyway, few rows, arrays that a cache holds, and bodies with an order."""
    t = TensorType(f32)
    shapes = [(100_000, 64), (8, 1 << 20), (300, 300)]
    ops = [reduce(parameter(0, TensorType(f32, n)), (0,), first=parameter(1, t)) for n in shapes]
    last = region([t, t], lambda a, b: b)
    ops.append(s("reduce")(parameter(0, TensorType(f32, (5000, 300))), parameter(1, t), dimensions=(0,), body=last))
    for op in ops:
        assert "panels" not in Kernel(op, Target.named("x86-avx512")).lowered.reason


def test_centred_columns_stay_right() -> None:
    """Several passes need all of a column: no panels, whatever the size."""

    def build(x: Op) -> Op:
        return s("subtract")(x, broadcast(moments(x)[0], x.shape, [1]))

    check(fused([TensorType(f32, (2100, 150))], build, "rows"), "x86-avx512", tolerance=1e-5)
