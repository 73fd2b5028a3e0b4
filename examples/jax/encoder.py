"""A text encoder at work: attention and dense layers over a stream of texts, with weights that stay as they are.

    JAX_PLATFORMS=hilo python examples/jax/encoder.py
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from report import arguments, report, run

Params = dict[str, Any]


def init(vocabulary: int, layers: int, width: int, key: jax.Array) -> Params:
    """Weights of the embedding f32[vocabulary, width] and of each layer."""

    def matrix(key: jax.Array, m: int, n: int) -> jax.Array:
        return jax.random.normal(key, (m, n)) / jnp.sqrt(m)

    def layer(key: jax.Array) -> Params:
        k = jax.random.split(key, 4)
        return {"qkv": matrix(k[0], width, 3 * width), "out": matrix(k[1], width, width),
                "up": matrix(k[2], width, 4 * width), "down": matrix(k[3], 4 * width, width)}  # fmt: skip

    first, *others = jax.random.split(key, layers + 1)
    return {"embedding": matrix(first, vocabulary, width), "layers": [layer(k) for k in others]}


def normalized(x: jax.Array) -> jax.Array:
    """Each row of x[..., n] with mean 0 and variance 1."""
    return (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-5)


def attention(x: jax.Array, p: Params, mask: jax.Array, heads: int) -> jax.Array:
    """Of one text f32[tokens, width], whose tokens are there where mask i1[tokens] is."""
    tokens, width = x.shape
    q, k, v = (x @ p["qkv"]).reshape(tokens, 3, heads, width // heads).transpose(1, 2, 0, 3)
    scores = jnp.where(mask, q @ k.swapaxes(1, 2) * (width // heads) ** -0.5, -jnp.inf)
    return (jax.nn.softmax(scores) @ v).swapaxes(0, 1).reshape(tokens, width) @ p["out"]


def encode(params: Params, text: jax.Array, heads: int) -> jax.Array:
    """One text i32[tokens], filled up with 0, as a vector f32[width] of length 1."""
    mask = text > 0
    x = params["embedding"][text]
    for p in params["layers"]:
        x = x + attention(normalized(x), p, mask, heads)
        x = x + jax.nn.gelu(normalized(x) @ p["up"]) @ p["down"]
    total = jnp.where(mask[:, None], normalized(x), 0).sum(0)
    return total / jnp.linalg.norm(total)


def main() -> None:
    options = arguments(__doc__)
    layers, width, tokens, count = (2, 64, 32, 20) if options.small else (4, 512, 128, 60)
    rng = np.random.default_rng(0)
    params = init(1000, layers, width, jax.random.key(0))
    texts = [rng.integers(1, 1000, tokens, np.int32) * (np.arange(tokens) < n)
             for n in rng.integers(tokens // 2, tokens, 8)]  # fmt: skip

    @jax.jit
    def step(params, text):
        return encode(params, text, width // 64 or 1)

    vectors = []

    def turn(i: int, _: Any) -> jax.Array:
        vectors.append(step(params, texts[i % len(texts)]))
        return vectors[-1]

    _, first, times = run(turn, None, count)
    found = np.asarray(vectors)
    same = all((found[i] == found[i % len(texts)]).all() for i in range(count))  # the same text, the same bits
    longer = step(params, np.concatenate([texts[0], np.zeros(tokens // 2, np.int32)]))  # what is masked does not count
    similarity = float(longer @ found[0])
    report(options, "encoder", first, times, same and similarity > 0.9999, similarity=similarity)


if __name__ == "__main__":
    main()
