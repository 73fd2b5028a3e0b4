"""What a contraction's kernel does with an element before it is stored. Imports ir, loop."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hilo.ir.types import TensorType
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.index import Index
from hilo.record import record

Source = Callable[[Sequence[Index]], Elem]


@record(frozen=True)
class Epilogue:
    """What is done with each element of a contraction before it is stored: bias, activation, residual ...

    `out`: the type of what is stored, of the shape of the contraction's result. `operands`: types of further buffers,
    which stand after the contraction's own two in `bufs`. `build(b, at, acc, sources) -> Elem`: `acc` is the element
    (or vector) of the contraction's result at the indices `at` (of `out`), rounded to its type; `sources` read the
    further operands at given indices (for the same lanes); what it gives has `out`'s element type. `out` may have
    another shape of the same size, then the contraction's result is reshaped to it. With `numbers`, `operands` are all
    buffers of the kernel, and those with these numbers the contraction's own. `own`: operands of `out`'s size that are
    read only at the position that is computed.
    """

    out: TensorType
    operands: tuple[TensorType, ...]
    build: Callable[[Builder, Sequence[Index], Elem, Sequence[Source]], Elem]
    numbers: tuple[int, int] | None = None
    own: tuple[int, ...] = ()

    @property
    def first(self) -> int:
        """The number of the buffer that `operands` begins with."""
        return 2 if self.numbers is None else 0
