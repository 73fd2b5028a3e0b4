"""Depthwise convolutions: each feature by itself, sums of some positions in registers. Imports ops, loop, kernels.

A vector of features and a run of positions along the innermost axis are one tile, whose columns of lhs are read once
for each row of the window, however many positions see them. Which taps lie outside of lhs is known for every tile when
it is written: a row has one at its start, one at its end, and equal ones between, so that padding costs nothing and is
never multiplied. The function that sums up a row is shared by all convolutions with like windows; what follows the sums
is done row by row.
"""

from __future__ import annotations

from functools import cache
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir import dtypes
from hilo.ir.op import Op
from hilo.kernels import elementwise
from hilo.kernels.contraction_units import balanced
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, Buffer, pointer
from hilo.kernels.microkernel import multiples
from hilo.loop import arith, index
from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType
from hilo.loop.index import Index
from hilo.loop.product import DEPTHWISE_PARAMS, GROUP, Depthwise
from hilo.ops.convolution import windows
from hilo.ops.window_axes import Axis
from hilo.record import record, replace

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.kernels.epilogue import Epilogue

MOST_TAPS: Final = 7  # along the innermost axis: their weights stay in registers
MOST_PRODUCTS: Final = 56  # of a tile and a row of the window
MOST_POSITIONS: Final = 14  # of a tile
BLOCK_ROWS: Final = 8  # of results in a unit: the rows of lhs that these share stay in the first-level cache
LONG_ROW: Final = 6 << 10  # bytes of a row of lhs (one vector of features) from which long runs of memory are better
FEW_TAPS: Final = 16  # windows for which that holds: memory is their limit
VECTOR_NS: Final = 0.4  # of one product
MOST_SUMS: Final = 32 << 10  # bytes of a row's sums on the stack
OUTER_NS: Final = 100  # of a row of sums, beside which the code around it does not matter


@record(frozen=True)
class Row:
    """A row of sums, and the types `lhs` and `rhs` of what is multiplied, in memory."""

    lhs: str
    rhs: str
    sums: Depthwise

    @property
    def name(self) -> str:
        p = self.sums
        types = f"{p.scalar}x{p.lanes}{'m' if p.masked else ''}_{self.lhs}_{self.rhs}"
        window = f"{p.taps}s{p.stride}d{p.dilation}"
        return f"depthwise_{types}_{window}_{p.positions}l{p.low}e{p.end}t{p.tiles}"


ROW_PARAMS: Final = [(n, PTR if n in ("x", "w", "to") else I64) for n in DEPTHWISE_PARAMS]


