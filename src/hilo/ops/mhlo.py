"""What is left of MHLO in programs that frameworks print: copy, bitcast, add_dependency, topk. They expand.

Its other ops go by the names that they have in StableHLO and CHLO. Imports ir, ops.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import Unsupported, require
from hilo.ir.dtypes import DType, bf16, f32, i8, i32, u32
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import TOKEN, Results, TensorType, Type
from hilo.ops.checks import tensor
from hilo.ops.convert import bitcast_convert
from hilo.ops.decompose import by_expansion
from hilo.ops.elementwise_base import pointwise
from hilo.ops.shape import iota, reshape
from hilo.ops.sharding import unsharded
from hilo.ops.slicing import slice_
from hilo.ops.sort import ordered_by, sort, top_k


@op("copy", dialect="mhlo")
class copy:
    """The operand, in a place of its own. Any type. Source: MHLO."""

    attrs = {"cross_program_prefetch_index": None}

    @staticmethod
    def infer(x: Type, *, cross_program_prefetch_index: int | None) -> Type:
        return x

    @staticmethod
    def evaluate(x: Any, **_: Any) -> Any:
        return x

    @staticmethod
    def expand(x: Op, **_: Any) -> Op:
        return x

    sharding = pointwise
    examples = [((TensorType(f32, (2, 3)),), {}), ((TensorType(i8),), {})]


@op("add_dependency", dialect="mhlo")
class add_dependency:
    """The first operand, after the token. Source: MHLO."""

    @staticmethod
    def infer(x: Type, token: Type) -> Type:
        require(token is TOKEN, "", "the second operand must be a token, not {t}", t=token)
        return x

    @staticmethod
    def evaluate(x: Any, token: Any) -> Any:
        return x

    @staticmethod
    def expand(x: Op, token: Op) -> Op:
        return x

    sharding = unsharded
    examples = [((TensorType(f32, (2, 3)), TOKEN), {})]


def _bitcast(x: Op, *, type: TensorType, **_: Any) -> Op:  # noqa: A002
    same = x.dtype is type.dtype
    if same:
        return x if x.type is type else reshape(x, type=type)
    flat = _split(x, type.dtype)
    return flat if flat.type is type else reshape(flat, type=type)


def _split(x: Op, d: DType) -> Op:
    """The bits of `x` read as `d`, as a vector."""
    n, ratio = int(x.tensor.size), x.dtype.bits // d.bits
    if ratio:
        shape = (n, ratio) if ratio > 1 else (n,)
        return bitcast_convert(reshape(x, type=TensorType(x.dtype, (n,))), type=TensorType(d, shape))
    ratio = d.bits // x.dtype.bits
    return bitcast_convert(reshape(x, type=TensorType(x.dtype, (n // ratio, ratio))), type=TensorType(d, (n // ratio,)))


@op("bitcast", dialect="mhlo", typed=True)
class bitcast:
    """The same bytes as another type of the same size; row-major. Layouts other than that are refused. Source: MHLO."""

    attrs = {"source_layout": None, "result_layout": None}

    @staticmethod
    def infer(x: Type, *, type: Type, source_layout: Any, result_layout: Any) -> Type:  # noqa: A002
        a, b = tensor(x), tensor(type)
        for t, layout in ((a, source_layout), (b, result_layout)):
            if layout is not None and tuple(layout) != tuple(reversed(range(t.rank))):
                raise Unsupported(f"a bitcast with the layout {layout}")
        require(a.is_static and b.is_static and a.size * a.dtype.bits == b.size * b.dtype.bits, "",
                "{a} and {b} differ in size", a=a, b=b)  # fmt: skip
        return b

    evaluate = staticmethod(by_expansion(_bitcast))
    expand = staticmethod(_bitcast)
    sharding = unsharded
    examples = [((TensorType(a, s),), {"type": TensorType(b, t)}) for a, s, b, t in (
        (f32, (2, 3), f32, (6,)), (f32, (2, 3), u32, (3, 2)), (f32, (4,), bf16, (2, 4)), (i8, (2, 4), i32, (2,)),
        (f32, (), f32, (1,)))]  # fmt: skip


@op("topk", dialect="mhlo")
class topk:
    """The `k` largest (or smallest) elements along the last axis, in order, and their i32 indices. Source: MHLO."""

    attrs = {"largest": True}

    @staticmethod
    def infer(x: Type, *, k: int, largest: bool) -> Type:
        return top_k.infer(x, k=k, is_stable=True)

    @staticmethod
    def expand(x: Op, *, k: int, largest: bool) -> tuple[Op, ...]:
        if largest:
            return top_k(x, k=k).results()
        t = x.tensor
        numbers = iota(iota_dimension=t.rank - 1, type=t.with_dtype(i32))
        order = ordered_by("LT", t.dtype, i32, compare_type="TOTALORDER" if t.dtype.is_float else "NOTYPE")
        both = sort(x, numbers, is_stable=True, comparator=order).results()
        cut = {"start_indices": (0,) * t.rank, "limit_indices": (*t.shape[:-1], k), "strides": (1,) * t.rank}
        return tuple(slice_(v, **cut) for v in both)

    @staticmethod
    def evaluate(x: np.ndarray, *, k: int, largest: bool) -> Any:
        return by_expansion(topk.expand)(x, k=k, largest=largest)  # type: ignore[arg-type]

    @staticmethod
    def sharding(x: TensorType, *, out: Results, k: int, largest: bool) -> str:
        return top_k.sharding(x, out=out, k=k, is_stable=True)

    examples = [((TensorType(f32, (3, 9)),), {"k": 4}), ((TensorType(i8, (7,)),), {"k": 3, "largest": False}),
                ((TensorType(bf16, (2, 5)),), {"k": 5, "largest": False})]  # fmt: skip
