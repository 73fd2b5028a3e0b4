"""Common subexpressions: keep one of several equal ops. Imports ir, rewrite.regions, rewrite (what commutes)."""

from __future__ import annotations

from typing import Any

from hilo.ir.module import Function
from hilo.ir.op import PARAMETER, Op
from hilo.rewrite.pattern import COMMUTATIVE
from hilo.rewrite.regions import Effects, Regions


def cse(f: Function) -> Function:
    """Merge ops of the same kind, operands (in either order where they commute), attributes and type; regions too.

    Ops with effects are never merged. Equal regions are equal attributes, so that equal reductions merge as well.
    """
    inner, effects = Regions(cse), Effects()
    first: dict[Any, Op] = {}
    new: dict[Op, Op] = {}
    kept: list[Op] = []
    for old in f.ops:
        op = old
        for o in op.operands:
            if o in new:
                op = op.with_operands([new.get(x, x) for x in op.operands])
                break
        op = inner.apply(op)
        if op.kind is PARAMETER or effects.of(op):
            same = op
        else:
            operands = op.operands
            if op.kind.full_name in COMMUTATIVE and id(operands[0]) > id(operands[1]):  # any order: keys only compare
                operands = operands[::-1]
            same = first.setdefault((op.kind, operands, op.attrs, op.type), op)
        if same is op:
            kept.append(op)
        if same is not old:
            new[old] = same
    return f.replace(ops=kept, results=[new.get(r, r) for r in f.results]) if new else f
