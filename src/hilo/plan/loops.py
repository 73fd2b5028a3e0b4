"""Planning of `while`: what a loop carries lives in places that swap roles. Imports ir and plan.program.

Each carried value has a place for its current value, reached through a pointer. Its next value is written
  in place      where every read of the current value comes before the write, or the kernel proves that it may overlap;
  to a spare    otherwise: after the turn the two pointers swap;
  nowhere       when it is another carried value: the pointers are permuted, so that (a, b) -> (b, a) copies nothing;
  by a copy     into a spare, when it is something from outside or a value carried twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hilo.errors import Unsupported
from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ir.types import Results, TensorType
from hilo.plan.program import Buffer, Copy, Step, While

if TYPE_CHECKING:
    from hilo.plan.build import Scope


def plan_while(scope: Scope, op: Op) -> Any:
    """Plan a `while` op; gives the slots of its results."""
    cond: Function = op.attrs["cond"]
    body: Function = op.attrs["body"]
    count = len(body.results)
    carried = [i for i in range(count) if isinstance(op.operands[i].type, TensorType)]
    if any(not isinstance(op.operands[i].type, TensorType) and scope.slots[op.operands[i]] != () for i in range(count)):
        raise Unsupported("a loop that carries a tuple cannot be compiled yet", op=op.kind.full_name, loc=op.loc)
    params = {i: Buffer("pointer", t.nbytes, type=t) for i in carried for t in (body.params[i].tensor,)}
    captures = [scope.slots[o] for o in op.operands[count:]]
    slots = [params.get(i, ()) for i in range(count)] + captures

    test = scope.plan.scope(cond, slots)
    (pred,) = test.run()

    inner = scope.plan.scope(body, slots)
    sources = {i: _carried_from(inner, body, i) for i in carried}
    # Values that move between carried places may end in each other's: then none may start where a result belongs.
    moving = any(source not in (None, i) for i, source in sources.items())
    storage = {i: _first_place(scope, op, i, may_be_result=not moving) for i in carried}
    spare: dict[int, Buffer] = {}  # carried value -> the pointer its next value is written through
    spare_storage: dict[int, Buffer] = {}
    following: dict[int, Buffer] = {}  # carried value -> the pointer to its next value
    taken: set[Buffer] = set()
    for i, source in sources.items():
        if source is not None and source in params and params[source] not in taken:
            following[i] = params[source]
            taken.add(params[source])
    for i in carried:
        if i in following:
            continue
        if params[i] not in taken and _writes_in_place(inner, body, i) and inner.want(body.results[i], params[i]):
            following[i] = params[i]
            taken.add(params[i])
            continue
        spare[i] = Buffer("pointer", params[i].nbytes, type=params[i].type)
        spare_storage[i] = scope.plan.temp(params[i].nbytes, op, params[i].type)
        following[i] = spare[i]
        taken.add(spare[i])
        inner.want(body.results[i], spare[i])
    results = inner.run()
    inner.steps.extend(_copies(spare, results))

    backing = (*storage.values(), *spare_storage.values())
    for b in (*params.values(), *spare.values()):
        b.backing = backing
    outs = {i: Buffer("pointer", params[i].nbytes, backing=backing, type=params[i].type) for i in carried}
    free = [b for b in (*params.values(), *spare.values()) if b not in taken]
    scope.steps.append(
        While(
            op,
            tuple(params.values()),
            tuple(storage.values()),
            tuple(spare.values()),
            tuple(spare_storage.values()),
            test.steps,
            pred,
            inner.steps,
            tuple(following[i] for i in carried),
            _match(list(spare.values()), free),
            tuple(outs.values()),
        )
    )
    # What is always written in place stays where it started.
    out = tuple(() if i not in outs else storage[i] if following[i] is params[i] else outs[i] for i in range(count))
    return out if isinstance(op.type, Results) else out[0]


def _first_place(scope: Scope, op: Op, i: int, *, may_be_result: bool) -> Buffer:
    """The place where carried value `i` starts: its producer's, if nobody else reads that, else a copy, which may lie
    where the loop's result `i` is wanted."""
    init = op.operands[i]
    slot: Buffer = scope.slots[init]
    root = scope.root(init)
    if slot.kind == "temp" and scope.is_made_here(root) and scope.uses[root] == 1:
        return slot
    wanted = scope.wanted.get((op, i)) if may_be_result else None
    place = wanted if wanted is not None and wanted.kind != "pointer" else scope.plan.temp(slot.nbytes, op, slot.type)
    scope.steps.append(Copy(place, slot))
    return place


def _carried_from(inner: Scope, body: Function, i: int) -> int | None:
    """The number of the parameter that result `i` of the body is, or None."""
    op = inner.root(body.results[i])[0]
    return op.attrs["index"] if op.kind.full_name == "hilo.parameter" else None


def _writes_in_place(inner: Scope, body: Function, i: int) -> bool:
    """Whether result `i` of the body may overwrite parameter `i`: it is read only before, or overlaps safely."""
    maker, index = inner.root(body.results[i])
    if not inner.is_made_here((maker, index)) or maker.kind.full_name in (
        "stablehlo.while",
        "stablehlo.if",
        "stablehlo.case",
        "stablehlo.custom_call",
    ):
        return False
    param = body.params[i]
    if any(inner.root(r)[0] is param for r in body.results):
        return False
    after = False
    for o in body.ops:
        if o is maker:
            reads = [k for k, x in enumerate(o.operands) if inner.root(x)[0] is param]
            pairs = getattr(inner.plan.lower(o), "in_place", ())
            if any((k, index) not in pairs for k in reads):
                return False
            after = True
        elif after and any(inner.root(x)[0] is param for x in o.operands):
            return False
    return True


def _copies(spare: dict[int, Buffer], results: list[Any]) -> list[Step]:
    """Copies for next values that no step of the body wrote to their place: those that could not be asked for, and
    results of inner loops, which lie where those left them.

    A source that is itself a parameter still holds its current value: in-place writers are chosen only for parameters
    that are no result."""
    return [Copy(place, results[i]) for i, place in spare.items() if results[i] is not place]


def _match(wanted: list[Buffer], free: list[Buffer]) -> tuple[Buffer, ...]:
    """For each spare, a free pointer of the same size to be the next spare."""
    left = list(free)
    out = []
    for w in wanted:
        k = next(k for k, b in enumerate(left) if b.nbytes == w.nbytes)
        out.append(left.pop(k))
    return tuple(out)
