"""Targets that work on one matrix, made to work on batches of them. Imports ir, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from hilo.errors import Error
from hilo.ir.types import TensorType

#: `f(attributes, like, *matrices) -> results`: the work on one matrix of each operand. `like` are arrays of zeros of
#: the types of one matrix's results, which those that are not asked for may stay.
One = Callable[..., Sequence[Any]]


def batched(one: One, rank: int = 2, whole: int = -1) -> Callable[..., list[np.ndarray]]:
    """A Python target that runs `one` on every matrix of a batch.

    rank, whole    how many axes of operand number `whole` are its own; the axes before them are the batch's, and all
                   operands and results have them
    """

    def target(*operands: Any, results: Sequence[TensorType], attributes: Mapping[str, Any]) -> list[np.ndarray]:
        lead = operands[whole].ndim - rank
        batch = operands[whole].shape[:lead] if lead >= 0 else None
        if batch is None or any(x.shape[:lead] != batch for x in (*operands, *results)):
            shapes = [list(x.shape) for x in operands]
            raise Error(f"operands {shapes} and results {list(results)} are no batches alike")
        outs = [np.zeros((prod(batch), *t.shape[lead:]), t.dtype.np) for t in results]
        matrices = [x.reshape(prod(batch), *x.shape[lead:]) for x in operands]
        for i in range(prod(batch)):
            like = [out[i] for out in outs]
            values = one(attributes, like, *(m[i] for m in matrices))
            if len(values) < len(outs):
                raise Error(f"{len(outs)} results are wanted, but there are {len(values)}")
            for out, value in zip(outs, values, strict=False):
                if np.shape(value) != out.shape[1:]:
                    raise Error(f"a result is {list(np.shape(value))}, but {list(out.shape[1:])} is wanted")
                out[i] = value
        return [out.reshape(t.shape) for out, t in zip(outs, results, strict=True)]

    return target
