"""Row regions: reductions over some dims of one shape, and what is computed from them. Imports ir, ops.

The *full* shape is the reductions' operand shape; a *row* is what one element of their results is reduced from. A
region is computed row by row, in passes: a reduction belongs to the pass after the last reduction that it needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from hilo.ir.module import Function
from hilo.ir.op import GET, Op
from hilo.loop import index
from hilo.ops.fusion import Indices, composes
from hilo.ops.trace import Trace, trace
from hilo.record import record


class NotRows(Exception):
    """The ops cannot be computed row by row."""


@record
class Rows:
    """A region: its shapes, its reductions by pass, and its results by pass (row results: after the last one).

    `outputs` maps every value that a reduction gives to (reduction, number). `found` has loop variables over `shape`.
    """

    shape: tuple[int, ...]
    kept: tuple[int, ...]
    reduced: tuple[int, ...]
    reduces: list[list[Op]]
    full: list[list[tuple[int, Op]]]
    row: list[tuple[int, Op]]
    outputs: dict[Op, tuple[Op, int]]
    level: dict[Op, int]
    found: Trace

    @property
    def passes(self) -> int:
        return len(self.reduces)


def outline(shape: Sequence[int], dims: Iterable[int] = ()) -> tuple[tuple[int, bool], ...]:
    """A shape without its axes of size 1, and which axes are among `dims`: what a loop nest over it looks like."""
    reduced = set(dims)
    return tuple((n, d in reduced) for d, n in enumerate(shape) if n != 1)


def at_shape(at: Indices, shape: Sequence[int], other: Sequence[int]) -> Indices:
    """Indices into `other` for the element at `at` of `shape`, which differs only in axes of size 1."""
    if tuple(shape) == tuple(other):
        return at
    static = all(isinstance(n, int) for n in (*shape, *other))
    if static and [n for n in shape if n != 1] == [n for n in other if n != 1]:
        long = iter([x for x, n in zip(at, shape, strict=True) if n != 1])
        return tuple([index.ZERO if n == 1 else next(long) for n in other])
    return tuple(index.delinear(index.linear(at, shape), other))


def is_reduce(o: Op) -> bool:
    return o.kind.full_name == "stablehlo.reduce"


def inputs(reduce: Op) -> tuple[Op, ...]:
    """What is reduced."""
    return reduce.operands[: len(reduce.attrs["body"].results)]


def initial(reduce: Op) -> tuple[Op, ...]:
    """The initial values."""
    n = len(reduce.attrs["body"].results)
    return reduce.operands[n : 2 * n]


def captures(reduce: Op) -> tuple[Op, ...]:
    """What the body captures."""
    return reduce.operands[2 * len(reduce.attrs["body"].results) :]


def analyse(body: Function) -> Rows:
    """The row region that computes `body`; raises `NotRows` if there is none."""
    reduces = [o for o in body.ops if is_reduce(o)]
    if not reduces:
        raise NotRows
    shape, dims = inputs(reduces[0])[0].shape, sorted(reduces[0].attrs["dimensions"])
    nest, full_nest = outline(shape, dims), outline(shape)
    if any(outline(inputs(r)[0].shape, r.attrs["dimensions"]) != nest for r in reduces):
        raise NotRows
    kept = tuple(d for d in range(len(shape)) if d not in dims)
    level: dict[Op, int] = {}
    outputs: dict[Op, tuple[Op, int]] = {}
    for o in body.ops:
        if is_reduce(o):
            level[o] = 1 + max((level[x] for x in o.operands), default=0)
            if any(level[x] for x in captures(o)):  # what a body captures is known before the rows are
                raise NotRows
            if o.kind is not GET and len(inputs(o)) == 1:
                outputs[o] = (o, 0)
        else:
            level[o] = max((level[x] for x in o.operands), default=0)
            if o.kind is GET:
                outputs[o] = (o.operands[0], o.attrs["index"])
            elif o not in body.params and not composes(o):
                raise NotRows
    rows_count = 1
    for d in kept:
        rows_count *= shape[d]
    full, row = [], []
    for k, r in enumerate(body.results):
        if outline(r.shape) == full_nest and r not in outputs:
            full.append((k, r))
        elif r.tensor.size == rows_count:
            row.append((k, r))
        else:
            raise NotRows
    passes = max([*(level[r] for r in reduces), *(level[r] + 1 for _, r in full)])
    roots = [*(x for r in reduces for x in inputs(r)), *(r for _, r in full)]
    found = _trace(body, shape, kept, outputs, roots)
    if row:
        _trace(body, [shape[d] for d in kept], range(len(kept)), outputs, [r for _, r in row])
    return Rows(
        shape,
        kept,
        tuple(dims),
        [[r for r in reduces if level[r] == p + 1] for p in range(passes)],
        [[(k, r) for k, r in full if level[r] == p] for p in range(passes)],
        row,
        outputs,
        level,
        found,
    )


def read_in_place(body: Function, rows: Rows) -> set[Op]:
    """The parameters of the full size of which each element is read only where the one at its own place is computed."""
    own = index.linear(rows.found.variables, rows.shape)
    moved = {a.op for a in rows.found.accesses if a.position != own or not a.is_inside}
    stack = [r for _, r in rows.row]
    while stack:
        o = stack.pop()
        if o not in moved and o not in rows.outputs:
            moved.add(o)
            stack.extend(o.operands)
    size = prod(rows.shape)
    return {p for p in body.params if p not in moved and p.tensor.size == size}


def _trace(
    body: Function, shape: Sequence[int], kept: Sequence[int], outputs: Iterable[Op], roots: Iterable[Op]
) -> Trace:
    """Read what `roots` need at symbolic indices over `shape`; reductions may only be read for the row at hand."""
    out = trace(shape, roots, [*body.params, *outputs])
    own, rows = tuple(out.variables[d] for d in kept), tuple(shape[d] for d in kept)
    if any(a.at != at_shape(own, rows, a.op.shape) for a in out.accesses if a.op not in body.params):
        raise NotRows
    out.accesses = [a for a in out.accesses if a.op in body.params]
    return out
