"""Compiled functions inside of other functions, under gradient tapes, in data pipelines."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

import hilo.tensorflow  # noqa: E402

X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


@pytest.fixture(params=[hilo.tensorflow.function, lambda f: tf.function(f, jit_compile=True)], ids=["hilo", "tf"])
def compiled(request):
    """What the tests say is true of TensorFlow's own, too."""
    return request.param


def test_called_from_a_plain_function(compiled):
    v = tf.Variable(1.0)

    @compiled
    def inner(x):
        v.assign_add(1.0)
        return {"y": x * v}

    @tf.function
    def outer(x, n):
        for _ in tf.range(n):
            x = inner(x)["y"]
        return x + v

    np.testing.assert_allclose(outer(tf.constant(X), 3), X * 2 * 3 * 4 + 4, rtol=1e-5)
    assert float(v) == 4


def test_called_from_a_compiled_function(compiled):
    inner = compiled(lambda x: x * 2)
    outer = compiled(lambda x: inner(x) + inner(x + 1))
    np.testing.assert_allclose(outer(tf.constant(X)), X * 4 + 2, rtol=1e-5)
    text = outer.experimental_get_compiler_ir(tf.constant(X))(stage="hlo")
    assert "add" in text


def test_gradient_of_a_call(compiled):
    w = tf.Variable(tf.ones([6, 2]))
    f = compiled(lambda x: tf.tanh(x @ w) ** 2)
    with tf.GradientTape() as tape:
        x = tf.constant(X)
        tape.watch(x)
        y = tf.reduce_sum(f(x)) * 3
    dx, dw = tape.gradient(y, [x, w])
    t = np.tanh(X @ np.ones((6, 2)))
    d = 6 * t * (1 - t**2)
    np.testing.assert_allclose(dx, d @ np.ones((2, 6)), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dw, X.T @ d, rtol=1e-4, atol=1e-5)


def test_second_derivative(compiled):
    f = compiled(lambda x: x**3)
    x = tf.constant(2.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        dy = inner.gradient(y, x)
    assert abs(float(outer.gradient(dy, x)) - 12) < 1e-4


@pytest.mark.parametrize("persistent", [False, True])
def test_gradient_in_a_plain_function(compiled, persistent):
    w = tf.Variable(3.0)
    f = compiled(lambda x: (x * w, x + 1))

    @tf.function
    def g(x):
        with tf.GradientTape(persistent=persistent) as tape:
            tape.watch(x)
            y, z = f(x)
            loss = tf.reduce_sum(y * z)
        return tape.gradient(loss, [x, w])

    for x in (2.0, 5.0):
        dx, dw = g(tf.constant(x))
        assert (float(dx), float(dw)) == (3 * (2 * x + 1), x * (x + 1))


def test_symbolic_gradient(compiled):
    f = compiled(lambda x: x * x)

    @tf.function
    def g(x):
        return tf.gradients(f(x), [x])

    assert float(g(tf.constant(3.0))[0]) == 6


def test_sizes_that_the_graph_leaves_open(compiled):
    f = compiled(lambda x: x - tf.reduce_mean(x, 0))

    @tf.function(input_signature=[tf.TensorSpec([None, 6])])
    def g(x):
        return f(x)

    for n in (4, 2):
        np.testing.assert_allclose(g(tf.constant(X[:n])), X[:n] - X[:n].mean(0), rtol=1e-4, atol=1e-6)


def test_in_a_data_pipeline(compiled):
    f = compiled(lambda x: x * 2 + 1)
    data = tf.data.Dataset.range(5).map(f, num_parallel_calls=2)
    assert [int(x) for x in data] == [1, 3, 5, 7, 9]


def test_a_concrete_function(compiled):
    f = compiled(lambda x, y: x - y).get_concrete_function(tf.TensorSpec([4, 6]), tf.TensorSpec([]))
    np.testing.assert_allclose(f(tf.constant(X), tf.constant(1.0)), X - 1, rtol=1e-6)
    np.testing.assert_allclose(tf.function(lambda x: f(x, tf.constant(2.0)))(tf.constant(X)), X - 2, rtol=1e-6)


def test_threads(compiled):
    from concurrent.futures import ThreadPoolExecutor

    f = compiled(lambda x: tf.reduce_sum(x * x))
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda n: float(f(tf.ones([n % 3 + 1]))), range(24)))
    assert got == [n % 3 + 1.0 for n in range(24)]


def test_functions_go_when_nobody_has_them():
    import gc
    import weakref

    def make():
        f = hilo.tensorflow.function(lambda x: x + 1)
        f(tf.constant(1.0))
        (plan,) = f._list_all_concrete_functions()[0]._inference_function.call_flat.plans.values()
        return weakref.ref(plan)

    plan = make()
    gc.collect()
    assert plan() is None


def test_models_are_saved_as_tensorflow_knows_them(tmp_path):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable(2.0)

        @hilo.tensorflow.function
        def __call__(self, x):
            return x * self.w

        @tf.function(input_signature=[tf.TensorSpec([3])])
        def outer(self, x):
            return self(x) + 1

    model = Model()
    model(tf.ones([3]))
    tf.saved_model.save(model, str(tmp_path), signatures=model.outer)
    text = (tmp_path / "saved_model.pb").read_bytes()
    assert b"hilo" in text  # the mark, which TensorFlow itself passes over
    assert b"EagerPyFunc" not in text
    loaded = tf.saved_model.load(str(tmp_path))
    np.testing.assert_array_equal(loaded.signatures["serving_default"](tf.ones([3]))["output_0"], [3, 3, 3])
    np.testing.assert_array_equal(loaded(tf.ones([3])), [2, 2, 2])
