"""Calls that take the short way to their traced function, and what must not."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

import hilo.tensorflow  # noqa: E402


def warm(f, *args):
    for _ in range(3):
        f(*args)
    assert any(s is not None for s in f._shortcuts.values())
    return f


def test_taken_by_tensors_alone():
    f = warm(hilo.tensorflow.function(lambda x, y=1.0: x + y), tf.constant(1.0))
    assert float(f(tf.constant(1.0), 5.0)) == 6
    assert float(f(tf.constant(1.0), y=7.0)) == 8
    assert float(f(1.0)) == 2
    assert f(tf.constant(1.0, tf.float64)).dtype == tf.float64
    assert f(tf.constant([1.0, 2.0])).shape == (2,)
    assert len(f._list_all_concrete_functions()) == 6


def test_not_taken_with_tensors_among_the_defaults():
    f = hilo.tensorflow.function(lambda x, y=tf.constant(2.0): x * y)  # noqa: B008
    for _ in range(4):
        assert float(f(tf.constant(3.0))) == 6
    assert not any(f._shortcuts.values())


def test_gradients_after_it():
    w = tf.Variable(2.0)
    f = warm(hilo.tensorflow.function(lambda x: x * w), tf.constant(3.0))
    with tf.GradientTape() as tape:
        y = f(tf.constant(3.0))
    assert float(tape.gradient(y, w)) == 3


def test_structures_after_it():
    f = warm(hilo.tensorflow.function(lambda x: {"a": [x, None], "b": (x + 1, 2)}), tf.constant(3.0))
    out = f(tf.constant(4.0))
    assert (float(out["a"][0]), out["a"][1], float(out["b"][0]), int(out["b"][1])) == (4, None, 5, 2)


def test_run_functions_eagerly():
    seen = []
    f = warm(hilo.tensorflow.function(lambda x: seen.append(1) or x + 1), tf.constant(1.0))
    count = len(seen)
    tf.config.run_functions_eagerly(True)
    try:
        f(tf.constant(1.0)), f(tf.constant(1.0))
    finally:
        tf.config.run_functions_eagerly(False)
    assert len(seen) == count + 2


def test_without_arguments_and_outputs():
    v = tf.Variable(0)

    @hilo.tensorflow.function
    def f():
        v.assign_add(1)

    assert warm(f)() is None
    assert int(v) == 4


def test_methods():
    class Scale:
        def __init__(self, by):
            self.by = tf.Variable(by)

        @hilo.tensorflow.function
        def apply(self, x):
            return x * self.by

    a, b = Scale(2.0), Scale(3.0)
    for _ in range(3):
        assert (float(a.apply(tf.constant(1.0))), float(b.apply(tf.constant(1.0)))) == (2, 3)


def test_values_that_must_be_known():
    f = hilo.tensorflow.function(lambda x, n: tf.reshape(x, [n, -1]))
    for n in (1, 1, 2, 3, 2, 1):
        assert f(tf.zeros([6]), tf.constant(n)).shape == (n, 6 // n)


def test_composite_results():
    f = hilo.tensorflow.function(lambda x: tf.RaggedTensor.from_row_lengths(x, tf.constant([1, 2])))
    for _ in range(3):
        np.testing.assert_array_equal(f(tf.constant([1.0, 2.0, 3.0])).to_list()[1], [2, 3])
