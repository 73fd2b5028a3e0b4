"""What a row region normalizes, if it is a softmax. Imports ir, ops."""

from __future__ import annotations

from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ops.regions import sole_op
from hilo.ops.rows import Rows, inputs, is_reduce, outline

LOW = -1e30  # what the greatest element of a row may be no less than


def logits(body: Function, rows: Rows) -> Op | None:
    """The value x of which the only result of `body` is exp(x - max(x)) / sum(exp(x - max(x))), row by row; None if the
    region is anything else. `rows` is the region's analysis: reductions are read for the row at hand alone."""
    if len(body.results) != 1 or rows.full[-1] != [(0, body.results[0])]:
        return None
    ratio = unshaped(body.results[0])
    if ratio.name != "divide":
        return None
    power, total = unshaped(ratio.operands[0]), spread_of(ratio.operands[1])
    if power.name != "exponential" or not _reduces(total, "add", power, 0.0):
        return None
    difference = unshaped(power.operands[0])
    if difference.name != "subtract":
        return None
    x, greatest = unshaped(difference.operands[0]), spread_of(difference.operands[1])
    if greatest.name == "maximum":  # with what is less than anything
        low, greatest = greatest.operands if _is_low(greatest.operands[0]) else greatest.operands[::-1]
        greatest = spread_of(greatest)
        if not _is_low(low):
            return None
    if not is_reduce(greatest) or not _is_low(greatest.operands[1]) or not _reduces(greatest, "maximum", x, None):
        return None
    return x if rows.level[x] == 0 and outline(x.shape) == outline(rows.shape) else None


def unshaped(o: Op) -> Op:
    """What a value is, but for its shape."""
    while o.name == "reshape":
        o = o.operands[0]
    return o


def spread_of(o: Op) -> Op:
    """What a value holds, perhaps repeatedly."""
    while o.name in ("reshape", "broadcast_in_dim"):
        o = o.operands[0]
    return o


def _reduces(o: Op, body: str, what: Op, init: float | None) -> bool:
    """Whether `o` reduces `what` by a body of one op, from `init` if that is given."""
    if not is_reduce(o) or len(o.operands) != 2 or unshaped(inputs(o)[0]) is not what:
        return False
    return sole_op(o.attrs["body"], 0) == body and (init is None or _value(o.operands[1]) == init)


def _value(o: Op) -> float | None:
    """The number that `o` is everywhere, if it is a constant."""
    o = spread_of(o)
    constant = o.name == "constant" and o.attrs["value"].is_splat and o.dtype.is_float
    return float(o.attrs["value"].scalar) if constant else None


def _is_low(o: Op) -> bool:
    value = _value(o)
    return value is not None and value <= LOW
