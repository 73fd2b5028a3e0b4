"""Elementwise comparison and choice: compare, select, clamp, is_finite. Imports ir, loop."""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import bf16, c64, f16, f32, f64, from_numpy, i1, i32, u8
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops import numeric
from hilo.ops.checks import same_shape, tensors
from hilo.ops.elementwise_base import arith, check_kinds, examples, lowering, merge, pointwise, same_types
from hilo.ops.numeric import Arr

DIRECTIONS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}
_TYPES = {"b": ("UNSIGNED",), "u": ("UNSIGNED",), "i": ("SIGNED",), "f": ("FLOAT", "TOTALORDER"), "c": ("FLOAT",)}
_SIGNS = {"GE": ">=", "GT": ">", "LE": "<=", "LT": "<"}


@op("compare")
class compare:
    """Whether `lhs` and `rhs` stand in a relation; gives booleans. Any element type. Spec: compare.

    `comparison_direction`: EQ NE GE GT LE LT. `compare_type`: SIGNED, UNSIGNED (booleans too), FLOAT or TOTALORDER
    (floats: -NaN < -inf < -0 < 0 < inf < NaN, equal only where the bits are); NOTYPE, the default, goes by the element
    type. Complex numbers compare by (real, imag).
    """

    attrs = {"compare_type": "NOTYPE"}

    @staticmethod
    def infer(x: Type, y: Type, *, comparison_direction: str, compare_type: str = "NOTYPE") -> Type:
        a, b = tensors((x, y))
        require(a.dtype is b.dtype, "C1", "operands must have one element type, not {a} and {b}", a=a, b=b)
        require(same_shape(a.shape, b.shape), "C2", "operands must have one shape, not {a} and {b}", a=a, b=b)
        require(comparison_direction in DIRECTIONS, "I3", "unknown comparison_direction {d}", d=comparison_direction)
        known = _TYPES[a.dtype.kind]
        require(compare_type == "NOTYPE" or compare_type in known, "C3",
                "compare_type of {a} must be {known}, not {t}", a=a,
                known=" or ".join(known), t=compare_type)  # fmt: skip
        return merge(a, b).with_dtype(i1)

    @staticmethod
    @numeric.quiet
    def evaluate(x: Arr, y: Arr, *, comparison_direction: str, compare_type: str = "NOTYPE") -> Arr:
        t = from_numpy(x.dtype)
        if compare_type == "TOTALORDER":
            x, y = numeric.total_order(x), numeric.total_order(y)
        elif t.is_complex and comparison_direction in _SIGNS:
            return np.asarray(numeric.lexicographic(x, y, _SIGNS[comparison_direction]))
        elif t.bits < 32 and t.is_float:
            x, y = x.astype(np.float32), y.astype(np.float32)
        return np.asarray(DIRECTIONS[comparison_direction](x, y), np.bool_)

    @staticmethod
    def scalar(
        b: Any, out: TensorType, x: Any, y: Any, *, comparison_direction: str, compare_type: str, **_: Any
    ) -> Any:
        return lowering("arith", "compare")(b, x, y, comparison_direction, total_order=compare_type == "TOTALORDER")

    sharding = pointwise
    examples = lambda: [
        *examples("biufc", 2, comparison_direction="EQ")(),
        *examples("biuf", 2, comparison_direction="LT")(),
        *[
            ((TensorType(d, (9,)),) * 2, {"comparison_direction": "GE", "compare_type": "TOTALORDER"})
            for d in (bf16, f16, f32, f64)
        ],
        *[((TensorType(c64, (5,)),) * 2, {"comparison_direction": d}) for d in ("NE", "GE", "GT", "LE", "LT")],
    ]


@op("select")
class select:
    """`on_true` where `pred`, else `on_false`; a rank-0 `pred` chooses for all elements.

    Any element type. The scalar piece sees a rank-0 `pred` as a value shared by all lanes (one lane): kernels broadcast
    rank-0 operands. Spec: select.
    """

    @staticmethod
    def infer(pred: Type, on_true: Type, on_false: Type) -> Type:
        p = tensors((pred,))[0]
        check_kinds(p, "b")
        t = same_types((on_true, on_false), "biufc", "C2")
        require(p.rank == 0 or same_shape(p.shape, t.shape), "C1", "pred {p} does not fit {t}", p=p, t=t)
        return t if p.rank == 0 else merge(t, p.with_dtype(t.dtype))

    @staticmethod
    def evaluate(pred: Arr, on_true: Arr, on_false: Arr) -> Arr:
        return np.asarray(np.where(pred, on_true, on_false))

    scalar = arith("select")
    sharding = pointwise
    examples = lambda: [
        *[((t.with_dtype(i1), t, t), {}) for (t,), _ in examples("biufc")()],
        ((TensorType(i1), TensorType(f32, (5,)), TensorType(f32, (5,))), {}),
        ((TensorType(i1), TensorType(c64), TensorType(c64)), {}),
    ]


@op("clamp")
class clamp:
    """`minimum(maximum(operand, min), max)`; rank-0 bounds hold for all elements. Any element type. Spec: clamp.

    The scalar piece sees rank-0 bounds as values shared by all lanes: kernels broadcast rank-0 operands.
    """

    @staticmethod
    def infer(min: Type, x: Type, max: Type) -> Type:  # noqa: A002
        lo, t, hi = tensors((min, x, max))
        require(lo.dtype is t.dtype is hi.dtype, "C3", "operands must have one element type, not {lo}, {t}, {hi}",
                lo=lo, t=t, hi=hi)  # fmt: skip
        require(lo.rank == 0 or same_shape(lo.shape, t.shape), "C1", "min {lo} does not fit {t}", lo=lo, t=t)
        require(hi.rank == 0 or same_shape(hi.shape, t.shape), "C2", "max {hi} does not fit {t}", hi=hi, t=t)
        return merge(t, *(s for s in (lo, hi) if s.rank))

    @staticmethod
    def evaluate(lo: Arr, x: Arr, hi: Arr) -> Arr:
        return np.asarray(numeric.minimum(numeric.maximum(x, lo), hi))

    scalar = arith("clamp")
    sharding = pointwise
    examples = lambda: [
        *examples("biufc", 3)(),
        ((TensorType(f32), TensorType(f32, (2, 3)), TensorType(f32)), {}),
        ((TensorType(i32), TensorType(i32, (5,)), TensorType(i32, (5,))), {}),
        ((TensorType(u8, (5,)), TensorType(u8, (5,)), TensorType(u8)), {}),
    ]


@op("is_finite")
class is_finite:
    """Whether the operand is neither infinite nor NaN; gives booleans. Floats. Spec: is_finite."""

    @staticmethod
    def infer(x: Type) -> Type:
        return same_types((x,), "f").with_dtype(i1)

    @staticmethod
    @numeric.quiet
    def evaluate(x: Arr) -> Arr:
        return np.isfinite(x)

    scalar = arith("is_finite")
    sharding = pointwise
    examples = examples("f")
