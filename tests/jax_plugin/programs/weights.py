"""Weights that come again are packed once: the same bits from call to call, whatever becomes of them meanwhile."""

from __future__ import annotations

import gc
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

device = jax.devices()[0]
rng = np.random.default_rng(0)


def held() -> int:
    gc.collect()
    return device.memory_stats()["bytes_in_use"]


def model(params: list[jax.Array], x: jax.Array) -> jax.Array:
    for w in params:
        x = jnp.tanh(x @ w)
    return x


def pictures(w: jax.Array, x: jax.Array) -> jax.Array:
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


def stays(f: Any, weights: Any, x: jax.Array) -> int:
    """Calls `f` until its weights are packed; gives the bytes that this took."""
    f = jax.jit(f)
    first = np.array(f(weights, x))
    before = held()
    for _ in range(5):
        np.testing.assert_array_equal(f(weights, x), first)
    return held() - before


params = [jnp.array(rng.standard_normal((256, 256)) / 16, jnp.float32) for _ in range(3)]
x = jnp.array(rng.standard_normal((70, 256)), jnp.float32)
size = sum(w.nbytes for w in params)
assert size <= stays(model, params, x) <= size * 5 // 4
kernel = jnp.array(rng.standard_normal((3, 3, 32, 64)), jnp.float32)
assert kernel.nbytes <= stays(pictures, kernel, jnp.ones((1, 20, 20, 32))) <= kernel.nbytes * 5 // 4

# Updated in place, by donation, again and again.
infer, update = jax.jit(model), jax.jit(lambda ws: [w * 0.5 for w in ws], donate_argnums=0)
for _ in range(3):
    want = np.array(model(params, x))  # op by op
    for _ in range(4):
        np.testing.assert_allclose(infer(params, x), want, rtol=1e-4, atol=1e-5)
    params = update(params)

# Nothing is left when they are gone.
before = held()
del infer
for w in params:
    w.delete()
assert held() < before - size // 2
