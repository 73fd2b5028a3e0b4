"""Attention by blocks of rows: product, row region, further products for a few rows at a time. Imports ops, kernels.

A unit is a block of rows of one batch: its scores stay in a cache. Each row gets the operations that the
kernels one after the other would do, in the same order, so that the result is the same: the region's own kernel does
just the rows of the block, in arrays that would begin at such an address that these rows lie in the block's memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hilo.ir.op import GET, Op
from hilo.ir.types import TensorType, result_types
from hilo.kernels import contraction, rows
from hilo.kernels.contraction_algebra import Dim, classify, one_stride
from hilo.kernels.contraction_pack import offset
from hilo.kernels.elementwise import new_func
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, pointer
from hilo.kernels.pins import choose
from hilo.loop import index
from hilo.loop.builder import Builder, Node
from hilo.loop.index import Index
from hilo.loop.inline import inline
from hilo.loop.nodes import Func
from hilo.ops.fusion import contracts
from hilo.record import replace

if TYPE_CHECKING:
    from hilo.backend.target import Target

BYTES: Final = 1 << 20  # of a block's scores, which any cache but the first serves well
UNITS: Final = 4  # that there should be
STACK: Final = 4 << 20  # bytes of it that a block may take
ROWS: Final = (32, 256)  # of a block: fewest, so that the other operand of a product is worth packing, and most


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a fusion of kind "attention" (passes/attention.py)."""
    kernel = Attention(op, target)
    return kernel.by_blocks() or kernel.whole()


class Parts:
    """The parts of a fusion, and where their operands and results are."""

    def __init__(self, op: Op, target: Target) -> None:
        self.target = target
        self.body = body = op.attrs["body"]
        self.count = len(op.operands)
        self.numbers = {p: i for i, p in enumerate(body.params)}
        self.results = {behind(r): i for i, r in enumerate(body.results)}
        (self.region,) = (o for o in body.ops if o.kind.full_name == "hilo.fusion")
        inside = {behind(x) for x in self.region.operands}
        self.products = [o for o in body.ops if contracts(o)]
        self.first = next(o for o in self.products if (o, 0) in inside)
        self.parts = [self.first, self.region, *(o for o in self.products if o is not self.first)]

    def outside(self, b: Builder, bufs: Node, value: tuple[Op, int]) -> Node:
        """An operand or result of the fusion."""
        if value[0] in self.numbers:
            return pointer(b, bufs, self.numbers[value[0]])
        return pointer(b, bufs, self.count + self.results[value])


