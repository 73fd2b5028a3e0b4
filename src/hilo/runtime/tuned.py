"""What `hilo tune` found: values of knobs, by what a kernel is and the machine, beside the cache of compiled code.

An entry is a file of its own, written whole or not at all; a damaged one counts as absent. Imports runtime.stores.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

from hilo.runtime.stores import is_tuned, tuned_folder

if TYPE_CHECKING:
    from hilo.runtime.cache import Cache, Key

LIMIT: Final = 64 << 20  # bytes of entries


class Tuned:
    """Values by kernel for the machine that `machine` describes."""

    def __init__(self, directory: str = "", **machine: str) -> None:
        self._directory = directory
        self._folder = tuned_folder(directory)
        self._machine = machine

    @property
    def is_empty(self) -> bool:
        """Whether nothing was ever kept here."""
        return not is_tuned(self._directory)

    def state(self) -> str:
        """Changes with every value that is kept here; empty if there are none."""
        if self.is_empty:
            return ""
        try:
            files = sorted((f.name, f.stat().st_mtime_ns) for f in os.scandir(self._cache.directory))
        except OSError:
            return ""
        from hashlib import sha256

        return sha256(repr(files).encode()).hexdigest()

    @cached_property
    def _cache(self) -> Cache:
        from hilo.runtime.cache import Cache

        return Cache(self._folder or "", enabled=self._folder is not None, limit=LIMIT)

    def get(self, kernel: str) -> dict[str, str]:
        """The values found for a kernel (`pins.content`); empty if there are none."""
        data = None if self.is_empty else self._cache.get(self._key(kernel))
        import json

        try:
            found = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {k: v for k, v in found.items() if isinstance(k, str) and isinstance(v, str)}

    def put(self, kernel: str, values: Mapping[str, str]) -> None:
        """Keep values for a kernel; none at all are kept, too, since they replace others."""
        import json

        self._cache.put(self._key(kernel), json.dumps(dict(values)).encode())

    def _key(self, kernel: str) -> Key:
        from hilo.runtime.cache import Key

        return Key.of(f"values of knobs\n{kernel}", **self._machine)
