"""CHLO ops on integers and shapes: mulhi, dynamic_reshape. They expand. Imports ir, ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.ir.dtypes import DType, f32, from_numpy, i8, i32, i64, u8, u16, u32, u64
from hilo.ir.op import Op
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops.convert import bitcast_convert, convert
from hilo.ops.decompose import full
from hilo.ops.dynamic_shape import dynamic_reshape
from hilo.ops.elementwise_arith import add, multiply, subtract
from hilo.ops.elementwise_base import binary, flops, pointwise
from hilo.ops.elementwise_bits import and_, shift_right_arithmetic, shift_right_logical
from hilo.ops.sharding import unsharded


def _as(x: Op, d: DType) -> Op:
    return x if x.dtype is d else convert(x, type=x.tensor.with_dtype(d))


def _bits(x: Op, d: DType) -> Op:
    return x if x.dtype is d else bitcast_convert(x, type=x.tensor.with_dtype(d))


def _high_64(x: Op, y: Op) -> Op:
    """The upper half of the product of two u64, of products of their halves."""
    shape = x.shape
    mask, half = full(0xFFFFFFFF, u64, shape), full(32, u64, shape)

    def low(v: Op) -> Op:
        return and_(v, mask)

    def high(v: Op) -> Op:
        return shift_right_logical(v, half)

    first = add(multiply(high(x), low(y)), high(multiply(low(x), low(y))))
    second = add(multiply(low(x), high(y)), low(first))
    return add(multiply(high(x), high(y)), add(high(first), high(second)))


@op("mulhi", dialect="chlo")
class mulhi:
    """The upper half of the product of twice the width. Integers."""

    infer = binary("iu")

    @staticmethod
    def evaluate(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        d = from_numpy(x.dtype)
        product = np.asarray(x.astype(object) * y.astype(object)) // (1 << d.bits)  # floor: the sign stays
        return np.asarray(product).astype(np.int64 if d.kind == "i" else np.uint64).astype(d.np)

    @staticmethod
    def expand(x: Op, y: Op) -> Op:
        d, shape = x.dtype, x.shape
        wide = i64 if d.kind == "i" else u64
        if d.bits < 64:
            shift = shift_right_arithmetic if d.kind == "i" else shift_right_logical
            return _as(shift(multiply(_as(x, wide), _as(y, wide)), full(d.bits, wide, shape)), d)
        high = _bits(_high_64(_bits(x, u64), _bits(y, u64)), d)
        if d.kind == "u":
            return high
        last = full(63, i64, shape)  # a negative number counts as 2^64 more: take the other one off
        for a, b in ((x, y), (y, x)):
            high = subtract(high, and_(shift_right_arithmetic(a, last), b))
        return high

    sharding = pointwise
    cost = flops(4)
    examples = [
        ((TensorType(d, s),) * 2, {})
        for d, s in ((i8, (9,)), (u8, ()), (u16, (3,)), (i32, (2, 3)), (u32, (17,)), (i64, (33,)), (u64, (5,)))
    ]


@op("dynamic_reshape", dialect="chlo", typed=True)
class chlo_dynamic_reshape:
    """`stablehlo.dynamic_reshape`, in CHLO."""

    @staticmethod
    def infer(x: Type, output_shape: Type, *, type: Type) -> Type:  # noqa: A002
        return dynamic_reshape.infer(x, output_shape, type=type)

    @staticmethod
    def evaluate(x: np.ndarray, output_shape: np.ndarray, *, type: TensorType) -> Any:  # noqa: A002
        assert dynamic_reshape.evaluate is not None
        return dynamic_reshape.evaluate(x, output_shape, type=type)

    @staticmethod
    def expand(x: Op, output_shape: Op, *, type: TensorType) -> Op:  # noqa: A002
        return dynamic_reshape(x, output_shape, type=type)

    sharding = unsharded
    examples = [((TensorType(f32, (2, 3)), TensorType(i32, (1,))), {"type": TensorType(f32, (6,))})]
