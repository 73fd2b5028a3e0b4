"""Turn a scheduled function into a `Program`. Imports ir, custom_calls, kernels and plan.program.

Every value of the function gets a slot: a buffer, or a tuple of slots (several results, tuples; a token is the empty
tuple). Values that only rename another (reshape, get ...) share its slot. A value that must end up in a certain place
(a result of the function, of a branch, the next value of a loop) is written there by its producer where that is safe;
otherwise a copy follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from hilo.errors import Unsupported
from hilo.ir.module import Function
from hilo.ir.op import Array, Op
from hilo.ir.types import Results, TensorType, TupleType, Type, result_types
from hilo.kernels.lowered import Layout, Lowered, arranges, constant_of, is_steady
from hilo.plan.program import Buffer, Call, Copy, Form, HostCall, Program, Step, Switch

Slot = Any  # Buffer | tuple[Slot, ...]
Root = tuple[Op, int]  # the op that really produces a value, and which of its results
LARGE_SPLAT = 4096  # bytes from which a splat constant is filled in at run time instead of kept in memory


class Scope:
    """One function or region on its way to steps: slots of its values, and the places that some of them should get."""

    def __init__(self, plan: Planner, function: Function, params: Iterable[Slot]) -> None:
        self.plan = plan
        self.function = function
        self.slots: dict[Op, Slot] = dict(zip(function.params, params, strict=True))
        self.wanted: dict[Root, Buffer] = {}
        self.steps: list[Step] = []
        self._roots: dict[Op, Root] = {}
        for o in function.ops:
            self._roots[o] = _root(o, self._roots)
        self.uses: dict[Root, int] = {}
        for o in function.ops:
            if o.kind.full_name not in _RENAMES:
                for x in o.operands:
                    self.uses[self._roots[x]] = self.uses.get(self._roots[x], 0) + 1
        for r in function.results:
            self.uses[self._roots[r]] = self.uses.get(self._roots[r], 0) + 1

    def root(self, op: Op) -> Root:
        return self._roots[op]

    def is_made_here(self, root: Root) -> bool:
        """Whether the value is written by a step of this scope (and is not a parameter, a constant or a rename)."""
        return root[0].kind.full_name not in _NOT_MADE and not _is_kept_constant(root[0])

    def want(self, op: Op, place: Buffer) -> bool:
        """Ask that `op`'s value be written to `place`; False if it can't be (then a copy is needed)."""
        root = self.root(op)
        if not self.is_made_here(root) or root in self.wanted:
            return False
        self.wanted[root] = place
        return True

    def run(self, results: Iterable[Buffer | None] | None = None) -> list[Slot]:
        """Plan all ops; results with a place end up there. Gives the slots of the results."""
        places: list[Buffer | None] = list(results) if results is not None else [None] * len(self.function.results)
        direct = [p is not None and self.want(r, p) for r, p in zip(self.function.results, places, strict=True)]
        for o in self.function.ops:
            if o not in self.slots:
                handler = HANDLERS.get(o.kind.full_name, plan_kernel)
                self.slots[o] = handler(self, o)
        out = []
        for r, p, is_direct in zip(self.function.results, places, direct, strict=True):
            slot = self.slots[r]
            if p is not None:
                if not is_direct or slot is not p:
                    self.steps.append(Copy(p, slot))
                slot = p
            out.append(slot)
        return out

    def place(self, op: Op, index: int, t: Type) -> Slot:
        """Where result `index` of `op` is written: where it is wanted, or in a new temporary."""
        if not isinstance(t, TensorType):
            if isinstance(t, TupleType):
                raise Unsupported("a tuple from this op cannot be compiled yet", op=op.kind.full_name, loc=op.loc)
            return ()
        wanted = self.wanted.get((op, index))
        return wanted if wanted is not None else self.plan.temp(t.nbytes, op, t)


class Planner:
    """Makes the program of one function: owns its buffers and constants, and lowers each distinct op once."""

    def __init__(self, lower: Callable[[Op], Lowered]) -> None:
        self._lower = lower
        self.buffers: list[Buffer] = []
        self.constants: list[np.ndarray] = []
        self._constant_of: dict[Array, Buffer] = {}
        self._arranged: dict[tuple[Array, Layout], Buffer] = {}
        self.forms: dict[Form, Buffer] = {}
        self._lowered: dict[Any, Lowered] = {}
        self.hosts: list[HostCall] = []

    def temp(self, nbytes: int, source: Op | None = None, t: TensorType | None = None) -> Buffer:
        b = Buffer("temp", nbytes, source=source, type=t)
        self.buffers.append(b)
        return b

    def constant(self, value: Array) -> Buffer:
        """The buffer of a constant; equal ones share it."""
        b = self._constant_of.get(value)
        if b is None:
            b = self._constant_of[value] = Buffer(
                "constant", value.data.nbytes, index=len(self.constants), type=value.type
            )
            self.constants.append(np.ascontiguousarray(value.data))
        return b

    def arranged(self, value: Array, layout: Layout) -> Buffer:
        """The buffer of a constant in the layout that a kernel reads."""
        key = (value, layout)
        b = self._arranged.get(key)
        if b is None:
            data = layout.arrange(value.data)
            b = self._arranged[key] = Buffer("constant", data.nbytes, index=len(self.constants), type=value.type)
            self.constants.append(data)
        return b

    def form(self, argument: Buffer, layout: Layout) -> Buffer:
        """The place of an argument in another layout, which a call may bring."""
        form = Form(argument.index, layout)
        b = Buffer("form", layout.nbytes, len(self.forms), type=argument.type)
        return self.forms.setdefault(form, b)

    def lower(self, op: Op) -> Lowered:
        """The kernel of `op`; ops equal in kind, attributes, types, which operands are one value and which are
        constants, or arguments with other layouts, share it."""
        first = {o: i for i, o in reversed(list(enumerate(op.operands)))}
        bound = tuple((constant_of(o) is not None, is_steady(o)) for o in op.operands) if arranges(op) else ()
        key = (op.kind, tuple((o.type, first[o]) for o in op.operands), op.attrs, op.type, bound)
        found = self._lowered.get(key)
        if found is None:
            found = self._lowered[key] = self._lower(op)
        return found

    def scope(self, function: Function, params: Iterable[Slot]) -> Scope:
        return Scope(self, function, params)


def plan_program(function: Function, lower: Callable[[Op], Lowered]) -> Program:
    """The program of `function`, whose parameters and results must be tensors; temporaries have no offsets yet."""
    plan = Planner(lower)
    for v, what in [*((p, "parameter") for p in function.params), *((r, "result") for r in function.results)]:
        if not isinstance(v.type, TensorType):
            raise Unsupported(f"a {what} of type {v.type!r} of the entry function cannot be compiled yet", loc=v.loc)
    arguments = [Buffer("argument", p.tensor.nbytes, i, type=p.tensor) for i, p in enumerate(function.params)]
    results = [Buffer("result", r.tensor.nbytes, i, type=r.tensor) for i, r in enumerate(function.results)]
    scope = plan.scope(function, arguments)
    scope.run(results)
    program = Program(function.name, arguments, results, scope.steps, plan.buffers, plan.constants, plan.hosts,
                      forms=list(plan.forms))  # fmt: skip
    _drop_unused_constants(program)
    return program


def _drop_unused_constants(program: Program) -> None:
    """Number the constants anew, without those of which kernels read only other layouts."""
    used: dict[Buffer, None] = {}
    for b in program.used():
        if b.kind == "constant":
            used[b] = None
    arrays = [program.constants[b.index] for b in used]
    for i, b in enumerate(used):
        b.index = i
    program.constants = arrays


# ---- renames: ops whose value is another value
def _root(op: Op, roots: dict[Op, Root]) -> Root:
    name = op.kind.full_name
    if name in ("hilo.get", "stablehlo.optimization_barrier", "stablehlo.get_tuple_element") or name in _RENAMES:
        source, index = op.operands[0] if op.operands else op, op.attrs.get("index", 0)
        if name == "hilo.get" and source.kind.full_name == "stablehlo.optimization_barrier":
            return roots[source.operands[index]]
        if name == "hilo.get":
            return source, index
        if name == "stablehlo.reshape":
            return roots[source]
        if name == "stablehlo.optimization_barrier" and len(op.operands) == 1:
            return roots[source]
        if name == "stablehlo.get_tuple_element" and source.kind.full_name == "stablehlo.tuple":
            return roots[source.operands[index]]
    return op, 0


_RENAMES = frozenset(
    (
        "stablehlo.reshape",
        "hilo.get",
        "stablehlo.optimization_barrier",
        "stablehlo.get_tuple_element",
        "stablehlo.tuple",
    )
)
_NOT_MADE = frozenset((*_RENAMES, "hilo.parameter", "stablehlo.after_all", "stablehlo.create_token"))


def _is_kept_constant(op: Op) -> bool:
    """A constant that stays in the table of constants (large splats are filled in by a kernel)."""
    if op.kind.full_name != "stablehlo.constant":
        return False
    value: Array = op.attrs["value"]
    return not (value.is_splat and value.data.size * value.data.itemsize >= LARGE_SPLAT)


# ---- one handler per kind of op that is not a kernel
def plan_kernel(scope: Scope, op: Op) -> Slot:
    """An op with a kernel: one `Call`."""
    lowered = scope.plan.lower(op)
    operands = tuple(_operand(scope, o, lowered.arranged.get(i)) for i, o in enumerate(op.operands)
                     if isinstance(o.type, TensorType))  # fmt: skip
    operands += tuple(scope.plan.constant(Array(x)) for x in lowered.tables)
    types = result_types(op.type)
    slots = tuple(scope.place(op, i, t) for i, t in enumerate(types))
    results = tuple(s for s in slots if isinstance(s, Buffer))
    scratch = scope.plan.temp(lowered.scratch, op) if lowered.scratch != 0 or lowered.kept else None
    forms = [scope.plan.form(scope.slots[op.operands[i]], layout) for i, layout in lowered.kept.items()]
    scope.steps.append(Call(op, lowered, operands, results, scratch, lowered.in_place, *forms))
    return slots if isinstance(op.type, Results) else slots[0]


def _operand(scope: Scope, o: Op, layout: Layout | None) -> Buffer:
    """Where a kernel finds an operand."""
    constant = constant_of(o) if layout is not None else None
    if layout is None or constant is None:
        return scope.slots[o]
    return scope.plan.arranged(constant.attrs["value"], layout)


def _constant(scope: Scope, op: Op) -> Slot:
    return scope.plan.constant(op.attrs["value"]) if _is_kept_constant(op) else plan_kernel(scope, op)


def _rename(scope: Scope, op: Op) -> Slot:
    return scope.slots[op.operands[0]]


def _get(scope: Scope, op: Op) -> Slot:
    return scope.slots[op.operands[0]][op.attrs["index"]]


def _barrier(scope: Scope, op: Op) -> Slot:
    slots = tuple(scope.slots[o] for o in op.operands)
    return slots if isinstance(op.type, Results) else slots[0]


def _tuple(scope: Scope, op: Op) -> Slot:
    return tuple(scope.slots[o] for o in op.operands)


def _token(scope: Scope, op: Op) -> Slot:
    return ()


def _switch(scope: Scope, op: Op) -> Slot:
    """`if` and `case`: each branch writes the same places."""
    branches: tuple[Function, ...] = op.attrs.get("branches") or (op.attrs["true_branch"], op.attrs["false_branch"])
    captures = [scope.slots[o] for o in op.operands[1:]]
    places = tuple(scope.place(op, i, t) for i, t in enumerate(result_types(op.type)))
    planned = []
    for f in branches:
        inner = scope.plan.scope(f, captures)
        inner.run(p if isinstance(p, Buffer) else None for p in places)
        planned.append(inner.steps)
    scope.steps.append(Switch(op, scope.slots[op.operands[0]], planned))
    return places if isinstance(op.type, Results) else places[0]


def _while(scope: Scope, op: Op) -> Slot:
    from hilo.plan.loops import plan_while

    return plan_while(scope, op)


def _custom_call(scope: Scope, op: Op) -> Slot:
    """Code outside of the program. A result that is the alias of an operand has the operand's value at its place."""
    from hilo.custom_calls import registry
    from hilo.custom_calls.signature import signature_of
    from hilo.custom_calls.site import call_site

    target = registry.find(op.attrs["call_target_name"])
    operands = list(_leaves([scope.slots[o] for o in op.operands]))
    aliases = signature_of(op).aliases
    given_up = _given_up(scope, op, aliases)
    slots = tuple(given_up.get(i) or _places(scope, op, i, t) for i, t in enumerate(result_types(op.type)))
    results = list(_leaves(slots))
    for result, operand in aliases:
        if results[result] is not operands[operand]:
            scope.steps.append(Copy(results[result], operands[operand]))
            operands[operand] = results[result]
    config = None
    if target.convention in ("c", "llvm"):
        site = call_site(target.name, op.attrs, [o.type for o in op.operands], op.type)
        config = scope.plan.constant(Array(np.frombuffer(site.config_text() + b"\0", np.uint8)))
    call = HostCall(op, target, tuple(operands), tuple(results), len(scope.plan.hosts), config)
    scope.plan.hosts.append(call)
    scope.steps.append(call)
    return slots if isinstance(op.type, Results) else slots[0]


