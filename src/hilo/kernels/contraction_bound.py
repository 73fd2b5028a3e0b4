"""Operands of contractions that are laid out once as micro-kernels read them: constants, when the program is planned,
and arguments that come again, by whoever calls the program. Imports numpy, ir, kernels."""

from __future__ import annotations

from typing import Final

import numpy as np

from hilo.ir.dtypes import DType
from hilo.kernels.contraction_algebra import Dim
from hilo.record import record

FEWEST: Final = 16 << 10  # bytes of an argument that is worth being kept in another layout
TIGHT: Final = 4  # a layout that is kept is at most 1 / TIGHT larger than the argument


@record(frozen=True)
class Panels:
    """B[batch, k, n] in blocks of `block_k` rows; in each block panels of columns, one after the other; in each panel
    its rows, one after the other.

    `batch`, `k`, `n`: how B lies in the operand (`Dim.b`). `widths`: of the panels; the last ones may reach beyond n,
    with zeros there. `dtype`: of the elements as they are kept. `parts`: 2 if these are pairs of bf16 along k, and k is
    counted in pairs, of which the last may be half empty.
    """

    batch: tuple[Dim, ...]
    k: tuple[Dim, ...]
    n: tuple[Dim, ...]
    block_k: int
    widths: tuple[int, ...]
    dtype: DType
    parts: int = 1

    @property
    def columns(self) -> int:
        """Of all panels together."""
        return sum(self.widths)

    @property
    def nbytes(self) -> int:
        """Of the operand in this layout."""
        bt, k = (int(np.prod([d.size for d in ds], dtype=np.int64)) for ds in (self.batch, self.k))
        return bt * k * self.columns * self.dtype.itemsize

    def numbers(self) -> tuple[int, ...]:
        """The layout as `hilo_forms_parse` of the runtime reads it."""
        out = [self.dtype.itemsize, self.block_k]
        for dims in (self.batch, self.k, self.n):
            out += [len(dims), *(x for d in dims for x in (d.size, d.b))]
        return (*out, *self.widths)

    @property
    def is_tight(self) -> bool:
        """Whether it takes little more memory than the operand."""
        return self.columns * TIGHT <= int(np.prod([d.size for d in self.n], dtype=np.int64)) * (TIGHT + 1)

    def arrange(self, operand: np.ndarray) -> np.ndarray:
        """The operand (a dense array) in this layout: [batch, k * columns]."""
        dims = (*self.batch, *self.k, *self.n)
        strides = [d.b * operand.itemsize for d in dims]
        dense = np.ascontiguousarray(operand).reshape(-1)  # as bytes: numpy strides no types that it does not know
        view = np.ndarray([d.size for d in dims], dense.dtype, dense.view(np.uint8), strides=strides)
        bt, k, n = (int(np.prod([d.size for d in ds], dtype=np.int64)) for ds in (self.batch, self.k, self.n))
        b = view.reshape(bt, k, n)
        if self.parts == 2:
            b = paired(b)
            k = b.shape[1]
        b = b.astype(self.dtype.np, copy=False)
        out = (np.empty if self.columns == n else np.zeros)((bt, k * self.columns), self.dtype.np)
        equal = min(self.widths.count(self.widths[0]), n // self.widths[0])  # panels without zeros, all of one width
        whole = equal * self.widths[0]
        for first in range(0, k, self.block_k):
            rows = b[:, first : first + self.block_k]
            count, at = rows.shape[1], first * self.columns
            if whole:
                panels = rows[:, :, :whole].reshape(bt, count, equal, self.widths[0])
                out[:, at : at + count * whole].reshape(bt, equal, count, -1)[...] = panels.transpose(0, 2, 1, 3)
            column = whole
            for width in self.widths[equal:]:
                panel = out[:, at + count * column : at + count * (column + width)].reshape(bt, count, width)
                live = min(width, n - column)
                panel[:, :, :live] = rows[:, :, column : column + live]
                column += width
        return out


def paired(b: np.ndarray) -> np.ndarray:
    """[batch, k, n] of two bytes each as pairs along k, held as f32; zeros fill up the last pair."""
    bt, k, n = b.shape
    halves = np.zeros((bt, -(-k // 2), n, 2), np.uint16)
    bits = np.ascontiguousarray(b).view(np.uint16)
    halves[:, :, :, 0] = bits[:, 0::2]
    halves[:, : k // 2, :, 1] = bits[:, 1::2]
    return halves.view(np.float32)[..., 0]
