"""Scheduling: an order of ops that keeps few bytes alive at a time. Imports ir.

Depth first from the results, the operand that needs most room first (Sethi and Ullman's order for trees); the order
that the program came in stays if it needs no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hilo.ir.dims import typical
from hilo.ir.module import Function
from hilo.ir.op import GET, PARAMETER, Op
from hilo.ir.types import TensorType, result_types
from hilo.rewrite.regions import Effects, Regions

_RENAMES = frozenset(("hilo.get", "stablehlo.reshape", "stablehlo.optimization_barrier", "stablehlo.get_tuple_element"))


def schedule(f: Function) -> Function:
    """`f`, and the regions in it, with ops in an order of low peak memory. Ops with effects keep their order."""
    regions = Regions(schedule)
    new: dict[Op, Op] = {}
    ops: list[Op] = []
    for old in f.ops:
        o = old
        if any(x in new for x in o.operands):
            o = o.with_operands(new.get(x, x) for x in o.operands)
        o = regions.apply(o) if o.kind.full_name in _CONTROL else o
        if o is not old:
            new[old] = o
        ops.append(o)
    if new:
        f = f.replace(ops=ops, results=[new.get(r, r) for r in f.results])
    order = _depth_first(f)
    if order == list(f.ops) or peak_bytes(order, f.results) >= peak_bytes(f.ops, f.results):
        return f
    return f.replace(ops=order)


_CONTROL = frozenset(("stablehlo.while", "stablehlo.if", "stablehlo.case"))


def size_of(o: Op) -> int:
    """Bytes that `o` writes; renames write nothing."""
    if o.kind is PARAMETER or o.kind.full_name in _RENAMES or o.kind.full_name == "stablehlo.constant":
        return 0
    return sum(typical(t.nbytes) for t in result_types(o.type) if isinstance(t, TensorType) and t.size != -1)


def peak_bytes(ops: Sequence[Op], results: Iterable[Op]) -> int:
    """The most bytes that are alive at once when `ops` run in this order; results live to the end."""
    root: dict[Op, Op] = {}
    last: dict[Op, int] = {}
    for i, o in enumerate(ops):
        root[o] = root[o.operands[0]] if o.kind.full_name in _RENAMES and o.operands else o
        last[o] = i
        for x in o.operands:
            last[root[x]] = i
    for r in results:
        last[root[r]] = len(ops)
    ends: list[list[Op]] = [[] for _ in range(len(ops) + 1)]
    for o, i in last.items():
        if root[o] is o:
            ends[i].append(o)
    alive = peak = 0
    for i, o in enumerate(ops):
        alive += size_of(o)
        peak = max(peak, alive)
        alive -= sum(map(size_of, ends[i]))
    return peak


def _depth_first(f: Function) -> list[Op]:
    """Operands before ops, those first that need most room while they are computed."""
    need: dict[Op, int] = {}
    place = {o: i for i, o in enumerate(f.ops)}
    sorted_operands: dict[Op, list[Op]] = {}
    for o in f.ops:
        operands = sorted(dict.fromkeys(o.operands), key=lambda x: (size_of(x) - need[x], place[x]))
        sorted_operands[o] = operands
        held = most = 0
        for x in operands:
            most = max(most, held + need[x])
            held += size_of(x)
        need[o] = max(most, held + size_of(o))
    effects = Effects()
    roots: list[Op] = [o for o in f.ops if o.kind is not PARAMETER and effects.of(o)]
    before: dict[Op, Op] = dict(zip(roots[1:], roots))
    order: dict[Op, None] = dict.fromkeys(f.params)
    stack: list[tuple[Op, bool]] = [(o, False) for o in reversed([*roots, *f.results, *f.ops])]
    while stack:
        o, ready = stack.pop()
        if o in order:
            continue
        if ready:
            order[o] = None
            continue
        stack.append((o, True))
        stack.extend((x, False) for x in reversed(sorted_operands[o]) if x not in order)
        if o in before:
            stack.append((before[o], False))
        elif o.kind is GET and o.operands[0] not in order:
            stack.append((o.operands[0], False))
    return list(order)
