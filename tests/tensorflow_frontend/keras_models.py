"""Small Keras models of all kinds: name -> (a function that makes one, its inputs' shape, "classes" or "values")."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

L = tf.keras.layers
Sequential = tf.keras.Sequential
CLASSES = 5


def residual() -> Any:
    x = inputs = tf.keras.Input((8, 8, 3))
    x = L.Conv2D(8, 3, padding="same", use_bias=False)(x)
    y = L.BatchNormalization()(x)
    y = L.Conv2D(8, 3, padding="same")(L.ReLU()(y))
    x = L.Add()([x, y])
    return tf.keras.Model(inputs, L.Dense(CLASSES)(L.GlobalAveragePooling2D()(x)))


def transformer() -> Any:
    x = inputs = tf.keras.Input((6, 8))
    a = L.MultiHeadAttention(num_heads=2, key_dim=4)(x, x, use_causal_mask=True)
    x = L.LayerNormalization()(x + a)
    f = L.Dense(8)(L.Dense(16, activation="gelu")(x))
    x = L.LayerNormalization()(x + f)
    return tf.keras.Model(inputs, L.Dense(CLASSES)(L.Flatten()(x)))


def two_towers() -> Any:
    a = inputs = tf.keras.Input((12,))
    left = L.Dense(6, activation="swish")(a[:, :6])
    right = L.Dense(6, activation="sigmoid")(a[:, 6:])
    return tf.keras.Model(inputs, L.Dense(1)(L.Concatenate()([left * right, L.Maximum()([left, right])])))


def autoencoder() -> Any:
    return Sequential([L.Input((8, 8, 3)), L.Conv2D(6, 3, 2, padding="same", activation="elu"),
                       L.Conv2DTranspose(3, 3, 2, padding="same")])  # fmt: skip


def dense(*layers: Any, shape: tuple[int, ...] = (12,), units: int = CLASSES) -> Any:
    return Sequential([L.Input(shape), *layers, L.Dense(units)])


MODELS: dict[str, tuple[Any, tuple[int, ...], str]] = {
    "linear": (lambda: dense(), (12,), "classes"),
    "perceptron": (lambda: dense(L.Dense(16, activation="relu"), L.Dense(8, activation="tanh")), (12,), "classes"),
    "regression": (lambda: dense(L.Dense(8, activation="softplus"), units=1), (12,), "values"),
    "batch norm": (lambda: dense(L.Dense(8), L.BatchNormalization(), L.LeakyReLU()), (12,), "classes"),
    "layer norm": (lambda: dense(L.Dense(8), L.LayerNormalization(), L.ReLU()), (12,), "classes"),
    "regularized": (lambda: dense(L.Dense(8, "relu", kernel_regularizer="l2"), L.ActivityRegularization(l1=0.01)),
                    (12,), "classes"),
    "two towers": (two_towers, (12,), "values"),
    "convolutions": (lambda: dense(L.Conv2D(4, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), shape=(8, 8, 3)),
                     (8, 8, 3), "classes"),
    "separable": (lambda: dense(L.SeparableConv2D(4, 3, padding="same"), L.AveragePooling2D(2), L.Flatten(),
                                shape=(8, 8, 3)), (8, 8, 3), "classes"),
    "depthwise": (lambda: dense(L.DepthwiseConv2D(3, depth_multiplier=2), L.GroupNormalization(3), L.Flatten(),
                                shape=(8, 8, 3)), (8, 8, 3), "classes"),
    "dilated": (lambda: dense(L.Conv1D(6, 3, dilation_rate=2, padding="causal"), L.GlobalMaxPooling1D(), shape=(9, 4)),
                (9, 4), "classes"),
    "volume": (lambda: dense(L.Conv3D(3, 2, activation="relu"), L.GlobalAveragePooling3D(), shape=(4, 4, 4, 2)),
               (4, 4, 4, 2), "classes"),
    "residual": (residual, (8, 8, 3), "classes"),
    "autoencoder": (autoencoder, (8, 8, 3), "inputs"),
    "upsampling": (lambda: Sequential([L.Input((4, 4, 2)), L.UpSampling2D(2, interpolation="bilinear"),
                                       L.Conv2D(2, 3, strides=2, padding="same")]), (4, 4, 2), "inputs"),
    "LSTM": (lambda: dense(L.LSTM(6), shape=(5, 4)), (5, 4), "classes"),
    "GRU": (lambda: dense(L.GRU(6, return_sequences=True), L.GlobalAveragePooling1D(), shape=(5, 4)),
            (5, 4), "classes"),
    "bidirectional": (lambda: dense(L.Bidirectional(L.SimpleRNN(4)), shape=(5, 4)), (5, 4), "classes"),
    "embedding": (lambda: dense(L.Embedding(20, 6), L.Conv1D(6, 3, activation="relu"), L.GlobalMaxPooling1D(),
                                shape=(7,)), (7,), "tokens"),
    "transformer": (transformer, (6, 8), "classes"),
    "time distributed": (lambda: dense(L.TimeDistributed(L.Dense(3, activation="selu")), L.Flatten(), shape=(6, 8)),
                         (6, 8), "classes"),
}  # fmt: skip

OPTIMIZERS = {
    "SGD": lambda: tf.keras.optimizers.SGD(0.05, momentum=0.9, nesterov=True),
    "Adam": lambda: tf.keras.optimizers.Adam(1e-3, clipnorm=1.0),
    "AdamW": lambda: tf.keras.optimizers.AdamW(1e-3, weight_decay=0.01),
    "RMSprop": lambda: tf.keras.optimizers.RMSprop(1e-3, centered=True),
    "Adagrad": lambda: tf.keras.optimizers.Adagrad(0.01),
    "Adadelta": lambda: tf.keras.optimizers.Adadelta(1.0),
    "Nadam": lambda: tf.keras.optimizers.Nadam(1e-3, use_ema=True),
    "Lion": lambda: tf.keras.optimizers.Lion(
        tf.keras.optimizers.schedules.CosineDecay(1e-4, 100)),
}


def data(shape: tuple[int, ...], kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((count, *shape)).astype(np.float32)
    if kind == "tokens":
        x = rng.integers(0, 20, (count, *shape)).astype(np.int32)
    if kind == "inputs":
        return x, x
    y = rng.integers(0, CLASSES, count) if kind in ("classes", "tokens") else x.sum(1, keepdims=True)
    return x, y


def compiled(name: str, optimizer: str = "Adam", **options: Any) -> Any:
    """The model `name`, with the same weights each time."""
    make, _, kind = MODELS[name]
    tf.keras.utils.set_random_seed(3)
    model = make()
    loss = "mse"
    if kind in ("classes", "tokens"):
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    metrics = ["mae"] if loss == "mse" else ["accuracy"]
    model.compile(OPTIMIZERS[optimizer](), loss, metrics=metrics, jit_compile=True, **options)
    return model
