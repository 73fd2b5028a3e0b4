"""Loading and storing elements: contiguous vectors, scalars, gathers. Memory holds i1 as bytes 0 and 1, narrow floats
and integers as their bits (a byte at least), complex numbers interleaved. Imports loop.
"""

from __future__ import annotations

from hilo.ir.dtypes import DType
from hilo.loop.arith.rounding import container, from_memory, is_encoded, to_memory
from hilo.loop.builder import Builder
from hilo.loop.element import Elem, held_type
from hilo.loop.nodes import Node, VType


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
    at = b.gep(ptr, offset)
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
    at = b.gep(ptr, offset)
    parts = [b.splat(p, lanes) for p in to_memory(b, x)]
    if len(parts) == 1:
        b.store(at, parts[0], mask=mask, align=align, nontemporal=nontemporal)
    elif lanes == 1:
        for k, p in enumerate(parts):
            b.store(b.gep(at, k * p.type.size), p, mask=mask)
    else:
        both = b.shuffle(parts[0], parts[1], [k // 2 + k % 2 * lanes for k in range(2 * lanes)])
        b.store(at, both, mask=_pairs(b, mask, lanes), align=align, nontemporal=nontemporal)


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
