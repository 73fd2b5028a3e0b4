"""Slices, with constant or run-time starts, and updates of slices. Imports ir, loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import bf16, c64, f32, i1, i8, i32, i64, u8, u64
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.ops.checks import scalar_indices, tensor
from hilo.ops.elements import Indices, Operand, all_in_range, choose, window_start
from hilo.ops.sharding import axis_names


@op("slice")
class slice_:
    """Every `strides[d]`-th element from `start_indices[d]` up to `limit_indices[d]`, along each axis. Spec: slice."""

    @staticmethod
    def infer(
        x: Type, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...]
    ) -> Type:
        x = tensor(x)
        ok = len(start_indices) == len(limit_indices) == len(strides) == x.rank
        require(
            ok,
            "C2",
            "start {s}, limit {l} and strides {k} need one number for each axis of {x}",
            s=start_indices,
            l=limit_indices,
            k=strides,
            x=x,
        )
        for s, e, n in zip(start_indices, limit_indices, x.shape, strict=True):
            size = n if isinstance(n, int) else n.bound
            ok = 0 <= s <= e and (size is None or e <= size)
            require(ok, "C3", "slice {s}:{e} leaves an axis of size {n} in {x}", s=s, e=e, n=n, x=x)
        require(all(k > 0 for k in strides), "C4", "strides {k} must be positive", k=strides)
        return x.with_shape(-((s - e) // k) for s, e, k in zip(start_indices, limit_indices, strides, strict=True))

    @staticmethod
    def evaluate(
        x: np.ndarray, *, start_indices: tuple[int, ...], limit_indices: tuple[int, ...], strides: tuple[int, ...]
    ) -> np.ndarray:
        return np.array(x[tuple(map(slice, start_indices, limit_indices, strides))])

    @staticmethod
    def element(
        b: Builder,
        out: TensorType,
        index: Indices,
        x: Operand,
        *,
        start_indices: tuple[int, ...],
        strides: tuple[int, ...],
        **_: Any,
    ) -> Elem:
        return x([ix * k + s for ix, s, k in zip(index, start_indices, strides, strict=True)])

    @staticmethod
    def sharding(x: TensorType, *, out: TensorType, **_: object) -> str:
        return whole_axes(x, out)

    examples = lambda: [
        ((TensorType(f32, (4, 6)),), {"start_indices": (1, 0), "limit_indices": (3, 6), "strides": (1, 2)}),
        ((TensorType(i32, (5,)),), {"start_indices": (2,), "limit_indices": (2,), "strides": (3,)}),
        ((TensorType(c64, (3, 7)),), {"start_indices": (0, 1), "limit_indices": (3, 6), "strides": (2, 3)}),
        ((TensorType(f32),), {"start_indices": (), "limit_indices": (), "strides": ()}),
    ]


@op("dynamic_slice")
class dynamic_slice:
    """A slice of `slice_sizes` that starts at run-time indices, moved into the operand where it would stick out.

    Operands: the tensor, then one rank-0 integer per axis (any integer type, all the same). Spec: dynamic_slice.
    """

    @staticmethod
    def infer(x: Type, *starts: Type, slice_sizes: tuple[int, ...]) -> Type:
        x = tensor(x)
        require(
            len(starts) == len(slice_sizes) == x.rank,
            "C2",
            "{n} start indices and slice_sizes {s} for {x}",
            n=len(starts),
            s=slice_sizes,
            x=x,
        )
        scalar_indices(starts, "C3")
        for s, n in zip(slice_sizes, x.shape, strict=True):
            require(
                s >= 0 and (not isinstance(n, int) or s <= n),
                "C4",
                "slice_sizes {s} do not fit {x}",
                s=slice_sizes,
                x=x,
            )
        return x.with_shape(slice_sizes)

    @staticmethod
    def evaluate(x: np.ndarray, *starts: np.ndarray, slice_sizes: tuple[int, ...]) -> np.ndarray:
        return np.array(x[window(starts, slice_sizes, x.shape)])

    @staticmethod
    def element(
        b: Builder, out: TensorType, index: Indices, x: Operand, *starts: Operand, slice_sizes: tuple[int, ...]
    ) -> Elem:
        first = window_start(b, starts, slice_sizes, x.type.shape)
        return x([s + ix for s, ix in zip(first, index, strict=True)])

    @staticmethod
    def sharding(x: TensorType, *starts: TensorType, out: TensorType, **_: object) -> str:
        return whole_axes(x, out, scalars=len(starts))

    examples = lambda: [
        ((TensorType(f32, (4, 6)), TensorType(i32), TensorType(i32)), {"slice_sizes": (2, 6)}),
        ((TensorType(i32, (5,)), TensorType(u8)), {"slice_sizes": (3,)}),
        ((TensorType(bf16, (5,)), TensorType(u64)), {"slice_sizes": (0,)}),
        ((TensorType(i1, (3, 300)), TensorType(i8), TensorType(i8)), {"slice_sizes": (1, 2)}),
        ((TensorType(f32),), {"slice_sizes": ()}),
    ]


@op("dynamic_update_slice")
class dynamic_update_slice:
    """The operand with a slice that starts at run-time indices replaced; the start is moved so that the update fits.

    Operands: the tensor, the update, then one rank-0 integer per axis. Spec: dynamic_update_slice.
    """

    @staticmethod
    def infer(x: Type, update: Type, *starts: Type) -> Type:
        x, u = tensor(x), tensor(update)
        require(u.dtype is x.dtype, "C2", "the update {u} has another element type than {x}", u=u, x=x)
        require(u.rank == x.rank, "C3", "the update {u} has another rank than {x}", u=u, x=x)
        require(len(starts) == x.rank, "C4", "{n} start indices for {x}", n=len(starts), x=x)
        scalar_indices(starts, "C5")
        for m, n in zip(u.shape, x.shape, strict=True):
            ok = not isinstance(m, int) or not isinstance(n, int) or m <= n
            require(ok, "C6", "the update {u} is larger than {x}", u=u, x=x)
        return x.with_shape(x.shape)

    @staticmethod
    def evaluate(x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        out = x.copy()
        out[window(starts, update.shape, x.shape)] = update
        return out

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices, x: Operand, update: Operand, *starts: Operand) -> Elem:
        first = window_start(b, starts, update.type.shape, out.shape)
        at = [ix - s for s, ix in zip(first, index, strict=True)]
        inside = all_in_range(b, ((ix, 0, n) for ix, n in zip(at, update.type.shape, strict=True)))
        return choose(b, inside, lambda: update(at), lambda: x(index))

    @staticmethod
    def sharding(x: TensorType, update: TensorType, *starts: TensorType, out: TensorType) -> str:
        part, whole = whole_axes(update, x).split("->")
        return f"{','.join([whole, part, *[''] * len(starts)])}->{whole}"

    examples = lambda: [
        ((TensorType(f32, (4, 6)), TensorType(f32, (2, 6)), TensorType(i32), TensorType(i32)), {}),
        ((TensorType(i32, (5,)), TensorType(i32, (5,)), TensorType(i64)), {}),
        ((TensorType(f32, (5,)), TensorType(f32, (0,)), TensorType(u8)), {}),
        ((TensorType(f32), TensorType(f32)), {}),
    ]


def window(starts: tuple[np.ndarray, ...], sizes: tuple[int, ...], shape: tuple[int, ...]) -> tuple[slice, ...]:
    """The slice of `sizes` at `starts` (Python integers do not overflow), moved inside `shape`."""
    at = [min(max(int(s), 0), n - m) for s, m, n in zip(starts, sizes, shape, strict=True)]
    return tuple(slice(s, s + m) for s, m in zip(at, sizes, strict=True))


def whole_axes(x: TensorType, out: TensorType, scalars: int = 0) -> str:
    """A sharding rule in which the axes that stay whole keep their sharding; `scalars` rank-0 operands follow."""
    names = axis_names(2 * x.rank)
    outs = [names[d] if m == n else names[x.rank + d] for d, (m, n) in enumerate(zip(x.shape, out.shape, strict=True))]
    return f"{names[: x.rank]}{',' * scalars}->{''.join(outs)}"
