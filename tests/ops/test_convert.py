"""bitcast_convert of equal, narrower and wider types, as numpy semantics and as loop IR; convert's types."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import run_elements, run_op
from support import edges, same_bits

from hilo.ir import dtypes
from hilo.ir.dtypes import COMMON, DType
from hilo.ir.types import TensorType
from hilo.ops.convert import bitcast_convert, convert

REAL = [d for d in COMMON if not d.is_complex and d.bits >= 8]


def values(t: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Random bits, but no NaNs: bf16 and f16 pass through f32, which may quiet them."""
    rng = np.random.default_rng(t.bits)
    x = (
        np.resize(edges(t), shape)
        if t.kind in "bc"
        else rng.integers(0, 256, (*shape, t.itemsize)).astype(np.uint8).view(t.np)[..., 0]
    )
    if not t.is_float:
        return x
    with np.errstate(invalid="ignore"):
        return np.where(np.isnan(x), np.ones((), t.np), x)


@pytest.mark.parametrize("a", REAL, ids=str)
def test_bitcasts_between_all_real_types(a: DType) -> None:
    for b in REAL:
        n = max(a.bits, b.bits) // min(a.bits, b.bits)
        shape = (3, 5) if a.bits >= b.bits else (3, 5, n)
        out = (3, 5) if a.bits <= b.bits else (3, 5, n)
        x = values(a, shape)
        attrs: dict[str, Any] = {"type": TensorType(b, out)}
        want = np.frombuffer(x.tobytes(), b.np).reshape(out)
        same_bits(run_op(bitcast_convert, x, **attrs), want)
        if b.is_float:
            with np.errstate(invalid="ignore"):
                if np.isnan(want).any():
                    continue
        for lanes in (1, 4):
            same_bits(run_elements(bitcast_convert, x, lanes=lanes, **attrs), want, what=(a, b, lanes))


@pytest.mark.parametrize(("a", "shape", "b", "out"), [
    (dtypes.c64, (3,), dtypes.c64, (3,)), (dtypes.c64, (3, 2), dtypes.c128, (3,)),
    (dtypes.c128, (3,), dtypes.c64, (3, 2)),
])  # fmt: skip
def test_bitcasts_of_complex_numbers(a: DType, shape: Any, b: DType, out: Any) -> None:
    rng = np.random.default_rng(0)
    n = int(np.prod(shape))
    x = (rng.standard_normal(n) + 1j * rng.standard_normal(n)).astype(a.np).reshape(shape)
    want = np.frombuffer(x.tobytes(), b.np).reshape(out)
    same_bits(run_op(bitcast_convert, x, type=TensorType(b, out)), want)
    same_bits(run_elements(bitcast_convert, x, type=TensorType(b, out)), want)


def test_booleans_are_single_bits() -> None:
    x = np.array([[1, 0, 0, 0, 0, 0, 0, 1], [0, 1, 0, 0, 0, 0, 0, 0]], bool)
    packed = run_op(bitcast_convert, x, type=TensorType(dtypes.u8, (2,)))
    assert packed.tolist() == [129, 2]
    assert run_elements(bitcast_convert, x, type=TensorType(dtypes.u8, (2,))).tolist() == [129, 2]
    attrs = {"type": TensorType(dtypes.i1, (2, 8))}
    assert run_op(bitcast_convert, packed, **attrs).tolist() == x.tolist()
    assert run_elements(bitcast_convert, packed, **attrs).tolist() == x.tolist()


def test_narrow_integers_pack_lowest_bits_first() -> None:
    x = np.array([[1, -1], [-8, 7]], np.int8).astype(dtypes.i4.np)
    assert run_op(bitcast_convert, x, type=TensorType(dtypes.u8, (2,))).tolist() == [0xF1, 0x78]
    back = run_op(bitcast_convert, np.array([0xF1, 0x78], np.uint8), type=TensorType(dtypes.i4, (2, 2)))
    assert back.astype(np.int8).tolist() == [[1, -1], [-8, 7]]


def test_no_elements_and_rank_0() -> None:
    assert run_op(bitcast_convert, np.zeros((0, 2), np.float32), type=TensorType(dtypes.u8, (0, 2, 4))).shape == (
        0,
        2,
        4,
    )
    assert run_op(bitcast_convert, np.float64(1.0)[()] * np.ones(()), type=TensorType(dtypes.u32, (2,))).tolist() == [
        0,
        0x3FF00000,
    ]
    assert run_op(convert, np.array(1.7), type=TensorType(dtypes.i8)).tolist() == 1
