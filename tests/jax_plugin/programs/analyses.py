"""What JAX tells of programs before and after they are compiled; compiling for a topology."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.experimental import topologies
from support import NAME, X

lowered = jax.jit(lambda a: jnp.where(a > 0, jnp.sin(a) @ a.T @ jnp.ones((3, 4)), 0)).lower(X)
before, after = lowered.cost_analysis(), lowered.compile().cost_analysis()
assert isinstance(before, dict)
assert isinstance(after, dict)
products = 2 * 3 * 4 * 3 + 2 * 3 * 3 * 4
assert products <= before["flops"] < 2 * products
assert before["transcendentals"] == after["transcendentals"] == 12
assert before["bytes accessed"] >= after["bytes accessed"] >= before["bytes accessedout{}"] == 48
assert before["bytes accessed0{}"] == 3 * 48
assert jax.jit(lambda a: a).lower(1.0).cost_analysis() is not None
looped = jax.jit(lambda a: jax.lax.fori_loop(0, 9, lambda i, c: c * a, a)).lower(X).cost_analysis()
assert isinstance(looped, dict)
assert looped["flops"] >= 12

topology = topologies.get_topology_desc(platform=NAME)
mesh = topologies.make_mesh(topology, (1, 1), ("x", "y"))
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x", "y"))
there = jax.jit(lambda a: a * a).lower(jax.ShapeDtypeStruct((16, 16), jnp.float32, sharding=sharding)).compile()
assert "f32[16,16]" in there.as_text()
