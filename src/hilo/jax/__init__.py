"""JAX programs on hilo: the plugin that JAX finds by the entry point `jax_plugins`.

    JAX_PLATFORMS=hilo python train.py      hilo as a platform of that name
    HILO_JAX_AS_CPU=1 python train.py       hilo in place of JAX's own CPU backend, under the name "cpu"

Begin reading at backend.py. `places.py` gives the name `hilo` what JAX keeps for names that it knows, `targets.py` and
`callbacks.py` say what custom calls of JAX's programs run. JAX is imported when JAX asks, never before. Imports pjrt
and what is below.
"""

from __future__ import annotations


def initialize() -> None:
    """Called by JAX when it looks for plugins; a second call does nothing."""
    from hilo.jax.backend import register

    register()


def library_path() -> str:
    """The path of the PJRT plugin."""
    from hilo.pjrt import library_path as path

    return path()
