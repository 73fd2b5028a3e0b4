"""When an expected result and ours differ: which one is right? The same program in f64 decides. Imports ir.

The corpus holds what one compiler computed, which for some functions (cosh of large arguments, complex powers) lies
further from the true value than the check allows. A result passes as well if it lies within the check's tolerance of
the program evaluated in f64 *and* the expected value lies further away than it does. That one must still be within
NEAR ulps: the arbiter settles last digits, it does not excuse a result that means something else.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir.dtypes import DType, c64, c128, f32, f64
from hilo.ir.interpret import interpret
from hilo.ir.module import Function, Module, parameter
from hilo.ir.op import GET, PARAMETER, Array, Op
from hilo.ir.types import FutureType, Results, TensorType, TupleType, Type

NEAR: Final = 32
WIDER: Final[dict[DType, DType]] = {f32: f64, c64: c128}
# What looks at a value's bits or digits, so that it means something else in f64.
EXACT: Final = ("bitcast_convert", "reduce_precision", "rng_bit_generator", "convert", "next_after")


def in_f64(module: Module, inputs: list[np.ndarray]) -> list[Any] | None:
    """The results of `main` with f64 and complex128 in place of f32 and complex64; None if it has no such form."""
    try:
        wide = module.replace({name: widened(f) for name, f in module.functions.items()})
        return interpret(wide, [_wide_array(x) for x in inputs])
    except Error:
        return None


def widened(f: Function) -> Function:
    """`f` with f64 and complex128 in place of f32 and complex64. Raises `Error` if an op does not allow that."""
    new: dict[Op, Op] = {}
    for o in f.ops:
        if o.kind is PARAMETER:
            new[o] = parameter(o.attrs["index"], _wide_type(o.type), o.loc)
        elif o.kind is GET:
            new[o] = new[o.operands[0]].results()[o.attrs["index"]]
        elif o.kind.name in EXACT:
            raise Error(f"{o.kind.name} has no form in f64", loc=o.loc)
        else:
            attrs = {k: _wide(v) for k, v in o.attrs.items()}
            new[o] = o.kind.make([new[x] for x in o.operands], o.attrs.replace(**attrs), o.loc)
    return f.replace(
        params=[new[p] for p in f.params], ops=[new[o] for o in f.ops], results=[new[r] for r in f.results]
    )


def _wide(value: Any) -> Any:
    if isinstance(value, Function):
        return widened(value)
    if isinstance(value, Array):
        return Array(_wide_array(value.data))
    if isinstance(value, Type):
        return _wide_type(value)
    if isinstance(value, tuple):
        return tuple(map(_wide, value))
    return value


def _wide_type(t: Type) -> Type:
    if isinstance(t, TensorType):
        return t.with_dtype(WIDER.get(t.dtype, t.dtype))
    if isinstance(t, FutureType | Results | TupleType):
        return type(t)(map(_wide_type, t))
    return t


def _wide_array(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float64) if x.dtype == np.float32 else x.astype(np.complex128) if x.dtype == np.complex64 else x


def closer(got: np.ndarray, want: np.ndarray, truth: np.ndarray, ulps: int, absolute: float) -> np.ndarray:
    """Where `got` is within `ulps` (or `absolute`) of `truth`, and `want` further from it than `got`, but near.

    An ulp of a complex number is one of the larger of its parts: that is what functions of complex numbers promise.
    """
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(np.real(truth)), np.abs(np.imag(truth)))
        unit = np.spacing(size.astype(np.real(got).dtype)).astype(np.float64)
        ours, theirs = np.abs(got - truth), np.abs(want - truth)
        good = (ours <= np.maximum(ulps * unit, absolute)) & np.isfinite(ours)
        return np.asarray(good & (theirs > ours) & (theirs <= np.maximum(NEAR * unit, absolute)))
