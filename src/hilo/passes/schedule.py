"""Scheduling: an order of ops that keeps few bytes alive at a time. Imports ir and passes.orders.

Several orders are made; the one with the least peak wins, and the program's own if none needs less. Results live to
the end: their memory is there from the beginning, and holds temporaries before (plan/place.py), so that what counts is
the same. What reads a donated argument comes before the op that may be written over it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from hilo.ir.module import Function
from hilo.ir.op import GET, PARAMETER, Op
from hilo.rewrite.regions import Regions

if TYPE_CHECKING:
    from hilo.passes.orders import Flow

ROUNDS: Final = 4
LONG: Final = 20000  # ops from which fewer orders are tried
CONTROL: Final = frozenset(("stablehlo.while", "stablehlo.if", "stablehlo.case"))
SEARCH: Final = 2000  # ops looked at to find out whether one depends on another, before taking it that it does


def schedule(f: Function, donated: Iterable[int] = ()) -> Function:
    """`f`, and the regions in it, with ops in an order of low peak memory. Ops with effects keep their order.
    `donated`: numbers of parameters whose memory results may take."""
    made = [o for o in f.ops if o.kind is not PARAMETER and o.kind is not GET]
    if len(made) <= 1 and not any(o.kind.full_name in CONTROL for o in made):
        return f
    from hilo.passes.orders import Flow, depth_first

    f = _regions(f)
    flow = Flow(f)
    bound = _read_first(flow, donated)
    best = depth_first(flow) if bound else list(range(len(f.ops)))
    best, _ = _improve(flow, best, flow.peak(best))
    if best == list(range(len(f.ops))):
        return f
    return f.replace(ops=[f.ops[i] for i in best])


def _improve(flow: Flow, best: list[int], most: int) -> tuple[list[int], int]:
    """An order that needs less than `best`, which needs `most` bytes, or that one."""
    from hilo.passes.orders import depth_first, eager, greedy

    least = flow.least()
    for make in (depth_first, greedy) if len(best) <= LONG else (depth_first,):
        if most <= least:
            return best, most
        order = make(flow)
        peak = flow.peak(order)
        if peak < most:
            best, most = order, peak
        order, peak = eager(flow, order, peak)
        if peak < most:
            best, most = order, peak
    for _ in range(ROUNDS):
        order, peak = eager(flow, best, most)
        if peak >= most:
            break
        best, most = order, peak
    return best, most


def peak_bytes(ops: Sequence[Op], results: Iterable[Op]) -> int:
    """The most bytes that are alive at once when `ops` run in this order; results live to the end."""
    from hilo.passes.orders import Flow

    f = Function("", [o for o in ops if o.name == "parameter"], list(ops), list(results))
    return Flow(f).peak(range(len(ops)))


def _regions(f: Function) -> Function:
    regions = Regions(schedule)
    new: dict[Op, Op] = {}
    ops: list[Op] = []
    for old in f.ops:
        o = old
        if any(x in new for x in o.operands):
            o = o.with_operands(new.get(x, x) for x in o.operands)
        o = regions.apply(o) if o.kind.full_name in CONTROL else o
        if o is not old:
            new[old] = o
        ops.append(o)
    return f.replace(ops=ops, results=[new.get(r, r) for r in f.results]) if new else f


def _read_first(flow: Flow, donated: Iterable[int]) -> bool:
    """Let ops that read a donated parameter come before the one whose result is written over it, which takes no further
    memory; whether there are any."""
    found = False
    for d in donated:
        p = flow.f.params[d]
        ((value,),) = flow.values[flow.place[p]]
        readers = flow.readers[value]
        writer, result = _writer(flow, readers, p)
        if result is None:
            continue
        flow.bytes[result] = 0
        for r in readers:
            if r != writer and writer not in flow.before[r] and not _depends(flow, r, writer):
                flow.before[writer].append(r)
                found = True
    return found


def _writer(flow: Flow, readers: list[int], p: Op) -> tuple[int, int | None]:
    """The last of `readers` that makes a result of the function of the type of `p`, and that value; or None."""
    for i in reversed(readers):
        for k, v in enumerate(flow.made[i]):
            if flow.in_place[i] and v in flow.kept and flow.bytes[v] and flow.type_of(i, k) is p.type:
                return i, v
    return -1, None


def _depends(flow: Flow, i: int, on: int) -> bool:
    """Whether op `i` comes after op `on` in any order."""
    seen = {i}
    stack = [i]
    while stack:
        for x in flow.before[stack.pop()]:
            if x == on or len(seen) > SEARCH:
                return True
            if x not in seen:
                seen.add(x)
                stack.append(x)
    return False
