"""Planets around a sun, with steps as long as the error allows: a while loop with an adaptive Runge-Kutta method.

    JAX_PLATFORMS=hilo python examples/jax/orbits.py
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from report import arguments, report, run

# Bogacki and Shampine's pair of orders 3 and 2 (1989).
TOLERANCE = 1e-6


def acceleration(masses: jax.Array, x: jax.Array) -> jax.Array:
    """Of bodies at f32[n, 3]: f32[n, 3]; the constant of gravity is 1."""
    d = x[None] - x[:, None]
    square = (d * d).sum(2) + jnp.eye(len(x), dtype=x.dtype)
    return (masses[None, :, None] * d * lax.rsqrt(square)[..., None] ** 3).sum(1)


def energy(masses: jax.Array, y: jax.Array) -> jax.Array:
    """Kinetic and potential energy of f32[2, n, 3]: places and velocities."""
    x, v = y
    distance = jnp.sqrt(((x[None] - x[:, None]) ** 2).sum(2) + jnp.eye(len(x), dtype=x.dtype))
    pairs = jnp.triu(masses[:, None] * masses[None] / distance, 1)
    return 0.5 * (masses[:, None] * v * v).sum() - pairs.sum()


@partial(jax.jit, donate_argnums=1)
def advance(masses: jax.Array, y: jax.Array, h: jax.Array, duration: jax.Array) -> tuple[jax.Array, ...]:
    """`y` after `duration`, the last step's length, and how many steps were tried."""

    def slope(y):
        return jnp.stack([y[1], acceleration(masses, y[0])])

    def body(state):
        y, t, h, tried = state
        step = jnp.minimum(h, duration - t)
        k1 = slope(y)
        k2 = slope(y + step / 2 * k1)
        k3 = slope(y + step * 3 / 4 * k2)
        new = y + step * (2 * k1 + 3 * k2 + 4 * k3) / 9
        k4 = slope(new)
        error = jnp.abs(step * (-5 / 72 * k1 + k2 / 12 + k3 / 9 - k4 / 8)).max()
        good = error <= TOLERANCE
        factor = jnp.clip(0.9 * (TOLERANCE / jnp.maximum(error, 1e-12)) ** (1 / 3), 0.3, 3.0)
        return jnp.where(good, new, y), jnp.where(good, t + step, t), h * factor, tried + 1

    def goes_on(state):
        return (state[1] < duration) & (state[3] < 100_000)

    y, _, h, tried = lax.while_loop(goes_on, body, (y, jnp.zeros_like(duration), h, 0))
    return y, h, tried


def bodies(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Masses f32[count], and places and velocities f32[2, count, 3], of a sun and planets on circles."""
    rng = np.random.default_rng(3)
    radius = np.linspace(1.0, 4.0, count - 1)
    angle = rng.uniform(0, 2 * np.pi, count - 1)
    circle = np.stack([np.cos(angle), np.sin(angle), 0.05 * rng.normal(size=count - 1)], 1)
    across = np.stack([-np.sin(angle), np.cos(angle), 0 * angle], 1)
    x = np.concatenate([np.zeros((1, 3)), circle * radius[:, None]])
    v = np.concatenate([np.zeros((1, 3)), across / np.sqrt(radius)[:, None]])
    masses = np.concatenate([[1.0], np.full(count - 1, 1e-5)])
    return masses.astype(np.float32), np.stack([x, v]).astype(np.float32)


def main() -> None:
    options = arguments(__doc__)
    count, turns = (8, 10) if options.small else (32, 40)
    masses, y = bodies(count)
    before = float(energy(masses, jnp.asarray(y)))
    duration = jnp.float32(1.0)

    def step(i, state):
        y, h, total = state
        y, h, tried = advance(masses, y, h, duration)
        return y, h, total + tried

    start = jnp.asarray(y), jnp.float32(1e-3), jnp.int32(0)
    (y, _, tried), first, times = run(step, start, turns)
    drift = abs(float(energy(masses, y)) / before - 1)
    report(options, "orbits", first, times, drift < 1e-3, drift=drift, tried=int(tried))


if __name__ == "__main__":
    main()
