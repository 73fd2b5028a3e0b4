"""Copying function bodies: into another function, or with some parameters left out, moved or bound to constants.
Imports ir."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hilo.ir.module import Function, Loc, parameter
from hilo.ir.op import PARAMETER, Op
from hilo.rewrite.regions import Effects


def instantiate(f: Function, operands: Sequence[Op], call: Any = None) -> tuple[list[Op], tuple[Op, ...]]:
    """A copy of `f`'s body with `operands` for its parameters: the ops in order, and the results.

    Every op is new, for a function's ops belong to it alone. Locations become call-site locations if `call` is a `Loc`.
    """
    new = dict(zip(f.params, operands, strict=True))
    sites: dict[Any, Any] = {}
    copies: list[Op] = []
    for op in f.ops:
        if op.kind is PARAMETER:
            continue
        loc = op.loc
        if loc is not None and isinstance(call, Loc):
            loc = sites.get(loc)
            if loc is None:
                loc = sites[op.loc] = Loc("callsite", children=(op.loc, call))
        copy = Op(op.kind, tuple([new[x] for x in op.operands]), op.attrs, op.type, loc)
        new[op] = copy
        copies.append(copy)
    return copies, tuple([new[r] for r in f.results])


def restrict(
    f: Function, params: Sequence[int], results: Sequence[int] | None = None, bound: Mapping[int, Op] | None = None
) -> Function:
    """`f` with the parameters numbered `params`, in that order, and only the results numbered `results` (None: all).

    Ops that only other results need go, ops with effects stay. `bound` maps parameters to constants to be cloned into
    the function.
    """
    results = range(len(f.results)) if results is None else results
    need = Needs(f)
    need.mark(f.results[i] for i in results)
    new: dict[Op, Op] = {f.params[i]: parameter(k, f.params[i].type, f.params[i].loc) for k, i in enumerate(params)}
    kept = list(new.values())
    n = len(kept)
    for i, constant in (bound or {}).items():
        new[f.params[i]] = clone = Op(constant.kind, (), constant.attrs, constant.type, constant.loc)
        kept.append(clone)
    for op in f.ops:
        if op.kind is PARAMETER or op not in need.ops:
            continue
        copy = op.with_operands([new.get(x, x) for x in op.operands]) if any(x in new for x in op.operands) else op
        kept.append(copy)
        if copy is not op:
            new[op] = copy
    values = [new.get(f.results[i], f.results[i]) for i in results]
    return Function(f.name, kept[:n], kept, values, attrs=f.attrs, loc=f.loc)


class Needs:
    """What some results of a function need: ops, and parameters by number. Effects are always needed."""

    def __init__(self, f: Function) -> None:
        self._number = {p: i for i, p in enumerate(f.params)}
        self.ops: set[Op] = set()
        self.params: set[int] = set()
        effects = Effects()
        self.mark(op for op in f.ops if effects.of(op))

    def mark(self, roots: Iterable[Op]) -> None:
        """Add what `roots` need."""
        stack = list(roots)
        while stack:
            op = stack.pop()
            if op in self.ops:
                continue
            self.ops.add(op)
            if op in self._number:
                self.params.add(self._number[op])
            stack += op.operands
