"""How a Fourier transform of n elements is split, and its roots of unity. Imports ops.fft.

n = columns * rows: the transform is one of columns (n1 elements each), a multiplication by roots of unity, and one of
rows (n2 elements each). Each of these is done for `lanes` columns or rows at once, in passes of one radix each.
"""

from __future__ import annotations

from functools import cached_property
from math import prod
from typing import Final

import numpy as np

from hilo.ops.fft import factors
from hilo.record import record

WHOLE_TABLE: Final = 1 << 13  # elements up to which there is a root of unity for each


def radices(n: int, most: int) -> tuple[int, ...]:
    """The radices of the passes of a transform of n elements, at most `most` where primes allow."""
    odd = [p for p in factors(n) if p != 2]
    bins: list[int] = []
    for p in reversed(odd):
        fits = next((i for i, x in enumerate(bins) if x * p <= most), None)
        if fits is None:
            bins.append(p)
        else:
            bins[fits] *= p
    twos, width = len(factors(n)) - len(odd), most.bit_length() - 1
    while twos and (fits := next((i for i, x in enumerate(bins) if 2 * x <= most), None)) is not None and twos % width:
        bins[fits] *= 2
        twos -= 1
    count = -(-twos // width)
    bins += [1 << (twos // count + (i < twos % count)) for i in range(count)]
    return tuple(sorted(bins, reverse=True))


@record(frozen=True)
class Split:
    """`lanes`: a power of two, at most n1 and n2. `most`: the largest radix. `room`: how many lanes' elements find room
    in a cache."""

    n1: int
    n2: int
    lanes: int
    most: int
    room: int

    @cached_property
    def first(self) -> tuple[int, ...]:
        return radices(self.n1, self.most)

    @cached_property
    def second(self) -> tuple[int, ...]:
        return radices(self.n2, self.most)

    @property
    def blocks1(self) -> int:
        """Blocks of `lanes` rows; the last may overlap the one before."""
        return -(-self.n1 // self.lanes)

    @property
    def blocks2(self) -> int:
        """Blocks of `lanes` columns."""
        return -(-self.n2 // self.lanes)

    @property
    def work(self) -> float:
        """Operations on vectors, about."""
        columns = self.blocks2 * self.n1 * (_work(self.first) * self._strain(self.n1) + 10)
        return columns + self.blocks1 * self.n2 * (_work(self.second) * self._strain(self.n2) + 6)

    def _strain(self, m: int) -> float:
        return 4.0 if m * self.lanes > self.room else 1.0

    @property
    def has_whole_table(self) -> bool:
        return self.n1 * self.n2 <= WHOLE_TABLE

    def starts(self) -> np.ndarray:
        """The first row of each block of rows."""
        return np.minimum(np.arange(self.blocks1) * self.lanes, self.n1 - self.lanes)

    @cached_property
    def tables(self) -> list[np.ndarray]:
        """Roots of unity as real and imaginary parts: of the passes of both transforms, as pairs; then of the turns
        between them, as runs of each part: for each element, or for the first row of each block, and for the rows of a
        block."""
        columns = np.arange(self.n2)
        rows = [np.arange(self.n1)] if self.has_whole_table else [self.starts(), np.arange(self.lanes)]
        turns = [_roots(np.outer(r, columns), self.n1 * self.n2, axis=1) for r in rows]
        return [pass_roots(self.first), pass_roots(self.second), *turns]


def split(n: int, lanes: int, most: int, room: int) -> Split:
    """The best split for vectors of `lanes` elements."""
    found = []
    for n1 in _divisors(n)[1:-1]:
        n2, wide = n // n1, lanes
        while wide > min(n1, n2):
            wide //= 2
        found.append(Split(n1, n2, wide, most, room))
    return min(found, key=lambda s: s.work + 0.1 * max(s.n1, s.n2))


def _divisors(n: int) -> list[int]:
    found = [1]
    for p in factors(n):
        found = sorted({*found, *(p * d for d in found)})
    return found


def _work(passes: tuple[int, ...]) -> float:
    return sum(4 + 4 * sum(p if p > 2 else 1 for p in factors(r)) for r in passes)


def pass_roots(passes: tuple[int, ...]) -> np.ndarray:
    """Root [p, k - 1] of each pass: what output k of butterfly p is multiplied by; the last pass has none."""
    n, found = prod(passes), [np.zeros((0, 2))]
    for r in passes[:-1]:
        found.append(_roots(np.outer(np.arange(n // r), np.arange(1, r)), n, axis=2).reshape(-1, 2))
        n //= r
    return np.concatenate(found)


def _roots(k: np.ndarray, n: int, axis: int) -> np.ndarray:
    """exp(-2 pi i k / n), its real and imaginary parts along a new axis."""
    angle = (k % n) * (-2 * np.pi) * (1 / n)
    return np.stack([np.cos(angle), np.sin(angle)], axis)
