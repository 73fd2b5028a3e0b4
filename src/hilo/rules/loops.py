"""Rules about loops and captured values: loops that never run or run a few times, values that a loop does not change,
constants that regions capture."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hilo.errors import Error
from hilo.ir.dtypes import DType, i1, i32
from hilo.ir.interpret import run
from hilo.ir.module import Function, region
from hilo.ir.op import Attrs, Op
from hilo.ir.types import TensorType
from hilo.rewrite import RuleSet
from hilo.rewrite.bodies import Needs, instantiate, restrict
from hilo.rewrite.ops import add, case, compare, if_, reduce, while_
from hilo.rewrite.pattern import splat
from hilo.rewrite.rules import arg
from hilo.rules.control import branches_example, is_pure, pack

LOOPS = RuleSet("loops")

_SINK_SIZE = 1024  # elements of a constant that is cloned into regions (a splat: any size)
_UNROLL_OPS = 512  # ops that unrolling a loop may give
_UNROLL_TRIPS = 16


# ---- while
def _loop(t: DType, cond: Callable[..., Any], body: Callable[..., Any], *more: Op) -> Op:
    """i, x carried, and captures `more`; `cond` and `body` are functions of their ops."""
    operands = (arg(i32), arg(t, 3), *more)
    types = [o.type for o in operands]
    return while_(*operands, cond=region(types, cond), body=region(types, body))


def _upto(limit: int) -> Callable[..., Op]:
    return lambda i, *_: compare(i, splat(limit, TensorType(i32)), comparison_direction="LT")


def _count(i: Op) -> Op:
    return add(i, splat(1, TensorType(i32)))


@LOOPS.rule(
    while_, example=lambda t: [_loop(t, lambda *_: splat(False, TensorType(i1)), lambda i, x: (_count(i), add(x, x)))]
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
            cond=region(types, _upto(3)),
            body=region(types, lambda i, x, y: (_count(i), y, y)),
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
    body = region(types, lambda i, x, y: (_count(i), y, add(x, y)))
    few = [while_(splat(k, s), arg(t, 3), arg(t, 3), cond=region(types, _upto(3)), body=body) for k in (0, 2)]

    def around(i: Op, x: Op, y: Op) -> tuple[Op, ...]:
        inner = while_(i, x, y, cond=region(types, _upto(3)), body=body)
        return (_count(i), *inner.results()[1:])

    once = while_(splat(2, s), arg(t, 3), arg(t, 3), cond=region(types, _upto(3)), body=region(types, around))
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


# ---- captures
def _first_capture(op: Op) -> int:
    """The number of the first operand that is a capture."""
    name = op.kind.name
    return 1 if name in ("if", "case") else len(op.attrs["body"].results) * (2 if name == "reduce" else 1)


def _with_operands(op: Op, order: list[int], bound: dict[int, Op]) -> Op:
    """`op` with only the operands `order`; captures in `bound` are cloned into its regions."""
    first = 1 if op.kind.name in ("if", "case") else 0  # operands that are no parameters of the regions
    params = [i - first for i in order if i >= first]
    inside = {i - first: o for i, o in bound.items()}

    def change(f: Function) -> Function:
        return restrict(f, params, bound=inside)

    attrs = {
        k: change(v)
        if isinstance(v, Function)
        else tuple(map(change, v))
        if isinstance(v, tuple) and v and isinstance(v[0], Function)
        else v
        for k, v in op.attrs.items()
    }
    return op.kind.make([op.operands[i] for i in order], Attrs(attrs))


def _capturing(t: DType) -> list[Op]:
    s = TensorType(t, (3,))
    one, i = splat(1, s), TensorType(i32)
    types = [i, s, s, s]
    x = arg(t, 3)
    loop = while_(
        splat(0, i),
        x,
        one,
        one,
        cond=region(types, _upto(2)),
        body=region(types, lambda i, x, c, d: (_count(i), add(add(x, c), d))),
    )
    e = TensorType(t)
    total = reduce(
        arg(t, 4), arg(t), splat(1, e), dimensions=(0,), body=region([e] * 3, lambda a, b, c: add(a, add(b, c)))
    )
    yes, no = branches_example(t, 2)
    return [loop, if_(arg(i1), x, one, true_branch=yes, false_branch=no), total]


@LOOPS.rule(while_, if_, case, reduce, example=_capturing)
def constants_move_into_regions(op: Op) -> Op | None:
    """A captured constant is cloned into the regions, where rules can see it."""
    first = _first_capture(op)
    bound = {i: o for i, o in enumerate(op.operands) if i >= first and o.kind.name == "constant" and _small(o)}
    if not bound:
        return None
    return _with_operands(op, [i for i in range(len(op.operands)) if i not in bound], bound)


def _small(o: Op) -> bool:
    return o.attrs["value"].is_splat or o.tensor.size <= _SINK_SIZE
