"""Reductions and row regions against the interpreter: dims, types, bodies, accuracy, several passes."""

from __future__ import annotations

from functools import partial

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
    with_small_caches,
)  # fmt: skip

import hilo
from hilo.backend.target import Target
from hilo.ir.dtypes import DType, bf16, c64, f16, f32, f64, i1, i8, i32, u8, u64
from hilo.ir.interpret import evaluate
from hilo.ir.module import Function, parameter, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.record import replace

CASES = [
    ((7, 100), (1,)), ((7, 100), (0,)), ((3, 5, 64), (0, 2)), ((3, 5, 64), (1,)), ((1000,), (0,)), ((4, 3), (1,)),
    ((300, 3), (1,)), ((3, 300), (0,)), ((2, 0, 3), (1,)), ((0, 3), (1,)), ((5, 6), ()), ((), ()),
    ((6, 1, 1), (0, 1, 2)),
    ((9, 33, 17), (0, 1)),
    ((2, 3, 4, 5), (1, 3)), ((1, 1), (0,)), ((2, 700, 3), (1, 2)), ((3000, 70), (0,)),
]  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, f64, bf16, f16, i32, i8, u64, c64], ids=str)
def test_sums_and_extrema(dtype: DType, target: str) -> None:
    for shape, dims in CASES:
        params = [parameter(0, TensorType(dtype, shape)), parameter(1, TensorType(dtype))]
        check(reduce(params[0], dims, first=params[1]), target, tolerance=2e-5)
        if dtype is not c64:
            check(reduce(params[0], dims, "maximum", first=params[1]), target, tolerance=0)
            check(reduce(params[0], dims, "minimum", first=params[1]), target, tolerance=0)


@pytest.mark.parametrize("target", TARGETS)
def test_bits_and_booleans(target: str) -> None:
    for dtype, kinds in ((i1, ["and", "or", "xor", "add", "maximum"]), (u8, ["and", "or", "xor", "multiply"])):
        for shape, dims in CASES:
            for kind in kinds:
                params = [parameter(0, TensorType(dtype, shape)), parameter(1, TensorType(dtype))]
                check(reduce(params[0], dims, kind, first=params[1]), target, tolerance=0)


