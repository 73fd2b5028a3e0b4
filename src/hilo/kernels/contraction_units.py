"""Units of contractions: blocks of rows and of columns, of about one size, that threads share evenly.

How many threads there are is not known here, nor may it matter: results, and so units, depend on shapes alone. What two
threads lose is what divisions are compared by. Imports nothing of hilo.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

UNIT_NS: Final = 40_000  # of work that is worth a parallel unit
SHARED_NS: Final = 15_000  # of work that two threads share
PIECE_NS: Final = 2_500  # of work that a unit has at least
FEW_UNITS: Final = 4
MAX_UNITS: Final = 16
MOST_UNITS: Final = 64  # that may be asked for
CALL_NS: Final = 120.0  # what a unit costs beside its work
SHORT: Final = 0.1  # of the time, lost for want of units, by more threads than two or where these are not equally quick
UNEVEN: Final = 0.05  # how much it counts what more threads lose by a number of units that they cannot share evenly
GOOD: Final = 0.01  # of the time, lost: a division that need not be better
Pair = tuple[int, int]


def wanted_units(nanoseconds: float, most: int) -> int:
    """How many parallel units the work is worth: an even number, which two threads share best."""
    fewest = min(FEW_UNITS, int(nanoseconds / PIECE_NS)) if nanoseconds >= SHARED_NS else 1
    count = min(most, max(fewest, int(nanoseconds / UNIT_NS) + 1))
    return min(most, count + count % 2) if count > 1 else count


def balanced(total: int, most: int) -> int:
    """A block size of at most `most` that cuts `total` into blocks of about one size."""
    count = max(1, -(-total // most))
    return -(-total // count)


def idle(size: Pair, tile: Pair, count: Pair, times: int) -> float:
    """What two threads lose, as a part of the time that they would need without, if units are blocks of a matrix of
    `size`, `count` in a column and in a row, for `times` such matrices, row by row.

    Each thread does one half of the units, then those of the other that are left: about so many that the two end by
    less than a unit apart.
    """
    (m, n), (rows, columns), (down, across) = size, tile, count
    tall, wide = -(-m // rows), -(-n // columns)
    matrix, unit = divmod((down * across * times + 1) // 2, down * across)
    row, column = divmod(unit, across)
    top, left = tall * row // down * rows, min(wide * column // across * columns, n)
    height = min(tall * (row + 1) // down * rows, m) - top
    apart = abs(2 * ((matrix * m + top) * n + height * left) - m * n * times)
    moved = 2 * min(-(-tall // down) * rows, m) * min(-(-wide // across) * columns, n)  # by one unit that changes hands
    apart %= moved
    return min(apart, moved - apart) / (m * n * times)


@lru_cache(maxsize=4096)
def divide(size: Pair, tile: Pair, times: int, units: int, fewest: int, cost: float,
           again: tuple[float, float]) -> tuple[Pair, float]:  # fmt: skip
    """Blocks (height, width), of whole tiles, that cut `times` matrices of `size` into about `units` units, and which
    part of the time is lost with them.

    `fewest`: blocks of a column, at least; `cost`: nanoseconds of it all; `again`: what one more block of a column adds
    to that, and one more of a row (what all of them read).
    """
    tall, wide = (-(-n // t) for n, t in zip(size, tile, strict=True))
    most = min(max(2 * units, MAX_UNITS), int(cost / PIECE_NS)) // times if units > 1 else 1
    good = GOOD + units * CALL_NS / cost
    best, least = size, float("inf")
    for down in counts(tall, fewest, max(most, fewest)):
        for across in counts(wide, min(-(-units // (2 * down * times)), wide), max(most // down, 1)):
            count = down * across * times
            lost = ((down - fewest) * again[0] + (across - 1) * again[1] + count * CALL_NS) / cost
            if lost < least and units > 1:
                lost += idle(size, tile, (down, across), times) + max(0.0, SHORT * (1.0 - count / units))
                lost += UNEVEN * (-count % (8 if units >= 8 else 4)) / count
            if lost < least:
                best, least = (-(-tall // down) * tile[0], -(-wide // across) * tile[1]), lost
            if least < good:
                return best, least
    return best, least


def counts(tiles: int, fewest: int, most: int) -> Iterator[int]:
    """Numbers of blocks of about one size that `tiles` can be cut into, the first of at least `fewest`."""
    last = 0
    for count in range(min(fewest, tiles), tiles + 1):
        count = -(-tiles // -(-tiles // count))
        if last and count > most:
            break
        if count != last:
            yield count
        last = count
