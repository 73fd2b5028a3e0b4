"""Indices over sizes that are known only when a program runs; `loop.index` loads it for such programs. Imports ir.dims,
loop.index."""

from __future__ import annotations

from typing import Any

from hilo.ir.dims import Number, Size, divide, lower, upper
from hilo.loop import sizes
from hilo.loop.builder import I1, Builder
from hilo.loop.index import ZERO, Atom, Derived, Index, constant, is_inside, node
from hilo.loop.nodes import Node


def of_size(n: Number) -> Index:
    """The index that is always the size `n`."""
    if isinstance(n, int):
        return constant(n)
    out = ZERO
    for m, c in n.terms.items():
        one = Size.of({m: 1})
        atom: dict[Atom, Any] = {} if isinstance(one, int) else {Derived(one.lo, one.hi, size=one): c}
        out = out + Index(0 if atom else c, atom)
    return Index(out.const, out.terms, n.lo, n.hi)


def product(x: Index, n: Size) -> Index:
    """x * n, as a sum of products of one atom and one monomial of sizes each."""
    out = of_size(n * x.const)
    for m, c in n.terms.items():
        one = Size.of({m: 1})
        for a, d in x.terms.items():
            if isinstance(one, int):
                out = out + Index(0, {a: c * d})
            elif a.size is not None:
                out = out + of_size(a.size * one * (c * d))
            else:
                inner, factor = (Index(0, {a: 1}), one) if a.factor is None else (a.inner, a.factor * one)
                assert inner is not None
                ends = [p * q for p in (inner.lo, inner.hi) for q in (factor.lo, factor.hi)]
                scaled = Derived(min(ends), max(ends), inner=inner, factor=factor, multiple=a.multiple)
                out = out + Index(0, {scaled: c * d})
    return out


def quotient(x: Index, n: Size) -> Index:
    """x // n: terms that are surely multiples of n leave the division."""
    out, rest = ZERO, constant(x.const)
    for a, c in x.terms.items():
        one = a.size if a.size is not None else a.factor
        q = divide(one * c, n) if one is not None else None
        if q is None:
            rest = rest + Index(0, {a: c})
        else:
            out = out + (of_size(q) if a.size is not None else a.inner * q)  # type: ignore[operator]
    if is_inside(rest, n):
        return out
    atom = Derived(rest.lo if rest.lo < 0 else 0, max(rest.hi, 0), inner=rest, divisor=n)
    return out + Index(0, {atom: 1})


def largest(x: Index) -> Number:
    """A bound (inclusive) of the values of `x`, as a size where those are known better than by numbers."""
    total: Number = x.const
    for a, c in x.terms.items():
        if a.lanes and a.base is not None and a.base.below is not None and x.terms.get(a.base) == c:
            continue  # the base's bound holds for its lanes
        if a.size is not None:
            total = total + a.size * c
        elif c < 0:
            total = total + c * a.lo
        elif a.factor is not None and a.inner is not None:
            top = largest(a.inner)
            total = total + c * (top * a.factor if a.factor.lo >= 0 else a.hi)
        else:
            total = total + c * (a.hi if a.below is None else a.below - 1)
    return total if isinstance(total, Size) else min(total, x.hi)


def in_size_range(b: Builder, ix: Index, lo: Number, hi: Number) -> Node:
    """`in_range` where a limit is known only at run time."""
    out = b.const(1, I1)
    if lower(ix.lo - lo) < 0:
        if upper(ix.hi - lo) < 0:
            return b.const(0, I1)
        out = b.cmp("sge", node(b, ix), sizes.node(b, lo))
    if lower(hi - 1 - largest(ix)) < 0:
        if upper(hi - ix.lo) <= 0:
            return b.const(0, I1)
        below = b.cmp("slt", node(b, ix), sizes.node(b, hi))
        out = below if out.const is not None else b.and_(out, below)
    return out
