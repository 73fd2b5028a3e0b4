"""Short Fourier transforms of values in registers: what a pass of them does, and by which sums and products, in words
that a backend may know. Imports record.

`Butterfly` takes complex vectors and gives their discrete Fourier transform, lane by lane: fours, primes, and products
of those. What complex vectors are, and how they are added, is an `Arithmetic`.
"""

from __future__ import annotations

from cmath import exp, pi
from typing import Any, Final, Protocol

from hilo.record import record

ROOT: Final = 3  # numbers that tell a root of unity w in a table: w.real, -w.imag, w.imag
#: Parameters of passes that are functions, in order: pointers, then numbers (`kernels.fft_passes.Pass`).
PLACES: Final = ("table", "source", "to")
NUMBERS: Final = ("turns", "inner", "read_turn", "read", "write_turn", "write")
Complex = Any  # what an `Arithmetic` works on: complex numbers side by side
Root = Any  # what it multiplies them by


@record(frozen=True)
class Butterflies:
    """A pass: transforms of `radix` vectors in memory, each of `lanes` complex numbers with parts of type `scalar`.
    `turned`: all results but the first are multiplied by roots of unity. `streams`: results, which are aligned then, go
    past the caches. `fused`: products and the sums they go into are rounded once.

    A `Func` with this attribute `product` has a body like any other; see `loop.product`.
    """

    radix: int
    scalar: str
    lanes: int
    turned: bool
    streams: bool
    inverse: bool
    fused: bool


class Arithmetic(Protocol):
    """How complex numbers are added and multiplied."""

    def constant(self, w: complex) -> Root: ...

    def add(self, x: Complex, y: Complex) -> Complex: ...

    def sub(self, x: Complex, y: Complex) -> Complex: ...

    def add_turned(self, x: Complex, y: Complex, sign: int) -> Complex:
        """x + i y, or x - i y."""
        ...

    def turned(self, x: Complex, sign: int) -> Complex:
        """i x, or -i x."""
        ...

    def multiply(self, x: Complex, w: Root) -> Complex: ...

    def multiply_real(self, x: Complex, c: float, y: Complex | None) -> Complex:
        """c x, or c x + y."""
        ...


class Butterfly:
    """Emits transforms, with roots exp(sign 2 pi i / n)."""

    def __init__(self, a: Arithmetic, sign: int) -> None:
        self.a, self.sign = a, sign

    def transform(self, xs: list[Complex]) -> list[Complex]:
        """The transform of `xs`, in order."""
        n, a = len(xs), self.a
        if n == 1:
            return xs
        if n == 2:
            return [a.add(*xs), a.sub(*xs)]
        if n == 4:
            return self._four(xs)
        first = 4 if n % 4 == 0 else next(p for p in range(2, n + 1) if n % p == 0)
        if first == n:
            return self._prime(xs)
        rest = n // first
        columns = [self.transform(xs[j::rest]) for j in range(rest)]
        rows = [self.transform([self._turned(columns[j][k], j * k, n) for j in range(rest)]) for k in range(first)]
        return [rows[k % first][k // first] for k in range(n)]

    def _four(self, xs: list[Complex]) -> list[Complex]:
        a = self.a
        (s, d), (t, e) = ((a.add(x, y), a.sub(x, y)) for x, y in (xs[::2], xs[1::2]))
        return [a.add(s, t), a.add_turned(d, e, self.sign), a.sub(s, t), a.add_turned(d, e, -self.sign)]

    def _prime(self, xs: list[Complex]) -> list[Complex]:
        """By sums and differences of the elements that are turned by opposite angles."""
        a, n, first = self.a, len(xs), xs[0]
        pairs = [(xs[j], xs[n - j]) for j in range(1, n // 2 + 1)]
        sums = [a.add(x, y) for x, y in pairs]
        differences = [a.sub(x, y) for x, y in pairs]
        total = first
        for s in sums:
            total = a.add(total, s)
        out = [total] * n
        for k in range(1, n // 2 + 1):
            even, odd = first, None
            for j, (s, d) in enumerate(zip(sums, differences, strict=True), 1):
                w = self._root(j * k, n)
                even = a.multiply_real(s, w.real, even)
                odd = a.multiply_real(d, w.imag, odd)
            out[k], out[n - k] = a.add_turned(even, odd, 1), a.add_turned(even, odd, -1)
        return out

    def _turned(self, x: Complex, k: int, n: int) -> Complex:
        """x times root k of n."""
        quarters, rest = divmod(k % n * 4, n)
        if rest:
            return self.a.multiply(x, self.a.constant(self._root(k, n)))
        for _ in range(quarters):
            x = self.a.turned(x, self.sign)
        return x

    def _root(self, k: int, n: int) -> complex:
        return exp(self.sign * 2j * pi * (k % n) / n)
