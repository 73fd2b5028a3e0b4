"""Attention in random forms, block by block: the bits are those of the kernels one after the other, on every target."""

from __future__ import annotations

import numpy as np
import pytest
from attention_forms import Form

import hilo
from hilo.ir.types import TensorType
from hilo.kernels import attention as kernel
from hilo.passes import attention

UNLIKE = (7, 8, 10)  # long rows of scores as a right operand, or something between: three kernels
TARGETS = ["x86-avx512", "x86-avx2", "x86-sse2"]


def values(f: hilo.Executable, seed: int, special: float = 0.0) -> list[np.ndarray]:
    """Random arguments; `special`: how many numbers are infinities, NaN, zeros and huge."""
    rng = np.random.default_rng(seed)
    out = []
    for t in f.arg_types:
        assert isinstance(t, TensorType)
        d = t.dtype.np
        if t.dtype.kind == "b":
            out.append(rng.integers(0, 2, t.shape).astype(np.bool_))
        elif t.dtype.kind in "iu":
            out.append(rng.integers(-1, 60, t.shape).astype(d))
        else:
            x = rng.standard_normal(t.shape)
            odd = rng.choice([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e4], t.shape)
            out.append(np.where(rng.random(t.shape) < special, odd, x).astype(d))
    return out


def compiled(seed: int, monkeypatch: pytest.MonkeyPatch, **options: object) -> tuple[hilo.Executable, hilo.Executable]:
    """The program block by block, and its kernels one after the other."""
    text = Form(seed).program()
    if seed % 2:  # many blocks
        monkeypatch.setattr(kernel, "ROWS", (16, 48))
    monkeypatch.setattr(attention, "SCORES", 1)
    monkeypatch.setattr(attention, "BATCHES", 1)
    blocks = hilo.compile(text, **options)  # type: ignore[arg-type]
    monkeypatch.setattr(attention, "SCORES", 1 << 60)
    return blocks, hilo.compile(text, **options)  # type: ignore[arg-type]


def same_bits(x: list[np.ndarray], y: list[np.ndarray]) -> None:
    """Which of several NaNs with different signs a sum gives is the processor's choice, by the order of operands."""
    for a, b in zip(x, y, strict=True):
        a, b = (np.where(np.isnan(v), np.array(np.nan, v.dtype), v) for v in (a, b))
        np.testing.assert_array_equal(a.view(np.uint8), b.view(np.uint8))


@pytest.mark.parametrize("seed", [s for s in range(17) if s not in UNLIKE])
def test_same_bits(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, apart = compiled(seed, monkeypatch, target=TARGETS[seed % 3], threads=1 + seed % 2)
    assert 'kind = "attention"' in blocks.text("fuse")
    assert 'kind = "attention"' not in apart.text("fuse")
    for special in (0.0, 0.002):
        arrays = values(blocks, seed, special)
        with np.errstate(all="ignore"):
            same_bits(blocks(*arrays), apart(*arrays))


def test_any_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    one, _ = compiled(5, monkeypatch, threads=1)
    two, _ = compiled(5, monkeypatch, threads=2)
    arrays = values(one, 3)
    same_bits(one(*arrays), two(*arrays))


@pytest.mark.parametrize("seed", [0, 2])
def test_against_the_interpreter(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks, _ = compiled(seed, monkeypatch)
    arrays = values(blocks, seed)
    expected = hilo.interpret(Form(seed).program(), *arrays)
    for x, y in zip(blocks(*arrays), expected, strict=True):
        eps = 2e-2 if x.dtype.itemsize == 2 else 1e-5
        np.testing.assert_allclose(x.astype(np.float64), y.astype(np.float64), rtol=eps, atol=eps)
