"""Rules about dot_general: transposes fold into its dimension numbers, slices of it are made of slices."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.ir.dtypes import DType, i32
from hilo.ir.op import Array, Op
from hilo.ir.types import TensorType
from hilo.rewrite import RuleSet, Var
from hilo.rewrite.ops import dot_general, dynamic_slice, reshape, transpose
from hilo.rewrite.pattern import constant
from hilo.rewrite.rules import arg

x, y, p = Var("x"), Var("y"), Var("p")
DOT = RuleSet("dot")


def _example(t: DType, **more: Any) -> tuple[Op, Op, dict[str, Any]]:
    """[2, 3, 4] with [2, 5, 4]: batch 2, contract 4."""
    numbers = {
        "lhs_batching_dimensions": (0,),
        "rhs_batching_dimensions": (0,),
        "lhs_contracting_dimensions": (2,),
        "rhs_contracting_dimensions": (2,),
    }
    return arg(t, 2, 3, 4), arg(t, 2, 5, 4), {**numbers, "type": TensorType(t, (2, 3, 5)), **more}


def _transposed_operand(t: DType, side: int) -> Op:
    *operands, attrs = _example(t)
    operands[side] = transpose(arg(t, 4, *operands[side].shape[:2]), permutation=(1, 2, 0))
    return dot_general(*operands, **attrs)


@DOT.rule(
    dot_general,
    among=("transpose",),
    reorders_sums=True,
    example=lambda t: [_transposed_operand(t, side) for side in (0, 1)],
)
def transpose_into_dot(op: Op) -> Op | None:
    """A transposed operand: name the dims of what was transposed, if the free dims keep their order."""
    operands = list(op.operands)
    attrs: dict[str, Any] = {}
    for i, side in enumerate(("lhs", "rhs")):
        o = operands[i]
        if o.kind.name != "transpose":
            continue
        perm = o.attrs["permutation"]
        batch, contract = op.attrs[f"{side}_batching_dimensions"], op.attrs[f"{side}_contracting_dimensions"]
        free = [perm[d] for d in range(len(perm)) if d not in batch and d not in contract]
        if free != sorted(free):
            continue
        operands[i] = o.operands[0]
        attrs[f"{side}_batching_dimensions"] = tuple(perm[d] for d in batch)
        attrs[f"{side}_contracting_dimensions"] = tuple(perm[d] for d in contract)
    return op.kind.make(operands, op.attrs.replace(**attrs)) if attrs else None


def _transposed_result(t: DType) -> list[Op]:
    x, y, attrs = _example(t, precision_config=("HIGH", "DEFAULT"))
    return [transpose(dot_general(x, y, **attrs), permutation=p) for p in ((0, 2, 1), (2, 0, 1), (2, 1, 0))]


@DOT.rule(
    transpose(dot_general(x, y).once().named("dot"), permutation=p), reorders_sums=True, example=_transposed_result
)
def transpose_of_dot(dot: Op, x: Op, y: Op, p: tuple[int, ...]) -> Op | None:
    """A transpose that puts a free dim of the lhs last: with the operands swapped it is a simpler one, or none."""
    a = dot.attrs
    batch = len(a["lhs_batching_dimensions"])
    left = x.tensor.rank - len(a["lhs_contracting_dimensions"])  # batch and free dims of the lhs
    rank = len(p)
    if not p or not batch <= p[-1] < left or left == rank or a.get("algorithm") is not None:
        return None
    attrs = {
        f"{one}_{what}": a[f"{other}_{what}"]
        for one, other in (("lhs", "rhs"), ("rhs", "lhs"))
        for what in ("batching_dimensions", "contracting_dimensions")
    }
    precision = a.get("precision_config")
    swapped = (*range(batch), *range(left, rank), *range(batch, left))  # where the new product's dims were
    swapped_type = dot.tensor.with_shape(dot.shape[d] for d in swapped)
    product = dot.kind.make(
        (y, x), a.replace(**attrs, precision_config=precision and precision[::-1], type=swapped_type)
    )
    return transpose(product, permutation=tuple(swapped.index(d) for d in p))


def _unit_dims(t: DType) -> list[Op]:
    x = reshape(arg(t, 3, 4), type=TensorType(t, (1, 3, 4)))
    y = reshape(arg(t, 5, 4), type=TensorType(t, (1, 5, 4)))
    numbers = {
        "lhs_batching_dimensions": (0,),
        "rhs_batching_dimensions": (0,),
        "lhs_contracting_dimensions": (2,),
        "rhs_contracting_dimensions": (2,),
    }
    return [dot_general(x, y, **numbers, type=TensorType(t, (1, 3, 5)))]


@DOT.rule(dot_general, reorders_sums=True, example=_unit_dims)
def dot_without_unit_batch(op: Op) -> Op | None:
    """Batch dims of size 1 are not needed: a matrix product runs without them."""
    a = op.attrs
    batch = [(i, j) for i, j in zip(a["lhs_batching_dimensions"], a["rhs_batching_dimensions"])]
    units = [(i, j) for i, j in batch if op.operands[0].shape[i] == 1]
    if not units:
        return None
    attrs: dict[str, Any] = {}
    operands: list[Op] = []
    for side, k in (("lhs", 0), ("rhs", 1)):
        o = op.operands[k]
        gone = {pair[k] for pair in units}
        kept = [d for d in range(o.tensor.rank) if d not in gone]
        operands.append(reshape(o, type=o.tensor.with_shape(o.shape[d] for d in kept)))
        attrs[f"{side}_batching_dimensions"] = tuple(kept.index(pair[k]) for pair in batch if pair not in units)
        attrs[f"{side}_contracting_dimensions"] = tuple(kept.index(d) for d in a[f"{side}_contracting_dimensions"])
    shape = [n for d, n in enumerate(op.shape) if d >= len(batch) or batch[d] not in units]
    product = op.kind.make(operands, a.replace(**attrs, type=op.tensor.with_shape(shape)))
    return reshape(product, type=op.type)


def _sliced_products(t: DType) -> list[Op]:
    x, y, attrs = _example(t)
    product = dot_general(x, y, **attrs)
    starts = [arg(i32) for _ in range(3)]
    return [dynamic_slice(product, *starts, slice_sizes=s) for s in ((2, 1, 5), (2, 3, 2), (1, 3, 5), (1, 2, 1))]


@DOT.rule(dynamic_slice, among=("dot_general",), reorders_sums=True, example=_sliced_products)
def slice_of_dot(op: Op, uses: dict[Op, int]) -> Op | None:
    """What nobody else reads of a product need not be computed: slice the operands along their own dims of it."""
    dot, *starts = op.operands
    if not starts or dot.kind.full_name != "stablehlo.dot_general" or uses.get(dot, 0) > 1 or op.type is dot.type:
        return None
    a = dot.attrs
    zero = constant(Array(np.zeros((), starts[0].dtype.np)))
    batch = len(a["lhs_batching_dimensions"])
    at = batch  # the product's first free dim of the operand
    operands = []
    for side, x in zip(("lhs", "rhs"), dot.operands):
        batching, contracted = a[f"{side}_batching_dimensions"], a[f"{side}_contracting_dimensions"]
        free = [d for d in range(x.tensor.rank) if d not in batching and d not in contracted]
        dims = {**dict(zip(batching, range(batch))), **dict(zip(free, range(at, at + len(free))))}
        at += len(free)
        sizes = tuple(op.shape[dims[d]] if d in dims else n for d, n in enumerate(x.shape))
        where = [starts[dims[d]] if d in dims else zero for d in range(x.tensor.rank)]
        operands.append(x if sizes == x.shape else dynamic_slice(x, *where, slice_sizes=sizes))
    return dot.kind.make(operands, a.replace(type=op.type), op.loc)
