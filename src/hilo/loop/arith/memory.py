"""Loading and storing elements: contiguous vectors, scalars, gathers. Memory holds i1 as bytes 0 and 1, narrow floats
and integers as their bits (a byte at least), complex numbers interleaved. Imports loop.
"""

from __future__ import annotations

from functools import cache
from math import gcd

from hilo.ir.dtypes import DType
from hilo.loop.arith.rounding import container, from_memory, is_encoded, to_memory
from hilo.loop.builder import Builder
from hilo.loop.element import Elem, held_type
from hilo.loop.nodes import Node, VType


@cache
def memory_type(dtype: DType, lanes: int = 1) -> VType:
    """The loop-IR type of an element (of complex types: a part) in memory."""
    return VType(container(dtype.bits) if is_encoded(dtype) else held_type(dtype).scalar, lanes)


def _pairs(b: Builder, mask: Node | None, lanes: int) -> Node | None:
    """A mask for interleaved parts from one for elements."""
    return None if mask is None else b.shuffle(mask, mask, [k // 2 for k in range(2 * lanes)])


def load_elem(b: Builder, ptr: Node, offset: Node | int, dtype: DType, lanes: int = 1, mask: Node | None = None, *,
              align: int = 0, invariant: bool = False) -> Elem:  # fmt: skip
    """`lanes` consecutive elements at `ptr` + `offset` bytes. Lanes where `mask` (i1) is false are not read and hold 0.

    `align`: what the address is known to be a multiple of; `invariant` as in `Builder.load`.
    """
    at = b.gep(ptr, offset) if offset else ptr
    if not dtype.is_complex:
        v = b.load(at, memory_type(dtype, lanes), mask=mask, align=align, invariant=invariant)
        return from_memory(b, dtype, (v,))
    part = memory_type(dtype).size
    if lanes == 1:
        parts = [b.load(b.gep(at, k * part), memory_type(dtype), mask=mask, invariant=invariant) for k in (0, 1)]
        return Elem(dtype, *parts)
    v = b.load(at, memory_type(dtype, 2 * lanes), mask=_pairs(b, mask, lanes), align=align, invariant=invariant)
    return Elem(dtype, *(b.shuffle(v, v, range(k, 2 * lanes, 2)) for k in (0, 1)))


def store_elem(b: Builder, ptr: Node, offset: Node | int, x: Elem, lanes: int = 0, mask: Node | None = None, *,
               align: int = 0, nontemporal: bool = False) -> None:  # fmt: skip
    """Store `x` (splatted to `lanes`, if it has one) to consecutive places from `ptr` + `offset` bytes on."""
    lanes = lanes or x.lanes
    at = b.gep(ptr, offset) if offset else ptr
    parts = [b.splat(p, lanes) for p in to_memory(b, x)]
    if len(parts) == 1:
        b.store(at, parts[0], mask=mask, align=align, nontemporal=nontemporal)
    elif lanes == 1:
        for k, p in enumerate(parts):
            b.store(b.gep(at, k * p.type.size), p, mask=mask)
    else:
        both = b.shuffle(parts[0], parts[1], [k // 2 + k % 2 * lanes for k in range(2 * lanes)])
        b.store(at, both, mask=_pairs(b, mask, lanes), align=align, nontemporal=nontemporal)


def spaced_elem(b: Builder, ptr: Node, offset: Node, stride: int, first: int, whole: bool, dtype: DType, lanes: int,
                mask: Node | None = None, *, align: int = 0, invariant: bool = False) -> Elem:  # fmt: skip
    """Every `stride`-th element (no complex one) at `ptr` + `offset` bytes, from number `first` on, by plain loads.

    `whole`: groups of `stride` elements may be read wherever one of them may, so that what lies side by side is read
    once (first < stride). Else `first` is 0, and nothing is read beyond the last element. Lanes where `mask` is false
    are not read and hold some value.
    """
    t = memory_type(dtype, lanes)
    last = stride * lanes - lanes if whole else stride * (lanes - 1) + 1 - lanes
    starts = [min(k * lanes, last) for k in range(stride)]
    wanted = [first + stride * lane for lane in range(lanes)]
    piece = [max(k for k, start in enumerate(starts) if start <= n) for n in wanted]
    slot = [n - starts[k] for n, k in zip(wanted, piece, strict=True)]

    def load(k: int) -> Node:
        own = None
        if mask is not None:
            lane = [n // stride if whole or n % stride == 0 else lanes for n in range(starts[k], starts[k] + lanes)]
            own = b.shuffle(mask, b.const(0, mask.type), lane)
        at = b.gep(b.gep(ptr, offset), starts[k] * t.size)
        return b.load(at, t, mask=own, align=gcd(align, starts[k] * t.size), invariant=invariant)

    if whole and stride & (stride - 1) == 0:  # even and odd places are parted, again and again: shared by all `first`
        parts = [load(k) for k in range(stride)]
        while len(parts) > 1:
            lane = range(first % 2, 2 * lanes, 2)
            parts, first = [b.shuffle(x, y, lane) for x, y in zip(parts[::2], parts[1::2], strict=True)], first // 2
        return from_memory(b, dtype, (parts[0],))
    used = sorted(set(piece))
    out = load(used[0])
    if len(set(slot)) == lanes:  # all from different places: blended there, and put in order at last
        at_slot = dict(zip(slot, piece, strict=True))
        for k in used[1:]:
            out = b.shuffle(out, load(k), [lanes * (at_slot[i] == k) + i for i in range(lanes)])
        out = b.shuffle(out, out, slot)
    else:
        for done, k in enumerate(used[1:]):
            before = slot if done == 0 else range(lanes)
            taken = [lanes + i if own == k else old for i, own, old in zip(slot, piece, before, strict=True)]
            out = b.shuffle(out, load(k), taken)
    return from_memory(b, dtype, (out,))


def gather_elem(b: Builder, ptr: Node, offsets: Node, dtype: DType, mask: Node | None = None) -> Elem:
    """The elements at `ptr` + `offsets` (an i64 vector, in bytes); masked lanes are not read and hold 0."""
    t = memory_type(dtype, offsets.type.lanes)
    parts = [b.gather(b.gep(ptr, k * t.size), offsets, t, mask=mask) for k in range(2 if dtype.is_complex else 1)]
    return from_memory(b, dtype, tuple(parts))


def scatter_elem(b: Builder, ptr: Node, offsets: Node, x: Elem, mask: Node | None = None) -> None:
    """Store the lanes of `x` at `ptr` + `offsets` (an i64 vector, in bytes); masked lanes are not written."""
    for k, p in enumerate(to_memory(b, x)):
        p = b.splat(p, offsets.type.lanes)
        b.scatter(b.gep(ptr, k * p.type.size), offsets, p, mask=mask)
