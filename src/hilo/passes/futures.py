"""Futures become what they hold: an asynchronous operation is done where it starts. Imports ir, rewrite.

One process that runs one op after the other has nothing to wait for. A future of several values comes out of no op, so
that none is lowered.
"""

from __future__ import annotations

from hilo.errors import Unsupported
from hilo.ir.module import Function, parameter
from hilo.ir.op import PARAMETER, Op
from hilo.ir.types import FutureType, Results, Type
from hilo.rewrite.bodies import instantiate
from hilo.rewrite.regions import with_regions


def lower_futures(f: Function) -> Function:
    """`f` without futures, in its regions too.

    Parameters and results that are futures of one tensor become that tensor. Raises `Unsupported` for a future of
    several.
    """
    return _lowered(f, {})


def _lowered(f: Function, known: dict[int, Function]) -> Function:
    """`known`: regions that are done, by identity."""
    if id(f) in known:
        return known[id(f)]
    new: dict[Op, Op] = {}
    ops: list[Op] = []
    for old in f.ops:
        operands = [new[x] for x in old.operands]
        name = old.kind.full_name
        if name == "stablehlo.async_done":
            new[old] = operands[0]
            continue
        if name == "stablehlo.async_start":
            body, (new[old],) = instantiate(old.attrs["body"], operands, old.loc)
            ops += body
            continue
        t = _held(old.type, old)
        if old.kind is PARAMETER:
            made = old if t is old.type else parameter(old.attrs["index"], t, old.loc)
        else:
            made = with_regions(old, lambda r: _lowered(r, known))
            attrs = made.attrs
            if (declared := attrs.get("type")) is not None and (held := _held(declared, old)) is not declared:
                attrs = attrs.replace(type=held)
            moved = any(x is not y for x, y in zip(operands, old.operands, strict=True))
            changed = moved or t is not old.type or attrs is not old.attrs
            made = Op(old.kind, tuple(operands), attrs, t, old.loc) if changed else old
        new[old] = made
        ops.append(made)
    same = len(ops) == len(f.ops) and all(a is b for a, b in zip(ops, f.ops, strict=True))
    known[id(f)] = done = f if same else f.replace(
        params=[new[p] for p in f.params], ops=ops, results=[new[r] for r in f.results]
    )
    return done


def _held(t: Type, op: Op) -> Type:
    """The type of what a value of type `t` is, without futures."""
    if isinstance(t, Results):
        return Results([_held(x, op) for x in t])
    if not isinstance(t, FutureType):
        return t
    if len(t) != 1:
        raise Unsupported(f"values of type {t} cannot be compiled", loc=op.loc, op=op.kind.full_name)
    return t[0]