class Attention(Parts):
    """Writes the function of the exact kernel, or those of the parts."""

    # ---- block by block
    def by_blocks(self) -> Lowered | None:
        """One phase, a unit of which does all parts for some rows; None if a part cannot be cut so."""
        n = len(self.region.operands)
        region = rows.lower(self.region.attrs["body"], range(n), n, self.target, near=True)
        self.algebra = {o: classify(o) for o in self.products}
        self.batches, self.size, self.columns, _ = self.algebra[self.first].sizes
        if len(region.phases) != 1 or region.phases[0].units != self.batches * self.size:
            return None
        if not all(map(self.is_batched, self.parts[2:])):
            return None
        self.own_rows = region
        itemsize = max(t.itemsize for t in (self.first.dtype, *(r.dtype for r in self.kept())))
        high = self.size
        if all(map(self.by_rows, self.parts[2:])):
            high = choose("attention.rows", self.rows(itemsize), (32, 64, 128, 256), least=1, most=self.size)
        count = -(-self.size // high)
        found = {m: self.blocks(m) for m in {high, self.size % high or high}}
        lowered = [p for parts in found.values() for p in parts or ()]
        if None in found.values() or not lowered:
            return None
        if (len(self.kept()) + 1) * high * self.columns * itemsize + max(p.scratch for p in lowered) > STACK:
            return None
        func = new_func("attention")
        self.is_outer = func.attrs["outer"] = all(q.func.attrs.get("outer") for p in lowered for q in p.phases)
        b = Builder(func)
        bufs, begin, end = func.params

        def unit(u: Node) -> None:
            batch, block = index.delinear(index.loop_var(u, 0, self.batches * count), (self.batches, count))
            row = block * high

            def do(m: int) -> None:
                self.block(b, bufs, batch, row, m, found[m])

            rest = self.size % high
            if rest and count > 1:
                b.if_(b.cmp("slt", index.node(b, block), count - 1), lambda: do(high), lambda: do(rest))
            else:
                do(high)

        self.places(b, high, max(p.scratch for p in lowered))
        b.for_(begin, end, 1, unit)
        b.ret()
        helpers: dict[str, Func] = {h.name: h for p in lowered for q in p.phases for h in q.helpers}
        if self.is_outer:
            own = region.phases[0].func
            helpers[own.name] = own
        cost = region.phases[0].unit_cost * high
        cost += sum(q.units * q.unit_cost for p in found[high] or () for q in p.phases)
        main = Phase(func, self.batches * count, cost, list(helpers.values()))
        reason = f"{count} blocks of {high} rows for each of {self.batches} batches: their scores stay in a cache; "
        return Lowered([main], strategy="attention", reason=reason + "sums are those of kernels of their own")

    def rows(self, itemsize: int) -> int:
        """Rows of a block: all of about one size, few enough for the caches and for several threads."""
        most = BYTES // (self.columns * itemsize)
        most = max(ROWS[0], min(ROWS[1], most, self.batches * self.size // UNITS))
        return -(-self.size // -(-self.size // most))

    def kept(self) -> list[TensorType]:
        """Those results of the region that only the products behind it read."""
        return [t for k, t in enumerate(_types(self.region)) if (self.region, k) not in self.results]

    def is_batched(self, product: Op) -> bool:
        """Whether a product takes the batches of the region's results one after the other."""
        c = self.algebra[product]
        names = [n for n, x in zip("ab", product.operands, strict=True) if behind(x)[0] is self.region]
        size = self.size * self.columns
        return c.sizes[0] == self.batches and all(self.batches == 1 or one_stride(c.batch, n) == size for n in names)

    def by_rows(self, product: Op) -> bool:
        """Whether rows of a product's result follow from the same rows of the region's."""
        c = self.algebra[product]
        if behind(product.operands[0])[0] is not self.region or behind(product.operands[1])[0] is self.region:
            return False
        return c.sizes[1] == self.size and one_stride(c.m, "a") in (self.columns, 0)

    def blocks(self, m: int) -> list[Lowered] | None:
        """The products for blocks of `m` rows of one batch; None if there is none that gives the same sums."""
        out = []
        for o in (self.first, *self.parts[2:]):
            c = self.algebra[o]
            stride = one_stride(c.m, "a")
            if m == self.size:
                part = replace(c, batch=())
                part = replace(part, out=TensorType(c.out.dtype, part.sizes[1:3]))
            elif stride is None:
                return None
            else:
                part = c.block((Dim(m, stride, 0),))
            lowered = contraction.lower_block(o, part, self.target)
            if lowered is None:
                return None
            out.append(lowered)
        return out

    def places(self, b: Builder, high: int, scratch: int) -> None:
        """The memory of a block, on the stack."""

        def room(itemsize: int) -> Node:
            return b.alloca(high * self.columns * itemsize + RESULT_ALIGN, RESULT_ALIGN)

        self.local: dict[tuple[Op, int], Node] = {(self.first, 0): room(self.first.dtype.itemsize)}
        at = next(i for i, x in enumerate(self.region.operands) if behind(x) == (self.first, 0))
        for k, t in enumerate(_types(self.region)):
            if (self.region, k) not in self.results:
                shared = (at, k) in self.own_rows.in_place and not any(p in self.local for p in self.in_place(at, k))
                self.local[self.region, k] = self.local[self.first, 0] if shared else room(t.dtype.itemsize)
        self.space = b.alloca(max(scratch, 64), RESULT_ALIGN)
        if self.is_outer:
            from hilo.kernels.items import digest

            own = self.own_rows.phases[0].func
            own.attrs.update(inline="never", rare=True)
            own.name = f"attention_rows_{digest(own)}"
            self.pointers = b.alloca(8 * (len(self.region.operands) + len(_types(self.region))))

    def in_place(self, at: int, k: int) -> list[tuple[Op, int]]:
        """Results before `k` that may lie in the place of operand `at`, too."""
        return [(self.region, i) for o, i in self.own_rows.in_place if o == at and i < k]

    def block(self, b: Builder, bufs: Node, batch: Index, row: Index, m: int,
              products: Sequence[Lowered] | None) -> None:  # fmt: skip
        """All parts for the `m` rows from `row` on of one batch."""
        assert products is not None
        line = batch * self.size + row

        def whole(value: tuple[Op, int], itemsize: int) -> Node:
            """Where an array of the scores' shape begins, or would begin if the block's rows were part of it."""
            if value not in self.local:
                return self.outside(b, bufs, value)
            back = index.node(b, line * (self.columns * itemsize))
            near = b.gep(self.local[value], b.and_(back, RESULT_ALIGN - 1))  # aligned as the array's rows would be
            return b.gep(near, b.sub(0, back))

        def start(o: Op, which: int) -> Node:
            """Where an operand of a product begins for this block."""
            c, name, x = self.algebra[o], "ab"[which], o.operands[which]
            at = offset(batch, c.batch, name)
            if which == 0 and m < self.size:
                at = at + offset(row, c.m, name)
            return b.gep(whole(behind(x), x.dtype.itemsize), index.node(b, at * x.dtype.itemsize))

        def product(o: Op, lowered: Lowered) -> None:
            n, width = self.algebra[o].sizes[1:3], o.dtype.itemsize
            own = batch * n[0] + row if m < self.size else batch * n[0]
            to = b.gep(whole((o, 0), width), index.node(b, own * (n[1] * width)))
            for phase in lowered.phases:
                pointers = [start(o, 0), start(o, 1), to, self.space]
                inline(b, phase.func, pointers, (b.i64(0), b.i64(phase.units)))

        product(self.first, products[0])
        values = [behind(x) for x in self.region.operands]
        pointers = [whole(v, x.dtype.itemsize) for v, x in zip(values, self.region.operands, strict=True)]
        pointers += [whole((self.region, k), t.dtype.itemsize) for k, t in enumerate(_types(self.region))]
        self.region_rows(b, pointers, index.node(b, line), m)
        for o, lowered in zip(self.parts[2:], products[1:], strict=True):
            product(o, lowered)

    def region_rows(self, b: Builder, pointers: Sequence[Node], first: Node, count: int) -> None:
        """The region's own kernel for `count` rows: a function of its own where this one's code is made quickly."""
        func, bounds = self.own_rows.phases[0].func, (first, b.add(first, count))
        if not self.is_outer:
            inline(b, func, pointers, bounds)
            return
        for i, x in enumerate(pointers):
            b.store(b.gep(self.pointers, 8 * i), x)
        b.call(func.name, (self.pointers, *bounds))

    # ---- one after the other
    def whole(self) -> Lowered:
        """The parts one after the other, with the values between them in scratch."""
        phases: list[Phase] = []
        offsets: dict[tuple[Op, int], int] = {}
        scratch = 0

        def room(size: int) -> int:
            nonlocal scratch
            at, scratch = scratch, scratch + -(-size // RESULT_ALIGN) * RESULT_ALIGN
            return at

        for o in self.parts:
            for k, t in enumerate(_types(o)):
                if (o, k) not in self.results:
                    offsets[o, k] = room(t.nbytes)
        for o in self.parts:
            lowered = self.alone(o)
            own = room(lowered.scratch)
            values = [*map(behind, o.operands), *((o, k) for k in range(len(_types(o))))]
            for phase in lowered.phases:
                func = new_func("attention_part")
                b = Builder(func)
                bufs, begin, end = func.params
                space = pointer(b, bufs, self.count + len(self.results))
                pointers = [b.gep(space, offsets[v]) if v in offsets else self.outside(b, bufs, v) for v in values]
                inline(b, phase.func, [*pointers, b.gep(space, own)], (begin, end))
                b.ret()
                phases.append(Phase(func, phase.units, phase.unit_cost, phase.helpers))
        return Lowered(phases, scratch, strategy="attention, part by part",
                       reason="these rows are not summed up block by block as by kernels of their own")  # fmt: skip

    def alone(self, o: Op) -> Lowered:
        """The kernel of one part."""
        if o is not self.region:
            return contraction.lower(o, self.target)
        n = len(o.operands)
        return rows.lower(o.attrs["body"], range(n), n, self.target)


def behind(x: Op) -> tuple[Op, int]:
    """What computes a value, and as which result: reshapes do not count."""
    while x.kind.full_name == "stablehlo.reshape":
        x = x.operands[0]
    return (x.operands[0], x.attrs["index"]) if x.kind is GET else (x, 0)


def _types(o: Op) -> list[TensorType]:
    """The types of an op's results."""
    return [t for t in result_types(o.type) if isinstance(t, TensorType)]
