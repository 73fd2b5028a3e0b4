"""Custom calls before they are planned: markers go, layouts become transposes. Imports ir, custom_calls, rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hilo.custom_calls import registry
from hilo.custom_calls.markers import is_marker
from hilo.custom_calls.shape_operands import shape_operands, without_shape_operands
from hilo.custom_calls.signature import IN_MEMORY, Layout, is_row_major
from hilo.errors import Unsupported
from hilo.ir.op import Attrs, Op
from hilo.ir.types import Results, TensorType, TupleType, Type, result_types
from hilo.rewrite import PACK
from hilo.rewrite.ops import get_tuple_element, transpose, tuple_

if TYPE_CHECKING:
    from hilo.passes.shapes import Refiner


def simpler_call(op: Op) -> Op | None:
    """What a marker marks; a call of native code on values in the order of memory that it asks for; None: as it is."""
    if is_marker(op.attrs["call_target_name"]):
        return _marked(op)
    if shape_operands(op.attrs):
        return _without_shapes(op, op.operands, op.type)
    layouts = (*(op.attrs.get("operand_layouts") or ()), *(op.attrs.get("result_layouts") or ()))
    if op.attrs.get(IN_MEMORY) or all(map(is_row_major, layouts)):
        return None
    target = registry.find(op.attrs["call_target_name"])
    return None if target.convention == "python" else in_memory(op)  # Python functions see logical arrays


def _without_shapes(op: Op, operands: Sequence[Op], t: Type) -> Op:
    kept, attrs = without_shape_operands(op.attrs, len(operands))
    return Op(op.kind, tuple(operands[i] for i in kept), attrs.replace(type=t), t, op.loc)


def sized_call(r: Refiner, op: Op, operands: Sequence[Op]) -> Op:
    """A call whose results have the shapes that operands say, in passes/shapes.py."""
    indices, types = shape_operands(op.attrs), result_types(op.type)
    if len(indices) != len(types) or not all(0 <= i < len(operands) for i in indices):
        raise Unsupported("indices_of_shape_operands must name an operand for each result")
    new: list[Type] = []
    for i, t in zip(indices, types, strict=True):
        shape = r.sizes(operands[i], "the shape of a result")
        if not isinstance(t, TensorType) or len(shape) != t.rank:
            raise Unsupported(f"operand {i} says {len(shape)} sizes of a result of type {t}")
        new.append(t.with_shape(tuple(map(r.size_is, shape))))
        r.agree(new[-1], t)
    return _without_shapes(op, operands, Results(new) if isinstance(op.type, Results) else new[0])


def _marked(op: Op) -> Op:
    types = result_types(op.type)
    if types and tuple(o.type for o in op.operands) != types:
        raise Unsupported("the operands and results of this marker differ: the program is for several devices",
                          loc=op.loc, op=op.kind.full_name)  # fmt: skip
    return PACK.make(op.operands if types else ()) if isinstance(op.type, Results) else op.operands[0]


def in_memory(op: Op) -> Op:
    """A call with layouts as one of row-major values, whose dims stand in the order of memory."""
    orders: Sequence[Layout] = op.attrs["result_layouts"]
    operands = [_arranged(o, order) for o, order in zip(op.operands, op.attrs["operand_layouts"], strict=True)]
    whole = op.type.types if isinstance(op.type, TupleType) else result_types(op.type)
    types = [_permuted(t, order[::-1]) for t, order in zip(whole, orders, strict=True)]
    t: Type = types[0] if types else op.type
    if isinstance(op.type, Results | TupleType):
        t = Results(types) if isinstance(op.type, Results) else TupleType(types)
    attrs = Attrs(op.attrs, type=t, **{IN_MEMORY: True})
    call = Op(op.kind, tuple(operands), attrs, t, op.loc)
    if isinstance(op.type, TupleType):
        parts = [get_tuple_element(call, index=i) for i in range(len(types))]
        return tuple_(*[_restored(p, order) for p, order in zip(parts, orders, strict=True)])
    results = [_restored(r, order) for r, order in zip(call.results(), orders, strict=True)]
    return PACK.make(tuple(results)) if isinstance(op.type, Results) else results[0]


def _permuted(t: Type, permutation: Layout) -> Type:
    return t.with_shape(tuple(t.shape[d] for d in permutation)) if isinstance(t, TensorType) else t


def _arranged(o: Op, layout: Layout) -> Op:
    return o if is_row_major(layout) else transpose(o, permutation=layout[::-1])


def _restored(o: Op, layout: Layout) -> Op:
    """The logical value of what lies in memory in the order of `layout`."""
    if is_row_major(layout):
        return o
    order = layout[::-1]
    return transpose(o, permutation=tuple(order.index(d) for d in range(len(order))))
