"""Fusion: groups ops into `hilo.fusion`, so that one kernel computes them without buffers in between. Imports ir, ops.

Ops are visited from the last to the first. One whose users are all in one group joins it; one that several groups use
is computed again in each where that is cheap, or becomes a further result of one of them, or starts its own group.
Reductions make a group a row region (ops/rows.py); a contraction joins the elementwise ops that alone use it (its
kernel applies them to what it has just summed up); gathers, sorts and control flow stay alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from hilo.ir.module import Function
from hilo.ir.op import GET, PARAMETER, Op
from hilo.ir.types import Results, TensorType, result_types
from hilo.ops.fusion import composes, contracts
from hilo.passes.fuse_group import Costs, Group, build, is_rows
from hilo.rewrite.regions import CONTROL, with_regions

if TYPE_CHECKING:
    from hilo.options import Options

ALONE: Final = frozenset(
    ("reshape", "constant", "concatenate", "dynamic_update_slice", "gather", "transpose")
)  # as results
SEARCH: Final = 256  # groups looked at to find out whether one depends on another, before taking it that it does


def fuse(f: Function, options: Options | None = None) -> Function:
    """`f` with its ops grouped into fusions, in the regions of control flow too."""
    cap = options.fusion_ops if options is not None else 512
    inner = [with_regions(o, lambda r: fuse(r, options)) if o.kind.full_name in CONTROL else o for o in f.ops]
    if any(a is not b for a, b in zip(inner, f.ops, strict=True)):
        new: dict[Op, Op] = {}
        ops = []
        for old, o in zip(f.ops, inner, strict=True):
            changed = any(x in new for x in o.operands)
            new_op = o.with_operands(new.get(x, x) for x in o.operands) if changed else o
            if new_op is not old:
                new[old] = new_op
            ops.append(new_op)
        f = f.replace(ops=ops, results=[new.get(r, r) for r in f.results])
    return _Fuser(f, cap).run()


class _Fuser:
    """The state of fusing one function."""

    def __init__(self, f: Function, cap: int) -> None:
        self.f = f
        self.cap = cap
        self.position = {o: i for i, o in enumerate(f.ops)}
        self.users: dict[Op, list[Op]] = {o: [] for o in f.ops}
        for o in f.ops:
            for x in dict.fromkeys(o.operands):
                self.users[x].append(o)
        self.results = set(f.results)
        self.costs = Costs(f)
        self.groups: dict[Op, list[Group]] = {}  # op -> the groups that compute it
        self.home: dict[Op, Group] = {}  # op -> the group that it is a result of

    def run(self) -> Function:
        for o in reversed(self.f.ops):
            if o.kind is not PARAMETER:
                self._place(o)
        self._part_gets()
        return build(self.f, [self.groups[o] for o in self.f.ops if o in self.groups], self.home)

    def _place(self, o: Op) -> None:
        """Put `o` into groups."""
        homes: dict[Group, list[Op]] = {}  # with the users there: a value may have thousands in as many groups
        for u in self.users[o]:
            for g in self.groups[u]:
                homes.setdefault(g, []).append(u)
        outside = o in self.results
        if contracts(o) and not outside and len(homes) == 1:
            ((g, users),) = homes.items()
            if g.accepts_contraction(o, users):
                self._join(o, g)
                g.hero = o
                return
        if _fusible(o):
            if not outside and len(homes) == 1:
                ((g, users),) = homes.items()
                if g.accepts(o, users, self.cap):
                    self._join(o, g)
                    return
            if (
                not outside
                and homes
                and self.costs.is_cheap(o)
                and all(g.accepts(o, users, self.cap) for g, users in homes.items())
            ):
                for g in homes:
                    self._join(o, g)
                return
            if o.kind.full_name != "stablehlo.constant":
                for g in sorted(homes, key=lambda g: self.position[g.first]):
                    if g.accepts_result(o, homes[g], self.cap) and not self._cycle(g, homes):
                        self._join(o, g)
                        self.home[o] = g
                        g.results.append(o)
                        return
        if self._reduces_alone(o):
            return
        group = Group(o, self.costs, open_=_starts(o))
        self.groups[o] = [group]
        self.home[o] = group

    def _reduces_alone(self, o: Op) -> bool:
        """Make a reduction of several values, which fits into no group of its users, a row region."""
        gets = self.users[o]
        if not (is_rows(o) and _fusible(o) and isinstance(o.type, Results)) or not gets or o in self.results:
            return False
        if any(g.kind is not GET for g in gets):
            return False
        waiting = [(g, h) for g in gets for h in self.groups[g] if h.results != [g]]  # in groups of their users
        if any(g in h.results for g, h in waiting):
            return False
        for g, h in waiting:
            h.ops.pop(g, None)
        group = Group(gets[0], self.costs, open_=False)
        group.open = True
        group.results = list(gets)
        for g in gets:
            group.ops[g] = None
            group.places[g] = frozenset([()])
            self.groups[g], self.home[g] = [group], group
        self._join(o, group)
        return True

    def _part_gets(self) -> None:
        """A `get` joined its users' group before the reduction that it belongs to was placed: where that one did not
        follow, the `get` is a value from outside."""
        for o in self.f.ops:
            if o.kind is not GET:
                continue
            stay = [g for g in self.groups[o] if o.operands[0] in g.ops or o in g.results]
            for g in self.groups[o]:
                if g not in stay:
                    del g.ops[o]
            if o not in self.home and len(stay) < len(self.groups[o]):
                self.home[o] = Group(o, self.costs, open_=False)
                stay.append(self.home[o])
            self.groups[o] = stay

    def _join(self, o: Op, g: Group) -> None:
        g.add(o)
        self.groups.setdefault(o, []).append(g)

    def _cycle(self, g: Group, homes: Iterable[Group]) -> bool:
        """Whether another group of `homes` leads to `g`: then `g` must not give them anything."""
        limit = max(self.position[o] for o in g.ops)
        stack = [h for h in homes if h is not g]
        seen = set(stack)
        while stack:
            h = stack.pop()
            for r in h.results:
                for u in self.users[r]:
                    for k in self.groups[u]:
                        if k is g:
                            return True
                        if k not in seen and self.position[k.first] < limit:
                            seen.add(k)
                            stack.append(k)
            if len(seen) > SEARCH:
                return True
        return False


def _compiled(t: object) -> bool:
    return isinstance(t, TensorType) and t.size != -1


def _fusible(o: Op) -> bool:
    """Whether `o` may be computed inside of a group."""
    if is_rows(o):
        return all(map(_compiled, result_types(o.type)))
    if o.kind is GET:
        return is_rows(o.operands[0])
    return composes(o) and _compiled(o.type) and all(_compiled(x.type) for x in o.operands)


def _starts(o: Op) -> bool:
    """Whether a group may begin with `o` as its result."""
    if not _fusible(o) or isinstance(o.type, Results):
        return False
    return o.kind is not GET and o.name not in ALONE
