"""Discrete Fourier transforms. Imports ir, ops.

Compiled, complex transforms along the last axis have a kernel of their own if all prime factors are small; others are
made of those. Very short ones are products with a matrix. One of n = a * b elements, b without a kernel, is one of
columns of a elements, a multiplication by roots of unity, and one of rows of b elements. Large primes go by Bluestein's
convolution with a power of two. Real numbers of an even count are transformed two as one complex number.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from hilo.errors import require
from hilo.ir.dtypes import DType, c64, c128, f32, f64, from_numpy
from hilo.ir.op import Array, Op
from hilo.ir.registry import op
from hilo.ir.types import Dim, TensorType, Type
from hilo.ops.checks import same_shape, tensor
from hilo.ops.chlo import conj
from hilo.ops.compare import select
from hilo.ops.complex import complex_, imag, real
from hilo.ops.concat_pad import concatenate, pad
from hilo.ops.constant import constant
from hilo.ops.decompose import full, spread
from hilo.ops.dot import dot_general
from hilo.ops.elementwise_arith import add, multiply, subtract
from hilo.ops.numeric import narrow
from hilo.ops.shape import reshape, reverse, transpose
from hilo.ops.sharding import axis_names
from hilo.ops.slicing import slice_

KINDS: Final = ("FFT", "IFFT", "RFFT", "IRFFT")
RADIX: Final = 32  # elements of the largest transform that is a product with a matrix
SHORTEST: Final = 16  # elements of transforms with a kernel of their own
LONGEST: Final = 1 << 24
LARGEST: Final = 13  # prime factor
_COMPLEX: Final = {f32: c64, f64: c128}


@op("fft")
class fft:
    """The discrete Fourier transform along the last `len(fft_length)` axes (1 to 3).

    `fft_type`: FFT, IFFT (divided by the number of elements), RFFT (of real numbers; the last axis keeps the n / 2 + 1
    coefficients that are not conjugates of others), IRFFT (its inverse; the last of `fft_length` says what n was).
    c64 and c128, f32 and f64. Spec: fft.
    """

    @staticmethod
    def infer(x: Type, *, fft_type: str, fft_length: tuple[int, ...]) -> Type:
        t, n = tensor(x), len(fft_length)
        require(fft_type in KINDS, "I2", "fft_type {k} must be one of {all}", k=fft_type, all=KINDS)
        require(n <= t.rank, "C1", "fft_length {n} has more entries than {t} has axes", n=fft_length, t=t)
        require(1 <= n <= 3, "C3", "fft_length {n} must have 1 to 3 entries", n=fft_length)
        if fft_type == "RFFT":
            require(t.dtype in _COMPLEX, "C2", "RFFT takes f32 or f64, not {t}", t=t)
            ok = same_shape(t.shape[-n:], fft_length)
            require(ok, "C4", "fft_length {n} must be the last axes of {t}", n=fft_length, t=t)
            last = t.shape[-1]
            half: Any = last if isinstance(last, Dim) else last // 2 + 1 if last else 0
            return TensorType(_COMPLEX[t.dtype], (*t.shape[:-1], half))
        require(t.dtype.is_complex, "C2", "{k} takes complex numbers, not {t}", k=fft_type, t=t)
        if fft_type != "IRFFT":
            return t
        last = fft_length[-1]
        want = (*fft_length[:-1], last // 2 + 1 if last else 0)
        rule = "C4" if not same_shape(t.shape[-n:-1], want[:-1]) else "C5"
        require(same_shape(t.shape[-n:], want), rule, "the last axes of {t} must be {w}", t=t, w=want)
        return TensorType(t.dtype.part, (*t.shape[:-1], last))

    @staticmethod
    def evaluate(x: np.ndarray, *, fft_type: str, fft_length: tuple[int, ...]) -> np.ndarray:
        out = tensor(fft.infer(TensorType(from_numpy(x.dtype), x.shape), fft_type=fft_type, fft_length=fft_length))
        if out.size == 0:
            return np.zeros(out.shape, out.dtype.np)
        wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        axes = tuple(range(x.ndim - len(fft_length), x.ndim))
        if fft_type == "IRFFT":
            return narrow(np.fft.irfftn(wide, s=fft_length, axes=axes), out.dtype)
        transform = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}[fft_type]
        return narrow(transform(wide, axes=axes), out.dtype)

    @staticmethod
    def expand(x: Op, *, fft_type: str, fft_length: tuple[int, ...]) -> Op | None:
        t = x.tensor
        if not all(isinstance(n, int) for n in t.shape[t.rank - len(fft_length) :]):
            return None
        out = tensor(fft.infer(t, fft_type=fft_type, fft_length=fft_length))
        if out.size == 0:
            return full(0, out.dtype, out.shape)
        if len(fft_length) == 1 and fft_type in ("FFT", "IFFT") and is_native(t.shape[-1]):
            return None
        axes = list(range(t.rank - len(fft_length), t.rank))
        if fft_type == "RFFT" and x.shape[-1] % 2 == 0 and is_native(x.shape[-1] // 2):
            x = _real(x)
            axes.pop()
        elif fft_type == "RFFT":
            whole = _transform(complex_(x, full(0, t.dtype, t.shape)), axes[-1], inverse=False)
            x = _cut(whole, 0, out.shape[-1])
            axes.pop()
        if fft_type != "IRFFT":
            for axis in reversed(axes):
                x = _transform(x, axis, inverse=fft_type == "IFFT")
            return x
        for axis in axes[:-1]:
            x = _transform(x, axis, inverse=True)
        n = fft_length[-1]
        if n % 2 == 0 and is_native(n // 2):
            return _real_inverse(x)
        if n > 2:  # the other half: conjugates, from the end
            other = conj(reverse(_cut(x, 1, (n + 1) // 2), dimensions=(t.rank - 1,)))
            x = concatenate(x, other, dimension=t.rank - 1)
        return real(_transform(_cut(x, 0, n), axes[-1], inverse=True))

    @staticmethod
    def sharding(x: TensorType, *, out: TensorType, fft_type: str, fft_length: tuple[int, ...]) -> str:
        names, n = axis_names(2 * x.rank), len(fft_length)
        return f"{names[: x.rank]}->{names[: x.rank - n]}{names[x.rank : x.rank + n]}"

    @staticmethod
    def cost(x: TensorType, *, out: TensorType, fft_type: str, fft_length: tuple[int, ...]) -> tuple[int, int]:
        return 5 * max(x.size, out.size) * prod(fft_length).bit_length(), x.nbytes + out.nbytes

    examples = lambda: [
        ((TensorType(c64, (3, 8)),), {"fft_type": "FFT", "fft_length": (8,)}),
        ((TensorType(c128, (2, 60)),), {"fft_type": "IFFT", "fft_length": (60,)}),
        ((TensorType(c64, (67,)),), {"fft_type": "FFT", "fft_length": (67,)}),
        ((TensorType(f32, (2, 3, 6)),), {"fft_type": "RFFT", "fft_length": (3, 6)}),
        ((TensorType(f64, (5,)),), {"fft_type": "RFFT", "fft_length": (5,)}),
        ((TensorType(c64, (4, 3, 4)),), {"fft_type": "IRFFT", "fft_length": (4, 3, 6)}),
        ((TensorType(c128, (3,)),), {"fft_type": "IRFFT", "fft_length": (5,)}),
        ((TensorType(c64, (1,)),), {"fft_type": "FFT", "fft_length": (1,)}),
        ((TensorType(c64, (2, 0)),), {"fft_type": "FFT", "fft_length": (0,)}),
        ((TensorType(f32, (0, 4)),), {"fft_type": "RFFT", "fft_length": (4,)}),
    ]


def is_native(n: int) -> bool:
    """Whether there is a kernel for transforms of n elements."""
    return SHORTEST <= n <= LONGEST and max(factors(n)) <= LARGEST and len(factors(n)) > 1


def factors(n: int) -> list[int]:
    """The prime factors, ascending."""
    found, p = [], 2
    while p * p <= n:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1
    return [*found, n] if n > 1 else found


def _roots(k: np.ndarray, n: int, inverse: bool) -> np.ndarray:
    """The k-th powers of the n-th root of unity that a transform multiplies by; k is reduced first, exactly."""
    angle = (2 if inverse else -2) * np.pi * (k % n) / n
    w = np.empty(angle.shape, np.complex128)
    w.real, w.imag = np.cos(angle), np.sin(angle)  # half the time of an exponential function
    return w


def _array(values: np.ndarray, dtype: DType) -> Op:
    return constant(value=Array(narrow(values, dtype)))


def _cut(x: Op, begin: int, end: int) -> Op:
    """Elements begin..end of the last axis."""
    n = x.tensor.rank - 1
    return slice_(x, start_indices=(0,) * n + (begin,), limit_indices=(*x.shape[:-1], end), strides=(1,) * (n + 1))


def _transform(x: Op, axis: int, *, inverse: bool) -> Op:
    """The transform along one axis; the inverse is divided by the number of elements."""
    last = x.tensor.rank - 1
    order = (*(d for d in range(last + 1) if d != axis), axis)
    moved = x if axis == last else transpose(x, permutation=order)
    n = moved.shape[-1]
    flat = reshape(moved, type=moved.tensor.with_shape((moved.tensor.size // n, n)))
    out = _rows(flat, inverse, 1.0 / n if inverse else 1.0)
    out = reshape(out, type=moved.tensor)
    return out if axis == last else transpose(out, permutation=tuple(int(d) for d in np.argsort(order)))


def _rows(x: Op, inverse: bool, scale: float) -> Op:
    """The transform of each row of a matrix, times `scale`."""
    rows, n = x.shape
    if n == 1:
        return x
    if is_native(n):
        out = fft(x, fft_type="IFFT" if inverse else "FFT", fft_length=(n,))
        return out if scale == (1.0 / n if inverse else 1.0) else multiply(out, full(scale * n, x.dtype, x.shape))
    if n <= RADIX:
        return _product(x, n, 1, inverse, scale)
    first = _first(n)
    if not first:
        return _bluestein(x, inverse, scale)
    rest = n // first
    scale = scale * rest if inverse else scale  # the rows are divided by their number of elements
    columns = _product(reshape(x, type=x.tensor.with_shape((rows, first, rest))), first, 1, inverse, scale)
    powers = np.outer(np.arange(rest), np.arange(first))  # columns is (rows, rest, first)
    turned = multiply(columns, spread(_array(_roots(powers, n, inverse), x.dtype), columns.shape, (1, 2)))
    inner = reshape(transpose(turned, permutation=(0, 2, 1)), type=x.tensor.with_shape((rows * first, rest)))
    done = reshape(_rows(inner, inverse, 1.0 / rest if inverse else 1.0), type=x.tensor.with_shape((rows, first, rest)))
    return reshape(transpose(done, permutation=(0, 2, 1)), type=x.tensor)


def _first(n: int) -> int:
    """The factor of n that a product with a matrix does, so that the rest has a kernel or is small; 0: none."""
    rough = prod(p for p in factors(n) if p > LARGEST)
    return next((r for r in range(RADIX, 1, -1) if n % r == 0 and (rough == 1 or rough % r == 0)), 0)


def _product(x: Op, n: int, axis: int, inverse: bool, scale: float) -> Op:
    """The transform of n elements along `axis` by a matrix; the axis becomes the last one."""
    matrix = _array(_roots(np.outer(np.arange(n), np.arange(n)), n, inverse) * scale, x.dtype)
    shape = (*(m for d, m in enumerate(x.shape) if d != axis), n)
    return dot_general(x, matrix, lhs_contracting_dimensions=(axis,), rhs_contracting_dimensions=(0,),
                       type=x.tensor.with_shape(shape))  # fmt: skip


def _bluestein(x: Op, inverse: bool, scale: float) -> Op:
    """A transform of any length as a convolution with exp(i pi k^2 / n), done by transforms of a power of two."""
    rows, n = x.shape
    m = 1 << (2 * n - 2).bit_length()
    k = np.arange(n, dtype=np.int64)
    chirp = _roots(k * k % (2 * n), 2 * n, inverse)
    kernel = np.zeros(m, np.complex128)
    kernel[:n] = np.conj(chirp)
    kernel[m - n + 1 :] = np.conj(chirp[1:])[::-1]
    spectrum = np.fft.fft(kernel)
    turned = multiply(x, _spread_row(chirp, rows, x.dtype))
    padded = pad(turned, full(0, x.dtype), edge_padding_low=(0, 0), edge_padding_high=(0, m - n),
                 interior_padding=(0, 0))  # fmt: skip
    product = multiply(_rows(padded, False, 1.0), _spread_row(spectrum, rows, x.dtype))
    return multiply(_cut(_rows(product, True, 1.0 / m), 0, n), _spread_row(chirp * scale, rows, x.dtype))


def _spread_row(values: np.ndarray, rows: int, dtype: DType) -> Op:
    return spread(_array(values, dtype), (rows, len(values)), (1,))


def _real(x: Op) -> Op:
    """The transform of an even number n of real elements along the last axis, by one of n / 2 complex elements."""
    n, half, last = x.shape[-1], x.shape[-1] // 2, x.tensor.rank - 1
    z = _transform(complex_(_every_second(x, 0), _every_second(x, 1)), last, inverse=False)
    whole = concatenate(z, _cut(z, 0, 1), dimension=last)  # element n / 2 is element 0
    other = conj(reverse(whole, dimensions=(last,)))
    even, odd = add(whole, other), subtract(whole, other)
    turns = _roots(np.arange(half + 1), n, False) * -0.5j
    return add(_halved(even), _times(odd, turns))


def _real_inverse(x: Op) -> Op:
    """The inverse of `_real`; imaginary parts of the first and the last element do not count."""
    half, last = x.shape[-1] - 1, x.tensor.rank - 1
    edge = np.zeros(half + 1, bool)
    edge[[0, half]] = True
    flags = spread(constant(value=Array(edge)), x.shape, (last,))
    part = real(x)
    x = select(flags, complex_(part, full(0, part.dtype, part.shape)), x)
    head, other = _cut(x, 0, half), conj(reverse(_cut(x, 1, half + 1), dimensions=(last,)))
    even, odd = add(head, other), subtract(head, other)
    turns = _roots(np.arange(half), 2 * half, True) * 0.5j
    z = _transform(add(_halved(even), _times(odd, turns)), last, inverse=True)
    pairs = [reshape(p, type=p.tensor.with_shape((*p.shape, 1))) for p in (real(z), imag(z))]
    both = concatenate(*pairs, dimension=last + 1)
    return reshape(both, type=both.tensor.with_shape((*z.shape[:-1], 2 * half)))


def _halved(x: Op) -> Op:
    """Each part times 1/2."""
    parts = [multiply(p, full(0.5, p.dtype, p.shape)) for p in (real(x), imag(x))]
    return complex_(*parts)


def _every_second(x: Op, begin: int) -> Op:
    n = x.tensor.rank - 1
    return slice_(x, start_indices=(0,) * n + (begin,), limit_indices=x.shape, strides=(1,) * n + (2,))


def _times(x: Op, values: np.ndarray) -> Op:
    """x times `values` along the last axis, in x's precision: complex products of programs are rounded once, which
    takes wider numbers."""
    re, im = real(x), imag(x)
    parts = np.real(values), np.imag(values)
    w_re, w_im = (spread(_array(v, re.dtype), x.shape, (x.tensor.rank - 1,)) for v in parts)
    return complex_(subtract(multiply(re, w_re), multiply(im, w_im)), add(multiply(re, w_im), multiply(im, w_re)))
