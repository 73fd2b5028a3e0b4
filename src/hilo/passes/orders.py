"""Orders of a function's ops, and the bytes that are alive at once under them. Imports ir and rewrite.

A `Flow` knows which values ops make and use: ops that only rename a value (get, reshape ...) write nothing, and their
operand lives as long as they do. What an op may overwrite while it runs counts once (`IN_PLACE`). Everything here is
near-linear in the number of ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from hilo.ir.dims import typical
from hilo.ir.module import Function
from hilo.ir.op import GET, PARAMETER, Op
from hilo.ir.types import TensorType, result_types
from hilo.passes.schedule import CONTROL
from hilo.rewrite.regions import Effects, regions

_RENAMES: Final = frozenset(
    (
        "hilo.get",
        "stablehlo.reshape",
        "stablehlo.optimization_barrier",
        "stablehlo.get_tuple_element",
        "stablehlo.tuple",
    )
)
_NOTHING: Final = frozenset(("hilo.parameter", "stablehlo.constant", *_RENAMES))


def size_of(o: Op) -> int:
    """Bytes that `o` writes; renames write nothing."""
    if o.kind.full_name in _NOTHING:
        return 0
    return sum(typical(t.nbytes) for t in result_types(o.type) if isinstance(t, TensorType) and t.size != -1)


def overwrites(o: Op) -> bool:
    """Whether the kernel of `o` may write a result over an operand of the same size that nobody reads later: an
    estimate, since kernels are chosen later."""
    name = o.kind.full_name
    if name == "hilo.fusion":
        return o.attrs.get("kind") == "loop"
    return o.kind.scalar is not None or name in ("stablehlo.dynamic_update_slice", "stablehlo.scatter")


class Flow:
    """The values of a function, by number: what each op makes (`made`), reads (`used`), and how large they are.

    `before`: ops that must come before an op: operands, and for ops with effects the one before.
    """

    def __init__(self, f: Function) -> None:
        self.f = f
        self.place = {o: i for i, o in enumerate(f.ops)}
        self.bytes: list[int] = []
        self.made: list[tuple[int, ...]] = []
        self.used: list[tuple[int, ...]] = []
        self.during: list[int] = []  # bytes that an op needs only while it runs: what is alive in its regions
        self.rename: list[bool] = []
        self.before: list[list[int]] = []
        self.readers: list[list[int]] = []  # by value
        values: list[tuple[tuple[int, ...], ...]] = []  # by op: the values behind each of its results
        effects = Effects()
        last = -1
        for i, o in enumerate(f.ops):
            operands = list(dict.fromkeys(self.place[x] for x in o.operands))
            inputs = dict.fromkeys(v for x in operands for slot in values[x] for v in slot)
            is_rename = o.kind.full_name in _RENAMES and bool(o.operands)
            made: tuple[int, ...] = ()
            if not is_rename:
                for t in result_types(o.type):
                    self.bytes.append(self._bytes(o, t))
                    self.readers.append([])
                made = tuple(range(len(self.bytes) - len(result_types(o.type)), len(self.bytes)))
                for v in inputs:
                    self.readers[v].append(i)
            values.append(self._slots(o, operands, values) if is_rename else tuple((v,) for v in made))
            self.made.append(made)
            self.used.append(() if is_rename else tuple(inputs))
            self.rename.append(is_rename)
            self.during.append(self._inside(o))
            if o.kind is not PARAMETER and effects.of(o):
                if last >= 0:
                    operands.append(last)
                last = i
            self.before.append(operands)
        self.kept = {v for r in f.results for slot in values[self.place[r]] for v in slot}
        self.values = values
        self.in_place = [overwrites(o) for o in f.ops]

    def type_of(self, i: int, k: int) -> object:
        """The type of result `k` of op `i`."""
        return result_types(self.f.ops[i].type)[k]

    @staticmethod
    def _bytes(o: Op, t: object) -> int:
        has = o.kind.full_name not in _NOTHING and isinstance(t, TensorType) and t.size != -1
        return typical(t.nbytes) if has and isinstance(t, TensorType) else 0

    @staticmethod
    def _inside(o: Op) -> int:
        if o.kind.full_name not in CONTROL:
            return 0
        return max((Flow(r).peak(range(len(r.ops))) for r in regions(o)), default=0)

    def _slots(
        self, o: Op, operands: list[int], values: list[tuple[tuple[int, ...], ...]]
    ) -> tuple[tuple[int, ...], ...]:
        """The values behind a rename."""
        flat = [tuple(v for slot in values[self.place[x]] for v in slot) for x in o.operands]
        if o.kind is GET:
            return (values[operands[0]][o.attrs["index"]],)
        if o.name == "optimization_barrier":
            return tuple(flat)
        return (tuple(v for vs in flat for v in vs),)

    def peak(self, order: Iterable[int]) -> int:
        """The most bytes that are alive at once when ops run in this order; results live to the end."""
        run = Run(self)
        for i in order:
            run.take(i)
        return run.peak

    def least(self) -> int:
        """What any order needs: what one op reads, writes and uses while it runs, or all results."""
        most = sum(self.bytes[v] for v in self.kept)
        for i in range(len(self.made)):
            over = 0
            if self.in_place[i]:
                over = max((self.bytes[v] for v in self.used[i]), default=0)
            need = sum(self.bytes[v] for v in (*self.used[i], *self.made[i])) + self.during[i] - over
            most = max(most, need)
        return most


class Run:
    """Ops taken one by one: what is alive, and what each further op would change."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.left = [len(r) for r in flow.readers]
        for v in flow.kept:
            self.left[v] += 1
        self.done = [False] * len(flow.made)
        self.alive = self.peak = 0

    def dying(self, i: int) -> list[int]:
        """The values that nobody reads after op `i`, if that is next."""
        return [v for v in self.flow.used[i] if self.left[v] == 1]

    def change(self, i: int) -> int:
        """By how many bytes op `i` would change what is alive."""
        sizes, left = self.flow.bytes, self.left
        gain = sum(sizes[v] for v in self.flow.made[i] if left[v])
        return gain - sum(sizes[v] for v in self.flow.used[i] if left[v] == 1)

    def top(self, i: int) -> int:
        """What would be alive while op `i` runs."""
        flow, sizes = self.flow, self.flow.bytes
        new = sum(sizes[v] for v in flow.made[i])
        if new and flow.in_place[i]:
            most = max(sizes[v] for v in flow.made[i])
            new -= most if any(sizes[v] == most and self.left[v] == 1 for v in flow.used[i]) else 0
        return self.alive + new + flow.during[i]

    def take(self, i: int) -> list[int]:
        """Run op `i`; gives the values that have one reader left."""
        self.peak = max(self.peak, self.top(i))
        self.alive += self.change(i)
        self.done[i] = True
        one = []
        for v in self.flow.used[i]:
            self.left[v] -= 1
            if self.left[v] == 1:
                one.append(v)
        return one


