"""The innermost part of convolutions: a tile of C in registers, its rows of A found by strides in two groups, its depth
in segments. Imports loop, kernels.microkernel.

A is contiguous along k inside a segment. All strides are in bytes and arguments, so that one function serves all
convolutions. The sum over k runs in order and without a break.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Final

from hilo.kernels.microkernel import add_products, columns_of, elements, load_b, memory_size, multiples, over_k
from hilo.loop.builder import I64, PTR, Builder, Func, Node, VType
from hilo.loop.nodes import Deferred
from hilo.loop.product import PACKING_PARAMS, SEGMENTS_PARAMS, Packing, Product
from hilo.record import record


@record(frozen=True)
class Tile:
    """`rows` x `vectors` accumulators of `lanes` elements of type `scalar`; `combine`: see microkernel.COMBINE, and for
    `by_lanes` and `half` its Tile."""

    combine: str
    scalar: str
    rows: int
    vectors: int
    lanes: int
    by_lanes: bool = False
    half: bool = False

    @property
    def name(self) -> str:
        by = f"{'l' if self.by_lanes else ''}{'h' if self.half else ''}"
        return f"conv_tile_{self.combine}_{self.scalar}_{self.rows}x{self.vectors}x{self.lanes}{by}"

    @property
    def group(self) -> int:
        """Rows of the first of two groups; the second has the others."""
        return group_of(self.rows)


def group_of(rows: int) -> int:
    return (rows + 1) // 2


TILE_PARAMS: Final = [(n, PTR if n in ("a", "b", "c", "ahead", "touch") else I64) for n in SEGMENTS_PARAMS]


@cache
def tile(t: Tile) -> Func:
    """C tile = A B, or C tile + A B where `more` is not 0.

    Row i of the first group is at a + i * a_row, the second group is `a_group` further (C likewise). Element k of
    segment s of A is s * a_segment + k elements further; its row of B is at b + s * b_segment + k * b_k. The line at
    `ahead` + (number of the step) * ahead_k is brought into the second-level cache. So is
    a tile like C at `touch`, which is used or written to after this. Written where no assembly stands for it.
    """
    product = Product(t.combine, t.scalar, t.rows, t.vectors, t.lanes, segments=True, half=t.half)
    return Deferred(t.name, TILE_PARAMS, partial(_write_tile, t), inline="never", product=product)


def _write_tile(t: Tile, f: Func) -> None:
    b = Builder(f)
    a, bp, k, a_row, b_k, ahead, ahead_k, a_group, segments, a_segment, b_segment = f.params[:11]
    c, c_row, c_group, more, touch, touch_row, touch_group = f.params[11:]
    v = VType(t.scalar, t.lanes)
    kinds = columns_of(v, t.vectors, t.half)
    step = t.lanes * v.size
    for i in range(t.rows):
        row = b.gep(touch if i < t.group else b.gep(touch, touch_group), b.mul(touch_row, i % t.group))
        for line in range(0, t.vectors * step, 64):
            b.prefetch(b.gep(row, line), locality=2)
    offsets = multiples(b, a_row, t.group)
    groups = range(0, t.rows, t.group)

    def steps(count: int) -> Callable[..., list[Node]]:
        """The body of a loop over k that does `count` steps a turn."""

        def turn(_: Node, bk: Node, pf: Node, *state: Node) -> list[Node]:
            base, acc = state[: len(groups)], list(state[len(groups) :])
            element = elements(b, lambda i: b.gep(base[i // t.group], offsets[i % t.group]), t.rows, v, count)

            def column(j: int) -> Node:
                return b.load(b.gep(bk, j * step), kinds[j])

            for s in range(count):
                b.prefetch(pf, locality=2)
                add_products(b, (t.combine, t.rows, t.vectors, t.by_lanes), acc, partial(element, s), column)
                bk, pf = b.gep(bk, b_k), b.gep(pf, ahead_k)
            return [bk, pf, *(b.gep(p, count * v.size) for p in base), *acc]

        return turn

    def segment(_: Node, pa: Node, pb: Node, pf: Node, *sums: Node) -> list[Node]:
        bases = [pa if g == 0 else b.gep(pa, a_group) for g in groups]
        _, pf, *end = over_k(b, k, t.lanes if t.by_lanes else 1, steps, (pb, pf, *bases, *sums))
        return [b.gep(pa, a_segment), b.gep(pb, b_segment), pf, *end[len(groups) :]]

    zeros = [b.const(0, kind) for kind in kinds] * t.rows
    _, _, _, *acc = b.for_(0, segments, 1, segment, (a, bp, ahead, *zeros))

    def store(add: bool) -> None:
        for i in range(t.rows):
            row = b.gep(c if i < t.group else b.gep(c, c_group), b.mul(c_row, i % t.group))
            for j in range(t.vectors):
                at, x = b.gep(row, j * step), acc[i * t.vectors + j]
                b.store(at, b.fadd(b.load(at, kinds[j]), x) if add else x)

    # Blocks of k are summed from zero and then added: errors grow with the number of blocks, not of terms.
    b.if_(b.cmp("ne", more, 0), lambda: store(True), lambda: store(False))
    b.ret()


@record(frozen=True)
class Pack:
    """Copying a panel of B: `vectors` x `lanes` columns, of type `narrow` in memory if they are to be widened."""

    scalar: str
    narrow: str
    vectors: int
    lanes: int
    masks: bool

    @property
    def name(self) -> str:
        return f"conv_pack_{self.scalar}{self.narrow}_{self.vectors}x{self.lanes}{'m' if self.masks else ''}"


PACK_PARAMS: Final = [(n, PTR if n in ("to", "source") else I64) for n in PACKING_PARAMS]


@cache
def pack(t: Pack) -> Func:
    """Copy `segments` x `k` rows of some panels, all panels of a row before the next row; columns of a panel from
    `live` on become zeros."""
    product: dict[str, Any] = {"product": Packing(t.scalar, t.narrow, t.vectors, t.lanes)} if t.masks else {}
    return Deferred(t.name, PACK_PARAMS, partial(_write_pack, t), inline="never", **product)


def _write_pack(t: Pack, f: Func) -> None:
    b = Builder(f)
    to, source, b_k, b_segment, segments, k, live, panels, to_panel, source_panel = f.params
    v = VType(t.scalar, t.lanes)
    step, width = t.lanes * v.size, t.vectors * t.lanes * v.size
    size = memory_size(t.scalar, t.narrow)

    def rows(copy: Callable[[Node, Node], None]) -> None:
        def segment(s: Node, dst: Node) -> list[Node]:
            def row(_: Node, src: Node, dst: Node) -> list[Node]:
                b.for_(0, panels, 1, lambda p: copy(b.gep(src, b.mul(p, source_panel)), b.gep(dst, b.mul(p, to_panel))))
                return [b.gep(src, b_k), b.gep(dst, width)]

            return [b.for_(0, k, 1, row, (b.gep(source, b.mul(s, b_segment)), dst))[1]]

        b.for_(0, segments, 1, segment, (to,))

    def unmasked(src: Node, dst: Node) -> None:
        for j in range(t.vectors):
            b.store(b.gep(dst, j * step), load_b(b, src, b.i64(j * t.lanes * size), v, t.narrow, None))

    def masked(src: Node, dst: Node) -> None:
        for j in range(t.vectors):
            mask = b.cmp("slt", b.iota(I64.with_lanes(t.lanes)), b.sub(live, j * t.lanes))
            b.store(b.gep(dst, j * step), load_b(b, src, b.i64(j * t.lanes * size), v, t.narrow, mask))

    def one_by_one(src: Node, dst: Node) -> None:
        for j in range(t.vectors):
            b.store(b.gep(dst, j * step), b.const(0, v))
        one = v.with_lanes(1)
        b.for_(0, live, 1, lambda j: b.store(
            b.gep(dst, b.mul(j, v.size)), load_b(b, src, b.mul(j, size), one, t.narrow, None)) and None)  # fmt: skip

    if t.masks:
        rows(masked)
    else:
        b.if_(b.cmp("eq", live, t.vectors * t.lanes), lambda: rows(unmasked), lambda: rows(one_by_one))
    b.ret()
