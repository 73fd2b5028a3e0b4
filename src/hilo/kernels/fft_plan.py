"""How a Fourier transform of n elements is split, and its roots of unity. Imports ops.fft.

n = columns * rows: the transform is one of columns (n1 elements each), a multiplication by roots of unity, and one of
rows (n2 elements each). Each of these is done for `lanes` columns or rows at once, in passes of one radix each.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate, pairwise
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

    @property
    def group(self) -> int:
        """Rows that share a row of the coarse table of turns: a power of two, at least `lanes`."""
        return max(self.lanes, 1 << (self.n1.bit_length() // 2))

    @cached_property
    def rows(self) -> list[np.ndarray]:
        """The rows that turns have roots of unity for: all, or the first of each group, and from there as many as are
        reached."""
        if self.has_whole_table:
            return [np.arange(self.n1)]
        over = self.lanes - 1 if self.n1 % self.lanes else 0  # of a last block that overlaps the one before
        return [np.arange(0, self.n1, self.group), np.arange(self.group + over)]

    @cached_property
    def places(self) -> list[int]:
        """Where each table begins, and the last ends, in numbers: of turns, then of the passes of both transforms."""
        turns = [4 * self.blocks2 * len(rows) * self.lanes for rows in self.rows]
        return list(accumulate([*turns, _count(self.first), _count(self.second)], initial=0))

    def tables(self, sign: int, scale: float, part: np.dtype) -> np.ndarray:
        """All roots of unity, exp(sign 2 pi i k / n); the first turns are times `scale`.

        A root of a pass is three numbers (see `butterfly.Arithmetic`); those of turns lie in vectors, two for each row
        of a block of columns.
        """
        found = np.empty(self.places[-1], part)
        *turns, first, second = (found[a:b] for a, b in pairwise(self.places))
        columns = np.minimum(np.arange(self.blocks2) * self.lanes, self.n2 - self.lanes)[:, None, None]
        columns = columns + np.arange(self.lanes)
        for rows, flat in zip(self.rows, turns, strict=True):
            re, im = _roots(rows[:, None] * columns, self.n1 * self.n2, sign, part)
            if scale != 1 and rows is self.rows[0]:
                re, im = re * scale, im * scale
            table = flat.reshape(self.blocks2, len(rows), 2, self.lanes, 2)
            table[..., 0, :, 0] = table[..., 0, :, 1] = re
            table[..., 1, :, 1] = im
            np.negative(table[..., 1, :, 1], out=table[..., 1, :, 0])
        first[:] = pass_roots(self.first, sign, part)
        second[:] = pass_roots(self.second, sign, part)
        found.flags.writeable = False
        return found


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


def _count(passes: tuple[int, ...]) -> int:
    """Numbers in the roots of unity of passes."""
    n, count = prod(passes), 0
    for r in passes:
        count += n // r * (r - 1) * 3
        n //= r
    return count


def pass_roots(passes: tuple[int, ...], sign: int, part: np.dtype) -> np.ndarray:
    """Root [p, k - 1] of each pass: what output k of butterfly p is multiplied by; 1 in the last pass."""
    n, found = prod(passes), []
    for r in passes:
        re, im = _roots(np.outer(np.arange(n // r), np.arange(1, r)), n, sign, part)
        found.append(np.stack([re, -im, im], 2).reshape(-1))
        n //= r
    return np.concatenate(found)


def _roots(k: np.ndarray, n: int, sign: int, part: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """exp(sign 2 pi i k / n), for k from 0 to n, exact in the type `part`: real and imaginary parts."""
    if part.itemsize < 8:
        angle = k * (sign * 2 * np.pi / n)
        return np.cos(angle), np.sin(angle)
    quarters = (8 * k + n) // (2 * n)  # the nearest
    angle = (4 * k - quarters * n) * (np.pi / 2) / n
    w = (np.cos(angle) + 1j * np.sin(angle)) * np.array([1, 1j, -1, -1j])[quarters & 3]
    return w.real, sign * w.imag
