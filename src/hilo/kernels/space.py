"""Iteration spaces: which dims of a fused loop can be walked as one. Imports ops.trace, loop.

Adjacent dims that every operand walks contiguously become one loop, and dims of size 1 none; the ops still see one
index per dim, which the index algebra turns into addresses again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import prod

from hilo.ir.dims import Number
from hilo.loop import index
from hilo.loop.index import Atom, Index
from hilo.ops.fusion import Indices
from hilo.ops.trace import Trace
from hilo.record import record


@record(frozen=True)
class Space:
    """Loops over `sizes` (outermost first); loop k stands for the adjacent dims `groups[k]` of `shape`."""

    shape: tuple[Number, ...]
    groups: tuple[tuple[int, ...], ...]

    @cached_property
    def sizes(self) -> tuple[Number, ...]:
        return tuple(prod(self.shape[d] for d in g) for g in self.groups)

    @property
    def is_static(self) -> bool:
        return all(isinstance(n, int) for n in self.shape)

    def indices(self, loops: Sequence[Index]) -> Indices:
        """One index per dim of `shape` from one per loop."""
        out = [index.ZERO] * len(self.shape)
        for g, i in zip(self.groups, loops, strict=True):
            if len(g) == 1:
                out[g[0]] = i
                continue
            for d, part in zip(g, index.delinear(i, [self.shape[d] for d in g]), strict=True):
                out[d] = part
        return tuple(out)

    def merged(self) -> Space:
        """The two innermost loops as one."""
        *outer, a, b = self.groups
        return Space(self.shape, (*outer, (*a, *b)))


def flat(shape: Sequence[int]) -> Space:
    """One loop over everything (none if there is only one element)."""
    dims = tuple(d for d, n in enumerate(shape) if n != 1)
    return Space(tuple(shape), (dims,) if dims else ())


def collapse(shape: Sequence[int], found: Trace, dims: Sequence[int] | None = None) -> Space:
    """The fewest loops over `dims` (all, if not given) at which every access in `found` stays a plain stride."""
    fixed = set(found.observed)
    atoms = [found.atom(d) for d in range(len(shape))]
    for a in found.accesses:
        inside = [index.is_inside(i, n) for i, n in zip(a.at, a.op.shape, strict=True)]
        for d, atom in enumerate(atoms):
            if atom is None or d in fixed:
                continue
            unsure = (i for i, ok in zip(a.at, inside, strict=True) if not ok)
            if _is_divided(a.position, atom) or any(_uses(i, atom) for i in unsure):
                fixed.add(d)
    positions = list(dict.fromkeys(a.position for a in found.accesses))
    groups: list[list[int]] = []
    for d in reversed(range(len(shape)) if dims is None else dims):
        outer = atoms[d]
        if outer is None:
            continue
        if groups:
            e = groups[-1][0]
            inner = atoms[e]
            assert inner is not None
            strided = all(_stride(p, outer) == _stride(p, inner) * shape[e] for p in positions)
            if strided and d not in fixed and e not in fixed:
                groups[-1].insert(0, d)
                continue
        groups.append([d])
    return Space(tuple(shape), tuple(tuple(g) for g in reversed(groups)))


def _stride(p: Index, atom: Atom) -> Number:
    """What one turn of the loop variable `atom` adds to `p`."""
    total: Number = p.terms.get(atom, 0)
    for a, c in p.terms.items():
        if a.factor is not None and a.inner is not None and a.inner.terms == {atom: 1}:
            total = total + a.factor * c
    return total


def _uses(i: Index, atom: object) -> bool:
    return any(a is atom or (a.inner is not None and _uses(a.inner, atom)) for a in i.terms)


def _is_divided(i: Index, atom: object) -> bool:
    """Whether `atom` stands inside of a division."""
    return any(
        a.inner is not None and (_is_divided(a.inner, atom) if a.factor is not None else _uses(a.inner, atom))
        for a in i.terms
    )
