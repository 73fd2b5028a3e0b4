"""Kernels of ops with run-time sizes. Imports kernels, ops, ir.dims.

Most strategies take sizes for numbers. One that must know a size raises `Undecided`; then the next way is tried: a loop
over elements, or, where the only unknown size counts independent items, item by item with the kernel of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from hilo import kernels
from hilo.errors import Unsupported
from hilo.ir.dims import Undecided
from hilo.ir.op import Op
from hilo.ir.types import TensorType, result_types
from hilo.kernels import convolution_direct, elementwise, fusion, pins, rows
from hilo.kernels.items import lower_items
from hilo.kernels.lowered import Lowered
from hilo.ops.as_rows import dot_as_sum
from hilo.ops.fusion import composes, contracts, wrap
from hilo.rewrite.bodies import instantiate

if TYPE_CHECKING:
    from hilo.backend.target import Target

Strategy = Callable[[Op, "Target"], Lowered]


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of `op`, some of whose sizes may be known only at run time."""
    types = [t for x in (op, *op.operands) for t in result_types(x.type) if isinstance(t, TensorType)]
    if all(t.is_static for t in types):
        return kernels.lower(op, target)
    problem: Unsupported | None = None
    for strategy in _WAYS.get(op.kind.full_name, (_elements, *_ANY)):
        try:
            with pins.kernel_of(op) as choices:
                return kernels.complete(strategy(op, target), choices)
        except Unsupported as e:
            problem = e
    assert problem is not None
    raise Unsupported(f"no kernel for these run-time sizes: {problem.message}", op=op.kind.full_name, loc=op.loc)


def _fusion(op: Op, target: Target) -> Lowered:
    body, n = op.attrs["body"], len(op.operands)
    if op.attrs["kind"] == "contraction":
        return fusion.lower_contraction(op, target)
    kernel = rows.lower if op.attrs["kind"] == "rows" else elementwise.lower
    return kernel(body, range(n), n, target)


def _contraction_as_rows(op: Op, target: Target) -> Lowered:
    """A contraction with what is computed from it, as a sum row by row."""
    body = op.attrs["body"]
    if op.attrs["kind"] != "contraction":
        raise Undecided("a fusion of run-time sizes")
    (hero,) = (o for o in body.ops if contracts(o))
    copies, (total,) = instantiate(dot_as_sum(hero), list(dict.fromkeys(hero.operands)))
    new: dict[Op, Op] = {hero: total}
    ops: list[Op] = []
    for o in body.ops:
        if o is hero:
            ops.extend(copies)
        else:
            new[o] = o.with_operands([new[x] for x in o.operands]) if o not in body.params else o
            ops.append(new[o])
    n = len(op.operands)
    return rows.lower(body.replace(ops=ops, results=[new[r] for r in body.results]), range(n), n, target)


def _elements(op: Op, target: Target) -> Lowered:
    """A loop over the elements of the result."""
    if not composes(op):
        raise Undecided("this op has no elements")
    operands = [op.operands.index(x) for x in dict.fromkeys(op.operands)]
    return elementwise.lower(wrap(op), operands, len(op.operands), target)


def _items(op: Op, target: Target) -> Lowered:
    return lower_items(op, target, kernels.lower)


def _dot_as_rows(op: Op, target: Target) -> Lowered:
    """A contraction as a multiplication and a sum, row by row."""
    body = dot_as_sum(op)
    kernel = rows.lower if any(o.name == "reduce" for o in body.ops) else elementwise.lower
    return kernel(body, [op.operands.index(x) for x in dict.fromkeys(op.operands)], len(op.operands), target)


def _direct(op: Op, target: Target) -> Lowered:
    return convolution_direct.lower(op, target)


def _own(op: Op, target: Target) -> Lowered:
    """The op's own strategy, if it takes sizes for numbers; those never written for it fail in several ways."""
    try:
        return kernels.lower(op, target)
    except (TypeError, AttributeError) as e:
        raise Undecided(f"its kernel needs numbers for sizes ({e})") from e


_ANY: Final[tuple[Strategy, ...]] = (_items, _own)
_WAYS: Final[dict[str, tuple[Strategy, ...]]] = {
    "hilo.fusion": (_fusion, _contraction_as_rows),
    "stablehlo.concatenate": (_elements,),
    "stablehlo.transpose": (_elements,),
    "stablehlo.dynamic_update_slice": (_elements,),
    "stablehlo.reduce": (kernels.lower,),
    "stablehlo.scatter": (kernels.lower,),
    "stablehlo.fft": (kernels.lower,),
    "stablehlo.dot_general": (kernels.lower, _items, _dot_as_rows),
    "stablehlo.dot": (kernels.lower, _items, _dot_as_rows),
    "stablehlo.convolution": (_items, _direct),
    "stablehlo.reduce_window": (_items, kernels.lower),
}
