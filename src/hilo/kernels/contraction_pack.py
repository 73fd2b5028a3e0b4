"""Bringing the operands of a contraction into the form that micro-kernels read: [batch, rows, columns], dense, in the
type that is accumulated. Imports loop, kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import Number
from hilo.ir.dtypes import DType
from hilo.kernels.contraction_algebra import Dim
from hilo.kernels.loops import Vector, vector_loop
from hilo.loop import arith, index
from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType
from hilo.loop.element import Elem
from hilo.loop.index import Index

if TYPE_CHECKING:
    from hilo.backend.target import Target

COPIED: Final = 512  # bytes of a row from which the system's function copies it as quickly as a loop of our own
Unit = Callable[[Builder, Node, Node], None]  # (b, bufs, unit)


def phase_func(name: str, unit: Unit) -> Func:
    """void f(ptr bufs, i64 begin, i64 end): `unit` for each of begin..end."""
    f = Func(name, [("bufs", PTR), ("begin", I64), ("end", I64)])
    b = Builder(f)
    bufs, begin, end = f.params
    b.for_(begin, end, 1, lambda u: unit(b, bufs, u))
    b.ret()
    return f


def offset(i: Index, dims: Sequence[Dim], operand: str) -> Index:
    """Where `operand` ("a" or "b") has the element with linear index `i` over `dims`, in elements."""
    out = index.ZERO
    for d, x in zip(dims, index.delinear(i, [d.size for d in dims]), strict=True):
        out = out + x * getattr(d, operand)
    return out


def read(b: Builder, ptr: Node, position: Index, dtype: DType, v: Vector) -> Elem:
    """The elements at `position` for the lanes of `v`; masked lanes read nothing."""
    size = dtype.itemsize
    if v.lanes == 1:
        return arith.load_elem(b, ptr, index.node(b, position * size), dtype, 1, v.mask)
    if position.lane_stride == 1:
        return arith.load_elem(b, ptr, index.node(b, position.first_lane() * size), dtype, v.lanes, v.mask)
    offsets = b.splat(index.node(b, position * size), v.lanes)
    return arith.gather_elem(b, ptr, offsets, dtype, v.mask)


def is_run(at: Callable[[Index], Index], columns: Number, size: int) -> bool:
    """Whether the elements of a row, `size` bytes each, lie one behind the other, enough to call a function for."""
    long = isinstance(columns, int) and columns * size >= COPIED
    return long and at(index.lane_numbers(columns)).lane_stride == 1


def call(b: Builder, func: Func, args: Sequence[Node | int]) -> None:
    """Call a function for a long row: how good the code around it is does not matter."""
    b.func.helpers = {**(b.func.helpers or {}), func.name: func}
    b.func.attrs["outer"] = True
    b.call(func.name, [a if isinstance(a, Node) else b.i64(a) for a in args])


def flipped(b: Builder, x: Elem) -> Elem:
    """Signed bytes with 128 added, to be unsigned."""
    return Elem(x.dtype, b.xor(x.re, -128))


def rows_unit(
    source: Callable[[Index, Index, Index], Index],
    sizes: tuple[int, int, int],
    ld: int,
    dtype: DType,
    to: DType,
    pointers: Callable[[Builder, Node], tuple[Node, Node]],
    change: Callable[[Builder, Elem], Elem] | None,
    pad: int,
    target: Target,
) -> Unit:
    """Unit u: row u of [batch, rows, columns] (`sizes`), converted to `to`; rows are `ld` elements apart, and the first
    `pad` elements after a row are zeroed.

    `source(batch, row, column)` is the element's position in the operand.
    """
    batch, rows, columns = sizes
    size = to.itemsize
    lanes = max(1, target.vector_bytes // max(size, dtype.itemsize, 4 if dtype.bits <= 16 and dtype.is_float else 1))

    def unit(b: Builder, bufs: Node, u: Node) -> None:
        src, dst = pointers(b, bufs)
        bt, r = index.delinear(index.loop_var(u, 0, batch * rows), (batch, rows))
        line = b.gep(dst, b.mul(u, ld * size))
        start = source(bt, r, index.ZERO)
        if dtype is to and change in (None, flipped) and is_run(lambda at: source(bt, r, at), columns, size):
            first = b.gep(src, index.node(b, start * size))
            if change is None:
                b.memcpy(line, first, columns * size)
                b.func.attrs["outer"] = True
            else:
                from hilo.kernels.contraction_bytes import flip

                call(b, flip(target), (first, line, columns))
            if pad:
                b.memset(b.gep(line, columns * size), 0, pad * size)
            return

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                x = read(b, src, source(bt, r, v.at), dtype, v)
                x = arith.convert(b, change(b, x) if change else x, to)
                at = v.at.first_lane() if v.lanes > 1 else v.at
                arith.store_elem(b, line, index.node(b, at * size), x, v.lanes, v.mask)
            return ()

        vector_loop(b, 0, columns, columns, turn, lanes=lanes, masks=target.has_masks)
        if pad:
            b.memset(b.gep(line, columns * size), 0, pad * size)

    return unit


def complex_unit(
    source: Callable[[Index, Index, Index], Index],
    sizes: tuple[int, int, int],
    dtype: DType,
    to: DType,
    pointers: Callable[[Builder, Node], tuple[Node, Node]],
    target: Target,
) -> Unit:
    """Unit u: rows 2u and 2u + 1 of the real matrices [batch, 2 rows, 2 columns] that multiply (re, im) pairs from the
    right like the complex numbers x of the operand: (re x, im x) above (-im x, re x).
    """
    batch, rows, columns = sizes
    lanes = target.lanes(to)

    def unit(b: Builder, bufs: Node, u: Node) -> None:
        src, dst = pointers(b, bufs)
        bt, r = index.delinear(index.loop_var(u, 0, batch * rows), (batch, rows))
        line = b.gep(dst, b.mul(u, 2 * columns * to.itemsize))

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                x = arith.convert(b, read(b, src, source(bt, r, v.at), dtype, v), to)
                assert x.im is not None
                at = index.node(b, (v.at.first_lane() if v.lanes > 1 else v.at) * to.itemsize)
                arith.store_elem(b, line, at, x, v.lanes, v.mask)
                below = Elem(to, b.fneg(x.im), x.re)
                arith.store_elem(b, line, b.add(at, columns * to.itemsize), below, v.lanes, v.mask)
            return ()

        vector_loop(b, 0, columns, columns, turn, lanes=lanes, masks=target.has_masks)

    return unit


def groups_unit(
    source: Callable[[Index, Index, Index], Index],
    sizes: tuple[int, int, int],
    dtype: DType,
    parts: int,
    pointers: Callable[[Builder, Node], tuple[Node, Node]],
    target: Target,
) -> Unit:
    """Unit u: row u of [batch, groups, columns] of i32, each of `parts` elements of a column, one below the other:
    bytes (`parts` 4) or i16. What lies past the last row is 0. `sizes` and `source` are those of the operand.
    """
    batch, rows, columns = sizes
    groups = -(-rows // parts)
    bits = 32 // parts
    how = "sext" if dtype.kind == "i" else "zext"

    def unit(b: Builder, bufs: Node, u: Node) -> None:
        src, dst = pointers(b, bufs)
        bt, g = index.delinear(index.loop_var(u, 0, batch * groups), (batch, groups))
        line = b.gep(dst, b.mul(u, columns * 4))
        start = source(bt, g * parts, index.ZERO)
        apart = source(bt, g * parts + 1, index.ZERO) - start
        known = isinstance(rows, int) and not apart.terms
        if bits == dtype.bits == 8 and known and is_run(lambda at: source(bt, g, at), columns, 4):
            count = b.smin(b.sub(b.i64(rows), index.node(b, g * parts)), parts) if rows % parts else parts
            args = (b.gep(src, index.node(b, start)), apart.const, count, line, columns)
            from hilo.kernels.contraction_bytes import group

            call(b, group(target), args)
            return

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                word = b.const(0, VType("i32", v.lanes))
                for p in range(parts):
                    row = g * parts + p
                    inside = index.in_range(b, row, 0, rows)
                    if inside.const is None:
                        row = index.from_node(b, b.select(inside, index.node(b, row), 0), 0, rows)
                    elif not inside.const:
                        continue
                    x = b.splat(b.convert(how, read(b, src, source(bt, row, v.at), dtype, v).re, "i32"), v.lanes)
                    x = b.shl(b.and_(x, (1 << bits) - 1), p * bits)
                    word = b.or_(word, b.select(inside, x, 0))
                at = v.at.first_lane() if v.lanes > 1 else v.at
                b.store(b.gep(line, index.node(b, at * 4)), word, mask=v.mask)
            return ()

        vector_loop(b, 0, columns, columns, turn, lanes=target.lanes("i32"), masks=target.has_masks)

    return unit


def compensation_unit(
    batch: int,
    groups: int,
    columns: int,
    pointers: Callable[[Builder, Node], tuple[Node, Node]],
    block: int,
    target: Target,
) -> Unit:
    """For [batch, groups, columns] of packed signed bytes, [batch, columns] of i32: -128 times the sum of each column.

    The other operand's bytes have 128 added to be unsigned; this takes it away again. Unit: `block` columns of a batch.
    """
    blocks = -(-columns // block)

    def unit(b: Builder, bufs: Node, u: Node) -> None:
        src, dst = pointers(b, bufs)
        bt, part = (index.node(b, i) for i in index.delinear(index.loop_var(u, 0, batch * blocks), (batch, blocks)))
        lo = b.mul(part, block)
        hi = b.smin(b.add(lo, block), columns)
        if isinstance(columns, int) and columns * 4 >= COPIED and isinstance(groups, int):
            column = b.gep(src, b.mul(b.add(b.mul(bt, groups * columns), lo), 4))
            to = b.gep(dst, b.mul(b.add(b.mul(bt, columns), lo), 4))
            from hilo.kernels.contraction_bytes import sums

            call(b, sums(target), (column, columns * 4, groups, to, b.sub(hi, lo)))
            return

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                at = b.mul(index.node(b, v.at.first_lane() if v.lanes > 1 else v.at), 4)
                t = VType("i32", v.lanes)
                column = b.gep(src, b.add(b.mul(bt, groups * columns * 4), at))

                def add(g: Node, total: Node, column: Node = column, t: VType = t, v: Vector = v) -> tuple[Node, ...]:
                    word = b.load(b.gep(column, b.mul(g, columns * 4)), t, mask=v.mask)
                    return (b.dot(4, total, b.const(-0x7F7F7F80, t), word),)  # bytes of 128

                (total,) = b.for_(0, groups, 1, add, (b.const(0, t),))
                b.store(b.gep(dst, b.add(b.mul(bt, columns * 4), at)), b.sub(b.const(0, t), total), mask=v.mask)
            return ()

        vector_loop(b, lo, hi, columns, turn, lanes=target.lanes("i32"), masks=target.has_masks)

    return unit
