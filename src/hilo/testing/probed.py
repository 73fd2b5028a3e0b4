"""Probes in programs that check what probes write: run with them once, and without them. Imports ir.

Only the interpreter has probes. A program is run once with them, into files, which are read back; what is then run in
all ways is the program without them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from hilo.ir import probes
from hilo.ir.interpret import run
from hilo.ir.module import Function, Module, topological
from hilo.ir.op import Op
from hilo.rewrite.regions import Regions

PROBE = "interpreter.probe"


def written(module: Module, f: Function, roots: Sequence[Op], wanted: Sequence[tuple[str, int]]) -> list[np.ndarray]:
    """What the probes in what `roots` need of `f`, and `f`'s own, write: values by probe's id and number of the turn.

    Raises `Error` where there is no such value.
    """
    roots = [*roots, *(o for o in f.ops if o.kind.full_name == PROBE)]
    with TemporaryDirectory() as directory, probes.recording(probes.Probes(directory)):
        run(Function("probed", f.params, topological(roots, f.params), roots), [], module)
        return [probes.read(Path(directory), *which) for which in wanted]


def without_probes(f: Function) -> Function:
    """`f` with the operands of its probes in their places, in its regions too; `f` itself if there are none."""
    inner = Regions(without_probes)
    new: dict[Op, Op] = {}
    kept: list[Op] = []
    for old in f.ops:
        op = old.with_operands([new.get(x, x) for x in old.operands]) if any(x in new for x in old.operands) else old
        if op.kind.full_name == PROBE:
            new[old] = op.operands[0]
            continue
        op = inner.apply(op)
        if op is not old:
            new[old] = op
        kept.append(op)
    return f.replace(ops=kept, results=[new.get(r, r) for r in f.results]) if new else f
