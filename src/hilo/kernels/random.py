"""Random bits: Threefry-2x32 and Philox-4x32 on vectors of counters; ops/random.py says what they are. Imports loop.

A vector of counters gives several vectors of numbers, which are woven together where they lie side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Final

from hilo.ir.dims import Number, Size, Undecided, divide, typical
from hilo.ir.op import Op
from hilo.ir.types import TensorType, result_types
from hilo.kernels import elementwise
from hilo.kernels.loops import Vector, vector_loop
from hilo.kernels.lowered import Lowered, Phase
from hilo.kernels.memory import RESULT_ALIGN, pointer
from hilo.loop import index
from hilo.loop.arith.conversions import low_bits
from hilo.loop.builder import I32, I64, Builder, Node
from hilo.loop.index import Index

if TYPE_CHECKING:
    from hilo.backend.target import Target

_ROTATIONS: Final = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY: Final = 0x1BD11BDA
_PHILOX_KEYS: Final = (0x9E3779B9, 0xBB67AE85)
_PHILOX_FACTORS: Final = (0xD2511F53, 0xCD9E8D57)
BLOCK: Final = 1 << 13  # counters per parallel unit
NS: Final = 25.0  # of a vector of counters


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `rng_bit_generator`: the bits, then the new state."""
    state, out = (t for t in result_types(op.type) if isinstance(t, TensorType))
    writer = _Bits(op, out, target)
    phases = []
    if out.size != 0:
        phases.append(writer.threefry() if op.attrs["rng_algorithm"] == "THREE_FRY" else writer.philox())
    return Lowered([*phases, _state(state, writer.used)], strategy="random bits",
                   reason=f"counters side by side in vectors, {BLOCK} to a unit; then the state")  # fmt: skip


def _state(t: TensorType, used: Number) -> Phase:
    """The phase that writes the new state: the counter moved on by the number of counters used."""
    func = elementwise.new_func("rng_state")
    b = Builder(func)
    old, new = pointer(b, func.params[0], 0), pointer(b, func.params[0], 1)
    words = [b.load(b.gep(old, 8 * i), I64) for i in range(t.shape[0])]
    low = b.add(words[1], used)
    carried = b.convert("zext", b.cmp("ult", low, words[1]), "i64")
    for i, w in enumerate([words[0], low, *(b.add(h, carried) for h in words[2:])]):
        b.store(b.gep(new, 8 * i), w)
    b.ret()
    return Phase(func, 1, 2.0)


