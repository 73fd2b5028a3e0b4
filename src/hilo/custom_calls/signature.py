"""The tensors that a custom call takes and gives, out of tuples, as its target sees them. Imports ir."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from hilo.ir.dtypes import from_numpy
from hilo.ir.op import Op
from hilo.ir.types import TOKEN, TensorType, TupleType, Type, result_types
from hilo.record import record

IN_MEMORY: Final = "hilo.in_memory"  # attribute: the call's operands and results are in the order of its layouts

Leaf = TensorType | None  # None: a token
Layout = tuple[int, ...]  # dims from minor to major


@record(frozen=True)
class Signature:
    """Operands and results of one call, out of tuples, with their logical shapes.

    operands, results               a type each; None for a token
    operand_layouts, result_layouts  how each lies in memory
    aliases                         (result, operand) pairs that are at one place, numbered among the tensors
    is_tuple                        whether there is not exactly one result
    in_memory                       whether the program's values stand in the order of memory already
    """

    operands: tuple[Leaf, ...] = ()
    results: tuple[Leaf, ...] = ()
    operand_layouts: tuple[Layout, ...] = ()
    result_layouts: tuple[Layout, ...] = ()
    aliases: tuple[tuple[int, int], ...] = ()
    is_tuple: bool = False
    in_memory: bool = False

    def operand_tensors(self) -> list[TensorType]:
        return [t for t in self.operands if t is not None]

    def result_tensors(self) -> list[TensorType]:
        return [t for t in self.results if t is not None]


def signature(attrs: Mapping[str, Any], operands: Sequence[Type], result: Type) -> Signature:
    """The signature of a call with these attributes, types of operands and type of the result."""
    given, made = _leaves(operands), _leaves(result_types(result))
    orders = _layouts(attrs.get("operand_layouts"), given), _layouts(attrs.get("result_layouts"), made)
    in_memory = bool(attrs.get(IN_MEMORY))
    if in_memory:
        given, made = (tuple(map(_logical, types, layouts)) for types, layouts in zip((given, made), orders))
    pairs = tuple(_aliases(attrs.get("output_operand_aliases") or (), operands, result))
    is_tuple = len(result_types(result)) != 1 or isinstance(result_types(result)[0], TupleType)
    return Signature(given, made, *orders, pairs, is_tuple, in_memory)


def signature_of(op: Op) -> Signature:
    """The signature of a custom call."""
    return signature(op.attrs, [o.type for o in op.operands], op.type)


def value_type(value: Any) -> Type:
    """The type of a value of the interpreter."""
    if isinstance(value, tuple):
        return TupleType([value_type(v) for v in value])
    return TensorType(from_numpy(value.dtype), value.shape) if isinstance(value, np.ndarray) else TOKEN


def is_row_major(layout: Layout) -> bool:
    return layout == tuple(range(len(layout)))[::-1]


def _leaves(types: Sequence[Type]) -> tuple[Leaf, ...]:
    out: list[Leaf] = []
    for t in types:
        if isinstance(t, TupleType):
            out += _leaves(t.types)
        else:
            out.append(t if isinstance(t, TensorType) else None)
    return tuple(out)


def _layouts(given: Sequence[Layout] | None, types: tuple[Leaf, ...]) -> tuple[Layout, ...]:
    if given is not None and len(given) == len(types):
        return tuple(map(tuple, given))
    return tuple(tuple(range(t.rank))[::-1] if t is not None else () for t in types)


def _logical(t: Leaf, layout: Layout) -> Leaf:
    """The type of a tensor whose dims stand in the order of memory."""
    if t is None:
        return None
    shape: list[Any] = [0] * t.rank
    for position, dim in enumerate(reversed(layout)):
        shape[dim] = t.shape[position]
    return t.with_shape(tuple(shape))


def _aliases(pairs: Sequence[Any], operands: Sequence[Type], result: Type) -> list[tuple[int, int]]:
    results = result_types(result)
    out = []
    for a in pairs:
        path = tuple(a["output_tuple_indices"])
        whole = len(results) == 1 and not (path and not isinstance(results[0], TupleType))
        r = _number(results, (0, *path) if whole else path)
        o = _number(operands, (a["operand_index"], *a["operand_tuple_indices"]))
        if r is not None and o is not None:
            out.append((r, o))
    return out


def _number(types: Sequence[Type], path: Sequence[int]) -> int | None:
    """The number, among the tensors of `types`, of the one at `path`; None if there is a token or a tuple."""
    before = 0
    for depth, i in enumerate(path):
        before += sum(x is not None for x in _leaves(types[:i]))
        t = types[i]
        if depth == len(path) - 1:
            return before if isinstance(t, TensorType) else None
        assert isinstance(t, TupleType)
        types = t.types
    return None
