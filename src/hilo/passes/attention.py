"""Attention: product, row region, product become one `hilo.fusion`, computed by blocks of rows. Imports ir, ops.

The scores between the two products are then never in memory as a whole. Only where they are too large for a cache.
"""

from __future__ import annotations

from typing import Final

from hilo.ir.module import Function
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.ops.fusion import contracts, fusion
from hilo.ops.row_blocks import for_rows
from hilo.passes.dce import dce
from hilo.passes.fuse_group import function_of

SCORES: Final = 1 << 20  # bytes of scores from which blocks pay
ROW: Final = 1 << 15  # bytes of a row of scores of which a block fits into a cache
ROWS: Final = 32  # and fewest rows


def attention(f: Function) -> Function:
    """`f`, whose ops are fused already, with its attention patterns as fusions."""
    users: dict[Op, int] = {}
    for o in f.ops:
        for x in o.operands:
            users[x] = users.get(x, 0) + 1
    for r in f.results:
        users[r] = users.get(r, 0) + 1
    position = {o: i for i, o in enumerate(f.ops)}
    new: dict[Op, Op] = {}
    ops: list[Op] = []
    for o in f.ops:
        if (parts := _match(o, users)) is not None:
            ordered = sorted(parts, key=position.__getitem__)
            operands = dict.fromkeys(x for p in ordered for x in p.operands if x not in parts)
            body = function_of(parts, [o], position)
            made = fusion(*(new.get(x, x) for x in operands), body=body, kind="attention", loc=o.loc)
        elif any(x in new for x in o.operands):
            made = o.with_operands(new.get(x, x) for x in o.operands)
        else:
            made = o
        if made is not o:
            new[o] = made
        ops.append(made)
    return dce(f.replace(ops=ops, results=[new.get(r, r) for r in f.results])) if new else f


def _match(second: Op, users: dict[Op, int]) -> list[Op] | None:
    """The ops of the pattern that ends with the product `second`."""
    if not contracts(second) or second.kind.name != "dot_general" or not second.tensor.is_static:
        return None
    found = [second]

    def alone(o: Op) -> Op | None:
        """The op behind reshapes, if nobody else uses any of these."""
        while True:
            if users[o] != 1:
                return None
            found.append(o)
            if o.kind.full_name != "stablehlo.reshape":
                return o
            o = o.operands[0]

    region = alone(second.operands[0])
    if region is None or region.kind.full_name != "hilo.fusion" or region.attrs["kind"] != "rows":
        return None
    large = [x for x in region.operands if not isinstance(x.type, TensorType) or x.tensor.size != 1]
    first = alone(large[0]) if len(large) == 1 else None
    if first is None or not contracts(first) or first.kind.name != "dot_general":
        return None
    if not isinstance(region.type, TensorType):
        return None
    shape = first.shape
    batches = len(first.attrs["lhs_batching_dimensions"])
    if len(shape) != batches + 2 or shape[-2] < 2 * ROWS or first.tensor.nbytes < SCORES:
        return None
    if shape[-1] * first.dtype.itemsize > ROW or large[0].tensor.size != region.tensor.size:
        return None
    lhs, rank = second.operands[0].tensor, second.operands[0].tensor.rank
    if second.attrs["lhs_batching_dimensions"] != tuple(range(rank - 2)):
        return None
    if second.attrs["lhs_contracting_dimensions"] != (rank - 1,):
        return None
    if lhs.shape[-2:] != shape[-2:] or second.tensor.rank != rank or second.operands[1] in found:
        return None
    if for_rows(region.attrs["body"], large[0].shape, ROWS) is None:
        return None
    return found
