"""A program with sizes of its arguments taken away: what is compiled for one shape serves any, and must agree.

Imports ir, passes.inline.
"""

from __future__ import annotations

from typing import Any

from hilo.errors import Error
from hilo.ir.module import Function, Module, parameter
from hilo.ir.op import PARAMETER, Op
from hilo.ir.registry import lookup
from hilo.ir.types import UNKNOWN, Results, TensorType, has_unknown_sizes


def unsized(module: Module, entry: str = "main") -> Module | None:
    """`entry` of `module`, its calls inlined, with arguments whose first axes are `?`, and the sizes that follow; None
    if there is no such axis.

    Ops with result types of their own keep them, and so do those that take no `?`: their operands are reshaped to what
    they were. The program holds for the original sizes, and is checked for others.
    """
    from hilo.passes.inline import inline

    f = inline(module, entry)
    new: dict[Op, Op] = {}
    ops: list[Op] = []
    for o in f.ops:
        made = _parameter(o) if o.kind is PARAMETER else _remade(o, new, ops)
        if made is not o:
            new[o] = made
        ops.append(made)
    params = [new.get(p, p) for p in f.params]
    found = Function("main", params, ops, [new.get(r, r) for r in f.results])
    return Module({"main": found}) if has_unknown_sizes(found) else None


def _parameter(p: Op) -> Op:
    t = p.type
    if not isinstance(t, TensorType) or not t.rank:
        return p
    return parameter(p.attrs["index"], t.with_shape([UNKNOWN, *t.shape[1:]]), p.loc)


def _remade(o: Op, new: dict[Op, Op], ops: list[Op]) -> Op:
    """`o` on the new operands; of another type only where that is inferred."""
    if not any(x in new for x in o.operands):
        return o
    operands = [new.get(x, x) for x in o.operands]
    try:
        made = o.kind.make(operands, o.attrs, o.loc)
        if not isinstance(o.type, Results) or made.type is o.type:
            return made
    except Error:
        pass
    sized: dict[Op, Op] = {}
    for x in o.operands:
        if x in new and new[x].type is not x.type and isinstance(x.type, TensorType):
            reshape: Any = lookup("stablehlo.reshape")
            sized[x] = reshape(new[x], type=x.type, loc=o.loc)
            ops.append(sized[x])
    return o.with_operands([sized.get(x, new.get(x, x)) for x in o.operands])
