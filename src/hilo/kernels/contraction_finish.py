"""What comes after the sums of a contraction: adding up partial ones, rounding, the epilogue, storing.

Imports loop, kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from hilo.ir import dtypes
from hilo.ir.types import TensorType
from hilo.kernels.contraction_plan import Plan, Recipe
from hilo.kernels.loops import Vector
from hilo.kernels.memory import Buffer, pointer
from hilo.loop import arith, index
from hilo.loop.builder import I64, PTR, Builder, Func, Node
from hilo.loop.element import Elem, held_type
from hilo.loop.index import Index

if TYPE_CHECKING:
    from hilo.backend.target import Target


class Finish:
    """Knows where the sums of a contraction lie and turns them into results.

    `where`: "result" (sums are added up in the result's memory), "stack" (in a tile on the stack) or "partial" (in
    scratch, at offset `partial`). `needs_finish`: they are not the result yet.
    """

    def __init__(
        self, p: Plan, r: Recipe, out: TensorType, swapped: bool, epilogue: Any, scratch_number: int, target: Target
    ) -> None:
        self.p, self.r = p, r
        self.out, self.swapped, self.epilogue, self.target = out, swapped, epilogue, target
        self.stored = epilogue.out if epilogue else out
        self.scratch_number = scratch_number
        self.partial = 0  # offset in scratch of sums that do not go into the result at once
        bt, m, n, _ = p.sizes
        self.parts = 2 if r.acc.is_complex else 1
        self.elements = (bt, m, n // self.parts)  # of C, as this nest sees it
        splits = p.blocks[0]
        same = self.stored.dtype is r.acc or (
            self.stored.dtype.is_int and held_type(self.stored.dtype).scalar == r.scalar
        )
        raw = same and epilogue is None and out.dtype is self.stored.dtype  # sums are results
        straight = not swapped or m == 1
        if splits > 1:
            self.where = "partial"
        elif same and straight:
            self.where = "result"
        elif p.block_k >= p.sizes[3] and p.kind == "tile" and epilogue is None:
            self.where = "stack"
        else:
            self.where = "partial"
        self.needs_finish = not (self.where == "result" and raw)
        self.helpers: dict[str, Func] = {}  # functions that phases call
        self.scratch = splits * bt * m * n * r.size if self.where == "partial" else 0

    def helper(self, func: Func) -> str:
        """A function that a phase calls; gives its name."""
        self.helpers[func.name] = func
        return func.name

    def apart(self, b: Builder, bufs: Node, batch: Index, args: Sequence[Node], write: Callable[..., None]) -> None:
        """Call a function of its own that `write(builder, bufs, batch, *args)` writes, once for equal ones."""
        from hilo.kernels.items import digest

        params = [(f"x{i}", x.type) for i, x in enumerate(args)]
        f = Func("contraction_finish", [("bufs", PTR), ("batch", I64), *params], inline="never", rare=True)
        inner = Builder(f)
        write(inner, f.params[0], index.loop_var(f.params[1], 0, self.elements[0]), *f.params[2:])
        inner.ret()
        f.name = f"contraction_finish_{digest(f)}"
        b.call(self.helper(f), (bufs, index.node(b, batch), *args))

    def combine_unit(self, b: Builder, bufs: Node, u: Node) -> None:
        """Add up a row's partial sums in order, then finish."""
        p = self.p
        bt, m, n = self.elements
        batch, row = index.delinear(index.loop_var(u, 0, bt * m), (bt, m))
        c = b.gep(pointer(b, bufs, self.scratch_number), self.partial)
        slab = bt * m * n * self.parts * self.r.size

        def load(v: Vector, offset: Node) -> Elem:
            total = self.loaded(b, b.gep(c, offset), v)
            return self.summed(b, total, c, offset, slab, p.blocks[0], v)

        self.finish_row(b, bufs, batch, row, b.i64(0), b.i64(n), lambda v: load(v, self.sum_offset(b, batch, row, v)))

    def summed(self, b: Builder, total: Elem, c: Node, offset: Node, slab: int, count: int, v: Vector) -> Elem:
        parts = [total.re] if total.im is None else [total.re, total.im]

        def add(s: Node, *acc: Node) -> list[Node]:
            x = self.loaded(b, b.gep(c, b.add(offset, b.mul(s, slab))), v)
            more = [x.re] if x.im is None else [x.re, x.im]
            if self.r.combine == "or":
                return [b.or_(y, z) for y, z in zip(acc, more, strict=True)]
            return [b.fadd(y, z) if y.type.is_float else b.add(y, z) for y, z in zip(acc, more, strict=True)]

        return Elem(total.dtype, *b.for_(1, count, 1, add, parts))

    def sum_offset(self, b: Builder, batch: Index, row: Index, v: Vector) -> Node:
        """Bytes from the start of full-size sums to the first lane of `v`."""
        _, m, n = self.elements
        at = index.linear([batch, row, v.at.first_lane() if v.lanes > 1 else v.at], (1, m, n))
        return index.node(b, at * (self.r.size * self.parts))

    def loaded(self, b: Builder, at: Node, v: Vector) -> Elem:
        return arith.load_elem(b, at, 0, self.r.acc, v.lanes, v.mask)

    def finish_rows(
        self, b: Builder, bufs: Node, batch: Index, m0: Node, m1: Node, n0: Node, n1: Node, c: Node
    ) -> None:
        """Finish rows m0..m1, columns n0..n1 of sums that lie in rows of N at `c` (the batch's first)."""
        n = self.elements[2]

        def row(i: Node) -> None:
            def load(v: Vector) -> Elem:
                at = b.mul(
                    b.add(b.mul(i, n), index.node(b, v.at.first_lane() if v.lanes > 1 else v.at)),
                    self.r.size * self.parts,
                )
                return self.loaded(b, b.gep(c, at), v)

            self.finish_row(b, bufs, batch, index.loop_var(i, 0, self.elements[1]), n0, n1, load)

        b.for_(m0, m1, 1, row)

    def finish(
        self,
        b: Builder,
        bufs: Node,
        batch: Index,
        m0: Node,
        rows: Node,
        n0: Node,
        count: Node,
        tile: Node,
        row_bytes: Node,
    ) -> None:
        """Finish a tile of sums at `tile`: `rows` from m0 on, `count` columns from n0 on."""
        parts = self.parts
        first = n0 if parts == 1 else b.lshr(n0, 1)
        end = b.add(first, count if parts == 1 else b.lshr(count, 1))

        def row(d: Node) -> None:
            def load(v: Vector) -> Elem:
                at = index.node(b, v.at.first_lane() if v.lanes > 1 else v.at)
                start = b.mul(b.sub(at, first), self.r.size * parts)
                return self.loaded(b, b.gep(tile, b.add(b.mul(d, row_bytes), start)), v)

            i = b.add(m0, d)
            self.finish_row(b, bufs, batch, index.loop_var(i, 0, self.elements[1]), first, end, load)

        b.for_(0, rows, 1, row)

    def finish_row(self, b: Builder, bufs: Node, batch: Index, row: Index, n0: Node, n1: Node, load: Any) -> None:
        """Round, apply the epilogue to and store columns n0..n1 of a row, whose sums `load(vector)` gives."""
        _, m, n = self.elements
        result = pointer(b, bufs, self.scratch_number - 1)
        sources = [
            Buffer(pointer(b, bufs, self.epilogue.first + i), t)
            for i, t in enumerate(self.epilogue.operands if self.epilogue else ())
        ]
        lanes = self.p.lanes if not self.r.acc.is_complex else max(1, self.p.lanes // 2)

        def turn(v: Vector) -> None:
            if self.swapped:
                position = (batch * n + v.at) * m + row
            else:
                position = (batch * m + row) * n + v.at
            x = load(v)
            if self.out.dtype is dtypes.i1 and self.r.acc is not dtypes.i1:
                x = Elem(dtypes.i1, b.cmp("ne", x.re, 0))
            elif held_type(self.out.dtype).scalar != x.re.type.scalar or self.out.dtype.is_float:
                x = arith.convert(b, x, self.out.dtype)
            else:
                x = Elem(self.out.dtype, x.re, x.im)
            if self.epilogue is not None:
                shape = self.stored.shape
                at = index.delinear(position, shape) if prod(shape) != 1 else [index.ZERO] * len(shape)
                readers = [lambda i, s=s: s.load(b, tuple(i), v.lanes, v.mask) for s in sources]
                x = self.epilogue.build(b, at, x, readers)
            store(b, result, position, x, v)

        self.columns(b, n0, n1, n, lanes, turn)

    def columns(self, b: Builder, n0: Node, n1: Node, n: int, lanes: int, turn: Any) -> None:
        """Vectors over n0..n1, where n0 need not be a multiple of anything; the last one masked, or single elements."""

        def whole(j: Node) -> None:
            turn(Vector(index.vector_var(j, lanes, 0, max(1, n - lanes + 1)), lanes))

        end = b.add(n0, b.and_(b.sub(n1, n0), -lanes))
        if n >= lanes:
            b.for_(n0, end, lanes, whole)
        if lanes == 1:
            return
        if self.target.has_masks:

            def masked(j: Node) -> None:
                mask = b.cmp("slt", b.iota(I64.with_lanes(lanes)), b.sub(n1, j))
                turn(Vector(index.vector_var(j, lanes, 0, n, top=n), lanes, mask))

            b.for_(end, n1, lanes, masked)
        else:
            b.for_(end, n1, 1, lambda j: turn(Vector(index.loop_var(j, 0, n), 1)))


def store(b: Builder, ptr: Node, position: Index, x: Elem, v: Vector) -> None:
    """Store elements at `position` for the lanes of `v`, wherever these lie."""
    size = x.dtype.itemsize
    if v.lanes == 1 or position.lane_stride == 1:
        at = position.first_lane() if v.lanes > 1 else position
        arith.store_elem(b, ptr, index.node(b, at * size), x, v.lanes, v.mask)
        return
    offsets = index.node(b, position * size)
    parts = arith.to_memory(b, x)
    for i, p in enumerate(parts):
        b.scatter(b.gep(ptr, i * size // len(parts)), offsets, b.splat(p, v.lanes), mask=v.mask)
