"""Making and taking apart complex numbers: complex, real, imag. Imports ir, loop."""

from __future__ import annotations

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import c64, c128, f32, f64, from_numpy
from hilo.ir.registry import op
from hilo.ir.types import TensorType, Type
from hilo.ops.elementwise_base import arith, examples, pointwise, same_types
from hilo.ops.numeric import Arr


@op("complex")
class complex_:
    """The complex number `lhs + i rhs`. f32, f64. Spec: complex."""

    @staticmethod
    def infer(re: Type, im: Type) -> Type:
        t = same_types((re, im), "f")
        require(t.dtype in (f32, f64), "I1", "takes f32 or f64 parts, not {t}", t=t)
        return t.with_dtype(c64 if t.dtype is f32 else c128)

    @staticmethod
    def evaluate(re: Arr, im: Arr) -> Arr:
        out = np.empty(re.shape, np.complex64 if re.dtype == np.float32 else np.complex128)
        out.real, out.imag = re, im
        return out

    scalar = arith("complex_")
    sharding = pointwise
    examples = lambda: [((TensorType(d, s),) * 2, {}) for d in (f32, f64) for s in ((), (5,), (2, 0))]


def _part(x: Type) -> Type:
    t = same_types((x,), "fc")
    return t.with_dtype(t.dtype.part)


@op("real")
class real:
    """The real part; of a float the float itself. Floats, complex. Spec: real."""

    infer = _part

    @staticmethod
    def evaluate(x: Arr) -> Arr:
        return np.ascontiguousarray(x.real).reshape(x.shape) if from_numpy(x.dtype).is_complex else x

    scalar = arith("real")
    sharding = pointwise
    examples = examples("fc")


@op("imag")
class imag:
    """The imaginary part; of a float 0. Floats, complex. Spec: imag."""

    infer = _part

    @staticmethod
    def evaluate(x: Arr) -> Arr:
        return np.ascontiguousarray(x.imag).reshape(x.shape) if from_numpy(x.dtype).is_complex else np.zeros_like(x)

    scalar = arith("imag")
    sharding = pointwise
    examples = examples("fc")
