"""Runs a function on hilo and on TensorFlow's own jit, each with variables of its own, and compares all there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import hilo.tensorflow

#: What makes a case: (function, the variables it uses). Made twice, so that no state is shared.
Make = Callable[[], tuple[Callable[..., Any], Sequence[Any]]]


def theirs(f: Callable[..., Any]) -> Any:
    return tf.function(f, jit_compile=True)


def check(make: Make, args: Sequence[Any], calls: int = 2, rtol: float = 1e-5, atol: float = 1e-6) -> None:
    """Outputs of each of `calls` calls, their structure, dtypes and shapes, and the variables after all of them."""
    (ours, our_variables), (other, other_variables) = make(), make()
    mine, xla = hilo.tensorflow.function(ours), theirs(other)
    for _ in range(calls):
        same(mine(*args), xla(*args), rtol, atol)
    for a, b in zip(our_variables, other_variables, strict=True):
        close(a, b, rtol, atol)


def same(ours: Any, other: Any, rtol: float, atol: float) -> None:
    tf.nest.assert_same_structure(ours, other, expand_composites=True)
    pairs = zip(tf.nest.flatten(ours, expand_composites=True), tf.nest.flatten(other, expand_composites=True))
    for a, b in pairs:
        if tf.is_tensor(b):
            close(a, b, rtol, atol)
        else:
            assert a == b


def close(a: Any, b: Any, rtol: float, atol: float) -> None:
    assert a.dtype == b.dtype
    assert a.shape == b.shape
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype.kind not in "biufc":
        x, y = x.astype(np.float32), y.astype(np.float32)
    np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)
