"""`PlainBuilder`: for writers of formats that have the loop IR's arithmetic, but no `scale`. Imports loop."""

from __future__ import annotations

from hilo.loop.builder import Builder
from hilo.loop.math.floats import fmt
from hilo.loop.nodes import Node


class PlainBuilder(Builder):
    """Makes a product with 2^n of two with about half of n each: neither is beyond the exponents that there are."""

    def scale(self, x: Node, n: Node) -> Node:
        f = fmt(x)
        shift = f.bits - 16  # of a sum with the shifter, n is the low bits
        k = self.shl(self.bitcast(self.fadd(n, f.shifter), f.int), shift)
        half = self.ashr(k, shift + 1)
        for part in (half, self.sub(self.ashr(k, shift), half)):
            x = self.fmul(x, self.bitcast(self.shl(self.add(part, f.bias), f.digits), x.type.scalar))
        return x
