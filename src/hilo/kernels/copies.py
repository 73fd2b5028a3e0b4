"""Copies of runs of memory: concatenation and updates of slices. Imports ops, loop, kernels.

Operands of equal size that follow one another are done by one loop over their pointers, so that thousands of them cost
no code. Long runs go past the caches where the result is too large for them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import groupby
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import typical
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels import elementwise
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, pointer
from hilo.loop import arith, index
from hilo.loop.builder import I64, PTR, Builder, Func, Node
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.loop.nodes import VType
from hilo.ops.elements import window_start
from hilo.ops.fusion import wrap
from hilo.record import record

if TYPE_CHECKING:
    from hilo.backend.target import Target

PIECE: Final = 32 << 10  # bytes that a unit copies
BYTES_PER_NS: Final = 8.0
MANY: Final = 16  # loops in one kernel
_WORDS: Final = ((8, "f64"), (4, "f32"), (2, "i16"), (1, "i8"))


class Copier:
    """Copies runs of bytes, all lengths and positions being multiples of `unit` bytes."""

    def __init__(self, b: Builder, unit: int, target: Target, *, streaming: bool = False) -> None:
        self.b = b
        self.size, self.scalar = next((n, t) for n, t in _WORDS if unit % n == 0)
        self.lanes = max(1, target.vector_bytes // self.size)
        self.masks = target.has_masks
        self.streaming = streaming

    def copy(self, result: Node, to: Index, source: Node, at: Index, length: int, lo: Node | int = 0,
             hi: Node | int | None = None, *, unroll: int = 4, later: Node | None = None) -> None:  # fmt: skip
        """Bytes lo..hi (all, if not given) of a run of `length` bytes from source + at to result + to.

        `lo` is a multiple of `unroll` vectors, and so is `hi` unless it is `length`; `result` is aligned like results
        are. `later`: from there on as many bytes are brought into a near cache meanwhile.
        """
        b, size = self.b, self.size

        def words(x: Node | int | None) -> Node | int:
            if x is None:
                return length // size
            return x // size if isinstance(x, int) else b.binary("ashr", x, size.bit_length() - 1)

        source, place = b.gep(source, index.node(b, at)), b.gep(result, index.node(b, to))
        m = to.multiple
        align = RESULT_ALIGN if m == 0 else min(m & -m, RESULT_ALIGN)

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            values = []
            for v in vectors:
                offset = index.node(b, v.at.first_lane() * size)
                t = VType(self.scalar, v.lanes)
                values.append((v, offset, b.load(b.gep(source, offset), t, mask=v.mask, align=size)))
            for v, offset, value in values:
                if later is not None and v.mask is None:
                    b.prefetch(b.gep(later, offset))
                known = max(size, min(align, v.lanes * size))
                past = self.streaming and v.mask is None and known == v.lanes * size
                b.store(b.gep(place, offset), value, mask=v.mask, align=known, nontemporal=past)
            return ()

        n = length // size
        unroll = unroll if typical(n) >= unroll * self.lanes else 1
        vector_loop(b, words(lo), words(hi), n, turn, lanes=self.lanes, unroll=unroll, masks=self.masks)


def concatenate(op: Op, target: Target) -> Lowered:
    """The kernel of a `concatenate`."""
    t = op.tensor
    d = op.attrs["dimension"]
    if t.size == 0:
        return Lowered([])
    outer, item = prod(t.shape[:d]), prod(t.shape[d + 1 :]) * t.dtype.itemsize
    runs = [x.shape[d] * item for x in op.operands]
    short = [n for n in runs if n]
    if outer > 1 and len(short) <= 4 and sum(short) < 2 * target.vector_bytes:
        body = wrap(op)
        return elementwise.lower(body, [op.operands.index(x) for x in dict.fromkeys(op.operands)], len(runs), target)
    row = t.shape[d] * item
    func = elementwise.new_func("concatenate")
    b = Builder(func)
    bufs, begin, end = func.params
    result = pointer(b, bufs, len(runs))
    streaming = elementwise.streams(t, target)
    groups = [(n, len(list(group))) for n, group in groupby(runs)]
    if len(groups) > MANY:
        helpers = _row_by_row(b, (begin, end), bufs, runs, outer)
        b.ret()
        return Lowered([Phase(func, outer, row / BYTES_PER_NS, helpers)], strategy="copies, row by row",
                       reason=f"{len(groups)} operands of different sizes: too many for code of their own")  # fmt: skip
    units = offset = first = 0
    for n, count in groups:
        if n:
            copier = Copier(b, n | row | offset | item & -item, target, streaming=streaming)
            units += _copies(b, copier, bufs, result, (begin, end), units, (first, count, outer), (n, offset, row))
        first += count
        offset += n * count
    if streaming:
        b.fence()
    b.ret()
    return Lowered([Phase(func, units, t.nbytes / units / BYTES_PER_NS)], strategy="copies of runs",
                   reason=f"runs of {min(short, default=0)} to {max(short, default=0)} bytes")  # fmt: skip


def _row_by_row(b: Builder, span: tuple[Node, Node], bufs: Node, runs: list[int], outer: int) -> list[Func]:
    """Operands of many sizes: one copy of a known length after the other for each row of the result.

    The copies are in functions of bounded length, since code generation is not linear in the length of a function.
    """
    row, name = sum(runs), f"concatenate.{zlib.crc32(repr((runs, outer)).encode()):08x}"
    helpers: list[Func] = []
    offset = 0
    for first in range(0, len(runs), MANY):
        helper = Func(f"{name}.{first}", [("bufs", PTR), ("row", I64)], private=True, inline="never")
        inner = Builder(helper)
        r = index.loop_var(helper.params[1], 0, max(outer, 2))
        result = pointer(inner, helper.params[0], len(runs))
        for i, n in enumerate(runs[first : first + MANY], first):
            if n:
                place = inner.gep(result, index.node(inner, r * row + offset))
                inner.memcpy(place, inner.gep(pointer(inner, helper.params[0], i), index.node(inner, r * n)), n)
                offset += n
        inner.ret()
        helpers.append(helper)

    def unit(u: Node) -> None:
        for helper in helpers:
            b.call(helper.name, (bufs, u))

    b.for_(*span, 1, unit)
    return helpers


def _copies(b: Builder, copier: Copier, bufs: Node, result: Node, span: tuple[Node, Node], before: int,
            counts: tuple[int, int, int], sizes: tuple[int, int, int]) -> int:  # fmt: skip
    """Copy operands first.. (count of them): `outer` runs of n bytes each to offset, offset + row ... of the result.

    Does those of its units, which are numbered from `before` on, that lie in `span`; gives their number.
    """
    first, count, outer = counts
    n, offset, row = sizes
    pieces = -(-n // PIECE)
    rows = max(1, PIECE // n)  # runs that a unit copies
    blocks = -(-outer // rows)
    units = count * blocks * pieces

    def unit(u: Node) -> None:
        number = index.loop_var(u, before, before + units) - before
        which, block, piece = index.delinear(number, (count, blocks, pieces))
        source = b.load(b.gep(bufs, index.node(b, which * 8 + first * 8)), PTR, invariant=True)
        lo = b.mul(index.node(b, piece), PIECE)
        hi = b.smin(b.add(lo, PIECE), n)

        def one(iv: Node) -> None:
            r = index.loop_var(iv, 0, outer)
            copier.copy(result, r * row + which * n + offset, source, r * n, n, lo, hi)

        start = b.mul(index.node(b, block), rows)
        b.for_(start, b.smin(b.add(start, rows), outer), 1, one)

    b.for_(b.smax(span[0], before), b.smin(span[1], before + units), 1, unit)
    return units


def dynamic_update_slice(op: Op, target: Target) -> Lowered:
    """The kernel of a `dynamic_update_slice`: copy the operand, unless it is the result already, then the update."""
    t, update = op.tensor, op.operands[1].tensor
    if t.size == 0:
        return Lowered([])
    count = len(op.operands)
    phases = [copy_if_elsewhere(t, (0, count), target)]
    if update.size == 0:
        return Lowered(phases, in_place=((0, 0),), strategy="copy", reason="there is nothing to update")
    func = elementwise.new_func("update")
    b = Builder(func)
    bufs, begin, end = func.params
    starts = [_Scalar(b, bufs, 2 + i, x.tensor) for i, x in enumerate(op.operands[2:])]
    first = window_start(b, starts, update.shape, t.shape)
    whole = len(t.shape)  # axes from here on are updated in runs: the last that is not whole, and those behind it
    while whole > 0 and (whole == len(t.shape) or update.shape[whole] == t.shape[whole]):
        whole -= 1
    run = prod(update.shape[whole:]) * t.dtype.itemsize
    outer = update.shape[:whole]
    item = prod(t.shape[whole + 1 :]) * t.dtype.itemsize if t.shape else t.dtype.itemsize
    copier = Copier(b, item | run, target)
    source, result = pointer(b, bufs, 1), pointer(b, bufs, count)
    units = prod(outer)

    def unit(u: Node) -> None:
        r = index.loop_var(u, 0, units)
        inside = [*index.delinear(r, outer), *[index.ZERO] * (len(t.shape) - whole)]
        at = [i + s for i, s in zip(inside, first, strict=True)]
        copier.copy(result, index.linear(at, t.shape) * t.dtype.itemsize, source, r * run, run)

    b.for_(begin, end, 1, unit)
    b.ret()
    phases.append(Phase(func, units, max(run / BYTES_PER_NS, 2.0)))
    return Lowered(phases, in_place=((0, 0),), strategy="update",
                   reason=f"in place, if the operand is not needed; runs of {run} bytes")  # fmt: skip


@record
class _Scalar:
    """Operand `number`, a rank-0 tensor, as the closure that `window_start` takes."""

    b: Builder
    bufs: Node
    number: int
    type: TensorType

    def __call__(self, index: Sequence[Index]) -> Elem:
        return arith.load_elem(self.b, pointer(self.b, self.bufs, self.number), 0, self.type.dtype, invariant=True)


def copy_if_elsewhere(t: TensorType, places: tuple[int, int], target: Target) -> Phase:
    """A phase that copies one buffer to another, unless they are the same."""
    func = elementwise.new_func("copy")
    b = Builder(func)
    bufs, begin, end = func.params
    source, result = (pointer(b, bufs, i) for i in places)
    streaming = elementwise.streams(t, target)
    copier = Copier(b, t.dtype.itemsize, target, streaming=streaming)

    def copy() -> None:
        hi = b.smin(b.mul(end, PIECE), t.nbytes)
        copier.copy(result, index.ZERO, source, index.ZERO, t.nbytes, b.mul(begin, PIECE), hi)
        if streaming:
            b.fence()

    same = b.cmp("eq", b.convert("ptrtoint", source, "i64"), b.convert("ptrtoint", result, "i64"))
    b.if_(same, lambda: None, copy)
    b.ret()
    units = -(-t.nbytes // PIECE)
    return Phase(func, units, min(typical(t.nbytes), PIECE) / BYTES_PER_NS)
