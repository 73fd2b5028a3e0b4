"""Gather: slices of an operand at run-time positions. Imports ir, loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dims import may_be_less
from hilo.ir.dtypes import bf16, f32, i1, i8, i32, i64, u8, u64
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.loop.arith.rounding import zero
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.index import ZERO, Index, constant
from hilo.ops.checks import ascending, at_most, in_range, same_dim, tensor, unique
from hilo.ops.elements import Indices, Operand, start
from hilo.ops.sharding import axis_names

FAR = 1 << 61  # beyond every tensor; positions are cut to +-FAR so that adding offsets cannot overflow


def positions(indices: np.ndarray, index_vector_dim: int) -> np.ndarray:
    """Index vectors as i64 [batch..., components], cut to +-FAR (a u64 beyond that is far, not negative)."""
    if index_vector_dim == indices.ndim:
        indices = indices[..., None]
    indices = np.moveaxis(indices, index_vector_dim, -1)
    if indices.dtype == np.uint64:
        return np.minimum(indices, np.uint64(FAR)).astype(np.int64)
    return np.clip(indices.astype(np.int64), -FAR, FAR)


def batch_position(batch_dim: int, index_vector_dim: int) -> int:
    """Where axis `batch_dim` of the indices stands among their axes without `index_vector_dim`."""
    return batch_dim - (index_vector_dim < batch_dim)


@op("gather")
class gather:
    """Slices of the operand of `slice_sizes`, one for each index vector, with starts moved so that slices fit.

    Operands: the tensor, and an integer tensor whose axis `index_vector_dim` (or, if that is its rank, an implied axis
    of size 1) holds index vectors; component `k` is the start along operand axis `start_index_map[k]`. Operand axes
    `operand_batching_dims` run along with `start_indices_batching_dims` of the indices. Axes of slices that are not
    collapsed stand at `offset_dims` of the result, those of the indices at the others. Elements that slices of size 0
    along a collapsed axis do not have are 0. Spec: gather.
    """

    attrs = {
        "operand_batching_dims": (),
        "start_indices_batching_dims": (),
        "indices_are_sorted": False,
        "offset_dims": (),
        "collapsed_slice_dims": (),
        "start_index_map": (),
        "index_vector_dim": 0,
    }

    @staticmethod
    def infer(
        operand: Type,
        start_indices: Type,
        *,
        offset_dims: tuple[int, ...],
        collapsed_slice_dims: tuple[int, ...],
        operand_batching_dims: tuple[int, ...],
        start_indices_batching_dims: tuple[int, ...],
        start_index_map: tuple[int, ...],
        index_vector_dim: int,
        slice_sizes: tuple[Any, ...],  # dynamic_gather does not know them: dims
        indices_are_sorted: bool,
    ) -> Type:
        x, s = tensor(operand), tensor(start_indices)
        dropped = [*collapsed_slice_dims, *operand_batching_dims]
        require(s.dtype.is_int, "I2", "start indices must be integers, not {s}", s=s)
        require(
            x.rank == len(offset_dims) + len(dropped),
            "C1",
            "{x} needs {n} offset, collapsed and batching dims, got {m}",
            x=x,
            n=x.rank,
            m=len(offset_dims) + len(dropped),
        )
        require(
            0 <= index_vector_dim <= s.rank,
            "C2",
            "index_vector_dim {d} is out of range for {s}",
            d=index_vector_dim,
            s=s,
        )
        components = s.shape[index_vector_dim] if index_vector_dim < s.rank else 1
        require(
            same_dim(components, len(start_index_map)),
            "C3",
            "start_index_map {m} for index vectors of size {n}",
            m=start_index_map,
            n=components,
        )
        require(unique(offset_dims) and ascending(offset_dims), "C4", "offset_dims {d} must ascend", d=offset_dims)
        rank = s.rank - (index_vector_dim < s.rank) + len(offset_dims)
        require(
            in_range(offset_dims, rank),
            "C5",
            "offset_dims {d} are not all axes of a result of rank {r}",
            d=offset_dims,
            r=rank,
        )
        require(unique(dropped), "C6", "collapsed and batching dims {d} name an axis twice", d=dropped)
        require(ascending(collapsed_slice_dims), "C7", "collapsed_slice_dims {d} must ascend", d=collapsed_slice_dims)
        require(
            in_range(collapsed_slice_dims, x.rank),
            "C8",
            "collapsed_slice_dims {d} are not all axes of {x}",
            d=collapsed_slice_dims,
            x=x,
        )
        require(
            len(slice_sizes) == x.rank, "C20", "slice_sizes {s} need one size for each axis of {x}", s=slice_sizes, x=x
        )
        require(
            all(at_most(slice_sizes[d], 1) for d in collapsed_slice_dims),
            "C9",
            "collapsed slices are larger than 1: {s}",
            s=slice_sizes,
        )
        require(
            ascending(operand_batching_dims), "C10", "operand_batching_dims {d} must ascend", d=operand_batching_dims
        )
        require(
            in_range(operand_batching_dims, x.rank),
            "C11",
            "operand_batching_dims {d} are not all axes of {x}",
            d=operand_batching_dims,
            x=x,
        )
        require(
            all(at_most(slice_sizes[d], 1) for d in operand_batching_dims),
            "C12",
            "batching slices are larger than 1: {s}",
            s=slice_sizes,
        )
        sb = start_indices_batching_dims
        require(unique(sb), "C13", "start_indices_batching_dims {d} name an axis twice", d=sb)
        require(in_range(sb, s.rank), "C14", "start_indices_batching_dims {d} are not all axes of {s}", d=sb, s=s)
        require(index_vector_dim not in sb, "C15", "index_vector_dim {v} is a batching dim", v=index_vector_dim)
        require(
            len(operand_batching_dims) == len(sb), "C16", "{a} and {b} differ in number", a=operand_batching_dims, b=sb
        )
        ok = all(same_dim(x.shape[i], s.shape[j]) for i, j in zip(operand_batching_dims, sb, strict=True))
        require(
            ok, "C17", "batching dims {a} of {x} and {b} of {s} differ in size", a=operand_batching_dims, x=x, b=sb, s=s
        )
        require(
            unique([*start_index_map, *operand_batching_dims]),
            "C18",
            "start_index_map {m} and batching dims {b} name an axis twice",
            m=start_index_map,
            b=operand_batching_dims,
        )
        require(
            in_range(start_index_map, x.rank),
            "C19",
            "start_index_map {m} does not name axes of {x}",
            m=start_index_map,
            x=x,
        )
        ok = all(at_most(0, m) and at_most(m, n) for m, n in zip(slice_sizes, x.shape, strict=True))
        require(ok, "C21", "slice_sizes {s} do not fit {x}", s=slice_sizes, x=x)
        batch = iter([n for d, n in enumerate(s.shape) if d != index_vector_dim])
        sizes = iter([n for d, n in enumerate(slice_sizes) if d not in dropped])
        return x.with_shape(next(sizes) if d in offset_dims else next(batch) for d in range(rank))

    @staticmethod
    def evaluate(
        operand: np.ndarray,
        start_indices: np.ndarray,
        *,
        offset_dims: tuple[int, ...],
        collapsed_slice_dims: tuple[int, ...],
        operand_batching_dims: tuple[int, ...],
        start_indices_batching_dims: tuple[int, ...],
        start_index_map: tuple[int, ...],
        index_vector_dim: int,
        slice_sizes: tuple[int, ...],
        indices_are_sorted: bool,
    ) -> np.ndarray:
        starts = positions(start_indices, index_vector_dim)
        batch = starts.shape[:-1]
        kept = [d for d in range(operand.ndim) if d not in collapsed_slice_dims and d not in operand_batching_dims]
        result = (*batch, *(slice_sizes[d] for d in kept))
        order = result_order(len(result), offset_dims)
        if 0 in (*result, *slice_sizes):  # also one that is not in the result: zeros, for want of elements
            return np.zeros([result[d] for d in order], operand.dtype)
        at: list[Any] = [np.int64(0)] * operand.ndim
        for k, d in enumerate(start_index_map):
            at[d] = np.clip(starts[..., k], 0, operand.shape[d] - slice_sizes[d]).reshape([*batch, *[1] * len(kept)])
        for d, s in zip(operand_batching_dims, start_indices_batching_dims, strict=True):
            at[d] = along(batch[p := batch_position(s, index_vector_dim)], p, len(result))
        for k, d in enumerate(kept):
            at[d] = at[d] + along(slice_sizes[d], len(batch) + k, len(result))
        if not at:
            return np.transpose(np.broadcast_to(operand, result), order).copy()
        return np.transpose(np.broadcast_to(operand[tuple(np.broadcast_arrays(*at))], result), order).copy()

    @staticmethod
    def element(
        b: Builder,
        out: TensorType,
        index: Indices,
        operand: Operand,
        start_indices: Operand,
        *,
        offset_dims: tuple[int, ...],
        collapsed_slice_dims: tuple[int, ...],
        operand_batching_dims: tuple[int, ...],
        start_indices_batching_dims: tuple[int, ...],
        start_index_map: tuple[int, ...],
        index_vector_dim: int,
        slice_sizes: tuple[int, ...],
        **_: Any,
    ) -> Elem:
        if 0 in slice_sizes:
            return zero(b, out.dtype)
        batch = [ix for d, ix in enumerate(index) if d not in offset_dims]
        offset = iter([index[d] for d in offset_dims])
        at: list[Index] = []
        for d, (m, n) in enumerate(zip(slice_sizes, operand.type.shape, strict=True)):
            if d in operand_batching_dims:
                s = start_indices_batching_dims[operand_batching_dims.index(d)]
                at.append(batch[batch_position(s, index_vector_dim)])
                continue
            first = ZERO
            if d in start_index_map and may_be_less(m, n):
                where = list(batch)
                if index_vector_dim < start_indices.type.rank:
                    where.insert(index_vector_dim, constant(start_index_map.index(d)))
                first = start(b, start_indices(where), n - m)
            at.append(first if d in collapsed_slice_dims else first + next(offset))
        return operand(at)

    @staticmethod
    def sharding(
        operand: TensorType,
        start_indices: TensorType,
        *,
        out: TensorType,
        offset_dims: tuple[int, ...],
        collapsed_slice_dims: tuple[int, ...],
        operand_batching_dims: tuple[int, ...],
        start_indices_batching_dims: tuple[int, ...],
        index_vector_dim: int,
        slice_sizes: tuple[int, ...],
        **_: Any,
    ) -> str:
        """Axes of the indices go to the result, and operand axes that are taken whole; batching axes are both."""
        names = axis_names(operand.rank + start_indices.rank + out.rank)
        x, s = list(names[: operand.rank]), list(names[operand.rank : operand.rank + start_indices.rank])
        for d, e in zip(operand_batching_dims, start_indices_batching_dims, strict=True):
            x[d] = s[e]
        fresh = iter(names[operand.rank + start_indices.rank :])
        kept = [d for d in range(operand.rank) if d not in collapsed_slice_dims and d not in operand_batching_dims]
        offset = iter([x[d] if slice_sizes[d] == operand.shape[d] else next(fresh) for d in kept])
        batch = iter([c for d, c in enumerate(s) if d != index_vector_dim])
        result = [next(offset) if d in offset_dims else next(batch) for d in range(out.rank)]
        return f"{''.join(x)},{''.join(s)}->{''.join(result)}"

    examples = lambda: [
        (
            (TensorType(f32, (5, 3)), TensorType(i32, (4, 1))),
            {
                "offset_dims": (1,),
                "collapsed_slice_dims": (0,),
                "start_index_map": (0,),
                "index_vector_dim": 1,
                "slice_sizes": (1, 3),
            },
        ),
        (
            (TensorType(i32, (5, 6)), TensorType(i64, (2, 3))),
            {"offset_dims": (0, 2), "start_index_map": (1, 0), "index_vector_dim": 0, "slice_sizes": (2, 3)},
        ),
        (
            (TensorType(bf16, (2, 5, 3)), TensorType(u8, (4, 2))),
            {
                "offset_dims": (2,),
                "collapsed_slice_dims": (1,),
                "operand_batching_dims": (0,),
                "start_indices_batching_dims": (1,),
                "start_index_map": (1,),
                "index_vector_dim": 2,
                "slice_sizes": (1, 1, 2),
            },
        ),
        (  # collapsed slices without elements, of an operand that has some
            (TensorType(f32, (5, 3)), TensorType(i32, (40, 1))),
            {
                "offset_dims": (1,),
                "collapsed_slice_dims": (0,),
                "start_index_map": (0,),
                "index_vector_dim": 1,
                "slice_sizes": (0, 3),
            },
        ),
        (
            (TensorType(i1, (300,)), TensorType(i8, (2, 1))),
            {"offset_dims": (1,), "start_index_map": (0,), "index_vector_dim": 1, "slice_sizes": (200,)},
        ),
        (
            (TensorType(f32, (5,)), TensorType(u64, (3,))),
            {
                "offset_dims": (),
                "collapsed_slice_dims": (0,),
                "start_index_map": (0,),
                "index_vector_dim": 1,
                "slice_sizes": (1,),
            },
        ),
        (
            (TensorType(f32, (0, 3)), TensorType(i32, (0, 1))),
            {
                "offset_dims": (1,),
                "collapsed_slice_dims": (0,),
                "start_index_map": (0,),
                "index_vector_dim": 1,
                "slice_sizes": (0, 3),
            },
        ),
        ((TensorType(f32), TensorType(i32, (0,))), {"offset_dims": (), "slice_sizes": ()}),
    ]


def along(n: int, axis: int, rank: int) -> np.ndarray:
    """0 .. n-1 along `axis` of `rank` axes."""
    return np.arange(n, dtype=np.int64).reshape([n if d == axis else 1 for d in range(rank)])


def result_order(rank: int, offset_dims: Sequence[int]) -> list[int]:
    """The permutation that brings [batch axes, offset axes] to where they stand in the result."""
    batch = iter(range(rank - len(offset_dims)))
    offset = iter(range(rank - len(offset_dims), rank))
    return [next(offset) if d in offset_dims else next(batch) for d in range(rank)]
