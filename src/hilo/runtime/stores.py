"""Where compiled and measured things are kept, by the options. Imports options; the rest of this room where it is used.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

from hilo.options import Options

if TYPE_CHECKING:
    from hilo.backend.target import Target
    from hilo.runtime.cache import Cache
    from hilo.runtime.tuned import Tuned


def default_directory() -> str | None:
    """`$XDG_CACHE_HOME/hilo`, else `~/.cache/hilo`; None for a user without a home."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(base):
        return os.path.join(base, "hilo")
    home = os.path.expanduser("~")
    return os.path.join(home, ".cache", "hilo") if home != "~" else None


def tuned_folder(directory: str) -> str | None:
    """Where what was measured is kept, beside the cache in `directory` ("": the default one)."""
    root = os.path.expanduser(directory) if directory else default_directory()
    return None if root is None else os.path.join(root, "tuned")


def is_tuned(directory: str) -> bool:
    """Whether anything was ever measured and kept beside the cache in `directory`: looking further is no use if not."""
    folder = tuned_folder(directory)
    try:
        return folder is not None and os.path.isdir(folder)
    except (OSError, ValueError):
        return False


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
