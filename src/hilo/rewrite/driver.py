"""The rewrite driver: one forward walk over a function reaches a fixed point of a rule set. Imports only ir.

Operands are final before an op is looked at, and what a rule makes is itself rewritten before it enters the function,
so that one walk is enough except for what depends on use counts. Nothing recurses over ops, and a budget ends rule
sets that go round in circles.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from hilo.errors import Error
from hilo.ir.dims import Undecided
from hilo.ir.module import Function
from hilo.ir.op import GET, Attrs, Op, OpDef
from hilo.ir.types import Results
from hilo.rewrite.rules import Rule, RuleSet

#: Gathers values into one of `Results` type: what a rule gives to replace an op of several results. Never stays in a
#: function.
PACK: Final = OpDef(
    "pack", infer=lambda *types: Results(types), dialect="hilo", doc="Several values as the results of one op."
)

#: Rules that fired, by how often; set by whoever wants to know (the trace), per thread.
FIRED: ContextVar[dict[Rule, int] | None] = ContextVar("FIRED", default=None)

# Rules without end make ever new generations, or explode; what rules of sense do stays far below both bounds.
_GENERATIONS: Final = 500
_FIRINGS: Final = 1_000_000  # in one function, plus 200 for each of its ops


def rewrite(f: Function, rules: RuleSet, *, memo: dict[Function, Function] | None = None) -> Function:
    """`f` and its regions with `rules` applied until none matches; `f` itself if none did.

    New ops get the location of the op that they replace. Equal regions are rewritten once (`memo`). What is no longer
    used stays for dce to drop. Raises `Error` for rules without end (an internal error; it names the rules).
    """
    return _Walk(f, rules, {} if memo is None else memo).run()


class _Walk:
    """The state of one walk over one function."""

    def __init__(self, f: Function, rules: RuleSet, memo: dict[Function, Function]) -> None:
        self.f = f
        self.rules = rules
        self.concerned: dict[OpDef, bool] = {GET: True}  # kinds that have rules
        self.memo = memo
        self.new: dict[Op, Op] = {}  # old ops -> what stands for them
        self.seen: set[Op] = set()  # ops of the new function (and packs)
        self.kept: list[Op] = []
        self.uses = count_uses(f)
        self.fired: dict[Rule, int] = {}
        self.budget = _FIRINGS + 200 * len(f.ops)
        self.with_regions: dict[OpDef, bool] = {}  # an op's kind always has regions, or never

    def run(self) -> Function:
        new, seen, kept, concerned, uses, with_regions = (
            self.new,
            self.seen,
            self.kept,
            self.concerned,
            self.uses,
            self.with_regions,
        )
        for old in self.f.ops:
            op = old
            for o in op.operands:
                if o in new:
                    op = op.with_operands([new.get(x, x) for x in op.operands])
                    break
            kind = op.kind
            if with_regions.get(kind, True):
                op = self.rewrite_regions(op)
            if op is not old:
                uses[op] = uses.get(old, 0)
            if concerned[kind] if kind in concerned else self.look(kind):
                found = self.match(op)
                if found is not None:
                    op = self.settle(op, found)
                    uses[op] = uses.get(op, 0) + uses.get(old, 0)
            if op not in seen:
                seen.add(op)
                kept.append(op)
            if op is not old:
                new[old] = op
        self.report()
        if not new:
            return self.f
        return self.f.replace(ops=kept, results=[new.get(r, r) for r in self.f.results])

    def look(self, kind: OpDef) -> bool:
        self.concerned[kind] = found = self.rules.concerns(kind)
        return found

    def match(self, op: Op) -> Op | None:
        """What the first matching rule makes of `op`."""
        if op.kind is GET and op.operands[0].kind is PACK:
            return op.operands[0].operands[op.attrs["index"]]
        for match, rule in self.rules.candidates(op):
            try:
                found = match(op, self.uses)
            except Undecided:  # the rule asks about a size that is known only at run time
                continue
            if found is not None and found is not op:
                if found.type is not op.type:
                    raise Error(
                        f"internal error: rule {rule} turns {op.type!r} into {found.type!r}",
                        loc=op.loc,
                        op=op.kind.full_name,
                    )
                self.fired[rule] = self.fired.get(rule, 0) + 1
                return found
        return None

    def settle(self, root: Op, first: Op) -> Op:
        """Bring `first`, made by a rule from `root`, and the fresh ops under it into the function, rewritten; gives
        its value."""
        seen, uses = self.seen, self.uses
        done: dict[Op, Op] = {}  # fresh op -> op of the function
        becomes: dict[Op, Op] = {}  # fresh op -> what a rule made of it, still on its way
        stack = [(first, 1)]  # fresh ops, and how many rules in a row made them
        while stack:
            o, generation = stack[-1]
            if o in done or o in seen:
                stack.pop()
            elif o in becomes:
                done[o] = done.get(becomes[o], becomes[o])
            elif waiting := [(x, generation) for x in o.operands if x not in seen and x not in done]:
                stack += reversed(waiting)
            else:
                placed = Op(o.kind, tuple([done.get(x, x) for x in o.operands]), o.attrs, o.type, o.loc or root.loc)
                found = self.match(placed)
                if found is None:
                    seen.add(placed)
                    if placed.kind is not PACK:
                        self.kept.append(placed)
                    for x in placed.operands:
                        uses[x] = uses.get(x, 0) + 1
                    done[o] = placed
                else:
                    becomes[o] = found
                    stack.append((found, generation + 1))
                    self.budget -= 1
                    if generation > _GENERATIONS or self.budget < 0:
                        self.endless(root)
        return done.get(first, first)

    def rewrite_regions(self, op: Op) -> Op:
        """`op` with its regions rewritten."""
        changed: dict[str, object] = {}
        found = False
        for name, value in op.attrs._d.items():
            if isinstance(value, Function):
                found = True
                if (new := self.region(value)) is not value:
                    changed[name] = new
            elif isinstance(value, tuple) and value and isinstance(value[0], Function):
                found = True
                regions = tuple(map(self.region, value))
                if any(a is not b for a, b in zip(regions, value)):
                    changed[name] = regions
        self.with_regions.setdefault(op.kind, found)
        if not changed:
            return op
        return Op(op.kind, op.operands, Attrs(op.attrs, **changed), op.type, op.loc)

    def region(self, region: Function) -> Function:
        found = self.memo.get(region)
        if found is None:
            found = rewrite(region, self.rules, memo=self.memo)
            self.memo[region] = found
            self.memo[found] = found
        return region if found == region else found

    def report(self) -> None:
        total = FIRED.get()
        if total is not None:
            for rule, n in self.fired.items():
                total[rule] = total.get(rule, 0) + n

    def endless(self, root: Op) -> None:
        often = sorted(self.fired.items(), key=lambda pair: -pair[1])[:4]
        names = "; ".join(repr(rule) for rule, _ in often)
        raise Error(
            f"internal error: rewriting does not come to an end; the rules are: {names}",
            loc=root.loc,
            op=root.kind.full_name,
        )


def count_uses(f: Function) -> dict[Op, int]:
    """How often each value is an operand or a result."""
    uses: dict[Op, int] = {}
    get = uses.get
    for op in f.ops:
        for o in op.operands:
            uses[o] = get(o, 0) + 1
    for r in f.results:
        uses[r] = get(r, 0) + 1
    return uses
