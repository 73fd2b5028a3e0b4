"""Running reductions along one axis: cumsum, cummax and the like. Imports ops, loop, kernels.

Each element is read once. Where other axes lie inside of the scanned one, its vectors go along them; a scan along the
innermost axis combines within a vector in log2(lanes) steps if its body may combine in any order, else one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import typical, upper
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels import elementwise
from hilo.kernels.combine import Combiner, Elems, map_parts, pack, splat, unpack
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import AHEAD, RESULT_ALIGN, Buffer, pointer
from hilo.loop import index
from hilo.loop.builder import Builder, Node
from hilo.loop.index import Index

if TYPE_CHECKING:
    from hilo.backend.target import Target

Visit = Callable[[list[Index], Node | None, tuple[Node, ...]], tuple[Node, ...]]
BLOCK_VECTORS: Final = 128  # of a long running sum that are summed by themselves
UNROLL: Final = 8  # vectors that go along the scanned axis side by side


def lower(op: Op, out: list[TensorType], axis: int, direction: int, target: Target) -> Lowered:
    """The kernel of a `reduce_window` that is a running reduction along `axis`, from the end if `direction` is -1."""
    return Lowered([_Scan(op, out, axis, direction, target).phase()], strategy="running reduction",
                   reason="every element from the one before, vectors across the other axes or by blocks")  # fmt: skip


class _Scan:
    """Writes the function of a running reduction."""

    def __init__(self, op: Op, out: list[TensorType], axis: int, direction: int, target: Target) -> None:
        body = op.attrs["body"]
        n, count, shape = len(body.results), len(op.operands), op.operands[0].shape
        self.target, self.forward = target, direction > 0
        self.combiner = Combiner(body, count - 2 * n)
        self.outer, self.n, self.inner = prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :])
        self.shape = (self.outer, self.n, self.inner)
        self.func = elementwise.new_func("scan")
        b = self.b = Builder(self.func)
        bufs = self.func.params[0]
        operands = [Buffer(pointer(b, bufs, i), x.tensor, constant=True) for i, x in enumerate(op.operands)]
        self.inputs = [Buffer(x.ptr, x.type.with_shape(self.shape), constant=True) for x in operands[:n]]
        self.ahead = [x for x in self.inputs if typical(x.type.nbytes) > target.l2]
        self.inits = self.combiner.prepare(b, [x.load(b, (), 1) for x in operands[n : 2 * n]])
        self.captured: Elems = tuple(x.load(b, (), 1) for x in operands[2 * n :])
        self.results = [Buffer(pointer(b, bufs, count + i), t.with_shape(self.shape), RESULT_ALIGN,
                               streaming=elementwise.streams(t, target)) for i, t in enumerate(out)]  # fmt: skip

    def phase(self) -> Phase:
        b = self.b
        lanes = max(1, min(self.target.lanes(d) for d in self.combiner.dtypes))
        inner = typical(self.inner)
        if self.inner == 1 and self.combiner.free and typical(self.n) >= lanes:
            lanes = lanes // 2 if self.target.has_halves else lanes  # a step less, and steps cost the same
            units, unit, cost = self.outer, lambda u: self._row(u, lanes), typical(self.n) * 0.3
        else:
            while lanes > 1 and inner <= lanes // 2:
                lanes //= 2
            unroll = UNROLL
            while unroll > 1 and inner < lanes * unroll:
                unroll //= 2
            block = lanes * unroll
            blocks = -(-self.inner // block)
            units, cost = self.outer * blocks, typical(self.n) * max(1.0, block / lanes)

            def unit(u: Index) -> None:
                o, k = index.delinear(u, (self.outer, blocks))
                self._columns(o, k, block, lanes, unroll)

        begin, end = self.func.params[1:]
        b.for_(begin, end, 1, lambda u: unit(index.loop_var(u, 0, units)))
        if any(r.streaming for r in self.results):
            b.fence()
        b.ret()
        return Phase(self.func, units, cost)

    def _columns(self, o: Index, k: Index, block: int, lanes: int, unroll: int) -> None:
        """A block of the innermost axis: vectors along it, walked side by side along the scanned axis."""
        b, c = self.b, self.combiner
        lo = index.node(b, k * block)
        hi = b.smin(b.add(lo, block), self.inner)

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            def step(iv: Node, *carried: Node) -> tuple[Node, ...]:
                i = self._at(index.loop_var(iv, 0, self.n))
                old = unpack(carried, c.dtypes * len(vectors))
                new: list[Node] = []
                for j, v in enumerate(vectors):
                    state = tuple(old[j * len(c.dtypes) : (j + 1) * len(c.dtypes)])
                    at = (o, i, v.at)
                    x = c.prepare(b, [splat(b, y.load(b, at, v.lanes, v.mask), v.lanes) for y in self.inputs])
                    state = tuple(splat(b, e, v.lanes) for e in self._combine(state, x))
                    self._store(at, state, v)
                    new += pack(state)
                return tuple(new)

            start = pack(splat(b, e, v.lanes) for v in vectors for e in self.inits)
            b.for_(0, self.n, 1, step, start)
            return ()

        vector_loop(b, lo, hi, self.inner, turn, lanes=lanes, unroll=unroll, masks=self.target.has_masks)

    def _row(self, o: Index, lanes: int) -> None:
        """A row of the innermost axis: what came before is combined with the running values of one vector.

        Long sums go by blocks: a block sums up from nothing, and what came before it is added to each of its values, so
        that errors grow with the number of blocks and not of elements."""
        b, c = self.b, self.combiner
        block = BLOCK_VECTORS * lanes
        if not c.is_sum or upper(self.n) <= 2 * block:
            self._span(o, lanes, b.i64(0), b.i64(self.n), pack(self.inits), None)
            return

        def some(lo: Node, *base: Node) -> tuple[Node, ...]:
            hi = b.smin(b.add(lo, block), self.n)
            before = tuple(unpack(base, c.dtypes))
            total = self._span(o, lanes, lo, hi, pack(c.identity(b, 1)), before)
            return pack(self._combine(before, tuple(unpack(total, c.dtypes))))

        b.for_(0, self.n, block, some, pack(self.inits))

    def _span(self, o: Index, lanes: int, lo: Node, hi: Node, init: tuple[Node, ...],
              base: Elems | None) -> tuple[Node, ...]:  # fmt: skip
        """The running values of lo..hi, starting with `init`, stored combined with `base`; gives the last ones.

        What came before a vector follows from the one before that and its last value alone, one operation on the other.
        """
        b, c = self.b, self.combiner

        def spread(nodes: Sequence[Node], lanes: int) -> Elems:
            return tuple(splat(b, e, lanes) for e in unpack(nodes, c.dtypes))

        def turn(vectors: list[Vector], carried: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                at = (o, self._at(v.at), index.ZERO)
                x = c.prepare(b, [splat(b, y.load(b, at, v.lanes, v.mask), v.lanes) for y in self.inputs])
                if v.mask is not None:
                    none = pack(c.identity(b, v.lanes))
                    x = tuple(unpack(tuple(map(b.select, [v.mask] * len(none), pack(x), none)), c.dtypes))
                for distance in (1 << k for k in range(v.lanes.bit_length() - 1)):
                    x = self._combine(self._shifted(x, distance), x)
                for y in self.ahead if v.mask is None else ():
                    y.fetch(b, index.linear(at, self.shape), AHEAD if self.forward else -AHEAD)
                last = pack(map_parts(e, lambda p, v=v: b.lane(p, v.lanes - 1)) for e in x)
                before = tuple(unpack(carried, c.dtypes))
                if v.lanes < lanes:
                    before = tuple(map_parts(e, lambda p: b.lane(p, 0)) for e in before)
                state = self._combine(before, x)
                whole = state if base is None else self._combine(spread(pack(base), v.lanes), state)
                self._store(at, whole, v)
                carried = pack(self._combine(tuple(unpack(carried, c.dtypes)), spread(last, lanes)))
            return carried

        start = pack(spread(init, lanes))
        out = vector_loop(b, lo, hi, self.n, turn, lanes=lanes, masks=self.target.has_masks, init=start)
        return tuple(b.lane(x, 0) for x in out)

    def _shifted(self, x: Elems, distance: int) -> Elems:
        """Each lane gets what stands `distance` lanes before it, the first ones what changes nothing."""
        n = x[0].lanes
        none = self.combiner.identity(self.b, n)
        order = [lane if lane < distance else n + lane - distance for lane in range(n)]
        pairs = zip(pack(none), pack(x), strict=True)
        return tuple(unpack([self.b.shuffle(p, q, order) for p, q in pairs], self.combiner.dtypes))

    def _at(self, i: Index) -> Index:
        return i if self.forward else self.n - 1 - i

    def _combine(self, state: Elems, x: Elems) -> Elems:
        c = self.combiner
        return c(self.b, state, x, self.captured) if self.forward else c(self.b, x, state, self.captured)

    def _store(self, at: tuple[Index, ...], state: Elems, v: Vector) -> None:
        position = index.linear(at, self.shape)
        for r, e in zip(self.results, self.combiner.finish(self.b, state), strict=True):
            r.store(self.b, position, e, v.lanes, v.mask)
