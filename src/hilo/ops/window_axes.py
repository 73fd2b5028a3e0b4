"""Windows that move along axes: how many there are, which elements they see. Imports errors and ir only.

Positions of padding and the holes that dilation makes hold no element: whoever walks a window leaves them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dims import Size, floordiv, larger
from hilo.ir.types import Dim, TensorType
from hilo.record import record


@record(frozen=True)
class Axis:
    """The windows along one axis: element `k` of window `o` is at `o * stride + k * dilation - low`, counted in places
    of the axis spread by `base` (between two elements are `base - 1` holes)."""

    size: int = 1
    stride: int = 1
    low: int = 0
    high: int = 0
    base: int = 1
    dilation: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether window `o` is just element `o`."""
        return self == Axis()

    def spread(self, n: Any) -> Any:
        """The places between (and with) the first and the last of `n` elements."""
        if isinstance(n, Size):
            return n if self.base == 1 else larger((n - 1) * self.base + 1, 0)
        return n if isinstance(n, Dim) else (n - 1) * self.base + 1 if n else 0

    @property
    def reach(self) -> int:
        """The places that a window spans."""
        return (self.size - 1) * self.dilation + 1 if self.size != 0 else 0

    def count(self, n: Any) -> Any:
        """How many windows there are along an axis of size `n`; an unknown size gives an unknown number."""
        if isinstance(n, Size) or not all(isinstance(x, int) for x in (self.size, self.low, self.high)):
            return n if self.is_plain else larger(
                floordiv(self.low + self.spread(n) + self.high - self.reach, self.stride) + 1, 0)  # fmt: skip
        if isinstance(n, Dim):
            return n if self.is_plain else Dim()
        padded = self.low + self.spread(n) + self.high
        return 0 if padded <= 0 or self.reach > padded else (padded - self.reach) // self.stride + 1

    def scans(self, n: Any) -> int:
        """1 if window `o` is the elements up to `o`, -1 if it is those from `o` on, 0 otherwise (or not known)."""
        if isinstance(n, Size) or isinstance(self.size, Size):
            if self.size is not n or (self.stride, self.base, self.dilation) != (1, 1, 1):
                return 0
            return 1 if (self.low, self.high) == (n - 1, 0) else -1 if (self.low, self.high) == (0, n - 1) else 0
        if n < 2 or self.size < n or (self.stride, self.base, self.dilation) != (1, 1, 1):
            return 0
        return {(self.size - 1, 0): 1, (0, self.size - 1): -1}.get((self.low, self.high), 0)

    def elements(self, k: int, windows: int, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Of the windows 0..windows: those whose element `k` there is, and which of the `n` elements it is."""
        o = np.arange(windows)
        at = o * self.stride + k * self.dilation - self.low
        there = (at % self.base == 0) & (at >= 0) & (at < self.spread(n))
        return o[there], at[there] // self.base


def axes(
    size: Sequence[int],
    strides: Sequence[int] | None,
    padding: Sequence[Sequence[int]] | None,
    base: Sequence[int] | None,
    dilation: Sequence[int] | None,
) -> tuple[Axis, ...]:
    """One `Axis` for each entry of `size`; what is None is left at its default."""
    one = (1,) * len(size)
    pads = padding if padding is not None else ((0, 0),) * len(size)
    columns: Any = zip(size, strides or one, pads, base or one, dilation or one, strict=True)
    return tuple(Axis(w, s, p[0], p[1], b, d) for w, s, p, b, d in columns)


def one_each(what: str, values: Sequence[Any] | None, n: int, rule: str, of: object) -> None:
    """Require `n` values (or none given)."""
    ok = values is None or len(values) == n
    require(ok, rule, "{what} {v} needs {n} entries for {of}", what=what, v=values, n=n, of=of)


def positive(what: str, values: Sequence[int] | None, rule: str) -> None:
    """Require positive values (or none given)."""
    require(all(v > 0 for v in values or ()), rule, "{what} {v} must be positive", what=what, v=values)


def pairs(padding: Sequence[Sequence[int]] | None, n: int, rule: str, of: object) -> None:
    """Require `n` pairs of padding (or none given)."""
    ok = padding is None or (isinstance(padding, tuple) and len(padding) == n and all(map(_is_pair, padding)))
    require(ok, rule, "padding {p} needs {n} pairs for {of}", p=padding, n=n, of=of)


def _is_pair(p: Any) -> bool:
    return isinstance(p, tuple) and len(p) == 2 and all(isinstance(v, int) for v in p)


def windows_of(x: TensorType, moved: Sequence[Axis]) -> tuple[Any, ...]:
    """The number of windows along each axis of `x`."""
    return tuple(a.count(n) for a, n in zip(moved, x.shape, strict=True))
