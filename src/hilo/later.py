"""Modules that are imported when something of theirs is first called: a process that compiles one small program takes
longer to import its compiler than to compile. Imports nothing of hilo.

    if TYPE_CHECKING:
        from hilo.loop.arith import complexes
    else:
        complexes = Later("hilo.loop.arith.complexes")
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


class Later:
    """The functions of a module; each of them loads it when it is first called."""

    def __init__(self, module: str) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found: list[Callable[..., Any]] = []

        def call(*args: Any, **kwargs: Any) -> Any:
            if not found:
                found.append(getattr(import_module(self._module), name))
            return found[0](*args, **kwargs)

        setattr(self, name, call)
        return call
