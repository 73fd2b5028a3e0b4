"""Reductions that pick a pair: argmax and argmin, however their bodies are written. Imports ops, loop.

A body made of comparisons and selections alone does what it does by the order of its operands, so that trying all
orders proves what it is. Pairs are then compared by value (NaN first), then by index, in any order and in vectors.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from hilo.ir.dims import upper
from hilo.ir.module import Function
from hilo.ir.op import PARAMETER, Op
from hilo.kernels.combine import Combiner, Elems, constant_elem, highest, lowest
from hilo.loop.builder import Builder, Node
from hilo.loop.element import Elem
from hilo.ops.rows import captures, inputs

_OPS: Final = frozenset(("compare", "select", "and", "or", "xor", "not", "maximum", "minimum"))
_INDICES: Final = (0, 1, 2)


class Pick(Combiner):
    """Pairs (value, index): the largest (`most`) or smallest value, of equal ones that with the lowest index."""

    def __init__(self, body: Function, most: bool) -> None:
        super().__init__(body, 0)
        self.most = most
        self.free = True

    @property
    def is_sum(self) -> bool:
        return False

    def identity(self, b: Builder, lanes: int = 1) -> Elems:
        value, index = self.dtypes
        worst = (lowest if self.most else highest)(value)
        pair = (constant_elem(b, value, worst), constant_elem(b, index, highest(index)))
        return tuple(Elem(e.dtype, b.splat(e.re, lanes)) for e in pair)

    def __call__(self, b: Builder, a: Elems, x: Elems, captured: Elems = ()) -> Elems:
        (v, i), (w, j) = a, x
        better, equal = self._compare(b, v, w)
        lower = b.cmp("slt" if i.dtype.kind == "i" else "ult", i.re, j.re)
        stays = b.or_(better, b.and_(equal, lower))
        return Elem(v.dtype, b.select(stays, v.re, w.re)), Elem(i.dtype, b.select(stays, i.re, j.re))

    def after(self, b: Builder, a: Elems, x: Elems, captured: Elems = ()) -> Elems:
        """Indices grow, so that a value is replaced by a better one alone; what stands for no value has the greatest
        index, and is always replaced."""
        (v, i), (w, j) = a, x
        if not v.dtype.is_float:
            worse = b.cmp(("s" if v.dtype.kind == "i" else "u") + ("lt" if self.most else "gt"), v.re, w.re)
        else:
            worse = b.and_(b.cmp("ord", v.re, v.re), b.not_(b.cmp("oge" if self.most else "ole", v.re, w.re)))
        worse = b.or_(worse, b.cmp("sgt" if i.dtype.kind == "i" else "ugt", i.re, j.re))
        return Elem(v.dtype, b.select(worse, w.re, v.re)), Elem(i.dtype, b.select(worse, j.re, i.re))

    def _compare(self, b: Builder, v: Elem, w: Elem) -> tuple[Node, Node]:
        """Whether `v` comes before `w`, and whether neither does."""
        beats = "gt" if self.most else "lt"
        if not v.dtype.is_float:
            return b.cmp(("s" if v.dtype.kind == "i" else "u") + beats, v.re, w.re), b.cmp("eq", v.re, w.re)
        nan, other = b.cmp("uno", v.re, v.re), b.cmp("uno", w.re, w.re)
        better = b.or_(b.cmp("o" + beats, v.re, w.re), b.and_(nan, b.not_(other)))
        return better, b.or_(b.cmp("oeq", v.re, w.re), b.and_(nan, other))


def combiner(r: Op) -> Combiner:
    """The combiner of a `reduce`."""
    body: Function = r.attrs["body"]
    if len(body.results) == 2 and not captures(r) and _counts(r):
        for most in (True, False):
            if picks(body, most):
                return Pick(body, most)
    c = Combiner(body, len(captures(r)))
    if c.name not in ("maximum", "minimum"):
        return c
    from hilo.kernels.extremum import TYPES, Extremum

    return Extremum(body) if c.results[0] in TYPES else c


def _counts(r: Op) -> bool:
    """Whether the second operand of a reduction numbers the elements along the one axis that is reduced, which are so
    few that their numbers do not wrap around."""
    axes = [d for d in r.attrs["dimensions"] if inputs(r)[0].shape[d] != 1]
    o = inputs(r)[1]
    if len(axes) != 1 or upper(o.shape[axes[0]]) - 1 > highest(o.dtype):
        return False
    axis = axes[0]
    while o.name in ("broadcast_in_dim", "reshape"):
        if o.name == "reshape" or axis not in o.attrs["broadcast_dimensions"]:
            return False
        axis = o.attrs["broadcast_dimensions"].index(axis)
        o = o.operands[0]
    return o.name == "iota" and o.attrs["iota_dimension"] == axis


def picks(body: Function, most: bool) -> bool:
    """Whether `body` of (value, index, value, index) gives the better pair, in all orders that its operands can have.

    Of two NaNs the first; of equal values either, with the lower index.
    """
    value, index = body.results[0].dtype, body.results[1].dtype
    narrow = value.is_float and value.bits < 16
    if len(body.params) != 4 or value.kind not in "iuf" or index.kind not in "iu" or narrow:
        return False
    if [p.dtype for p in body.params] != [value, index] * 2:
        return False
    numbers = [-1, -0.0, 0, 1] if value.kind != "u" else [0, 1, 2]
    if value.is_float:
        numbers = [np.nan, -np.inf, *numbers, np.inf]
    v, i, w, j = (a.reshape(-1) for a in np.meshgrid(numbers, _INDICES, numbers, _INDICES, indexing="ij"))
    pairs = (v.astype(value.np), i.astype(index.np), w.astype(value.np), j.astype(index.np))
    known = dict(zip(body.params, pairs, strict=True))
    for o in body.ops:
        if o.kind is PARAMETER:
            continue
        if o.name not in _OPS or o.kind.evaluate is None or o.attrs.get("compare_type") == "TOTALORDER":
            return False
        known[o] = np.asarray(o.kind.evaluate(*(known[x] for x in o.operands), **o.attrs.own()))
    got, at = (known[r] for r in body.results)
    both = np.isnan(v) & np.isnan(w)
    with np.errstate(invalid="ignore"):
        better = np.where(np.isnan(v) | np.isnan(w), np.isnan(v), v > w if most else v < w)
        equal = v == w
    want = np.where(better, v, w)
    where = np.where(equal, np.minimum(i, j), np.where(better, i, j))
    fine = both & (i > j)  # the first has the lower index
    return bool(np.all(fine | ((where == at) & ((want == got) | (np.isnan(want) & np.isnan(got.astype(np.float64)))))))
