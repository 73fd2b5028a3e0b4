"""What the index-moving ops' `element` share: choices between elements, run-time starts. Imports ir.dtypes, loop.

An element may be read at an index out of range: such lanes read nothing and hold some value, which must not be used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hilo.ir.dims import may_be_less
from hilo.ir.dtypes import DType, i1, i64
from hilo.ir.types import TensorType
from hilo.loop.builder import I1, Builder, Node
from hilo.loop.element import Elem
from hilo.loop.index import ZERO, Index, from_node, in_range, node

if TYPE_CHECKING:
    from typing import Protocol
else:
    Protocol = object  # a class of methods alone, which is made ten times as fast

Indices = Sequence[Index]


class Operand(Protocol):
    """An operand of `element`: a closure from indices to its element there, with the operand's type."""

    @property
    def type(self) -> TensorType: ...

    def __call__(self, index: Indices) -> Elem: ...


def counted(b: Builder, ix: Index, dtype: DType) -> Elem:
    """The value of an index as an element of `dtype`."""
    from hilo.loop import arith

    return arith.convert(b, Elem(i64, node(b, ix)), dtype)


def all_in_range(b: Builder, tests: Iterable[tuple[Index, int, int]]) -> Node:
    """Whether lo <= index < hi for all (index, lo, hi), as i1; constant where that is known."""
    inside = b.const(1, I1)
    for ix, lo, hi in tests:
        test = in_range(b, ix, lo, hi)
        if test.const == 0:
            return test
        if test.const is None:
            inside = test if inside.const else b.and_(inside, test)
    return inside


def choose(b: Builder, condition: Node, then: Callable[[], Elem], otherwise: Callable[[], Elem]) -> Elem:
    """`then()` where `condition` (i1) holds, else `otherwise()`; what is surely not needed is not computed."""
    if condition.const is not None:
        return then() if condition.const else otherwise()
    return either(b, condition, then(), otherwise())


def either(b: Builder, condition: Node, then: Elem, otherwise: Elem) -> Elem:
    """`then` where `condition` (i1) holds, else `otherwise`."""
    from hilo.loop import arith

    return arith.select(b, Elem(i1, condition), then, otherwise)


def start(b: Builder, value: Elem, last: int) -> Index:
    """The integer `value` moved into [0, last], as an index; values of any integer type, however large."""
    if last == 0:
        return ZERO
    v = value.re
    if value.dtype.kind == "u":
        if value.dtype.bits < 64:
            v = b.convert("zext", v, "i64")
            return from_node(b, b.smin(v, last), 0, last + 1)
        return from_node(b, b.select(b.cmp("ult", v, last), v, last), 0, last + 1)
    v = b.convert("sext", v, "i64")
    return from_node(b, b.smin(b.smax(v, 0), last), 0, last + 1)


def window_start(b: Builder, starts: Sequence[Operand], sizes: Sequence[int], shape: Sequence[int]) -> list[Index]:
    """The first index of a window of `sizes` at rank-0 operands `starts`, moved inside `shape`."""
    each: Any = zip(starts, sizes, shape, strict=True)
    return [start(b, s(()), n - m) if may_be_less(m, n) else ZERO for s, m, n in each]
