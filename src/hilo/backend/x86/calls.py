"""Calls, parameters and returns, after System V's conventions. Imports x86.select, x86.allocate.

Arguments on the stack are put there one by one; those in registers are named by the call, which moves all at once.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from hilo.backend.x86.allocate import passed
from hilo.backend.x86.machine import CALL, ENTER, GENERAL, INCOMING, NO, OUTGOING, RETURN, Address
from hilo.backend.x86.select import Selector, Value, class_of, parts_of, selects
from hilo.loop.nodes import Node, VType


@cache
def flattened(types: tuple[VType, ...]) -> tuple[VType, ...]:
    """The types of what is handed over for values of some types: vectors of more than 64 bytes in parts."""
    return tuple([t.with_lanes(t.lanes // parts_of(t)) for t in types for _ in range(parts_of(t))])


def receive(s: Selector) -> None:
    """Take the parameters that are used."""
    params = s.func.params
    types = flattened(tuple([p.type for p in params]))
    taken: list[int] = []
    for p in params:
        n = parts_of(p.type)
        taken += [s.new(class_of(p.type)) for _ in range(n)] if p in s.uses else [NO] * n
    places = passed(types)[0]
    registers = tuple([r if isinstance(where, int) else NO for r, where in zip(taken, places, strict=True)])
    s.code.append((ENTER, registers, types))
    stack = NO
    for r, t, where in zip(taken, types, places, strict=True):
        if r != NO and not isinstance(where, int):
            if stack == NO:
                stack = s.new(GENERAL)
                s.g("lea", 8, stack, Address(INCOMING))
            place = Address(stack, NO, 1, where[0])
            if t.is_float:
                s.v("vmovss" if t.size == 4 else "vmovsd", 0, r, NO, place)
            else:
                s.g("mov", 8, r, place)
        if r != NO and t.scalar == "i1":
            s.g("and", 4, r, imm=1)
    at = 0
    for p in params:
        n = parts_of(p.type)
        if p in s.uses:
            s.give(p, taken[at] if n == 1 else tuple(taken[at : at + n]))
        at += n


@selects("ret")
def ret(s: Selector, node: Node) -> Value:
    s.code.append((RETURN, s.parts(node.args[0]) if node.args else ()))
    return None


@selects("call")
def call(s: Selector, node: Node) -> Value:
    return called(s, node, node.attrs["callee"], node.args)


@selects("callptr")
def call_pointer(s: Selector, node: Node) -> Value:
    return called(s, node, s.use(node.args[0]), node.args[1:])


def called(s: Selector, node: Node, callee: int | str, args: tuple[Node, ...]) -> Value:
    types = flattened(tuple([a.type for a in args]))
    places = iter(passed(types)[0])
    handed: list[Any] = []
    for a in args:
        if parts_of(a.type) == 1:
            handed.append(argument(s, a, next(places)))
        else:
            handed += s.parts(a)
            for _ in range(parts_of(a.type)):
                next(places)
    t = node.type
    results: tuple[int, ...] = () if t.scalar == "void" else tuple([s.new(class_of(t)) for _ in range(parts_of(t))])
    s.code.append((CALL, callee, tuple(handed), types, results, t))
    if t.scalar == "i1":
        for r in results:
            s.g("and", 4, r, imm=1)
    return None if not results else results if results[1:] else results[0]


def argument(s: Selector, node: Node, where: int | tuple[int]) -> Any:
    """Hand over an argument: put it on the stack, or say what comes into its register."""
    t, c = node.type, node.const
    number = c if c is not None and not t.is_float and t.lanes == 1 and -(1 << 31) <= c < 1 << 31 else None
    if isinstance(where, int):
        return s.use(node) if number is None else (number,)
    place = Address(OUTGOING, NO, 1, where[0])
    if number is not None:
        s.g("mov", 8, NO, place, number)
    elif t.is_float:
        s.v("vmovsd_store", 0, s.use(node), NO, place)
    else:
        s.g("mov_store", 8, s.use(node), place)
    return NO