class _Bits:
    """Writes the function that makes the bits. `used`: how many counters that takes."""

    def __init__(self, op: Op, out: TensorType, target: Target) -> None:
        self.out, self.target = out, target
        self.bits = out.dtype.bits
        self.wide = self.bits == 64
        self.lanes = target.lanes("i32")
        full = out.shape or (1,)
        if op.attrs["rng_algorithm"] == "THREE_FRY":
            axis = 0 if self.wide or len(full) == 1 else _pairs_axis(full)
            n = full[axis]
            self.sizes = (prod(full[:axis]), n, prod(full[axis + 1 :]))  # before, along, behind the pairs' axis
            self.used = out.size if self.wide else self.sizes[0] * -(-n // 2) * self.sizes[2]
        else:
            self.used = -(-out.size * (2 if self.wide else 1) // 4)
        self.func = elementwise.new_func("random")
        self.b = Builder(self.func)
        bufs, self.begin, self.end = self.func.params
        old = pointer(self.b, bufs, 0)
        self.state = [self.b.load(self.b.gep(old, 8 * i), I64, invariant=True) for i in range(op.operands[0].shape[0])]
        self.result = pointer(self.b, bufs, 2)

    # ---- the result
    def _number(self, low: Node, high: Node | None = None) -> Node:
        """A number of the result's width from 32 or two times 32 bits."""
        b = self.b
        if high is not None:
            return b.or_(b.convert("zext", low, "i64"), b.shl(b.convert("zext", high, "i64"), 32))
        return low_bits(b, low, self.bits) if self.bits < 32 else low

    def _store(self, numbers: Sequence[Node], at: Index, count: Index | int) -> None:
        """Weave vectors together (lane 0 of each, lane 1 of each ...) and store them from position `at` on.

        `count`: how many there are room for in the result.
        """
        b = self.b
        parts = list(numbers)
        lanes = parts[0].type.lanes
        while len(parts) > 1:
            half = len(parts) // 2
            n = parts[0].type.lanes
            parts = [b.shuffle(x, y, [k // 2 + k % 2 * n for k in range(2 * n)]) if n > 1 else self._pair(x, y)
                     for x, y in zip(parts[:half], parts[half:], strict=True)]  # fmt: skip
        value = parts[0]
        size = value.type.size
        ptr = b.gep(self.result, index.node(b, at * size))
        total = lanes * len(numbers)
        room = count if isinstance(count, Index) else index.constant(count)
        if room.lo >= total:
            m = at.multiple * size
            b.store(ptr, value, align=max(size, min(RESULT_ALIGN, m & -m)) if m else RESULT_ALIGN)
            return
        left = index.node(b, room)
        if self.target.has_masks and total > 1:
            b.store(ptr, value, mask=b.cmp("slt", b.iota(left.type.with_lanes(total)), left), align=size)
            return
        for k in range(total):
            b.if_(b.cmp("sgt", left, k), lambda k=k: _nothing(b.store(b.gep(ptr, k * size), b.lane(value, k))))

    def _pair(self, x: Node, y: Node) -> Node:
        b = self.b
        t = x.type.with_lanes(2)
        return b.insert(b.insert(b.const(0, t), x, 0), y, 1) if x.type.lanes == 1 else x

    # ---- generators
    def _halves(self, x: Node) -> tuple[Node, Node]:
        b = self.b
        return b.convert("itrunc", x, "i32"), b.convert("itrunc", b.lshr(x, 32), "i32")

    def threefry(self) -> Phase:
        """Numbers in pairs along an axis; of 64 bits: one from each counter."""
        if self.wide:

            def one(v: Vector) -> None:
                first = v.at.first_lane()
                self._store([self._number(*self._threefry(v.at))], first, first * -1 + self.out.size)

            return self._flat(one, self.out.size)
        b = self.b
        before, n, behind = self.sizes
        half = -(-n // 2)
        rows = before * (half if behind > 1 else 1)
        length = behind if behind > 1 else half
        pieces = -(-length // BLOCK)

        def unit(u: Node) -> None:
            row, piece = index.delinear(index.loop_var(u, 0, rows * pieces), (rows, pieces))
            lo = b.mul(index.node(b, piece), BLOCK)
            hi = b.smin(b.add(lo, BLOCK), length)

            def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
                for v in vectors:
                    first = v.at.first_lane()
                    x, y = (self._number(p) for p in self._threefry(row * length + v.at))
                    if behind == 1:  # the pair lies side by side
                        self._store([x, y], row * n + first * 2, first * -2 + n)
                        continue
                    o, j = index.delinear(row, (before, half))
                    at = (o * n + j * 2) * behind + first
                    self._store([x], at, first * -1 + length)
                    second = index.in_range(b, j * 2 + 1, 0, n)
                    b.if_(second, lambda y=y, at=at, first=first: self._store([y], at + behind, first * -1 + length))
                return ()

            vector_loop(b, lo, hi, length, turn, lanes=self._lanes(length), masks=True)

        b.for_(self.begin, self.end, 1, unit)
        b.ret()
        return Phase(self.func, rows * pieces, min(typical(length), BLOCK) / self.lanes * NS)

    def philox(self) -> Phase:
        """Four words, or two numbers of 64 bits, from each counter."""

        def block(v: Vector) -> None:
            words = self._philox(v.at)
            first = v.at.first_lane()
            if self.wide:
                numbers = [self._number(words[0], words[1]), self._number(words[2], words[3])]
            else:
                numbers = [self._number(w) for w in words]
            per = len(numbers)
            self._store(numbers, first * per, first * -per + self.out.size)

        return self._flat(block, self.used)

    def _lanes(self, n: Number) -> int:
        return self.lanes if typical(n) >= self.lanes // 2 else 1

    def _flat(self, block: Callable[[Vector], None], n: Number) -> Phase:
        """A loop over n counters."""
        b = self.b

        def turn(vectors: list[Vector], _: tuple[Node, ...]) -> tuple[Node, ...]:
            for v in vectors:
                block(v)
            return ()

        hi = b.smin(b.mul(self.end, BLOCK), n)
        vector_loop(b, b.mul(self.begin, BLOCK), hi, n, turn, lanes=self._lanes(n), masks=True)
        b.ret()
        return Phase(self.func, -(-n // BLOCK), min(typical(n), BLOCK) / self.lanes * NS)

    def _threefry(self, at: Index) -> tuple[Node, Node]:
        b = self.b
        k0, k1 = self._halves(self.state[0])
        keys = (k0, k1, b.xor(b.xor(k0, k1), _PARITY))
        x, y = self._halves(b.add(self.state[1], index.node(b, at)))
        x, y = b.add(x, keys[0]), b.add(y, keys[1])
        for group in range(5):
            for r in _ROTATIONS[group % 2]:
                x = b.add(x, y)
                y = b.xor(b.or_(b.shl(y, r), b.lshr(y, 32 - r)), x)
            x = b.add(x, keys[(group + 1) % 3])
            y = b.add(b.add(y, keys[(group + 2) % 3]), group + 1)
        return x, y

    def _philox(self, at: Index) -> list[Node]:
        b = self.b
        key, low = self.state[:2]
        high = self.state[2] if len(self.state) == 3 else key
        k0, k1 = self._halves(key)
        lows = b.add(low, index.node(b, at))
        highs = b.add(high, b.convert("zext", b.cmp("ult", lows, low), "i64"))
        x = [*self._halves(lows), *self._halves(highs)]
        for _ in range(10):
            (p_low, p_high), (q_low, q_high) = (
                self._halves(b.mul(b.convert("zext", x[i], "i64"), factor))
                for i, factor in zip((0, 2), _PHILOX_FACTORS, strict=True)
            )
            x = [b.xor(b.xor(q_high, x[1]), k0), q_low, b.xor(b.xor(p_high, x[3]), k1), p_low]
            k0, k1 = b.add(k0, b.const(_PHILOX_KEYS[0], I32)), b.add(k1, b.const(_PHILOX_KEYS[1], I32))
        return x


def _pairs_axis(shape: Sequence[Number]) -> int:
    """The axis along which pairs are neighbours: the first of even size, else the largest."""
    for d, n in enumerate(shape):
        even = divide(n, 2) is not None
        if isinstance(n, Size) and not even:
            raise Undecided(f"which axis has pairs of random numbers depends on whether the size {n!r} is even")
        if even:
            return d
    return max(range(len(shape)), key=lambda d: shape[d])


def _nothing(_: object) -> None:
    return None
