"""Convolutions position by position, for any type, groups and windows. Imports ops, loop, kernels.

Sums of some neighbouring positions and some vectors of output features are kept in registers over all window positions
and input features. Where a window position is outside of lhs for one of the positions, each is looked at by itself, so
that padding and holes are never multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import Size, typical, upper
from hilo.ir.dtypes import DType, bf16, f16, f32
from hilo.ir.op import Op
from hilo.kernels import elementwise
from hilo.kernels.combine import pack, splat, unpack
from hilo.kernels.epilogue import Epilogue
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.kernels.window import WindowLoops, known_inside
from hilo.loop import arith, index
from hilo.loop.builder import Builder, Node
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.ops.convolution import windows
from hilo.ops.window_axes import Axis

if TYPE_CHECKING:
    from hilo.backend.target import Target

BLOCK: Final = 64  # input features from which the sum of one window position is kept apart
SMALL: Final = 1 << 12  # products below which there is one unit


def lower(op: Op, target: Target, epilogue: Epilogue | None = None) -> Lowered:
    """The kernel of a `convolution` in the layout [b, 0, f]x[0, i, o]->[b, 0, f], with what follows it."""
    groups = op.attrs["feature_group_count"]
    why = "each group has few outputs" if groups > 1 else "few products, or a type that tiles do not hold"
    return Lowered([_Convolution(op, target, epilogue).phase()], strategy="convolution window by window", reason=why)


class _Convolution:
    """Writes the function of a convolution."""

    def __init__(self, op: Op, target: Target, epilogue: Epilogue | None) -> None:
        x, w, t = op.operands[0].tensor, op.operands[1].tensor, op.tensor
        self.target, self.out = target, t.dtype
        self.held: DType = f32 if t.dtype in (bf16, f16) else t.dtype
        moved = windows(w, op.attrs) or (Axis(),)
        spatial = x.shape[1:-1] or (1,)
        places = t.shape[1:-1] or (1,)
        self.axis, self.width, self.n = moved[-1], places[-1], spatial[-1]
        self.rows = (t.shape[0], *places[:-1])
        self.groups = op.attrs["feature_group_count"]
        self.sizes = [a.size for a in moved]
        self.turned = op.attrs["window_reversal"] or (False,) * len(moved)
        self.features, self.outputs = w.shape[-2], w.shape[-1]
        self.taps = prod(a.size for a in moved)
        self.func = elementwise.new_func("convolution")
        b = self.b = Builder(self.func)
        bufs = self.func.params[0]
        x_shape = (x.shape[0], *spatial, x.shape[-1])
        self.epilogue = epilogue
        first, second = (epilogue and epilogue.numbers) or (0, 1)
        last = epilogue.first + len(epilogue.operands) if epilogue else 2
        self.x = Buffer(pointer(b, bufs, first), x.with_shape(x_shape), constant=True)
        w_shape = (*(a.size for a in moved), *w.shape[-2:])
        self.w = Buffer(pointer(b, bufs, second), w.with_shape(w_shape), constant=True)
        self.shape = (*self.rows, self.width, self.outputs)
        self.result = Buffer(pointer(b, bufs, last), epilogue.out if epilogue else t, RESULT_ALIGN)
        self.sources = [Buffer(pointer(b, bufs, epilogue.first + i), t, constant=True)
                        for i, t in enumerate(epilogue.operands)] if epilogue else []  # fmt: skip
        self.loops = WindowLoops(b, list(zip(spatial[:-1], places[:-1], moved[:-1], strict=True)))

    def phase(self) -> Phase:
        b = self.b
        lanes = self.target.lanes(self.held)
        outputs = typical(self.outputs)
        while lanes > 1 and outputs <= lanes // 2:
            lanes //= 2
        wide = 2 if outputs >= 2 * lanes and not self.held.is_complex else 1
        block = lanes * wide
        blocks = -(-self.outputs // block)
        positions = min(upper(self.width), 8 // wide if self.target.registers < 32 else 16 // wide)
        if self.axis.base > 1 or self.held.is_complex:
            positions = 1
        rows = prod(self.rows)
        work = typical(self.width * self.taps * self.features)
        units = rows * blocks

        def unit(u: Node) -> None:
            r, k = index.delinear(index.loop_var(u, 0, units), (rows, blocks))
            at = index.delinear(r, self.rows)
            lo = index.node(b, k * block)

            def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
                whole = self.width // positions * positions

                def some(iv: Node, count: int, end: int) -> None:
                    first = index.loop_var(iv, 0, end, count)
                    self._tile(at, [first + p for p in range(count)], vectors)

                b.for_(0, whole, positions, lambda iv: some(iv, positions, whole))
                if isinstance(whole, Size) or whole < self.width:
                    b.for_(whole, self.width, 1, lambda iv: some(iv, 1, self.width))
                return ()

            vector_loop(b, lo, b.smin(b.add(lo, block), self.outputs), self.outputs, turn, lanes=lanes, unroll=wide,
                        masks=self.target.has_masks)  # fmt: skip

        if isinstance(units, int) and units * work * block <= SMALL * lanes:
            b.for_(0, units, 1, unit)
            count = 1
        else:
            _, begin, end = self.func.params
            b.for_(begin, end, 1, unit)
            count = units
        b.ret()
        return Phase(self.func, count, (1.0 if count is units else units) * work * wide * 0.3)

    def _tile(self, at: list[Index], places: list[Index], vectors: list[Vector]) -> None:
        """The sums of some positions of a row for some vectors of output features."""
        b = self.b
        zeros = [splat(b, arith.zero(b, self.held), v.lanes) for _ in places for v in vectors]
        size = len(pack(zeros[:1]))

        def visit(found: list[Index], mask: Node | None, sums: tuple[Node, ...]) -> tuple[Node, ...]:
            """One position of the window along the outer spatial axes; the innermost is walked here."""
            taps = list(self.loops.taps)

            def tap(iv: Node, *sums: Node) -> tuple[Node, ...]:
                k = index.loop_var(iv, 0, self.axis.size)
                ks = [n - 1 - t if r else t for t, n, r in zip((*taps, k), self.sizes, self.turned, strict=True)]
                spread = self.axis.spread(self.n)
                where = [o * self.axis.stride - self.axis.low + k * self.axis.dilation for o in places]

                def all_inside() -> tuple[Node, ...]:
                    return self._features([at[0], *found], where, ks, vectors, sums)

                def one_by_one() -> tuple[Node, ...]:
                    out: list[Node] = []
                    for p, x in enumerate(where):
                        part = sums[p * len(vectors) * size : (p + 1) * len(vectors) * size]
                        there = index.in_range(b, x, 0, spread)
                        if self.axis.base > 1:
                            there = b.and_(there, b.cmp("eq", index.node(b, x % self.axis.base), 0))
                        out += b.if_(there, lambda x=x, part=part: self._features(
                            [at[0], *found], [x], ks, vectors, part), lambda part=part: part)  # fmt: skip
                    return tuple(out)

                if self.n == 0:
                    return sums
                if len(where) == 1:
                    return one_by_one()
                inside = b.and_(index.in_range(b, where[0], 0, spread), index.in_range(b, where[-1], 0, spread))
                return b.if_(inside, all_inside, one_by_one)

            return b.for_(0, self.axis.size, 1, tap, sums)

        sums = self.loops.walk(at[1:], pack(zeros), visit)
        values = unpack(sums, [self.held] * len(zeros))
        for p, o in enumerate(places):
            for j, v in enumerate(vectors):
                e = arith.convert(b, values[p * len(vectors) + j], self.out)
                position = index.linear([*at, o, v.at], self.shape)
                if self.epilogue is not None:
                    e = self._finished(position, e, v)
                self.result.store(b, position, e, v.lanes, v.mask)

    def _finished(self, position: Index, e: Elem, v: Vector) -> Elem:
        """What the epilogue makes of the element (for the lanes of `v`) at a position of the result."""
        assert self.epilogue is not None
        shape = self.result.type.shape
        at = index.delinear(position, shape) if prod(shape) != 1 else [index.ZERO] * len(shape)
        readers = [lambda i, s=s: s.load(self.b, tuple(i), v.lanes, v.mask) for s in self.sources]
        return self.epilogue.build(self.b, at, e, readers)

    def _features(self, outer: list[Index], where: Sequence[Index], ks: Sequence[Index], vectors: list[Vector],
                  sums: tuple[Node, ...]) -> tuple[Node, ...]:  # fmt: skip
        """Add the products of all input features of a group at one window position, which is inside for all places."""
        b = self.b
        last = self.axis.spread(self.n) - 1
        inside = [known_inside(b, x, last) // self.axis.base for x in where]
        each = self.outputs // self.groups

        def feature(iv: Node, *sums: Node) -> tuple[Node, ...]:
            c = index.loop_var(iv, 0, self.features)
            old = unpack(sums, [self.held] * (len(where) * len(vectors)))
            weights = [self._load(self.w, (*ks, c, v.at), v) for v in vectors]
            new = []
            for p, x in enumerate(inside):
                for j, v in enumerate(vectors):
                    channel = c if self.groups == 1 else (v.at // each) * self.features + c
                    value = self._load(self.x, (*outer, x, channel), v)
                    new.append(self._add_product(old[p * len(vectors) + j], value, weights[j]))
            return pack(new)

        if not self.held.is_float or upper(self.features) < BLOCK:
            return b.for_(0, self.features, 1, feature, sums)
        # Each position of the window is summed from zero: errors grow with their number, not with that of all terms.
        part = b.for_(0, self.features, 1, feature, [b.const(0.0, x.type) for x in sums])
        return tuple(b.fadd(total, x) for total, x in zip(sums, part, strict=True))

    def _load(self, buffer: Buffer, at: tuple[Index, ...], v: Vector) -> Elem:
        e = buffer.load(self.b, at, v.lanes, v.mask if any(i.is_vector for i in at) else None)
        return splat(self.b, e if e.dtype is self.held else arith.convert(self.b, e, self.held), v.lanes)

    def _add_product(self, total: Elem, x: Elem, w: Elem) -> Elem:
        b, d = self.b, self.held
        if d.is_float:
            return Elem(d, b.fma(x.re, w.re, total.re))
        return arith.add(b, total, arith.multiply(b, x, w))
