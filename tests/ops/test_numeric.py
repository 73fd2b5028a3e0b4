"""The converters against exact rational arithmetic: 8- and 16-bit types exhaustively, wider ones at every boundary."""

from __future__ import annotations

import bisect
import itertools
from fractions import Fraction

import numpy as np
import pytest
from support import same_bits

from hilo.ir import dtypes
from hilo.ir.dtypes import DType, from_numpy
from hilo.ops import numeric

NARROW = (dtypes.bf16, dtypes.f16)
INTS = [d for d in dtypes.ALL if d.is_int]
FLOATS = (dtypes.bf16, dtypes.f16, dtypes.f32, dtypes.f64)


def every(t: DType) -> np.ndarray:
    """All values of an 8- or 16-bit type."""
    return np.arange(1 << t.bits, dtype=np.uint32).astype(f"u{t.itemsize}").view(t.np)


def finite(t: DType) -> np.ndarray:
    """The non-negative finite values of a narrow float, ascending, as f64."""
    with np.errstate(invalid="ignore"):  # signaling NaNs
        x = every(t).astype(np.float64)
    return np.unique(x[np.isfinite(x) & (x >= 0)]) + 0.0  # +0


def nearest(values: list[int], table: list[float], t: DType) -> np.ndarray:
    """The oracle: each integer as the nearest float of `t`, ties to even, large ones inf."""
    past = Fraction(table[-1]) + (Fraction(table[-1]) - Fraction(table[-2])) / 2
    out = []
    for v in values:
        size = abs(v)
        if size >= past:
            best = float("inf")
        else:
            at = bisect.bisect_right(table, size) - 1
            low, high = table[at], table[min(at + 1, len(table) - 1)]
            d = 2 * size - int(low) - int(high)
            best = low if d < 0 or (d == 0 and at % 2 == 0) else high  # the table starts at 0, with even bits
        out.append(-best if v < 0 else best)
    with np.errstate(over="ignore"):
        return np.array(out, np.float64).astype(np.float32).astype(t.np)


@pytest.mark.parametrize("t", NARROW, ids=str)
def test_rounding_f64_and_f32_at_every_boundary(t: DType) -> None:
    low = finite(t)
    high = np.append(low[1:], low[-1] + (low[-1] - low[-2]))
    middle = (low + high) / 2  # exact
    up, even = np.append(low[1:], np.inf), np.arange(low.size) % 2 == 0
    tests = [
        (middle, np.where(even, low, up)),
        (np.nextafter(middle, 0), low),
        (np.nextafter(middle, np.inf), up),
        (low, low),
    ]
    for x, want in tests:
        for sign in (1, -1):
            same_bits(numeric.convert(sign * x, t), (sign * want).astype(np.float32).astype(t.np), x, what="f64")
    single = middle.astype(np.float32)  # one bit more than t has, so exact
    assert (single == middle).all()
    for x, want in (
        (single, tests[0][1]),
        (np.nextafter(single, np.float32(0)), low),
        (np.nextafter(single, np.float32(np.inf)), up),
    ):
        same_bits(numeric.convert(x, t), want.astype(np.float32).astype(t.np), x, what="f32")


