"""fft, interpreted and compiled, against the defining sums and numpy; one refusal per constraint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_runs import refuses, run_op, type_of

import hilo
from hilo.ir.dtypes import bf16, c64, f32, i32
from hilo.ir.module import Module, region
from hilo.ir.types import UNKNOWN, TensorType
from hilo.ops.fft import KINDS, fft


def compiled(x: np.ndarray, **attrs: Any) -> np.ndarray:
    m = Module({"main": region([type_of(x)], lambda v: fft(v, **attrs), "main")})
    return np.asarray(hilo.compile(m)(x)[0])


def numbers(shape: Any, dtype: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=shape)
    return (x + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else x).astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_the_defining_sum(n, kind):
    sign = -1 if kind in ("FFT", "RFFT") else 1
    powers = np.exp(sign * 2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
    x = numbers((2, n), np.float64 if kind[0] == "R" or kind == "IRFFT" else np.complex128)
    if kind == "IRFFT":
        half = x @ np.exp(-2j * np.pi * np.outer(np.arange(n), np.arange(n)) / n)
        got, want = run_op(fft, half[:, : n // 2 + 1], fft_type=kind, fft_length=(n,)), x
    else:
        want = x @ powers / (n if kind == "IFFT" else 1)
        want = want[:, : n // 2 + 1] if kind == "RFFT" else want
        got = run_op(fft, x, fft_type=kind, fft_length=(n,))
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 7, 31, 32, 33, 37, 64, 74, 101, 360, 1009, 1024, 1369, 4096])
@pytest.mark.parametrize(("kind", "dtype", "eps"), [
    ("FFT", np.complex64, 2e-6), ("IFFT", np.complex128, 1e-14), ("RFFT", np.float64, 1e-14),
    ("IRFFT", np.complex64, 2e-6),
])  # fmt: skip
def test_every_length_compiled(n, kind, dtype, eps):
    x = numbers((3, n // 2 + 1 if kind == "IRFFT" else n), dtype, n)
    attrs = {"fft_type": kind, "fft_length": (n,)}
    want = run_op(fft, x, **attrs)
    got = compiled(x, **attrs)
    assert got.dtype == want.dtype
    scale = np.abs(want).max()
    assert np.abs(got - want).max() <= eps * scale * max(1.0, np.log2(n))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [(6,), (4, 6), (3, 4, 5)])
def test_several_axes(length, kind):
    real_type = kind in ("RFFT",)
    last = length[-1] // 2 + 1 if kind == "IRFFT" else length[-1]
    x = numbers((2, *length[:-1], last), np.float64 if real_type else np.complex128)
    axes = tuple(range(-len(length), 0))
    want = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn,
            "IRFFT": lambda v, axes: np.fft.irfftn(v, s=length, axes=axes)}[kind](x, axes=axes)  # type: ignore[operator]  # fmt: skip
    attrs = {"fft_type": kind, "fft_length": length}
    np.testing.assert_allclose(run_op(fft, x, **attrs), want, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(compiled(x, **attrs), want, rtol=1e-12, atol=1e-12)


def test_unknown_sizes():
    t = TensorType(f32, (UNKNOWN, 8))
    assert str(fft.infer(t, fft_type="RFFT", fft_length=(8,))) == "c64[?,5]"


C = TensorType(c64, (4, 6))
BAD: list[tuple[str, Any, str, tuple[int, ...]]] = [
    ("C1", C, "FFT", (1, 4, 6)),
    ("C2", TensorType(f32, (4, 6)), "FFT", (6,)),
    ("C2", TensorType(i32, (4, 6)), "IFFT", (6,)),
    ("C2", C, "RFFT", (6,)),
    ("C2", TensorType(bf16, (6,)), "RFFT", (6,)),
    ("C2", TensorType(f32, (4, 6)), "IRFFT", (10,)),
    ("C3", C, "FFT", ()),
    ("C3", TensorType(c64, (2, 2, 2, 2)), "FFT", (2, 2, 2, 2)),
    ("C4", TensorType(f32, (4, 6)), "RFFT", (5,)),
    ("C4", C, "IRFFT", (3, 10)),
    ("C5", C, "IRFFT", (4, 6)),
    ("I2", C, "DCT", (6,)),
]


@pytest.mark.parametrize(("rule", "t", "kind", "length"), BAD)
def test_refusals(rule, t, kind, length):
    refuses(rule, fft, (t,), fft_type=kind, fft_length=length)
