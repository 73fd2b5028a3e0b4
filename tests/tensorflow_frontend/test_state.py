"""Variables: what functions do to them, where they live, and random numbers with state."""

from __future__ import annotations

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

import alike  # noqa: E402

import hilo  # noqa: E402
import hilo.tensorflow  # noqa: E402

X = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)


def address(t) -> int:
    return (t if isinstance(t, tf.Tensor) else t.value())._numpy().ctypes.data


def counter():
    v, n = tf.Variable(X), tf.Variable(0, trainable=False)

    def f(x):
        v.assign_add(x * 2)
        n.assign(n + 1)
        return v * 2, n

    return f, (v, n)


def sparse_update():
    v = tf.Variable(np.zeros((5, 3), np.float32))

    def f(i):
        v.scatter_nd_add([[0], [2]], tf.ones([2, 3]))
        v[1, 1:].assign([7.0, 8.0])
        return tf.gather(v, i)

    return f, (v,)


def conditional_update():
    v = tf.Variable(1.0)

    def f(x):
        if tf.reduce_sum(x) > 0:
            v.assign_sub(0.5)
        for _ in tf.range(3):
            v.assign(v * 1.5)
        return v + 0

    return f, (v,)


def generator():
    g = tf.random.Generator.from_seed(7, alg="philox")
    return lambda: (g.normal([3, 4]), g.uniform([5], maxval=10, dtype=tf.int32)), (g.state,)


def in_bfloat16():
    v = tf.Variable(tf.cast(X, tf.bfloat16))

    def f(x):
        v.assign_add(tf.cast(x, tf.bfloat16))
        return v * 2

    return f, (v,)


@pytest.mark.parametrize(("make", "args"), [
    (counter, [X]), (sparse_update, [np.array([2, 1])]), (conditional_update, [X]), (generator, []), (in_bfloat16, [X]),
], ids=lambda p: p.__name__ if callable(p) else "")  # fmt: skip
def test_variables(make, args):
    alike.check(make, [tf.constant(a) for a in args], calls=3)


def test_variables_are_made_at_the_first_call():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None

        @hilo.tensorflow.function
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([6, 2]) * 3)
            return x @ self.w

    a, b = Model(), Model()
    np.testing.assert_allclose(a(tf.constant(X)), X @ np.full((6, 2), 3.0), rtol=1e-5, atol=1e-5)
    b(tf.constant(X))
    b.w.assign(tf.ones([6, 2]))
    np.testing.assert_allclose(b(tf.constant(X)), X @ np.ones((6, 2)), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(a(tf.constant(X)), X @ np.full((6, 2), 3.0), rtol=1e-5, atol=1e-5)


def test_a_variable_as_an_argument():
    f = hilo.tensorflow.function(lambda v, x: v.assign(v + x))
    v, w = tf.Variable(1.0), tf.Variable(10.0)
    f(v, tf.constant(2.0)), f(w, tf.constant(3.0)), f(v, tf.constant(0.5))
    assert (float(v), float(w)) == (3.5, 13.0)


def test_an_updated_variable_lives_in_the_results_memory():
    v = tf.Variable(np.zeros((256, 256), np.float32))
    places = []

    @hilo.tensorflow.function
    def step(x):
        v.assign_add(x)

    x = tf.ones([256, 256])
    step(x)
    (plan,) = step._list_all_concrete_functions()[0]._inference_function.call_flat.plans.values()
    run = plan.executable

    def noted(*arrays):
        results = run(*arrays)
        places.append((arrays, results[0].ctypes.data))
        return results

    plan.executable = noted
    held = v.value()
    before = held.numpy().copy()
    step(x)
    (arrays, result), = places
    assert any(a.ctypes.data == address(held) for a in arrays)  # the value was read where it lies
    assert any(a.ctypes.data == address(x) for a in arrays)
    assert address(v) == result  # and the new one is where hilo wrote it
    np.testing.assert_array_equal(held, before)  # nobody's tensor changes
    np.testing.assert_array_equal(v, before + 1)


def test_tensorflow_changes_a_variable_between_calls():
    v = tf.Variable(1.0)
    f = hilo.tensorflow.function(lambda: v.assign(v * 2))
    f()
    v.assign_add(1.0)  # in the memory that hilo gave, or another
    f()
    v.assign(10.0)
    assert (float(f()), float(v)) == (20.0, 20.0)


def test_random_numbers_with_state_differ_between_calls():
    f = hilo.tensorflow.function(lambda: tf.random.normal([1000]))
    a, b = f().numpy(), f().numpy()
    assert np.abs(a - b).max() > 0.1
    assert abs(np.concatenate([a, b]).mean()) < 0.15
    assert abs(np.concatenate([a, b]).std() - 1) < 0.1


def test_what_cannot_be_compiled_is_named():
    @hilo.tensorflow.function
    def f(x):
        return tf.strings.as_string(x + 1)

    with pytest.raises(hilo.Error, match=r"op 'AsString', made at \S*test_state\.py:\d+ in f: AsString \(No reg"):
        f(tf.constant(1.0))


def test_a_resource_that_cannot_be_compiled_is_named():
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4]), -1)

    @hilo.tensorflow.function
    def f(x):
        return table.lookup(x)

    with pytest.raises(hilo.Error, match=r"op '\S*LookupTableFindV2', made at \S*test_state\.py:\d+ in f: Lookup"):
        f(tf.constant(1))


def test_memory_does_not_grow():
    from hilo.runtime import _native

    v = tf.Variable(np.zeros((128, 128), np.float32))

    @hilo.tensorflow.function
    def step(x):
        v.assign_add(x)
        return v * 2

    x = tf.ones([128, 128])
    for _ in range(5):
        step(x)
    before = _native.memory_stats()["in_use"]
    for _ in range(50):
        step(x)
    assert _native.memory_stats()["in_use"] <= before + 2 * 128 * 128 * 4
    assert float(v[0, 0]) == 55
