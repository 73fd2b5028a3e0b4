"""Asynchronous operations: async_start gives a future, async_done waits for what it holds. Imports ir.

The specification leaves it to an implementation whether anything runs at the same time. The interpreter, and native
code (passes/futures.py), compute at the start: a future's value is the value that it is going to hold.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import f32
from hilo.ir.interpret import run
from hilo.ir.module import Function, region
from hilo.ir.op import GET, PARAMETER
from hilo.ir.registry import op
from hilo.ir.types import FutureType, TensorType, Type, result_types
from hilo.ops.checks import takes, tensors
from hilo.ops.collectives import all_gather
from hilo.ops.sharding import unsharded
from hilo.ops.slicing import slice_

#: The ops that may run asynchronously.
MAY_START: Final = tuple(f"stablehlo.{name}" for name in (
    "all_gather", "all_reduce", "all_to_all", "collective_broadcast", "collective_permute", "collective_reduce",
    "dynamic_slice", "dynamic_update_slice", "reduce_scatter", "slice",
))  # fmt: skip
_T: Final = TensorType(f32, (4, 2))
_ALONE: Final = {"all_gather_dim": 1, "replica_groups": ((0,),), "type": _T}
_ROWS: Final = {"start_indices": (1, 0), "limit_indices": (3, 2), "strides": (1, 1)}


@op("async_start")
class async_start:
    """Begin the one operation in `body`, a collective or a slice, on the operands; the result is a future of its value.

    `body` takes the operands and captures nothing. Spec: async_start.
    """

    @staticmethod
    def infer(*types: Type, body: Function) -> Type:
        started = [o for o in body.ops if o.kind not in (PARAMETER, GET)]
        require(len(started) == 1, "C1", "body has {n} operations beside its return, but must have one", n=len(started))
        name = started[0].kind.full_name
        require(name in MAY_START, "C2", "body starts {o}, but only collectives and slices can be started", o=name)
        xs = tensors(types)
        takes(body, xs, "C3", "body")
        n = len(result_types(started[0].type))
        require(n == 1 and body.results == tuple(started), "C4",
                "body must return the one value of {o}, which gives {n}", o=name, n=n)  # fmt: skip
        return FutureType(tensors(body.result_types, "C4", "body's result"))

    @staticmethod
    def evaluate(*arrays: np.ndarray, body: Function) -> Any:
        return run(body, arrays)[0]

    sharding = staticmethod(unsharded)
    examples = [
        ((_T,), {"body": region([_T], lambda x: slice_(x, **_ROWS))}),
        ((_T,), {"body": region([_T], lambda x: all_gather(x, **_ALONE))}),
    ]


@op("async_done")
class async_done:
    """The value of a future, as soon as it is there. Spec: async_done."""

    @staticmethod
    def infer(future: Type) -> Type:
        if not isinstance(future, FutureType):
            require(False, "I1", "{t} is not a future", t=future)
        assert isinstance(future, FutureType)
        require(len(future) == 1, "C1", "{t} is a future of {n} values, of which none is the result",
                t=future, n=len(future))  # fmt: skip
        return future[0]

    @staticmethod
    def evaluate(future: np.ndarray) -> np.ndarray:
        return future

    sharding = staticmethod(unsharded)
    examples = [((FutureType([_T]),), {})]
