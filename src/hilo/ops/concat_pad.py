"""Concatenation and padding. Imports ir, loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dims import larger, may_be_less, upper
from hilo.ir.dtypes import bf16, c64, f32, i8, i32
from hilo.ir.registry import op
from hilo.ir.types import Dim, TensorType, Type, bounded
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.index import Index, in_range
from hilo.ops.checks import same_dim, tensor, tensors
from hilo.ops.elements import Indices, Operand, all_in_range, choose, either
from hilo.ops.sharding import axis_names


@op("concatenate")
class concatenate:
    """Join tensors along the axis `dimension`. One or more operands of any one element type. Spec: concatenate."""

    @staticmethod
    def infer(*types: Type, dimension: int) -> Type:
        xs = tensors(types)
        require(len(xs) > 0, "C3", "nothing to concatenate")
        first = xs[0]
        require(0 <= dimension < first.rank, "C4", "dimension {d} is not an axis of {x}", d=dimension, x=first)
        for x in xs:
            require(x.dtype is first.dtype, "C1", "{x} and {y} have different element types", x=first, y=x)
            ok = x.rank == first.rank
            ok = ok and all(
                d == dimension or same_dim(m, n) for d, (m, n) in enumerate(zip(x.shape, first.shape, strict=True))
            )
            require(ok, "C2", "{x} and {y} differ beside axis {d}", x=first, y=x, d=dimension)
        shape = [next((x.shape[d] for x in xs if isinstance(x.shape[d], int)), n) for d, n in enumerate(first.shape)]
        along = [x.shape[dimension] for x in xs]
        unknown = next((n for n in along if isinstance(n, Dim) and not n.is_known), None)
        shape[dimension] = sum(along) if unknown is None else Dim()
        return first.with_shape(shape)

    @staticmethod
    def evaluate(*xs: np.ndarray, dimension: int) -> np.ndarray:
        return np.concatenate(xs, axis=dimension)

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices, *xs: Operand, dimension: int) -> Elem:
        ix = index[dimension]
        value: Elem | None = None
        end = out.shape[dimension]
        for x in reversed(xs):  # the last operand that may be meant is read for all indices, the others choose
            begin = end - x.type.shape[dimension]
            met = may_be_less(begin, end) and may_be_less(begin, ix.hi + 1) and may_be_less(ix.lo, end)
            if met or (value is None and begin == 0):
                mine = x([*index[:dimension], ix - begin, *index[dimension + 1 :]])
                value = mine if value is None else either(b, in_range(b, ix, begin, end), mine, value)
            end = begin
        assert value is not None
        return value

    @staticmethod
    def sharding(*types: TensorType, out: TensorType, dimension: int) -> str:
        names = axis_names(out.rank - 1 + len(types) + 1)
        free = names[: out.rank - 1]
        each = [free[:dimension] + at + free[dimension:] for at in names[len(free) :]]
        return f"{','.join(each[:-1])}->{each[-1]}"

    examples = lambda: [
        ((TensorType(f32, (2, 3)), TensorType(f32, (2, 1))), {"dimension": 1}),
        ((TensorType(i32, (2,)), TensorType(i32, (0,)), TensorType(i32, (3,))), {"dimension": 0}),
        ((TensorType(c64, (2, 2)),), {"dimension": 0}),
        ((TensorType(bf16, (0, 2)), TensorType(bf16, (0, 2))), {"dimension": 0}),
    ]


@op("pad")
class pad:
    """Put `interior_padding[d]` padding values between elements and `edge_padding_low/high[d]` at the ends of axis `d`.

    Negative edges cut elements (or padding) off. Operands: a tensor, a rank-0 padding value. Spec: pad.
    """

    @staticmethod
    def infer(
        x: Type,
        value: Type,
        *,
        edge_padding_low: tuple[int, ...],
        edge_padding_high: tuple[int, ...],
        interior_padding: tuple[int, ...],
    ) -> Type:
        x, v = tensor(x), tensor(value)
        low, high, inner = edge_padding_low, edge_padding_high, interior_padding
        require(
            v.dtype is x.dtype and v.rank == 0,
            "C1",
            "the padding value of {x} is {v}, not a rank-0 tensor of its type",
            x=x,
            v=v,
        )
        ok = len(low) == len(high) == len(inner) == x.rank
        require(ok, "C2", "padding {l}, {h}, {i} needs one number for each axis of {x}", l=low, h=high, i=inner, x=x)
        require(all(i >= 0 for i in inner), "C3", "interior_padding {i} is negative", i=inner)
        known = [isinstance(n, int) or n.is_known for n in x.shape]
        sizes = [n if is_known else n.bound for n, is_known in zip(x.shape, known, strict=True)]
        edges = list(zip(low, high, inner, strict=True))
        padded: list[Any] = [
            None if n is None else n + l + larger(n - 1, 0) * i + h for n, (l, h, i) in zip(sizes, edges, strict=True)
        ]
        ok = all(n is None or upper(n) >= 0 for n in padded)
        require(ok, "C4", "padding {l}, {h} cuts off more than there is in {x}", l=low, h=high, x=x)
        return x.with_shape(
            m if is_known else bounded(m) if l or h or i else n
            for n, m, (l, h, i), is_known in zip(x.shape, padded, edges, known, strict=True)
        )

    @staticmethod
    def evaluate(
        x: np.ndarray,
        value: np.ndarray,
        *,
        edge_padding_low: tuple[int, ...],
        edge_padding_high: tuple[int, ...],
        interior_padding: tuple[int, ...],
    ) -> np.ndarray:
        spread = [max(n - 1, 0) * (i + 1) + min(n, 1) for n, i in zip(x.shape, interior_padding, strict=True)]
        full = [max(l, 0) + n + max(h, 0) for n, l, h in zip(spread, edge_padding_low, edge_padding_high, strict=True)]
        out = np.full(full, value, dtype=x.dtype)
        places, kept = [], []
        for n, l, h, i, m in zip(spread, edge_padding_low, edge_padding_high, interior_padding, full, strict=True):
            places.append(slice(max(l, 0), max(l, 0) + n, i + 1))
            kept.append(slice(max(-l, 0), m - max(-h, 0)))
        out[tuple(places)] = x
        return np.ascontiguousarray(out[tuple(kept)]).reshape(
            [m - max(-l, 0) - max(-h, 0) for m, l, h in zip(full, edge_padding_low, edge_padding_high, strict=True)]
        )

    @staticmethod
    def element(
        b: Builder,
        out: TensorType,
        index: Indices,
        x: Operand,
        value: Operand,
        *,
        edge_padding_low: tuple[int, ...],
        interior_padding: tuple[int, ...],
        **_: Any,
    ) -> Elem:
        at: list[Index] = []
        tests: list[tuple[Index, int, int]] = []
        for ix, l, i, n in zip(index, edge_padding_low, interior_padding, x.type.shape, strict=True):
            place = ix - l
            if i != 0:
                tests.append((place % (i + 1), 0, 1))
            at.append(place // (i + 1))
            tests.append((at[-1], 0, n))
        return choose(b, all_in_range(b, tests), lambda: x(at), lambda: value(()))

    @staticmethod
    def sharding(
        x: TensorType,
        value: TensorType,
        *,
        out: TensorType,
        edge_padding_low: tuple[int, ...],
        edge_padding_high: tuple[int, ...],
        interior_padding: tuple[int, ...],
    ) -> str:
        names = axis_names(2 * x.rank)
        numbers = zip(edge_padding_low, edge_padding_high, interior_padding, strict=True)
        outs = [names[x.rank + d] if any(lhi) else names[d] for d, lhi in enumerate(numbers)]
        return f"{names[: x.rank]},->{''.join(outs)}"

    examples = lambda: [
        (
            (TensorType(f32, (2, 3)), TensorType(f32)),
            {"edge_padding_low": (0, 1), "edge_padding_high": (2, 1), "interior_padding": (1, 2)},
        ),
        (
            (TensorType(i32, (5,)), TensorType(i32)),
            {"edge_padding_low": (-1,), "edge_padding_high": (-2,), "interior_padding": (1,)},
        ),
        (
            (TensorType(i8, (0,)), TensorType(i8)),
            {"edge_padding_low": (2,), "edge_padding_high": (1,), "interior_padding": (3,)},
        ),
        (
            (TensorType(f32, (3,)), TensorType(f32)),
            {"edge_padding_low": (4,), "edge_padding_high": (-6,), "interior_padding": (0,)},
        ),
        ((TensorType(f32), TensorType(f32)), {"edge_padding_low": (), "edge_padding_high": (), "interior_padding": ()}),
    ]
