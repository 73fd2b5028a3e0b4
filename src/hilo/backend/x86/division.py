"""Division of integers: by numbers, where they are unsigned, without the machine's; vectors lane by lane. Imports
x86.integers, x86.memory."""

from __future__ import annotations

from hilo.backend.x86.integers import extended, width
from hilo.backend.x86.machine import DIVIDE, GENERAL, NO, VECTOR
from hilo.backend.x86.memory import behind, stack
from hilo.backend.x86.select import Selector, Value, length, parts_of, selects
from hilo.loop.nodes import Node, VType


@selects("sdiv", "udiv", "srem", "urem", of="scalar")
def divide(s: Selector, node: Node) -> Value:
    kind, t, by = node.kind, node.type, divisor(node)
    a = extended(s, node.args[0], kind[0] == "s")
    if by:
        return divided(s, kind, t, a, by)
    b = extended(s, node.args[1], kind[0] == "s")
    r = s.result(node)
    s.code.append((DIVIDE, width(t), kind, r, a, b))
    return r


@selects("sdiv", "udiv", "srem", "urem", of="vector")
def divide_lanes(s: Selector, node: Node) -> Value:
    """Through memory, as there is no such instruction for vectors."""
    from hilo.backend.x86.pieces import parts, value

    kind, t, by = node.kind, node.type, divisor(node)
    given = [parts(s, x) for x in (node.args if not by else node.args[:1])]
    places = [stack(s, max(16, t.lanes * t.size), 64) for _ in given]
    for registers, place in zip(given, places, strict=True):
        for i, r in enumerate(registers):
            s.v("vmovups_store", length(t), r, NO, behind(place, 64 * i))
    name = {1: "b", 2: "w"}.get(t.size)
    name, size = ("mov", t.size) if name is None else ("mov" + ("s" if kind[0] == "s" else "z") + name, 4)
    one = t.with_lanes(1)
    for lane in range(t.lanes):
        numbers = [s.new(GENERAL) for _ in places]
        for r, place in zip(numbers, places, strict=True):
            s.g(name, size, r, behind(place, lane * t.size))
        if by:
            r = divided(s, kind, one, numbers[0], by)
        else:
            r = s.new(GENERAL)
            s.code.append((DIVIDE, width(one), kind, r, *numbers))
        s.g("mov_store", t.size, r, behind(places[0], lane * t.size))
    made = [s.new(VECTOR) for _ in range(parts_of(t))]
    for i, r in enumerate(made):
        s.v("vmovups", length(t), r, NO, behind(places[0], 64 * i))
    return value(made)


def divisor(node: Node) -> int:
    """The number by which unsigned numbers are divided; 0 if it is not known, or they are signed."""
    by = node.args[1].const
    return 0 if by is None or node.kind[0] == "s" else by & ((1 << node.type.bits) - 1)


def divided(s: Selector, kind: str, t: VType, a: int, by: int) -> int:
    """A register with the quotient or the remainder of unsigned division by a number: by a product with
    2^(64 + shift) / by, rounded up, if that is exact for all numbers of the type."""
    r = s.new(GENERAL)
    if not by & (by - 1):
        if kind == "udiv":
            s.move(r, a, 8)
            s.g("shr", width(t), r, imm=by.bit_length() - 1)
        else:
            number(s, r, by - 1)
            s.g("and", 8, r, a)
        return r
    bits = max(t.bits, 32)
    if bits == 32:  # the upper half may hold anything
        whole = s.new(GENERAL)
        s.g("mov", 4, whole, a)
        a = whole
    b, high = s.new(GENERAL), s.new(GENERAL)
    shift = next((n for n in range(64) if -(-(1 << 64 + n) // by) * by - (1 << 64 + n) <= 1 << 64 + n - bits), 64)
    factor = -(-(1 << 64 + shift) // by)
    if factor >= 1 << 64:
        number(s, b, by)
        s.code.append((DIVIDE, 8, kind, r, a, b))
        return r
    number(s, b, factor)
    s.code.append((DIVIDE, 8, "uhigh", high, a, b))
    if shift:
        s.g("shr", 8, high, imm=shift)
    if kind == "udiv":
        return high
    product = s.new(GENERAL)
    number(s, product, by)
    s.g("imul", 8, product, high)
    s.move(r, a, 8)
    s.g("sub", 8, r, product)
    return r


def number(s: Selector, register: int, value: int) -> None:
    """Put an unsigned number of 64 bits into a register."""
    s.g("mov", 4 if value < 1 << 31 else 8, register, imm=value - (1 << 64) if value >> 63 else value)
