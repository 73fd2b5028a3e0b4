"""Random arrays and types, values that hurt among them; what ways to make random programs share. Imports ir."""

from __future__ import annotations

import random
from typing import Any, Final

import numpy as np

from hilo.ir import dtypes
from hilo.ir.dtypes import DType, f32, i1, i32
from hilo.ir.op import Array, Op
from hilo.ir.registry import lookup
from hilo.ir.types import TensorType

SHAPES: Final = ((), (1,), (3,), (7,), (16,), (0,), (2, 3), (1, 3), (3, 1), (3, 2), (0, 3), (5, 17), (2, 1, 3),
                 (2, 3, 4), (4, 0, 2), (1, 1, 1), (2, 2, 3, 2))  # fmt: skip
FLOATS: Final = (0.0, -0.0, 1.0, -1.0, 2.0, 0.5, -8.0, 3.0, 100.0, 1e-40, -1e-5, 3e38, float("inf"), float("-inf"),
                 float("nan"))  # fmt: skip
INTS: Final = (0, 1, -1, 2, 3, 5, 7, 31, 32, 127, -128, 255, 1 << 31, -(1 << 31), (1 << 63) - 1, -(1 << 63))
COMMON: Final = (f32, f32, f32, i32, i32, dtypes.bf16, dtypes.f16, dtypes.f64, dtypes.i8, dtypes.u8, dtypes.i64,
                 dtypes.u32, dtypes.i16, i1, dtypes.c64)  # fmt: skip
RARE: Final = tuple(t for t in dtypes.ALL if t not in COMMON)


def draw(r: random.Random, t: TensorType) -> np.ndarray:
    """A random array of type `t`, half of the time one value everywhere."""
    one = r.random() < 0.3
    values = [_value(r, t.dtype) for _ in range(1 if one else t.size)]
    with np.errstate(all="ignore"):
        a = np.array(values, object if t.dtype.is_int else None).astype(t.dtype.np)
    return np.full(t.shape, a[0]) if one else a.reshape(t.shape)


def _value(r: random.Random, t: DType) -> Any:
    if t is i1:
        return r.random() < 0.5
    if t.is_int:
        x = r.choice(INTS) if r.random() < 0.6 else r.randint(-20, 20)
        low = -(1 << (t.bits - 1)) if t.kind == "i" else 0
        return (x - low) % (1 << t.bits) + low
    if t.is_complex:
        return complex(_value(r, t.part), _value(r, t.part))
    return r.choice(FLOATS) if r.random() < 0.5 else r.gauss(0.0, 2.0)


def any_dtype(r: random.Random) -> DType:
    return r.choice(COMMON) if r.random() < 0.9 else r.choice(RARE)


def constant(value: Any, t: TensorType) -> Op:
    """A constant of type `t` that is `value` (a number, or an array) everywhere."""
    return lookup("stablehlo.constant")(value=Array(np.asarray(value).astype(t.dtype.np), t.shape))


def stablehlo(name: str, *operands: Op, **attrs: Any) -> Op:
    """The op `stablehlo.name`."""
    return lookup(f"stablehlo.{name}")(*operands, **attrs)
