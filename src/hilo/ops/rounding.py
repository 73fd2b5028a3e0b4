"""Reference numerics: exact arithmetic in numpy, rounded once by converters of our own. `ops/numeric.py` has them for
all; a program that is compiled needs none.

Imports ir.dtypes and ops.numeric.

numpy and ml_dtypes round twice on the way from f64 or i64 to narrower floats (through f32); these converters do not.
Every function takes and gives arrays (0-d ones stay arrays).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hilo.ir.dtypes import DType, Format, from_numpy
from hilo.ops.numeric import LD, Arr, quiet

CLD: Any = np.clongdouble
_WIDER: dict[str, Any] = {"f64": LD, "c64": np.complex128, "c128": CLD}  # all other floats: f64


def widen(x: Arr) -> Arr:
    """Floats and complex numbers in a type with at least twice (f64: 11 more) the bits, exactly."""
    return np.asarray(x).astype(_WIDER.get(from_numpy(x.dtype).name, np.float64))


def power(x: Arr, y: Arr) -> Arr:
    """x ** y; where x is infinite in f64, since the long double function of some C libraries is wrong there."""
    return np.where(np.isinf(x), np.power(x.astype(np.float64), y.astype(np.float64)), np.power(x, y))


# ---- to floats
def odd_f32(x: Arr) -> Arr:
    """f64 -> f32, rounded to odd: inexact values get a last bit of one.

    Rounding that again, to at most 22 bits, rounds once.
    """
    x = np.asarray(x, np.float64)
    y = x.astype(np.float32)
    back = y.astype(np.float64)
    inexact = (back != x) & ~np.isnan(x)
    bits = y.view(np.uint32)
    bits = np.where(inexact & (np.abs(back) > np.abs(x)), bits - np.uint32(1), bits)
    return np.asarray(np.where(inexact, bits | np.uint32(1), bits).astype(np.uint32)).view(np.float32)


def bf16_bits(x: Arr) -> Arr:
    """f32 -> the 16 bits of the nearest bf16 (ties to even); NaNs stay NaNs and become quiet."""
    bits = np.ascontiguousarray(x, np.float32).reshape(x.shape).view(np.uint32)
    rounded = (bits.astype(np.uint64) + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(x), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def _narrow_real(x: Arr, t: DType) -> Arr:
    """A real array of f32, f64 or long double as float type `t`."""
    if x.dtype == LD and t.bits < 64:
        x = _odd_f64(x)
    if t.name in ("f64", "f32"):
        return x.astype(t.np)
    if t.name == "f16":
        return x.astype(t.np)  # numpy rounds f64 -> f16 and f32 -> f16 once
    single = odd_f32(x) if x.dtype == np.float64 else x.astype(np.float32)
    if t.name == "bf16":
        return np.asarray(bf16_bits(single)).view(t.np)
    assert t.format is not None
    return np.asarray(format_bits(single, t.format)).view(t.np)


def format_bits(x: Arr, f: Format) -> Arr:
    """f32 -> the bits (u8) of the nearest number of a format of at most 8 bits, ties to even.

    What is too large becomes infinity, else NaN, else the largest number; what a format without NaN has for it is -0.
    f8E8M0FNU has no zero: positive numbers become one of its powers of two, all else NaN.
    """
    size = np.abs(x).astype(np.float64)
    power = f.special == "e8m0"
    least = -f.bias if power else 1 - f.bias
    exponent = np.where(np.isfinite(size) & (size > 0), np.maximum(np.frexp(size)[1] - 1, least), least)
    count = np.rint(np.ldexp(size, f.mantissa - exponent))  # of units in the last place
    if power:
        count = np.maximum(count, 1)
    bad = np.isnan(x) | (power & ~(x > 0))
    over = np.ldexp(count, exponent - f.mantissa) > f.largest
    low = np.where(bad | over, 0, count).astype(np.int64)
    bits = ((exponent - least) << f.mantissa) + low - power
    width = f.exponent + f.mantissa
    nan = {"ieee": (((1 << f.exponent) - 1) << f.mantissa) | (1 << max(f.mantissa - 1, 0)), "fnuz": 1 << width,
           "finite": 1 << width}.get(f.special, (1 << width) - 1)  # fmt: skip
    inf = {"ieee": ((1 << f.exponent) - 1) << f.mantissa, "finite": (1 << width) - 1}.get(f.special, nan)
    bits = np.where(bad, nan, np.where(over, inf, bits))
    signed = np.signbit(x) & (not power) & ~(bad & (f.special == "finite"))
    if f.special == "fnuz":
        signed = signed & (bits != 0)
    return (bits | (signed.astype(np.int64) << width)).astype(np.uint8)


def _odd_f64(x: Arr) -> Arr:
    """long double -> f64, rounded to odd."""
    y = x.astype(np.float64)
    back = y.astype(LD)
    inexact = (back != x) & ~np.isnan(x)
    bits = y.view(np.uint64)
    bits = np.where(inexact & (np.abs(back) > np.abs(x)), bits - np.uint64(1), bits)
    return np.asarray(np.where(inexact, bits | np.uint64(1), bits).astype(np.uint64)).view(np.float64)


def narrow(x: Any, t: DType) -> Arr:
    """A float or complex array of any width as float or complex type `t`, rounded once."""
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        if not t.is_complex:
            return np.asarray(_narrow_real(x.real if x.dtype.kind == "c" else x, t))
        out = np.zeros(x.shape, t.np)
        out.real = _narrow_real(x.real, t.part)
        if x.dtype.kind == "c":
            out.imag = _narrow_real(x.imag, t.part)
        return out


def int_to_float(x: Arr, t: DType) -> Arr:
    """An integer array as float type `t`, rounded once."""
    if (
        x.dtype.itemsize == 8 and t.bits < 64
    ):  # keep 53 bits, the last of which is sticky: exact in f64, rounds right later
        negative = x < 0
        mag = x.astype(np.uint64)
        mag = np.asarray(np.where(negative, np.uint64(0) - mag, mag))
        sticky = (mag & np.uint64(~0x7FF & (1 << 64) - 1)) | (
            np.asarray((mag & np.uint64(0x7FF)) != 0).astype(np.uint64) << np.uint64(11)
        )
        value = np.where(mag >= np.uint64(1 << 53), sticky, mag).astype(np.float64)
        return _narrow_real(np.asarray(np.where(negative, -value, value)), t)
    if from_numpy(x.dtype).bits < 8:
        x = x.astype(np.int64)
    return _narrow_real(x.astype(np.float64), t)


# ---- to integers
def float_to_int(x: Arr, t: DType) -> Arr:
    """Floats as integers: fractions cut off, values out of range go to the nearest end, NaN to 0."""
    x = np.trunc(x.astype(np.float64))
    lo, hi = int_range(t)
    low, high = x <= float(lo), x >= float(hi)  # float(hi) may round up to hi + 1, which is out of range just the same
    inside = np.asarray(np.where(low | high | np.isnan(x), 0.0, x))
    held = np.uint64 if t.name == "u64" else np.int64
    out = inside.astype(held)
    out = np.where(low, np.array(lo, held), np.where(high, np.array(hi, held), out))
    return wrap_int(np.asarray(out), t)


def int_range(t: DType) -> tuple[int, int]:
    """The smallest and the largest value of an integer type."""
    return (-(1 << (t.bits - 1)), (1 << (t.bits - 1)) - 1) if t.kind == "i" else (0, (1 << t.bits) - 1)


def wrap_int(x: Any, t: DType) -> Arr:
    """Integers as integers of type `t`, modulo 2**bits."""
    x = np.asarray(x)
    if t.bits >= 8:
        return x.astype(t.np)
    low = x.astype(np.int64) & ((1 << t.bits) - 1)
    if t.kind == "i":
        low = np.where(low >> (t.bits - 1) != 0, low - (1 << t.bits), low)
    return np.asarray(low).astype(np.int8 if t.kind == "i" else np.uint8).astype(t.np)


# ---- any to any
@quiet
def convert(x: Arr, t: DType) -> Arr:
    """`stablehlo.convert`: to bool is `!= 0`; of complex numbers only the real part goes to other types."""
    s = from_numpy(x.dtype)
    if s is t:
        return x
    if s.is_complex and not t.is_complex:
        x, s = x.real, s.part
    if t.kind == "b":
        return np.asarray(x.astype(np.float32) != 0 if s.is_float and s.bits < 16 else x != np.zeros((), x.dtype))
    if t.is_complex:
        return narrow(x if s.is_complex else convert(x, t.part).astype(t.part.np), t)
    if s.kind == "b":
        return x.astype(np.int8).astype(t.np)
    if s.is_float:
        if t.is_float:
            return _narrow_real(x if s.name in ("f32", "f64") else x.astype(np.float32), t)
        return float_to_int(x, t)
    if t.is_float:
        return int_to_float(x, t)
    return wrap_int(x.astype(np.int64) if s.bits < 8 else x, t)


@quiet
def reduce_precision(x: Arr, exponent_bits: int, mantissa_bits: int) -> Arr:
    """Round to a float with these bits (no subnormals: what is below its smallest normal number becomes 0) and back."""
    t = from_numpy(x.dtype)
    if t.bits < 16:
        return narrow(reduce_precision(x.astype(np.float32), exponent_bits, mantissa_bits), t)
    bits = {16: np.uint16, 32: np.uint32, 64: np.uint64}[t.bits]
    assert t.format is not None
    mantissa, exponent = t.format.mantissa, t.format.exponent
    one = bits(1)
    u = np.ascontiguousarray(x).reshape(x.shape).view(bits)
    sign = u & bits(1 << (t.bits - 1))
    mag = np.asarray(u ^ sign)
    if mantissa_bits < mantissa:
        drop = bits(mantissa - mantissa_bits)
        mag = mag + ((one << (drop - one)) - one) + ((mag >> drop) & one)
        mag = (mag >> drop) << drop
    if exponent_bits < exponent:
        bias, new = (1 << (exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        largest = (bias + new) << mantissa | ((1 << mantissa) - 1)
        smallest = (bias - new + 1) << mantissa
        mag = np.where(mag > bits(largest), bits(((1 << exponent) - 1) << mantissa), mag)
        mag = np.where(mag < bits(smallest), bits(0), mag)
    out = np.asarray((mag | sign).astype(bits)).view(x.dtype)
    return np.where(np.isnan(x), x, out)


# ---- integers
def _as_unsigned(x: Arr) -> tuple[Arr, int]:
    t = from_numpy(x.dtype)
    if t.bits < 8:
        return np.asarray(x.astype(np.int64) & ((1 << t.bits) - 1)).astype(np.uint64), t.bits
    return x.view(f"u{t.np.itemsize}").astype(np.uint64), t.bits


def int_divide(x: Arr, y: Arr) -> Arr:
    """Truncating division of i64 or u64 arrays; by zero: -1 (all ones); INT_MIN / -1 wraps."""
    if x.dtype == np.uint64:
        return np.where(y == 0, np.uint64((1 << 64) - 1), x // np.where(y == 0, np.uint64(1), y))
    safe = np.where((y == 0) | (y == -1), 1, y)
    q = x // safe
    q = q + ((x - q * safe != 0) & ((x < 0) != (safe < 0)))  # floor -> truncate
    return np.where(y == 0, -1, np.where(y == -1, np.negative(x), q))


def int_remainder(x: Arr, y: Arr) -> Arr:
    """What truncating division leaves; by zero: the dividend."""
    if x.dtype == np.uint64:
        return np.where(y == 0, x, x % np.where(y == 0, np.uint64(1), y))
    return np.where(y == 0, x, np.fmod(x, np.where((y == 0) | (y == -1), 1, y)))


def int_power(x: Arr, y: Arr) -> Arr:
    """x ** y modulo 2**64; negative exponents give 1 for 1, +-1 for -1 and 0 for all else."""
    x, y = np.broadcast_arrays(x, y)
    out, base, left = np.ones_like(x), x.copy(), y.astype(np.uint64)
    for _ in range(64):
        if not left.any():
            break
        out = np.where(left & np.uint64(1) != 0, out * base, out)
        base = base * base
        left = left >> np.uint64(1)
    if x.dtype == np.uint64:
        return out
    odd = y & 1 != 0
    return np.where(y >= 0, out, np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0)))


def shift(x: Arr, y: Arr, how: str) -> Arr:
    """`how`: left, logical or arithmetic.

    The amount is unsigned; amounts past the width give 0 (arithmetic: the sign).
    """
    t = from_numpy(x.dtype)
    u, bits = _as_unsigned(x)
    n, _ = _as_unsigned(y)
    past = n >= np.uint64(bits)
    n = np.minimum(n, np.uint64(bits - 1))
    if how == "arithmetic":
        signed = np.asarray(u << np.uint64(64 - bits)).view(np.int64) >> np.int64(64 - bits)
        out = signed >> np.where(past, np.uint64(bits - 1), n).astype(np.int64)
        return wrap_int(np.asarray(out), t)
    out = u << n if how == "left" else u >> n
    return wrap_int(np.asarray(np.where(past, np.uint64(0), out)).view(np.int64), t)


def _bit_count(u: Arr) -> Arr:
    """The number of ones in u64 values, as i64."""
    counts = np.unpackbits(np.ascontiguousarray(u).reshape(*u.shape, 1).view(np.uint8), axis=-1).sum(
        axis=-1, dtype=np.int64
    )
    return np.asarray(counts)


def popcnt(x: Arr) -> Arr:
    return wrap_int(_bit_count(_as_unsigned(x)[0]), from_numpy(x.dtype))


def count_leading_zeros(x: Arr) -> Arr:
    u, bits = _as_unsigned(x)
    for step in (1, 2, 4, 8, 16, 32):  # smear the highest bit downwards
        u = u | (u >> np.uint64(step))
    return wrap_int(bits - _bit_count(u), from_numpy(x.dtype))


# ---- comparing
def total_order(x: Arr) -> Arr:
    """Integers that order as IEEE totalOrder does: -NaN < -inf < ... < -0 < +0 < ... < inf < NaN."""
    t = from_numpy(x.dtype)
    if t.format is not None and not t.format.has_negative_zero:  # the only NaN has no sign
        return total_order(np.where(np.isnan(x), np.float32(np.nan), x.astype(np.float32)).astype(np.float32))
    s = np.ascontiguousarray(x).reshape(x.shape).view(f"i{t.np.itemsize}")
    width = 8 * t.np.itemsize
    s = s << (width - t.bits)
    return s ^ ((s >> (width - 1)) & ((1 << (width - 1)) - 1))


@quiet
def maximum(x: Arr, y: Arr) -> Arr:
    """IEEE maximum: NaN wins, -0 < +0. Complex: lexicographic (NaN in a real part wins)."""
    return _extremum(x, y, largest=True)


@quiet
def minimum(x: Arr, y: Arr) -> Arr:
    """IEEE minimum: NaN wins, -0 < +0. Complex: lexicographic (NaN in a real part wins)."""
    return _extremum(x, y, largest=False)


def _extremum(x: Arr, y: Arr, *, largest: bool) -> Arr:
    t = from_numpy(x.dtype)
    if t.is_complex:
        first = lexicographic(x, y, ">=" if largest else "<=")
        return np.where(np.isnan(x.real) | np.isnan(x.imag) | (first & ~np.isnan(y.real) & ~np.isnan(y.imag)), x, y)
    if t.is_float:
        a, b = total_order(x), total_order(y)
        return np.where(np.isnan(x), x, np.where(np.isnan(y), y, np.where((a >= b) if largest else (a <= b), x, y)))
    if t.kind == "b":
        return x | y if largest else x & y
    return np.where((x >= y) if largest else (x <= y), x, y)


def lexicographic(x: Arr, y: Arr, how: str) -> Arr:
    """Compare complex numbers by (real, imag); `how`: < <= > >=."""
    strict = np.less if how[0] == "<" else np.greater
    loose = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[how]
    return strict(x.real, y.real) | ((x.real == y.real) & loose(x.imag, y.imag))
