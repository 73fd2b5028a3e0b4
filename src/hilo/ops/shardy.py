"""Ops of Shardy (`sdy`) that say how values are spread over devices. On one device they are the value itself.

Attributes are kept as their MLIR text, for whoever divides the program. Imports ir, ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import f32
from hilo.ir.interpret import run
from hilo.ir.module import Function, region
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import Results, TensorType, Type, result_types
from hilo.ops.checks import gives, one_or_tuple, takes, tensor, tensors
from hilo.ops.elementwise_base import pointwise
from hilo.ops.sharding import unsharded

_F32 = TensorType(f32, (2, 3))


class _Same:
    """What the ops that only mark a value share."""

    @staticmethod
    def infer(x: Type, **_: Any) -> Type:
        return tensor(x)

    @staticmethod
    def evaluate(x: np.ndarray, **_: Any) -> np.ndarray:
        return x

    @staticmethod
    def expand(x: Op, **_: Any) -> Op:
        return x

    sharding = pointwise


@op("sharding_constraint", dialect="sdy")
class sharding_constraint(_Same):
    """The operand, which should be sharded as `sharding` (text) says. Source: Shardy."""

    examples = [((_F32,), {"sharding": "#sdy.sharding<@mesh, [{}, {}]>"})]


@op("reshard", dialect="sdy")
class reshard(_Same):
    """The operand, from here on sharded as `sharding` (text) says. Source: Shardy."""

    examples = [((_F32,), {"sharding": "#sdy.sharding<@mesh, [{}, {}]>"})]


@op("propagation_barrier", dialect="sdy")
class propagation_barrier(_Same):
    """The operand; shardings pass in the `allowed_direction` (text) alone. Source: Shardy."""

    examples = [((_F32,), {"allowed_direction": "NONE"})]


@op("data_flow_edge", dialect="sdy")
class data_flow_edge(_Same):
    """The operand; ties what an op with regions takes, gives and holds to one `sharding` (text). Source: Shardy."""

    attrs = {"sharding": None}
    examples = [((_F32,), {})]


@op("sharding_group", dialect="sdy")
class sharding_group:
    """Says that the operand is sharded like all others of the group `group_id`; no results. Source: Shardy."""

    @staticmethod
    def infer(x: Type, *, group_id: int) -> Type:
        tensor(x)
        return Results([])

    @staticmethod
    def evaluate(x: np.ndarray, *, group_id: int) -> tuple[()]:
        return ()

    @staticmethod
    def expand(x: Op, *, group_id: int) -> tuple[()]:
        return ()

    sharding = unsharded
    examples = [((_F32,), {"group_id": 3})]


def check_whole(types: Sequence[Type], result: Type, body: Function) -> None:
    """Raise `Unsupported` for a computation whose body works on parts, as each of several devices does."""
    if tuple(types) != body.param_types or result_types(result) != body.result_types:
        raise Unsupported(
            f"a computation on parts {body.param_types} of {tuple(types)} is for several devices; hilo runs on one"
        )


@op("manual_computation", dialect="sdy", typed=True)
class manual_computation:
    """`body` on each device's part of the operands, along the `manual_axes` of a mesh.

    `in_shardings` and `out_shardings` (texts) say how operands and results are divided. On one device the parts are
    the whole; bodies that work on smaller parts verify, but do not run. Source: Shardy.
    """

    @staticmethod
    def infer(*types: Type, in_shardings: str, out_shardings: str, manual_axes: str, body: Function,
              type: Type) -> Type:  # noqa: A002  # fmt: skip
        for what, wholes, parts in (("operand", tensors(types), body.param_types),
                                    ("result", tensors(result_types(type)), body.result_types)):  # fmt: skip
            n = len(parts)
            require(n == len(wholes), "", "{n} parts for {m} {w}s", n=n, m=len(wholes), w=what)
            for whole, part in zip(wholes, tensors(parts), strict=True):
                ok = whole.rank == part.rank and whole.dtype is part.dtype
                require(ok, "", "{p} is no part of the {w} {t}", p=part, w=what, t=whole)
        return type

    @staticmethod
    def evaluate(*arrays: np.ndarray, body: Function, type: Type, **_: Any) -> Any:  # noqa: A002
        whole = [p.tensor.with_shape(a.shape) for p, a in zip(body.params, arrays, strict=True)]
        check_whole(whole, type, body)
        return one_or_tuple(run(body, arrays))

    sharding = unsharded
    examples = [
        ((_F32,), {"in_shardings": "#sdy.sharding_per_value<[<@mesh, [{}, {}]>]>",
                   "out_shardings": "#sdy.sharding_per_value<[<@mesh, [{}, {}]>]>",
                   "manual_axes": "#sdy<manual_axes{}>", "body": region([_F32], lambda x: x), "type": _F32}),
    ]  # fmt: skip


@op("named_computation", dialect="sdy", typed=True)
class named_computation:
    """`body` on the operands, under a `name`: a call whose function stands in place. Source: Shardy."""

    attrs = {"in_shardings": None, "out_shardings": None}

    @staticmethod
    def infer(*types: Type, name: str, in_shardings: str | None, out_shardings: str | None, body: Function,
              type: Type) -> Type:  # noqa: A002  # fmt: skip
        takes(body, types, "", "body")
        gives(body, result_types(type), "", "body")
        return type

    @staticmethod
    def evaluate(*arrays: np.ndarray, body: Function, **_: Any) -> Any:
        return one_or_tuple(run(body, arrays))

    sharding = unsharded
    examples = [((_F32,), {"name": "f", "body": region([_F32], lambda x: x), "type": _F32})]
