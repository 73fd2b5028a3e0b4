"""Layouts around convolutions: transpositions move towards the results, until they meet their inverse. Imports ir, ops.

Kernels of convolutions have the features last; legalizing puts transpositions around convolutions of other layouts.
What lies between two convolutions (normalization, activation, pooling, sums) is computed in the layout of the kernels,
so that a network turns its input and its result, and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from hilo.ir.module import Function
from hilo.ir.op import PARAMETER, Array, Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType
from hilo.ops.regions import sole_op

FREE: Final = frozenset(("add", "maximum", "minimum", "and", "or"))  # what combines in any order
Permutation = tuple[int, ...]  # axis d of a value is axis permutation[d] of what it is a transposition of


def layout(f: Function) -> Function:
    """`f` with transpositions moved behind elementwise ops, pooling and reductions; `f` itself if there are none to
    move. Leaves some that nothing needs."""
    return _Sinking(f).run()


class _Sinking:
    """Walks a function; holds what is known of values that are transpositions, which are made only where needed."""

    def __init__(self, f: Function) -> None:
        self.f = f
        self.ops: list[Op] = []
        self.new: dict[Op, Op] = {}
        self.turned: dict[Op, tuple[Op, Permutation]] = {}
        self.moved = False

    def run(self) -> Function:
        for o in self.f.ops:
            self.visit(o)
        results = [self.value(r) for r in self.f.results]
        return self.f.replace(ops=self.ops, results=results) if self.moved else self.f

    def visit(self, o: Op) -> None:
        handler = _HANDLERS.get(o.kind.full_name, _elementwise if o.kind.scalar is not None else None)
        if handler is not None and handler(self, o):
            self.moved |= o in self.new or handler is not _transpose
            return
        if o.kind is PARAMETER:
            self.ops.append(o)
            self.new[o] = o
            return
        operands = [self.value(x) for x in o.operands]
        self.new[o] = self.emit(o if operands == list(o.operands) else o.with_operands(operands))

    def emit(self, o: Op) -> Op:
        self.ops.append(o)
        return o

    def value(self, o: Op) -> Op:
        """The value of `o` as it was."""
        found = self.new.get(o)
        if found is None:
            base, permutation = self.turned[o]
            found = self.new[o] = self.emit(lookup("stablehlo.transpose")(base, permutation=permutation, loc=o.loc))
        return found

    def define(self, o: Op, base: Op, permutation: Permutation) -> bool:
        """`o` is `base` (emitted already) with its axes permuted."""
        if permutation == tuple(range(len(permutation))):
            self.new[o] = base
        else:
            self.turned[o] = base, permutation
        return True

    def before(self, o: Op, permutation: Permutation) -> Op | None:
        """What `o` is the transposition of by `permutation`, if that costs nothing."""
        if o in self.turned:
            base, own = self.turned[o]
            return base if own == permutation else None
        if o.tensor.rank == 0:
            return self.value(o)
        if o.kind.full_name == "stablehlo.constant" and o.attrs["value"].is_splat:
            value = Array(np.broadcast_to(o.attrs["value"].scalar, back(o.shape, permutation)))
            return self.emit(lookup("stablehlo.constant")(value=value, loc=o.loc))
        if o.kind.full_name == "stablehlo.broadcast_in_dim":
            dims = tuple(permutation[d] for d in o.attrs["broadcast_dimensions"])
            t = o.tensor.with_shape(back(o.shape, permutation))
            source = self.value(o.operands[0])
            return self.emit(o.kind(source, broadcast_dimensions=dims, type=t, loc=o.loc))
        return None

    def permutation_of(self, operands: Sequence[Op]) -> Permutation | None:
        """The one permutation that some operands are turned by."""
        found = {self.turned[x][1] for x in operands if x in self.turned}
        return found.pop() if len(found) == 1 else None


def back(values: Sequence[Any], permutation: Permutation) -> tuple[Any, ...]:
    """One value per axis, in the order of the axes before the transposition."""
    out = [None] * len(permutation)
    for d, p in enumerate(permutation):
        out[p] = values[d]
    return tuple(out)


# ---- ops that a transposition passes: whether it did
def _transpose(s: _Sinking, o: Op) -> bool:
    (x,) = o.operands
    permutation = o.attrs["permutation"]
    if x in s.turned:
        base, own = s.turned[x]
        s.moved = True
        return s.define(o, base, tuple(own[p] for p in permutation))
    if x.kind.full_name == "stablehlo.constant" and not x.attrs["value"].is_splat:  # weights: turned once
        data = np.ascontiguousarray(np.transpose(x.attrs["value"].data, permutation))
        s.new[o] = s.emit(x.kind(value=Array(data), loc=o.loc))
        return True
    return s.define(o, s.value(x), permutation)


def _elementwise(s: _Sinking, o: Op) -> bool:
    permutation = s.permutation_of(o.operands)
    if permutation is None or o.kind.effect or not isinstance(o.type, TensorType) or o.tensor.rank != len(permutation):
        return False
    if any(x not in s.turned and not _follows(x) for x in o.operands):
        return False
    operands = [s.before(x, permutation) for x in o.operands]
    if any(x is None for x in operands):
        return False
    attrs = o.attrs
    if "type" in attrs.own():
        attrs = attrs.replace(type=o.tensor.with_shape(back(o.shape, permutation)))
    return s.define(o, s.emit(o.kind.make([x for x in operands if x is not None], attrs, o.loc)), permutation)


def _follows(x: Op) -> bool:
    """Whether a value can be had in any layout."""
    splat = x.kind.full_name == "stablehlo.constant" and x.attrs["value"].is_splat
    return splat or x.tensor.rank == 0 or x.kind.full_name == "stablehlo.broadcast_in_dim"


def _reduce_window(s: _Sinking, o: Op) -> bool:
    permutation = s.permutation_of(o.operands)
    if permutation is None or len(o.operands) != 2 or sole_op(o.attrs["body"]) not in FREE:
        return False
    names = ("window_dimensions", "window_strides", "base_dilations", "window_dilations", "padding")
    attrs = o.attrs.replace(**{n: back(o.attrs[n], permutation) for n in names if o.attrs[n] is not None})
    operands = (s.turned[o.operands[0]][0], s.value(o.operands[1]))
    return s.define(o, s.emit(o.kind.make(operands, attrs, o.loc)), permutation)


def _reduce(s: _Sinking, o: Op) -> bool:
    permutation = s.permutation_of(o.operands)
    if permutation is None or len(o.operands) != 2 or sole_op(o.attrs["body"]) not in FREE:
        return False
    dims = o.attrs["dimensions"]
    kept = [p for d, p in enumerate(permutation) if d not in dims]
    attrs = o.attrs.replace(dimensions=tuple(sorted(permutation[d] for d in dims)))
    operands = (s.turned[o.operands[0]][0], s.value(o.operands[1]))
    order = sorted(kept)
    return s.define(o, s.emit(o.kind.make(operands, attrs, o.loc)), tuple(order.index(p) for p in kept))


def _pad(s: _Sinking, o: Op) -> bool:
    permutation = s.permutation_of(o.operands)
    if permutation is None:
        return False
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    attrs = o.attrs.replace(**{n: back(o.attrs[n], permutation) for n in names})
    operands = (s.turned[o.operands[0]][0], s.value(o.operands[1]))
    return s.define(o, s.emit(o.kind.make(operands, attrs, o.loc)), permutation)


def _concatenate(s: _Sinking, o: Op) -> bool:
    permutation = s.permutation_of(o.operands)
    if permutation is None or any(x not in s.turned for x in o.operands):
        return False
    attrs = o.attrs.replace(dimension=permutation[o.attrs["dimension"]])
    return s.define(o, s.emit(o.kind.make([s.turned[x][0] for x in o.operands], attrs, o.loc)), permutation)


def _dot_general(s: _Sinking, o: Op) -> bool:
    """A contraction over features takes them wherever they are, if the other axes keep their order."""
    lhs, rhs = o.operands
    if o.attrs["lhs_batching_dimensions"] or o.attrs.get("algorithm") is not None:
        return False
    first, second = o.attrs["lhs_contracting_dimensions"], o.attrs["rhs_contracting_dimensions"]
    if lhs in s.turned and _keeps_order(s.turned[lhs][1], first):
        base, permutation = s.turned[lhs]
        attrs = o.attrs.replace(lhs_contracting_dimensions=tuple(permutation[d] for d in first))
        s.new[o] = s.emit(o.kind.make((base, s.value(rhs)), attrs, o.loc))
        return True
    if rhs in s.turned and _keeps_order(s.turned[rhs][1], second):  # as the lhs: other axes first, features last
        base, permutation = s.turned[rhs]
        own = lhs.tensor.rank - len(first)
        turn = tuple(range(o.tensor.rank - own, o.tensor.rank)) + tuple(range(o.tensor.rank - own))
        precision = o.attrs["precision_config"]
        attrs = o.attrs.replace(
            lhs_contracting_dimensions=tuple(permutation[d] for d in second), rhs_contracting_dimensions=first,
            precision_config=precision and precision[::-1], type=o.tensor.with_shape(back(o.shape, turn)))  # fmt: skip
        return s.define(o, s.emit(o.kind.make((base, s.value(lhs)), attrs, o.loc)), turn)
    return False


def _keeps_order(permutation: Permutation, contracted: Sequence[int]) -> bool:
    kept = [p for d, p in enumerate(permutation) if d not in contracted]
    return kept == sorted(kept)


_HANDLERS: Final[dict[str, Callable[[_Sinking, Op], bool]]] = {
    "stablehlo.transpose": _transpose,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.reduce": _reduce,
    "stablehlo.pad": _pad,
    "stablehlo.concatenate": _concatenate,
    "stablehlo.dot_general": _dot_general,
}
