"""Where the windows of a convolution lie inside of lhs: runs of outputs along an axis that see the same taps. Imports
numpy, ops.window_axes.

Padding and holes then cost nothing: what a run's windows do not have is not multiplied.
"""

from __future__ import annotations

from math import gcd

import numpy as np

from hilo.ops.window_axes import Axis
from hilo.record import record, replace


@record(frozen=True)
class Run:
    """Outputs first, first + step ... (`count`), all of which have the taps lo, lo + tap_step ... below hi inside.

    `at`: the element of lhs at the first output's first tap; the next output's is `move` further, the next tap's
    `reach`. A run without taps has lo == hi.
    """

    first: int
    step: int
    count: int
    lo: int
    hi: int
    tap_step: int
    at: int
    move: int
    reach: int

    def turned(self, size: int) -> Run:
        """The same windows, with taps numbered from the last of `size` on."""
        if self.lo == self.hi:
            return self
        last = self.at + (self.hi - 1 - self.lo) // self.tap_step * self.reach
        return replace(self, lo=size - self.hi, hi=size - self.lo, at=last, reach=-self.reach)


def runs(axis: Axis, n: int, count: int) -> list[Run]:
    """The runs of the outputs 0..count along an axis of `n` elements; those of one phase of the holes go together."""
    period = axis.base // gcd(axis.stride, axis.base)
    return [r for phase in range(min(period, count)) for r in _phase(axis, n, count, phase, period)]


def _phase(axis: Axis, n: int, count: int, phase: int, period: int) -> list[Run]:
    """The runs of outputs phase, phase + period ..., whose windows meet holes at the same taps."""
    base = axis.base
    tap_step = base // gcd(axis.dilation, base)
    start = phase * axis.stride - axis.low
    first = next((k for k in range(min(tap_step, axis.size)) if (start + k * axis.dilation) % base == 0), None)
    outputs = np.arange(phase, count, period)
    move, reach = period * axis.stride // base, tap_step * axis.dilation // base
    if first is None or n == 0:
        return [Run(phase, period, len(outputs), 0, 0, 1, 0, 0, 0)]
    taps = -(-(axis.size - first) // tap_step)
    at = (start + first * axis.dilation) // base + np.arange(len(outputs)) * move  # of the first tap
    lo = np.clip(-(at // reach), 0, taps)
    hi = np.clip((n - 1 - at) // reach + 1, lo, taps)
    lo, hi = np.where(lo == hi, 0, lo), np.where(lo == hi, 0, hi)
    edges = np.flatnonzero((np.diff(lo) != 0) | (np.diff(hi) != 0)) + 1
    out = []
    for b, e in zip([0, *edges.tolist()], [*edges.tolist(), len(outputs)], strict=True):
        j, k = int(lo[b]), int(hi[b])
        if j == k:
            out.append(Run(int(outputs[b]), period, e - b, 0, 0, 1, 0, 0, 0))
            continue
        last = first + (k - 1) * tap_step + 1
        out.append(Run(int(outputs[b]), period, e - b, first + j * tap_step, last, tap_step,
                       int(at[b]) + j * reach, move, reach))  # fmt: skip
    return out
