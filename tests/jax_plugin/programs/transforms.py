"""Transformations, control flow, element types, random numbers, linear algebra."""

from __future__ import annotations

import threading

import jax
import jax.numpy as jnp
import numpy as np
import support
from jax import lax
from jax.experimental import sparse
from support import SPD, X, close

close(jax.jit(lambda a: jnp.sin(a) @ a.T)(X), np.sin(X) @ X.T, 1e-4)
close(jax.grad(lambda a: (a**3).sum())(X), 3 * X**2)
close(jax.vmap(lambda a: a / a.sum())(X + 1), (X + 1) / (X + 1).sum(1, keepdims=True))
close(lax.scan(lambda c, a: (c + a, c * a), jnp.zeros(4), X)[0], X.sum(0))
assert int(lax.while_loop(lambda c: c < 100, lambda c: c * 2, jnp.int32(1))) == 128
close(jax.jit(lambda p, a: lax.cond(p, lambda a: a + 1, lambda a: a - 1, a))(True, X), X + 1)
close(jax.grad(lambda a: jax.checkpoint(lambda b: jnp.sin(jnp.sin(b)))(a).sum())(X), np.cos(np.sin(X)) * np.cos(X))
assert float(jax.jit(lambda a: lax.platform_dependent(a, cpu=lambda a: a + 1, default=lambda a: a - 1))(1.0)) == 2


@jax.custom_vjp
def square(a: jax.Array) -> jax.Array:
    return a * a


square.defvjp(lambda a: (a * a, a), lambda a, g: (7 * a * g,))
close(jax.grad(lambda a: square(a).sum())(X), 7 * X)

with jax.enable_x64(True):
    assert float(jax.jit(lambda a: a / 3)(jnp.float64(1))) == 1 / 3
assert jax.jit(lambda a: a.astype(jnp.float8_e4m3fn) * jnp.float8_e4m3fn(2))(X).dtype == jnp.float8_e4m3fn
assert np.asarray(jnp.arange(4, dtype=jnp.int4) + jnp.int4(3)).tolist() == [3, 4, 5, 6]
close(jnp.exp(1j * X), np.exp(1j * X), 1e-4)

key = jax.random.key(0)
assert jax.random.normal(key, (3,)).shape == jax.vmap(jax.random.normal)(jax.random.split(key, 3)).shape
assert float(jax.random.uniform(jax.random.key(0, impl="rbg"), (1000,)).mean()) - 0.5 < 0.1
close(jax.random.bits(key, (2,), "uint32"), jax.random.bits(key, (2,), "uint32"))

donated = jnp.arange(1000.0)
close(jax.jit(lambda a: a + 1, donate_argnums=0)(donated), np.arange(1000) + 1)
assert donated.is_deleted()

close(jnp.linalg.inv(SPD) @ SPD, np.eye(3))
low = jnp.linalg.cholesky(SPD)
close(low @ low.T, SPD)
w, v = jnp.linalg.eigh(jnp.stack([SPD, SPD]))
close(v[1] * w[1] @ v[1].T, SPD, 1e-4)
u, s, vt = jnp.linalg.svd(SPD)
close(u * s @ vt, SPD, 1e-4)
q, r = jnp.linalg.qr(SPD)
close(q @ r, SPD, 1e-4)
close(np.sort(np.asarray(jnp.linalg.eigvals(SPD)).real), np.linalg.eigvalsh(SPD), 1e-4)
t, z = jax.scipy.linalg.schur(SPD)
close(z @ t @ z.T, SPD, 1e-4)
assert jax.scipy.linalg.hessenberg(SPD).shape == (3, 3)
lower, diagonal, upper = (jnp.asarray(d, jnp.float32) for d in ([0, 1, 1], [4, 4, 4], [1, 1, 0]))
solved = lax.linalg.tridiagonal_solve(lower, diagonal, upper, jnp.ones((3, 1)))
close(np.array([[4, 1, 0], [1, 4, 1], [0, 1, 4]]) @ solved, np.ones((3, 1)))
close(np.abs(jnp.fft.fft2(X)), np.abs(np.fft.fft2(X)), 1e-4)
assert lax.approx_max_k(X, 2)[1][0].tolist() == lax.top_k(X, 2)[1][0].tolist() == [3, 2]
close(sparse.BCOO.fromdense(jnp.array(X)) @ jnp.ones(4), X.sum(1))
close(jax.jit(lambda m: m @ jnp.ones(4))(sparse.BCSR.fromdense(jnp.array(X))), X.sum(1))

with jax.default_device(jax.devices("cpu")[0]):
    close(jnp.ones(3) + jax.device_put(np.ones(3, np.float32), jax.devices(support.NAME)[0]), 2 * np.ones(3))

f = jax.jit(lambda a: jnp.tanh(a).sum())
found: list[float] = []
threads = [threading.Thread(target=lambda: found.extend(float(f(X + i)) for i in range(20))) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(found) == 8 * 20
assert len(set(found)) <= 20
