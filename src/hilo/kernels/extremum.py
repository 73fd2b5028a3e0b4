"""Reductions to the greatest or least float. Imports ops, loop, kernels.

IEEE's maximum (NaN wins, -0 < +0) takes five instructions. Among floats of one sign, order is that of their bits, so
that three integers hold all there is to know, for one instruction each: the greatest bits as a signed number (the
greatest float without a sign), the least and the greatest as an unsigned one (the greatest and the least with a sign).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hilo.ir.dtypes import bf16, f16, f32, i32, u32
from hilo.ir.module import Function
from hilo.kernels.combine import Combiner, Elems
from hilo.loop.builder import I32, Builder
from hilo.loop.element import Elem

TYPES: Final = (f32, f16, bf16)
_ORDERS: Final = ("sgt", "ult", "ugt")
_ACROSS: Final = ("smax", "umin", "umax")
_IDENTITY: Final = (-(1 << 31), -1, 0)
_INF: Final = 0x7F800000
_MINUS_INF: Final = _INF - (1 << 31)
_NAN: Final = 0x7FC00000


class Extremum(Combiner):
    """A `maximum` or `minimum` of one of TYPES, accumulated as bits of f32 in three orders."""

    def __init__(self, body: Function) -> None:
        super().__init__(body)
        self.dtypes = (i32, u32, u32)

    def identity(self, b: Builder, lanes: int = 1) -> Elems:
        t = I32.with_lanes(lanes)
        return tuple(Elem(d, b.const(v, t)) for d, v in zip(self.dtypes, _IDENTITY, strict=True))

    def changes_nothing(self, b: Builder, values: Elems) -> bool:
        return values[0].re.const == (_MINUS_INF if self.name == "maximum" else _INF)

    def prepare(self, b: Builder, values: Iterable[Elem]) -> Elems:
        (x,) = values
        return tuple(Elem(d, b.bitcast(x.re, "i32")) for d in self.dtypes)

    def __call__(self, b: Builder, a: Elems, x: Elems, captured: Elems = ()) -> Elems:
        def first(p: Elem, q: Elem, order: str) -> Elem:
            return Elem(p.dtype, b.select(b.cmp(order, p.re, q.re), p.re, q.re))

        return tuple(map(first, a, x, _ORDERS))

    def across(self, b: Builder, values: Elems, captured: Elems = ()) -> Elems:
        return tuple(Elem(v.dtype, b.across(how, v.re)) for v, how in zip(values, _ACROSS, strict=True))

    def finish(self, b: Builder, values: Elems) -> Elems:
        signed, least, greatest = (v.re for v in values)
        if self.name == "maximum":
            bits = b.select(b.cmp("sge", signed, 0), signed, least)
        else:
            bits = b.select(b.cmp("slt", greatest, 0), greatest, least)
        nan = b.or_(b.cmp("sgt", signed, _INF), b.cmp("ugt", greatest, _MINUS_INF))
        bits = b.select(nan, b.const(_NAN, bits.type), bits)
        return (Elem(self.results[0], b.bitcast(bits, "f32")),)
