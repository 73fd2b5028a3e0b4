"""Rules about compare, select and clamp. Floats that compare with themselves may be NaN: only orders without equality
are known."""

from __future__ import annotations

import numpy as np

from hilo.ir.dtypes import i1
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.rewrite import Const, RuleSet, Splat, Var
from hilo.rewrite.ops import and_, broadcast_in_dim, compare, convert, not_, or_, select
from hilo.rewrite.pattern import splat
from hilo.rewrite.rules import arg

x, y, c, d, k = Var("x"), Var("y"), Var("c"), Var("d"), Var("k")
b = Var("b", "b")
CHOICE = RuleSet("choice")

_NOT = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}
_SWAP = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_DIRECTIONS = tuple(_NOT)


@CHOICE.rule(
    compare(x, x, comparison_direction=d),
    example=lambda t: [compare(x, x, comparison_direction=d) for x in (arg(t, 5),) for d in _DIRECTIONS],
)
def compare_with_itself(op: Op, x: Op, d: str) -> Op | None:
    """Equal, unless it is NaN (but nothing is less than itself)."""
    if x.dtype.kind in "fc" and d not in ("LT", "GT") and op.attrs["compare_type"] != "TOTALORDER":
        return None
    return splat(d in ("EQ", "LE", "GE"), op.tensor)


@CHOICE.rule(
    not_(compare(x, y, comparison_direction=d).once().named("c")),
    example=lambda t: [not_(compare(arg(t, 5), arg(t, 5), comparison_direction=d)) for d in _DIRECTIONS],
)
def not_of_compare(c: Op, x: Op, y: Op, d: str) -> Op | None:
    """The opposite relation; of floats only for equality, since NaN is neither less nor greater nor equal."""
    if x.dtype.kind in "fc" and d not in ("EQ", "NE") and c.attrs["compare_type"] != "TOTALORDER":
        return None
    return compare(x, y, comparison_direction=_NOT[d], compare_type=c.attrs["compare_type"])


@CHOICE.rule(
    compare(Splat(c), x, comparison_direction=d),
    example=lambda t: [compare(splat(1, TensorType(t, (5,))), arg(t, 5), comparison_direction=d) for d in _DIRECTIONS],
)
def constants_compare_last(op: Op, c: Op, x: Op, d: str) -> Op | None:
    """c < x is x > c."""
    return (
        compare(x, c, comparison_direction=_SWAP[d], compare_type=op.attrs["compare_type"])
        if x.kind is not c.kind
        else None
    )


@CHOICE.rule(
    compare(convert(b), Splat(c), comparison_direction=d),
    example=lambda t: [
        compare(convert(arg(i1, 5), type=TensorType(t, (5,))), splat(v, TensorType(t, (5,))), comparison_direction=d)
        for d in ("EQ", "NE")
        for v in (0, 1)
    ],
)
def compare_of_converted_boolean(b: Op, c: Op, d: str) -> Op | None:
    """A boolean that became a number to be compared with 0 or 1."""
    value = c.attrs["value"].scalar
    if d not in ("EQ", "NE") or c.dtype.is_complex or not (value == 0 or value == 1):
        return None
    return b if bool(value == 1) == (d == "EQ") else not_(b)


@CHOICE.rule(
    compare(x, Const(True), comparison_direction=d),
    compare(x, Const(False), comparison_direction=d),
    example=lambda t: [
        compare(arg(i1, 5), splat(v, TensorType(i1, (5,))), comparison_direction=d)
        for d in ("EQ", "NE")
        for v in (False, True)
    ],
)
def compare_of_boolean(op: Op, x: Op, d: str) -> Op | None:
    if d not in ("EQ", "NE"):
        return None
    return x if bool(op.operands[1].attrs["value"].scalar) == (d == "EQ") else not_(x)


@CHOICE.rule(
    compare(x, Splat(c), comparison_direction=d),
    example=lambda t: [
        compare(arg(t, 5), splat(np.array(v).astype(t.np), TensorType(t, (5,))), comparison_direction=d)
        for v in ((0,) if t.kind == "u" else (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.kind == "i" else ())
        for d in _DIRECTIONS
    ],
)
def compare_with_extreme(op: Op, c: Op, d: str) -> Op | None:
    """No integer is less than the least one, none greater than the greatest."""
    t = c.dtype
    if not t.is_int:
        return None
    value = int(c.attrs["value"].scalar)
    low = -(1 << (t.bits - 1)) if t.kind == "i" else 0
    if (value == low and d in ("LT", "GE")) or (value == low + (1 << t.bits) - 1 and d in ("GT", "LE")):
        return splat(d in ("GE", "LE"), op.tensor)
    return None


CHOICE.add(select(b, x, x) >> x, select(Const(True), x, y) >> x, select(Const(False), x, y) >> y)


@CHOICE.rule(
    select(not_(c), x, y), example=lambda t: [select(not_(arg(i1, *s)), arg(t, 5), arg(t, 5)) for s in ((5,), ())]
)
def select_by_not(c: Op, x: Op, y: Op) -> Op:
    return select(c, y, x)


@CHOICE.rule(
    select(c, Const(True), Const(False)),
    select(c, Const(False), Const(True)),
    example=lambda t: [
        select(arg(i1, 5), splat(v, TensorType(i1, (5,))), splat(not v, TensorType(i1, (5,)))) for v in (True, False)
    ],
)
def select_of_booleans(op: Op, c: Op) -> Op | None:
    """The condition itself, or its opposite."""
    if c.type is not op.type:
        return None
    return c if op.operands[1].attrs["value"].scalar else not_(c)


@CHOICE.rule(
    select(c, x, Const(False)),
    select(c, Const(True), x),
    example=lambda t: [
        select(arg(i1, 5), arg(i1, 5), splat(False, TensorType(i1, (5,)))),
        select(arg(i1, 5), splat(True, TensorType(i1, (5,))), arg(i1, 5)),
    ],
)
def select_of_boolean_is_logic(op: Op, c: Op, x: Op) -> Op | None:
    if c.type is not op.type:
        return None
    return and_(c, x) if op.operands[1] is x else or_(c, x)


@CHOICE.rule(
    select(c, select(c, x, y), k),
    select(c, k, select(c, y, x)),
    example=lambda t: [
        s
        for c in (arg(i1, 5),)
        for s in (
            select(c, select(c, arg(t, 5), arg(t, 5)), arg(t, 5)),
            select(c, arg(t, 5), select(c, arg(t, 5), arg(t, 5))),
        )
    ],
)
def select_of_select(op: Op, c: Op, x: Op, k: Op) -> Op:
    """Where the condition is known, so is the inner choice."""
    return select(c, x, k) if op.operands[2] is k else select(c, k, x)


@CHOICE.rule(
    select(broadcast_in_dim(b), x, y),
    example=lambda t: [
        select(broadcast_in_dim(arg(i1), broadcast_dimensions=(), type=TensorType(i1, (5,))), arg(t, 5), arg(t, 5))
    ],
)
def select_by_one_boolean(b: Op, x: Op, y: Op) -> Op | None:
    """A rank-0 condition chooses for all elements."""
    return select(b, x, y) if b.tensor.rank == 0 and x.tensor.rank else None
