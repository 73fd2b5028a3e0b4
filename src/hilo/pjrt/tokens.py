"""Tokens at a program's edges. Imports ir, ops.

Clients give arrays of nothing instead (JAX: booleans, none of them), which native code knows as arrays, and get buffers
of the type token, which may be given in turn. Order needs no values here: a program's calls run in the program's order,
and programs in the order of their starts.
"""

from __future__ import annotations

from typing import Final

from hilo.ir.dtypes import i1
from hilo.ir.module import Function
from hilo.ir.op import PARAMETER, Op
from hilo.ir.types import TOKEN, TensorType

NOTHING: Final = TensorType(i1, (0,))


def without_tokens(f: Function) -> Function:
    """`f` with arrays of no booleans for parameters and results that are tokens."""
    if not any(v.type is TOKEN for v in (*f.params, *f.results)):
        return f
    from hilo.ops.decompose import full
    from hilo.ops.tuples import create_token

    def parameter(p: Op) -> Op:
        return Op(PARAMETER, (), p.attrs.replace(type=NOTHING), NOTHING, p.loc) if p.type is TOKEN else p

    params = [parameter(p) for p in f.params]
    fresh = create_token()
    new = {p: fresh for p in f.params if p.type is TOKEN}
    ops = [*params, fresh]
    for o in f.ops[len(f.params) :]:
        if any(x in new for x in o.operands):
            new[o] = o.with_operands([new.get(x, x) for x in o.operands])
        ops.append(new.get(o, o))
    nothing = full(False, i1, NOTHING.shape)
    ops.append(nothing)
    results = [nothing if r.type is TOKEN else new.get(r, r) for r in f.results]
    return f.replace(params=params, ops=ops, results=results)
