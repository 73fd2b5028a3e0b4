"""Programs whose sizes depend on values that they compute, cut into stages: each knows its sizes before it begins.

A stage computes what later sizes depend on; the next one has these integers as arguments, so that everything that holds
of sizes given by arguments holds of them. Imports ir, rewrite.regions, passes.shapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hilo.errors import Unsupported
from hilo.ir.dims import ComputedSize
from hilo.ir.module import Function, Module, parameter
from hilo.ir.op import GET, PARAMETER, Op
from hilo.ir.types import TensorType
from hilo.passes.quantized import lower_quantized
from hilo.passes.shapes import refine
from hilo.record import record
from hilo.rewrite.regions import Effects


@record(frozen=True)
class Stage:
    """A part of a program. `inputs` says which values it takes: arguments of the whole are numbered first, then the
    results of the stages in order."""

    function: Function
    inputs: tuple[int, ...]


def stages(f: Function, module: Module | None = None) -> list[Stage]:
    """The stages of `f`, an inlined function; one, if its sizes are known when it is called.

    The first takes all arguments, so that they are checked at once. Raises `ComputedSize` for a size that is computed
    inside of a loop or a branch.
    """
    rest = lower_quantized(f)
    number = {p: i for i, p in enumerate(rest.params)}
    count = len(rest.params)
    out: list[Stage] = []
    while True:
        try:
            refine(rest, module)
        except ComputedSize as e:
            place = {o: i for i, o in enumerate(rest.ops)}
            if not e.causes or any(o not in place or o.kind is PARAMETER for o in e.causes):
                message = f"{e.message} inside of a loop or a branch; it must be known outside"
                raise ComputedSize(message, loc=e.loc, op=e.op) from None
            first, values, rest, new = split(rest, sorted(e.causes, key=place.__getitem__), keep=not out)
            out.append(Stage(first, tuple(number[p] for p in values[: len(first.params)])))
            known = {x: count + i for i, x in enumerate(values[len(first.params) :])}
            number = {p: known[x] if x in known else number[x] for p, x in new.items()}
            count += len(known)
            continue
        out.append(Stage(rest, tuple(number[p] for p in rest.params)))
        return out


def split(f: Function, causes: Sequence[Op], keep: bool) -> tuple[Function, list[Op], Function, dict[Op, Op]]:
    """Cut `f` in two: what computes `causes`, and the rest, which has them as parameters.

    Gives the first part, the values of `f` that its parameters and then its results are, the rest, and which value of
    `f` each parameter of the rest is. `keep`: the first part takes all parameters of `f`.
    """
    inside = _needed(f, causes)
    placed = dict.fromkeys([*f.params, *(o for o in f.ops if o in inside or _is_part(o, inside))])
    later = [o for o in f.ops if o not in placed]
    wanted = [*(x for o in later for x in o.operands), *f.results]
    crossing = list(dict.fromkeys([*causes, *(x for x in wanted if x in placed and x.kind is not PARAMETER)]))
    copied = [x for x in crossing if not x.operands and not x.kind.effect and x not in causes]
    results = [x for x in crossing if x not in copied]
    for x in results:
        if not isinstance(x.type, TensorType):
            raise Unsupported(f"a size is computed where a value of type {x.type} is alive", loc=x.loc,
                              op=x.kind.full_name)  # fmt: skip
    used = {x for o in placed for x in o.operands}
    params = [p for p in f.params if keep or p in used or p in results]
    first, _ = _function(f, params, [o for o in placed if o.kind is not PARAMETER], results)
    needed = set(wanted)
    values = [*(p for p in f.params if p in needed), *results]
    rest, new = _function(f, values, [*copied, *later], f.results)
    return first, [*params, *results], rest, new


def _is_part(o: Op, whole: set[Op]) -> bool:
    """Whether `o` is one result of an op in `whole`."""
    return o.kind is GET and o.operands[0] in whole


def _needed(f: Function, causes: Iterable[Op]) -> set[Op]:
    """What `causes` depend on, without parameters; with effects, if any, also those that come before."""
    found: set[Op] = set()

    def add(roots: Iterable[Op]) -> None:
        stack = list(roots)
        while stack:
            o = stack.pop()
            if o not in found and o.kind is not PARAMETER:
                found.add(o)
                stack.extend(o.operands)

    add(causes)
    effects = Effects()
    acting = [o for o in f.ops if effects.of(o)]
    last = max((i for i, o in enumerate(acting) if o in found), default=-1)
    add(acting[: last + 1])
    return found


def _function(f: Function, values: Sequence[Op], ops: Iterable[Op],
              results: Iterable[Op]) -> tuple[Function, dict[Op, Op]]:  # fmt: skip
    """The function of `values` that does `ops`; and which value each of its parameters is."""
    new = {x: parameter(i, x.type, x.loc) for i, x in enumerate(values)}
    params = dict(zip(new.values(), values, strict=True))
    for o in ops:
        if o not in new:
            new[o] = o.with_operands([new[x] for x in o.operands])
    return Function(f.name, params, new.values(), [new[r] for r in results], loc=f.loc), params
