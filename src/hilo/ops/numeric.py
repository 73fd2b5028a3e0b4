"""Reference numerics: what an op's `evaluate` is made of. Imports ir.dtypes; `ops.rounding` is loaded when a function
of it is first called, since what is compiled needs none.

Every function takes and gives arrays (0-d ones stay arrays) and lets no floating-point warning out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.ir.dtypes import from_numpy
from hilo.later import Later

if TYPE_CHECKING:
    from hilo.ops.rounding import (  # noqa: F401
        bf16_bits,
        convert,
        count_leading_zeros,
        float_to_int,
        format_bits,
        int_divide,
        int_power,
        int_range,
        int_remainder,
        int_to_float,
        lexicographic,
        maximum,
        minimum,
        narrow,
        odd_f32,
        popcnt,
        power,
        reduce_precision,
        shift,
        total_order,
        widen,
        wrap_int,
    )
else:
    _rounding = Later("hilo.ops.rounding")
    for _name in (
        "bf16_bits", "convert", "count_leading_zeros", "float_to_int", "format_bits", "int_divide", "int_power",
        "int_range", "int_remainder", "int_to_float", "lexicographic", "maximum", "minimum", "narrow", "odd_f32",
        "popcnt", "power", "reduce_precision", "shift", "total_order", "widen", "wrap_int",
    ):  # fmt: skip
        globals()[_name] = getattr(_rounding, _name)

Arr = np.ndarray[Any, Any]
LD: Any = np.longdouble


def quiet(fn: Callable[..., Arr]) -> Callable[..., Arr]:
    """`fn` with numpy's floating-point warnings off, and 0-d results as arrays."""

    def run(*args: Any, **kwargs: Any) -> Arr:
        with np.errstate(all="ignore"):
            return np.asarray(fn(*args, **kwargs))

    run.__name__, run.__doc__ = fn.__name__, fn.__doc__
    return run


def elementwise(fn: Callable[..., Any]) -> Callable[..., Arr]:
    """The reference of a float or complex function: `fn` in the wider type, rounded once to the operands' type."""

    def evaluate(*xs: Arr, **_: Any) -> Arr:
        with np.errstate(all="ignore"):
            return narrow(fn(*map(widen, xs)), from_numpy(xs[0].dtype))

    return evaluate


def arithmetic(fn: Callable[..., Any]) -> Callable[..., Arr]:
    """The reference of an exactly rounded operation: in the type itself, or in f64 for floats narrower than f32.

    f64 has more than twice the bits of those, so rounding its correctly rounded result again changes nothing.
    """

    def evaluate(*xs: Arr) -> Arr:
        t = from_numpy(xs[0].dtype)
        with np.errstate(all="ignore"):
            if t.is_float and t.bits < 32:
                return narrow(fn(*(x.astype(np.float64) for x in xs)), t)
            return np.asarray(fn(*xs), dtype=t.np)

    return evaluate


def exact_int(fn: Callable[..., Any]) -> Callable[..., Arr]:
    """The reference of an integer operation: on 64-bit integers of the operands' sign, wrapped."""

    def evaluate(*xs: Arr) -> Arr:
        t = from_numpy(xs[0].dtype)
        held = np.int64 if t.kind == "i" else np.uint64
        with np.errstate(all="ignore"):
            wide = (
                x.astype(np.int8 if t.kind == "i" else np.uint8).astype(held) if t.bits < 8 else x.astype(held)
                for x in xs
            )
            return wrap_int(np.asarray(fn(*wide)), t)

    return evaluate
