"""Narrower control flow: `while`, `if` and `case` without results, carried values and captures that nothing reads.
Imports ir."""

from __future__ import annotations

from hilo.ir.module import Function
from hilo.ir.op import GET, Attrs, Op
from hilo.ir.types import Results
from hilo.rewrite.bodies import Needs, restrict
from hilo.rewrite.regions import CONTROL, Regions, regions


def narrow(f: Function, inner: Regions) -> Function:
    """`f` with `inner` applied to all regions, and its control flow narrowed. `f` has no dead ops."""
    gets: dict[Op, list[Op]] = {}
    for op in f.ops:
        if op.kind is GET:
            gets.setdefault(op.operands[0], []).append(op)
    new: dict[Op, Op] = {}
    kept: list[Op] = []
    for old in f.ops:
        if old in new:
            continue  # a `get` that the narrow op has replaced already
        op = old
        for o in op.operands:
            if o in new:
                op = op.with_operands([new.get(x, x) for x in op.operands])
                break
        op = inner.apply(op)
        if op.kind.full_name in CONTROL:
            several = isinstance(old.type, Results)
            read = {g.attrs["index"] for g in gets.get(old, ())} if several else {0}
            found = _while(op, read) if op.kind.name == "while" else _branches(op, read)
            if found is not None:
                op, position = found
                kept.append(op)
                values = op.results()
                if isinstance(op.type, Results):
                    kept += values
                for g in gets.get(old, ()) if several else ():
                    new[g] = values[position[g.attrs["index"]]]
                if not several:
                    new[old] = values[0]
                continue
        kept.append(op)
        if op is not old:
            new[old] = op
    return f.replace(ops=kept, results=[new.get(r, r) for r in f.results]) if new else f


def _while(op: Op, read: set[int]) -> tuple[Op, dict[int, int]] | None:
    """The narrow `while` and the new positions of its results; None if nothing can go.

    A carried value is needed if its result is read, or if the condition, an effect or another needed value needs it.
    """
    cond, body = op.attrs["cond"], op.attrs["body"]
    n = len(body.results)
    need, condition = Needs(body), Needs(cond)
    condition.mark(cond.results)
    carried: set[int] = set()
    while True:
        wanted = {i for i in read | condition.params | need.params if i < n} - carried
        if not wanted:
            break
        carried |= wanted
        need.mark(body.results[i] for i in sorted(wanted))
    needed = sorted(carried | condition.params | need.params)
    if len(needed) == len(op.operands):
        return None
    results = [i for i in needed if i < n]
    attrs = op.attrs.replace(cond=restrict(cond, needed, [0]), body=restrict(body, needed, results))
    new = op.kind.make([op.operands[i] for i in needed], attrs, op.loc)
    return new, {i: k for k, i in enumerate(results)}


def _branches(op: Op, read: set[int]) -> tuple[Op, dict[int, int]] | None:
    """The narrow `if` or `case` and the new positions of its results; None if nothing can go."""
    branches = list(regions(op))
    results = sorted(read)
    captures: set[int] = set()
    for b in branches:
        need = Needs(b)
        need.mark(b.results[i] for i in results)
        captures |= need.params
    kept = sorted(captures)
    if len(kept) + 1 == len(op.operands) and len(results) == len(branches[0].results):
        return None
    each = [restrict(b, kept, results) for b in branches]
    if op.kind.name == "if":
        attrs: Attrs = op.attrs.replace(true_branch=each[0], false_branch=each[1])
    else:
        attrs = op.attrs.replace(branches=tuple(each))
    return op.kind.make([op.operands[0], *(op.operands[i + 1] for i in kept)], attrs, op.loc), {
        i: k for k, i in enumerate(results)
    }
