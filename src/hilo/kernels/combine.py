"""How the values of a reduction combine: its body applied to elements, and what is known of the usual bodies.

Imports ops, loop. Sums, products, extrema and bit operations may combine in any order; every other body is applied from
left to right. Sums of floats narrower than f32 are held in f32 and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Final

from hilo.ir.dtypes import DType, f32
from hilo.ir.module import Function
from hilo.loop import arith
from hilo.loop.builder import Builder, Node
from hilo.loop.element import Elem, held_type
from hilo.ops.fusion import apply_region, constant_elem
from hilo.ops.regions import sole_op

Elems = tuple[Elem, ...]
_FREE: Final = frozenset(("add", "multiply", "maximum", "minimum", "and", "or", "xor"))


def lowest(d: DType) -> float | int:
    """The least value of a type."""
    if d.format is not None:
        return -inf if d.format.has_inf else 2.0**-127 if d.format.special == "e8m0" else -d.format.largest
    return 0 if d.kind in "ub" else -(1 << (d.bits - 1))


def highest(d: DType) -> float | int:
    """The largest value of a type."""
    if d.format is not None:
        return inf if d.format.has_inf else d.format.largest
    return 1 if d.kind == "b" else (1 << (d.bits - (d.kind == "i"))) - 1


_IDENTITY: Final[dict[str, Callable[[DType], float | int]]] = {
    "add": lambda d: -0.0 if d.kind in "fc" else 0,
    "multiply": lambda d: 1,
    "maximum": lowest,
    "minimum": highest,
    "and": lambda d: -1 if d.kind == "i" else (1 << min(d.bits, 64)) - 1,
    "or": lambda d: 0,
    "xor": lambda d: 0,
}


class Combiner:
    """The body of a reduction (or scatter ...) with `captured` trailing operands, on the elements in registers.

    `free`: the values may combine in any order, starting from `identity`. `dtypes`: how accumulated values are held.
    """

    def __init__(self, body: Function, captured: int = 0) -> None:
        self.body = body
        self.results: tuple[DType, ...] = tuple(r.dtype for r in body.results)
        self.name = sole_op(body, captured)
        d = self.results[0]
        self.free = self.name in _FREE and not (self.name == "multiply" and d.is_complex)
        self.sole = body.results[0] if self.name and list(body.results[0].operands) == list(body.params) else None
        self.wide = self.name == "add" and d.is_float and d.bits < 32
        self.dtypes: tuple[DType, ...] = (f32,) if self.wide else self.results

    @property
    def is_sum(self) -> bool:
        """A sum of floats, whose rounding errors grow with the number of terms added one after the other."""
        return self.name == "add" and self.results[0].kind in "fc"

    def identity(self, b: Builder, lanes: int = 1) -> Elems:
        """The value that changes nothing."""
        d = self.dtypes[0]
        value: Any = _IDENTITY[self.name](d)
        t = held_type(d, lanes)
        return (Elem(d, b.const(value, t), b.const(value, t) if d.is_complex else None),)

    def changes_nothing(self, b: Builder, values: Elems) -> bool:
        """Whether accumulated values are known to leave as they are what any elements give."""
        return pack(values) == pack(self.identity(b, values[0].lanes))

    def prepare(self, b: Builder, values: Iterable[Elem]) -> Elems:
        """Operands as they are accumulated: promoted, and narrow floats as the f32 that holds them."""
        values = tuple(v if v.dtype is d else arith.convert(b, v, d) for v, d in zip(values, self.results, strict=True))
        if self.wide:
            return tuple(Elem(f32, v.re) for v in values)
        return tuple(v if v.dtype is d else arith.convert(b, v, d) for v, d in zip(values, self.dtypes, strict=True))

    def __call__(self, b: Builder, a: Elems, x: Elems, captured: Elems = ()) -> Elems:
        """Accumulated values with new ones."""
        if self.wide:
            return (Elem(f32, b.fadd(a[0].re, x[0].re)),)
        if self.sole is not None:
            kind = self.sole.kind
            assert kind.scalar is not None
            return (kind.scalar(b, self.sole.type, *a, *x, **self.sole.attrs.own()),)
        return apply_region(b, self.body, (*a, *x, *captured))

    def after(self, b: Builder, a: Elems, x: Elems, captured: Elems = ()) -> Elems:
        """The same where `x` is one element for each lane, which comes after those that `a` was made of."""
        return self(b, a, x, captured)

    def finish(self, b: Builder, values: Elems) -> Elems:
        """The results from accumulated values: rounds a sum held in f32."""
        return tuple(v if v.dtype is d else arith.convert(b, v, d) for v, d in zip(values, self.results, strict=True))

    def across(self, b: Builder, values: Elems, captured: Elems = ()) -> Elems:
        """All lanes combined into one (a free body only)."""
        if (how := self._how()) and values[0].lanes > 1:
            return (Elem(values[0].dtype, b.across(how, values[0].re)),)
        n = values[0].lanes
        while n > 1:
            n //= 2
            low = tuple(map_parts(v, lambda p, n=n: b.shuffle(p, p, range(n))) for v in values)
            high = tuple(map_parts(v, lambda p, n=n: b.shuffle(p, p, range(n, 2 * n))) for v in values)
            values = self(b, low, high, captured)
        return tuple(map_parts(v, lambda p: b.lane(p, 0)) for v in values)

    def _how(self) -> str:
        """The arithmetic that combines two values if it is one instruction, else nothing."""
        d = self.dtypes[0]
        if len(self.dtypes) > 1 or d.bits not in (32, 64) or d.is_complex:
            return ""
        if d.is_float:
            return {"add": "fadd", "multiply": "fmul"}.get(self.name or "", "")
        sign = "s" if d.kind == "i" else "u"
        return {"add": "add", "multiply": "mul", "and": "and", "or": "or", "xor": "xor",
                "maximum": sign + "max", "minimum": sign + "min"}.get(self.name or "", "")  # fmt: skip


def map_parts(e: Elem, f: Callable[[Node], Node]) -> Elem:
    """`f` applied to the real (and imaginary) part."""
    return Elem(e.dtype, f(e.re), None if e.im is None else f(e.im))


def splat(b: Builder, e: Elem, lanes: int) -> Elem:
    """The element in every one of `lanes` lanes."""
    return map_parts(e, lambda p: b.splat(p, lanes))


def pack(elems: Iterable[Elem]) -> tuple[Node, ...]:
    """The nodes of elements, for a loop to carry."""
    return tuple(n for e in elems for n in (e.re, e.im) if n is not None)


def unpack(nodes: Sequence[Node], dtypes: Iterable[DType]) -> list[Elem]:
    """The inverse of `pack`."""
    it = iter(nodes)
    return [Elem(d, next(it), next(it) if d.is_complex else None) for d in dtypes]


def initial_elem(b: Builder, dtype: DType, value: Any) -> Elem:
    """A constant element."""
    return constant_elem(b, dtype, value)
