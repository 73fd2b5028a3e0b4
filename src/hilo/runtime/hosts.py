"""The calls of a program into code outside of it, as the native part takes them. Imports custom_calls, ir."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from hilo.custom_calls.registry import Target, call_python
from hilo.custom_calls.signature import signature_of
from hilo.custom_calls.site import CallSite, call_site
from hilo.errors import Error
from hilo.ir.host import connected, connection
from hilo.ir.module import Module
from hilo.ir.op import Op
from hilo.ir.types import TensorType


def host_calls(calls: Iterable[tuple[Op, Target]], module: Module | None) -> list[Any]:
    """One entry for each call of a target by an op, in order. `module` has the functions that calls name."""
    return [_python(op, target, module) for op, target in calls]


def spec(t: TensorType) -> tuple[np.dtype, tuple[int, ...]]:
    """A tensor's dtype and shape for the native part; -1: known at run time."""
    return t.dtype.np, tuple(n if isinstance(n, int) else -1 for n in t.shape)


def _python(op: Op, target: Target, module: Module | None) -> Any:
    """A Python function: the native part calls it with read-only operands, then the places of the results."""
    operands, results = ([spec(t) for t in types if t is not None] for types in leaf_types(op))
    return python_caller(op, target, len(operands), module), operands, results, True


def python_caller(op: Op, target: Target, count: int, module: Module | None) -> Callable[..., Sequence[np.ndarray]]:
    """What the native part calls with `count` operands and the places of the results: gives arrays of exactly the
    results' types, or raises with the op and its place. It uses the queues that it is compiled with, if any."""
    site, queues = call_site(target.name, op.type, op.attrs, module), connection()
    is_open = any(not isinstance(d, int) for t in site.results for d in t.shape)
    shares = bool(aliases(op)) or "out" in target.keywords

    def call(*arrays: np.ndarray) -> Sequence[np.ndarray]:
        operands, places = arrays[:count], arrays[count:]
        now = site
        if is_open:
            now = replace(site, results=tuple(t.with_shape(p.shape) for t, p in zip(site.results, places, strict=True)))
        try:
            with nullcontext() if queues is None else connected(queues):
                results = call_python(target, now, operands, places)
        except Error as e:
            raise e.at(op.loc, op.kind.full_name) from e.__cause__
        return _apart(results, places) if shares else results

    return call


def _apart(results: Sequence[np.ndarray], places: Sequence[np.ndarray]) -> list[np.ndarray]:
    """`results`, copied where writing one to its place would change another."""
    out = []
    for i, r in enumerate(results):
        others = [p for j, p in enumerate(places) if j != i]
        out.append(r.copy() if any(np.may_share_memory(r, p) for p in others) else r)
    return out
