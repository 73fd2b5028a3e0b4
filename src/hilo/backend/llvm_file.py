"""Where LLVM's library is, and which one it is, without loading it. Imports nothing of hilo."""

from __future__ import annotations

import os
from functools import cache
from importlib.machinery import PathFinder


@cache
def path() -> str:
    """The file of llvmlite's shared library; empty if llvmlite is not installed."""
    spec = PathFinder.find_spec("llvmlite")
    for folder in (spec and spec.submodule_search_locations) or ():
        found = os.path.join(folder, "binding", "libllvmlite.so")
        if os.path.exists(found):
            return found
    try:
        from llvmlite.binding import ffi  # installed in another way: it knows where
    except ModuleNotFoundError:
        return ""
    return ffi.lib._name


@cache
def version() -> str:
    """Tells this LLVM from any other, by its file: what code depends on."""
    try:
        status = os.stat(path())
    except OSError:
        return path()
    return f"{status.st_size} {status.st_mtime_ns}"
