"""Running a scalar region (the body of a reduce, scatter ...) on many elements at once. Imports ir."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.ir.module import Function, parameter
from hilo.ir.op import PARAMETER, Array, Op
from hilo.ir.types import TensorType, any_quantized
from hilo.later import Later

if TYPE_CHECKING:
    from hilo.ir import interpret
else:
    interpret = Later("hilo.ir.interpret")


def apply(
    body: Function, operands: Sequence[np.ndarray], captured: Sequence[np.ndarray], shape: tuple[int, ...]
) -> list[np.ndarray]:
    """The results of a rank-0 region for every element of `operands` (of `shape`); `captured` are the same for all."""
    wide = widened(body, shape, len(captured))
    if wide is not None:
        return interpret.run(wide, [*operands, *(np.broadcast_to(c, shape) for c in captured)])
    out = [np.empty(shape, r.dtype.np) for r in body.results]
    one_by_one = interpret.prepared(body)
    for at in np.ndindex(shape):
        results = one_by_one([*(np.asarray(x[at]) for x in operands), *captured])
        for whole, one in zip(out, results, strict=True):
            whole[at] = one
    return out


@lru_cache(maxsize=256)
def widened(body: Function, shape: tuple[int, ...], captures: int = 0) -> Function | None:
    """A region of rank-0 elementwise ops as a function on tensors of `shape`; None for any other region."""
    new: dict[Op, Op] = {}
    for o in body.ops:
        if not isinstance(o.type, TensorType) or o.type.rank:
            return None
        t = o.type.with_shape(shape)
        if o.kind is PARAMETER:
            new[o] = parameter(o.attrs["index"], t)
        elif o.kind.name == "constant":
            new[o] = o.with_attrs(value=Array(o.attrs["value"].data, shape))
        elif o.kind.scalar is not None or _keeps_width(o):
            attrs: dict[str, Any] = {"type": t} if o.kind.typed or "type" in o.attrs else {}
            new[o] = o.kind.make([new[x] for x in o.operands], o.attrs.replace(**attrs), o.loc)
        else:
            return None
    return Function(
        body.name, [new[p] for p in body.params], [new[o] for o in body.ops], [new[r] for r in body.results]
    )


def inlined(body: Function, operands: Sequence[Op]) -> list[Op]:
    """The results of `body` on `operands`, as ops of the function that is being made."""
    new = dict(zip(body.params, operands, strict=True))
    for o in body.ops:
        if o.kind is not PARAMETER:
            new[o] = o.with_operands([new[x] for x in o.operands])
    return [new[r] for r in body.results]


def _keeps_width(o: Op) -> bool:
    """Whether `o` reinterprets each element as one of the same width."""
    return o.kind.full_name == "stablehlo.bitcast_convert" and o.dtype.bits == o.operands[0].dtype.bits


def sole_op(body: Function, captures: int = 0) -> str:
    """The name of the op if the region is one op on its two parameters, in any order (e.g. "add"), else "".

    Also "" for quantized numbers, of which stored integers do not combine as the name says.
    """
    if captures or len(body.params) != 2 or len(body.results) != 1 or any_quantized(body.result_types):
        return ""
    r = body.results[0]
    return (
        r.kind.name
        if len(r.operands) == 2 and set(r.operands) == set(body.params) and r.kind.scalar is not None
        else ""
    )
