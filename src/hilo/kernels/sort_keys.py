"""Comparators that mean an order of keys, and these keys as unsigned integers. Imports ops, loop, kernels.

A comparator of elements a and b means an order if it compares the same function of a and of b, or several ones in turn
(the next where all before are equal). Then the elements may be sorted by integers that order as the functions' values
do. Floats that are not compared by total order have such integers only if none is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Final

from hilo.ir.dtypes import DType, bf16
from hilo.ir.module import Function
from hilo.ir.op import PARAMETER, Op
from hilo.loop import arith
from hilo.loop.arith import floats
from hilo.loop.builder import I1, Builder, Node
from hilo.loop.element import Elem
from hilo.ops.fusion import apply_region
from hilo.record import record

BITS: Final = 64  # of all keys of an element together
Pair = tuple[Op, Op]


@record(frozen=True)
class Key:
    """A function of one element: its value in the comparator for a. `partial`: NaN has no place in the order."""

    value: Op
    descending: bool
    partial: bool

    @property
    def bits(self) -> int:
        t = self.value.dtype
        if t.kind == "b":
            return 1
        return 16 if t is bf16 else max(t.bits, 32) if t.is_float else max(t.bits, 8)


@record(frozen=True)
class Order:
    """The keys of a comparator of `count` inputs, the most significant one first."""

    comparator: Function
    count: int
    keys: tuple[Key, ...]

    @property
    def bits(self) -> int:
        return sum(k.bits for k in self.keys)

    @property
    def partial(self) -> bool:
        return any(k.partial for k in self.keys)

    @property
    def descending_whole(self) -> bool | None:
        """Whether the order is descending, if the one key is the one input itself, without loss; else None."""
        (key, *others) = self.keys
        whole = not others and self.count == 1 and key.value is self.comparator.params[0] and not key.partial
        t = key.value.dtype
        return key.descending if whole and (t.is_int or t.bits >= 32) and not t.is_narrow and t.kind != "b" else None

    @cached_property
    def _functions(self) -> Function:
        return self.comparator.replace(results=[k.value for k in self.keys])

    def number(self, b: Builder, elements: Sequence[Elem], captured: Sequence[Elem]) -> tuple[Node, Node]:
        """The integer (i64, of `bits` bits) of an element of each input, and whether one of its keys is NaN."""
        values = apply_region(b, self._functions, [*(e for x in elements for e in (x, x)), *captured])
        total, nan = None, b.const(0, I1)
        for key, e in zip(self.keys, values, strict=True):
            if key.partial:
                nan = b.or_(nan, b.cmp("uno", e.re, e.re))
                e = Elem(e.dtype, b.select(b.cmp("oeq", e.re, 0.0), 0.0, e.re))
            n = ordinal(b, e, key.bits)
            if key.descending:
                n = b.xor(n, -1 if key.bits == 64 else (1 << key.bits) - 1)
            total = n if total is None else b.or_(b.shl(total, key.bits), n)
        assert total is not None
        return total, nan


def ordinal(b: Builder, e: Elem, bits: int) -> Node:
    """An i64 of `bits` bits that orders, unsigned, as `e` does (floats: by total order)."""
    t = e.dtype
    x = floats.total_order(b, e.re) if t.is_float else e.re
    if t.kind in "if":
        x = b.xor(x, -1 << (x.type.bits - 1))
    x = b.convert("zext", x, "i64")
    return b.lshr(x, 16) if t is bf16 else x


def value_of(b: Builder, n: Node, t: DType, descending: bool) -> Elem:
    """The element whose `ordinal` (or its complement) the i64 `n` is: of an integer, f32 or f64."""
    if descending:
        n = b.xor(n, -1)
    x = b.convert("itrunc", n, f"i{t.bits}")
    if t.kind in "if":
        x = b.xor(x, -1 << (t.bits - 1))
    if t.is_float:  # total order is its own inverse
        sign = b.ashr(x, t.bits - 1)
        x = b.bitcast(b.xor(x, b.lshr(sign, 1)), f"f{t.bits}")
    return arith.from_memory(b, t, (x,)) if not t.is_float else Elem(t, x)


def order_of(comparator: Function, count: int) -> Order | None:
    """The order that a comparator of `count` inputs means, if it is seen to mean one."""
    reader = _Reader(comparator, count)
    keys = reader.keys(comparator.results[0])
    order = None if keys is None else Order(comparator, count, tuple(keys))
    return order if order is not None and order.bits <= BITS else None


class _Reader:
    """Reads a comparator."""

    def __init__(self, comparator: Function, count: int) -> None:
        self.number = {p: i for i, p in enumerate(comparator.params)}
        self.count = count
        self.known: dict[Pair, bool] = {}

    def keys(self, result: Op) -> list[Key] | None:
        """The keys by which `result` says that a comes first."""
        first = self._strict(result)
        if first is not None:
            return [first]
        for strict, equal, rest in _chains(result):
            key = self._strict(strict)
            if key is not None and self._equal(equal, key):
                others = self.keys(rest)
                return None if others is None else [key, *others]
        return None

    def _strict(self, o: Op) -> Key | None:
        """The key if `o` says that a's is less (or greater) than b's."""
        if o.name != "compare" or o.attrs["comparison_direction"] not in ("LT", "GT"):
            return None
        x, y = o.operands
        descending = o.attrs["comparison_direction"] == "GT"
        if not self._mirrored(x, y):
            x, y, descending = y, x, not descending
            if not self._mirrored(x, y):
                return None
        t = x.dtype
        if t.is_complex or not (t.is_int or t.is_float or t.kind == "b"):
            return None
        if t.is_float and t.bits < 16:
            return None
        return Key(x, descending, t.is_float and o.attrs["compare_type"] != "TOTALORDER")

    def _equal(self, o: Op, key: Key) -> bool:
        """Whether `o` says that the keys of a and b are equal."""
        if o.name != "compare" or o.attrs["comparison_direction"] != "EQ":
            return False
        partial = key.value.dtype.is_float and o.attrs["compare_type"] != "TOTALORDER"
        x, y = o.operands
        mine = any(a is key.value and self._mirrored(a, b) for a, b in ((x, y), (y, x)))
        return mine and partial == key.partial

    def _mirrored(self, x: Op, y: Op) -> bool:
        """Whether `y` is of b what `x` is of a."""
        found = self.known.get((x, y))
        if found is None:
            found = self.known[x, y] = self._is_mirrored(x, y)
        return found

    def _is_mirrored(self, x: Op, y: Op) -> bool:
        if x.kind is PARAMETER or y.kind is PARAMETER:
            i, j = self.number.get(x), self.number.get(y)
            if i is None or j is None:
                return False
            return i == j if i >= 2 * self.count else i % 2 == 0 and j == i + 1
        same = x.kind is y.kind and x.type is y.type and x.attrs == y.attrs and len(x.operands) == len(y.operands)
        return same and all(map(self._mirrored, x.operands, y.operands))


def _chains(o: Op) -> list[tuple[Op, Op, Op]]:
    """Ways to read `o` as: strict, or equal and the rest."""
    if o.name == "or":
        pairs = [(p, q) for p, q in (o.operands, o.operands[::-1]) if q.name == "and"]
        return [(p, e, r) for p, q in pairs for e, r in (q.operands, q.operands[::-1])]
    if o.name == "select":
        c, yes, no = o.operands
        return [(no, c, yes)]
    return []
