"""The calls of a program into code outside of it, as the native part takes them. Imports custom_calls, ir."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from hilo.custom_calls.registry import Target, call_python
from hilo.custom_calls.site import CallSite, call_site
from hilo.errors import Error
from hilo.ir.connection import connected, connection
from hilo.ir.module import Module
from hilo.ir.op import Op
from hilo.record import replace
from hilo.runtime.foreign import failed, foreign, spec

Call = tuple[Op, Target]  # a custom call and what is behind it


def host_calls(calls: Sequence[Call], module: Module | None) -> list[Any]:
    """One entry for each call, in order. `module` has the functions that calls name. Raises `Error` with the place of a
    call that cannot be made."""
    return [_host(op, target, module) for op, target in calls]


def _host(op: Op, target: Target, module: Module | None) -> Any:
    site = call_site(target.name, op.attrs, [o.type for o in op.operands], op.type, module)
    if target.convention != "python":
        try:
            return foreign(target, site)
        except Error as e:
            raise e.at(op.loc, op.kind.full_name) from None
    g = site.signature
    operands, results = g.operand_tensors(), g.result_tensors()
    caller = python_caller(op, target, site, len(operands))
    return caller, list(map(spec, operands)), list(map(spec, results)), True


def python_caller(op: Op, target: Target, site: CallSite, count: int) -> Callable[..., Sequence[np.ndarray]]:
    """What the native part calls with `count` read-only operands and the places of the results: gives arrays of exactly
    the results' types, or raises with the op and its place. It uses the queues that it is compiled with, if any."""
    queues = connection()
    is_open = any(not isinstance(d, int) for t in site.results for d in t.shape)
    shares = bool(site.signature.aliases) or "out" in target.keywords

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


def failure(calls: Sequence[Call]) -> Callable[[int, int, str], Error]:
    """Gives the error of a call in native code: (number of the call, status, what the code says) -> `Error`."""

    def explain(index: int, status: int, message: str) -> Error:
        op, target = calls[index]
        return failed(target.name, message or f"it ended with status {status}").at(op.loc, op.kind.full_name)

    return explain
