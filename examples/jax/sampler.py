"""Hamiltonian Monte Carlo: many chains sample the posterior of a logistic regression (vmap, scan, grad, random).

    JAX_PLATFORMS=hilo python examples/jax/sampler.py
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from report import arguments, report, run


def problem(count: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs f32[count, width], answers f32[count] in {0, 1}, and the weights f32[width] that made them."""
    rng = np.random.default_rng(4)
    weights = rng.normal(size=width)
    x = rng.normal(size=(count, width))
    y = rng.random(count) < 1 / (1 + np.exp(-x @ weights))
    return x.astype(np.float32), y.astype(np.float32), weights.astype(np.float32)


def log_density(x: jax.Array, y: jax.Array, w: jax.Array) -> jax.Array:
    """Of weights f32[width], up to a constant; the prior is normal with variance 4."""
    z = x @ w
    return (y * z - jax.nn.softplus(z)).sum() - (w * w).sum() / 8


@partial(jax.jit, static_argnums=(4, 5))
def sample(x: jax.Array, y: jax.Array, w: jax.Array, key: jax.Array, leaps: int, count: int) -> tuple[jax.Array, ...]:
    """`count` draws of every chain f32[chains, width]: the chains' ends, draws f32[count, chains, width], the share
    of moves that were accepted."""
    density = jax.vmap(partial(log_density, x, y))
    slope = jax.vmap(jax.grad(partial(log_density, x, y)))
    size = 0.12

    def leap(state, _):
        w, p = state
        p = p + size / 2 * slope(w)
        w = w + size * p
        return (w, p + size / 2 * slope(w)), None

    def move(w, key):
        a, b = jax.random.split(key)
        p = jax.random.normal(a, w.shape)
        (new, q), _ = lax.scan(leap, (w, p), length=leaps)
        gain = density(new) - density(w) + ((p * p).sum(1) - (q * q).sum(1)) / 2
        accepted = jnp.log(jax.random.uniform(b, gain.shape)) < gain
        w = jnp.where(accepted[:, None], new, w)
        return w, (w, accepted)

    w, (draws, accepted) = lax.scan(move, w, jax.random.split(key, count))
    return w, draws, accepted.mean()


def main() -> None:
    options = arguments(__doc__)
    rows, width, chains, turns, count = (100, 4, 8, 12, 20) if options.small else (400, 8, 32, 16, 50)
    x, y, weights = problem(rows, width)
    keys = jax.random.split(jax.random.key(5), turns)
    found: list[np.ndarray] = []
    shares: list[float] = []

    def step(i, w):
        w, draws, share = sample(x, y, w, keys[i], 10, count)
        found.append(np.asarray(draws))
        shares.append(float(share))
        return w

    _, first, times = run(step, jnp.zeros((chains, width)), turns)
    draws = np.concatenate(found[turns // 4 :]).reshape(-1, width)
    away = float(np.abs((draws.mean(0) - weights) / draws.std(0)).max())  # in standard deviations of the posterior
    share = float(np.mean(shares))
    report(options, "sampler", first, times, away < 4 and share > 0.6, accepted=share, deviation=away)


if __name__ == "__main__":
    main()
