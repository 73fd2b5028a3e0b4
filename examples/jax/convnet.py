"""A convolutional network learns to name shapes in pictures: convolutions, pooling, batch normalisation, momentum.

    JAX_PLATFORMS=hilo python examples/jax/convnet.py
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from report import arguments, report, run

SIZE = 24  # pixels


def pictures(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Noisy pictures f32[count, SIZE, SIZE, 1] of discs, squares and crosses, and which of them, i32[count]."""
    label = rng.integers(0, 3, count)
    y, x = np.mgrid[:SIZE, :SIZE]
    cy, cx = rng.uniform(8, SIZE - 8, (2, count, 1, 1))
    r = rng.uniform(3.5, 7, (count, 1, 1))
    dy, dx = np.abs(y - cy), np.abs(x - cx)
    disc, square = dy**2 + dx**2 < r**2, np.maximum(dy, dx) < r * 0.85
    cross = (np.minimum(dy, dx) < r * 0.25) & (np.maximum(dy, dx) < r)
    shape = np.select([label[:, None, None] == 0, label[:, None, None] == 1], [disc, square], cross)
    return (shape + rng.normal(0, 0.35, shape.shape))[..., None].astype(np.float32), label.astype(np.int32)


def init(key: jax.Array, width: int) -> dict[str, Any]:
    """The parameters by layer."""
    keys = jax.random.split(key, 4)
    sizes = [(1, width), (width, 2 * width), (2 * width, 2 * width)]
    params: dict[str, Any] = {}
    for i, (m, n) in enumerate(sizes):
        kernel = jax.random.normal(keys[i], (3, 3, m, n)) * jnp.sqrt(2 / (9 * m))
        params[f"conv{i}"] = {"kernel": kernel, "scale": jnp.ones(n), "shift": jnp.zeros(n)}
    params["dense"] = {"kernel": jax.random.normal(keys[3], (2 * width, 3)) * 0.1, "bias": jnp.zeros(3)}
    return params


def logits(params: dict[str, Any], x: jax.Array) -> jax.Array:
    """Of pictures f32[n, SIZE, SIZE, 1]: f32[n, 3]. Normalises by the batch's own moments."""
    for i in range(3):
        p = params[f"conv{i}"]
        x = lax.conv_general_dilated(x, p["kernel"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        mean, var = x.mean((0, 1, 2)), x.var((0, 1, 2))
        x = jax.nn.relu((x - mean) * lax.rsqrt(var + 1e-5) * p["scale"] + p["shift"])
        if i < 2:
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.mean((1, 2)) @ params["dense"]["kernel"] + params["dense"]["bias"]


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    batch, width, steps = (64, 12, 120) if options.small else (128, 32, 80)
    params = init(jax.random.key(1), width)

    def loss(params, x, labels):
        return -jnp.take_along_axis(jax.nn.log_softmax(logits(params, x)), labels[:, None], 1).mean()

    @jax.jit
    def step(params, velocity, x, labels):
        gradients = jax.grad(loss)(params, x, labels)
        velocity = jax.tree.map(lambda v, g: 0.9 * v - 0.1 * g, velocity, gradients)
        return jax.tree.map(jnp.add, params, velocity), velocity

    batches = [pictures(batch, rng) for _ in range(16)]
    start = params, jax.tree.map(jnp.zeros_like, params)
    state, first, times = run(lambda i, s: step(*s, *batches[i % 16]), start, steps)
    x, labels = pictures(512, rng)
    accuracy = float((jax.jit(logits)(state[0], x).argmax(1) == labels).mean())
    report(options, "convnet", first, times, accuracy > 0.9, accuracy=accuracy)


if __name__ == "__main__":
    main()
