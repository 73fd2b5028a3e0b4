"""Ops about sizes that may be known only at run time. Imports ir, loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dims import Guard
from hilo.ir.dtypes import f32, i32
from hilo.ir.registry import op
from hilo.ir.types import Results, TensorType, Type
from hilo.loop import index as indices
from hilo.loop import sizes
from hilo.loop.builder import I32, Builder
from hilo.loop.element import Elem
from hilo.ops.checks import tensor
from hilo.ops.elements import Indices, Operand
from hilo.ops.shape import broadcast_in_dim
from hilo.ops.sharding import axis_names, unsharded


@op("get_dimension_size")
class get_dimension_size:
    """The size of axis `dimension`, as a rank-0 i32. Spec: get_dimension_size."""

    @staticmethod
    def infer(x: Type, *, dimension: int) -> Type:
        x = tensor(x)
        require(0 <= dimension < x.rank, "C1", "dimension {d} is not an axis of {x}", d=dimension, x=x)
        return TensorType(i32)

    @staticmethod
    def evaluate(x: np.ndarray, *, dimension: int) -> np.ndarray:
        return np.asarray(x.shape[dimension], np.int32)

    @staticmethod
    def element(b: Builder, out: TensorType, index: Indices, x: Operand, *, dimension: int) -> Elem:
        n = x.type.shape[dimension]
        if not isinstance(n, int) and not n.is_known:
            raise Unsupported(f"nothing says how large {x.type} is")
        return Elem(i32, b.const(n, I32) if isinstance(n, int) else b.convert("itrunc", sizes.node(b, n), "i32"))

    @staticmethod
    def sharding(x: TensorType, *, out: TensorType, dimension: int) -> str:
        return f"{axis_names(x.rank)}->"

    examples = [
        ((TensorType(f32, (2, 3)),), {"dimension": 1}),
        ((TensorType(f32, (0,)),), {"dimension": 0}),
    ]


@op("broadcast", dialect="hilo", typed=True)
class broadcast:
    """`broadcast_in_dim` of an operand with axes that are known only at run time to be stretched, or not.

    Made by passes/shapes.py, which also checks that the sizes fit.
    """

    @staticmethod
    def infer(x: Type, *, broadcast_dimensions: tuple[int, ...], type: Type) -> Type:  # noqa: A002
        return tensor(type)

    @staticmethod
    def evaluate(x: np.ndarray, *, broadcast_dimensions: tuple[int, ...], type: TensorType) -> np.ndarray:  # noqa: A002
        assert broadcast_in_dim.evaluate is not None
        return broadcast_in_dim.evaluate(x, broadcast_dimensions=broadcast_dimensions, type=type)

    @staticmethod
    def element(
        b: Builder, out: TensorType, index: Indices, x: Operand, *, broadcast_dimensions: tuple[int, ...], **_: Any
    ) -> Elem:
        """A stretched axis is read at its last, and only, index."""
        at = []
        for n, d in zip(x.type.shape, broadcast_dimensions, strict=True):
            if n is out.shape[d] or isinstance(n, int):
                at.append(indices.ZERO if n == 1 else index[d])
            else:
                last = b.sub(sizes.node(b, n), 1)
                at.append(indices.from_node(b, b.smin(indices.node(b, index[d]), last), 0, n))
        return x(at)

    sharding = staticmethod(unsharded)
    examples = [
        ((TensorType(f32, (1, 3)),), {"broadcast_dimensions": (0, 1), "type": TensorType(f32, (2, 3))}),
        ((TensorType(f32, (3,)),), {"broadcast_dimensions": (1,), "type": TensorType(f32, (2, 3))}),
    ]


@op("guards", dialect="hilo")
class guards:
    """What must hold of run-time sizes (`ir.dims.Guard`s) for a call to be valid; checked before the program runs.

    Made by passes/shapes.py; has no operands and no results.
    """

    effect = True

    @staticmethod
    def infer(*, guards: tuple[Guard, ...]) -> Type:
        return Results(())

    @staticmethod
    def evaluate(*, guards: tuple[Guard, ...]) -> tuple[()]:
        return ()

    sharding = staticmethod(unsharded)
    examples = [((), {"guards": ()})]
