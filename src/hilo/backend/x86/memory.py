"""Memory: loads and stores, stack memory, fences and prefetches. Imports x86.select, x86.machine."""

from __future__ import annotations

from typing import Final

from hilo.backend.x86.integers import small
from hilo.backend.x86.machine import FRAME, GENERAL, NO, Address
from hilo.backend.x86.select import Selector, Value, length, parts_of, selects
from hilo.loop.nodes import Node

_LOADS: Final = {1: ("movzb", 4), 2: ("movzw", 4), 4: ("mov", 4), 8: ("mov", 8)}


def behind(a: Address, bytes_: int) -> Address:
    """The address so many bytes further on."""
    return Address(a.base, a.index, a.scale, a.disp + bytes_) if bytes_ else a


@selects("load", of="scalar", covers=lambda node: len(node.args) == 1)
def load(s: Selector, node: Node) -> Value:
    t = node.type
    a = s.affine(node.args[0])
    if t.is_float:
        r = s.result(node)
        s.v("vmovss" if t.size == 4 else "vmovsd", 0, r, NO, a)
        return r
    if t.scalar == "i1":
        s.g("cmp", 1, NO, a, imm=0)
        c, r = s.new(GENERAL), s.result(node)
        s.g("setne", 1, c)
        s.g("movzb", 4, r, c)
        return r
    r = s.result(node)
    name, size = _LOADS[t.size]
    s.g(name, size, r, a)
    return r


@selects("load", of="vector", covers=lambda node: len(node.args) == 1 and node.type.lanes * node.type.size >= 16)
def load_vector(s: Selector, node: Node) -> Value:
    t = node.type
    a = s.affine(node.args[0])
    n = parts_of(t)
    if n == 1:
        r = s.result(node)
        s.v("vmovups", length(t), r, NO, a)
        return r
    places = s.results(node)
    for i, r in enumerate(places):
        s.v("vmovups", 2, r, NO, behind(a, 64 * i))
    return places


@selects("store", covers=lambda node: len(node.args) == 2
         and (node.args[1].type.lanes == 1 or node.args[1].type.lanes * node.args[1].type.size >= 16))  # fmt: skip
def store(s: Selector, node: Node) -> Value:
    ptr, value = node.args
    t = value.type
    if t.lanes > 1:
        parts = s.parts(value)
        a = s.affine(ptr)
        name = "vmovntps_store" if node.attrs.get("nontemporal") else "vmovups_store"
        for i, r in enumerate(parts):
            s.v(name, length(t), r, NO, behind(a, 64 * i))
    elif t.is_float:
        r = s.use(value)
        s.v("vmovss_store" if t.size == 4 else "vmovsd_store", 0, r, NO, s.affine(ptr))
    else:
        imm = small(value)
        if imm is not None:
            s.g("mov", t.size, NO, s.affine(ptr), imm)
        else:
            r = s.use(value)
            s.g("mov_store", t.size, r, s.affine(ptr))
    return None


@selects("alloca")
def alloca(s: Selector, node: Node) -> Value:
    align = node.attrs["align"]
    s.alignment = max(s.alignment, align)
    at = -(-s.frame_size // align) * align
    s.frame_size = at + node.attrs["size"]
    return Address(FRAME, NO, 1, at)


@selects("fence")
def fence(s: Selector, node: Node) -> Value:
    s.g("sfence", 0, NO)
    return None


@selects("prefetch")
def prefetch(s: Selector, node: Node) -> Value:
    write = node.attrs["write"] and "+prfchw" in s.target.features.split(",")
    name = "prefetchw" if write else ("prefetchnta", "prefetcht2", "prefetcht1", "prefetcht0")[node.attrs["locality"]]
    s.g(name, 0, NO, s.affine(node.args[0]))
    return None


@selects("atomic_add")
def atomic_add(s: Selector, node: Node) -> Value:
    ptr, value = node.args
    v = s.use(value)
    a = s.affine(ptr)
    r = s.new(GENERAL)
    s.move(r, v)
    s.g("xadd_lock", value.type.size, r, a)
    return r
