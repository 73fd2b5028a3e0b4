"""Where compiled and measured things are kept, by the options. Imports options and this room."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from hilo.options import Options

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.runtime.cache import Cache
    from hilo.runtime.tuned import Tuned


def cache_of(options: Options) -> Cache:
    """The cache that the options name."""
    return _cache(options.cache_dir, options.cache, options.cache_explain)


def tuned_of(options: Options, target: Target) -> Tuned:
    """What was measured for kernels of `target`, beside the cache that the options name."""
    from hilo.runtime.tuned import Tuned

    relaxed = {"dot": "bf16"} if target.has_dot_bf16 else {}
    machine = {"cpu": target.cpu, "features": target.features, "lanes": str(target.vector_bytes)}
    return Tuned(options.cache_dir, **machine, **relaxed)


@cache
def _cache(directory: str, enabled: bool, explain: bool) -> Cache:
    from hilo.runtime.cache import Cache

    return Cache(directory, enabled=enabled, explain=explain)
