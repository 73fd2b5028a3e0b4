"""Regions of any kind: an op whose region kernels cannot compute inline becomes a loop over its elements
(passes/element_bodies.py). Imports ir, ops, rewrite.

Kernels take the regions of reduce, sort, scatter ... in one form only: rank-0 values that `Elements` composes, and
captured rank-0 values (`ops.fusion.composes_region`). Branches in a region become selections where that leads there.
Any other region runs as it is, in a `while` over the op's elements that computes what the op means, in the same order
as the interpreter. That is slow, and never refused.
"""

from __future__ import annotations

from hilo.ir.module import Function
from hilo.ir.op import GET, Op
from hilo.ir.types import Results, TensorType, result_types
from hilo.ops.fusion import INLINE, composes_region
from hilo.rewrite.bodies import instantiate
from hilo.rewrite.ops import select
from hilo.rewrite.regions import Effects, Regions, regions, with_regions


def element_loops(f: Function) -> Function:
    """`f`, and the regions in it, without regions that kernels cannot compute; `f` itself if it has none."""
    inner = Regions(element_loops)
    new: dict[Op, Op] = {}
    several: dict[Op, tuple[Op, ...]] = {}  # a loop's values, for an op of several results
    kept: list[Op] = []
    for old in f.ops:
        if old.kind is GET and old.operands[0] in several:
            new[old] = several[old.operands[0]][old.attrs["index"]]
            continue
        o = old
        if any(x in new for x in o.operands):
            o = o.with_operands([new.get(x, x) for x in o.operands])
        o = inner.apply(o)
        if o.kind.full_name in INLINE:
            o = with_regions(o, _chosen)
            if not all(composes_region(r) for r in regions(o)):
                from hilo.passes.element_bodies import LOOPS
                from hilo.passes.element_writer import Writer

                writer = Writer(kept, o.loc)
                results = LOOPS[o.kind.full_name](writer, o)
                if isinstance(old.type, Results):
                    several[old] = tuple(results)
                else:
                    new[old] = results[0]
                continue
        if o is not old:
            new[old] = o
        kept.append(o)
    return f.replace(ops=kept, results=[new.get(r, r) for r in f.results]) if new or several else f


# ---- branches
def _chosen(region: Function) -> Function:
    """`region` with selections for branches, if kernels can compute it then."""
    if composes_region(region) or not any(o.name in ("if", "case") for o in region.ops):
        return region
    flat = _without_branches(region)
    return flat if composes_region(flat) else region


def _without_branches(f: Function) -> Function:
    """`f` with all branches of `if` and `case` computed, and their results selected; those with effects stay."""
    from hilo.passes.element_writer import Writer

    effects = Effects()
    new: dict[Op, Op] = {}
    several: dict[Op, tuple[Op, ...]] = {}
    ops: list[Op] = []
    for old in f.ops:
        if old.kind is GET and old.operands[0] in several:
            new[old] = several[old.operands[0]][old.attrs["index"]]
            continue
        o = old.with_operands([new.get(x, x) for x in old.operands]) if old.operands else old
        plain = all(isinstance(t, TensorType) for t in result_types(o.type))
        if o.name not in ("if", "case") or effects.of(o) or not plain:
            new[old] = o
            ops.append(o)
            continue
        branches = o.attrs["branches"] if o.name == "case" else (o.attrs["true_branch"], o.attrs["false_branch"])
        values: list[tuple[Op, ...]] = []
        for branch in branches:
            copies, results = instantiate(_without_branches(branch), o.operands[1:], o.loc)
            ops += copies
            values.append(results)
        writer = Writer(ops, o.loc)
        out = values[-1]
        for k in range(len(values) - 2, -1, -1):
            pred = o.operands[0] if o.name == "if" else writer.equal(o.operands[0], k)
            out = tuple(writer.add(select(pred, a, b)) for a, b in zip(values[k], out, strict=True))
        if isinstance(o.type, Results):
            several[old] = out
        else:
            new[old] = out[0]
    return f.replace(ops=ops, results=[new.get(r, r) for r in f.results])
