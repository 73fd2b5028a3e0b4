"""Memory: loads and stores of scalars (others: x86.moves), stack memory, fences and prefetches, copies. Imports
x86.select, x86.machine."""

from __future__ import annotations

from typing import Final

from hilo.backend.x86 import constants
from hilo.backend.x86.calls import called
from hilo.backend.x86.integers import small
from hilo.backend.x86.machine import FRAME, GENERAL, NO, VECTOR, Address
from hilo.backend.x86.select import Selector, Value, selects
from hilo.backend.x86.uses import CHANGES, is_short
from hilo.loop.builder import wrap
from hilo.loop.nodes import Node, VType

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
        r = s.result(node)
        s.g("setne", 1, r)
        return r
    r = s.result(node)
    name, size = _LOADS[t.size]
    s.g(name, size, r, a)
    return r


@selects("store", of="scalar", covers=lambda node: len(node.args) == 2)
def store(s: Selector, node: Node) -> Value:
    ptr, value = node.args
    t = value.type
    if t.is_float:
        r = s.use(value)
        s.v("vmovss_store" if t.size == 4 else "vmovsd_store", 0, r, NO, s.affine(ptr))
    else:
        imm = small(value)
        if value in s.lazy and value.kind in CHANGES and value.args[0] in s.lazy:
            change(s, ptr, value)
        elif imm is not None:
            s.g("mov", t.size, NO, s.affine(ptr), imm)
        else:
            r = s.use(value)
            s.g("mov_store", t.size, r, s.affine(ptr))
    return None


def change(s: Selector, ptr: Node, value: Node) -> None:
    """Store what is made of the number that is there: one instruction."""
    there, other = value.args
    imm = small(other)
    r = s.use(other) if imm is None else NO
    s.affine(there.args[0])
    a = s.affine(ptr)
    if imm is not None:
        s.g(value.kind, value.type.size, NO, a, imm)
    else:
        s.g(value.kind + "_store", value.type.size, r, a)


@selects("alloca")
def alloca(s: Selector, node: Node) -> Value:
    return stack(s, node.attrs["size"], node.attrs["align"])


def stack(s: Selector, size: int, align: int) -> Address:
    """The address of `size` bytes of the function's memory on the stack."""
    s.alignment = max(s.alignment, align)
    at = -(-s.frame_size // align) * align
    s.frame_size = at + size
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


# ---- copies
def chunks(size: int, widths: tuple[int, ...]) -> list[tuple[int, int]]:
    """(offset, width) of pieces that cover `size` bytes; the last one may overlap the one before."""
    out, at = [], 0
    for width in widths:
        while size - at >= width:
            out.append((at, width))
            at += width
        if out and at < size:  # the rest ends where all ends
            width = min(w for w in widths if w >= size - at)
            return [*out, (size - width, width)]
    return out


def moved(s: Selector, r: int, a: Address, width: int, store: bool) -> None:
    """Load or store `width` bytes of a general register, or, from 16 on, of a vector."""
    if width >= 16:
        s.v("vmovups" + ("_store" if store else ""), width.bit_length() - 5, r, NO, a)
    elif store:
        s.g("mov_store", width, r, a)
    else:
        name, size = _LOADS[width]
        s.g(name, size, r, a)


@selects("memcpy")
def copy(s: Selector, node: Node) -> Value:
    if not is_short(node):
        return called(s, node, "memcpy", node.args)
    to, source = s.affine(node.args[0]), s.affine(node.args[1])
    for at, width in chunks(node.args[2].const, (64, 32, 16, 8, 4, 2, 1)):
        r = s.new(VECTOR if width >= 16 else GENERAL)
        moved(s, r, behind(source, at), width, False)
        moved(s, r, behind(to, at), width, True)
    return None


@selects("memset")
def fill(s: Selector, node: Node) -> Value:
    if not is_short(node):
        return called(s, node, "memset", node.args)
    byte, size = node.args[1].const & 255, node.args[2].const
    to = s.affine(node.args[0])
    vector = s.new(VECTOR)
    if size >= 16:
        constants.make(s, vector, constants.splat(byte, VType("i8", 64)))
    for at, width in chunks(size, (64, 32, 16, 8, 4, 2, 1)):
        if width >= 16:
            moved(s, vector, behind(to, at), width, True)
            continue
        for part in range(0, width, 4):
            part_width = min(width, 4)
            s.g("mov", part_width, NO, behind(to, at + part), wrap(byte * 0x01010101, 8 * part_width))
    return None
