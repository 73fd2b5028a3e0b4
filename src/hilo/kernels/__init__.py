"""Strategies that turn one op of a fused function into loop nests. Imports ops and loop; never a backend.

`lower(op, target)` looks the op up in `STRATEGIES`; an op without an entry there that is computed element by element
gets the loop kernel of a fusion of one op.
"""

from __future__ import annotations

import sys
from _thread import allocate_lock
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from hilo.errors import Unsupported
from hilo.ir.op import Op
from hilo.kernels import pins
from hilo.kernels.lowered import Lowered, Phase
from hilo.loop.helpers import with_helpers

if TYPE_CHECKING:
    from hilo.backend.target import Target

__all__ = ["STRATEGIES", "Lowered", "Phase", "lower"]

# Full op name -> "module:function", a function `(op, target) -> Lowered`; loaded when first used.
STRATEGIES: dict[str, str] = {
    "hilo.fusion": "hilo.kernels.fusion:lower",
    "stablehlo.constant": "hilo.kernels.fusion:lower_bare",
    "stablehlo.reduce": "hilo.kernels.fusion:lower_bare",
    "stablehlo.transpose": "hilo.kernels.transpose:lower",
    "stablehlo.concatenate": "hilo.kernels.copies:concatenate",
    "stablehlo.dynamic_update_slice": "hilo.kernels.copies:dynamic_update_slice",
    "stablehlo.scatter": "hilo.kernels.scatter:lower",
    "stablehlo.rng_bit_generator": "hilo.kernels.random:lower",
    "stablehlo.dot_general": "hilo.kernels.contraction:lower",
    "stablehlo.dot": "hilo.kernels.contraction:lower",
    "stablehlo.convolution": "hilo.kernels.convolution:lower",
    "stablehlo.reduce_window": "hilo.kernels.window:lower",
    "stablehlo.select_and_scatter": "hilo.kernels.select_scatter:lower",
    "stablehlo.fft": "hilo.kernels.fft:lower",
    "stablehlo.sort": "hilo.kernels.sort:lower",
    "chlo.top_k": "hilo.kernels.top_k:lower",
    "stablehlo.cholesky": "hilo.kernels.linalg:cholesky",
    "stablehlo.triangular_solve": "hilo.kernels.linalg:triangular_solve",
}


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of `op`. Raises `Unsupported` (with the op and its location) for an op that has none yet."""
    module, name = STRATEGIES.get(op.kind.full_name, "hilo.kernels.fusion:lower_bare").split(":")
    strategy: Callable[[Op, Target], Lowered] = getattr(import_module(module), name)
    try:
        with _deep_stack(), pins.kernel_of(op) as choices:
            return complete(strategy(op, target), choices)
    except RecursionError:
        raise Unsupported("so many ops in one kernel are too many; a lower HILO_FUSION_OPS makes smaller ones",
                          loc=op.loc, op=op.kind.full_name) from None  # fmt: skip


def complete(lowered: Lowered, choices: Mapping[str, pins.Choice]) -> Lowered:
    """The kernel with all functions that its own call, and the choices that were made for it."""
    for phase in lowered.phases:
        phase.helpers = with_helpers([phase.func, *phase.helpers])[1:]
    lowered.choices = tuple(choices.values())
    return lowered


DEPTH = 6000  # of calls: a fusion's elements are closures that call each other, up to six calls for each op of a chain
_lock = allocate_lock()
_inside = 0
_before = 0


@contextmanager
def _deep_stack() -> Iterator[None]:
    """Python's own limit is too low for a chain of 512 ops (the default of HILO_FUSION_OPS); it is restored when the
    last thread leaves."""
    global _inside, _before
    with _lock:
        if not _inside:
            _before = sys.getrecursionlimit()
            sys.setrecursionlimit(max(_before, DEPTH))
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                sys.setrecursionlimit(_before)
