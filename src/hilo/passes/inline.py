"""Inlining: everything that the entry reaches by `func.call` and `composite` becomes one function. Imports ir,
rewrite.regions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from hilo.errors import Error, Unsupported
from hilo.ir.module import Function, Module
from hilo.ir.op import Op
from hilo.ir.registry import REGISTRY
from hilo.ir.types import FutureType, Results, Type, result_types
from hilo.rewrite.regions import Effects, Regions, any_op, regions

#: The most ops that inlining may produce; beyond it a program is refused with a word why.
LIMIT: Final = 1_000_000

_COMPUTATIONS: Final = ("sdy.manual_computation", "sdy.named_computation")
_CALLEE: Final = {"func.call": "callee", "stablehlo.composite": "decomposition"}


def inline(module: Module, entry: str = "main") -> Function:
    """`entry` of `module` with all its calls inlined, those in regions included; the function itself if it calls
    nothing.

    Asynchronous operations are done where they start (passes/futures.py).

    Bodies are flattened once, callees first, and copied for each call; calls of a pure function with the same operands
    share one copy. Raises `Error` for an unknown function, recursion, or a call that does not fit its callee.
    """
    if entry not in module.functions:
        raise Error(
            f"there is no function @{entry}; there are: {', '.join('@' + n for n in module.functions) or 'none'}"
        )
    inliner = _Inliner(module)
    for name in inliner.callees_first(entry):
        inliner.flat[name] = inliner.flatten(module[name])
    flat = inliner.flat[entry]
    if not has_futures(flat):
        return flat
    from hilo.passes.futures import lower_futures

    return lower_futures(flat)


def has_futures(f: Function) -> bool:
    """Whether a value of `f`, or of its regions, is a future."""
    plain: set[Type] = set()  # types that are known to hold none

    def is_future(o: Op) -> bool:
        if o.type in plain:
            return False
        plain.add(o.type)
        return any(isinstance(t, FutureType) for t in result_types(o.type))

    return any_op(f, is_future)


def callee_of(op: Op) -> str | None:
    """The name of the function that `op` calls, or None."""
    key = _CALLEE.get(op.kind.full_name)
    if key is None:
        return None
    name: Any = op.attrs[key]
    return str(name).removeprefix("@")


def op_of_composite(op: Op) -> Op | None:
    """The elementwise op of CHLO that a composite of its name stands for, as exporters write them; or None."""
    if op.kind.full_name != "stablehlo.composite" or not op.attrs["name"].startswith("chlo."):
        return None
    kind = REGISTRY.get(op.attrs["name"])
    if kind is None or kind.scalar is None or op.attrs.get("composite_attributes"):
        return None
    try:
        made = kind.make(op.operands, loc=op.loc)
    except Error:
        return None
    return made if made.type is op.type else None


class _Inliner:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.flat: dict[str, Function] = {}
        self.effects = Effects()
        self.total = 0

    def callees_first(self, entry: str) -> list[str]:
        """Names of all functions that `entry` reaches, callees before callers."""
        order: list[str] = []
        state: dict[str, str] = {}  # "open": on the way down to the current call; "done"
        stack: list[tuple[str, Iterator[Op]]] = [(entry, calls(self.module[entry]))]
        state[entry] = "open"
        while stack:
            name, rest = stack[-1]
            op = next(rest, None)
            if op is None:
                stack.pop()
                state[name] = "done"
                order.append(name)
                continue
            callee = callee_of(op)
            assert callee is not None
            if callee not in self.module.functions:
                raise Error(f"there is no function @{callee}", loc=op.loc, op=op.kind.full_name)
            if state.get(callee) == "open":
                names = [n for n, _ in stack]
                cycle = " -> ".join(f"@{n}" for n in [*names[names.index(callee) :], callee])
                raise Error(f"recursive calls cannot be compiled: {cycle}", loc=op.loc, op=op.kind.full_name)
            if callee not in state:
                state[callee] = "open"
                stack.append((callee, calls(self.module[callee])))
        return order

    def flatten(self, f: Function) -> Function:
        """`f` without calls, given that all its callees are flat."""
        inner = Regions(self.flatten)
        known: dict[Any, tuple[Op, ...]] = {}  # calls of pure functions: (callee, operands) -> results
        new: dict[Op, Op] = {}
        several: dict[Op, tuple[Op, ...]] = {}  # a call of several results -> their values
        kept: list[Op] = []
        for old in f.ops:
            if old.operands and old.operands[0] in several and old.kind.full_name == "hilo.get":
                new[old] = several[old.operands[0]][old.attrs["index"]]
                continue
            op = old
            for o in op.operands:
                if o in new:
                    op = op.with_operands([new.get(x, x) for x in op.operands])
                    break
            callee = callee_of(op)
            if op.kind.full_name in _COMPUTATIONS:
                results = self.in_place(op, kept)
            elif (known_op := op_of_composite(op)) is not None:
                kept.append(known_op)
                results = (known_op,)
            elif op.kind.full_name == "stablehlo.custom_call" and (body := self.known_call(op)) is not None:
                results = copied(body, op, kept)
            elif callee is not None:
                results = self.call(op, callee, known, kept)
            else:
                op = inner.apply(op)
                kept.append(op)
                if op is not old:
                    new[old] = op
                continue
            if isinstance(op.type, Results):
                several[old] = results
            else:
                new[old] = results[0]
        return f.replace(ops=kept, results=[new.get(r, r) for r in f.results]) if new or several else f

    def known_call(self, op: Op) -> Function | None:
        """A custom call in ops, if hilo has them."""
        from hilo.passes.known_calls import known_call  # few programs have custom calls

        return known_call(op, self.computation)

    def computation(self, name: str) -> Function:
        """The flat function `name`, which is no part of the program but by an op's wish."""
        if name not in self.module.functions:
            raise Error(f"there is no function @{name}")
        return self.flatten(self.module[name])

    def in_place(self, op: Op, out: list[Op]) -> tuple[Op, ...]:
        """The results of the region of a computation, its ops copied to `out`."""
        body: Function = op.attrs["body"]
        try:
            from hilo.ops.shardy import check_whole

            check_whole([o.type for o in op.operands], op.type, body)
        except Error as e:
            raise e.at(op.loc, op.kind.full_name) from None
        return copied(self.flatten(body), op, out)

    def call(self, op: Op, callee: str, known: dict[Any, tuple[Op, ...]], out: list[Op]) -> tuple[Op, ...]:
        """The results of `callee` on `op`'s operands, its body copied to `out`."""
        body = self.flat[callee]
        key = (callee, op.operands)
        if key in known:
            return known[key]
        declared = op.type.types if isinstance(op.type, Results) else (op.type,)
        if body.param_types != tuple(o.type for o in op.operands) or body.result_types != tuple(declared):
            raise Error(
                f"the call does not fit @{callee}: {body.param_types} -> {body.result_types}",
                loc=op.loc,
                op=op.kind.full_name,
            )
        self.total += len(body.ops)
        if self.total > LIMIT:
            raise Unsupported(f"inlining its calls gives more than {LIMIT} ops", loc=op.loc, op=op.kind.full_name)
        results = copied(body, op, out)
        if not any(map(self.effects.of, body.ops)):
            known[key] = results
        return results


def copied(body: Function, op: Op, out: list[Op]) -> tuple[Op, ...]:
    """The results of `body` on the operands of `op`, its ops copied to `out`."""
    from hilo.rewrite.bodies import instantiate

    copies, results = instantiate(body, op.operands, op.loc)
    out += copies
    return results


def calls(f: Function) -> Iterator[Op]:
    """The calls in `f` and its regions."""
    stack = [iter(f.ops)]
    while stack:
        op = next(stack[-1], None)
        if op is None:
            stack.pop()
        elif op.kind.full_name in _CALLEE:
            yield op
        else:
            stack.extend(iter(r.ops) for r in regions(op))
