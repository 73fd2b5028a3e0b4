"""Sorting: sort, and chlo.top_k, which sorts. Imports ir."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import DType, bf16, c64, f32, f64, from_numpy, i1, i8, i32, i64, u8
from hilo.ir.interpret import prepared
from hilo.ir.module import Function, region
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import Dim, Results, TensorType, Type, UnrankedType
from hilo.ops.checks import gives, one_or_results, one_or_tuple, same_shape, scalars, takes, tensor, tensors
from hilo.ops.compare import compare
from hilo.ops.regions import apply, widened
from hilo.ops.shape import iota
from hilo.ops.sharding import distinct
from hilo.ops.slicing import slice_

Less = Callable[[list[np.ndarray], list[np.ndarray]], np.ndarray]


def sorted_inputs(types: Sequence[Type], comparator: Function) -> int:
    """How many operands are sorted; those after them are captured by the comparator, which takes two of each input."""
    total, params = len(types), len(comparator.params)
    return params - total if total < params <= 2 * total else 0


@op("sort")
class sort:
    """Sort N tensors of one shape together along `dimension` (negative: from the last); stable.

    Operands: the inputs, then what the comparator captures. `comparator(a1, b1, a2, b2 ...)` says whether the elements
    a come before the elements b. Equal elements keep their order whether `is_stable` is set or not. A comparator that
    is no strict weak order gives some permutation. Spec: sort.
    """

    attrs = {"dimension": -1, "is_stable": False}

    @staticmethod
    def infer(*types: Type, dimension: int, is_stable: bool, comparator: Function) -> Type:
        require(len(types) > 0, "C1", "nothing to sort")
        n = sorted_inputs(types, comparator)
        m = len(comparator.params)
        require(n > 0, "C5", "the comparator takes {m} elements for {n} operands", m=m, n=len(types))
        xs = tensors(types[:n])
        require(all(same_shape(x.shape, xs[0].shape) for x in xs), "C3", "inputs have several shapes: {xs}", xs=xs)
        rank = xs[0].rank
        require(-rank <= dimension < rank, "C4", "dimension {d} is not an axis of {x}", d=dimension, x=xs[0])
        takes(comparator, [*scalars(x.dtype for x in xs for _ in range(2)), *types[n:]], "C5", "comparator")
        gives(comparator, [TensorType(i1)], "C5", "comparator")
        return one_or_results(xs)

    @staticmethod
    def evaluate(*arrays: np.ndarray, dimension: int, is_stable: bool, comparator: Function) -> Any:
        n = len(comparator.params) - len(arrays)
        captured = arrays[n:]
        xs = [np.moveaxis(x, dimension, -1) for x in arrays[:n]]
        shape = xs[0].shape
        rows = [x.reshape(-1, shape[-1]) if x.size else x.reshape(0, shape[-1]) for x in xs]

        def less(a: list[np.ndarray], b: list[np.ndarray]) -> np.ndarray:
            pairs = [x for pair in zip(a, b, strict=True) for x in pair]
            return apply(comparator, pairs, captured, a[0].shape)[0]

        order = _order(rows, less, comparator, captured)
        out = [np.take_along_axis(r, order, 1).reshape(shape) for r in rows]
        return one_or_tuple([np.ascontiguousarray(np.moveaxis(x, -1, dimension)) for x in out])

    @staticmethod
    def sharding(*types: TensorType, out: Type, dimension: int, is_stable: bool, comparator: Function) -> str:
        n = len(comparator.params) - len(types)
        each = distinct([*types, types[0]])
        d = dimension % types[0].rank
        result = each[0][:d] + each.pop()[d] + each[0][d + 1 :]
        return f"{','.join([each[0]] * n + each[n:])}->{','.join([result] * n)}"

    @staticmethod
    def cost(*types: TensorType, out: Type, dimension: int, is_stable: bool, comparator: Function) -> tuple[int, int]:
        n = len(comparator.params) - len(types)
        work = max(len(comparator.ops) - len(comparator.params), 1)
        passes = max(int(types[0].shape[dimension]), 2).bit_length()
        return types[0].size * work * passes, 2 * sum(t.nbytes for t in types[:n]) * passes


def _order(rows: list[np.ndarray], less: Less, comparator: Function, captured: Sequence[np.ndarray]) -> np.ndarray:
    """For each row the indices that sort it: merges of runs of 1, 2, 4 ... elements, all of them at once."""
    count, n = rows[0].shape
    order = np.broadcast_to(np.arange(n), (count, n)).copy()
    if order.size == 0 or n == 1:
        return order
    if widened(comparator, (1,), len(captured)) is None:  # one comparison costs the same for many elements or one
        return _one_by_one(rows, order, comparator, captured)
    width = 1
    while width < n:
        merged = _merge(rows, order, width, less)
        if merged is None:  # the comparator is no order
            return _one_by_one(rows, np.broadcast_to(np.arange(n), (count, n)).copy(), comparator, captured)
        order = merged
        width *= 2
    return order


def _merge(rows: list[np.ndarray], order: np.ndarray, width: int, less: Less) -> np.ndarray | None:
    """Merge neighbouring runs: each element moves by how many of the other run come before it (a binary search).

    None if the elements' places are no permutation.
    """
    count, n = order.shape
    at = np.arange(n)
    pair = at // (2 * width) * (2 * width)
    is_left = at - pair < width
    middle, end = np.minimum(pair + width, n), np.minimum(pair + 2 * width, n)
    mine = [np.take_along_axis(r, order, 1) for r in rows]
    lo = np.broadcast_to(np.where(is_left, middle, pair), (count, n)).copy()
    hi = np.broadcast_to(np.where(is_left, end, middle), (count, n)).copy()
    first = lo.copy()
    while (lo < hi).any():
        half = np.minimum((lo + hi) // 2, n - 1)
        other = [np.take_along_axis(m, half, 1) for m in mine]
        # Left elements go before equal right ones: they count what is before them, right ones what they are not before.
        counts = np.where(is_left, less(other, mine), ~less(mine, other))
        search = lo < hi
        lo = np.where(search & counts, half + 1, lo)
        hi = np.where(search & ~counts, half, hi)
    place = np.where(is_left, at, at - middle + pair) + (lo - first)
    out = np.full((count, n), -1)
    np.put_along_axis(out, place, order, 1)
    return None if (out < 0).any() else out


def _one_by_one(
    rows: list[np.ndarray], order: np.ndarray, comparator: Function, captured: Sequence[np.ndarray]
) -> np.ndarray:
    """Insertion by binary search: for comparators that are no order, or not elementwise."""
    run = prepared(comparator)
    for r in range(order.shape[0]):
        done: list[int] = []
        for i in range(order.shape[1]):
            lo, hi = 0, len(done)
            while lo < hi:
                half = (lo + hi) // 2
                pairs = [np.asarray(x[r, k]) for x in rows for k in (i, done[half])]
                lo, hi = (lo, half) if run([*pairs, *captured])[0] else (half + 1, hi)
            done.insert(lo, i)
        order[r] = done
    return order


def ordered_by(direction: str, *dtypes: DType, compare_type: str = "NOTYPE") -> Function:
    """The comparator that looks at the first input only."""
    pairs = scalars(d for d in dtypes for _ in range(2))
    return region(pairs, lambda a, b, *_: compare(a, b, comparison_direction=direction, compare_type=compare_type))


sort.examples += [
    ((TensorType(f32, (37,)),), {"dimension": 0, "comparator": ordered_by("LT", f32)}),
    ((TensorType(i32, (3, 20)), TensorType(f64, (3, 20))), {"comparator": ordered_by("GT", i32, f64)}),
    ((TensorType(i8, (33, 5)),), {"dimension": 0, "is_stable": True, "comparator": ordered_by("LT", i8)}),
    ((TensorType(bf16, (2, 17, 3)), TensorType(i64, (2, 17, 3)), TensorType(u8, (2, 17, 3))),
     {"dimension": -2, "comparator": ordered_by("LT", bf16, i64, u8, compare_type="TOTALORDER")}),
    ((TensorType(c64, (9,)), TensorType(i1, (9,))), {"comparator": ordered_by("LT", c64, i1)}),
    ((TensorType(f32, (11,)), TensorType(f32)),  # the last operand is captured
     {"comparator": region(scalars((f32, f32, f32)), lambda a, b, c: compare(a, c, comparison_direction="LT"))}),
    ((TensorType(f32, (0, 4)),), {"comparator": ordered_by("LT", f32)}),
    ((TensorType(f32, (4, 0)),), {"comparator": ordered_by("LT", f32)}),
    ((TensorType(f32, (1,)),), {"comparator": ordered_by("LT", f32)}),
]  # fmt: skip


@op("top_k", dialect="chlo")
class top_k:
    """The `k` largest elements along the last axis, descending, and their i32 indices; the first of equal ones wins.

    Floats are in total order: NaN is larger than all numbers, 0 larger than -0. Source: CHLO.
    """

    attrs = {"is_stable": True}

    @staticmethod
    def infer(x: Type, *, k: int, is_stable: bool) -> Type:
        if isinstance(x, UnrankedType):
            return Results([x, x.with_dtype(i32)])
        t = tensor(x)
        require(t.rank > 0, "C1", "top_k needs an axis, but {x} has none", x=t)
        require(t.dtype.kind in "biuf", "I1", "top_k takes real numbers, not {x}", x=t)
        require(k >= 0, "C2", "k = {k} is negative", k=k)
        n = t.shape[-1]
        ok = isinstance(n, Dim) or k <= n
        require(ok, "C3", "k = {k} is more than there is along the last axis of {x}", k=k, x=t)
        shape = (*t.shape[:-1], k)
        return Results([t.with_shape(shape), TensorType(i32, shape)])

    @staticmethod
    def evaluate(x: np.ndarray, *, k: int, is_stable: bool) -> Any:
        assert sort.evaluate is not None
        numbers = np.broadcast_to(np.arange(x.shape[-1], dtype=np.int32), x.shape)
        both = sort.evaluate(x, numbers, dimension=-1, is_stable=True, comparator=descending(from_numpy(x.dtype)))
        return tuple(np.ascontiguousarray(v[..., :k]) for v in both)

    @staticmethod
    def expand(x: Op, *, k: int, is_stable: bool) -> tuple[Op, ...] | None:
        t = x.tensor
        if selects(t, k):
            return None
        numbers = iota(iota_dimension=t.rank - 1, type=t.with_dtype(i32))
        both = sort(x, numbers, is_stable=True, comparator=descending(t.dtype)).results()
        cut = {"start_indices": (0,) * t.rank, "limit_indices": (*t.shape[:-1], k), "strides": (1,) * t.rank}
        return tuple(slice_(v, **cut) for v in both)

    @staticmethod
    def sharding(x: TensorType, *, out: Type, k: int, is_stable: bool) -> str:
        source, result = distinct([x, x])
        result = source[:-1] + result[-1]
        return f"{source}->{result},{result}"

    examples = lambda: [
        ((TensorType(f32, (3, 9)),), {"k": 4}),
        ((TensorType(i32, (5,)),), {"k": 5}),
        ((TensorType(u8, (2, 3)),), {"k": 0}),
        ((TensorType(bf16, (20,)),), {"k": 1}),
        ((TensorType(i1, (4, 3)),), {"k": 2}),
        ((TensorType(f32, (2, 700)),), {"k": 3}),
        ((TensorType(i8, (1000,)),), {"k": 20}),
    ]


def selects(t: TensorType, k: int) -> bool:
    """Whether the k largest elements of rows are found without sorting the rows."""
    n = t.shape[-1]
    fits = t.dtype.kind in "iuf" and (8 if t.dtype.is_int else 16) <= t.dtype.bits <= 32
    return fits and t.is_static and t.size > 0 and 256 <= n < 1 << 31 and 0 < k <= min(n // 4, 2048)


def descending(d: DType) -> Function:
    """The comparator of `top_k`, which moves i32 indices along."""
    return ordered_by("GT", d, i32, compare_type="TOTALORDER" if d.is_float else "NOTYPE")

