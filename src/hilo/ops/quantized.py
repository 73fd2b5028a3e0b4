"""Quantized numbers: uniform_quantize, uniform_dequantize, and the arithmetic behind them. Imports ir, ops.

What the other ops mean on quantized tensors is in ops/quantized_rules.py.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hilo.errors import VerifyError, require
from hilo.ir.dtypes import f32, i8
from hilo.ir.quantized import RULES, check_fits, quantization, quantized
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops import numeric
from hilo.ops.checks import same_shape, tensor
from hilo.ops.elementwise_base import pointwise
from hilo.ops.numeric import Arr


# ---- numbers
def parameters(t: TensorType) -> tuple[Arr, Arr]:
    """Scales (of the expressed type) and zero points (i64) of a quantized tensor type, to be broadcast over it."""
    q = quantization(t)
    assert q is not None
    shape = q.shape
    if q.is_per_axis:
        shape = tuple(n if d == q.axes[0] else 1 for d, n in enumerate(t.shape))
    scales = numeric.convert(np.array(q.scales).reshape(shape), q.expressed)
    zeros = np.array(q.zero_points, np.int64).reshape(shape)
    for axis, n in zip(q.axes, q.blocks):
        scales, zeros = np.repeat(scales, n, axis), np.repeat(zeros, n, axis)
    return scales, zeros


def dequantize(x: Arr, t: TensorType) -> Arr:
    """Stored integers of the quantized type `t` as the floats that they stand for."""
    q = quantization(t)
    assert q is not None
    scales, zeros = parameters(t)
    difference = numeric.convert(numeric.convert(x, _I64) - zeros, q.expressed)
    return _multiply(difference, np.broadcast_to(scales, difference.shape))


def quantize(x: Arr, t: TensorType) -> Arr:
    """Floats as stored integers of the quantized type `t`: nearest, ties to even, cut off at the ends; NaN gives 0."""
    q = quantization(t)
    assert q is not None
    scales, zeros = parameters(t)
    scaled = _divide(x, np.broadcast_to(scales, x.shape))
    moved = _add(scaled, np.broadcast_to(numeric.convert(zeros, q.expressed), x.shape))
    low, high = (numeric.convert(np.array(v, np.int64), q.expressed) for v in (q.low, q.high))
    inside = numeric.minimum(numeric.maximum(moved, low), high)
    return numeric.convert(_rint(inside), q.storage)


_multiply, _divide, _add, _rint = map(numeric.arithmetic, (np.multiply, np.divide, np.add, np.rint))
_I64 = numeric.from_numpy(np.int64)


# ---- the two ops
class _Uniform:
    """uniform_quantize and uniform_dequantize, which know their types."""

    by_storage = False

    def infer(self, kind: Any, types: tuple[Type, ...], attrs: dict[str, Any]) -> Type:
        return kind.infer(*types, **attrs)

    def evaluate(self, o: Any, arrays: list[Any], attrs: dict[str, Any]) -> Any:
        (x,), t = arrays, o.operands[0].tensor
        value = dequantize(x, t) if quantization(t) else x
        return quantize(value, o.tensor) if quantization(o.type) else value


RULES.update({f"stablehlo.uniform_{name}": _Uniform() for name in ("quantize", "dequantize")})
_Q8: Final = quantized(i8, f32, [0.1], [-30])


@op("uniform_quantize", typed=True)
class uniform_quantize:
    """The nearest quantized numbers to floats, or to quantized numbers of another type. Spec: uniform_quantize.

    `x / scale + zero_point`, cut off at the storage type's bounds, rounded to the nearest integer, ties to even.
    """

    @staticmethod
    def infer(x: Type, *, type: Type) -> Type:  # noqa: A002
        s, t = tensor(x), tensor(type)
        q, p = quantization(t), quantization(s)
        require(s.dtype.is_float or p is not None, "I1", "takes floats or quantized numbers, not {s}", s=s)
        require(q is not None, "O1", "the result must be quantized, not {t}", t=t)
        assert q is not None
        require(same_shape(s.shape, t.shape), "C1", "{s} and {t} must have one shape", s=s, t=t)
        require(q.expressed is (s.dtype if p is None else p.expressed), "C2",
                "the expressed type of {t} must be that of {s}", s=s, t=t)  # fmt: skip
        for each in (s, t):
            check_fits(each)
        return t

    @staticmethod
    def evaluate(x: Arr, *, type: TensorType) -> Arr:  # noqa: A002
        return quantize(x, type)

    sharding = pointwise
    examples = [((TensorType(f32, (5,)),), {"type": TensorType(_Q8, (5,))})]


@op("uniform_dequantize", typed=True)
class uniform_dequantize:
    """The floats that quantized numbers stand for: `(x - zero_point) * scale`. Spec: uniform_dequantize."""

    @staticmethod
    def infer(x: Type, *, type: Type | None = None) -> Type:  # noqa: A002
        s = tensor(x)
        q = quantization(s)
        require(q is not None, "I1", "takes quantized numbers, not {s}", s=s)
        assert q is not None
        check_fits(s)
        t = TensorType(q.expressed, s.shape) if type is None else tensor(type)
        require(same_shape(s.shape, t.shape), "C1", "{s} and {t} must have one shape", s=s, t=t)
        require(t.dtype is q.expressed, "C2", "the result must be of {e}, not {t}", e=q.expressed, t=t)
        return t

    @staticmethod
    def evaluate(x: Arr, *, type: TensorType) -> Arr:  # noqa: A002
        raise VerifyError("the scale of a tensor is in its type")

    sharding = pointwise
    examples = [((TensorType(_Q8, (5,)),), {"type": TensorType(f32, (5,))})]
