"""Complex numbers in vectors and in memory, for Fourier transforms. Imports loop.

`Interleaved`: real and imaginary parts in turn, as they lie in memory; `Apart`, where there are no vectors.
"""

from __future__ import annotations

from typing import Protocol

from hilo.loop.builder import Builder, Node, VType
from hilo.loop.butterfly import Arithmetic, Complex, Root


class Numbers(Arithmetic, Protocol):
    """An arithmetic of nodes, and its numbers in memory."""

    b: Builder

    def load(self, at: Node, align: int) -> Complex: ...

    def store(self, at: Node, x: Complex, align: int, nontemporal: bool) -> None: ...

    def root(self, at: Node) -> Root:
        """A root of unity of a table, in all lanes."""
        ...

    def roots(self, at: Node) -> Root:
        """Roots of unity of a table, one for each lane: vectors of their real and of their imaginary parts, each part
        as two numbers."""
        ...


def multiply_add(b: Builder, fused: bool, x: Node, y: Node, z: Node) -> Node:
    return b.fma(x, y, z) if fused else b.fadd(b.fmul(x, y), z)


class Interleaved:
    """Real and imaginary parts in turn in one vector, as they lie in memory."""

    def __init__(self, b: Builder, vector: VType, fused: bool) -> None:
        self.b, self.vector, self.fused = b, vector, fused

    def load(self, at: Node, align: int) -> Node:
        return self.b.load(at, self.vector, align=align)

    def store(self, at: Node, x: Node, align: int, nontemporal: bool) -> None:
        self.b.store(at, x, align=align, nontemporal=nontemporal)

    def root(self, at: Node) -> Root:
        b, one = self.b, self.vector.with_lanes(1)
        pair = b.load(b.gep(at, one.size), one.with_lanes(2), align=one.size)
        lanes = self.vector.lanes
        return b.splat(b.load(at, one), lanes), b.shuffle(pair, pair, (0, 1) * (lanes // 2))

    def roots(self, at: Node) -> Root:
        size = self.vector.size
        step = size * self.vector.lanes
        return self.load(at, size), self.load(self.b.gep(at, step), size)

    def constant(self, w: complex) -> Root:
        return self.b.const(w.real, self.vector), self._alternating(-w.imag)

    def add(self, x: Node, y: Node) -> Node:
        return self.b.fadd(x, y)

    def sub(self, x: Node, y: Node) -> Node:
        return self.b.fsub(x, y)

    def add_turned(self, x: Node, y: Node, sign: int) -> Node:
        return multiply_add(self.b, self.fused, self._swapped(y), self._alternating(-sign), x)

    def turned(self, x: Node, sign: int) -> Node:
        return self.b.fmul(self._swapped(x), self._alternating(-sign))

    def multiply(self, x: Node, w: Root) -> Node:
        return multiply_add(self.b, self.fused, x, w[0], self.b.fmul(self._swapped(x), w[1]))

    def multiply_real(self, x: Node, c: float, y: Node | None) -> Node:
        factor = self.b.const(c, self.vector)
        return self.b.fmul(x, factor) if y is None else multiply_add(self.b, self.fused, x, factor, y)

    def _swapped(self, x: Node) -> Node:
        return self.b.shuffle(x, x, [l ^ 1 for l in range(self.vector.lanes)])

    def _alternating(self, c: float) -> Node:
        """c for the real parts, -c for the imaginary ones."""
        return self.b.const((float(c), -float(c)) * (self.vector.lanes // 2), self.vector)


class Apart:
    """A real and an imaginary part, as two scalars."""

    def __init__(self, b: Builder, scalar: VType, fused: bool) -> None:
        self.b, self.scalar, self.fused = b, scalar, fused

    def load(self, at: Node, align: int) -> Complex:
        return self.b.load(at, self.scalar), self.b.load(self.b.gep(at, self.scalar.size), self.scalar)

    def store(self, at: Node, x: Complex, align: int, nontemporal: bool) -> None:
        for part, v in enumerate(x):
            self.b.store(self.b.gep(at, part * self.scalar.size), v)

    def root(self, at: Node) -> Root:
        return self._root(at, 2 * self.scalar.size)

    def roots(self, at: Node) -> Root:
        return self._root(at, 3 * self.scalar.size)

    def _root(self, at: Node, imaginary: int) -> Root:
        return self.b.load(at, self.scalar), self.b.load(self.b.gep(at, imaginary), self.scalar)

    def constant(self, w: complex) -> Root:
        return self.b.const(w.real, self.scalar), self.b.const(w.imag, self.scalar)

    def add(self, x: Complex, y: Complex) -> Complex:
        return self.b.fadd(x[0], y[0]), self.b.fadd(x[1], y[1])

    def sub(self, x: Complex, y: Complex) -> Complex:
        return self.b.fsub(x[0], y[0]), self.b.fsub(x[1], y[1])

    def add_turned(self, x: Complex, y: Complex, sign: int) -> Complex:
        up, down = (self.b.fadd, self.b.fsub) if sign > 0 else (self.b.fsub, self.b.fadd)
        return down(x[0], y[1]), up(x[1], y[0])

    def turned(self, x: Complex, sign: int) -> Complex:
        return (self.b.fneg(x[1]), x[0]) if sign > 0 else (x[1], self.b.fneg(x[0]))

    def multiply(self, x: Complex, w: Root) -> Complex:
        b = self.b
        return (multiply_add(b, self.fused, x[0], w[0], b.fneg(b.fmul(x[1], w[1]))),
                multiply_add(b, self.fused, x[1], w[0], b.fmul(x[0], w[1])))  # fmt: skip

    def multiply_real(self, x: Complex, c: float, y: Complex | None) -> Complex:
        b, factor = self.b, self.b.const(c, self.scalar)
        if y is None:
            return b.fmul(x[0], factor), b.fmul(x[1], factor)
        return tuple(multiply_add(b, self.fused, v, factor, z) for v, z in zip(x, y, strict=True))