@cache
def sums_of_row(r: Row) -> Func:
    """The sums of a row of `width` results, one vector each.

    `x`: lhs at column 0 of the first of `rows` rows that the windows have; `w`: the weights for that. Strides are in
    bytes. `fresh` rows that the windows below will see, `ahead` bytes further, are fetched. `to`: where the sums go,
    `to_column` bytes apart. `inner`: where tiles in the middle end. `live`: lanes that count.
    """
    f = Func(r.name, ROW_PARAMS, noalias=("to",), inline="never")
    p = r.sums
    if r.lhs == r.rhs == p.scalar:
        f.attrs["product"] = p
    b = Builder(f)
    x, x_row, x_column, w, w_row, w_column, rows, ahead, fresh, to, to_column, inner, width, live = f.params
    held, lhs, rhs = (dtypes.dtype(n) for n in (p.scalar, r.lhs, r.rhs))
    v = VType(p.scalar, p.lanes)
    mask = b.cmp("slt", b.iota(I64.with_lanes(p.lanes)), live) if p.masked else None
    weight_offsets = multiples(b, w_column, p.taps)
    steps = multiples(b, x_column, GROUP)

    def tile(at: Node, lo: int, hi: int) -> None:
        """The positions from `at` on, whose windows have columns lo..hi of those that they see."""
        start = b.gep(x, b.mul(b.sub(b.mul(at, p.stride), p.low), x_column))
        users = p.users(lo, hi)
        groups = sorted({c // GROUP for c in users})
        bases = [b.gep(start, b.mul(x_column, g * GROUP)) for g in groups]

        def fetch(i: Node) -> None:
            line = b.add(ahead, b.mul(i, x_row))
            for g, base in zip(groups, bases, strict=True):
                for c in range(g * GROUP, min((g + 1) * GROUP, p.positions * p.stride)):
                    b.prefetch(b.gep(b.gep(base, line), steps[c - g * GROUP]))

        b.for_(0, fresh, 1, fetch)

        def turn(_: Node, weights: Node, *state: Node) -> list[Node]:
            base, acc = dict(zip(groups, state, strict=False)), list(state[len(groups) :])
            ws = [arith.convert(b, arith.load_elem(b, weights, weight_offsets[k], rhs, p.lanes, mask), held).re
                  for k in range(p.taps)]  # fmt: skip
            for column in users:
                at, offset = base[column // GROUP], steps[column % GROUP]
                e = arith.convert(b, arith.load_elem(b, at, offset, lhs, p.lanes, mask), held)
                for position, k in users[column]:
                    acc[position] = b.fma(e.re, ws[k], acc[position])
            return [b.gep(weights, w_row), *(b.gep(x, x_row) for x in state[: len(groups)]), *acc]

        zeros = [b.const(0, v)] * p.positions
        acc = b.for_(0, rows, 1, turn, (w, *bases, *zeros))[1 + len(groups) :]
        place = b.gep(to, b.mul(at, to_column))
        for position, total in enumerate(acc):
            b.store(b.gep(place, b.mul(to_column, position)), total, mask=mask)

    begin, middle = b.i64(0), b.sub(inner, p.positions - 1)
    if p.tiles == 1:
        tile(begin, p.low, p.end)
    else:
        if p.low:
            tile(begin, p.low, p.reach)
            begin = b.i64(p.positions)
        b.for_(begin, middle, p.positions, lambda at: tile(at, 0, p.reach))
        if p.tiles == 3:
            tile(b.sub(width, p.positions), 0, p.end)
    b.ret()
    return f


def lower(op: Op, target: Target, epilogue: Epilogue | None = None) -> Lowered | None:
    """The kernel of a depthwise `convolution` in the layout [b, 0, f]x[0, i, o]->[b, 0, f], with what follows it; None
    if it is not one for tiles."""
    x, w, t = op.operands[0].tensor, op.operands[1].tensor, op.tensor
    axes = windows(w, op.attrs)
    outputs = w.shape[-1]
    alike = op.attrs["feature_group_count"] == outputs == x.shape[-1] and w.shape[-2] == 1
    sizes = (*x.shape[1:], *t.shape[1:], *w.shape)
    static = all(isinstance(n, int) and n > 0 for n in sizes)
    if not alike or not static or not 1 <= len(axes) <= 2 or any(a.base > 1 for a in axes):
        return None
    held = dtypes.f64 if dtypes.f64 in (x.dtype, t.dtype) else dtypes.f32
    floats = all(d.is_float and d.bits >= 16 for d in (x.dtype, w.dtype, t.dtype))
    lanes = target.lanes(held)
    if not floats or not target.has_fma or lanes == 1 or outputs < lanes // 2:
        return None
    if outputs % lanes and not target.has_masks:
        return None
    n, places = x.shape[-2], t.shape[-2]
    if n * target.vector_bytes > LONG_ROW and prod(a.size for a in axes) < FEW_TAPS:
        return None
    if places * lanes * held.itemsize > MOST_SUMS:
        return None
    found = tiles_of(axes[-1], n, places, target.registers)
    if found is None:
        return None
    sums = Depthwise(held.name, lanes, False, axes[-1].size, axes[-1].stride, axes[-1].dilation, *found)
    return _Depthwise(op, sums, target, epilogue).lowered()


def tiles_of(axis: Axis, n: int, places: int, registers: int) -> tuple[int, int, int, int] | None:
    """(positions, low, end, tiles) for `places` windows of `n` elements (see `Depthwise`), if there is a way."""
    if not 1 <= axis.size <= MOST_TAPS or axis.low < 0:
        return None
    starts = [o * axis.stride - axis.low for o in range(places)]
    before = sum(s < 0 for s in starts)  # windows that begin outside of lhs
    after = sum(s + axis.reach > n for s in starts)  # that end there
    most = min(MOST_POSITIONS, MOST_PRODUCTS // axis.size, registers - axis.size - 2)
    for positions in range(balanced(places, most), 0, -1):
        reach = (positions - 1) * axis.stride + axis.reach
        end = min(n - starts[places - positions], reach)
        if positions == places:
            return positions, axis.low, end, 1
        rest = places % positions
        apart = max(before, after) <= min(positions, places - positions)
        if apart and (rest == 0 or rest >= after):
            return positions, axis.low, end, 3 if after or rest else 2
        if positions < most // 2:
            return None
    return None


class _Depthwise:
    """Writes the function of one convolution."""

    def __init__(self, op: Op, p: Depthwise, target: Target, epilogue: Epilogue | None) -> None:
        x, w, t = op.operands[0].tensor, op.operands[1].tensor, op.tensor
        self.p, self.x, self.w, self.out, self.epilogue = p, x, w, t, epilogue
        plain = (Axis(),) if len(x.shape) == 3 else ()  # one row only
        self.outer, self.axis = (*plain, *windows(w, op.attrs))
        self.high = x.shape[1] if not plain else 1  # rows of lhs
        self.shape = (t.shape[0], *(1 for _ in plain), *t.shape[1:])
        reversed_ = tuple(op.attrs["window_reversal"] or ()) or (False,) * (2 - len(plain))
        self.turned = (*(False for _ in plain), *reversed_)
        self.func = elementwise.new_func("convolution")
        b, bufs = Builder(self.func), self.func.params[0]
        self.b, self.target = b, target
        lhs, rhs = (epilogue and epilogue.numbers) or (0, 1)
        last = epilogue.first + len(epilogue.operands) if epilogue else 2
        self.x_at, self.w_at = pointer(b, bufs, lhs), pointer(b, bufs, rhs)
        self.result = Buffer(pointer(b, bufs, last), epilogue.out if epilogue else t, RESULT_ALIGN)
        self.sources = [Buffer(pointer(b, bufs, epilogue.first + i), t, constant=True)
                        for i, t in enumerate(epilogue.operands)] if epilogue else []  # fmt: skip
        self.helpers: dict[str, Func] = {}

    def lowered(self) -> Lowered:
        b, p = self.b, self.p
        batch, height, places, features = self.shape
        block = balanced(height, BLOCK_ROWS)
        shape = (batch, -(-height // block), -(-features // p.lanes))
        units = prod(shape)
        vector = p.lanes * VType(p.scalar).size
        row_ns = places * (self.outer.size * self.axis.size + 4) * VECTOR_NS
        self.func.attrs["outer"] = self.direct and row_ns >= OUTER_NS
        sums = self.result.ptr if self.direct else b.alloca(places * vector)

        def unit(u: Node) -> None:
            image, rows, k = index.delinear(index.loop_var(u, 0, units), shape)
            lo, y0 = index.node(b, k * p.lanes), index.node(b, rows * block)
            y1 = b.smin(b.add(y0, block), height)

            def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
                (v,) = vectors
                self.fetch_weights(v)
                b.for_(y0, y1, 1, lambda y: self.row(image, index.loop_var(y, 0, height), v, sums))
                return ()

            end = b.smin(b.add(lo, p.lanes), features)
            vector_loop(b, lo, end, features, turn, lanes=p.lanes, masks=self.target.has_masks)

        _, begin, end = self.func.params
        b.for_(begin, end, 1, unit)
        b.ret()
        cost = block * row_ns
        reason = f"each feature by itself: {p.positions} positions side by side, a vector of features each"
        return Lowered([Phase(self.func, units, cost, list(self.helpers.values()))],
                       strategy="depthwise convolution", reason=reason)  # fmt: skip

    @property
    def direct(self) -> bool:
        """Whether sums are what is stored."""
        return self.epilogue is None and self.out.dtype.name == self.p.scalar

    def fetch_weights(self, v: Vector) -> None:
        """Those of the next vector of features, of which each tap has its own line, come into the cache."""
        b, size = self.b, self.w.dtype.itemsize
        w = b.gep(self.w_at, b.mul(index.node(b, v.at.first_lane()), size))
        for tap in range(self.outer.size * self.axis.size):
            b.prefetch(b.gep(w, (tap * self.shape[-1] + v.lanes) * size))

    def row(self, image: Index, y: Index, v: Vector, sums: Node) -> None:
        """Row `y` of an image's results, for a vector of features."""
        b, p, outer = self.b, self.p, self.outer
        _, _, places, features = self.shape
        width = self.x.shape[-2]
        x_column, w_column = features * self.x.dtype.itemsize, features * self.w.dtype.itemsize
        x_row, w_row = width * x_column, self.axis.size * w_column
        top = y * outer.stride - outer.low  # row of lhs that the window begins with
        k0 = b.smax(index.node(b, -(top // outer.dilation)), 0)
        k1 = b.smin(index.node(b, (self.high - 1 - top) // outer.dilation + 1), outer.size)
        rows = b.smax(b.sub(k1, k0), 0)
        taken = b.select(b.cmp("sgt", rows, 0), k0, 0)
        feature = index.node(b, v.at.first_lane())
        line = b.add(index.node(b, image * self.high + top), b.mul(taken, outer.dilation))
        x = b.gep(self.x_at, b.add(b.mul(line, x_row), b.mul(feature, self.x.dtype.itemsize)))
        tap = b.sub(outer.size - 1, taken) if self.turned[0] else taken
        w = b.gep(self.w_at, b.add(b.mul(tap, w_row), b.mul(feature, self.w.dtype.itemsize)))
        if self.turned[0]:
            w_row = -w_row
        if self.turned[1]:
            w, w_column = b.gep(w, (self.axis.size - 1) * w_column), -w_column
        live = b.i64(p.lanes) if v.mask is None else b.sub(features, feature)
        func = sums_of_row(Row(self.x.dtype.name, self.w.dtype.name, replace(p, masked=v.mask is not None)))
        self.helpers[func.name] = func
        inner = places - sum(o * p.stride - self.axis.low + self.axis.reach > width for o in range(places))
        ahead = b.mul(b.sub(outer.size, taken), outer.dilation * x_row)
        fresh = min(outer.stride, outer.size)
        held, vector = dtypes.dtype(p.scalar), p.lanes * VType(p.scalar).size
        to, to_column = sums, vector
        if self.direct:
            start = index.node(b, index.linear([image, y, index.ZERO, v.at.first_lane()], self.shape))
            to, to_column = b.gep(sums, b.mul(start, held.itemsize)), features * held.itemsize
        b.call(func.name, [x, b.i64(outer.dilation * x_row), b.i64(x_column), w, b.i64(w_row), b.i64(w_column), rows,
                           ahead, b.i64(fresh), to, b.i64(to_column), b.i64(inner), b.i64(places), live])  # fmt: skip
        if self.direct:
            return

        def finish(o: Node) -> None:
            e = arith.load_elem(b, sums, b.mul(o, vector), held, p.lanes)
            e = arith.convert(b, e, self.out.dtype)
            position = index.linear([image, y, index.loop_var(o, 0, places), v.at], self.shape)
            if self.epilogue is not None:
                shape = self.result.type.shape
                at = index.delinear(position, shape) if prod(shape) != 1 else [index.ZERO] * len(shape)
                readers = [lambda i, s=s: s.load(b, tuple(i), v.lanes, v.mask) for s in self.sources]
                e = self.epilogue.build(b, at, e, readers)
            self.result.store(b, position, e, v.lanes, v.mask)

        b.for_(0, places, 1, finish)
