"""Integer operations that must not trap, and powers. Nodes in, nodes out; `signed` says how bits are read.

Imports loop.
"""

from __future__ import annotations

from hilo.loop.builder import Builder
from hilo.loop.lanes import any_lane
from hilo.loop.nodes import Node


def divide(b: Builder, x: Node, y: Node, signed: bool) -> Node:
    """Truncating division; by zero it gives -1 (all ones), and INT_MIN / -1 is INT_MIN."""
    return b.select(b.cmp("eq", y, 0), b.const(-1, y.type), _quotient(b, x, _safe(b, x, y, signed), signed))


def remainder(b: Builder, x: Node, y: Node, signed: bool) -> Node:
    """What truncating division leaves; by zero the dividend."""
    safe = _safe(b, x, y, signed)
    if _by_floats(x, y):
        left = b.sub(x, b.mul(_quotient(b, x, safe, signed), safe))
    else:
        left = b.binary("srem" if signed else "urem", x, safe)
    return b.select(b.cmp("eq", y, 0), x, left)


def _safe(b: Builder, x: Node, y: Node, signed: bool) -> Node:
    """The divisor, or 1 where it would trap: x / 1 is then INT_MIN / -1, too, and its remainder 0."""
    bad = b.cmp("eq", y, 0)
    if signed:
        least = b.cmp("eq", x, -(1 << (x.type.bits - 1)))
        bad = b.or_(bad, b.and_(b.cmp("eq", y, -1), least))
    return b.select(bad, b.const(1, y.type), y)


def _by_floats(x: Node, y: Node) -> bool:
    """Whether to divide in floats: vectors of up to 32 bits, which no CPU divides as integers."""
    return max(x.type.lanes, y.type.lanes) > 1 and x.type.bits <= 32 and y.const is None


def _quotient(b: Builder, x: Node, y: Node, signed: bool) -> Node:
    """x / y for a divisor that does not trap.

    In floats with more than twice the bits of the quotient, truncating the rounded quotient is exact: x / y is at least
    1 / |y| away from the next integer if it is none.
    """
    if not _by_floats(x, y):
        return b.binary("sdiv" if signed else "udiv", x, y)
    n = x.type.bits
    wide, whole = ("f64", "i64" if not signed else "i32") if n == 32 else ("f32", "i32")
    if n < 32:
        x, y = (b.convert("sext" if signed else "zext", v, "i32") for v in (x, y))
    elif not signed:
        x, y = (b.convert("zext", v, "i64") for v in (x, y))
    x, y = (b.convert("sitofp", v, wide) for v in (x, y))
    q = b.convert("fptosi", b.fdiv(x, y), whole if n == 32 else "i32")
    return q if q.type.bits == n else b.convert("itrunc", q, f"i{n}")


def shift(b: Builder, kind: str, x: Node, y: Node, bits: int) -> Node:
    """`kind`: shl lshr ashr. The amount is unsigned; past the width, which is `bits`: 0 (ashr: the sign)."""
    if y.const is not None and 0 <= y.const < bits:
        return b.binary(kind, x, y)
    inside = b.cmp("ult", y, bits)
    if kind == "ashr":
        return b.binary(kind, x, b.select(inside, y, bits - 1))
    return b.select(inside, b.binary(kind, x, b.and_(y, bits - 1)), 0)


def power(b: Builder, x: Node, y: Node, signed: bool) -> Node:
    """x ** y modulo 2**bits by squaring; negative exponents give 1 for 1, +-1 for -1 and 0 for all else."""
    if y.const is not None and y.const >= 0:
        return _fixed_power(b, x, y.const)
    lanes = max(x.type.lanes, y.type.lanes)
    x, y = b.splat(x, lanes), b.splat(y, lanes)
    one = b.const(1, x.type)

    def body(out: Node, base: Node, left: Node) -> tuple[Node, ...]:
        odd = b.cmp("ne", b.and_(left, 1), 0)
        return b.select(odd, b.mul(out, base), out), b.mul(base, base), b.lshr(left, 1)

    steps = b.select(b.cmp("slt", y, 0), b.const(0, y.type), y) if signed else y
    out, _, _ = b.while_((one, x, steps), lambda out, base, left: any_lane(b, b.cmp("ne", left, 0)), body)
    if not signed:
        return out
    odd = b.cmp("ne", b.and_(y, 1), 0)
    minus = b.select(odd, b.const(-1, x.type), 1)
    inverse = b.select(b.cmp("eq", x, 1), one, b.select(b.cmp("eq", x, -1), minus, 0))
    return b.select(b.cmp("slt", y, 0), inverse, out)


def _fixed_power(b: Builder, x: Node, n: int) -> Node:
    out: Node | None = None
    while n:
        if n & 1:
            out = x if out is None else b.mul(out, x)
        n >>= 1
        x = b.mul(x, x) if n else x
    return b.const(1, x.type) if out is None else out
