"""The kernel of Fourier transforms: against numpy in double precision, for all targets, lengths, and splits."""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
import pytest
from kernel_runs import TARGETS, Kernel, unaligned

import hilo
from hilo.backend.target import Target
from hilo.ir.dtypes import DType, c64, c128, from_numpy
from hilo.ir.module import Module, parameter, region
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.kernels import fft_plan
from hilo.ops.fft import factors, fft, is_native

TINY = 4.0  # units in the last place of the largest result, for every doubling


def transform(shape: tuple[int, ...], dtype: DType, kind: str = "FFT") -> Op:
    return fft(parameter(0, TensorType(dtype, shape)), fft_type=kind, fft_length=shape[-1:])


def numbers(shape: tuple[int, ...], dtype: DType) -> np.ndarray:
    rng = np.random.default_rng(shape[-1])
    return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype.np)


def error(got: np.ndarray, x: np.ndarray, kind: str = "FFT") -> float:
    """The largest error, in units of eps times the largest result."""
    want = (np.fft.fft if kind == "FFT" else np.fft.ifft)(x.astype(np.complex128))
    return float(np.abs(got - want).max() / np.abs(want).max() / np.finfo(x.dtype).eps)


@pytest.mark.parametrize("target", [*TARGETS, "scalar"])
@pytest.mark.parametrize(("shape", "dtype"), [
    ((3, 16), c64), ((2, 39), c128), ((2, 60), c64), ((1, 169), c64), ((2, 3, 1001), c128), ((1, 4096), c64),
    ((1, 6144), c64), ((2, 9000), c128),
])  # fmt: skip
@pytest.mark.parametrize("kind", ["FFT", "IFFT"])
def test_every_target(target, shape, dtype, kind):
    assert is_native(shape[-1])
    kernel = Kernel(transform(shape, dtype, kind), Target.named(target))
    x = unaligned(numbers(shape, dtype))
    (got,) = kernel(x)
    assert error(got, x, kind) <= TINY * np.log2(shape[-1]) / 8
    for again in (kernel(x, pieces=1), kernel(x, pieces=7)):
        np.testing.assert_array_equal(again[0], got)


@pytest.mark.parametrize("target", ["x86-avx512", "x86-sse2", "scalar"])
def test_passes_between_share_a_function(target):
    """From buffer to buffer, whatever their counts: of both halves, one function a radix."""
    kernel = Kernel(transform((1, 1 << 15), c64), Target.named(target))
    names = [h.name for p in kernel.lowered.phases for h in p.helpers]
    assert names
    assert all(n.startswith("fft_pass_") for n in names)
    x = numbers((1, 1 << 15), c64)
    assert error(kernel(x)[0], x) <= TINY * 15 / 8


def test_two_phases_with_two_transforms(monkeypatch):
    monkeypatch.setattr("hilo.kernels.fft.STACK", 0)
    kernel = Kernel(transform((3, 480), c64), Target.named("x86-avx2"))
    assert len(kernel.lowered.phases) == 2
    x = numbers((3, 480), c64)
    assert error(kernel(x)[0], x) <= TINY


@pytest.mark.parametrize("target", ["x86-avx512", "x86-avx2", "x86-sse2", "scalar"])
@pytest.mark.parametrize("n", [4802, 6000, 12600, 1 << 13, 30030])
@pytest.mark.parametrize("dtype", [c64, c128])
def test_blocks_that_overlap_agree(target, n, dtype):
    """Whichever unit is the last to write an element: its bits are the same."""
    kernel = Kernel(transform((1, n), dtype), Target.named(target))
    assert len(kernel.lowered.phases) == 2
    x = numbers((1, n), dtype)
    (got,) = kernel(x, pieces=1)
    assert error(got, x) <= TINY * 1.5
    for pieces in (2, 5, 11):
        np.testing.assert_array_equal(kernel(x, pieces=pieces)[0], got)


def test_large_strides_are_streamed():
    kernel = Kernel(transform((1 << 18,), c64), Target.named("x86-avx512"))
    x = numbers((1 << 18,), c64)
    assert error(kernel(x)[0], x) <= TINY


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_what_is_not_finite_spoils_its_row_only(value):
    x = numbers((2, 64), c64)
    x[0, 5] = value
    (got,) = Kernel(transform((2, 64), c64), Target.host())(x)
    assert not np.isfinite(got[0]).any()
    assert error(got[1:], x[1:]) <= TINY


