"""Arguments in the panels that a call may bring: kernels read these instead, with the same bits, and pack none."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, aligned, random_array, s

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, f32, f64, i32
from hilo.ir.module import parameter
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels.contraction_bound import Panels
from hilo.kernels.lowered import steady


def dot(a: Op, b: Op, contracting: tuple[int, int], out: tuple[int, ...], batch: bool = False) -> Op:
    dims = {"lhs_batching_dimensions": (0,), "rhs_batching_dimensions": (0,)} if batch else {}
    left, right = contracting
    return s("dot_general")(a, b, lhs_contracting_dimensions=(left,), rhs_contracting_dimensions=(right,),
                            type=TensorType(a.dtype, out), **dims)  # fmt: skip


def product(m: int, k: int, n: int, dtype: DType = f32, turned: bool = False) -> Op:
    b = (n, k) if turned else (k, n)
    return of_types((m, k), b, (1, int(turned)), (m, n), dtype)


def of_types(a: tuple[int, ...], b: tuple[int, ...], contracting: tuple[int, int], out: tuple[int, ...],
             dtype: DType = f32, batch: bool = False) -> Op:  # fmt: skip
    x, y = (parameter(i, TensorType(dtype, shape)) for i, shape in enumerate((a, b)))
    return dot(x, y, contracting, out, batch)


def convolution() -> Op:
    x, w = parameter(0, TensorType(f32, (2, 17, 19, 20))), parameter(1, TensorType(f32, (3, 3, 20, 60)))
    return s("convolution")(
        x, w, input_batch_dimension=0, input_feature_dimension=3, input_spatial_dimensions=(1, 2),
        kernel_input_feature_dimension=2, kernel_output_feature_dimension=3, kernel_spatial_dimensions=(0, 1),
        output_batch_dimension=0, output_feature_dimension=3, output_spatial_dimensions=(1, 2),
        padding=((1, 1), (1, 1)), feature_group_count=1, batch_group_count=1,
        type=TensorType(f32, (2, 17, 19, 60)))  # fmt: skip


CASES = {
    "packed": product(70, 700, 600),  # larger than the second-level cache
    "in place": product(70, 130, 77),
    "few rows": product(40, 200, 96),
    "k contiguous": product(70, 130, 77, turned=True),
    "transposed": of_types((100, 500), (100, 2), (0, 0), (500, 2)),  # computed as its transpose: B is the other one
    "f64": product(70, 120, 50, f64),
    "i32": product(70, 120, 61, i32),
    "batches": of_types((3, 70, 90), (3, 90, 77), (2, 1), (3, 70, 77), batch=True),
    "convolution": convolution(),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_panels_are_read_instead_of_the_argument(name: str, target: str) -> None:
    op = CASES[name]
    with steady(op.operands):
        kernel = Kernel(op, Target.named(target))
    ((number, layout),) = kernel.lowered.kept.items()
    assert isinstance(layout, Panels)
    rng = np.random.default_rng(0)
    arrays = [random_array(rng, o.tensor) for o in op.operands]
    panels = layout.arrange(arrays[number])
    assert panels.nbytes == layout.nbytes
    kept = aligned(panels.shape, panels.dtype)
    kept[...] = panels

    def run(given: int) -> np.ndarray:
        result = aligned(op.tensor.shape, op.dtype.np)
        scratch = aligned([max(1, kernel.lowered.scratch)], np.dtype(np.uint8))
        pointers = [x.ctypes.data for x in (*arrays, result, scratch)]
        kernel.run_at([*pointers, given], 3)
        return result

    want = run(0)
    np.testing.assert_allclose(want.astype(np.float64), kernel_free(op, arrays), rtol=1e-4, atol=1e-4)
    arrays[number] = np.full_like(arrays[number], 77)  # nobody looks at it
    np.testing.assert_array_equal(run(kept.ctypes.data), want)


def kernel_free(op: Op, arrays: list[np.ndarray]) -> np.ndarray:
    """What the op is by definition, in f64."""
    from hilo.ir.interpret import evaluate

    result = evaluate(op, arrays)
    assert isinstance(result, np.ndarray)
    return result.astype(np.float64)


def test_only_arguments_of_some_size_whose_panels_are_tight() -> None:
    target = Target.named("x86-avx512")
    for op, kept in ((product(70, 200, 64), True), (product(70, 100, 33), False), (product(70, 20, 64), False),
                     (product(1, 200, 64), False)):  # fmt: skip
        with steady(op.operands):
            assert bool(Kernel(op, target).lowered.kept) is kept
        assert not Kernel(op, target).lowered.kept
