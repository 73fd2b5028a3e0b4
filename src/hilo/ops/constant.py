"""The constant. Imports ir."""

from __future__ import annotations

import numpy as np

from hilo.ir.op import Array
from hilo.ir.registry import op
from hilo.ir.types import Type
from hilo.ops.sharding import unsharded


@op("constant")
class constant:
    """A tensor known at compile time: `value`, an `Array` of any element type and shape. Spec: constant."""

    @staticmethod
    def infer(*, value: Array) -> Type:
        return value.type

    @staticmethod
    def evaluate(*, value: Array) -> np.ndarray:
        return value.data

    sharding = unsharded
    examples = lambda: [
        ((), {"value": Array(np.arange(6, dtype=np.float32).reshape(2, 3))}),
        ((), {"value": Array(np.int32(-7))}),
        ((), {"value": Array(np.float32(-0.0), (2, 2))}),
        ((), {"value": Array(np.zeros((0, 2), np.int32))}),
    ]
