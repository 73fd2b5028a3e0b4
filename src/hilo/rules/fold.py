"""Constant folding: ops on constants become constants. Bounded in size, and only where folded and unfolded give the
same bits.

Transcendental functions are never folded: they run natively, so that folding cannot change a result. What is one value
everywhere stays one value: such a fold costs nothing, whatever the size. Imports ir, rewrite.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir.dtypes import DType, i1
from hilo.ir.op import Array, Attrs, Op
from hilo.ir.types import TensorType
from hilo.later import Later
from hilo.rewrite import RuleSet
from hilo.rewrite.ops import symbol
from hilo.rewrite.pattern import Symbol, constant, splat
from hilo.rewrite.rules import arg

if TYPE_CHECKING:
    from hilo.ir import interpret
else:
    interpret = Later("hilo.ir.interpret")

#: Elementwise ops that every path computes to the same bits.
EXACT: Final = (
    "abs",
    "add",
    "and",
    "ceil",
    "clamp",
    "compare",
    "complex",
    "convert",
    "count_leading_zeros",
    "divide",
    "floor",
    "imag",
    "is_finite",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "popcnt",
    "real",
    "remainder",
    "round_nearest_afz",
    "round_nearest_even",
    "select",
    "shift_left",
    "shift_right_arithmetic",
    "shift_right_logical",
    "sign",
    "sqrt",
    "subtract",
    "xor",
)
#: Ops that only move elements.
MOVING: Final = (
    "bitcast_convert",
    "broadcast_in_dim",
    "concatenate",
    "dynamic_slice",
    "dynamic_update_slice",
    "pad",
    "reshape",
    "reverse",
    "slice",
    "transpose",
)

SPREAD: Final = 256  # elements beyond which what is repeated is better read from where it is


@cache
def folding(limit: int) -> RuleSet:
    """The folding rules for constants of up to `limit` elements (splats of any size)."""
    rules = RuleSet("fold")
    exact = [symbol(name) for name in EXACT]
    moving = [symbol(name) for name in MOVING]

    @rules.rule(*exact, among=("constant",), example=_elementwise_examples)
    def fold_elementwise(op: Op) -> Op | None:
        """An elementwise op on splats is a splat; on small constants a constant."""
        if not _all_constant(op) or not isinstance(op.type, TensorType) or _inexact(op):
            return None
        if all(o.attrs["value"].is_splat for o in op.operands):
            return _fold_splats(op)
        return _fold(op) if op.type.size <= limit else None

    @rules.rule(*moving, among=("constant",), example=_moving_examples)
    def fold_moving(op: Op) -> Op | None:
        """Moving the elements of small constants gives a constant; of splats a splat, whatever the size."""
        if not _all_constant(op) or not isinstance(op.type, TensorType):
            return None
        if op.kind.name == "broadcast_in_dim" and op.type.size > max(op.operands[0].tensor.size, SPREAD):
            return _fold_moved_splat(op)
        return _fold_moved_splat(op) or (_fold(op) if op.type.size <= limit else None)

    return rules


def _all_constant(op: Op) -> bool:
    for o in op.operands:
        if o.kind.name != "constant":
            return False
    return bool(op.operands)


def _inexact(op: Op) -> bool:
    """Complex products, quotients, roots and magnitudes may round differently on different paths."""
    return op.operands[0].dtype.is_complex and op.kind.name in (
        "multiply",
        "divide",
        "sqrt",
        "abs",
        "sign",
        "remainder",
    )


def _fold(op: Op) -> Op | None:
    return _constant(op, [o.attrs["value"].data for o in op.operands])


def _constant(op: Op, arrays: list[np.ndarray]) -> Op | None:
    """The constant that `op` gives on `arrays`; None if the op cannot be evaluated (it says so when it runs)."""
    assert isinstance(op.type, TensorType)
    try:
        with np.errstate(all="ignore"):
            value = interpret.evaluate(op, arrays)
    except Error:
        return None
    value = np.asarray(value)
    return constant(Array(value.copy() if value.base is not None else value)) if value.shape == op.type.shape else None


def _fold_splats(op: Op) -> Op | None:
    """`op` on the values of its splat operands, computed once."""
    assert isinstance(op.type, TensorType)
    one = TensorType(op.type.dtype)
    attrs = Attrs(op.attrs, type=one) if op.kind.typed else op.attrs
    scalar = Op(op.kind, op.operands, attrs, one)
    folded = _constant(scalar, [np.asarray(o.attrs["value"].scalar).reshape(()) for o in op.operands])
    return None if folded is None else splat(folded.attrs["value"].data, op.type)


def _fold_moved_splat(op: Op) -> Op | None:
    """A splat of which elements are moved is a splat of another shape, if every operand that supplies elements is the
    same splat."""
    assert isinstance(op.type, TensorType)
    sources = {"concatenate": op.operands, "pad": op.operands[:2], "dynamic_update_slice": op.operands[:2]}.get(
        op.kind.name, op.operands[:1]
    )
    first: Array = sources[0].attrs["value"]
    if op.kind.name == "bitcast_convert" or not first.is_splat:
        return None
    scalar = np.asarray(first.scalar)
    for o in sources[1:]:
        other: Array = o.attrs["value"]
        if not other.is_splat or np.asarray(other.scalar).tobytes() != scalar.tobytes():
            return None
    return splat(scalar, op.type)


# ---- examples for the property test
def _elementwise_examples(t: DType) -> list[Op]:
    found = []
    shape = TensorType(t, (3, 2))
    a, b = splat(_number(t, 3), shape), splat(_number(t, 2), shape)
    dense = constant(Array(np.array([[0, 1], [2, 3], [1, 1]]).astype(t.np)))
    condition = splat(True, TensorType(i1, (3, 2)))
    for name in EXACT:
        s: Symbol = symbol(name)
        for operands, attrs in (
            ((a,), {}),
            ((dense,), {}),
            ((a, b), {}),
            ((dense, b), {}),
            ((condition, a, dense), {}),
            ((b, dense, a), {}),
            ((a, dense), {"comparison_direction": "LT"}),
            ((dense,), {"type": TensorType(i1, (3, 2))}),
        ):
            try:
                found.append(s(*operands, **attrs))
            except Error:
                continue
    return found


def _moving_examples(t: DType) -> list[Op]:
    a = splat(_number(t, 3), TensorType(t, (3, 2)))
    dense = constant(Array(np.array([[0, 1], [2, 3], [1, 1]]).astype(t.np)))
    zero = constant(Array(np.int32(1)))
    found = []
    for x in (a, dense):
        some: list[tuple[str, tuple[Op, ...], dict[str, Any]]] = [
            ("transpose", (x,), {"permutation": (1, 0)}),
            ("reshape", (x,), {"type": TensorType(t, (6,))}),
            ("broadcast_in_dim", (x,), {"broadcast_dimensions": (0, 2), "type": TensorType(t, (3, 4, 2))}),
            ("slice", (x,), {"start_indices": (1, 0), "limit_indices": (3, 2), "strides": (1, 1)}),
            ("concatenate", (x, x, a), {"dimension": 0}),
            ("reverse", (x,), {"dimensions": (0,)}),
            ("dynamic_slice", (x, zero, zero), {"slice_sizes": (2, 2)}),
            ("bitcast_convert", (x,), {"type": TensorType(t, (3, 2))}),
        ]
        found += [symbol(name)(*operands, **attrs) for name, operands, attrs in some]
    return [*found, symbol("negate")(arg(t, 2))] if t.is_float else found


def _number(t: DType, value: int) -> Any:
    return bool(value) if t is i1 else value if t.bits > 2 else 1
