"""The largest elements: TopK, mhlo.topk, ApproxTopK, for the interpreter. Imports siblings.

Compiled code knows them as sorts (passes/known_calls.py). Answers are exact, whatever recall a program asks for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cmp_to_key
from typing import Any

import numpy as np

from hilo.custom_calls.registry import register
from hilo.custom_calls.site import CallSite
from hilo.errors import Error
from hilo.ir.dtypes import from_numpy
from hilo.ir.types import TensorType


def keys(x: np.ndarray) -> np.ndarray:
    """Integers in the order of the elements; of floats the total order: NaN above all, -0 below 0."""
    d = from_numpy(x.dtype)
    if not d.is_float:
        return x.astype(np.int64) if d.bits < 64 else x
    bits = x.astype(np.float64).view(np.int64)
    return np.where(bits < 0, bits ^ np.int64(2**63 - 1), bits)


def is_largest(call: CallSite) -> bool:
    """Whether the largest elements are wanted, not the smallest."""
    given = call.attributes or call.more.get("mhlo.attributes") or {}
    return bool(given.get("largest", True))


def top_k(*operands: np.ndarray, results: Sequence[TensorType], call: CallSite) -> list[np.ndarray]:
    """x -> the largest (or smallest) elements along the last axis, and where they are; the first of equal ones wins"""
    if len(operands) != 1 or len(results) != 2:
        raise Error(f"one operand and two results are wanted, not {len(operands)} and {len(results)}")
    x, k = operands[0], int(results[0].shape[-1])
    order = keys(x)
    if is_largest(call):
        order = ~order
    places = np.argsort(order, axis=-1, kind="stable")[..., :k]
    return [np.take_along_axis(x, places, -1), places.astype(results[1].dtype.np)]


def approx_top_k(*operands: np.ndarray, results: Sequence[TensorType], call: CallSite,
                 axis: int | None = None) -> list[np.ndarray]:  # fmt: skip
    """inputs, what is as good as nothing -> the first elements in the order that the call's function gives"""
    n = len(operands) // 2
    inputs, inits = operands[:n], operands[n : 2 * n]
    if not n or len(call.computations) != 1 or len(results) != n:
        raise Error("as many inputs as inits and results, and a function that compares, are wanted")
    axis = int(call.attributes["reduction_dim"]) if axis is None else axis
    before = call.computations[0]

    def compare(row: list[np.ndarray], i: int, j: int) -> int:
        pairs = [np.asarray(v[p]) for v in row for p in (i, j)]
        if before(*pairs)[0]:
            return -1
        swapped = [np.asarray(v[p]) for v in row for p in (j, i)]
        return 1 if before(*swapped)[0] else 0

    rows: list[Any] = [np.moveaxis(x, axis, -1) for x in inputs]
    wholes = [np.full(t.shape, init, t.dtype.np) for t, init in zip(results, inits, strict=True)]
    outs: list[Any] = [np.moveaxis(x, axis, -1) for x in wholes]
    size = min(rows[0].shape[-1], outs[0].shape[-1])
    for at in np.ndindex(rows[0].shape[:-1]):
        row = [r[at] for r in rows]
        order = sorted(range(rows[0].shape[-1]), key=cmp_to_key(lambda i, j, row=row: compare(row, i, j)))[:size]
        for out, values in zip(outs, row, strict=True):
            out[at][:size] = values[order]
    return wholes


def _register() -> None:
    targets: dict[str, Any] = {"TopK": top_k, "mhlo.topk": top_k, "ApproxTopK": approx_top_k}
    for name, function in targets.items():
        register(name, function, builtin=True)


_register()
