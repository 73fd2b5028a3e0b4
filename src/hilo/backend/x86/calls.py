"""Calls, parameters and returns, after System V's conventions. Imports x86.select, x86.allocate.

Arguments on the stack are put there one by one; those in registers are named by the call, which moves all at once.
"""

from __future__ import annotations

from typing import Any

from hilo.backend.x86.allocate import passed
from hilo.backend.x86.machine import CALL, ENTER, GENERAL, INCOMING, NO, OUTGOING, RETURN, Address
from hilo.backend.x86.select import Selector, Value, class_of, selects
from hilo.loop.nodes import Node


def receive(s: Selector) -> None:
    """Take the parameters that are used."""
    params = s.func.params
    types = tuple([p.type for p in params])
    used = [(p, s.new(class_of(p.type)), where)
            for p, where in zip(params, passed(types)[0], strict=True) if p in s.uses]  # fmt: skip
    registers = {p: r for p, r, where in used if isinstance(where, int)}
    s.code.append((ENTER, tuple([registers.get(p, NO) for p in params]), types))
    stack = NO
    for p, r, where in used:
        t = p.type
        if not isinstance(where, int):
            if stack == NO:
                stack = s.new(GENERAL)
                s.g("lea", 8, stack, Address(INCOMING))
            place = Address(stack, NO, 1, where[0])
            if t.is_float:
                s.v("vmovss" if t.size == 4 else "vmovsd", 0, r, NO, place)
            else:
                s.g("mov", 8, r, place)
        if t.scalar == "i1":
            s.g("and", 4, r, imm=1)
        s.give(p, r)


@selects("ret")
def ret(s: Selector, node: Node) -> Value:
    s.code.append((RETURN, s.use(node.args[0]) if node.args else NO))
    return None


@selects("call")
def call(s: Selector, node: Node) -> Value:
    return called(s, node, node.attrs["callee"], node.args)


@selects("callptr")
def call_pointer(s: Selector, node: Node) -> Value:
    return called(s, node, s.use(node.args[0]), node.args[1:])


def called(s: Selector, node: Node, callee: int | str, args: tuple[Node, ...]) -> Value:
    types = tuple([a.type for a in args])
    handed = tuple([argument(s, a, where) for a, where in zip(args, passed(types)[0], strict=True)])
    t = node.type
    r = NO if t.scalar == "void" else s.new(class_of(t))
    s.code.append((CALL, callee, handed, types, r, t))
    if t.scalar == "i1":
        s.g("and", 4, r, imm=1)
    return r if r != NO else None


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
