"""Short Fourier transforms of values in registers. Imports loop, ops.fft.

`transform` takes complex vectors, lane by lane, and gives their discrete Fourier transform: fours, primes, and products
of those. Roots of unity that are multiples of an eighth turn cost little or nothing.
"""

from __future__ import annotations

from cmath import exp, pi

from hilo.loop.builder import Builder, Node
from hilo.ops.fft import factors

Complex = tuple[Node, Node]  # vectors of real and of imaginary parts


def root(k: int, n: int) -> complex:
    """exp(-2 pi i k / n)."""
    return exp(-2j * pi * (k % n) / n)


class Butterfly:
    """Emits transforms; `fused`: with fused multiply-adds."""

    def __init__(self, b: Builder, fused: bool) -> None:
        self.b = b
        self.fused = fused

    def transform(self, xs: list[Complex]) -> list[Complex]:
        """The transform of `xs`, in order."""
        n = len(xs)
        if n == 1:
            return xs
        if n == 2:
            return [self.add(*xs), self.sub(*xs)]
        if n == 4:
            return self._four(xs)
        first = 4 if n % 4 == 0 else factors(n)[0]
        if first == n:
            return self._prime(xs)
        rest = n // first
        columns = [self.transform(xs[j::rest]) for j in range(rest)]
        rows = [self.transform([self.turned(columns[j][k], j * k, n) for j in range(rest)]) for k in range(first)]
        return [rows[k % first][k // first] for k in range(n)]

    def _four(self, xs: list[Complex]) -> list[Complex]:
        b = self.b
        (s, d), (t, e) = ((self.add(x, y), self.sub(x, y)) for x, y in (xs[::2], xs[1::2]))
        return [self.add(s, t), (b.fadd(d[0], e[1]), b.fsub(d[1], e[0])),
                self.sub(s, t), (b.fsub(d[0], e[1]), b.fadd(d[1], e[0]))]  # fmt: skip

    def _prime(self, xs: list[Complex]) -> list[Complex]:
        """By sums and differences of the elements that are turned by opposite angles."""
        b, n, first = self.b, len(xs), xs[0]
        pairs = [(xs[j], xs[n - j]) for j in range(1, n // 2 + 1)]
        sums = [self.add(x, y) for x, y in pairs]
        differences = [self.sub(x, y) for x, y in pairs]
        total = first
        for s in sums:
            total = self.add(total, s)
        out = [total] * n
        for k in range(1, n // 2 + 1):
            even, odd = first, None
            for j, (s, d) in enumerate(zip(sums, differences, strict=True), 1):
                w = root(j * k, n)
                even = tuple(self.multiply_add(x, w.real, e) for x, e in zip(s, even, strict=True))
                odd = tuple(b.fmul(x, -w.imag) if odd is None else self.multiply_add(x, -w.imag, odd[i])
                            for i, x in enumerate(d))  # fmt: skip
            assert odd is not None
            out[k] = b.fadd(even[0], odd[1]), b.fsub(even[1], odd[0])
            out[n - k] = b.fsub(even[0], odd[1]), b.fadd(even[1], odd[0])
        return out

    # ---- parts
    def add(self, x: Complex, y: Complex) -> Complex:
        return self.b.fadd(x[0], y[0]), self.b.fadd(x[1], y[1])

    def sub(self, x: Complex, y: Complex) -> Complex:
        return self.b.fsub(x[0], y[0]), self.b.fsub(x[1], y[1])

    def turned(self, x: Complex, k: int, n: int) -> Complex:
        """x times exp(-2 pi i k / n)."""
        b = self.b
        quarters, rest = divmod(k % n * 4, n)
        re, im = x
        if 2 * rest == n:
            re, im = b.fmul(b.fadd(re, im), 0.5**0.5), b.fmul(b.fsub(im, re), 0.5**0.5)
        elif rest:
            w = root(rest, 4 * n)
            re, im = self.multiply((re, im), (b.const(w.real, re.type), b.const(w.imag, re.type)))
        for _ in range(quarters):
            re, im = im, b.fneg(re)
        return re, im

    def multiply(self, x: Complex, y: Complex) -> Complex:
        b = self.b
        return (self.multiply_add(x[0], y[0], b.fneg(b.fmul(x[1], y[1]))),
                self.multiply_add(x[0], y[1], b.fmul(x[1], y[0])))  # fmt: skip

    def multiply_add(self, x: Node, y: Node | float, z: Node) -> Node:
        b = self.b
        return b.fma(x, y, z) if self.fused else b.fadd(b.fmul(x, y), z)
