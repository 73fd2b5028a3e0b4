"""Dead code: drop ops that no result and no effect needs. Imports ir, rewrite.regions, passes.narrow."""

from __future__ import annotations

from hilo.ir.module import Function
from hilo.ir.op import PARAMETER
from hilo.rewrite.regions import CONTROL, Effects, Regions, each_region


def dce(f: Function) -> Function:
    """`f` without ops that nothing needs, in regions too; `while`, `if` and `case` lose results and captures that
    nothing reads.

    Parameters and ops with effects stay.
    """
    f = _drop(f)
    if any(o.kind.full_name in CONTROL for o in f.ops):
        from hilo.passes.narrow import narrow

        return _drop(narrow(f, Regions(dce)))
    return each_region(f, Regions(dce))


def _drop(f: Function) -> Function:
    effects = Effects()
    live = set(f.results)
    for op in reversed(f.ops):
        if op in live or op.kind is PARAMETER or effects.of(op):
            live.add(op)
            live.update(op.operands)
    if len(live) == len(f.ops):
        return f
    return f.replace(ops=[op for op in f.ops if op in live])
