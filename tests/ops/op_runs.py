"""Running one op on arrays: through its numpy semantics, and (index-moving ops) element by element as loop IR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from hilo.errors import VerifyError
from hilo.ir.dtypes import from_numpy
from hilo.ir.interpret import evaluate
from hilo.ir.module import parameter
from hilo.ir.op import Op, OpDef
from hilo.ir.types import TensorType, Type
from hilo.kernels.memory import Buffer
from hilo.loop import index, interpret
from hilo.loop.builder import I64, PTR, Builder, Func
from hilo.ops.fusion import Elements


def type_of(x: Any) -> Type:
    return TensorType(from_numpy(x.dtype), x.shape)


def run_op(kind: OpDef, *arrays: np.ndarray, **attrs: Any) -> Any:
    """The op's value on these arrays, after checking that its dtype and shape are what `infer` says."""
    arrays = tuple(map(np.asarray, arrays))
    o = kind(*(parameter(i, type_of(a)) for i, a in enumerate(arrays)), **attrs)
    value = evaluate(o, arrays)
    if isinstance(o.type, TensorType):
        assert type_of(value) is o.type
    else:
        assert [type_of(v) for v in value] == list(o.type)  # type: ignore[call-overload]
    return value


def run_elements(kind: OpDef, *arrays: np.ndarray, lanes: int = 1, **attrs: Any) -> np.ndarray:
    """The op's value computed by its `element`, for each vector of `lanes` elements along the last axis."""
    params = [parameter(i, type_of(a)) for i, a in enumerate(arrays)]
    o = kind(*params, **attrs)
    shape = o.shape
    func = Func(
        "f", [*((f"x{i}", PTR) for i in range(len(arrays))), ("out", PTR), *((f"i{d}", I64) for d in range(len(shape)))]
    )
    b = Builder(func)
    buffers = [Buffer(p, a.tensor) for p, a in zip(func.params, params, strict=False)]
    at = [index.loop_var(p, 0, max(n, 1)) for p, n in zip(func.params[len(arrays) + 1 :], shape, strict=True)]
    mask = None
    if shape and lanes > 1:
        at[-1] = index.vector_var(func.params[-1], lanes, 0, max(shape[-1], 1), lanes, top=shape[-1])
        mask = b.cmp("slt", b.add(func.params[-1], b.iota(I64.with_lanes(lanes))), shape[-1])
    sources = {
        p: (lambda ix, buffer=buffer: buffer.load(b, tuple(ix), lanes, mask))
        for p, buffer in zip(params, buffers, strict=True)
    }
    value = Elements(b, sources)(o, tuple(at))
    Buffer(func.params[len(arrays)], o.tensor).store(b, index.linear(at, shape), value, lanes, mask)
    b.ret()
    out = np.zeros(shape, o.dtype.np)
    blocks = [*shape[:-1], -(-shape[-1] // lanes)] if shape else []
    for place in np.ndindex(*blocks):
        where = [*place[:-1], place[-1] * lanes] if shape else []
        interpret.run(func, *[np.ascontiguousarray(a) for a in arrays], out, *where)
    return out


def both_ways(kind: OpDef, *arrays: np.ndarray, **attrs: Any) -> np.ndarray:
    """The op's value; fails if its elements as loop IR (scalars and vectors of 4) differ."""
    value = run_op(kind, *arrays, **attrs)
    for lanes in (1, 4):
        np.testing.assert_array_equal(run_elements(kind, *arrays, lanes=lanes, **attrs), value, f"{lanes} lanes")
    return value


def refuses(rule: str, kind: OpDef, types: Sequence[Type], **attrs: Any) -> None:
    """Fail unless making the op breaks constraint `rule`."""
    with pytest.raises(VerifyError) as e:
        kind(*(parameter(i, t) for i, t in enumerate(types)), **attrs)
    assert e.value.rule == rule, e.value
    assert e.value.op == kind.full_name


def numbers(shape: Sequence[int], dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Distinct-looking values of a dtype."""
    rng = np.random.default_rng(seed)
    kind = from_numpy(np.dtype(dtype)).kind
    if kind == "b":
        return rng.random(tuple(shape)) < 0.5
    if kind in "iu":
        return rng.integers(0, 100, tuple(shape)).astype(dtype)
    if kind == "c":
        return (rng.normal(size=tuple(shape)) + 1j * rng.normal(size=tuple(shape))).astype(dtype)
    return np.asarray(rng.normal(size=tuple(shape))).astype(dtype)


def op_with(kind: OpDef, *types: Type, **attrs: Any) -> Op:
    return kind(*(parameter(i, t) for i, t in enumerate(types)), **attrs)
