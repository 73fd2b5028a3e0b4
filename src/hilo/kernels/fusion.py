"""Kernels of fusions and of single ops that are computed like a fusion of one. Imports ops, kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hilo.errors import Unsupported
from hilo.ir.op import Op
from hilo.kernels import elementwise, rows, transpose
from hilo.kernels.lowered import Lowered
from hilo.ops.fusion import composes, wrap

if TYPE_CHECKING:
    from hilo.backend.target import Target


def lower(op: Op, target: Target) -> Lowered:
    """The kernel of a `hilo.fusion`."""
    body = op.attrs["body"]
    n = len(op.operands)
    if op.attrs["kind"] == "rows":
        return rows.lower(body, range(n), n, target)
    tiled = transpose.lower_fused(body, n, target)
    return tiled if tiled is not None else elementwise.lower(body, range(n), n, target)


def lower_bare(op: Op, target: Target) -> Lowered:
    """The kernel of an op that stands alone: an elementwise or index-moving op, a reduction, or a splat constant."""
    body = wrap(op)
    operands = [op.operands.index(x) for x in dict.fromkeys(op.operands)]
    if op.kind.full_name == "stablehlo.reduce":
        return rows.lower(body, operands, len(op.operands), target)
    if not composes(op):
        raise Unsupported("there is no kernel for this op yet", op=op.kind.full_name, loc=op.loc)
    return elementwise.lower(body, operands, len(op.operands), target)
