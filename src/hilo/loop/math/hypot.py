"""Lengths of f64 vectors, and scaling by powers of two against overflow. Imports loop."""

from __future__ import annotations

from hilo.loop.builder import Builder
from hilo.loop.math.floats import two_product, two_sum
from hilo.loop.nodes import Node


def scaled_to_one(b: Builder, x: Node, y: Node, *, even: bool) -> tuple[tuple[Node, Node], Node]:
    """((x / 4^k, y / 4^k), 2^k), or with 8^k: the greater of the two is then between 1/16 and 16, or 0.

    The square (cube) root of the scaled number times the second result is that of the number.
    """
    step = 2 if even else 3
    ax, ay = b.fabs(x), b.fabs(y)
    large = b.select(b.cmp("ogt", ay, ax), ay, ax)
    tiny = b.cmp("olt", large, 2.0**-1000)
    up = b.select(tiny, b.const(2.0**120, x.type), b.const(1.0, x.type))
    e = b.sub(b.and_(b.lshr(b.bitcast(b.fmul(large, up), "i64"), 52), 0x7FF), 1023)
    # k = e // step, by a multiplication that is right for all exponents; e + 1026 is positive
    k = b.sub(b.lshr(b.mul(b.add(e, 1026), 65536 // step + 1), 16), 1026 // step)
    k = b.smin(k, 1022 // step)  # the power that scales down is a normal number
    down = _power_of_two(b, b.sub(b.const(0, k.type), b.mul(k, step)))
    root = _power_of_two(b, k)
    root_up = b.select(tiny, b.const(2.0 ** -(120 // step), x.type), b.const(1.0, x.type))
    return (b.fmul(b.fmul(x, up), down), b.fmul(b.fmul(y, up), down)), b.fmul(root, root_up)


def _power_of_two(b: Builder, k: Node) -> Node:
    """2^k, clamped to the normal numbers."""
    return b.bitcast(b.shl(b.smin(b.smax(b.add(k, 1023), 1), 2046), 52), "f64")


def hypot(b: Builder, x: Node, y: Node) -> Node:
    """sqrt(x^2 + y^2) where squares neither overflow nor matter when they underflow; the sum is taken in two parts."""
    p, p_low = two_product(b, x, x)
    q, q_low = two_product(b, y, y)
    s, s_low = two_sum(b, p, q)
    return b.sqrt(b.fadd(s, b.fadd(s_low, b.fadd(p_low, q_low))))
