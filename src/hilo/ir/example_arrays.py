"""Random arrays to run programs on. Imports ir.types."""

from __future__ import annotations

import numpy as np

from hilo.errors import Error
from hilo.ir.types import TensorType


def random_array(t: TensorType, rng: np.random.Generator) -> np.ndarray:
    """A random array of a tensor type: normal floats, small non-negative integers, fair bits."""
    kind, np_type = t.dtype.kind, t.dtype.np
    if not t.is_static:
        raise Error(f"{t} has a dimension that is known only at run time: give an array")
    if kind == "b":
        return rng.integers(0, 2, t.shape).astype(bool)
    if kind in "iu":
        return rng.integers(0, min(10, 2 ** (t.dtype.bits - 1)), t.shape).astype(np_type)
    if kind == "c":
        return (rng.standard_normal(t.shape) + 1j * rng.standard_normal(t.shape)).astype(np_type)
    return np.asarray(rng.standard_normal(t.shape, np.float32)).astype(np_type)
