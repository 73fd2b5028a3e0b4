"""Functions of all kinds give what TensorFlow's own jit gives, and leave variables as it does."""

from __future__ import annotations

from collections import namedtuple

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="needs TensorFlow: pip install '.[tensorflow]'")

import alike  # noqa: E402

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


X, Y, SQUARE = f32(4, 6), f32(4, 6), f32(5, 5)
IMAGE, SEQUENCE = f32(2, 8, 8, 3), f32(3, 5, 4)
INTS = np.array([3, 1, 4, 1, 5, 9, 2, 6], np.int32)
POSITIVE = SQUARE @ SQUARE.T + 5 * np.eye(5, dtype=np.float32)
THREE = tf.constant(3.0)
Pair = namedtuple("Pair", "first second")


def loop(x):
    total = tf.zeros_like(x)
    for i in tf.range(5):
        if tf.reduce_sum(total) > 3.0:
            total -= x
        else:
            total += x * tf.cast(i, x.dtype)
    return total


def fibonacci(n):
    a, b = tf.constant(0), tf.constant(1)
    while n > 0:
        a, b, n = b, a + b, n - 1
    return a


def rows_of(x):
    out = tf.TensorArray(tf.float32, size=4)
    for i in tf.range(4):
        out = out.write(i, x[i] * tf.cast(i, tf.float32))
    return out.stack()


def gradient_of(f):
    def gradient(*args):
        with tf.GradientTape() as tape:
            tape.watch(args)
            y = f(*args)
        return y, tape.gradient(y, args)

    return gradient


def defaults(x, y=2.0, *, scale=THREE, negate=False):
    return -x * y * scale if negate else x * y * scale


