"""What peers compile for long is kept between runs, and what they cannot do is remembered: in a cache of hilo's kind
(`hilo.runtime.cache`), by the module's text and everything else that it depends on. inductor has a cache of its own,
which lies in a lasting folder beside it.

Imports of hilo the cache and the target; no peer is imported for the sake of its version.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from hilo.backend.names import names
from hilo.backend.target import Target
from hilo.runtime.cache import Cache, Key
from hilo.runtime.stores import default_directory

FOLDER = "HILO_BENCHMARKS_CACHE"  # where it lies; the processes of the peers inherit it
_LIMIT = 8 << 30  # bytes

#: The peers that compile for long, and the packages whose versions their code depends on.
PACKAGES = {"iree": ("iree-base-compiler", "iree-base-runtime"), "inductor": ("torch",)}

#: The limit of the stack is only a check, which BERT's attention does not pass by default.
IREE_FLAGS = ["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3", "--iree-input-demote-f64-to-f32=false",
              "--iree-llvmcpu-stack-allocation-limit=262144"]  # fmt: skip


def folder() -> str:
    """`$HILO_BENCHMARKS_CACHE`, else `hilo-benchmarks` beside hilo's own cache."""
    return os.path.abspath(os.environ.get(FOLDER) or f"{default_directory() or 'hilo'}-benchmarks")


class Kept:
    """What one peer compiled for this machine, or why it does not."""

    def __init__(self, peer: str, threads: int) -> None:
        self.threads = threads
        self._cache = Cache(folder(), limit=_LIMIT)
        how = " ".join(IREE_FLAGS) if peer == "iree" else _programs()
        versions = " ".join(_version(p) for p in PACKAGES[peer])
        self._around = {"peer": peer, "how": how, "versions": versions, **_machine()}

    def module(self, text: str, build: Callable[[], bytes]) -> bytes:
        """The compiled module of a text: the kept one, or what `build` gives, which is kept then."""
        key = Key.of(text, what="module", **self._around)
        found = self._cache.get(key)
        if found is None:
            found = build()
            self._cache.put(key, found)
        return found

    def refusal(self, text: str) -> str:
        """Why the peer could not do it when it was last asked; "" when it could, or was not asked yet."""
        return (self._cache.get(self._refusal(text)) or b"").decode()

    def refuse(self, text: str, why: str) -> None:
        """Remember why; "" forgets it."""
        if why or self.refusal(text):
            self._cache.put(self._refusal(text), why.encode())

    def _refusal(self, text: str) -> Key:
        return Key.of(text, what="refusal", threads=str(self.threads), **self._around)


def inductor_folder(threads: int) -> str:
    """For TORCHINDUCTOR_CACHE_DIR; the number of threads is written into inductor's code."""
    return os.path.join(folder(), f"inductor-{threads}")


def _version(package: str) -> str:
    try:
        return f"{package}-{version(package)}"
    except PackageNotFoundError:
        return f"{package}-none"


@cache
def _machine() -> dict[str, str]:
    _, cpu, features = names(Target.host())
    return {"cpu": cpu, "features": features}


@cache
def _programs() -> str:
    """The programs that PyTorch's peers run instead of the module's text."""
    return sha256(Path(__file__).with_name("torch_programs.py").read_bytes()).hexdigest()
