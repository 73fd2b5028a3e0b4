"""Custom calls by which JAX writes ops whose sizes are operands, for the interpreter. Imports ir and siblings.

Compiled code knows them as the plain ops (passes/shape_calls.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hilo.custom_calls.registry import register
from hilo.custom_calls.site import CallSite
from hilo.custom_calls.topk import approx_top_k
from hilo.errors import Error
from hilo.ir.interpret import callee
from hilo.ir.registry import lookup
from hilo.ir.types import Results, TensorType


def _evaluate(name: str, *arrays: np.ndarray, **attrs: Any) -> list[np.ndarray]:
    kind = lookup(name)
    assert kind.evaluate is not None
    out = kind.evaluate(*arrays, **{**kind.attrs, **attrs})
    return list(out) if isinstance(out, tuple) else [out]


def _numbers(x: np.ndarray) -> tuple[int, ...]:
    return tuple(int(n) for n in x.reshape(-1))


def reduce_window(*operands: np.ndarray, call: CallSite) -> list[np.ndarray]:
    """inputs, inits, then sizes, strides, base and window dilations, and padding of the windows -> what each holds"""
    n = (len(operands) - 5) // 2
    if n < 1 or len(operands) != 2 * n + 5 or len(call.computations) != 1:
        raise Error("inputs, as many inits, five operands for the windows, and a function that combines, are wanted")
    size, strides, base, dilation, padding = map(_numbers, operands[2 * n :])
    return _evaluate(
        "stablehlo.reduce_window", *operands[: 2 * n], window_dimensions=size, window_strides=strides,
        base_dilations=base, window_dilations=dilation, padding=tuple(zip(padding[::2], padding[1::2], strict=True)),
        body=callee(call.computations[0].__name__),
    )  # fmt: skip


def rng_bit_generator(state: np.ndarray, shape: np.ndarray, *, results: Sequence[TensorType],
                      call: CallSite) -> list[np.ndarray]:  # fmt: skip
    """state, shape -> the next state, numbers"""
    t = Results([results[0], results[1].with_shape(_numbers(shape))])
    return _evaluate("stablehlo.rng_bit_generator", state, type=t,
                     rng_algorithm=str(call.more.get("rng_algorithm", "DEFAULT")))  # fmt: skip


def top_k(x: np.ndarray, k: np.ndarray) -> list[np.ndarray]:
    """x, k -> the k largest elements along the last axis, and where they are"""
    if not 0 <= int(k) <= x.shape[-1]:
        raise Error(f"top_k takes {int(k)} elements of an axis of size {x.shape[-1]}")
    return _evaluate("chlo.top_k", x, k=int(k))


def approx(*operands: np.ndarray, results: Sequence[TensorType], call: CallSite) -> list[np.ndarray]:
    """inputs, inits, k -> the first k elements in the order that the call's function gives"""
    *arrays, k = operands
    d = int(call.attributes.get("reduction_dim", -1)) % arrays[0].ndim
    if not 0 <= int(k) <= arrays[0].shape[d]:
        raise Error(f"top_k takes {int(k)} elements of an axis of size {arrays[0].shape[d]}")
    shape = [int(k) if i == d else m for i, m in enumerate(arrays[0].shape)]
    return approx_top_k(*arrays, results=[t.with_shape(shape) for t in results], call=call, axis=d)


for name, function in {
    "dynamic_reduce_window": reduce_window,
    "dynamic_rng_bit_generator": rng_bit_generator,
    "dynamic_top_k": top_k,
    "dynamic_approx_top_k": approx,
}.items():
    register(f"stablehlo.{name}", function, builtin=True)
