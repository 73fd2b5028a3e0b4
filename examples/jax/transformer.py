"""A small transformer learns to reverse sequences of letters: equinox, attention, layer norms, AdamW from optax.

    JAX_PLATFORMS=hilo python examples/jax/transformer.py
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from report import arguments, report, run

LETTERS = 12


class Block(eqx.Module):
    """Attention to what came before, then a dense network, each behind a layer norm and beside a residual."""

    attention: eqx.nn.MultiheadAttention
    norms: tuple[eqx.nn.LayerNorm, eqx.nn.LayerNorm]
    dense: eqx.nn.MLP

    def __init__(self, width: int, key: jax.Array) -> None:
        a, b = jax.random.split(key)
        self.attention = eqx.nn.MultiheadAttention(4, width, key=a)
        self.norms = eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)
        self.dense = eqx.nn.MLP(width, width, 4 * width, 1, jax.nn.gelu, key=b)

    def __call__(self, x: jax.Array) -> jax.Array:
        """f32[length, width] to the same."""
        h = jax.vmap(self.norms[0])(x)
        x = x + self.attention(h, h, h, mask=jnp.tril(jnp.ones((len(x), len(x)), bool)))
        return x + jax.vmap(self.dense)(jax.vmap(self.norms[1])(x))


class Model(eqx.Module):
    """Letters to the logits of the next letter, at each place."""

    embedding: eqx.nn.Embedding
    position: jax.Array
    blocks: list[Block]
    norm: eqx.nn.LayerNorm
    head: eqx.nn.Linear

    def __init__(self, width: int, depth: int, length: int, key: jax.Array) -> None:
        a, b, c, *keys = jax.random.split(key, depth + 3)
        self.embedding = eqx.nn.Embedding(LETTERS + 1, width, key=a)
        self.position = jax.random.normal(b, (length, width)) * 0.1
        self.blocks = [Block(width, k) for k in keys]
        self.norm = eqx.nn.LayerNorm(width)
        self.head = eqx.nn.Linear(width, LETTERS, key=c)

    def __call__(self, letters: jax.Array) -> jax.Array:
        """i32[length] to f32[length, LETTERS]."""
        x = jax.vmap(self.embedding)(letters) + self.position
        for block in self.blocks:
            x = block(x)
        return jax.vmap(lambda v: self.head(self.norm(v)))(x)


def sequences(count: int, half: int, rng: np.random.Generator) -> np.ndarray:
    """Letters, a mark, and the letters backwards: i32[count, 2 half + 1]."""
    letters = rng.integers(0, LETTERS, (count, half))
    mark = np.full((count, 1), LETTERS)
    return np.concatenate([letters, mark, letters[:, ::-1]], 1).astype(np.int32)


def main() -> None:
    options = arguments(__doc__)
    rng = np.random.default_rng(0)
    batch, half, width, depth, steps = (32, 4, 32, 2, 250) if options.small else (64, 8, 64, 2, 300)
    model = Model(width, depth, 2 * half, jax.random.key(2))
    adam = optax.adamw(optax.warmup_cosine_decay_schedule(0.0, 4e-3, steps // 10, steps))
    params, static = eqx.partition(model, eqx.is_inexact_array)

    def backwards(params, letters):
        """Logits of the second half: f32[batch, half, LETTERS]."""
        return jax.vmap(eqx.combine(params, static))(letters[:, :-1])[:, half:]

    def loss(params, letters):
        out = backwards(params, letters)
        return optax.softmax_cross_entropy_with_integer_labels(out, letters[:, half + 1 :]).mean()

    @jax.jit
    def step(params, state, letters):
        gradients = jax.grad(loss)(params, letters)
        updates, state = adam.update(gradients, state, params)
        return eqx.apply_updates(params, updates), state

    batches = [sequences(batch, half, rng) for _ in range(64)]
    state, first, times = run(lambda i, s: step(*s, batches[i % 64]), (params, adam.init(params)), steps)
    test = sequences(256, half, rng)
    accuracy = float((jax.jit(backwards)(state[0], test).argmax(2) == test[:, half + 1 :]).mean())
    report(options, "transformer", first, times, accuracy > 0.9, accuracy=accuracy)


if __name__ == "__main__":
    main()