@pytest.mark.parametrize("t", NARROW, ids=str)
@pytest.mark.parametrize("s", [dtypes.i64, dtypes.u64, dtypes.i32, dtypes.u16], ids=str)
def test_rounding_integers_at_every_boundary(t: DType, s: DType) -> None:
    lo, hi = numeric.int_range(s)
    table = finite(t)
    whole = [int(a + b) // 2 for a, b in itertools.pairwise(table) if 2 <= a + b < 2 * hi]
    ints = {v + d for v in [*whole, *(int(a) for a in table if a < hi), hi, lo] for d in (-1, 0, 1)}
    values = [v for v in ints if lo <= v <= hi] + [-v for v in ints if lo <= -v <= hi]
    got = numeric.convert(np.array(values, s.np), t)
    same_bits(got, nearest(values, table.tolist(), t), np.array(values, object))


def test_rounding_integers_to_f32_and_f64() -> None:
    rng = np.random.default_rng(0)
    values = [int(v) for v in rng.integers(0, 1 << 63, 3000)] + [
        (1 << k) + d for k in range(24, 63) for d in (-1, 0, 1)
    ]
    values += [(1 << 63) - (1 << 38), (1 << 63) - (1 << 9), (1 << 54) + 2, (1 << 25) + 2, (1 << 25) + 6]
    for sign in (1, -1):
        signed = np.array([sign * v for v in values], np.int64)
        assert numeric.convert(signed, dtypes.f64).tolist() == [
            float(int(v)) for v in signed
        ]  # Python rounds to nearest even
    unsigned = [*values, (1 << 64) - 1, (1 << 64) - 1024, (1 << 64) - 1025, (1 << 63) + 1]
    assert numeric.convert(np.array(unsigned, np.uint64), dtypes.f64).tolist() == [float(v) for v in unsigned]
    for v, f in zip(unsigned, numeric.convert(np.array(unsigned, np.uint64), dtypes.f32).tolist()):
        best = min(
            abs(Fraction(f) - v),
            *(abs(Fraction(float(np.nextafter(np.float32(f), np.float32(e)))) - v) for e in (0, 1e38)),
        )
        assert abs(Fraction(f) - v) == best, v


@pytest.mark.parametrize("s", NARROW, ids=str)
def test_narrow_floats_to_integers(s: DType) -> None:
    x = every(s)
    with np.errstate(invalid="ignore"):
        wide = x.astype(np.float64)
    for t in INTS:
        lo, hi = numeric.int_range(t)
        want = [0 if v != v else lo if v <= lo else hi if v >= hi else int(v) for v in wide.tolist()]
        assert numeric.convert(x, t).astype(object).tolist() == want, t


def test_wide_floats_to_integers() -> None:
    ends = [
        s * (2.0**k) * f
        for k in (7, 8, 15, 16, 31, 32, 63, 64)
        for s in (1, -1)
        for f in (1, 1 - 2**-30, 1 - 2**-53, 1 + 2**-52)
    ]
    x = np.array(
        [*ends, 0.0, -0.0, 0.99, -0.99, -1.0, 5e-324, 1e308, -1e308, np.inf, -np.inf, np.nan, 1.5, -1.5, 255.9]
    )
    for v in (x, x.astype(np.float32, casting="unsafe")) if np.isfinite(x[:-5]).all() else (x,):
        for t in INTS:
            lo, hi = numeric.int_range(t)
            want = [0 if a != a else lo if a <= lo else hi if a >= hi else int(a) for a in v.tolist()]
            assert numeric.convert(v, t).astype(object).tolist() == want, (t, v.dtype)


def test_widening_narrow_floats_is_exact() -> None:
    for s in NARROW:
        x = every(s)
        with np.errstate(invalid="ignore"):  # signaling NaNs
            x = x[~np.isnan(x)]
        for t in (dtypes.f32, dtypes.f64):
            got = numeric.convert(x, t)
            bits = x.view(np.uint16).astype(np.uint32)
            if s is dtypes.bf16:
                want = (bits << 16).view(np.float32).astype(np.float64)
            else:
                exponent, fraction = (bits >> 10) & 31, (bits & 1023).astype(np.float64)
                size = np.where(
                    exponent == 0, fraction * 2.0**-24, (1024 + fraction) * 2.0 ** (exponent.astype(np.float64) - 25)
                )
                size = np.where(exponent == 31, np.inf, size)
                want = np.where(bits >> 15 == 1, -size, size)
            same_bits(got.astype(np.float64), want, x)


@pytest.mark.parametrize("t", dtypes.NARROW_FLOATS, ids=str)
def test_f8_and_narrower_round_f64_once(t: DType) -> None:
    x = every(dtypes.u8)[: 1 << t.bits].astype(np.uint8).view(t.np)
    with np.errstate(all="ignore"):
        values = x.astype(np.float64)
    table = np.unique(values[np.isfinite(values) & (values >= 0)])
    if t.name == "f8E8M0FNU":
        table = table[1:]  # ml_dtypes rounds between its two least values upwards
    middle = (table[:-1] + table[1:]) / 2
    for shift, want in ((-1, table[:-1]), (1, table[1:])):
        near = np.nextafter(middle, np.inf * shift)
        assert numeric.convert(near, t).astype(np.float64).tolist() == want.tolist()
    inside = table[table > 0]
    assert numeric.convert(inside, t).astype(np.float64).tolist() == inside.tolist()


def test_integers_wrap_and_booleans() -> None:
    x = np.array([0, 1, -1, 255, 256, -129, 2**40 + 5, -(2**63), 2**63 - 1], np.int64)
    for t in INTS:
        lo, hi = numeric.int_range(t)
        want = [(int(v) - lo) % (hi - lo + 1) + lo for v in x]
        assert numeric.convert(x, t).astype(object).tolist() == want, t
    assert numeric.convert(np.array([0.0, -0.0, 1e-45, np.nan, -np.inf], np.float32), dtypes.i1).tolist() == [
        False,
        False,
        True,
        True,
        True,
    ]
    assert numeric.convert(np.array([0 + 1j, 1 + 0j]), dtypes.i1).tolist() == [False, True]
    for t in dtypes.COMMON:
        assert numeric.convert(np.array([False, True]), t).astype(np.complex128).tolist() == [0, 1]


def test_nan_stays_nan_whatever_its_payload() -> None:
    bits = np.array([0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FC00000, 0x7FBFFFFF], np.uint32)
    wide = np.array([0x7FF0000000000001, 0xFFF0000000000001, 0x7FFFFFFFFFFFFFFF], np.uint64)
    for x in (bits.view(np.float32), wide.view(np.float64)):
        for t in FLOATS:
            assert np.isnan(numeric.convert(x, t)).all(), t


def test_convert_keeps_rank_0_and_no_elements() -> None:
    for s in dtypes.COMMON:
        for t in dtypes.COMMON:
            for shape in ((), (0, 3)):
                got = numeric.convert(np.zeros(shape, s.np), t)
                assert isinstance(got, np.ndarray)
                assert (got.shape, from_numpy(got.dtype)) == (shape, t)


def test_reduce_precision_agrees_with_conversion() -> None:
    """5 exponent and 10 mantissa bits are f16, without its subnormals; 8 and 7 are bf16."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.integers(0, 1 << 32, 20000, dtype=np.uint32).view(np.float32),
                        np.array([65519.996, 65520.0, 6.1e-5, 6.103515e-5, 6.1035156e-5, -0.0, np.inf],
                                 np.float32)])  # fmt: skip
    with np.errstate(all="ignore"):
        half = numeric.convert(x, dtypes.f16).astype(np.float32)
        want = np.where(np.abs(half) < 2.0**-14, np.copysign(np.float32(0), x), half).astype(np.float32)
        tiny = np.abs(x) < 2.0**-14  # rounding to 10 bits may still reach the least normal number
    got = numeric.reduce_precision(x, 5, 10)
    same_bits(got[~tiny], want[~tiny], x[~tiny])
    assert set(np.abs(got[tiny & ~np.isnan(x)]).tolist()) <= {0.0, 2.0**-14}
    same_bits(numeric.reduce_precision(x, 8, 7), numeric.convert(x, dtypes.bf16).astype(np.float32), x)
