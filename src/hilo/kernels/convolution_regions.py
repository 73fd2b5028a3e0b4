"""The regions of a convolution: blocks of outputs whose windows have the same taps inside of lhs. Imports kernels,
ops.window_axes.

A convolution with padding, dilation or holes is several dense ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final

from hilo.kernels.convolution_axes import Run, runs
from hilo.ops.window_axes import Axis
from hilo.record import record, replace

REGIONS: Final = 64  # more than these are no use
Taps = tuple[int, int, int, int]


@record(frozen=True)
class Problem:
    """A convolution: sizes of lhs [batch, *spatial, features], of the kernel's taps, outputs (features), groups."""

    batch: int
    spatial: tuple[int, ...]
    places: tuple[int, ...]  # of the result
    axes: tuple[Axis, ...]
    inputs: int  # input features of a group
    outputs: int
    groups: int = 1
    turned: tuple[bool, ...] = ()  # whether the kernel is read backwards along an axis
    pitch: int = 0  # of lhs, from one position to the next, if it is more than its features

    @property
    def rows(self) -> int:
        return self.batch * prod(self.places)

    @property
    def depth(self) -> int:
        """Products of one output, padding included."""
        return prod(a.size for a in self.axes) * self.inputs

    def rows_bytes(self, size: int) -> int:
        """Of lhs, for one row of the result."""
        return max(1, self.batch * prod(self.spatial) * self.inputs * self.groups * size // max(1, self.rows))


@record(frozen=True)
class Dim:
    """Outputs along one axis: how many, the steps between them in A (elements) and in rows of the result; `axis` is
    the result's (0: batch), where the first is, and the step along it."""

    size: int
    a: int
    m: int
    axis: int
    first: int = 0
    step: int = 1


@record(frozen=True)
class Region:
    """A block of outputs. `taps`: (lo, hi, step, step in A) of the outer taps and of the segments; `run`: from, to of
    the elements of a segment; `a` and `m`: of the first output, A at element 0 of the first taps' segment."""

    dims: tuple[Dim, ...]
    taps: tuple[Taps, Taps]
    run: tuple[int, int]
    a: int
    m: int
    bare: bool = False
    rows: int = 1  # of a tile, along the last dim
    pair: int = 1  # 2: a tile is two such groups, along the last dim but one


def find_regions(p: Problem) -> tuple[list[Region], int, int, int] | None:
    """The regions, and how k is counted: outer taps, segments, elements of a segment. None: too many, or too odd."""
    along = [runs(a, n, count) for a, n, count in zip(p.axes, p.spatial, p.places, strict=True)]
    along = [[r.turned(p.axes[d].size) for r in rs] if any(p.turned[d : d + 1]) else rs for d, rs in enumerate(along)]
    if prod(len(r) for r in along) > REGIONS:
        return None
    features = p.pitch or p.inputs * p.groups
    strides = [features] * len(p.axes)  # of A, in elements
    places = [1] * len(p.axes)  # of the result, in rows
    for d in range(len(p.axes) - 2, -1, -1):
        strides[d] = strides[d + 1] * p.spatial[d + 1]
        places[d] = places[d + 1] * p.places[d + 1]
    image = (strides[0] * p.spatial[0], places[0] * p.places[0]) if p.axes else (features, 1)
    # Taps along the last axis and features are one run where both A and B have them side by side.
    merged = bool(p.axes) and p.groups == 1 and all(r.tap_step == 1 and 0 <= r.reach <= 1 for r in along[-1])
    levels = [d for d in range(len(p.axes) - merged) if p.axes[d].size != 1]
    if len(levels) > 2:
        return None
    inner = p.inputs * (p.axes[-1].size if merged else 1)
    out = []
    for chosen in product(*along):
        dims = [Dim(p.batch, *image, 0)]
        dims += [Dim(r.count, r.move * s, r.step * m, d + 1, r.first, r.step)
                 for d, (r, s, m) in enumerate(zip(chosen, strides, places, strict=True))]  # fmt: skip
        a = sum(r.at * s for r, s in zip(chosen, strides, strict=True))
        m = sum(r.first * s for r, s in zip(chosen, places, strict=True))
        out.append(Region(tuple(dims), *_taps(chosen, levels, strides, merged, p.inputs, a), m,
                          any(r.lo == r.hi for r in chosen)))  # fmt: skip
    whole = len(out) == 1
    out = [s for r in out for s in _by_batches(replace(r, dims=_joined(r.dims, whole)))]
    if len(out) > REGIONS or any(len(r.dims) > 3 for r in out):
        return None
    sizes = [1] * (2 - len(levels)) + [p.axes[d].size for d in levels]
    return out, sizes[0], sizes[1], inner


def _taps(chosen: Sequence[Run], levels: Sequence[int], strides: Sequence[int], merged: bool, inputs: int,
          a: int) -> tuple[tuple[Taps, Taps], tuple[int, int], int]:  # fmt: skip
    """`taps`, `run` and `a` of a region."""
    one = (0, 1, 1, 0)
    if any(r.lo == r.hi for r in chosen):  # no window has any: one step of no segments
        return (one, one), (0, 1), 0
    taps = [one] * (2 - len(levels))
    taps += [(chosen[d].lo, chosen[d].hi, chosen[d].tap_step, chosen[d].reach * strides[d]) for d in levels]
    run = (chosen[-1].lo * inputs, chosen[-1].hi * inputs) if merged else (0, inputs)
    return (taps[0], taps[1]), run, a - run[0]


def _joined(dims: Sequence[Dim], whole: bool) -> tuple[Dim, ...]:
    """Without dims of one output; one dim if the only region's are walked as one by both A and the result."""
    kept = [d for d in dims if d.size != 1 or not (whole or d.axis == 0)]
    one = kept[-1:]
    for d in reversed(kept[:-1]):
        if whole and d.a == one[0].a * one[0].size and d.m == one[0].m * one[0].size:
            one = [Dim(one[0].size * d.size, one[0].a, one[0].m, -1)]
        else:
            return tuple(kept)
    return tuple(replace(d, axis=-1) if whole else d for d in one) or (Dim(1, 0, 0, -1),)


def _by_batches(r: Region) -> list[Region]:
    """`r` with at most three dims: a region of its own for each batch if there are more."""
    if len(r.dims) <= 3:
        return [r]
    batch, *dims = r.dims
    return [replace(r, dims=tuple(dims), a=r.a + i * batch.a, m=r.m + i * batch.m) for i in range(batch.size)]
