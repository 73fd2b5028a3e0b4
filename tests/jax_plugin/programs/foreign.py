"""Foreign functions: handlers that users register with JAX, and functions that they register with hilo."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxlib import lapack
from support import NAME, SPD, close, error

import hilo

jnp.zeros(1)  # hilo takes part in registrations from here on, and knows those that were made before
lapack._lapack.initialize()
capsule = {name: capsule for name, capsule, _ in lapack.registrations()["cpu"]}["lapack_spotrf_ffi"]


def factor(target: str) -> jax.Array:
    types = (jax.ShapeDtypeStruct((3, 3), np.float32), jax.ShapeDtypeStruct((), np.int32))
    call = jax.ffi.ffi_call(target, types, input_layouts=[(1, 0)], output_layouts=[(1, 0), ()],
                            input_output_aliases={0: 0})  # fmt: skip
    return jax.jit(lambda x: jnp.tril(call(x, uplo=np.uint8(ord("L")))[0]))(SPD)


jax.ffi.register_ffi_target("factor_for_cpu", capsule)
jax.ffi.register_ffi_target("factor_in_stages", {"execute": capsule}, platform="cpu")
jax.ffi.register_ffi_target("factor_for_hilo", capsule, platform="hilo")
for target in ("factor_for_cpu", "factor_in_stages", "factor_for_hilo"):
    close(factor(target), np.linalg.cholesky(SPD))
said = error(lambda: factor("factor_for_nobody"), "factor_for_nobody")
assert "UNIMPLEMENTED" in said, said


@hilo.register_custom_call("times")
def times(x: np.ndarray, *, attributes: dict[str, float]) -> np.ndarray:
    return x * attributes["factor"]


call = jax.ffi.ffi_call("times", jax.ShapeDtypeStruct((3, 3), np.float32))
close(jax.jit(lambda x: call(x, factor=np.float32(3)))(SPD), 3 * SPD)
assert NAME in ("hilo", "cpu")
