"""Types of at most a byte: every value of them through every elementwise op, native and interpreted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support import Native, differences, edges, interpreted, made, pairs, same_bits, scalar_func

from hilo.errors import Error
from hilo.ir import dtypes
from hilo.ir.dtypes import DType, Format
from hilo.ir.op import Op
from hilo.ir.registry import REGISTRY
from hilo.ir.types import TensorType
from hilo.ops import numeric

Arr = np.ndarray[Any, Any]
NARROW = [t for t in dtypes.ALL if t.bits < 16 and (t.is_narrow or t.is_float)]
EXACT_UNARY = ("abs", "ceil", "count_leading_zeros", "floor", "is_finite", "negate", "not", "popcnt",
               "round_nearest_afz", "round_nearest_even", "sign", "sqrt")  # fmt: skip
UNARY = ("cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine",
         "tan", "tanh")  # fmt: skip
BINARY = ("add", "and", "divide", "maximum", "minimum", "multiply", "or", "remainder", "shift_left",
          "shift_right_arithmetic", "shift_right_logical", "subtract", "xor")  # fmt: skip


def every_value(t: DType) -> Arr:
    """All values of a type of at most 16 bits (edges of the range of a wider one)."""
    if t.bits > 16 or t.kind == "b":
        return edges(t)
    return np.arange(1 << t.bits, dtype=np.uint8 if t.bits <= 8 else np.uint16).view(t.np)


def decoded(bits: int, f: Format) -> float:
    """The number with these bits, by the definition of the format."""
    if f.special == "e8m0":
        return np.nan if bits == 255 else 2.0 ** (bits - f.bias)
    width = f.exponent + f.mantissa
    sign = -1.0 if bits >> width else 1.0
    low = bits & ((1 << width) - 1)
    e, m = low >> f.mantissa, low & ((1 << f.mantissa) - 1)
    if f.special == "ieee" and e == (1 << f.exponent) - 1:
        return np.nan if m else sign * np.inf
    if (f.special == "fn" and low == (1 << width) - 1) or (f.special == "fnuz" and bits == 1 << width):
        return np.nan
    return sign * (m * 2.0 ** (1 - f.bias - f.mantissa) if e == 0 else (1 + m / 2**f.mantissa) * 2.0 ** (e - f.bias))


def ops_of(t: DType) -> Iterator[tuple[Op, list[Arr], int]]:
    """Ops on `t` with their inputs, and how many units in the last place a result may be off."""
    v = every_value(t)
    both = pairs(v, v)
    if t.bits == 8:  # a part of all pairs, another for each type
        both = [a[len(t.name) % 7 :: 7] for a in both]
    one, two = TensorType(t, v.shape), TensorType(t, both[0].shape)
    chosen = np.random.default_rng(0).integers(0, 2, two.shape).astype(bool)
    candidates: list[tuple[str, list[TensorType], dict[str, Any], list[Arr], int]] = [
        *((f"stablehlo.{n}", [one], {}, [v], 0) for n in EXACT_UNARY),
        *((f"stablehlo.{n}", [one], {}, [v], 1) for n in UNARY),
        *((f"stablehlo.{n}", [two, two], {}, both, 0) for n in BINARY),
        *((f"stablehlo.{n}", [two, two], {}, both, t.is_float) for n in ("power", "atan2")),
        *(("stablehlo.compare", [two, two], {"comparison_direction": d, "compare_type": c}, both, 0)
          for d in ("EQ", "LT", "GE") for c in ("NOTYPE", "TOTALORDER")),
        *(("stablehlo.reduce_precision", [one], {"exponent_bits": e, "mantissa_bits": m}, [v], 0)
          for e, m in ((5, 2), (2, 1), (8, 0))),
        ("chlo.next_after", [two, two], {}, both, 0),
        ("stablehlo.clamp", [two] * 3, {}, [*both, both[0][::-1].copy()], 0),
        ("stablehlo.select", [two.with_dtype(dtypes.i1), two, two], {}, [chosen, *both], 0),
    ]  # fmt: skip
    for name, types, attrs, arrays, slack in candidates:
        try:
            yield made(REGISTRY[name], types, attrs), arrays, slack
        except Error:  # not for this kind of element
            continue
    for u in dtypes.ALL:
        w = every_value(u)
        yield made(REGISTRY["stablehlo.convert"], [one], {"type": TensorType(u, v.shape)}), [v], 0
        yield made(REGISTRY["stablehlo.convert"], [TensorType(u, w.shape)], {"type": TensorType(t, w.shape)}), [w], 0


@pytest.mark.parametrize("t", NARROW, ids=str)
def test_every_elementwise_op(t: DType) -> None:
    lanes = 16
    cases = [(scalar_func(f"f{i}", op, lanes), op, xs, slack) for i, (op, xs, slack) in enumerate(ops_of(t))]
    assert len(cases) > 60
    native = Native([f for f, *_ in cases])
    for f, op, arrays, slack in cases:
        assert op.kind.evaluate is not None
        want = np.asarray(op.kind.evaluate(*arrays, **op.attrs.own()))
        got = native.run(f.name, op, arrays, lanes)
        if slack:
            off = differences(got, want)
            known = every_value(t).astype(np.float32)
            known = np.unique(known[~np.isnan(known)])
            steps = [np.searchsorted(known, a[off].astype(np.float32)) for a in (got, want)]
            assert (np.abs(steps[0] - steps[1]) <= slack).all(), op
            assert off.mean() < 0.01, op
        else:
            same_bits(got, want, *arrays, what=(op.name, [x.type for x in op.operands], op.type, op.attrs))
        if arrays[0].size <= 256:
            same_bits(interpreted(f, op, arrays, lanes), got, *arrays, what=(op.name, "interpreted"))


def test_every_conversion_between_types_of_16_bits() -> None:
    types = [dtypes.i16, dtypes.u16, dtypes.f16, dtypes.bf16]
    ops = [(made(REGISTRY["stablehlo.convert"], [TensorType(s, (1 << 16,))], {"type": TensorType(t, (1 << 16,))}), s)
           for s in types for t in dtypes.COMMON]  # fmt: skip
    funcs = [scalar_func(f"f{i}", op, 16) for i, (op, _) in enumerate(ops)]
    native = Native(funcs)
    for f, (op, s) in zip(funcs, ops, strict=True):
        v = every_value(s)
        same_bits(native.run(f.name, op, [v], 16), numeric.convert(v, op.dtype), v, what=op)


@pytest.mark.parametrize("t", dtypes.NARROW_FLOATS, ids=str)
def test_reference_conversions_by_definition(t: DType) -> None:
    """Each value decodes to what the format says; halfway points and their neighbours round to even, from f64."""
    assert t.format is not None
    v = every_value(t)
    want = np.array([decoded(b, t.format) for b in range(1 << t.bits)])
    np.testing.assert_array_equal(numeric.convert(v, dtypes.f64), want)
    assert float(np.nanmax(np.where(np.isinf(want), np.nan, want))) == t.format.largest
    finite = np.unique(want[np.isfinite(want)])
    low, high = finite[:-1], finite[1:]
    middle = (low + high) / 2
    for x, to in ((np.nextafter(middle, low), low), (np.nextafter(middle, high), high), (finite, finite)):
        np.testing.assert_array_equal(numeric.convert(x, t).astype(np.float64), to)
    ties = numeric.convert(middle, t)
    even = ties.view(np.uint8) & 1 == 0
    at_zero = ties.astype(np.float64) == 0
    assert (even | at_zero).all() if t.format.special != "e8m0" else (ties.astype(np.float64) == high).all()


def test_overflow_and_nan_of_each_format() -> None:
    x = np.array([3e38, -3e38, np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32)
    bits = {
        "f4E2M1FN": [7, 15, 7, 15, 8, 0, 8],
        "f6E3M2FN": [31, 63, 31, 63, 32, 0, 32],
        "f8E4M3": [0x78, 0xF8, 0x78, 0xF8, 0x7C, 0, 0x80],
        "f8E4M3FN": [0x7F, 0xFF, 0x7F, 0xFF, 0x7F, 0, 0x80],
        "f8E4M3FNUZ": [0x80, 0x80, 0x80, 0x80, 0x80, 0, 0],
        "f8E8M0FNU": [0xFF] * 7,
    }
    for name, want in bits.items():
        assert numeric.convert(x, dtypes.dtype(name)).view(np.uint8).tolist() == want, name
