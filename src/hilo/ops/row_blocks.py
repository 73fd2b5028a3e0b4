"""Row regions on blocks of rows: the same function for fewer rows of the array that it reduces. Imports ir, ops."""

from __future__ import annotations

from hilo.errors import Error
from hilo.ir.module import Function, parameter
from hilo.ir.op import PARAMETER, Array, Op
from hilo.ir.types import TensorType


def for_rows(body: Function, shape: tuple[int, ...], rows: int) -> Function | None:
    """`body`, which computes values of the rows of an array of `shape`, for an array of `rows` rows; None if it does
    anything else than that: every value must have the array's shape or one element per row, up to axes of size 1, or be
    the same for all.
    """
    core = tuple(n for n in shape if n != 1)
    if len(core) < 2 or shape[-1] == 1 or shape[-2] == 1:
        return None
    new: dict[Op, Op] = {}
    params: list[Op] = []
    for o in body.ops:
        t = _sliced(o.type, core, rows)
        if t is None:
            return None
        if o.kind is PARAMETER:
            new[o] = parameter(len(params), t, o.loc)
            params.append(new[o])
            continue
        if not _keeps_rows(o, core):
            return None
        attrs = o.attrs
        if o.kind.full_name == "stablehlo.constant":
            attrs = attrs.replace(value=Array(attrs["value"].scalar, t.shape))
        elif "type" in attrs:
            attrs = attrs.replace(type=t)
        try:
            new[o] = o.kind.make([new[x] for x in o.operands], attrs, o.loc)
        except Error:
            return None
        if new[o].type != t:
            return None
    return Function(body.name, params, new.values(), [new[r] for r in body.results], loc=body.loc)


def _axes(t: TensorType) -> list[int]:
    """The axes that are not of size 1."""
    return [i for i, n in enumerate(t.shape) if n != 1]


def _sliced(t: object, core: tuple[int, ...], rows: int) -> TensorType | None:
    """The type of a value for `rows` rows."""
    if not isinstance(t, TensorType) or not t.is_static:
        return None
    axes = _axes(t)
    sizes = tuple(t.shape[i] for i in axes)
    if not axes:
        return t
    if sizes not in (core, core[:-1]):
        return None
    shape = [1] * t.rank
    shape[axes[len(core) - 2]] = rows
    if sizes == core:
        shape[axes[-1]] = core[-1]
    return TensorType(t.dtype, shape)


def _keeps_rows(o: Op, core: tuple[int, ...]) -> bool:
    """Whether every row of `o`'s value follows from the same rows of its operands."""
    name, t = o.name, o.type
    if name == "constant":
        return o.attrs["value"].is_splat
    if o.kind.scalar is not None or name == "reshape":
        return True
    if name == "reduce":
        axes = _axes(o.operands[0].tensor)
        return len(o.operands) == 2 and [d for d in o.attrs["dimensions"] if d in axes] == axes[-1:]
    if name == "broadcast_in_dim" and isinstance(t, TensorType):
        to = o.attrs["broadcast_dimensions"]
        return [to[i] for i in _axes(o.operands[0].tensor)] == _axes(t)[: len(_axes(o.operands[0].tensor))]
    return False
