"""JAX's persistent cache after a process was killed while it wrote there: what is whole is used, the rest made anew."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from tempfile import mkdtemp

import jax
import numpy as np
from jax._src import monitoring  # pyright: ignore[reportPrivateImportUsage]
from support import X, close

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp())
jax.config.update("jax_compilation_cache_dir", str(FOLDER))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
hits: list[str] = []
monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("/cache_hits") else None)


def check(i: int) -> None:
    """Compile and run one program."""
    close(jax.jit(lambda a: a * i + 1)(X), X * i + 1)


def entries() -> list[Path]:
    return sorted(FOLDER.glob("*-cache"))


if len(sys.argv) > 1:
    for n in range(1000):
        check(n)
    sys.exit("was not killed")

child = subprocess.Popen([sys.executable, __file__, str(FOLDER)], env=os.environ)
while len(entries()) < 5 and child.poll() is None:
    time.sleep(0.002)
child.kill()
child.wait()
assert len(entries()) >= 5
with warnings.catch_warnings(record=True) as said:  # of an entry that the child did not write to its end
    warnings.simplefilter("always")
    for n in range(5):
        check(n)
assert 4 <= len(hits) <= 5 or said, hits

jax.clear_caches()
for k, path in enumerate(entries()):  # as a kill at any moment would leave them
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * k // 5])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    for n in range(6):
        check(n)
assert np.asarray(X).shape == (3, 4)
