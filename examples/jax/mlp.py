"""A multi-layer perceptron learns to tell two spirals apart: jit, grad, vmap, and Adam from optax.

    JAX_PLATFORMS=hilo python examples/jax/mlp.py
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from report import arguments, report, run


def spirals(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Points f32[count, 2] of two spirals, and which one each belongs to, i32[count]."""
    label = rng.integers(0, 2, count)
    radius = np.sqrt(rng.random(count)) * 2.5
    angle = radius * 2.2 + np.pi * label
    points = np.stack([np.cos(angle), np.sin(angle)], 1) * radius[:, None] + rng.normal(0, 0.06, (count, 2))
    return points.astype(np.float32), label.astype(np.int32)


def init(sizes: list[int], key: jax.Array) -> list[tuple[jax.Array, jax.Array]]:
    """Weights f32[m, n] and biases f32[n] of each layer."""
    keys = jax.random.split(key, len(sizes) - 1)
    return [(jax.random.normal(k, (m, n)) * jnp.sqrt(2 / m), jnp.zeros(n))
            for k, m, n in zip(keys, sizes, sizes[1:], strict=False)]  # fmt: skip


def logits(params: list[tuple[jax.Array, jax.Array]], x: jax.Array) -> jax.Array:
    """Of one point f32[2]: f32[2]."""
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    batch, width, steps = (256, 64, 400) if options.small else (512, 256, 600)
    params = init([2, width, width, 2], jax.random.key(0))
    adam = optax.adam(3e-3)

    def loss(params, points, labels):
        out = jax.vmap(logits, (None, 0))(params, points)
        return optax.softmax_cross_entropy_with_integer_labels(out, labels).mean()

    @jax.jit
    def step(params, state, points, labels):
        gradients = jax.grad(loss)(params, points, labels)
        updates, state = adam.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    batches = [spirals(batch, rng) for _ in range(32)]
    state, first, times = run(lambda i, s: step(*s, *batches[i % 32]), (params, adam.init(params)), steps)
    points, labels = spirals(4096, rng)
    accuracy = float((jax.vmap(logits, (None, 0))(state[0], points).argmax(1) == labels).mean())
    report(options, "mlp", first, times, accuracy > 0.95, accuracy=accuracy)


if __name__ == "__main__":
    main()
