"""What ops that expand into others share: constants, sums, and evaluation by the expansion. Imports ir, ops.

An op whose meaning the specification gives as a program of other ops is evaluated as that program.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from hilo.ir.dims import Number
from hilo.ir.dtypes import DType, from_numpy, i64
from hilo.ir.interpret import run
from hilo.ir.module import region
from hilo.ir.op import Array, Op
from hilo.ir.types import TensorType
from hilo.ops.checks import one_or_tuple
from hilo.ops.constant import constant
from hilo.ops.convert import convert
from hilo.ops.dynamic import get_dimension_size
from hilo.ops.elementwise_arith import add, multiply
from hilo.ops.numeric import narrow
from hilo.ops.reduce import body_of, reduce
from hilo.ops.shape import broadcast_in_dim


def full(value: Any, dtype: DType, shape: Sequence[Number] = ()) -> Op:
    """One value everywhere, rounded to `dtype`: a constant, or a rank-0 one spread to run-time sizes."""
    one = narrow(np.asarray(value, np.float64), dtype) if dtype.is_float else np.asarray(value).astype(dtype.np)
    return everywhere(Array(one), shape)


def everywhere(value: Array, shape: Sequence[Number]) -> Op:
    """A rank-0 array in a shape, some of whose sizes may be known only at run time."""
    if all(isinstance(n, int) for n in shape):
        return constant(value=Array(value.data, shape))
    return spread(constant(value=value), shape, ())


def count(x: Op, dims: Sequence[int], dtype: DType, shape: Sequence[Number] = ()) -> Op:
    """How many elements `x` has along `dims`, rounded to `dtype`, everywhere in `shape`."""
    sizes = [x.shape[d] for d in dims]
    if all(isinstance(n, int) for n in sizes):
        return full(prod(sizes), dtype, shape)
    each = [convert(get_dimension_size(x, dimension=d), type=TensorType(i64)) for d in dims]
    return spread(convert(functools.reduce(multiply, each), type=TensorType(dtype)), shape, ())


def spread(x: Op, shape: Sequence[int], dims: Sequence[int]) -> Op:
    """`x` broadcast to `shape`, its axes becoming `dims`."""
    return broadcast_in_dim(x, broadcast_dimensions=tuple(dims), type=TensorType(x.dtype, shape))


def total(x: Op, dims: Sequence[int]) -> Op:
    """The sum of `x` over `dims`."""
    return reduce(x, full(0, x.dtype), dimensions=tuple(dims), body=body_of(add, x.dtype))


def by_expansion(expand: Callable[..., Any]) -> Callable[..., Any]:
    """`evaluate` as what `expand` means."""

    def evaluate(*arrays: np.ndarray, **attrs: Any) -> Any:
        types = [TensorType(from_numpy(x.dtype), x.shape) for x in arrays]
        return one_or_tuple(run(region(types, lambda *xs: expand(*xs, **attrs)), arrays))

    return evaluate
