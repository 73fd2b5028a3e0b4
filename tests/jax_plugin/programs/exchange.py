"""Arrays and programs that come and go: DLPack, exported programs, serialized executables, the persistent cache."""

from __future__ import annotations

import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.experimental import serialize_executable
from support import NAME, SPD, X, close

a = jnp.arange(4.0)
close(np.from_dlpack(a), [0, 1, 2, 3])
b = jnp.from_dlpack(np.arange(4, dtype=np.float32))
assert b.devices() == a.devices()
close(a + b, [0, 2, 4, 6])
c = jax.jit(jnp.sin)(jnp.asarray(X))
shared = np.from_dlpack(c)
assert shared.ctypes.data == c.unsafe_buffer_pointer()
del c
close(shared, np.sin(X))

exported = export.export(jax.jit(lambda a: jnp.linalg.eigh(a)[0]))(jax.ShapeDtypeStruct((3, 3), np.float32))
assert exported.platforms == ("cpu",)
close(export.deserialize(exported.serialize()).call(SPD), np.linalg.eigvalsh(SPD), 1e-4)
for platforms in (["cpu"], [NAME], ["tpu", "cpu"]):
    close(export.export(jax.jit(jnp.sin), platforms=platforms)(X).call(X), np.sin(X))

compiled = jax.jit(lambda a: jnp.sin(a) + 1).lower(X).compile()
for said in (compiled.as_text(), compiled.cost_analysis(), compiled.memory_analysis()):
    assert said
close(serialize_executable.deserialize_and_load(*serialize_executable.serialize(compiled))(X), np.sin(X) + 1)

with tempfile.TemporaryDirectory() as folder:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    f = jax.jit(lambda a: jnp.cos(a) * 3)
    close(f(X), 3 * np.cos(X), 1e-4)
    assert list(Path(folder).iterdir())
    jax.clear_caches()
    close(f(X), 3 * np.cos(X), 1e-4)
