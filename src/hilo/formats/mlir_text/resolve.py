"""References between functions: callees exist, types match, nothing calls itself. Imports ops, ir and errors."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hilo.errors import Error, VerifyError
from hilo.formats.mlir_text.types import print_function_type
from hilo.ir.module import Function, Module
from hilo.ir.op import Op, Opaque
from hilo.ir.types import compatible, result_types

_MESH = r'\bmesh\s*=\s*@([\w$.-]+|"[^"]*")'
_NAMED = {"func.call": "callee", "stablehlo.composite": "decomposition", "interpreter.run_parallel": "programs"}


def check_calls(module: Module) -> None:
    """Raise an `Error` for a call of a function that is missing, has other types, or leads back to the caller."""
    calls: dict[str, list[tuple[str, Op]]] = {name: [] for name in module.functions}
    for name, f in module.functions.items():
        for op, attr in _references(module, f):
            if attr == "programs":
                from hilo.ops.interpreter import check_programs

                calls[name] += [(program, op) for program in check_programs(module, op)]
                continue
            callee = op.attrs[attr]
            if callee not in module.functions:
                rule = "C2" if attr == "decomposition" else ""
                raise VerifyError(f"function @{callee} is not defined", rule=rule, loc=op.loc, op=op.kind.full_name)
            _check_types(op, module.functions[callee])
            calls[name].append((callee, op))
    _check_recursion(calls)


def _references(module: Module, f: Function) -> Iterator[tuple[Op, str]]:
    """The ops of a function and its regions that name another function, with the attribute that does."""
    stack = [f]
    while stack:
        for op in stack.pop().ops:
            attr = _NAMED.get(op.kind.full_name)
            if attr is not None:
                yield op, attr
            if isinstance(groups := op.attrs.get("replica_groups"), Opaque):
                _check_mesh(module, op, groups)
            for value in op.attrs.values():
                if isinstance(value, Function):
                    stack.append(value)
                elif isinstance(value, tuple):
                    stack.extend(v for v in value if isinstance(v, Function))


def _check_mesh(module: Module, op: Op, groups: str) -> None:
    """Groups along the axes of a mesh name one of the module's symbols."""
    m = re.compile(_MESH).search(groups)
    if m is None:
        return  # the mesh is written in place
    name = m[1].strip('"')
    if name not in module.functions and not any(k.split("@")[-1] == name for k in module.attrs if " @" in k):
        raise VerifyError(f"mesh @{name} is not defined", loc=op.loc, op=op.kind.full_name)


def _check_types(op: Op, f: Function) -> None:
    operands, results = tuple(o.type for o in op.operands), result_types(op.type)
    for rule, a, b in (("C3", operands, f.param_types), ("C4", results, f.result_types)):
        if len(a) != len(b) or not all(map(compatible, a, b)):
            raise VerifyError(
                f"@{f.name} has type {print_function_type(f.param_types, f.result_types)}, "
                f"but is called as {print_function_type(operands, results)}",
                rule=rule if op.name == "composite" else "", loc=op.loc, op=op.kind.full_name,
            )  # fmt: skip


def _check_recursion(calls: dict[str, list[tuple[str, Op]]]) -> None:
    done: set[str] = set()
    for root in calls:
        path: dict[str, None] = {root: None}
        stack = [iter(calls[root])] if root not in done else []
        while stack:
            callee, op = next(stack[-1], (None, None))
            if callee is None or op is None:
                stack.pop()
                done.add(path.popitem()[0])
            elif callee in path:
                chain = " -> ".join(f"@{n}" for n in [*list(path)[list(path).index(callee) :], callee])
                raise Error(f"recursive calls are not allowed: {chain}", loc=op.loc, op=op.kind.full_name)
            elif callee not in done:
                path[callee] = None
                stack.append(iter(calls[callee]))
