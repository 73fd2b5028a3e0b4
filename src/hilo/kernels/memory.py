"""Arrays in memory as kernels see them: loads and stores of elements at indices. Imports loop, ir.types.

The way one lane's address follows from the one before decides what a load becomes: a contiguous load, one element for
all lanes, a load turned around, some loads that are put together, or a gather. Nothing is read outside of the array,
whatever the index: lanes that are out of range are masked.
"""

from __future__ import annotations

from math import gcd
from typing import Final

from hilo.ir.types import TensorType
from hilo.loop import arith, index
from hilo.loop.builder import PTR, Builder, Node
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.record import record

RESULT_ALIGN: Final = 64  # bytes; of results, temporaries and scratch
AHEAD: Final = 2 << 10  # bytes that streams too long for near caches are fetched ahead of their reader
SPACED: Final = 8  # elements from lane to lane up to which contiguous loads, and shuffles, are better than a gather


def pointer(b: Builder, bufs: Node, number: int) -> Node:
    """Pointer `number` of a kernel's array of pointers."""
    return b.load(b.gep(bufs, PTR.size * number), PTR, invariant=True)


@record(eq=False)
class Buffer:
    """A dense row-major array of type `type` at `ptr`, which is a multiple of `align` bytes.

    `constant`: its memory does not change while the kernel runs, so loads may move. `streaming`: it is too large to
    stay in a cache, and stores go past the caches where they can (a fence is due at the end).
    """

    ptr: Node
    type: TensorType
    align: int = 1
    constant: bool = False
    streaming: bool = False

    def load(self, b: Builder, at: tuple[Index, ...], lanes: int, mask: Node | None = None) -> Elem:
        """The element at the indices `at`: a vector if the index differs from lane to lane, else a scalar.

        Lanes where `mask` is false or the index is out of range read nothing and hold some value.
        """
        t = self.type
        if t.size == 0:
            return arith.zero(b, t.dtype)
        inside = self._inside(b, at)
        position = index.linear(at, t.shape)
        if inside is not None and inside.const == 0:
            position, inside = index.ZERO, None
        size = t.dtype.itemsize
        if not position.is_vector:
            offset = index.node(b, position * size)
            if inside is not None:
                scalar = inside if inside.type.lanes == 1 else index.in_range(b, position, 0, t.size)
                offset = b.select(scalar, offset, 0)
            return arith.load_elem(b, self.ptr, offset, t.dtype, invariant=self.constant)
        if inside is not None:
            mask = inside if mask is None else b.and_(mask, inside)
        if mask is not None:
            mask = b.splat(mask, lanes)
        stride = position.lane_stride
        if stride == 1:
            return self._contiguous(b, position, 0, lanes, mask)
        if stride == -1:
            return self._backwards(b, position, lanes, mask)
        if stride is not None and 1 < stride <= SPACED and not t.dtype.is_complex:
            return self._spaced(b, position.first_lane(), stride, lanes, mask)
        return arith.gather_elem(b, self.ptr, index.node(b, position * size), t.dtype, mask)

    def store(self, b: Builder, position: Index, value: Elem, lanes: int, mask: Node | None = None) -> None:
        """Store `value` from the linear position on: one element if `position` does not differ from lane to lane."""
        size = self.type.dtype.itemsize
        if not position.is_vector:
            arith.store_elem(b, self.ptr, index.node(b, position * size), value, mask=mask)
            return
        if mask is not None:
            mask = b.splat(mask, lanes)
        back, stride = 0, position.lane_stride
        if stride == -1:
            value, mask = _turned(b, value, lanes, mask)
            back = lanes - 1
        elif stride != 1:
            arith.scatter_elem(b, self.ptr, index.node(b, position * size), value, mask)
            return
        at, align = self.place(b, position, -back * size)
        past = self.streaming and mask is None and align % min(lanes * size, RESULT_ALIGN) == 0
        arith.store_elem(b, at, 0, value, lanes, mask, align=align, nontemporal=past)

    def fetch(self, b: Builder, position: Index, distance: int, *, write: bool = False, locality: int = 3) -> None:
        """Bring what lies `distance` bytes behind the linear position (of the first lane) into the first-level cache
        (`locality` 2: the second-level one). Nothing happens where there is no such memory."""
        b.prefetch(self.place(b, position, distance)[0], write=write, locality=locality)

    def place(self, b: Builder, position: Index, further: int = 0) -> tuple[Node, int]:
        """The address `further` bytes behind an element (of the first lane), and what it is surely a multiple of. First
        comes what vectors side by side share, then the number that instructions can hold."""
        dtype = self.type.dtype
        size = dtype.itemsize
        number = position.const * size + further
        known, offset = number, None
        for a, c in position.terms.items():
            if not a.lanes:
                n = b.mul(index.atom(b, a), c * size)
                offset = n if offset is None else b.add(offset, n)
                known = gcd(known, c * size * a.multiple)
        at = self.ptr if offset is None else b.gep(self.ptr, offset)
        return b.gep(at, number) if number else at, self._alignment(known)

    # ---- pieces
    def _inside(self, b: Builder, at: tuple[Index, ...]) -> Node | None:
        """Whether all indices are in range; 0 if one never is, None if they surely are."""
        inside: Node | None = None
        for i, n in zip(at, self.type.shape, strict=True):
            if isinstance(n, int) and i.lo >= 0 and i.hi < n:
                continue
            x = index.in_range(b, i, 0, n)
            if x.const == 0:
                return x
            if x.const is None:
                inside = x if inside is None else b.and_(inside, x)
        return inside

    def _alignment(self, multiple: int) -> int:
        """What addresses at multiples of so many bytes are surely multiples of; at least what (a part of) an element
        is."""
        part = self.type.dtype.itemsize // (2 if self.type.dtype.is_complex else 1)
        return max(min(self.align, multiple & -multiple) if multiple else self.align, part)

    def _contiguous(self, b: Builder, position: Index, back: int, lanes: int, mask: Node | None) -> Elem:
        """The vector that begins `back` elements before the first lane's."""
        dtype = self.type.dtype
        at, align = self.place(b, position, -back * dtype.itemsize)
        return arith.load_elem(b, at, 0, dtype, lanes, mask, align=align, invariant=self.constant)

    def _spaced(self, b: Builder, first: Index, stride: int, lanes: int, mask: Node | None) -> Elem:
        """The elements at `first`, `first + stride` ...: in whole groups of `stride` if the array is made of them."""
        number, size = first.const % stride, self.type.size
        group = first - number
        whole = group.multiple % stride == 0 and isinstance(size, int) and size % stride == 0
        if not whole:
            group, number = first, 0
        base = group * self.type.dtype.itemsize
        return arith.spaced_elem(b, self.ptr, index.node(b, base), stride, number, whole, self.type.dtype, lanes, mask,
                                 align=self._alignment(base.multiple), invariant=self.constant)  # fmt: skip

    def _backwards(self, b: Builder, position: Index, lanes: int, mask: Node | None) -> Elem:
        """The vector that ends with the first lane's element, turned around."""
        if mask is not None:
            mask = b.shuffle(mask, mask, range(lanes - 1, -1, -1))
        return _turned(b, self._contiguous(b, position, lanes - 1, lanes, mask), lanes)[0]


def _turned(b: Builder, e: Elem, lanes: int, mask: Node | None = None) -> tuple[Elem, Node | None]:
    """The lanes of an element and of its mask in the opposite order."""

    def turn(x: Node | None) -> Node | None:
        return x if x is None or x.type.lanes == 1 else b.shuffle(x, x, range(lanes - 1, -1, -1))

    re = turn(e.re)
    assert re is not None
    return Elem(e.dtype, re, turn(e.im)), turn(mask)
