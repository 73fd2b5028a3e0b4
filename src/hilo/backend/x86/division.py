"""Division of scalar integers: by numbers, where they are unsigned, without the machine's. Imports x86.integers."""

from __future__ import annotations

from hilo.backend.x86.integers import extended, in_place, width
from hilo.backend.x86.machine import DIVIDE, GENERAL
from hilo.backend.x86.select import Selector, Value, selects
from hilo.loop.nodes import Node


@selects("sdiv", "udiv", "srem", "urem", of="scalar")
def divide(s: Selector, node: Node) -> Value:
    signed = node.kind[0] == "s"
    by = node.args[1].const
    if by is not None and not signed and (by := by & ((1 << node.type.bits) - 1)):
        return divided(s, node, by)
    a, b = (extended(s, x, signed) for x in node.args)
    r = s.result(node)
    s.code.append((DIVIDE, width(node.type), node.kind, r, a, b))
    return r


def divided(s: Selector, node: Node, by: int) -> Value:
    """The quotient or the remainder of unsigned division by a number: by a product with 2^(64 + shift) / by, rounded
    up, if that is exact for all numbers of the type."""
    t, is_quotient = node.type, node.kind == "udiv"
    a = extended(s, node.args[0], False)
    if not by & (by - 1):
        if is_quotient:
            r = in_place(s, node, a)
            s.g("shr", width(t), r, imm=by.bit_length() - 1)
            return r
        b = s.new(GENERAL)
        s.g("mov", 8 if by > 1 << 31 else 4, b, imm=by - 1)
        s.g("and", 8, b, a)
        return b
    bits = max(t.bits, 32)
    if bits == 32:  # the upper half may hold anything
        whole = s.new(GENERAL)
        s.g("mov", 4, whole, a)
        a = whole
    shift = next((n for n in range(64) if -(-(1 << 64 + n) // by) * by - (1 << 64 + n) <= 1 << 64 + n - bits), None)
    factor = None if shift is None else -(-(1 << 64 + shift) // by)
    if factor is None or factor >= 1 << 64:
        b, r = s.new(GENERAL), s.result(node)
        s.g("mov", 8, b, imm=by - (1 << 64) if by >> 63 else by)
        s.code.append((DIVIDE, 8, node.kind, r, a, b))
        return r
    b, high = s.new(GENERAL), s.new(GENERAL) if not is_quotient else s.result(node)
    s.g("mov", 8, b, imm=factor - (1 << 64) if factor >> 63 else factor)
    s.code.append((DIVIDE, 8, "uhigh", high, a, b))
    if shift:
        s.g("shr", 8, high, imm=shift)
    if is_quotient:
        return high
    product, r = s.new(GENERAL), s.new(GENERAL)
    if by < 1 << 31:
        s.g("imul", 8, product, high, imm=by)
    else:
        s.g("mov", 8, product, imm=by - (1 << 64) if by >> 63 else by)
        s.g("imul", 8, product, high)
    s.move(r, a, 8)
    s.g("sub", 8, r, product)
    return r
