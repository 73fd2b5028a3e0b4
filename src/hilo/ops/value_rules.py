"""Constraints on operands that are constants: shapes, padding and slices that a dynamic op is given. Imports ir, ops.

What cannot be known before the program runs is checked when it runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hilo.errors import require
from hilo.ir.op import Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType, compatible

Ints = tuple[int, ...]


def check_values(op: Op) -> None:
    """Require what the spec says of the constant operands of `op`; `VerifyError` with the constraint they break."""
    check = _CHECKS.get(op.kind.full_name)
    if check is not None:
        check(op)


def _ints(x: Op) -> Ints | None:
    from hilo.ops.dynamic_shape import known

    value = known(x)
    return None if value is None else tuple(int(v) for v in value.reshape(-1))


def _declared(op: Op, shape: Ints, rule: str) -> TensorType:
    """The result type with the shape that a constant says, which must fit what is declared."""
    t = op.tensor.with_shape(shape)
    ok = all(n >= 0 for n in shape) and compatible(op.tensor, t)
    require(ok, rule, "the shape given is {s}, but the result is {t}", s=list(shape), t=op.type)
    return t


def _reshape(op: Op) -> None:
    if (shape := _ints(op.operands[1])) is not None:
        lookup("stablehlo.reshape").infer(op.operands[0].type, type=_declared(op, shape, "C4"))


def _broadcast(op: Op) -> None:
    if (shape := _ints(op.operands[1])) is not None:
        dims = op.attrs["broadcast_dimensions"]
        kind = lookup("stablehlo.broadcast_in_dim")
        kind.infer(op.operands[0].type, broadcast_dimensions=dims, type=_declared(op, shape, "C7"))


def _iota(op: Op) -> None:
    if (shape := _ints(op.operands[0])) is not None:
        _declared(op, shape, "C2")


def _like_static(name: str, first: int, names: tuple[str, ...], rule: str) -> Callable[[Op], None]:
    """The check of an op that is `name` with attributes `names` as operands, from operand number `first`."""

    def check(op: Op) -> None:
        found = [_ints(x) for x in op.operands[first : first + len(names)]]
        if None not in found:
            attrs = {k: v for k, v in op.attrs.own().items() if k != "type"}
            types = [x.type for x in op.operands[:first]]
            want = lookup(f"stablehlo.{name}").infer(*types, **attrs, **dict(zip(names, found, strict=True)))
            require(compatible(want, op.type), rule, "the result is {w}, but {t} is declared", w=want, t=op.type)

    return check


def _convolution(op: Op) -> None:
    if (found := _ints(op.operands[2])) is not None:
        pairs = tuple(zip(found[::2], found[1::2], strict=True))
        kind = lookup("stablehlo.convolution")
        kind.infer(op.operands[0].type, op.operands[1].type, padding=pairs, **op.attrs.own())


_pad_whole = _like_static("pad", 2, ("edge_padding_low", "edge_padding_high", "interior_padding"), "C4")


def _pad(op: Op) -> None:
    inner = _ints(op.operands[4])
    require(inner is None or min(inner, default=0) >= 0, "C3", "interior_padding {i} is negative", i=inner)
    _pad_whole(op)


def _rng(op: Op) -> None:
    if (shape := _ints(op.operands[2])) is not None:
        _declared(op, shape, "C3")


_CHECKS: Final[dict[str, Callable[[Op], None]]] = {
    "stablehlo.dynamic_reshape": _reshape,
    "chlo.dynamic_reshape": _reshape,
    "stablehlo.dynamic_broadcast_in_dim": _broadcast,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_gather": _like_static("gather", 2, ("slice_sizes",), "C22"),
    "stablehlo.dynamic_conv": _convolution,
    "stablehlo.rng": _rng,
    "stablehlo.real_dynamic_slice": _like_static("slice", 1, ("start_indices", "limit_indices", "strides"), "C5"),
}