CASES = {
    # elementwise and reductions
    "arithmetic": (lambda x, y: x * y - x / (tf.abs(y) + 1), X, Y),
    "unary": (lambda x: tf.tanh(x) + tf.exp(-x) + tf.math.erf(x) + tf.sigmoid(x) + tf.math.softplus(x), X),
    "special": (lambda x: (tf.math.lgamma(x), tf.math.digamma(x), tf.math.erfinv(x / 10)), np.abs(X) + 0.5),
    "integers": (lambda i: (i // 3, i % 3, tf.bitwise.bitwise_xor(i, 5), -i, tf.abs(i - 4)), INTS),
    "comparisons": (lambda x, y: tf.where(tf.logical_and(x > y, x < 1), x, tf.zeros_like(y)), X, Y),
    "casts": (lambda x: (tf.cast(x * 10, tf.int8), tf.cast(x, tf.float64), tf.cast(x > 0, tf.uint16)), X),
    "bfloat16": (lambda x: tf.cast(x, tf.bfloat16) * 2, X),
    "half": (lambda x: tf.cast(x, tf.float16) + 1, X),
    "complex": (lambda x, y: (tf.complex(x, y) * 2j, tf.math.conj(tf.complex(x, y)), tf.abs(tf.complex(x, y))), X, Y),
    "reductions": (lambda x: (tf.reduce_mean(x, 0), tf.reduce_max(x, 1), tf.reduce_prod(x), tf.math.reduce_std(x)), X),
    "logsumexp": (lambda x: (tf.reduce_logsumexp(x, -1), tf.nn.log_softmax(x), tf.nn.softmax(x, 0)), X),
    "arguments": (lambda x: (tf.argmax(x, 1), tf.argmin(x, 0), tf.argsort(x)), X),
    "cumulative": (lambda x: (tf.cumsum(x, 1, reverse=True), tf.math.cumprod(x, 0, exclusive=True)), X),
    "empty": (lambda x: (x[:, :0], tf.reduce_sum(x[:0])), X),
    "scalar": (lambda x: x[0, 0] * 2, X),
    "nothing": (lambda x: None, X),
    # shapes
    "reshape": (lambda x: tf.transpose(tf.reshape(x, [2, 3, 4]), [2, 0, 1]), X),
    "slices": (lambda x: (x[1:3, ::2], x[-1], x[:, tf.newaxis, 2], x[..., ::-1]), X),
    "concat": (lambda x, y: tf.concat([x, y], 1) + tf.pad(x, [[0, 0], [3, 3]]), X, Y),
    "split": (lambda x: (tf.split(x, 3, axis=1), tf.unstack(x), tf.stack([x, x])), X),
    "gather": (lambda x: (tf.gather(x, [2, 0], axis=1), tf.gather_nd(x, [[0, 1], [3, 5]])), X),
    "scatter": (lambda x: tf.tensor_scatter_nd_add(x, [[0, 1], [0, 1], [3, 3]], [1.0, 2.0, 3.0]), X),
    "one hot": (lambda i: (tf.one_hot(i, 10), tf.math.bincount(i, minlength=10, maxlength=10)), INTS),
    "tile": (lambda x: (tf.tile(x, [2, 1]), tf.roll(x, 1, 0), tf.repeat(x, 2, axis=1), tf.reverse(x, [1])), X),
    "segments": (lambda x: tf.math.unsorted_segment_sum(x, [1, 0, 1, 2], 3), X),
    "broadcast": (lambda x: tf.broadcast_to(x[0], [3, 6]) + tf.linspace(0.0, 1.0, 6), X),
    "shape of": (lambda x: (tf.shape(x), tf.size(x), tf.rank(x)), X),
    "constants": (lambda x, n, a: tf.reduce_sum(tf.reshape(x, [n, -1]), axis=a), X, np.int32(8), np.int32(1)),
    # linear algebra
    "matmul": (lambda x, y: (tf.matmul(x, y, transpose_b=True), tf.einsum("ij,kj->ki", x, y)), X, Y),
    "batched": (lambda s: tf.linalg.matmul(s, s, transpose_a=True), SEQUENCE),
    "cholesky": (tf.linalg.cholesky, POSITIVE),
    "solve": (lambda a, b: tf.linalg.triangular_solve(a, b), POSITIVE, SQUARE),
    "determinant": (lambda a: tf.linalg.logdet(a), POSITIVE),
    "fft": (lambda x: tf.signal.rfft(x), X),
    "top k": (lambda x: tf.math.top_k(x, 3), X),
    "sort": (lambda x: (tf.sort(x, axis=0), tf.sort(x, direction="DESCENDING")), X),
    # control flow
    "for": (loop, X),
    "while": (fibonacci, np.int32(10)),
    "cond": (lambda x: tf.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: -x), X),
    "switch": (lambda i: tf.switch_case(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0]), np.int32(1)),
    "scan": (lambda x: tf.scan(lambda a, b: a * 0.5 + b, x), X),
    "map": (lambda x: tf.map_fn(lambda r: r * tf.reduce_sum(r), x), X),
    "TensorArray": (rows_of, X),
    # neural networks
    "convolution": (lambda x: tf.nn.conv2d(x, tf.ones([3, 3, 3, 4]), 2, "SAME"), IMAGE),
    "depthwise": (lambda x: tf.nn.depthwise_conv2d(x, tf.ones([3, 3, 3, 2]), [1, 1, 1, 1], "VALID"), IMAGE),
    "pooling": (lambda x: (tf.nn.max_pool2d(x, 2, 2, "VALID"), tf.nn.avg_pool2d(x, 3, 2, "SAME")), IMAGE),
    "batch norm": (lambda x: tf.nn.batch_normalization(x, *tf.nn.moments(x, [0, 1, 2]), None, None, 1e-3), IMAGE),
    "resize": (lambda x: tf.image.resize(x, [5, 11]), IMAGE),
    "cross entropy": (lambda x: tf.nn.sparse_softmax_cross_entropy_with_logits([1, 2, 3, 0], x), X),
    "attention": (lambda s: tf.nn.softmax(s @ tf.transpose(s, [0, 2, 1]) / 2) @ s, SEQUENCE),
    # gradients
    "gradient": (gradient_of(lambda x, y: tf.reduce_sum(tf.tanh(x) * y**2)), X, Y),
    "gradient of conv": (gradient_of(lambda x: tf.reduce_sum(tf.nn.max_pool2d(
        tf.nn.relu(tf.nn.conv2d(x, tf.ones([3, 3, 3, 4]) / 9, 1, "SAME")), 2, 2, "VALID"))), IMAGE),
    "gradient of loop": (gradient_of(lambda x: tf.reduce_sum(tf.scan(lambda a, b: tf.tanh(a + b), x))), X),
    # structures
    "nested": (lambda d: {"b": [d["x"] + 1, None], "a": (d["y"],), "p": Pair(d["x"], 3)}, {"x": X, "y": Y}),
    "captured": ((lambda c: lambda x: x + c)(tf.constant(Y)), X),
    "ragged": (lambda x: tf.RaggedTensor.from_row_splits(x, tf.constant([0, 1, 4], tf.int64)), X),
    "defaults": (defaults, X),
    # sizes known only from values
    "unique": (tf.unique, INTS),
    "where": (lambda x: tf.where(x > 0), X),
    "boolean mask": (lambda x: tf.boolean_mask(x, x > 0), X),
    # random numbers without state
    "stateless": (lambda: (tf.random.stateless_uniform([4, 3], [1, 2]), tf.random.stateless_normal([9], [3, 4])),),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    f, *args = CASES[name]
    alike.check(lambda: (f, ()), [tf.nest.map_structure(tf.constant, a) for a in args], rtol=2e-5, atol=2e-5)


def test_python_arguments_are_parts_of_the_key():
    import hilo.tensorflow

    f = hilo.tensorflow.function(defaults)
    x = tf.constant(X)
    np.testing.assert_allclose(f(x), X * 6, rtol=1e-6)
    np.testing.assert_allclose(f(x, negate=True), X * -6, rtol=1e-6)
    np.testing.assert_allclose(f(x, 4.0), X * 12, rtol=1e-6)
    np.testing.assert_allclose(f(x, y=4.0, scale=tf.constant(1.0)), X * 4, rtol=1e-6)
    assert f.experimental_get_tracing_count() == 3


def test_values_that_must_be_known_are_parts_of_the_key():
    import hilo.tensorflow

    f = hilo.tensorflow.function(lambda x, n, m: tf.reshape(x, [n, -1]) + tf.cast(m, tf.float32))
    x = tf.constant(X)
    for n, m in ((2, 3), (3, 2), (4, 4), (2, 5)):
        np.testing.assert_allclose(f(x, tf.constant(n), tf.constant(m)), X.reshape(n, -1) + m, rtol=1e-6)
    assert f.experimental_get_tracing_count() == 1


def test_signature_with_open_sizes():
    import hilo.tensorflow

    f = hilo.tensorflow.function(lambda x: tf.reduce_sum(x, 0), input_signature=[tf.TensorSpec([None, 6])])
    for n in (4, 1, 3):
        np.testing.assert_allclose(f(tf.constant(X[:n])), X[:n].sum(0), rtol=1e-5, atol=1e-6)
    assert f.experimental_get_tracing_count() == 1
    with pytest.raises(TypeError):
        f(tf.zeros([3, 5]))
