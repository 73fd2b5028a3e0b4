"""Vector loops: a main loop of several vectors a turn, and its tail, masked or one by one. Imports loop."""

from __future__ import annotations

from collections.abc import Callable

from hilo.ir.dims import Number, Size, divide, upper
from hilo.loop import index
from hilo.loop.builder import Builder, Node
from hilo.loop.index import Index
from hilo.record import record


@record
class Vector:
    """One vector (or one element, if `lanes` is 1) of a loop: its index, and the mask of the lanes that count."""

    at: Index
    lanes: int
    mask: Node | None = None


Turn = Callable[[list[Vector], tuple[Node, ...]], tuple[Node, ...]]


def vector_loop(
    b: Builder,
    lo: Node | Number,
    hi: Node | Number,
    extent: Number,
    body: Turn,
    *,
    lanes: int,
    unroll: int = 1,
    masks: bool = True,
    init: tuple[Node, ...] = (),
    tail: Turn | None = None,
    short: bool = False,
) -> tuple[Node, ...]:
    """Run `carried = body(vectors, carried)` for the vectors of lo..hi, which lies in 0..extent.

    `lo` is a multiple of lanes * unroll (powers of two), and so is `hi` unless it is `extent`. `body` gets `unroll`
    vectors a turn; then `tail` (by default `body`) gets single vectors, the last one masked, or (without `masks`)
    single elements. `short`: where there are masks and the last vector needs one, all are single ones with a mask, for
    code whose length matters more than its time.
    """
    tail = tail or body
    start, end = (b.i64(x) if isinstance(x, (int, Size)) else x for x in (lo, hi))
    below = extent if isinstance(extent, Size) else None
    step = lanes * unroll

    def turns(width: int, stop: Node, f: Turn, carried: tuple[Node, ...]) -> tuple[Node, ...]:
        def turn(iv: Node, *values: Node) -> tuple[Node, ...]:
            last = upper(extent) - width + 1
            reach = None if below is None else below - width + lanes
            base = index.vector_var(iv, lanes, 0, max(1, last), width, below=reach)
            return f([Vector(base + u, lanes) for u in range(0, width, lanes)], values)

        return b.for_(start, stop, width, turn, carried)

    def last(iv: Node, *values: Node) -> tuple[Node, ...]:
        if not masks:
            return tail([Vector(index.loop_var(iv, 0, extent), 1)], values)
        at = index.vector_var(iv, lanes, 0, upper(extent), lanes, top=upper(extent), below=below)
        mask = b.cmp("slt", b.iota(end.type.with_lanes(lanes)), b.sub(end, iv))
        return tail([Vector(at, lanes, mask)], values)

    carried = init
    alike = short and masks and divide(extent, lanes) is None
    for width, f in dict.fromkeys([(step, body), (lanes, tail)]) if not alike else ():
        none_left = width < step and isinstance(extent, int) and extent % step < width
        if upper(extent) >= width and not none_left:
            stop = b.and_(end, -width)
            carried = turns(width, stop, f, carried)
            start = stop
        if divide(extent, width) is not None:
            return carried
    return b.for_(start, end, lanes if masks else 1, last, carried)
