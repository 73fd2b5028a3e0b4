"""Cholesky factors and triangular solves. Imports ops, loop, kernels.

Both go row by row: vectors along a row take part in all products with the rows before it while they are in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from hilo.ir.dims import typical
from hilo.ir.dtypes import DType, f32, f64
from hilo.ir.op import Op
from hilo.kernels import cholesky as blocks
from hilo.kernels import elementwise, solve_columns
from hilo.kernels.combine import pack, splat, unpack
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.loop import arith, index
from hilo.loop.builder import Builder, Node
from hilo.loop.element import Elem, held_type
from hilo.loop.index import Index
from hilo.loop.nodes import VType

if TYPE_CHECKING:
    from hilo.backend.target import Target


class _Rows:
    """What both kernels share: a function over batches of matrices, and elements in the type that they are held in."""

    def __init__(self, name: str, dtype: DType, target: Target) -> None:
        self.dtype, self.target = dtype, target
        self.held: DType = f32 if dtype.is_float and dtype.bits < 32 else dtype
        self.lanes = target.lanes(self.held)
        self.func = elementwise.new_func(name)
        self.b = Builder(self.func)

    def load(self, x: Buffer, at: tuple[Index, ...], v: Vector | None = None) -> Elem:
        lanes, mask = (v.lanes, v.mask) if v is not None else (1, None)
        return arith.convert(self.b, x.load(self.b, at, lanes, mask), self.held)

    def store(self, x: Buffer, at: tuple[Index, ...], e: Elem, v: Vector | None = None) -> None:
        lanes, mask = (v.lanes, v.mask) if v is not None else (1, None)
        e = splat(self.b, arith.convert(self.b, e, self.dtype), lanes)
        x.store(self.b, index.linear(at, x.type.shape), e, lanes, mask)

    def minus_product(self, total: Elem, x: Elem, y: Elem) -> Elem:
        b = self.b
        if total.im is None:
            return Elem(total.dtype, b.fma(b.fneg(x.re), y.re, total.re))
        return arith.subtract(b, total, arith.multiply(b, x, y))

    def multiply_add(self, x: Node, y: Node, z: Node) -> Node:
        b = self.b
        return b.fma(x, y, z) if self.target.has_fma else b.fadd(b.fmul(x, y), z)

    def units(self, count: int, cost: float, body: Callable[[Index], None]) -> Phase:
        b = self.b
        _, begin, end = self.func.params
        b.for_(begin, end, 1, lambda u: body(index.loop_var(u, 0, count)))
        b.ret()
        return Phase(self.func, count, cost)


def cholesky(op: Op, target: Target) -> Lowered:
    """The kernel of a `cholesky`: the upper factor, row by row; a lower one is turned around at the end."""
    t = op.tensor
    if t.size == 0:
        return Lowered([])
    if blocks.suits(t.dtype, t.shape[-1], prod(t.shape[:-2])):
        return blocks.lower(op, prod(t.shape[:-2]), target)
    n, lower, k = t.shape[-1], op.attrs["lower"], _Rows("cholesky", t.dtype, target)
    b, batch = k.b, prod(t.shape[:-2])
    flat = t.with_shape((batch, n, n))
    a = Buffer(pointer(b, k.func.params[0], 0), flat, constant=True)
    u = Buffer(pointer(b, k.func.params[0], 1), flat, RESULT_ALIGN)
    unroll = 4 if typical(n) >= 4 * k.lanes else 1
    step = k.lanes * unroll

    def row(m: Index, iv: Node) -> None:
        j = index.loop_var(iv, 0, n)
        first = b.and_(iv, -step)  # columns before j are in the other triangle: what is computed there goes away

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            start = [arith.conj(b, k.load(a, (m, v.at, j), v)) if lower else k.load(a, (m, j, v.at), v)
                     for v in vectors]  # fmt: skip

            def product(kv: Node, *sums: Node) -> tuple[Node, ...]:
                i = index.loop_var(kv, 0, n)
                factor = arith.conj(b, k.load(u, (m, i, j)))
                old = unpack(sums, [k.held] * len(vectors))
                new = [k.minus_product(e, splat(b, factor, v.lanes), k.load(u, (m, i, v.at), v))
                       for e, v in zip(old, vectors, strict=True)]  # fmt: skip
                return pack(new)

            start = [splat(b, e, v.lanes) for e, v in zip(start, vectors, strict=True)]
            sums = unpack(b.for_(0, iv, 1, product, pack(start)), [k.held] * len(vectors))
            for e, v in zip(sums, vectors, strict=True):
                k.store(u, (m, j, v.at), e, v)
            return ()

        vector_loop(b, first, n, n, turn, lanes=k.lanes, unroll=unroll, masks=target.has_masks)
        pivot = Elem(k.held.part, b.sqrt(k.load(u, (m, j, j)).re))

        def scale(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                e = k.load(u, (m, j, v.at), v)
                parts = [b.fdiv(p, pivot.re) for p in pack([e])]
                k.store(u, (m, j, v.at), unpack(parts, [k.held])[0], v)
            return ()

        vector_loop(b, first, n, n, scale, lanes=k.lanes, masks=target.has_masks)
        zero = b.const(0.0, pivot.re.type) if k.held.is_complex else None
        k.store(u, (m, j, j), Elem(k.held, pivot.re, zero))

    def triangle(m: Index, iv: Node) -> None:
        """Row i of the lower triangle: zero, or the conjugate of what is above the diagonal, which becomes zero."""
        i = index.loop_var(iv, 0, n)
        nothing = splat(b, arith.zero(b, k.held), 1)

        def element(jv: Node) -> None:
            j = index.loop_var(jv, 0, n)
            if lower:
                k.store(u, (m, i, j), arith.conj(b, k.load(u, (m, j, i))))
                k.store(u, (m, j, i), nothing)
            else:
                k.store(u, (m, i, j), nothing)

        b.for_(0, iv, 1, element)

    def matrix(m: Index) -> None:
        b.for_(0, n, 1, lambda iv: row(m, iv))
        b.for_(0, n, 1, lambda iv: triangle(m, iv))

    return Lowered([k.units(batch, typical(n * n) * (typical(n) / k.lanes / 3 + 4.0), matrix)],
                   strategy="Cholesky factor", reason="row by row, matrices in parallel")  # fmt: skip


def triangular_solve(op: Op, target: Target) -> Lowered:
    """The kernel of a `triangular_solve` from the left; legalizing has turned those from the right."""
    t = op.tensor
    if t.size == 0:
        return Lowered([])
    assert op.attrs["left_side"]
    how, k = op.attrs["transpose_a"], _Rows("triangular_solve", t.dtype, target)
    n, columns = t.shape[-2:]
    b, batch = k.b, prod(t.shape[:-2])
    if columns == 1 and t.dtype in (f32, f64) and isinstance(n, int):
        return _one_column(op, k, batch)
    if solve_columns.suits(op, target):
        return solve_columns.lower(op, batch, target)
    a, y, x = (Buffer(pointer(b, k.func.params[0], i), t.with_shape((batch, n, m)), constant=i < 2)
               for i, m in enumerate((n, columns, columns)))  # fmt: skip
    ascending = op.attrs["lower"] == (how == "NO_TRANSPOSE")
    lanes = k.lanes
    while lanes > 1 and typical(columns) <= lanes // 2:
        lanes //= 2
    unroll = 4 if typical(columns) >= 4 * lanes else 1
    block = lanes * unroll
    blocks = -(-columns // block)

    def coefficient(m: Index, i: Index, j: Index) -> Elem:
        e = k.load(a, (m, i, j) if how == "NO_TRANSPOSE" else (m, j, i))
        return arith.conj(b, e) if how == "ADJOINT" else e

    def place(iv: Node) -> Index:
        i = index.loop_var(iv, 0, n)
        return i if ascending else n - 1 - i

    def unit(u: Index) -> None:
        m, part = index.delinear(u, (batch, blocks))
        lo = index.node(b, part * block)

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            def row(iv: Node) -> None:
                i = place(iv)

                def product(kv: Node, *sums: Node) -> tuple[Node, ...]:
                    j = place(kv)
                    factor = coefficient(m, i, j)
                    old = unpack(sums, [k.held] * len(vectors))
                    return pack(k.minus_product(e, splat(b, factor, v.lanes), k.load(x, (m, j, v.at), v))
                                for e, v in zip(old, vectors, strict=True))  # fmt: skip

                start = pack(splat(b, k.load(y, (m, i, v.at), v), v.lanes) for v in vectors)
                sums = unpack(b.for_(0, iv, 1, product, start), [k.held] * len(vectors))
                for e, v in zip(sums, vectors, strict=True):
                    if not op.attrs["unit_diagonal"]:
                        e = arith.divide(b, e, splat(b, coefficient(m, i, i), v.lanes))
                    k.store(x, (m, i, v.at), e, v)

            b.for_(0, n, 1, row)
            return ()

        vector_loop(b, lo, b.smin(b.add(lo, block), columns), columns, turn, lanes=lanes, unroll=unroll,
                    masks=target.has_masks)  # fmt: skip

    return Lowered([k.units(batch * blocks, typical(n * n) * unroll * 0.5, unit)],
                   strategy="triangular solve", reason="row by row, columns side by side in vectors")  # fmt: skip


def _one_column(op: Op, k: _Rows, batch: int) -> Lowered:
    """A solve for one vector: a product of a row with what is known, or each number taken from all that follow."""
    t, b, lanes = op.tensor, k.b, k.lanes
    n, size, is_turned = t.shape[-2], t.dtype.itemsize, op.attrs["transpose_a"] != "NO_TRANSPOSE"
    scalar = held_type(t.dtype)
    vector = scalar.with_lanes(lanes)
    ascending = op.attrs["lower"] != is_turned
    below = op.attrs["lower"]  # whether the other elements of row i of the matrix are before the diagonal
    matrices, givens, results = (pointer(b, k.func.params[0], i) for i in range(3))

    def place(base: Node, i: Node) -> Node:
        return b.gep(base, b.mul(i, size))

    def product(row: Node, x: Node, first: Node, last: Node) -> Node:
        """The sum of products of elements first..last, in four vectors of sums, then what is left."""

        def turn(width: int, j: Node, *sums: Node) -> tuple[Node, ...]:
            def loads(base: Node) -> list[Node]:
                return [b.load(place(base, b.add(j, u * lanes)), vector, align=size) for u in range(width)]

            return tuple(k.multiply_add(p, q, s) for p, q, s in zip(loads(row), loads(x), sums, strict=True))

        sums = (b.const(0.0, vector),) * 4
        count = b.sub(last, first)
        after = b.add(first, b.and_(count, -4 * lanes))
        sums = b.for_(first, after, 4 * lanes, lambda j, *s: turn(4, j, *s), sums)
        end = b.add(first, b.and_(count, -lanes))
        (total,) = b.for_(after, end, lanes, lambda j, s: turn(1, j, s),
                          (b.fadd(b.fadd(sums[0], sums[1]), b.fadd(sums[2], sums[3])),))  # fmt: skip
        while total.type.lanes > 1:
            half = total.type.lanes // 2
            total = b.fadd(b.shuffle(total, total, range(half)), b.shuffle(total, total, range(half, 2 * half)))
        total = b.lane(total, 0)
        (total,) = b.for_(end, last, 1, lambda j, s: (
            k.multiply_add(b.load(place(row, j), scalar), b.load(place(x, j), scalar), s),), (total,))  # fmt: skip
        return total

    def take(row: Node, x: Node, factor: Node, first: Node, last: Node) -> None:
        """Take factor times the row from elements first..last of x."""

        def turn(t: VType, j: Node) -> None:
            old, a = (b.load(place(p, j), t, align=size) for p in (x, row))
            b.store(place(x, j), k.multiply_add(b.splat(b.fneg(factor), t.lanes), a, old), align=size)

        end = b.add(first, b.and_(b.sub(last, first), -lanes))
        b.for_(first, end, lanes, lambda j: turn(vector, j))
        b.for_(end, last, 1, lambda j: turn(scalar, j))

    def solve(m: Index) -> None:
        at = index.node(b, m)
        a, y, x = b.gep(matrices, b.mul(at, n * n * size)), place(givens, b.mul(at, n)), place(results, b.mul(at, n))

        def step(iv: Node) -> None:
            i = iv if ascending else b.sub(n - 1, iv)
            row = place(a, b.mul(i, n))
            first, last = (b.i64(0), i) if below else (b.add(i, 1), b.i64(n))
            value = b.load(place(x if is_turned else y, i), scalar)
            if not is_turned:
                value = b.fsub(value, product(row, x, first, last))
            if not op.attrs["unit_diagonal"]:
                value = b.fdiv(value, b.load(place(row, i), scalar))
            b.store(place(x, i), value)
            if is_turned:
                take(row, x, value, first, last)

        if is_turned:
            b.memcpy(x, y, n * size)
        b.for_(0, n, 1, step)

    return Lowered([k.units(batch, typical(n) * (typical(n) / lanes * 0.3 + 12.0), solve)],
                   strategy="triangular solve", reason="one column: vectors along rows of the matrix")  # fmt: skip
