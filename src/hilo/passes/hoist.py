"""Loop-invariant code: what a `while` computes from captured values alone is computed once, before it. Imports ir,
rewrite.

A hoisted value is kept in memory across the loop, so that only ops that compute something, and do not blow up their
operands (a broadcast does), are moved; what they need goes along.
"""

from __future__ import annotations

from typing import Final

from hilo.ir.module import Function, parameter
from hilo.ir.op import PARAMETER, Op
from hilo.ir.types import TensorType, Type
from hilo.rewrite.regions import Effects, Regions

#: Ops that cost nothing where they are: addressing, or a value known anyway.
_FREE: Final = ("bitcast_convert", "broadcast_in_dim", "constant", "iota", "reshape", "reverse", "slice", "get")


def hoist(f: Function) -> Function:
    """`f` with the invariant code of its loops, inner ones first, moved before them; `f` itself if there is none."""
    inner = Regions(hoist)
    new: dict[Op, Op] = {}
    kept: list[Op] = []
    for old in f.ops:
        op = old
        for o in op.operands:
            if o in new:
                op = op.with_operands([new.get(x, x) for x in op.operands])
                break
        op = inner.apply(op)
        if op.kind.full_name == "stablehlo.while":
            op = _hoist(op, kept)
        kept.append(op)
        if op is not old:
            new[old] = op
    return f.replace(ops=kept, results=[new.get(r, r) for r in f.results]) if new else f


def _hoist(loop: Op, out: list[Op]) -> Op:
    """The `while` without its invariant code, which goes to the end of `out`."""
    n = len(loop.attrs["body"].results)
    moved: list[Op] = []  # values computed before the loop
    regions: dict[str, tuple[Function, dict[Op, int]]] = {}  # region, and the new capture that each hoisted op becomes
    for name in ("cond", "body"):
        f: Function = loop.attrs[name]
        outside = dict(zip(f.params[n:], loop.operands[n:], strict=True))
        captures: dict[Op, int] = {}
        hoisted = _worth_moving(f, n)
        used = {x for op in f.ops if op not in hoisted for x in op.operands} | set(f.results)  # inside the loop
        for op in f.ops:
            if op in hoisted:
                copy = Op(op.kind, tuple([outside[x] for x in op.operands]), op.attrs, op.type, op.loc)
                outside[op] = copy
                out.append(copy)
                if op in used:
                    captures[op] = len(loop.operands) + len(moved)
                    moved.append(copy)
        regions[name] = (f, captures)
    if not moved:
        return loop
    types: list[Type] = [o.type for o in (*loop.operands, *moved)]
    changed = {name: _with_captures(f, captures, types) for name, (f, captures) in regions.items()}
    return loop.kind.make((*loop.operands, *moved), loop.attrs.replace(**changed), loop.loc)


def _worth_moving(f: Function, n: int) -> set[Op]:
    """The invariant ops of a loop's region that are worth moving, and what those need. `n`: how many values are
    carried."""
    effects = Effects()
    invariant: set[Op] = set(f.params[n:])
    worth: list[Op] = []
    for op in f.ops:
        if op.kind is PARAMETER or op.kind.name in ("while", "rng_bit_generator") or effects.of(op):
            continue
        if all(x in invariant for x in op.operands):
            invariant.add(op)
            if op.kind.name not in _FREE and _elements(op) <= max(map(_elements, op.operands), default=0):
                worth.append(op)
    found: set[Op] = set()
    stack = worth
    while stack:
        op = stack.pop()
        if op.kind is not PARAMETER and op not in found:
            found.add(op)
            stack += op.operands
    return found


def _elements(op: Op) -> int:
    return op.type.size if isinstance(op.type, TensorType) else 0


def _with_captures(f: Function, captures: dict[Op, int], types: list[Type]) -> Function:
    """`f` with further parameters, of `types`, and its ops in `captures` replaced by those."""
    params = [*f.params, *(parameter(i, t) for i, t in enumerate(types) if i >= len(f.params))]
    new: dict[Op, Op] = {op: params[i] for op, i in captures.items()}
    ops = list(params)
    for op in f.ops[len(f.params) :]:
        if op in new:
            continue
        changed = op.with_operands([new.get(x, x) for x in op.operands]) if any(x in new for x in op.operands) else op
        ops.append(changed)
        if changed is not op:
            new[op] = changed
    return f.replace(params=params, ops=ops, results=[new.get(r, r) for r in f.results])
