"""Where buffers lie: offsets in the arena, and in the memory of results that are not written yet. Imports plan.program.

The memory of a result is free until its first write (`Room`). Buffers are placed largest first, each as low as it fits
among those alive with it: close to the least that any placement takes. This is quadratic in the worst case, so that of
a long program only the largest are placed so, the others by best fit in the order of time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable

from hilo.plan.program import ALIGN, Buffer, Room
from hilo.record import field, record

MOST = 2048  # buffers placed largest first
TRIES = 512  # buffers up to which several orders are tried

# The size of the arena; of each buffer, the result that it lies in, or None, and its offset.
Placement = tuple[int, dict[Buffer, tuple[Buffer | None, int]]]
Span = tuple[int, int, int, int]  # offset, its end, first step, last step


@record
class _Space:
    """Placed buffers by offset."""

    spans: list[Span] = field(default_factory=list)
    top: int = 0  # where the last one really ends

    def find(self, size: int, first: int, last: int, limit: int | None = None) -> int | None:
        """The lowest offset that is free from step `first` to `last`."""
        at = 0
        for offset, end, begin, finish in self.spans:
            if begin <= last and first <= finish:
                if offset - at >= size:
                    break
                at = max(at, end)
        return at if limit is None or at + size <= limit else None

    def add(self, offset: int, size: int, exact: int, first: int, last: int) -> None:
        insort(self.spans, (offset, offset + size, first, last))
        self.top = max(self.top, offset + exact)


def place(
    buffers: Iterable[Buffer], size: Callable[[Buffer], int], rooms: Iterable[Room] = (),
    exact: Callable[[Buffer], int] | None = None,
) -> int:  # fmt: skip
    """Give each buffer that has memory of its own its offset, and the result that it lies in, if it does; gives the
    size of the arena. `exact(b)` <= `size(b)` is what a buffer really needs: the difference is alignment."""
    exact = exact or size
    own = sorted((b for b in buffers if b.shares is None and b.first >= 0), key=lambda b: -size(b))
    large, small = own[:MOST], own[MOST:]
    rooms = sorted(rooms, key=lambda r: (r.size, r.end))
    orders = [large]
    if len(large) <= TRIES:
        orders.append(sorted(large, key=lambda b: -size(b) * (b.last - b.first + 1)))
        orders.append(sorted(large, key=lambda b: (b.first, -size(b))))
        orders.append(sorted(large, key=lambda b: (-b.last, -size(b))))
    least = least_size(large, exact, rooms)
    best = 0, {}
    for k, order in enumerate(orders):
        found = _largest_first(order, size, exact, rooms)
        if k == 0 or found[0] < best[0]:
            best = found
        if best[0] <= least:
            break
    if small:
        behind = _by_time(small, size, -(-best[0] // ALIGN) * ALIGN)
        best = min((behind[0], {**best[1], **behind[1]}), _by_time(own, size, 0), key=lambda found: found[0])
    for b, (room, offset) in best[1].items():
        b.inside, b.offset = room, offset
    return best[0]


def least_size(buffers: Iterable[Buffer], size: Callable[[Buffer], int], rooms: Iterable[Room] = ()) -> int:
    """The least that any placement takes: what is alive at the worst moment, but for what fits into results."""
    change: dict[int, int] = {}
    for b in buffers:
        if b.shares is None and b.first >= 0:
            change[b.first] = change.get(b.first, 0) + size(b)
            change[b.last + 1] = change.get(b.last + 1, 0) - size(b)
    for r in rooms:
        if r.end <= r.start + 1:
            continue
        change[r.start + 1] = change.get(r.start + 1, 0) - r.size
        change[r.end] = change.get(r.end, 0) + r.size
    alive = most = 0
    for t in sorted(change):
        alive += change[t]
        most = max(most, alive)
    return most


def _largest_first(
    order: list[Buffer], size: Callable[[Buffer], int], exact: Callable[[Buffer], int], rooms: list[Room]
) -> Placement:
    """Place buffers in this order: into the smallest result that has room, or into the arena, as low as they fit."""
    arena, spaces = _Space(), [_Space() for _ in rooms]
    places: dict[Buffer, tuple[Buffer | None, int]] = {}
    for b in order:
        n, least = size(b), exact(b)
        room, offset = None, None
        for k in range(bisect_left(rooms, least, key=lambda r: r.size), len(rooms)):
            if rooms[k].start < b.first and b.last < rooms[k].end:
                offset = spaces[k].find(n, b.first, b.last, rooms[k].size + n - least)
                if offset is not None:
                    room = rooms[k].result
                    spaces[k].add(offset, n, least, b.first, b.last)
                    break
        if offset is None:
            offset = arena.find(n, b.first, b.last)
            assert offset is not None
            arena.add(offset, n, least, b.first, b.last)
        places[b] = room, offset
    return arena.top, places


def _by_time(buffers: list[Buffer], size: Callable[[Buffer], int], base: int) -> Placement:
    """Place buffers behind `base` in the arena by best fit, in the order in which they are made."""
    places: dict[Buffer, tuple[Buffer | None, int]] = {}
    starts: dict[int, list[Buffer]] = {}
    ends: dict[int, list[Buffer]] = {}
    for b in buffers:
        starts.setdefault(b.first, []).append(b)
        ends.setdefault(b.last, []).append(b)
    arena = _Free(base)
    for t in sorted({*starts, *ends}):
        for b in starts.get(t, ()):  # the largest first, as they are sorted
            places[b] = None, arena.take(size(b))
        for b in ends.get(t, ()):
            arena.give(places[b][1], size(b))
    return arena.size, places


class _Free:
    """Free ranges of the arena by offset, and their sizes for best fit."""

    def __init__(self, base: int) -> None:
        self.size = base
        self.free: list[tuple[int, int]] = []  # (offset, size), by offset
        self.by_size: list[tuple[int, int]] = []  # (size, offset)

    def take(self, size: int) -> int:
        k = bisect_left(self.by_size, (size, -1))
        if k < len(self.by_size):
            have, offset = self.by_size.pop(k)
            self.free.remove((offset, have)) if len(self.free) < 64 else self._drop(offset, have)
            if have > size:
                self._add(offset + size, have - size)
            return offset
        if self.free and sum(self.free[-1]) == self.size:  # grow the last free range
            offset, have = self.free.pop()
            self.by_size.remove((have, offset))
            self.size = offset + size
            return offset
        offset, self.size = self.size, self.size + size
        return offset

    def _drop(self, offset: int, size: int) -> None:
        del self.free[bisect_left(self.free, (offset, size))]

    def _add(self, offset: int, size: int) -> None:
        insort(self.free, (offset, size))
        insort(self.by_size, (size, offset))

    def give(self, offset: int, size: int) -> None:
        k = bisect_left(self.free, (offset, 0))
        if k < len(self.free) and self.free[k][0] == offset + size:
            _, after = self.free.pop(k)
            del self.by_size[bisect_left(self.by_size, (after, offset + size))]
            size += after
        if k > 0 and sum(self.free[k - 1]) == offset:
            start, before = self.free.pop(k - 1)
            del self.by_size[bisect_left(self.by_size, (before, start))]
            offset, size = start, size + before
        self._add(offset, size)
