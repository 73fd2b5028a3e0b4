"""Ops about sizes that may be known only at run time. Imports ir, loop."""

from __future__ import annotations

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import f32, i32
from hilo.ir.registry import op
from hilo.ir.types import Dim, TensorType, Type
from hilo.loop.builder import I32, Builder
from hilo.loop.element import Elem
from hilo.ops.checks import tensor
from hilo.ops.elements import Indices, Operand
from hilo.ops.sharding import axis_names


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
        if isinstance(n, Dim):
            raise Unsupported(f"{x.type} has symbolic dimensions, which cannot be compiled yet")
        return Elem(i32, b.const(n, I32))

    @staticmethod
    def sharding(x: TensorType, *, out: TensorType, dimension: int) -> str:
        return f"{axis_names(x.rank)}->"

    examples = [
        ((TensorType(f32, (2, 3)),), {"dimension": 1}),
        ((TensorType(f32, (0,)),), {"dimension": 0}),
    ]
