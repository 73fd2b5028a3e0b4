"""`Product`, `Packing`, `Turning`, `Depthwise`: what the innermost functions of products of matrices and of
convolutions do, in words that a backend may know. Imports record.

A `Func` with such an attribute `product` has a body like any other, which says what it does. A backend that has code
for such a function at hand may take that instead: it depends on these few numbers alone.
"""

from __future__ import annotations

from typing import Final

from hilo.record import record

GROUP: Final = 7  # rows of A reached from one address, by 0, 1, 2, 3, 4, 5 and 6 times the stride
#: Parameters, in order: those of functions without segments, and those of functions with.
PARAMS: Final = ("a", "a_row", "a_k", "b", "b_k", "c", "c_row", "init", "init_row", "k", "n", "ahead", "ahead_k")
SEGMENTS_PARAMS: Final = (
    "a", "b", "k", "a_row", "b_k", "ahead", "ahead_k", "a_group", "segments", "a_segment", "b_segment",
    "c", "c_row", "c_group", "more", "touch", "touch_row", "touch_group",
)  # fmt: skip
PACKING_PARAMS: Final = ("to", "source", "b_k", "b_segment", "segments", "k", "live", "panels", "to_panel",
                         "source_panel")  # fmt: skip
DEPTHWISE_PARAMS: Final = ("x", "x_row", "x_column", "w", "w_row", "w_column", "rows", "ahead", "fresh", "to",
                           "to_column", "inner", "width", "live")  # fmt: skip
TURNING_PARAMS: Final = ("panel", "width", "source", "b_col", "k", "live", "vectors")


@record(frozen=True)
class Turning:
    """A panel of B that has k contiguous is copied, square by square of `lanes` elements of type `scalar` (`narrow`:
    widened from that type), see `kernels.contraction_panels.turn`; masks leave out what is not there."""

    scalar: str
    narrow: str
    lanes: int


@record(frozen=True)
class Packing:
    """Panels of B, `vectors` vectors of `lanes` elements of type `scalar`, are copied together (`narrow`: widened from
    that type), see `kernels.convolution_tile.pack`; masks leave out what is not there."""

    scalar: str
    narrow: str
    vectors: int
    lanes: int


@record(frozen=True)
class Product:
    """A tile of C in registers, `rows` x `vectors` vectors of `lanes` elements of type `scalar`: sums of products of an
    element of A and a vector of B, by `combine` (see kernels.microkernel.COMBINE).

    What these functions do: `kernels.microkernel.tile`; with `segments` (rows in two groups, k in segments)
    `kernels.convolution_tile.tile`. The rest is for the first alone: `masked`, the last vector is only partly there;
    `lines` of the cache are fetched ahead at each step of k; `narrow`, the type of B's elements where these are widened
    as they are read; `touches`, C is fetched ahead. `half`: the last vector has half the lanes, and costs half.
    `streams`: whole vectors of C, which are aligned, are stored past the caches.
    """

    combine: str
    scalar: str
    rows: int
    vectors: int
    lanes: int
    segments: bool = False
    masked: bool = False
    lines: int = 1
    narrow: str = ""
    touches: bool = False
    half: bool = False
    streams: bool = False

    @property
    def group(self) -> int:
        """Rows that one address of A serves; with segments, rows of the first group."""
        return (self.rows + 1) // 2 if self.segments else GROUP


@record(frozen=True)
class Depthwise:
    """A row of sums of a depthwise convolution, vectors of `lanes` elements of type `scalar`, `masked` if some count
    only, see `kernels.convolution_depthwise.sums_of_row`.

    Windows are of `taps` elements, `stride` and `dilation` apart, in tiles of `positions`. `low`: columns before lhs
    that the first window has. `end`: how many columns from the start of the last tile's first window on lie in lhs.
    `tiles`: 1, one tile only; 2, one at the start (if `low`), and some; 3, one at the end, too.
    """

    scalar: str
    lanes: int
    masked: bool
    taps: int
    stride: int
    dilation: int
    positions: int
    low: int
    end: int
    tiles: int

    @property
    def reach(self) -> int:
        """Columns that a tile sees."""
        return (self.positions - 1) * self.stride + (self.taps - 1) * self.dilation + 1

    def users(self, lo: int, hi: int) -> dict[int, list[tuple[int, int]]]:
        """Of each column from `lo` to `hi` of a tile, in order: the positions that see it, and as which tap."""
        found: dict[int, list[tuple[int, int]]] = {}
        for p in range(self.positions):
            for k in range(self.taps):
                column = p * self.stride + k * self.dilation
                if lo <= column < hi:
                    found.setdefault(column, []).append((p, k))
        return dict(sorted(found.items()))
