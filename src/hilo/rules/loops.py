"""Rules about loops: those that never run or run a few times, and values that a loop does not change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hilo.errors import Error
from hilo.ir.dtypes import DType, i1, i32
from hilo.ir.interpret import run
from hilo.ir.module import Function, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.rewrite import RuleSet
from hilo.rewrite.bodies import Needs, instantiate, restrict
from hilo.rewrite.ops import add, compare, while_
from hilo.rewrite.pattern import splat
from hilo.rewrite.rules import arg
from hilo.rules.control import is_pure, pack

LOOPS = RuleSet("loops")

_UNROLL_OPS = 512  # ops that unrolling a loop may give
_UNROLL_TRIPS = 16


# ---- while
def _loop(t: DType, cond: Callable[..., Any], body: Callable[..., Any], *more: Op) -> Op:
    """i, x carried, and captures `more`; `cond` and `body` are functions of their ops."""
    operands = (arg(i32), arg(t, 3), *more)
    types = [o.type for o in operands]
    return while_(*operands, cond=region(types, cond), body=region(types, body))


def upto(limit: int) -> Callable[..., Op]:
    return lambda i, *_: compare(i, splat(limit, TensorType(i32)), comparison_direction="LT")


def counting(i: Op) -> Op:
    return add(i, splat(1, TensorType(i32)))


@LOOPS.rule(
    while_, example=lambda t: [_loop(t, lambda *_: splat(False, TensorType(i1)), lambda i, x: (counting(i), add(x, x)))]
)
def while_never(op: Op) -> Op | None:
    """A loop whose condition is false at once gives what it was given."""
    cond: Function = op.attrs["cond"]
    r = cond.results[0]
    if r.kind.name != "constant" or r.attrs["value"].scalar or not is_pure(cond):
        return None
    return pack(op.operands[: len(op.attrs["body"].results)], op)


def _counted(t: DType) -> list[Op]:
    """A few rounds from a known start, so that the test ends."""
    s = TensorType(i32)
    types = [s, TensorType(t, (3,)), TensorType(t, (3,))]
    start = splat(0, s)
    return [
        while_(
            start,
            arg(t, 3),
            arg(t, 3),
            cond=region(types, upto(3)),
            body=region(types, lambda i, x, y: (counting(i), y, y)),
        )
    ]


@LOOPS.rule(while_, example=_counted)
def while_keeps_value(op: Op) -> Op | None:
    """A carried value that the body hands back as it came is no longer carried, but captured."""
    cond, body = op.attrs["cond"], op.attrs["body"]
    n = len(body.results)
    kept = [i for i in range(n) if body.results[i] is not body.params[i]]
    if len(kept) == n or not kept:
        return None
    fixed = [i for i in range(n) if i not in kept]
    order = [*kept, *range(n, len(op.operands)), *fixed]
    new = while_(*(op.operands[i] for i in order), cond=restrict(cond, order), body=restrict(body, order, kept))
    values: list[Op] = list(op.operands[:n])
    for i, value in zip(kept, new.results(), strict=True):
        values[i] = value
    return pack(values, op)


def _unrollable(t: DType) -> list[Op]:
    s = TensorType(i32)
    types = [s, TensorType(t, (3,)), TensorType(t, (3,))]
    body = region(types, lambda i, x, y: (counting(i), y, add(x, y)))
    few = [while_(splat(k, s), arg(t, 3), arg(t, 3), cond=region(types, upto(3)), body=body) for k in (0, 2)]

    def around(i: Op, x: Op, y: Op) -> tuple[Op, ...]:
        inner = while_(i, x, y, cond=region(types, upto(3)), body=body)
        return (counting(i), *inner.results()[1:])

    once = while_(splat(2, s), arg(t, 3), arg(t, 3), cond=region(types, upto(3)), body=region(types, around))
    return [*few, once]


@LOOPS.rule(while_, example=_unrollable)
def short_loop_unrolls(op: Op) -> Op | None:
    """A small loop that is known to run a few times becomes its rounds one after the other, which then fuse; one that
    runs once, or never, is no loop, whatever is in it."""
    cond, body = op.attrs["cond"], op.attrs["body"]
    if not is_pure(cond) or not is_pure(body):
        return None
    most = 1
    if not any(o.kind is op.kind for o in body.ops):
        most = min(_UNROLL_TRIPS, max(1, _UNROLL_OPS // max(len(body.ops) - len(body.params), 1)))
    trips = _trips(op, most)
    if trips is None:
        return None
    n = len(body.results)
    carried, captures = op.operands[:n], op.operands[n:]
    for _ in range(trips):
        carried = instantiate(body, [*carried, *captures])[1]
    return pack(carried, op)


def _trips(op: Op, most: int) -> int | None:
    """How often the loop runs, if only small integers with known starts decide that, and it is at most `most`."""
    cond, body = op.attrs["cond"], op.attrs["body"]
    counters = _controlling(cond, body)
    if any(op.operands[i].kind.name != "constant" for i in counters):
        return None
    results = [i for i in counters if i < len(body.results)]
    again, step = restrict(cond, counters), restrict(body, counters, results)
    if not all(map(_small_integer, (*again.ops, *step.ops))):
        return None
    values = [op.operands[i].attrs["value"].data for i in counters]
    try:
        for trip in range(most + 1):
            if not run(again, values)[0]:
                return trip
            changed = dict(zip(results, run(step, values), strict=True))
            values = [changed.get(i, v) for i, v in zip(counters, values, strict=True)]
    except Error:
        return None
    return None


def _small_integer(o: Op) -> bool:
    """A value that is cheap to compute now, and the same on every path."""
    return isinstance(o.type, TensorType) and o.dtype.kind in "biu" and o.tensor.size <= 64


def _controlling(cond: Function, body: Function) -> list[int]:
    """The parameters that decide how often a loop runs: those of the condition, and what those depend on."""
    need = Needs(cond)
    need.mark(cond.results)
    found: set[int] = set()
    steps = Needs(body)
    while new := (need.params | steps.params) - found:
        found |= new
        steps.mark(body.results[i] for i in sorted(new) if i < len(body.results))
    return sorted(found)
