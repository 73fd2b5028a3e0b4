"""Sorting. Imports ops, loop, kernels.

Long rows whose comparator means an order of keys are sorted by the digits of integers (sort_radix), all others are
merged (sort_merge). Both are stable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilo.ir.op import Op
from hilo.kernels import sort_radix
from hilo.kernels.lowered import Lowered
from hilo.kernels.sort_merge import MergeSort

if TYPE_CHECKING:
    from hilo.backend.target import Target


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `sort`."""
    if op.operands[0].tensor.size == 0:
        return Lowered([])
    by_digits = sort_radix.lower(op, target)
    if by_digits is not None:
        return by_digits
    writer = MergeSort(op)
    return Lowered([writer.phase()], scratch=writer.scratch, strategy="merge sort",
                   reason="rows are short, or what the comparator means is not known")  # fmt: skip
