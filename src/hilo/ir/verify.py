"""Verification: is a function well-formed? For use after passes; an op is verified when it is made. Imports only ir."""

from __future__ import annotations

from hilo.errors import Error, VerifyError
from hilo.ir.dims import Undecided
from hilo.ir.module import Function, Module
from hilo.ir.op import GET, PARAMETER, Op
from hilo.ir.types import Results, compatible


def verify(item: Function | Module, *, types: bool = False) -> None:
    """Raise `VerifyError` if a function (or one of a module's) is not well-formed.

    Checked: parameters come first and are numbered; every operand stands before its user, so that regions use nothing
    from outside; nothing stands twice; results are among the ops. `types` infers all types anew and compares: slower,
    and finds ops that were made around their definition. Regions are checked with their op, each only once.
    """
    functions = item.functions.values() if isinstance(item, Module) else (item,)
    for name, f in item.functions.items() if isinstance(item, Module) else ():
        if f.name != name:
            raise VerifyError(f"function @{f.name} is in the module as @{name}", loc=f.loc)
    seen: set[int] = set()
    pending = list(functions)
    kept: list[Function] = []  # keeps ids valid
    while pending:
        f = pending.pop()
        if id(f) in seen:
            continue
        seen.add(id(f))
        kept.append(f)
        _verify_ops(f, pending, types)
    if isinstance(item, Module):
        _verify_calls(item, kept)


def _verify_ops(f: Function, pending: list[Function], types: bool) -> None:
    defined: set[Op] = set()
    count = len(f.params)
    for i, p in enumerate(f.params):
        if i >= len(f.ops) or f.ops[i] is not p:
            raise VerifyError(f"parameter {i} of {f.name} does not stand at its place", loc=p.loc)
        if p.kind is not PARAMETER or p.attrs["index"] != i:
            raise VerifyError(f"parameter {i} of {f.name} is not numbered {i}", loc=p.loc, op=p.kind.full_name)
    for i, o in enumerate(f.ops):
        for x in o.operands:
            if x not in defined:
                raise VerifyError(
                    f"{x!r} is used before it is defined, or from outside of {f.name}", loc=o.loc, op=o.kind.full_name
                )
        if o in defined:
            raise VerifyError(f"{o!r} stands twice in {f.name}", loc=o.loc, op=o.kind.full_name)
        if i >= count and o.kind is PARAMETER:
            raise VerifyError(f"a parameter stands among the ops of {f.name}", loc=o.loc)
        defined.add(o)
        if types:
            _verify_type(o)
        for value in o.attrs._d.values():
            if isinstance(value, Function):
                pending.append(value)
            elif isinstance(value, tuple) and value and isinstance(value[0], Function):
                pending.extend(value)
    for k, r in enumerate(f.results):
        if r not in defined:
            raise VerifyError(f"result {k} of {f.name}, {r!r}, is not one of its ops", loc=r.loc)


def _verify_type(o: Op) -> None:
    if o.kind is GET and not (
        isinstance(o.operands[0].type, Results) and 0 <= o.attrs["index"] < len(o.operands[0].type)
    ):
        raise VerifyError(f"there is no result {o.attrs['index']} of {o.operands[0]!r}", loc=o.loc, op=o.kind.full_name)
    if o.kind is PARAMETER:
        return
    try:
        inferred = o.kind.make(o.operands, o.attrs, o.loc).type
    except Undecided:  # a run-time size is asked about; passes/shapes.py has put down what must hold of it
        return
    except Error as e:
        raise e.at(o.loc, o.kind.full_name) from None
    if not compatible(inferred, o.type):
        raise VerifyError(f"the type should be {inferred!r}, not {o.type!r}", loc=o.loc, op=o.kind.full_name)


def _verify_calls(module: Module, functions: list[Function]) -> None:
    """Every function that is named by an op exists and fits its operands and results."""
    for f in functions:
        for o in f.ops:
            name = callee_name(o)
            if not name:
                continue
            target = module.functions.get(name)
            if target is None:
                raise VerifyError(f"there is no function @{name}", loc=o.loc, op=o.kind.full_name)
            got, want = tuple(x.type for x in o.operands), target.param_types
            if len(got) != len(want) or not all(map(compatible, got, want)):
                raise VerifyError(f"@{name} takes {want}, but is called with {got}", loc=o.loc, op=o.kind.full_name)
            declared = o.type.types if isinstance(o.type, Results) else (o.type,)
            if len(declared) != len(target.results) or not all(map(compatible, declared, target.result_types)):
                raise VerifyError(
                    f"@{name} returns {target.result_types}, not {declared}", loc=o.loc, op=o.kind.full_name
                )


def callee_name(o: Op) -> str:
    """The name of the function that this op runs: of a call its callee, of a composite its decomposition; or ""."""
    return o.attrs.get("callee") or o.attrs.get("decomposition") or ""