class _Walk(Run):
    """A run that knows which ops are ready, and calls `notice` for one that has become ready, or better to run."""

    def __init__(self, flow: Flow, notice: Callable[[int], None]) -> None:
        super().__init__(flow)
        self.order: list[int] = []
        self.waits = [len(b) for b in flow.before]
        self.after: list[list[int]] = [[] for _ in flow.made]
        for i, before in enumerate(flow.before):
            for x in before:
                self.after[x].append(i)
        self.notice = notice
        for p in flow.f.params:  # these stand before all ops
            self.run(flow.place[p], renames=False)
        for i, waits in enumerate(self.waits):
            if not waits and flow.rename[i]:
                self.run(i)

    def run(self, i: int, *, renames: bool = True) -> None:
        """Take op `i`, if it has not been taken, and renames that become ready."""
        pending = [i]
        while pending:
            i = pending.pop()
            if self.done[i]:
                continue
            self.order.append(i)
            for v in self.take(i):
                for u in self.flow.readers[v]:
                    if not self.done[u] and not self.waits[u]:
                        self.notice(u)
            for u in self.after[i]:
                self.waits[u] -= 1
                if not self.waits[u]:
                    if not self.flow.rename[u]:
                        self.notice(u)
                    elif renames:
                        pending.append(u)


def eager(flow: Flow, base: Sequence[int], limit: int) -> tuple[list[int], int]:
    """`base`, but ops that free no less than they make run as soon as they can, where `limit` bytes allow it; and the
    peak of that."""
    pending: list[int] = []
    walk = _Walk(flow, pending.append)
    for i in base:
        if walk.done[i]:
            continue
        walk.run(i)
        while pending:
            u = pending.pop()
            if not walk.done[u] and walk.change(u) <= 0 and walk.top(u) <= limit:
                walk.run(u)
    return walk.order, walk.peak


def greedy(flow: Flow) -> list[int]:
    """Always the op next that adds least to what is alive (of those, the first in the program)."""
    from heapq import heapify, heappop, heappush

    better: list[int] = []
    walk = _Walk(flow, better.append)
    heap = [(walk.change(i), i) for i, waits in enumerate(walk.waits) if not waits and not walk.done[i]]
    heapify(heap)
    better.clear()
    while heap:
        change, i = heappop(heap)
        if walk.done[i]:
            continue
        if (now := walk.change(i)) != change:  # noted before other readers were gone
            heappush(heap, (now, i))
            continue
        walk.run(i)
        for u in better:
            heappush(heap, (walk.change(u), u))
        better.clear()
    return walk.order


def depth_first(flow: Flow) -> list[int]:
    """Operands before ops, those first that need most room while they are computed (Sethi and Ullman's order)."""
    ops, place = flow.f.ops, flow.place
    sizes = [sum(flow.bytes[v] for v in made) for made in flow.made]
    need = [0] * len(ops)  # of what comes later in the program it is not known
    operands: list[list[int]] = []
    for i, before in enumerate(flow.before):
        chosen = sorted(before, key=lambda x: (sizes[x] - need[x], x))
        operands.append(chosen)
        held = most = 0
        for x in chosen:
            most = max(most, held + need[x])
            held += sizes[x]
        need[i] = max(most, held + sizes[i])
    done = [False] * len(ops)
    order: list[int] = []
    roots = [*(place[p] for p in flow.f.params), *(place[r] for r in flow.f.results), *range(len(ops))]
    stack = [(i, False) for i in reversed(roots)]
    while stack:
        i, ready = stack.pop()
        if done[i]:
            continue
        if ready:
            done[i] = True
            order.append(i)
            continue
        stack.append((i, True))
        stack.extend((x, False) for x in reversed(operands[i]) if not done[x])
    return order