def test_run_time_rows():
    m = hilo.parse("""func.func @main(%x: tensor<?x48xcomplex<f32>>) -> tensor<?x48xcomplex<f32>> {
      %y = "stablehlo.fft"(%x) {fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 48>}
        : (tensor<?x48xcomplex<f32>>) -> tensor<?x48xcomplex<f32>>
      return %y : tensor<?x48xcomplex<f32>>
    }""")
    compiled = hilo.compile(m)
    for rows in (0, 1, 7):
        x = numbers((rows, 48), c64)
        got = np.asarray(compiled(x)[0])
        assert got.shape == x.shape
        assert rows == 0 or error(got, x) <= TINY


@pytest.mark.parametrize("n", [32, 100, 4096 * 34, 2048, 30030])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_real_numbers_there_and_back(n, dtype):
    x = np.random.default_rng(n).normal(size=(2, n)).astype(dtype)
    t = TensorType(from_numpy(x.dtype), x.shape)

    def both(v: Op) -> list[Op]:
        half = fft(v, fft_type="RFFT", fft_length=(n,))
        return [half, fft(half, fft_type="IRFFT", fft_length=(n,))]

    half, back = (np.asarray(y) for y in hilo.compile(Module({"main": region([t], both, "main")}))(x))
    want = np.fft.rfft(x.astype(np.float64))
    eps = np.finfo(dtype).eps
    assert np.abs(half - want).max() <= TINY * eps * np.abs(want).max()
    assert np.abs(back - x).max() <= TINY * eps * np.abs(x).max()


@pytest.mark.parametrize("n", [4096, 9000, 1 << 15])
def test_tables_are_exact(n):
    """Products of the roots that a turn multiplies by are the roots, but for two roundings."""
    s = fft_plan.split(n, 4, 8, 1 << 15).widened()
    tables = s.tables(-1, 1, np.dtype(np.float64))
    assert tables.size == s.places[-1]
    *turns, _, _ = (tables[a:b] for a, b in pairwise(s.places))
    turns = [t.reshape(shape) for t, shape in zip(turns, s.turns, strict=True)]
    row, vector = s.n1 - 1, s.blocks2 * s.width - 1
    columns = s.n2 - s.lanes + np.arange(s.lanes)

    def told(t: np.ndarray) -> np.ndarray:
        assert (t[..., 1] == -t[..., 2]).all()
        return t[..., 0] + 1j * t[..., 2]

    def spread(t: np.ndarray) -> np.ndarray:
        assert (t[..., 0, :, 0] == t[..., 0, :, 1]).all()
        assert (t[..., 1, :, 0] == -t[..., 1, :, 1]).all()
        return t[..., 0, :, 0] + 1j * t[..., 1, :, 1]

    high, low = divmod(row, s.group)
    if len(turns) == 1:
        got = spread(turns[0][vector, row])
    elif len(turns) == 2:
        got = spread(turns[0][vector, high]) * spread(turns[1][vector, low])
    else:
        got = told(turns[0][vector, high]) * told(turns[1][vector, low]) * spread(turns[2][row])
    np.testing.assert_allclose(got, np.exp(-2j * np.pi * (row * columns % n) / n), rtol=0, atol=1e-15)


@pytest.mark.parametrize("n", [16, 18, 26, 39, 169, 1000, 1024, 4096, 2310, 1 << 20, 15625 * 64, 1 << 24])
@pytest.mark.parametrize("most", [8, 16])
def test_splits(n, most):
    s = fft_plan.split(n, 16, most, 1 << 15)
    assert s.n1 * s.n2 == n
    assert s.lanes <= min(s.n1, s.n2)
    assert prod(s.first) == s.n1
    assert prod(s.second) == s.n2
    assert max(*s.first, *s.second) <= max(most, *factors(n))
    assert max(s.n1, s.n2) <= 16 * min(s.n1, s.n2)


def test_lengths_with_a_kernel():
    native = [n for n in range(1, 70) if is_native(n)]
    assert native[:9] == [16, 18, 20, 21, 22, 24, 25, 26, 27]
    assert not {17, 19, 34, 37, 38, 51, 61} & set(native)
