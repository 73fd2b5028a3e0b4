"""Keras models train on hilo as they do on TensorFlow's own jit: 20 steps, the same weights, losses and metrics."""

from __future__ import annotations

from itertools import cycle

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

import keras_models  # noqa: E402

import hilo.tensorflow  # noqa: E402

STEPS, BATCH = 20, 8
PAIRS = [*zip(keras_models.MODELS, cycle(keras_models.OPTIMIZERS))]


@pytest.fixture
def installed():
    hilo.tensorflow.install()
    yield
    hilo.tensorflow.uninstall()


def train(name: str, optimizer: str):
    x, y = keras_models.data(*keras_models.MODELS[name][1:], STEPS * BATCH)
    model = keras_models.compiled(name, optimizer)
    logs = model.fit(x, y, batch_size=BATCH, epochs=1, shuffle=False, verbose=0).history
    return model, logs, x, y


def on_hilo(name: str, optimizer: str):
    hilo.tensorflow.install()
    try:
        return train(name, optimizer)
    finally:
        hilo.tensorflow.uninstall()


@pytest.mark.parametrize(("name", "optimizer"), PAIRS, ids=[f"{n}, {o}" for n, o in PAIRS])
def test_twenty_steps(name, optimizer):
    ours, our_logs, *_ = on_hilo(name, optimizer)
    theirs, their_logs, *_ = train(name, optimizer)
    assert our_logs.keys() == their_logs.keys()
    for key in our_logs:
        np.testing.assert_allclose(our_logs[key], their_logs[key], rtol=1e-4, atol=1e-5)
    for a, b in zip(ours.weights, theirs.weights, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-3, atol=2e-5, err_msg=a.path)


def test_evaluate_and_predict(installed):
    model, _, x, y = train("convolutions", "SGD")
    logits = model.predict(x, batch_size=BATCH, verbose=0)
    np.testing.assert_allclose(logits, model(x), rtol=1e-4, atol=1e-5)
    loss, accuracy = model.evaluate(x, y, batch_size=BATCH, verbose=0)
    assert abs(accuracy - (logits.argmax(1) == y).mean()) < 1e-6
    assert np.isfinite(loss)


def test_several_steps_at_once(installed):
    x, y = keras_models.data((12,), "classes", 40)
    model = keras_models.compiled("perceptron", steps_per_execution=3)
    model.fit(x, y, batch_size=8, verbose=0)
    assert int(model.optimizer.iterations) == 5


def test_a_training_step_of_ones_own(installed):
    class Model(tf.keras.Model):
        def __init__(self):
            super().__init__()
            self.layer = tf.keras.layers.Dense(1)

        def call(self, x):
            return self.layer(x)

        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((self(x) - y) ** 2)
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
            return {"mine": loss}

    x, y = keras_models.data((12,), "values", 64)
    model = Model()
    model.compile("sgd", jit_compile=True)
    losses = model.fit(x, y, batch_size=8, epochs=3, verbose=0).history["mine"]
    assert losses[-1] < losses[0]


def test_mixed_precision():
    def run():
        tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
        try:
            return train("perceptron", "SGD")
        finally:
            tf.keras.mixed_precision.set_global_policy("float32")

    theirs = run()
    hilo.tensorflow.install()
    try:
        ours = run()
    finally:
        hilo.tensorflow.uninstall()
    np.testing.assert_allclose(ours[1]["loss"], theirs[1]["loss"], rtol=2e-2)
    for a, b in zip(ours[0].weights, theirs[0].weights, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=0.1, atol=0.02)
