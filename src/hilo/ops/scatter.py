"""Scatter: combine updates into an operand at run-time positions. Imports ir."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import bf16, f32, i8, i32, u64
from hilo.ir.module import Function, region
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops.checks import (
    accumulates,
    ascending,
    in_range,
    one_or_results,
    one_or_tuple,
    reduced,
    same_dim,
    same_shape,
    scalars,
    tensor,
    tensors,
    unique,
)
from hilo.ops.elementwise_arith import add, maximum
from hilo.ops.gather import along, batch_position, positions
from hilo.ops.reduce import body_of
from hilo.ops.regions import apply
from hilo.ops.sharding import distinct


@op("scatter")
class scatter:
    """Combine each update with the input element it points at: `input[i] = update_computation(input[i], update)`.

    Operands: N inputs of one shape, integer `scatter_indices`, N updates of one shape, then what the region captures.
    Index vectors stand along `index_vector_dim`; component `k` is a position along input axis
    `scatter_dims_to_operand_dims[k]`. An update element that points outside of the input is dropped. Updates of one
    element are applied in row-major order of the updates (the spec leaves it open). Spec: scatter.
    """

    attrs = {
        "input_batching_dims": (),
        "scatter_indices_batching_dims": (),
        "indices_are_sorted": False,
        "unique_indices": False,
        "update_window_dims": (),
        "inserted_window_dims": (),
        "scatter_dims_to_operand_dims": (),
        "index_vector_dim": 0,
    }

    @staticmethod
    def infer(
        *types: Type,
        update_window_dims: tuple[int, ...],
        inserted_window_dims: tuple[int, ...],
        input_batching_dims: tuple[int, ...],
        scatter_indices_batching_dims: tuple[int, ...],
        scatter_dims_to_operand_dims: tuple[int, ...],
        index_vector_dim: int,
        indices_are_sorted: bool,
        unique_indices: bool,
        update_computation: Function,
    ) -> Type:
        n = reduced(types, update_computation, "C5", "C23", "update_computation", others=1)
        xs, s, us = tensors(types[:n]), tensor(types[n]), tensors(types[n + 1 : 2 * n + 1])
        x, u, captures = xs[0], us[0], types[2 * n + 1 :]
        require(s.dtype.is_int, "I2", "scatter indices must be integers, not {s}", s=s)
        require(all(same_shape(t.shape, x.shape) for t in xs), "C1", "inputs have several shapes: {xs}", xs=xs)
        require(
            0 <= index_vector_dim <= s.rank,
            "C22",
            "index_vector_dim {d} is out of range for {s}",
            d=index_vector_dim,
            s=s,
        )
        rank = s.rank - (index_vector_dim < s.rank) + len(update_window_dims)
        require(u.rank == rank, "C4", "the updates {u} must have rank {r}: the axes of {s} without index_vector_dim, "
                "and update_window_dims", u=u, r=rank, s=s)  # fmt: skip
        hidden = [*inserted_window_dims, *input_batching_dims]
        require(
            x.rank == len(update_window_dims) + len(hidden),
            "C2",
            "{x} needs {n} window, inserted and batching dims, got {m}",
            x=x,
            n=x.rank,
            m=len(update_window_dims) + len(hidden),
        )
        require(all(same_shape(t.shape, u.shape) for t in us), "C3", "updates have several shapes: {us}", us=us)
        accumulated = accumulates(update_computation, xs, captures, "C23", "update_computation")
        for a, b in zip(xs, us, strict=True):
            require(a.dtype is b.dtype, "C6", "the updates {b} have another element type than {a}", a=a, b=b)
        ok = unique(update_window_dims) and ascending(update_window_dims)
        require(ok, "C7", "update_window_dims {d} must ascend", d=update_window_dims)
        require(
            in_range(update_window_dims, u.rank),
            "C8",
            "update_window_dims {d} are not all axes of {u}",
            d=update_window_dims,
            u=u,
        )
        require(unique(hidden), "C9", "inserted and batching dims {d} name an axis twice", d=hidden)
        require(ascending(inserted_window_dims), "C10", "inserted_window_dims {d} must ascend", d=inserted_window_dims)
        require(
            in_range(inserted_window_dims, x.rank),
            "C11",
            "inserted_window_dims {d} are not all axes of {x}",
            d=inserted_window_dims,
            x=x,
        )
        require(ascending(input_batching_dims), "C12", "input_batching_dims {d} must ascend", d=input_batching_dims)
        require(
            in_range(input_batching_dims, x.rank),
            "C13",
            "input_batching_dims {d} are not all axes of {x}",
            d=input_batching_dims,
            x=x,
        )
        sb, to = scatter_indices_batching_dims, scatter_dims_to_operand_dims
        require(unique(sb), "C14", "scatter_indices_batching_dims {d} name an axis twice", d=sb)
        require(in_range(sb, s.rank), "C15", "scatter_indices_batching_dims {d} are not all axes of {s}", d=sb, s=s)
        require(index_vector_dim not in sb, "C16", "index_vector_dim {v} is a batching dim", v=index_vector_dim)
        require(len(input_batching_dims) == len(sb), "C17", "{a} and {b} differ in number", a=input_batching_dims, b=sb)
        ok = all(same_dim(x.shape[i], s.shape[j]) for i, j in zip(input_batching_dims, sb, strict=True))
        require(
            ok, "C18", "batching dims {a} of {x} and {b} of {s} differ in size", a=input_batching_dims, x=x, b=sb, s=s
        )
        components = s.shape[index_vector_dim] if index_vector_dim < s.rank else 1
        require(
            same_dim(components, len(to)),
            "C19",
            "scatter_dims_to_operand_dims {m} for index vectors of size {n}",
            m=to,
            n=components,
        )
        require(
            unique([*to, *input_batching_dims]),
            "C20",
            "scatter_dims_to_operand_dims {m} and batching dims {b} name an axis twice",
            m=to,
            b=input_batching_dims,
        )
        require(in_range(to, x.rank), "C21", "scatter_dims_to_operand_dims {m} does not name axes of {x}", m=to, x=x)
        _check_updates(x, s, u, update_window_dims, hidden, index_vector_dim)
        return one_or_results([a.with_dtype(e.dtype) for a, e in zip(xs, accumulated, strict=True)])

    @staticmethod
    def evaluate(
        *arrays: np.ndarray,
        update_window_dims: tuple[int, ...],
        inserted_window_dims: tuple[int, ...],
        input_batching_dims: tuple[int, ...],
        scatter_indices_batching_dims: tuple[int, ...],
        scatter_dims_to_operand_dims: tuple[int, ...],
        index_vector_dim: int,
        indices_are_sorted: bool,
        unique_indices: bool,
        update_computation: Function,
    ) -> Any:
        n = len(update_computation.results)
        dtypes = [r.dtype.np for r in update_computation.results]
        shape = arrays[0].shape
        starts = positions(arrays[n], index_vector_dim)
        rank = arrays[n + 1].ndim
        order = [*(d for d in range(rank) if d not in update_window_dims), *update_window_dims]
        updates = [
            np.transpose(u.astype(t, copy=False), order) for u, t in zip(arrays[n + 1 : 2 * n + 1], dtypes, strict=True)
        ]
        batch = starts.shape[:-1]
        kept = [d for d in range(len(shape)) if d not in inserted_window_dims and d not in input_batching_dims]
        at: list[Any] = [np.int64(0)] * len(shape)
        for k, d in enumerate(scatter_dims_to_operand_dims):
            at[d] = starts[..., k].reshape([*batch, *[1] * len(kept)])
        for d, s in zip(input_batching_dims, scatter_indices_batching_dims, strict=True):
            p = batch_position(s, index_vector_dim)
            at[d] = along(batch[p], p, rank)
        for k, d in enumerate(kept):
            at[d] = at[d] + along(updates[0].shape[len(batch) + k], len(batch) + k, rank)
        inside = np.ones(updates[0].shape, np.bool_)
        flat = np.zeros(updates[0].shape, np.int64)
        for d, m in enumerate(shape):
            inside &= (at[d] >= 0) & (at[d] < m)
            flat = flat * m + np.clip(at[d], 0, max(m - 1, 0))
        back = np.argsort(order)  # updates apply in the row-major order of the updates tensor
        flat, inside = np.transpose(flat, back).reshape(-1), np.transpose(inside, back).reshape(-1)
        chosen = [np.transpose(u, back).reshape(-1)[inside] for u in updates]
        out = [x.astype(t).reshape(-1) for x, t in zip(arrays[:n], dtypes, strict=True)]
        combine_at(out, flat[inside], chosen, update_computation, arrays[2 * n + 1 :])
        return one_or_tuple([x.reshape(shape) for x in out])

    @staticmethod
    def sharding(
        *types: TensorType,
        out: Type,
        update_window_dims: tuple[int, ...],
        inserted_window_dims: tuple[int, ...],
        input_batching_dims: tuple[int, ...],
        scatter_indices_batching_dims: tuple[int, ...],
        index_vector_dim: int,
        update_computation: Function,
        **_: Any,
    ) -> str:
        """Batching axes are sharded alike, and window axes that updates cover whole; scattered axes are not."""
        n = len(update_computation.results)
        each = distinct(types)
        x, s, u = list(each[0]), list(each[n]), list(each[n + 1])
        for d, e in zip(input_batching_dims, scatter_indices_batching_dims, strict=True):
            s[e] = x[d]
        batch = iter([c for d, c in enumerate(s) if d != index_vector_dim])
        hidden = (*inserted_window_dims, *input_batching_dims)
        window = iter([d for d in range(len(x)) if d not in hidden])
        for d in range(len(u)):
            if d not in update_window_dims:
                u[d] = next(batch)
            elif types[n + 1].shape[d] == types[0].shape[at := next(window)]:
                u[d] = x[at]
        rule = ["".join(x)] * n + ["".join(s)] + ["".join(u)] * n + each[2 * n + 1 :]
        return f"{','.join(rule)}->{','.join(rule[:n])}"

    @staticmethod
    def cost(*types: TensorType, out: Type, update_computation: Function, **_: Any) -> tuple[int, int]:
        n = len(update_computation.results)
        work = max(len(update_computation.ops) - len(update_computation.params), 1)
        return types[n + 1].size * work, sum(2 * t.nbytes for t in types[:n]) + sum(
            t.nbytes for t in types[n : 2 * n + 1]
        )

    examples = lambda: [
        (
            (TensorType(f32, (5, 3)), TensorType(i32, (4, 1)), TensorType(f32, (4, 3))),
            {
                "update_window_dims": (1,),
                "inserted_window_dims": (0,),
                "scatter_dims_to_operand_dims": (0,),
                "index_vector_dim": 1,
                "update_computation": body_of(add, f32),
            },
        ),
        (
            (TensorType(bf16, (6,)), TensorType(i8, (9,)), TensorType(bf16, (9,))),
            {
                "inserted_window_dims": (0,),
                "scatter_dims_to_operand_dims": (0,),
                "index_vector_dim": 1,
                "update_computation": body_of(maximum, bf16),
            },
        ),
        (
            (TensorType(i32, (4, 5)), TensorType(u64, (2,)), TensorType(i32, (2, 3))),
            {
                "update_window_dims": (0, 1),
                "scatter_dims_to_operand_dims": (1, 0),
                "index_vector_dim": 0,
                "update_computation": region(scalars((i32, i32)), lambda a, b: b),
            },
        ),
        (
            (TensorType(f32, (2, 5)), TensorType(i32, (3, 2, 1)), TensorType(f32, (3, 2))),
            {
                "inserted_window_dims": (1,),
                "input_batching_dims": (0,),
                "scatter_indices_batching_dims": (1,),
                "scatter_dims_to_operand_dims": (1,),
                "index_vector_dim": 2,
                "update_computation": body_of(add, f32),
            },
        ),
        (
            (
                TensorType(f32, (5,)),
                TensorType(i32, (5,)),
                TensorType(i32, (2, 1)),
                TensorType(f32, (2,)),
                TensorType(i32, (2,)),
            ),
            {
                "inserted_window_dims": (0,),
                "scatter_dims_to_operand_dims": (0,),
                "index_vector_dim": 1,
                "update_computation": region(
                    scalars((f32, i32, f32, i32)), lambda a, i, b, j: (maximum(a, b), add(i, j))
                ),
            },
        ),
        (
            (TensorType(f32, (0,)), TensorType(i32, (0, 1)), TensorType(f32, (0,))),
            {
                "inserted_window_dims": (0,),
                "scatter_dims_to_operand_dims": (0,),
                "index_vector_dim": 1,
                "update_computation": body_of(add, f32),
            },
        ),
        ((TensorType(f32), TensorType(i32, (0,)), TensorType(f32)), {"update_computation": body_of(add, f32)}),
    ]


def _check_updates(
    x: TensorType, s: TensorType, u: TensorType, window_dims: Sequence[int], hidden: Sequence[int], vector: int
) -> None:
    """The updates' shape: scatter axes like the indices', window axes no larger than the input's (C4)."""
    batch = [n for d, n in enumerate(s.shape) if d != vector]
    bounds = [n for d, n in enumerate(x.shape) if d not in hidden]
    scattered = [n for d, n in enumerate(u.shape) if d not in window_dims]
    require(
        same_shape(scattered, batch),
        "C4",
        "scatter axes {a} of the updates are not those of the indices {b}",
        a=scattered,
        b=batch,
    )
    for d, bound in zip(window_dims, bounds, strict=True):
        m = u.shape[d]
        ok = not isinstance(m, int) or not isinstance(bound, int) or m <= bound
        require(ok, "C4", "axis {d} of the updates {u} is larger than {n}", d=d, u=u, n=bound)


def combine_at(
    out: list[np.ndarray], flat: np.ndarray, updates: list[np.ndarray], body: Function, captured: Sequence[np.ndarray]
) -> None:
    """Apply updates to `out` at positions `flat`, in order: the k-th updates of all positions together, k = 0, 1 ..."""
    order = np.argsort(flat, kind="stable")
    where = flat[order]
    first = np.flatnonzero(np.r_[True, where[1:] != where[:-1]]) if where.size else np.zeros(0, np.int64)
    counts = np.diff(np.r_[first, where.size])
    for k in range(int(counts.max(initial=0))):
        take = order[first[counts > k] + k]
        at = flat[take]
        new = apply(body, [*(x[at] for x in out), *(u[take] for u in updates)], captured, at.shape)
        for x, value in zip(out, new, strict=True):
            x[at] = value
