"""Rematerialisation: values are computed again late instead of being kept over the worst moment. Imports ir, ops and
passes.orders.

What is alive at the peak, is not read there, and is cheap to make from values that are alive anyway (elementwise
chains, broadcasts, activations, normalizations) is made again before its next use. The same kernels run on the same
values: results keep their bits. Contractions, sorts, control flow and ops with effects never run twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hilo.ir.module import Function, parameter
from hilo.ir.op import GET, Op
from hilo.ir.types import Results
from hilo.ops.fusion import fusion
from hilo.passes.orders import Flow, Run
from hilo.record import field, record
from hilo.rewrite.regions import Effects

CHEAP: Final = frozenset(
    (
        "iota", "broadcast_in_dim", "broadcast", "slice", "reverse", "transpose", "pad", "concatenate", "constant",
        "dynamic_slice", "gather", "reduce",
    )
)  # fmt: skip
CHAIN: Final = 16  # ops that are run again for one value
TRIES: Final = 16  # candidates tried at one peak
MOST: Final = 4000  # values computed again in one program


def recompute(f: Function, limit: int, donated: Iterable[int] = ()) -> Function:
    """`f` with values computed again, so that what is alive besides its results is at most `limit` bytes at any time,
    or as little as can be reached. Parameters numbered in `donated` are read no later than before."""
    donated = tuple(donated)
    state = _State(f, donated)
    for _ in range(MOST):
        if state.peak - state.results <= limit:
            break
        better = state.lower()
        if better is None:
            break
        state = better
    return state.f


class _State:
    """A function, what is alive at each of its ops, and where that is most."""

    def __init__(self, f: Function, donated: tuple[int, ...]) -> None:
        self.f = f
        self.donated = donated
        self.flow = flow = Flow(f)
        self.given = {v for d in donated for v in flow.made[flow.place[f.params[d]]]}
        run = Run(flow)
        self.tops: list[int] = []
        for i in range(len(f.ops)):
            self.tops.append(run.top(i))
            run.take(i)
        self.peak = max(self.tops, default=0)
        self.at = self.tops.index(self.peak) if self.tops else 0
        self.results = sum(flow.bytes[v] for v in flow.kept)
        self.maker = {v: i for i, made in enumerate(flow.made) for v in made}
        self.last = [len(f.ops) if v in flow.kept else max(r, default=-1) for v, r in enumerate(flow.readers)]
        self.effects = Effects()
        self.makers: dict[int, Op | None] = {}

    def rank(self) -> tuple[int, int]:
        """Less is better: the peak, and how often it is reached."""
        return self.peak, self.tops.count(self.peak)

    def lower(self) -> _State | None:
        """The state after computing one value again that lowers the peak, or None."""
        found = []
        for v, i in self.maker.items():
            if i >= self.at or self.last[v] <= self.at or v in self.flow.kept or not self.flow.bytes[v]:
                continue
            reads = self.flow.readers[v]
            if self.at in reads:
                continue
            until = min(r for r in reads if r > self.at)
            chain = self._chain(v, until)
            if chain is None:
                continue
            gain = self.flow.bytes[v] - chain.kept
            if gain > 0:
                found.append((gain, chain.work, v, until, chain))
        most = max((gain for gain, *_ in found), default=0)
        found = [x for x in found if 8 * x[0] >= most]
        found.sort(key=lambda x: (-x[0] / (x[1] + 1), x[2]))
        for _, _, v, until, chain in found[:TRIES]:
            state = _State(self._with(v, until, chain.makers), self.donated)
            if state.rank() < self.rank():
                return state
        return None

    def _chain(self, v: int, until: int) -> _Chain | None:
        """What makes value `v` again before op `until`; None if it is too much."""
        chain = _Chain()
        stack = [v]
        while stack:
            w = stack.pop()
            if w in chain.makers:
                continue
            maker = self._again(w)
            if maker is None or len(chain.makers) >= CHAIN:
                return None
            chain.makers[w] = maker
            chain.work += self.flow.bytes[w]
            for u in self._values(maker):
                chain.work += self.flow.bytes[u]
                if u in self.given and self.last[u] < until:
                    return None
                if not self.flow.bytes[u] or self.last[u] >= until:
                    continue
                if self._again(u) is not None:
                    stack.append(u)
                elif self.last[u] < self.at:
                    chain.kept += self.flow.bytes[u]
        return chain

    def _values(self, o: Op) -> list[int]:
        """The values that the operands of `o` hold."""
        slots = (self.flow.values[self.flow.place[x]] for x in o.operands)
        return list(dict.fromkeys(v for slot in slots for vs in slot for v in vs))

    def _again(self, v: int) -> Op | None:
        """An op that makes value `v` once more, if that is cheap."""
        if v not in self.makers:
            o = self.f.ops[self.maker[v]]
            self.makers[v] = _part(o, self.flow.made[self.maker[v]].index(v)) if self._is_cheap(o) else None
        return self.makers[v]

    def _is_cheap(self, o: Op) -> bool:
        if o.kind.full_name == "hilo.fusion":
            return o.attrs["kind"] in ("loop", "rows")
        return (o.kind.scalar is not None or o.name in CHEAP) and not self.effects.of(o)

    def _with(self, v: int, until: int, makers: dict[int, Op]) -> Function:
        """`f` in which `makers` run before op `until`, for all readers of value `v` from there on."""
        flow = self.flow
        new: dict[int, Op] = {}  # values made again
        renamed: dict[Op, Op] = {}
        added: list[Op] = []

        def now(x: Op) -> Op:
            """`x`, or what it is if values are made again; renames are made again, too."""
            i = flow.place[x]
            values = [w for slot in flow.values[i] for w in slot]
            if not any(w in new for w in values):
                return x
            if not flow.rename[i] or (x.kind is GET and not flow.rename[flow.place[x.operands[0]]]):
                return new[values[0]]
            if x not in renamed:
                renamed[x] = x.with_operands([now(y) for y in x.operands])
                added.append(renamed[x])
            return renamed[x]

        for w in sorted(makers):  # numbered in the order of the program
            o = makers[w].with_operands([now(x) for x in makers[w].operands])
            added.append(o)
            if isinstance(o.type, Results):
                o = o.results()[flow.made[self.maker[w]].index(w)]
                added.append(o)
            new[w] = o
        ops: list[Op] = []
        late: dict[Op, Op] = {}  # readers, and what depends on them
        for i, o in enumerate(self.f.ops):
            reads = i >= until and v in flow.used[i]
            if reads or any(x in late for x in o.operands):
                late[o] = o.with_operands([late.get(x) or (now(x) if reads else x) for x in o.operands])
                ops += added
                added.clear()
            ops.append(late.get(o, o))
        return self.f.replace(ops=ops, results=[late.get(r, r) for r in self.f.results])


@record
class _Chain:
    """Values that are made again, and how; the bytes moved for that, and those that must stay over the peak for it."""

    makers: dict[int, Op] = field(default_factory=dict)
    work: int = 0
    kept: int = 0


def _part(o: Op, index: int) -> Op:
    """`o`, or what of an elementwise fusion makes one of its results."""
    if o.kind.full_name != "hilo.fusion" or o.attrs["kind"] != "loop" or not isinstance(o.type, Results):
        return o
    body: Function = o.attrs["body"]
    needed: set[Op] = set()
    stack = [body.results[index]]
    while stack:
        x = stack.pop()
        if x not in needed:
            needed.add(x)
            stack.extend(x.operands)
    params = [p for p in body.params if p in needed]
    new: dict[Op, Op] = {p: parameter(k, p.type, p.loc) for k, p in enumerate(params)}
    for x in body.ops:
        if x in needed and x not in new:
            new[x] = x.with_operands([new[y] for y in x.operands])
    inner = Function(body.name, [new[p] for p in params], list(new.values()), [new[body.results[index]]], loc=body.loc)
    operands = [x for x, p in zip(o.operands, body.params, strict=True) if p in needed]
    return fusion(*operands, body=inner, kind="loop", loc=o.loc)