@pytest.mark.parametrize("target", TARGETS)
def test_nan_and_zeros(target: str) -> None:
    x = np.zeros((5, 90), np.float32)
    x[1, 70] = np.nan
    x[2] = -0.0
    x[3] = -np.inf
    x[4, ::2] = -0.0
    for kind, init in (("maximum", -np.inf), ("minimum", np.inf), ("add", -0.0)):
        for dims in ((1,), (0,)):
            op = reduce(parameter(0, TensorType(f32, x.shape)), dims, kind, init)
            op = op.with_operands([op.operands[0], parameter(1, TensorType(f32))])
            first = np.asarray(init, np.float32)
            got = check(op, target, arrays=[x, first], tolerance=0)(x, first)[0]
            want = evaluate(op, [x, first])
            np.testing.assert_array_equal(np.signbit(got[~np.isnan(got)]), np.signbit(want[~np.isnan(want)]))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "dims"), [((1 << 20,), (0,)), ((1 << 19, 2), (0,)), ((3, 1 << 18), (1,)), ((1 << 16, 24), (0,))]
)
def test_long_sums_keep_their_digits(shape: tuple[int, ...], dims: tuple[int, ...], target: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.uniform(0.5, 1.5, shape).astype(np.float32)
    op = reduce(parameter(0, TensorType(f32, shape)), dims, first=parameter(1, TensorType(f32)))
    got = Kernel(op, Target.named(target))(x, np.zeros((), np.float32))[0]
    want = x.astype(np.float64).sum(axis=dims)
    assert np.abs(got / want - 1).max() < 4e-7


def test_sums_of_narrow_floats_round_once() -> None:
    for dtype in (bf16, f16):
        x = np.ones((3, 1000), dtype.np)
        op = reduce(parameter(0, TensorType(dtype, x.shape)), (1,), first=parameter(1, TensorType(dtype)))
        got = Kernel(op, Target.named("x86-avx2"))(x, np.zeros((), dtype.np))[0]
        assert (got.astype(np.float32) == 1000).all()


@pytest.mark.parametrize("shape", [(1 << 19,), (1 << 13, 40), (2, 3, 40_000), (50, 3000)])
def test_results_do_not_depend_on_pieces(shape: tuple[int, ...]) -> None:
    """The units of a phase, run together or in any pieces, give the same bits."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=shape).astype(np.float32)
    for dims in ((0,), tuple(range(len(shape)))):
        op = reduce(parameter(0, TensorType(f32, shape)), dims, first=parameter(1, TensorType(f32)))
        kernel = Kernel(op, Target.named("x86-avx512"))
        results = [kernel(x, np.zeros((), np.float32), pieces=n)[0] for n in (1, 2, 7)]
        assert results[0].tobytes() == results[1].tobytes() == results[2].tobytes()


@pytest.mark.parametrize("dtype", [f32, f64, bf16, c64, i8, u64, i1])
def test_chunks_are_combined_by_code_that_is_made_quickly(dtype: DType) -> None:
    """Where that is little beside the chunks; with the same bits."""
    shape, kind = (100_003, 7), "or" if dtype is i1 else "add"
    op = reduce(parameter(0, TensorType(dtype, shape)), (0,), kind, first=parameter(1, TensorType(dtype)))
    kernel = Kernel(op, Target.host())
    chunks, combined = kernel.lowered.phases
    assert combined.func.attrs["outer"]
    assert not chunks.func.attrs.get("outer")
    program = hilo.compile(hilo.Module({"main": Function("main", op.operands, [*op.operands, op], [op])}))
    x = random_array(np.random.default_rng(9), op.operands[0].tensor)
    zero = np.zeros((), dtype.np)
    assert np.asarray(program(x, zero)).tobytes() == kernel(x, zero)[0].tobytes()


def test_many_rows_of_chunks_are_combined_by_good_code() -> None:
    op = reduce(parameter(0, TensorType(f32, (40, 100_003))), (0,), first=parameter(1, TensorType(f32)))
    assert not any(p.func.attrs.get("outer") for p in Kernel(op, Target.named("x86-avx512")).lowered.phases)


def with_sums(x: Op) -> tuple[Op, ...]:
    """A value for each element, and the sums and the largest of each column."""
    y = s("abs")(x)
    return y, reduce(y, [0]), reduce(x, [0], "maximum", -np.inf)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("shape", [(4001, 31), (3000, 64), (10_007, 5), (2003, 100)])
def test_short_rows_are_shared_by_parts(shape: tuple[int, int], target: str) -> None:
    """Not by columns, which lie in the same lines; also where results of the full size are stored. A few units that
    follow one another do whole rows, and all ways to share them give the same bits."""
    op = fused([TensorType(f32, shape)], with_sums, "rows")
    kernel = check(op, target, tolerance=2e-5)
    first, _ = kernel.lowered.phases
    assert first.units % 4 == 0
    x = random_array(np.random.default_rng(2), op.operands[0].tensor)
    results = [b"".join(r.tobytes() for r in kernel(x, pieces=n)) for n in (1, 2, 4, 7)]
    assert len(set(results)) == 1


def test_parts_of_short_rows_in_place() -> None:
    op = fused([TensorType(f32, (4001, 31))], with_sums, "rows")
    kernel = Kernel(op, Target.named("x86-avx512"))
    assert kernel.lowered.in_place == ((0, 0),)
    x = random_array(np.random.default_rng(3), op.operands[0].tensor)
    place, *columns = aligned(x.shape, x.dtype), aligned((31,), x.dtype), aligned((31,), x.dtype)
    place[...] = x
    kernel.run([place, place, *columns, aligned([kernel.lowered.scratch], np.dtype(np.uint8))], pieces=3)
    for got, want in zip((place, *columns), evaluate(op, [x]), strict=True):
        compare(got, np.asarray(want), 2e-5)


@pytest.mark.parametrize("shape", [(300, 31), (801, 300), (5, 801, 31)])
def test_other_rows_are_not_cut_into_parts(shape: tuple[int, ...]) -> None:
    """Too little work, rows of many lines, and units enough without."""
    op = reduce(parameter(0, TensorType(f32, shape)), (len(shape) - 2,), first=parameter(1, TensorType(f32)))
    assert len(check(op, "x86-avx512", tolerance=2e-5).lowered.phases) == 1


def argmax(x: Op, i: Op, dims: tuple[int, ...]) -> Op:
    f, n = TensorType(x.dtype), TensorType(i.dtype)

    def body(a: Op, j: Op, b: Op, k: Op) -> tuple[Op, Op]:
        larger = s("compare")(a, b, comparison_direction="GT")
        same = s("compare")(a, b, comparison_direction="EQ")
        first = s("and")(same, s("compare")(j, k, comparison_direction="LT"))
        return s("select")(larger, a, b), s("select")(s("or")(larger, first), j, k)

    return s("reduce")(x, i, constant(-np.inf, x.dtype), constant(0, i.dtype), dimensions=dims,
                       body=region([f, n, f, n], body))  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
def test_several_operands(target: str) -> None:
    for shape, dims in [
        ((6, 50), (1,)),
        ((50, 6), (0,)),
        ((70, 40), (0,)),
        ((9,), (0,)),
        ((2, 3, 4), (0, 2)),
        ((0, 2), (0,)),
    ]:
        t, n = TensorType(f32, shape), TensorType(i32, shape)

        def build(x: Op, dims: tuple[int, ...] = dims, n: TensorType = n) -> tuple[Op, ...]:
            return argmax(x, s("iota")(iota_dimension=dims[0], type=n), dims).results()

        x = np.random.default_rng(0).integers(0, 5, shape).astype(np.float32)
        check(fused([t], build, "rows"), target, arrays=[x], tolerance=0)


@pytest.mark.parametrize("target", TARGETS)
def test_bodies_that_do_not_commute(target: str) -> None:
    """`(a, b) -> b` and `(a, b) -> a - b`: from left to right, the init value first."""
    t = TensorType(f32)
    for build in (lambda a, b: b, lambda a, b: a):
        body = region([t, t], build)
        for shape, dims in [((4, 30), (1,)), ((30, 40), (0,)), ((3, 4, 5), (0, 2)), ((0,), (0,))]:
            params = [parameter(0, TensorType(f32, shape)), parameter(1, t)]
            check(s("reduce")(*params, dimensions=dims, body=body), target, tolerance=0)


def test_captured_values() -> None:
    t = TensorType(f32)
    body = region([t, t, t], lambda a, b, c: s("maximum")(s("minimum")(a, c), b))
    params = [parameter(0, TensorType(f32, (5, 40))), parameter(1, t), parameter(2, t)]
    for dims in ((0,), (1,)):
        check(s("reduce")(*params, dimensions=dims, body=body), "x86-avx2", tolerance=0)


# ---- regions
def softmax(x: Op, d: int | None = None) -> Op:
    d = len(x.shape) - 1 if d is None else d
    kept = [k for k in range(len(x.shape)) if k != d]
    e = s("exponential")(s("subtract")(x, broadcast(reduce(x, [d], "maximum", -np.inf), x.shape, kept)))
    return s("divide")(e, broadcast(reduce(e, [d]), x.shape, kept))


def layer_norm(x: Op, scale: Op, bias: Op) -> tuple[Op, ...]:
    d = len(x.shape) - 1
    kept, n = list(range(d)), x.shape[d]
    total = reduce(x, [d])
    mean = s("divide")(total, constant(n, x.dtype, total.shape))
    centred = s("subtract")(x, broadcast(mean, x.shape, kept))
    variance = s("divide")(reduce(s("multiply")(centred, centred), [d]), constant(n, x.dtype, total.shape))
    factor = s("rsqrt")(s("add")(variance, constant(1e-5, x.dtype, total.shape)))
    y = s("multiply")(centred, broadcast(factor, x.shape, kept))
    y = s("add")(s("multiply")(y, broadcast(scale, x.shape, [d])), broadcast(bias, x.shape, [d]))
    return y, mean, factor


@pytest.mark.parametrize("target", TARGETS)
def test_softmax(target: str) -> None:
    for shape in [(5, 100), (3, 4, 65), (2, 3, 16), (7, 5), (3, 2000), (1, 3), (0, 8), (40, 1)]:
        for dtype in (f32, bf16, f64):
            check(fused([TensorType(dtype, shape)], softmax, "rows"), target)


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_over_another_axis(target: str) -> None:
    for shape, d in [((6, 33), 0), ((3, 7, 40), 1), ((4, 5, 6), 0), ((2, 3, 4, 70), 1)]:
        check(fused([TensorType(f32, shape)], lambda x, d=d: softmax(x, d), "rows"), target)


@pytest.mark.parametrize("target", TARGETS)
def test_layer_norm(target: str) -> None:
    for shape in [(5, 100), (3, 4, 65), (2, 3000), (9, 16), (2, 2, 7)]:
        row = TensorType(f32, shape[-1:])
        op = fused([TensorType(f32, shape), row, row], layer_norm, "rows")
        check(op, target, tolerance=1e-4)


@pytest.mark.parametrize("target", TARGETS)
def test_keepdims_and_prologue(target: str) -> None:
    """Values of rows through shapes with axes of size 1; operands with transposes and broadcasts in front."""

    def build(x: Op, y: Op) -> tuple[Op, ...]:
        z = s("add")(s("transpose")(x, permutation=(1, 0)), broadcast(y, (12, 50), [0]))
        total = s("reshape")(reduce(z, [1]), type=TensorType(f32, (12, 1)))
        return s("subtract")(z, broadcast(total, z.shape, [0, 1])), total

    check(fused([TensorType(f32, (50, 12)), TensorType(f32, (12,))], build, "rows"), target, tolerance=1e-5)


def test_in_place_region() -> None:
    op = fused([TensorType(f32, (5, 300))], softmax, "rows")
    kernel = Kernel(op, Target.named("x86-avx512"))
    assert kernel.lowered.in_place == ((0, 0),)
    x = random_array(np.random.default_rng(0), TensorType(f32, (5, 300)))
    place = aligned(x.shape, x.dtype)
    place[...] = x
    kernel.run([place, place])
    compare(place, evaluate(op, [x]), 1e-5)


@pytest.mark.parametrize("shape", [(32, 32, 3), (7, 33, 2), (1, 17, 1), (3, 16, 4), (2, 70, 5)])
def test_rows_of_few_places(shape: tuple[int, int, int]) -> None:
    """Sums over a middle axis whose inner axis is narrower than a vector, of values that are much work."""
    a, k, c = shape
    full, rows = f"tensor<{a}x{k}x{c}xf32>", f"tensor<{a}x{c}xf32>"
    signature = f"({full}, tensor<f32>) -> {rows}"
    program = hilo.parse(f"""func.func @main(%x: {full}, %y: {rows}) -> ({rows}, {rows}) {{
        %z = stablehlo.constant dense<0.0> : tensor<f32>
        %yb = stablehlo.broadcast_in_dim %y, dims = [0, 2] : ({rows}) -> {full}
        %d = stablehlo.subtract %x, %yb : {full}
        %e = stablehlo.exponential %d : {full}
        %f = stablehlo.tanh %e : {full}
        %s = stablehlo.reduce(%f init: %z) applies stablehlo.add across dimensions = [1] : {signature}
        %m = stablehlo.reduce(%f init: %z) applies stablehlo.maximum across dimensions = [1] : {signature}
        return %s, %m : {rows}, {rows} }}""")
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(a, k, c)).astype(np.float32), rng.normal(size=(a, c)).astype(np.float32)
    one, two = (hilo.compile(program, threads=n)(x, y) for n in (1, 2))
    for got, again, want in zip(one, two, hilo.interpret(program, x, y), strict=True):
        assert got.tobytes() == again.tobytes()
        np.testing.assert_allclose(got, want, rtol=3e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, f64, bf16, i8, i1, c64], ids=str)
@pytest.mark.parametrize("shape", [(5, 32, 3), (150, 2), (2, 3, 67, 4), (7, 33, 1, 2), (3, 2, 600, 3)])
def test_full_vectors_along_narrow_rows(shape: tuple[int, ...], dtype: DType, target: str) -> None:
    """Sums and extrema of rows that lie side by side, several rows of full vectors at a time."""
    axes = [0] if len(shape) == 2 else [len(shape) - 2 - (shape[-2] == 1)]
    for axis in (axes, [axes[0] - 1, axes[0]] if axes[0] > 1 else axes):
        params = [parameter(0, TensorType(dtype, shape)), parameter(1, TensorType(dtype))]
        check(reduce(params[0], axis, first=params[1]), target, tolerance=1e-5)
        if dtype is not c64:
            check(reduce(params[0], axis, "minimum", first=params[1]), target, tolerance=0)


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_across_narrow_rows(target: str) -> None:
    """Several passes over rows that lie side by side, with values kept for each of them."""
    t = TensorType(f32, (3, 37, 3))

    def build(x: Op) -> Op:
        e = s("exponential")(s("subtract")(x, broadcast(reduce(x, [1], "maximum", -np.inf), t.shape, (0, 2))))
        return s("divide")(e, broadcast(reduce(e, [1]), t.shape, (0, 2)))

    kernel = check(fused([t], build, kind="rows"), target)
    assert "along 3 rows" in kernel.lowered.reason or target == "x86-sse2"


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [f32, f64, bf16], ids=str)
@pytest.mark.parametrize("largest", [True, False])
def test_passes_over_neighbouring_rows_overlap(largest: bool, dtype: DType, target: str) -> None:
    """Quotients of one row beside the exponentials of the next, and the extremum of the one behind: one row, two, and
    more, in one piece and in several, in place, too."""
    for shape in ((1, 40), (2, 33), (3, 5, 64), (7, 100), (4, 3)):
        t, kept = TensorType(dtype, shape), tuple(range(len(shape) - 1))

        def build(x: Op, t: TensorType = t, kept: tuple[int, ...] = kept) -> Op:
            axis = [t.rank - 1]
            if largest:
                x = s("subtract")(x, broadcast(reduce(x, axis, "maximum", -np.inf), t.shape, kept))
            e = s("exponential")(x)
            return s("divide")(e, broadcast(reduce(e, axis), t.shape, kept))

        op = fused([t], build, "rows")
        kernel = check(op, target)
        assert ("overlap" in kernel.lowered.reason) == (shape[0] > 1) or shape == (4, 3)
        x = random_array(np.random.default_rng(1), t)
        (whole,) = kernel(x, pieces=1)
        np.testing.assert_array_equal(whole, kernel(x, pieces=4)[0])
        place = aligned(x.shape, x.dtype)
        place[...] = x
        kernel.run([place, place], pieces=2)
        np.testing.assert_array_equal(place, whole)


def test_rows_that_read_on_do_not_overlap() -> None:
    """A result may take the place of what the last pass reads."""

    def build(x: Op, y: Op) -> Op:
        return s("add")(softmax(x), y)

    t = TensorType(f32, (5, 100))
    kernel = check(fused([t, t], build, "rows"), "x86-avx512")
    assert "overlap" not in kernel.lowered.reason


def test_overlapping_rows_keep_values_for_one_turn() -> None:
    """What an earlier pass keeps is read by the one before the last; what the last one would read does not overlap."""

    def build(x: Op, again: bool) -> Op:
        t = s("tanh")(x)
        m = broadcast(reduce(t, [1], "maximum", -np.inf), x.shape, (0,))
        e = s("exponential")(s("subtract")(t, m))
        out = s("divide")(e, broadcast(reduce(e, [1]), x.shape, (0,)))
        return s("add")(out, t) if again else out

    for again in (False, True):
        op = fused([TensorType(f32, (7, 100))], partial(build, again=again), "rows")
        kernel = check(op, "x86-avx512")
        assert ("overlap" in kernel.lowered.reason) != again


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("length", [96, 101])
def test_the_next_row_is_fetched_ahead(length: int, target: str) -> None:
    """Where no near cache holds the array, and a few rows fit the first one; rows are whole lines, or not."""

    def build(x: Op) -> Op:
        return s("subtract")(x, broadcast(reduce(x, [1]), x.shape, (0,)))

    op = fused([TensorType(f32, (9, length))], build, "rows")
    for l1 in (1 << 15, 1 << 8):
        kernel = check(op, replace(with_small_caches(target), l1=l1, l2=1 << 11), tolerance=1e-5)
        assert ("llvm.prefetch" in kernel.text) == (l1 > 1 << 8)


@pytest.mark.parametrize("target", TARGETS)
def test_overlapping_long_rows_are_fetched_ahead(target: str) -> None:
    """Nothing is wrong with rows that are not whole lines, in an array that no cache holds."""
    for length in (96, 101):
        op = fused([TensorType(f32, (9, length))], softmax, "rows")
        kernel = check(op, replace(with_small_caches(target), l2=1 << 11))
        assert "overlap" in kernel.lowered.reason
        assert "llvm.prefetch" in kernel.text


def test_overlapping_rows_of_any_number() -> None:
    program = hilo.parse("""func.func @main(%x: tensor<?x100xf32>) -> tensor<?x100xf32> {
        %z = stablehlo.constant dense<0.0> : tensor<f32>
        %e = stablehlo.exponential %x : tensor<?x100xf32>
        %u = stablehlo.reduce(%e init: %z) applies stablehlo.add across dimensions = [1]
            : (tensor<?x100xf32>, tensor<f32>) -> tensor<?xf32>
        %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x100xf32>) -> tensor<i32>
        %c = stablehlo.constant dense<100> : tensor<1xi32>
        %r = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
        %s = stablehlo.concatenate %r, %c, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
        %b = stablehlo.dynamic_broadcast_in_dim %u, %s, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x100xf32>
        %o = stablehlo.divide %e, %b : tensor<?x100xf32>
        return %o : tensor<?x100xf32> }""")
    run = hilo.compile(program, threads=2)
    for n in (0, 1, 2, 50):
        x = np.random.default_rng(n).normal(size=(n, 100)).astype(np.float32)
        np.testing.assert_allclose(run(x), hilo.interpret(program, x), rtol=1e-6)
