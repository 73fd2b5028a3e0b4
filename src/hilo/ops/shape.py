"""Ops that change the shape of a tensor and nothing else, and iota. Imports ir, loop."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import bf16, c64, f32, i1, i32, u8
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.index import ZERO, delinear, linear
from hilo.ops.checks import in_range, same_dim, static_shape, tensor, unique
from hilo.ops.elements import Indices, Operand, counted
from hilo.ops.numeric import narrow
from hilo.ops.sharding import axis_names, unsharded


@op("iota", typed=True)
class iota:
    """Count along one axis: `out[i0, ..., iR] = i[iota_dimension]`.

    Result: any shape of rank >= 1, any integer, float or complex type (values wrap or round to it). Spec: iota.
    """

    @staticmethod
    def infer(*, iota_dimension: int, type: Type) -> Type:  # noqa: A002
        t = tensor(type)
        require(0 <= iota_dimension < t.rank, "C1", "iota_dimension {d} is not an axis of {t}", d=iota_dimension, t=t)
        require(t.dtype is not i1, "", "iota has no booleans")
        return t

    @staticmethod
    def evaluate(*, iota_dimension: int, type: TensorType) -> np.ndarray:  # noqa: A002
        n = static_shape(type)[iota_dimension]
        count = np.arange(n, dtype=np.int64)
        line = narrow(count.astype(np.float64), type.dtype) if type.dtype.kind in "fc" else count.astype(type.dtype.np)
        along = [n if d == iota_dimension else 1 for d in range(type.rank)]
        return np.broadcast_to(line.reshape(along), type.shape).copy()

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices, *, iota_dimension: int, **_: Any) -> Elem:
        return counted(b, index[iota_dimension], out.dtype)

    sharding = unsharded
    examples = lambda: [
        ((), {"iota_dimension": 0, "type": TensorType(i32, (5,))}),
        ((), {"iota_dimension": 1, "type": TensorType(f32, (2, 3))}),
        ((), {"iota_dimension": 0, "type": TensorType(bf16, (300, 2))}),
        ((), {"iota_dimension": 0, "type": TensorType(u8, (260,))}),
        ((), {"iota_dimension": 1, "type": TensorType(c64, (2, 0, 3))}),
    ]


@op("broadcast_in_dim", typed=True)
class broadcast_in_dim:
    """Place operand axis `d` at result axis `broadcast_dimensions[d]`; repeat along the rest and along axes of size 1.

    Any element type. Spec: broadcast_in_dim.
    """

    @staticmethod
    def infer(x: Type, *, broadcast_dimensions: tuple[int, ...], type: Type) -> Type:  # noqa: A002
        x, t = tensor(x), tensor(type)
        dims = broadcast_dimensions
        require(t.dtype is x.dtype, "C1", "the result has another element type: {t} from {x}", t=t, x=x)
        require(
            len(dims) == x.rank, "C2", "broadcast_dimensions {dims} must name one axis for each of {x}", dims=dims, x=x
        )
        require(in_range(dims, t.rank), "C3", "broadcast_dimensions {dims} are not all axes of {t}", dims=dims, t=t)
        require(unique(dims), "C4", "broadcast_dimensions {dims} name an axis twice", dims=dims)
        for d, (n, at) in enumerate(zip(x.shape, dims, strict=True)):
            require(
                n == 1 or same_dim(n, t.shape[at]),
                "C5",
                "axis {d} of {x} does not fit axis {at} of {t}",
                d=d,
                x=x,
                at=at,
                t=t,
            )
        return t

    @staticmethod
    def evaluate(x: np.ndarray, *, broadcast_dimensions: tuple[int, ...], type: TensorType) -> np.ndarray:  # noqa: A002
        order = np.argsort(broadcast_dimensions, kind="stable") if broadcast_dimensions else []
        shape = [1] * type.rank
        for d, at in enumerate(broadcast_dimensions):
            shape[at] = x.shape[d]
        return np.broadcast_to(np.transpose(x, order).reshape(shape), static_shape(type)).copy()

    @staticmethod
    def element(
        b: Builder, out: TensorType, index: Indices, x: Operand, *, broadcast_dimensions: tuple[int, ...], **_: Any
    ) -> Elem:
        return x([index[at] if n != 1 else ZERO for n, at in zip(x.type.shape, broadcast_dimensions, strict=True)])

    @staticmethod
    def sharding(x: TensorType, *, out: TensorType, broadcast_dimensions: tuple[int, ...], **_: Any) -> str:
        names = axis_names(out.rank)
        fresh = iter(axis_names(out.rank + x.rank)[out.rank :])
        kept = [
            names[at] if n != 1 or out.shape[at] == 1 else next(fresh)
            for n, at in zip(x.shape, broadcast_dimensions, strict=True)
        ]
        return f"{''.join(kept)}->{names}"

    examples = lambda: [
        ((TensorType(f32),), {"broadcast_dimensions": (), "type": TensorType(f32, (2, 3))}),
        ((TensorType(f32, (3,)),), {"broadcast_dimensions": (1,), "type": TensorType(f32, (2, 3))}),
        ((TensorType(i32, (2, 1)),), {"broadcast_dimensions": (2, 0), "type": TensorType(i32, (4, 3, 2))}),
        ((TensorType(i1, (1,)),), {"broadcast_dimensions": (0,), "type": TensorType(i1, (0, 2))}),
        ((TensorType(f32),), {"broadcast_dimensions": (), "type": TensorType(f32)}),
    ]


@op("reshape", typed=True)
class reshape:
    """The same elements in row-major order under another shape of the same size. Any element type. Spec: reshape."""

    @staticmethod
    def infer(x: Type, *, type: Type) -> Type:  # noqa: A002
        x, t = tensor(x), tensor(type)
        require(t.dtype is x.dtype, "C1", "the result has another element type: {t} from {x}", t=t, x=x)
        fits = x.size == t.size or not (x.is_static and t.is_static)
        require(fits, "C2", "{x} has {n} elements, {t} has {m}", x=x, n=x.size, t=t, m=t.size)
        return t

    @staticmethod
    def evaluate(x: np.ndarray, *, type: TensorType) -> np.ndarray:  # noqa: A002
        return np.reshape(x, static_shape(type))

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices, x: Operand, **_: Any) -> Elem:
        at = [ZERO] * x.type.rank
        for a, r in matching_groups(x.type.shape, out.shape):
            position = linear([index[d] for d in r], [out.shape[d] for d in r])
            for d, ix in zip(a, delinear(position, [x.type.shape[d] for d in a]), strict=True):
                at[d] = ix
        return x(at)

    @staticmethod
    def sharding(x: TensorType, *, out: TensorType, **_: Any) -> str:
        """Axes that stand unchanged before or behind the reshaped ones stay; the others are not sharded."""
        names = axis_names(x.rank + out.rank)
        ins, outs = list(names[: x.rank]), list(names[x.rank :])
        for group in matching_groups(x.shape, out.shape):
            a, b = ([d for d in dims if shape[d] != 1] for dims, shape in zip(group, (x.shape, out.shape), strict=True))
            if len(a) == len(b) == 1:
                outs[b[0]] = ins[a[0]]
        return f"{''.join(ins)}->{''.join(outs)}"

    examples = lambda: [
        ((TensorType(f32, (2, 3)),), {"type": TensorType(f32, (3, 2))}),
        ((TensorType(i32, (1,)),), {"type": TensorType(i32)}),
        ((TensorType(f32, (4, 6)),), {"type": TensorType(f32, (2, 2, 1, 6))}),
        ((TensorType(c64, (0, 3)),), {"type": TensorType(c64, (5, 0))}),
    ]


@op("transpose")
class transpose:
    """Permute axes: result axis `d` is operand axis `permutation[d]`. Any element type. Spec: transpose."""

    @staticmethod
    def infer(x: Type, *, permutation: tuple[int, ...]) -> Type:
        x = tensor(x)
        ok = sorted(permutation) == list(range(x.rank))
        require(ok, "C2", "permutation {p} does not permute the axes of {x}", p=permutation, x=x)
        return x.with_shape(x.shape[p] for p in permutation)

    @staticmethod
    def evaluate(x: np.ndarray, *, permutation: tuple[int, ...]) -> np.ndarray:
        return np.ascontiguousarray(np.transpose(x, permutation)).reshape([x.shape[p] for p in permutation])

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices, x: Operand, *, permutation: tuple[int, ...]) -> Elem:
        return x([index[permutation.index(d)] for d in range(len(index))])

    @staticmethod
    def sharding(x: TensorType, *, out: TensorType, permutation: tuple[int, ...]) -> str:
        names = axis_names(x.rank)
        return f"{names}->{''.join(names[p] for p in permutation)}"

    examples = lambda: [
        ((TensorType(f32, (2, 3)),), {"permutation": (1, 0)}),
        ((TensorType(i32, (2, 3, 4)),), {"permutation": (2, 0, 1)}),
        ((TensorType(c64, (2, 0, 4)),), {"permutation": (1, 2, 0)}),
        ((TensorType(f32),), {"permutation": ()}),
    ]


@op("reverse")
class reverse:
    """Turn the order of elements around along `dimensions`. Any element type. Spec: reverse."""

    @staticmethod
    def infer(x: Type, *, dimensions: tuple[int, ...]) -> Type:
        x = tensor(x)
        require(unique(dimensions), "C2", "dimensions {d} name an axis twice", d=dimensions)
        require(in_range(dimensions, x.rank), "C3", "dimensions {d} are not all axes of {x}", d=dimensions, x=x)
        return x.with_shape(x.shape)

    @staticmethod
    def evaluate(x: np.ndarray, *, dimensions: tuple[int, ...]) -> np.ndarray:
        return np.flip(x, dimensions).copy() if dimensions else x

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices, x: Operand, *, dimensions: tuple[int, ...]) -> Elem:
        return x(
            [n - 1 - ix if d in dimensions else ix for d, (ix, n) in enumerate(zip(index, out.shape, strict=True))]
        )

    @staticmethod
    def sharding(x: TensorType, *, out: TensorType, dimensions: tuple[int, ...]) -> str:
        names = axis_names(2 * x.rank)
        outs = [names[x.rank + d] if d in dimensions else names[d] for d in range(x.rank)]
        return f"{names[: x.rank]}->{''.join(outs)}"

    examples = lambda: [
        ((TensorType(f32, (5,)),), {"dimensions": (0,)}),
        ((TensorType(i32, (2, 3)),), {"dimensions": (1, 0)}),
        ((TensorType(f32, (2, 0)),), {"dimensions": (1,)}),
        ((TensorType(f32),), {"dimensions": ()}),
    ]


def matching_groups(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Split the axes of two shapes of equal size into the smallest consecutive groups with equal products.

    E.g. (4, 6) and (2, 2, 1, 6): [([0], [0, 1]), ([1], [2, 3])]. A shape with a zero is one group.
    """
    if prod(a) == 0:
        return [(list(range(len(a))), list(range(len(b))))]
    if not all(isinstance(n, int) for n in (*a, *b)):
        return _matching_sizes(a, b)
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        left, right, m, n = [], [], 1, 1
        while not (left or right) or m != n:
            if m <= n and i < len(a):
                m *= a[i]
                left.append(i)
                i += 1
            else:
                n *= b[j]
                right.append(j)
                j += 1
        if not left and groups:  # a lone axis of size 1
            groups[-1][1].extend(right)
        elif not right and groups:
            groups[-1][0].extend(left)
        else:
            groups.append((left, right))
    return groups


def _matching_sizes(a: Sequence[Any], b: Sequence[Any]) -> list[tuple[list[int], list[int]]]:
    """`matching_groups` of shapes with run-time sizes: groups end where products are the same expression."""
    ends: list[tuple[int, int]] = [(0, 0)]
    after = {prod(b[:j]): j for j in range(len(b) + 1)}  # the longest part of `b` with a product
    for i in range(1, len(a) + 1):
        j = len(b) if i == len(a) else after.get(prod(a[:i]))
        if j is not None and j > ends[-1][1]:
            ends.append((i, j))
    if ends[-1] != (len(a), len(b)):
        ends = [*ends[:-1], (len(a), len(b))] if len(ends) > 1 else [(0, 0), (len(a), len(b))]
    return [(list(range(i, k)), list(range(j, l))) for (i, j), (k, l) in pairwise(ends)]
