"""How a Fourier transform of n elements is split, and its roots of unity. Imports ops.fft.

n = columns * rows: the transform is one of columns (n1 elements each), a multiplication by roots of unity, and one of
rows (n2 elements each). Each of these is done for `lanes` columns or rows at once, in passes of one radix each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Final

import numpy as np

from hilo.loop.butterfly import ROOT
from hilo.ops.fft import factors
from hilo.record import record

WHOLE_TABLE: Final = 1 << 13  # elements up to which there is a root of unity for each
BALANCE: Final = 16  # how many times as many columns as rows, or rows as columns, there may be if there is a choice
Roots = tuple[np.ndarray, np.ndarray]  # real and imaginary parts


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
    in a cache. `width`: vectors of a block of columns or rows; there are at least as many."""

    n1: int
    n2: int
    lanes: int
    most: int
    room: int
    width: int = 1

    @cached_property
    def first(self) -> tuple[int, ...]:
        return radices(self.n1, self.most)

    @cached_property
    def second(self) -> tuple[int, ...]:
        return radices(self.n2, self.most)

    def widened(self) -> Split:
        """The same with blocks of two vectors, if there are as many."""
        wide = 2 if 2 * self.lanes <= min(self.n1, self.n2) else 1
        return Split(self.n1, self.n2, self.lanes, self.most, self.room, wide)

    @property
    def block(self) -> int:
        """Columns, or rows, of a block."""
        return self.width * self.lanes

    @property
    def blocks1(self) -> int:
        """Blocks of rows; the last may overlap the one before."""
        return -(-self.n1 // self.block)

    @property
    def blocks2(self) -> int:
        """Blocks of columns."""
        return -(-self.n2 // self.block)

    @property
    def work(self) -> float:
        """Operations on vectors, about."""
        columns = self.blocks2 * self.n1 * (_work(self.first) * self._strain(self.n1) + 10)
        rows = self.blocks1 * self.n2 * (_work(self.second) * self._strain(self.n2) + 6)
        return (columns + rows) * self.width

    def _strain(self, m: int) -> float:
        return 4.0 if m * self.lanes > self.room else 1.0

    @property
    def has_whole_table(self) -> bool:
        return self.n1 * self.n2 <= WHOLE_TABLE

    @property
    def is_even(self) -> bool:
        """Whether no block overlaps another."""
        return self.n1 % self.block == 0 and self.n2 % self.block == 0

    @property
    def group(self) -> int:
        """Rows whose roots of unity are products with those of the first of them: a power of two, at least `lanes`."""
        return max(self.lanes, 1 << (self.n1.bit_length() // 2))

    @cached_property
    def turns(self) -> list[tuple[int, ...]]:
        """The shapes of the tables of turns, which multiply row r and column c by root r c: for each vector of columns
        the vectors of all rows; or of the first row of each group, and the rows of a group. Or, where no block overlaps
        another (what overlaps must be the same from both), those are for the first column of the vector only, and a
        third one has the vectors of all rows for the columns from the first.
        """
        vectors, rows, vector = self.blocks2 * self.width, (-(-self.n1 // self.group), self.group), (2, self.lanes, 2)
        if self.has_whole_table:
            return [(vectors, self.n1, *vector)]
        if not self.is_even:
            return [(vectors, m, *vector) for m in rows]
        return [*((vectors, m, ROOT) for m in rows), (self.n1, *vector)]

    @cached_property
    def places(self) -> list[int]:
        """Where each table begins, and the last ends, in numbers: of turns, then of the passes of both transforms."""
        counts = [*map(prod, self.turns), _count(self.first), _count(self.second)]
        return list(accumulate(counts, initial=0))

    def tables(self, sign: int, scale: float, part: np.dtype) -> np.ndarray:
        """All roots of unity, exp(sign 2 pi i k / n); those of the first table are times `scale`. For how they are
        laid out see `butterfly.ROOT` and `fft_numbers.Numbers`."""
        n = self.n1 * self.n2
        found = np.empty(self.places[-1], part)
        *turns, first, second = (found[a:b] for a, b in pairwise(self.places))
        turns = [table.reshape(shape) for table, shape in zip(turns, self.turns, strict=True)]
        blocks = np.minimum(np.arange(self.blocks2) * self.block, self.n2 - self.block)[:, None]
        columns = (blocks + np.arange(self.width) * self.lanes).reshape(-1, 1)
        lanes, rows = np.arange(self.lanes), np.arange(self.n1)[:, None]
        told = len(turns) == 3
        if told:
            _spread(turns.pop(), _roots(rows * lanes, n, sign, part))
        for table, step in zip(turns, (1,) if self.has_whole_table else (self.group, 1), strict=True):
            some = rows[: table.shape[1]] * step
            if told:
                _tell(table, _roots(columns * some[:, 0], n, sign, part), scale)
            else:
                _spread(table, _roots(some * (columns[:, None] + lanes), n, sign, part), scale)
            scale = 1
        for table, radices in ((first, self.first), (second, self.second)):
            at = 0
            for r, w in _passes(radices, sign, part):
                _tell(table[at : at + w[0].size * ROOT].reshape(-1, r - 1, ROOT), w)
                at += w[0].size * ROOT
        found.flags.writeable = False
        return found


def split(n: int, lanes: int, most: int, room: int) -> Split:
    """The best split for vectors of `lanes` elements."""
    sizes = _divisors(n)[1:-1]
    found = []
    for n1 in [m for m in sizes if n <= BALANCE * m * m and m * m <= BALANCE * n] or sizes:
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
        n //= r
        count += n * (r - 1) * ROOT
    return count


def _passes(passes: tuple[int, ...], sign: int, part: np.dtype) -> Iterator[tuple[int, Roots]]:
    """Radix and roots [p, k - 1] of each pass: what output k of butterfly p is multiplied by; 1 in the last pass."""
    n = prod(passes)
    for r in passes:
        yield r, _roots(np.outer(np.arange(n // r), np.arange(1, r)), n, sign, part)
        n //= r


def _tell(table: np.ndarray, w: Roots, scale: float = 1) -> None:
    """Write roots as `ROOT` numbers each."""
    re, im = w if scale == 1 else (w[0] * scale, w[1] * scale)
    table[..., 0], table[..., 1], table[..., 2] = re, -im, im


def _spread(table: np.ndarray, w: Roots, scale: float = 1) -> None:
    """Write vectors of roots as two vectors each, with two numbers for each root."""
    re, im = w if scale == 1 else (w[0] * scale, w[1] * scale)
    table[..., 0, :, 0] = table[..., 0, :, 1] = re
    table[..., 1, :, 0], table[..., 1, :, 1] = -im, im


def _roots(k: np.ndarray, n: int, sign: int, part: np.dtype) -> Roots:
    """exp(sign 2 pi i k / n), for k from 0 to n, exact in the type `part`: real and imaginary parts."""
    if part.itemsize < 8:
        angle = k * (sign * 2 * np.pi / n)
        return np.cos(angle), np.sin(angle)
    quarters = (8 * k + n) // (2 * n)  # the nearest
    angle = (4 * k - quarters * n) * (np.pi / 2) / n
    w = (np.cos(angle) + 1j * np.sin(angle)) * np.array([1, 1j, -1, -1j])[quarters & 3]
    return w.real, sign * w.imag
