"""Sizes to try a program of run-time sizes at. Imports ir, passes.shapes, passes.stages."""

from __future__ import annotations

import numpy as np

from hilo.ir import dims
from hilo.ir.dims import Atom, Guard, Number
from hilo.ir.module import Function, Module
from hilo.ir.types import TensorType, result_types
from hilo.passes.shapes import Refiner, parameters
from hilo.passes.stages import stages


def example_sizes(f: Function, size: int, module: Module | None = None) -> list[tuple[TensorType, np.ndarray | None]]:
    """For each argument of `f` its type where every free size is `size`, and its value, if it holds sizes or what is
    checked with them.

    `f` is a function before `refine`, without calls. Sizes that follow from others do; a program may still refuse them.
    """
    f = stages(f, module)[0].function  # takes all arguments
    known: dict[Atom, Number] = {}
    guards: list[Guard] = []
    while True:
        r = Refiner(known, module)
        params = parameters(f, r)
        out = r.function(f, params)
        again = r.solve()
        known = r.known
        guards += r.guards
        if not again:
            break
    types = [t for o in out.ops for t in result_types(o.type) if isinstance(t, TensorType)]
    used = {a for t in types for d in t.shape for a in dims.symbols(d)}
    checked = {a for g in guards for a in dims.symbols(g.condition)}

    def number(n: Number, other: int) -> int:
        """`n` where sizes are `size` and integers that are no sizes `other`."""
        return dims.evaluate(r.now(n), lambda a: min(size, a.hi) if a in used or a.source[0] == "axis" else other)  # type: ignore[index]

    other = next((x for x in (size, 0) if all(number(g.condition, x) for g in guards)), 0)
    found: list[tuple[TensorType, np.ndarray | None]] = []
    for i, p in enumerate(params):
        t = p.tensor
        shape = [number(d, other) for d in t.shape]
        elements = [dims.element(i, k) for k in range(t.size)] if p in r.values else []
        matters = any(dims.symbol_of(n) in {*known, *used, *checked} for n in elements)
        value = np.array([number(n, other) for n in elements]).astype(t.dtype.np).reshape(shape) if matters else None
        found.append((t.with_shape(shape), value))
    return found
