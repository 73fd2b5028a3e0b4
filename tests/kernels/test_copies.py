"""Transposition, concatenation, updates of slices, gather, scatter and random bits against the interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, aligned, broadcast, check, compare, fused, random_array, s, with_small_caches

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, bf16, c64, c128, f16, f32, f64, i1, i16, i32, u8, u32, u64
from hilo.ir.interpret import evaluate
from hilo.ir.module import parameter, region
from hilo.ir.op import Op
from hilo.ir.registry import lookup
from hilo.ir.types import Results, TensorType
from hilo.kernels.transpose import merge_axes


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, f64, bf16, u8, i1, c64, c128, i16], ids=str)
def test_transpose(dtype: DType, target: str) -> None:
    for shape, permutation in [
        ((33, 70), (1, 0)), ((130, 300), (1, 0)), ((5, 64, 48), (0, 2, 1)), ((4, 5, 6, 7), (3, 1, 2, 0)),
        ((2, 40, 3, 50), (0, 3, 2, 1)), ((50, 3), (1, 0)), ((3, 50), (1, 0)), ((7, 1, 64), (2, 1, 0)),
        ((130, 4), (1, 0)),
        ((2, 3, 4), (0, 1, 2)), ((0, 3), (1, 0)), ((17, 2, 33), (1, 2, 0)), ((520, 19), (1, 0)),
    ]:  # fmt: skip
        check(s("transpose")(parameter(0, TensorType(dtype, shape)), permutation=permutation), target, tolerance=0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, bf16, u8, i32, f64, i1, f16], ids=str)
def test_transpose_in_a_fusion(dtype: DType, target: str) -> None:
    for shape, permutation in [((130, 300), (1, 0)), ((2, 40, 3, 70), (0, 3, 2, 1)), ((17, 5, 133), (2, 1, 0))]:
        out = tuple(shape[p] for p in permutation)

        def build(
            x: Op, y: Op, z: Op, out: tuple[int, ...] = out, permutation: tuple[int, ...] = permutation
        ) -> tuple[Op, Op]:
            turned = s("transpose")(x, permutation=permutation)
            less = s("compare")(turned, y, comparison_direction="LT")
            r = s("select")(less, turned, broadcast(z, out, [0]))
            return r, s("compare")(r, y, comparison_direction="NE")

        types = [TensorType(dtype, shape), TensorType(dtype, out), TensorType(dtype, out[:1])]
        check(fused(types, build), target, tolerance=0)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, bf16, u8, f64], ids=str)
def test_transpose_of_what_no_cache_holds(dtype: DType, target: str) -> None:
    for shape in ((130, 320), (128, 64), (77, 131)):
        op = s("transpose")(parameter(0, TensorType(dtype, shape)), permutation=(1, 0))
        kernel = check(op, with_small_caches(target), tolerance=0)
        assert "llvm.prefetch" in kernel.text


def test_axes_are_merged() -> None:
    assert merge_axes((2, 3, 4, 5), (2, 3, 0, 1)) == ((6, 20), (1, 0))
    assert merge_axes((2, 1, 4), (2, 1, 0)) == ((2, 4), (1, 0))
    assert merge_axes((2, 3, 4), (0, 1, 2)) == ((24,), (0,))
    assert merge_axes((2, 3, 4, 5), (0, 2, 1, 3)) == ((2, 3, 4, 5), (0, 2, 1, 3))
    assert merge_axes((1, 1), (1, 0)) == ((), ())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, bf16, u8, c128, i1], ids=str)
def test_concatenate(dtype: DType, target: str) -> None:
    for shapes, d in [
        (((3, 4), (3, 5)), 1), (((3, 4), (2, 4)), 0), (((3, 100, 7), (3, 20, 7), (3, 0, 7), (3, 20, 7)), 1),
        (((5,),) * 9, 0), (((40000,), (40000,), (10,)), 0), (((300, 129), (300, 129), (300, 64)), 1), (((4,),), 0),
        ([(2, 1 + k % 3) for k in range(40)], 1), (((0, 2), (0, 3)), 1),
    ]:  # fmt: skip
        params = [parameter(i, TensorType(dtype, shape)) for i, shape in enumerate(shapes)]
        check(s("concatenate")(*params, dimension=d), target, tolerance=0)


def test_many_operands_are_one_loop() -> None:
    params = [parameter(i, TensorType(f32, (7, 3))) for i in range(1200)]
    kernel = check(s("concatenate")(*params, dimension=0), "x86-avx2", tolerance=0)
    assert len(kernel.lowered.phases) == 1
    assert len(kernel.text) < 20_000


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, bf16, u8, c128], ids=str)
def test_dynamic_update_slice(dtype: DType, target: str) -> None:
    for shape, update in [
        ((10, 20), (3, 20)), ((10, 20), (3, 5)), ((10, 20), (10, 20)), ((10,), (0,)), ((), ()), ((4, 6, 8), (2, 6, 8)),
        ((4, 6, 8), (2, 1, 8)), ((200, 300), (1, 300)), ((4, 6, 8), (4, 6, 3)), ((0,), (0,)),
    ]:  # fmt: skip
        types = [TensorType(dtype, shape), TensorType(dtype, update), *[TensorType(i32)] * len(shape)]
        op = s("dynamic_update_slice")(*[parameter(i, t) for i, t in enumerate(types)])
        rng = np.random.default_rng(0)
        kernel = None
        for start in (0, 2, 100, -5):
            arrays = [random_array(rng, t) for t in types[:2]] + [np.array(start, np.int32) for _ in shape]
            kernel = check(op, target, arrays=arrays, tolerance=0) if kernel is None else kernel
            want = evaluate(op, arrays)
            compare(kernel(*arrays)[0], want, 0)
            if kernel.lowered.in_place:
                place = aligned(shape, dtype.np)
                place[...] = arrays[0]
                kernel.run([place, *arrays[1:], place])
                compare(place, want, 0)


def example_runs(name: str) -> list[Op]:
    definition = lookup(f"stablehlo.{name}")
    return [
        definition(*[parameter(i, t) for i, t in enumerate(types)], **attrs) for types, attrs in definition.examples
    ]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["gather", "scatter", "rng_bit_generator"])
def test_examples(name: str, target: str) -> None:
    for op in example_runs(name):
        for seed in range(3):
            rng = np.random.default_rng(seed)
            arrays = [np.asarray(rng.integers(0 if o.dtype.kind == "u" else -2, 6, o.shape)).astype(o.dtype.np)
                      if o.dtype.is_int else random_array(rng, o.tensor) for o in op.operands]  # fmt: skip
            check(op, target, arrays=arrays)


def scatter_op(kind: str, x: tuple[int, ...], indices: int, updates: tuple[int, ...], **attrs: object) -> Op:
    types = [TensorType(f32, x), TensorType(i32, (indices, 1)), TensorType(f32, updates)]
    body = region([TensorType(f32)] * 2, lambda a, b: b if kind == "last" else s(kind)(a, b))
    params = [parameter(i, t) for i, t in enumerate(types)]
    return s("scatter")(*params, update_computation=body, index_vector_dim=1, **attrs)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", ["add", "last", "maximum"])
def test_scatter_rows(kind: str, target: str) -> None:
    """Rows of a table: many updates of one row, some out of range; wide rows are split between units."""
    rows = {"update_window_dims": (1,), "inserted_window_dims": (0,), "scatter_dims_to_operand_dims": (0,)}
    for width, count in [(3, 20), (16, 20), (70, 20), (1500, 40)]:
        op = scatter_op(kind, (9, width), count, (count, width), **rows)
        rng = np.random.default_rng(width)
        arrays = [random_array(rng, o.tensor) for o in op.operands]
        arrays[1] = rng.integers(-2, 11, (count, 1)).astype(np.int32)
        kernel = check(op, target, arrays=arrays, tolerance=1e-5)
        if width == 1500:
            assert kernel.lowered.phases[-1].units > 1
            results = [kernel(*arrays, pieces=n)[0].tobytes() for n in (1, 3)]
            assert results[0] == results[1]


@pytest.mark.parametrize("target", TARGETS)
def test_scatter_windows_that_stick_out(target: str) -> None:
    windows = {"update_window_dims": (1,), "inserted_window_dims": (), "scatter_dims_to_operand_dims": (0,)}
    op = scatter_op("add", (50,), 6, (6, 20), **windows)
    rng = np.random.default_rng(0)
    arrays = [random_array(rng, o.tensor) for o in op.operands]
    arrays[1] = np.array([[-19], [-3], [0], [29], [31], [49]], np.int32)
    check(op, target, arrays=arrays, tolerance=1e-5)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(("algorithm", "words"), [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3)])
def test_random_bits(algorithm: str, words: int, target: str) -> None:
    shapes = [(3, 5), (4, 6), (), (7,), (1000,), (3, 7, 33), (2, 100), (100, 2), (33, 1), (0, 3), (5, 4, 100), (16386,)]
    states = [[5, 7, 9], [2**63 + 12345, 2**64 - 3, 2**64 - 1]]
    for dtype in (u32, u64, u8, f16):
        for shape in shapes if dtype is u32 else shapes[:5]:
            state = TensorType(u64, (words,))
            op = s("rng_bit_generator")(parameter(0, state), rng_algorithm=algorithm,
                                        type=Results([state, TensorType(dtype, shape)]))  # fmt: skip
            kernel = Kernel(op, Target.named(target))
            for numbers in states:
                a = np.array(numbers[:words], np.uint64)
                for got, want in zip(kernel(a), evaluate(op, [a]), strict=True):
                    assert got.tobytes() == want.tobytes()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, bf16, c64], ids=str)
def test_gathered_rows_are_fetched_ahead(dtype: DType, target: str) -> None:
    """Rows of what no cache holds, by any indices, alone and with what is computed from them."""
    n = 100 * (4 // dtype.itemsize or 1)
    types = [TensorType(dtype, (50, n)), TensorType(i32, (300, 1)), TensorType(dtype, (n,))]

    def build(x: Op, at: Op, y: Op) -> Op:
        rows = s("gather")(x, s("add")(at, at), offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,),
                           index_vector_dim=1, slice_sizes=(1, n))  # fmt: skip
        return s("add")(rows, broadcast(y, (300, n), [1]))

    rng = np.random.default_rng(0)
    arrays = [random_array(rng, t) for t in types]
    kernel = check(fused(types, build), with_small_caches(target), tolerance=0, arrays=arrays)
    assert "llvm.prefetch" in kernel.text
