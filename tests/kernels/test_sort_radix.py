"""Sorting by digits: which comparators mean an order, and that rows and chunks come out as merges and the interpreter
leave them, bit by bit."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, constant, s

from hilo.backend.target import Target
from hilo.ir.dtypes import DType, bf16, c64, dtype, f16, f32, f64, i1, i8, i32, i64, u8, u16
from hilo.ir.interpret import evaluate
from hilo.ir.module import Function, parameter, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels import sort_radix
from hilo.kernels.sort_keys import order_of
from hilo.ops.numeric import total_order

Less = Callable[..., Op]


def compare(x: Op, y: Op, direction: str = "LT", kind: str = "NOTYPE") -> Op:
    return s("compare")(x, y, comparison_direction=direction, compare_type=kind)


def comparator(dtypes: Sequence[DType], less: Less, captured: Sequence[DType] = ()) -> Function:
    pairs = [TensorType(d) for d in dtypes for _ in range(2)]
    return region([*pairs, *(TensorType(d) for d in captured)], less)


def sort(types: Sequence[TensorType], less: Less, dimension: int = -1, captured: Sequence[DType] = ()) -> Op:
    all_types = [*types, *(TensorType(d) for d in captured)]
    body = comparator([t.dtype for t in types], less, captured)
    return s("sort")(*(parameter(i, t) for i, t in enumerate(all_types)), dimension=dimension, comparator=body)


def canonical(x: Op) -> Op:
    """As JAX does: one NaN, one zero."""
    zero, nan = constant(0, x.dtype), constant(np.nan, x.dtype)
    x = s("select")(compare(x, zero, "EQ", "FLOAT"), zero, x)
    return s("select")(compare(x, x, "NE", "FLOAT"), nan, x)


def of_jax(a: Op, b: Op, *_: Op) -> Op:
    return compare(canonical(a), canonical(b), "LT", "TOTALORDER")


def plain(direction: str = "LT", kind: str = "NOTYPE") -> Less:
    return lambda a, b, *_: compare(a, b, direction, kind)


def lexicographic(a: Op, b: Op, c: Op, d: Op, *_: Op) -> Op:
    return s("or")(compare(a, b), s("and")(compare(a, b, "EQ"), compare(c, d, "GT")))


def chosen(a: Op, b: Op, c: Op, d: Op, *_: Op) -> Op:
    return s("select")(compare(b, a, "EQ"), compare(d, c), compare(b, a, "GT"))


def check(op: Op, target: str, arrays: Sequence[np.ndarray]) -> Kernel:
    """Compare with the interpreter, bit by bit."""
    kernel = Kernel(op, Target.named(target))
    want = evaluate(op, arrays)
    for g, w in zip(kernel(*arrays), want if isinstance(want, tuple) else (want,), strict=True):
        assert g.tobytes() == w.tobytes()
    return kernel


def values(t: TensorType, seed: int = 0, few: bool = False) -> np.ndarray:
    """Numbers with ties, both zeros, infinities and NaNs of both signs."""
    rng = np.random.default_rng(seed)
    d = t.dtype
    if d.kind == "b":
        return rng.integers(0, 2, t.shape).astype(np.bool_)
    if d.kind in "iu":
        info = np.iinfo(d.np)
        low, high = (0, 3) if few else (info.min, info.max)
        return rng.integers(low, high, t.shape, dtype=d.np, endpoint=True)
    x = rng.normal(size=t.shape).round(1 if few else 9)
    for k, v in enumerate((0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan)):
        x.flat[k :: 13 + k] = v
    return x.astype(d.np)


ALL = [dtype(n) for n in ("f32", "f64", "f16", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "i1")]


@pytest.mark.parametrize("d", ALL, ids=str)
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_every_type(d, direction):
    kind = "TOTALORDER" if d.is_float else "NOTYPE"
    t = TensorType(d, (2, 131))
    for few in (False, True):
        x, y = values(t, few=few), values(t.with_dtype(i32), 1)
        check(sort([t], plain(direction, kind)), "x86-avx2", arrays=[x])
        op = sort([t, t.with_dtype(i32)], plain(direction, kind))
        got = Kernel(op, Target.named("x86-avx512"))(x, y)
        order = np.stack([_stable(row, d, direction) for row in x])
        for g, a in zip(got, (x, y), strict=True):
            assert g.tobytes() == np.take_along_axis(a, order, 1).tobytes()


def _stable(x: np.ndarray, d: DType, direction: str) -> np.ndarray:
    """The places that sort a row."""
    n = total_order(x) if d.is_float else x
    return np.argsort(n if direction == "LT" else ~n, kind="stable")


MANY = [
    ([f32], of_jax), ([f32, i32], of_jax), ([f64], of_jax), ([bf16, c64], of_jax), ([i32, i32], lexicographic),
    ([u8, i8, f64], lexicographic), ([u16, u16], chosen), ([i64], plain("GT")), ([i8, i64], plain()),
]  # fmt: skip


@pytest.mark.parametrize("target", [*TARGETS, "scalar"])
@pytest.mark.parametrize(("dtypes", "less"), MANY)
def test_chunks_are_like_rows(target, dtypes, less, monkeypatch):
    types = [TensorType(d, (3, 500)) for d in dtypes]
    arrays = [values(t, i, few=True) if not t.dtype.is_complex else np.arange(1500).reshape(3, 500).astype(np.complex64)
              for i, t in enumerate(types)]  # fmt: skip
    op = sort(types, less)
    rows = check(op, target, arrays=arrays)(*arrays)
    monkeypatch.setattr(sort_radix, "CHUNK", 70)
    kernel = Kernel(op, Target.named(target))
    assert len(kernel.lowered.phases) > 3
    for pieces in (1, 4):
        for g, w in zip(kernel(*arrays, pieces=pieces), rows, strict=True):
            assert g.tobytes() == w.tobytes()


@pytest.mark.parametrize("wide", [5, 8, 11, 20])
@pytest.mark.parametrize("d", [f32, f64, bf16])
def test_passes_of_chunks_share_their_functions(d, wide, monkeypatch):
    """Digits of any width, the last one narrower; a byte in memory, or not."""
    monkeypatch.setattr(sort_radix, "CHUNK", 40)
    monkeypatch.setattr(sort_radix, "NARROW", wide)
    for types, less in ([d], of_jax), ([d, i32], of_jax):
        ts = [TensorType(t, (2, 131)) for t in types]
        kernel = check(sort(ts, less), "x86-avx2", [values(t) for t in ts])
        phases = kernel.lowered.phases
        assert len({id(p.func) for p in phases}) <= 5 + (len(types) > 1)
        assert len(phases) >= 3


@pytest.mark.parametrize(("shape", "dimension"), [((97, 5), 0), ((2, 300, 3), 1), ((3, 96), -1), ((1, 20000), 1)])
def test_axes(shape, dimension):
    t = TensorType(f32, shape)
    types = [t, t.with_dtype(i32)]
    arrays = [values(x, few=True) for x in types]
    check(sort(types, of_jax, dimension), "x86-avx512", arrays=arrays)


@pytest.mark.parametrize("kind", ["TOTALORDER", "FLOAT"])
def test_rows_that_share_arrays(kind, monkeypatch):
    monkeypatch.setattr(sort_radix, "STACK", 100)
    monkeypatch.setattr(sort_radix, "SLOTS", 3)
    t = TensorType(f32, (11, 130))
    x = np.nan_to_num(values(t, few=True))
    kernel = check(sort([t, t.with_dtype(i64)], plain("GT", kind)), "x86-avx2", [x, values(t.with_dtype(i64))])
    assert kernel.lowered.phases[0].units == 3


@pytest.mark.parametrize("d", [f32, f64, f16])
@pytest.mark.parametrize("direction", ["LT", "GT"])
def test_partial_orders(d, direction, monkeypatch):
    """Without NaN both zeros are equal; with NaN the row is merged as it would be otherwise."""
    t = TensorType(d, (2, 150))
    x = np.nan_to_num(values(t, few=True), posinf=np.inf, neginf=-np.inf)
    x[1, 7] = np.nan
    op = sort([t], plain(direction, "FLOAT"))
    (got,) = Kernel(op, Target.named("x86-avx2"))(x)
    monkeypatch.setattr(sort_radix, "SHORT", 1 << 20)
    (want,) = Kernel(op, Target.named("x86-avx2"))(x)
    assert got.tobytes() == want.tobytes()


def test_captured_keys():
    """Distance from a number that is known at run time."""
    t = TensorType(f32, (200,))

    def less(a: Op, b: Op, c: Op) -> Op:
        p, q = (s("abs")(s("subtract")(x, c)) for x in (a, b))
        return compare(p, q, "LT", "TOTALORDER")

    x = np.random.default_rng(0).normal(size=200).astype(np.float32)
    op = sort([t], less, captured=[f32])
    assert order_of(op.attrs["comparator"], 1) is not None
    check(op, "x86-avx512", arrays=[x, np.asarray(0.25, np.float32)])


def test_constant_digits_are_passed_over():
    t = TensorType(i64, (400,))
    for x in (np.zeros(400, np.int64), np.arange(400)[::-1] % 7, np.arange(400) - 200):
        check(sort([t], plain()), "x86-avx512", arrays=[x.astype(np.int64)])


NO_ORDER: list[tuple[list[DType], Less]] = [
    ([f32], plain("LE")), ([f32], plain("NE")), ([c64], plain()), ([i32], lambda a, b: compare(a, a)),
    ([i32], lambda a, b: compare(a, s("negate")(b))), ([f32, f32], lambda a, b, c, d: compare(a, d)),
    ([i32, i32], lambda a, b, c, d: s("or")(compare(a, b), s("and")(compare(c, d, "EQ"), compare(c, d)))),
    ([f32, i32], lambda a, b, c, d: s("or")(compare(a, b, "LT", "TOTALORDER"),
                                            s("and")(compare(a, b, "EQ", "FLOAT"), compare(c, d)))),
    ([i64, i64], lexicographic),
    ([i32], lambda a, b: s("xor")(compare(a, b), constant(True, i1))),
]  # fmt: skip


@pytest.mark.parametrize(("dtypes", "less"), NO_ORDER)
def test_what_is_no_order_of_64_bits(dtypes, less):
    assert order_of(comparator(dtypes, less), len(dtypes)) is None


def test_orders():
    order = order_of(comparator([i8, f16], lambda a, b, c, d: chosen(a, b, c, d)), 2)
    assert order is not None
    assert [(k.bits, k.descending, k.partial) for k in order.keys] == [(8, False, False), (32, True, True)]
    kinds = ((f32, "TOTALORDER"), (f32, "FLOAT"), (u8, "NOTYPE"))
    whole = [order_of(comparator([d], plain("GT", k)), 1) for d, k in kinds]
    assert [o and o.descending_whole for o in whole] == [True, None, True]