def _given_up(scope: Scope, op: Op, aliases: Iterable[tuple[int, int]]) -> dict[int, Buffer]:
    """Results of a call that lie where an operand is, since nobody else needs that: by the result's number."""
    if any(isinstance(t, TupleType) for t in (*(o.type for o in op.operands), *result_types(op.type))):
        return {}
    results = [i for i, t in enumerate(result_types(op.type)) if isinstance(t, TensorType)]
    operands = [o for o in op.operands if isinstance(o.type, TensorType)]
    found: dict[int, Buffer] = {}
    for result, operand in aliases:
        o, index = operands[operand], results[result]
        root, slot = scope.root(o), scope.slots[o]
        alone = scope.is_made_here(root) and scope.uses[root] == 1 and slot.kind == "temp"
        if alone and (op, index) not in scope.wanted and slot not in found.values():
            found[index] = slot
    return found


def _places(scope: Scope, op: Op, index: int, t: Type) -> Slot:
    """The slot of a result that may be a tuple."""
    if isinstance(t, TupleType):
        return tuple(scope.plan.temp(x.nbytes, op, x) if isinstance(x, TensorType) else _places(scope, op, -1, x)
                     for x in t.types)  # fmt: skip
    return scope.place(op, index, t)


def _leaves(slots: Iterable[Slot]) -> Iterator[Buffer]:
    """The buffers among slots, in order, out of tuples."""
    for s in slots:
        if isinstance(s, Buffer):
            yield s
        else:
            yield from _leaves(s)


HANDLERS: dict[str, Callable[[Scope, Op], Slot]] = {
    "stablehlo.constant": _constant,
    "stablehlo.reshape": _rename,
    "hilo.get": _get,
    "stablehlo.get_tuple_element": _get,
    "stablehlo.optimization_barrier": _barrier,
    "stablehlo.tuple": _tuple,
    "stablehlo.after_all": _token,
    "stablehlo.create_token": _token,
    "hilo.guards": _token,  # checked before the program runs, see plan/dynamic.py
    "stablehlo.if": _switch,
    "stablehlo.case": _switch,
    "stablehlo.custom_call": _custom_call,
    "stablehlo.while": _while,
}
