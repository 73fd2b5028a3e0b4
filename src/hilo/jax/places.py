"""What JAX keeps for platforms whose names it knows, given to `hilo`. Imports errors; JAX when called.

JAX decides by the platform's name how programs are lowered, whether buffers are donated, whether callbacks, DLPack and
the persistent cache work. hilo is a CPU, so that one rule covers most of it: *programs for hilo are lowered as programs
for cpu*, by every rule that anybody has registered or will register. `PLACES` lists all functions of JAX that
are replaced, each with its reason; they do what they did for all other platforms. A place that a version of JAX does
not have is left out.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from importlib import import_module
from typing import Any, Final

from hilo.jax import exchange

HILO: Final = "hilo"
CPU: Final = "cpu"

Replace = Callable[[Any, Any], Any]  # (module of the function, the function) -> what takes its place
PLACES: Final[list[tuple[str, str, Replace]]] = []

_log = logging.getLogger(__name__)


def install() -> None:
    """Replace all of `PLACES`."""
    for module_name, path, replacement in PLACES:
        try:
            owner: Any = import_module(module_name)
            module = owner
            *classes, name = path.split(".")
            for c in classes:
                owner = getattr(owner, c)
            setattr(owner, name, replacement(module, getattr(owner, name)))
        except (ImportError, AttributeError) as e:
            _log.info("this JAX has no %s.%s to replace: %s", module_name, path, e)


def place(module: str, path: str) -> Callable[[Replace], Replace]:
    """Decorator: `module.path` is replaced by what the function gives."""

    def add(replacement: Replace) -> Replace:
        PLACES.append((f"jax._src.{module}", path, replacement))
        return replacement

    return add


def _as_cpu(platforms: Sequence[str]) -> tuple[str, ...]:
    """The platforms whose lowering rules are for these, each once."""
    return tuple(dict.fromkeys(CPU if p == HILO else p for p in platforms))


@place("interpreters.mlir", "lower_jaxpr_to_module")
def _lower_as_cpu(mlir: Any, original: Any) -> Any:
    """The rule itself. Rules that somebody registers for `hilo` go before those for cpu."""

    @wraps(original)
    def lower_jaxpr_to_module(*args: Any, platforms: Sequence[str], lowering_parameters: Any, **kwargs: Any) -> Any:
        own = mlir._platform_specific_lowerings.get(HILO)
        if own and tuple(platforms) == (HILO,):
            rules = tuple((primitive, getattr(entry, "rule", entry)) for primitive, entry in own.items())
            before = lowering_parameters.override_lowering_rules or ()
            lowering_parameters = replace(lowering_parameters, override_lowering_rules=(*before, *rules))
        return original(*args, platforms=_as_cpu(platforms), lowering_parameters=lowering_parameters, **kwargs)

    return lower_jaxpr_to_module


@place("interpreters.mlir", "ModuleContext.get_backend")
def _backend_of_module(mlir: Any, original: Any) -> Any:
    """Rules that ask for the client of a module that is lowered for cpu: it is hilo's."""

    @wraps(original)
    def get_backend(self: Any, optional: bool = False) -> Any:
        if self.backend is not None and self.backend.platform == HILO and tuple(self.platforms) == (CPU,):
            return self.backend
        return original(self, optional)

    return get_backend


@place("interpreters.mlir", "check_backend_matches")
def _nested_backends(mlir: Any, original: Any) -> Any:
    """A function that asks for hilo inside of one that is lowered for hilo, as cpu."""

    @wraps(original)
    def check_backend_matches(inner_backend: str | None, lowering_platforms: Sequence[str]) -> None:
        original(CPU if inner_backend == HILO else inner_backend, lowering_platforms)

    return check_backend_matches


@place("interpreters.mlir", "_platforms_with_donation")
def _donation(mlir: Any, original: list[str]) -> list[str]:
    """Who asks, sees that hilo takes donated buffers."""
    if HILO not in original:
        original.append(HILO)
    return original


@place("xla_bridge", "_get_backend_uncached")
def _cpu_is_hilo(bridge: Any, original: Any) -> Any:
    """With `JAX_PLATFORMS=hilo` there is no client for cpu: then hilo's devices are the CPU devices. Callbacks put
    their arguments there, and many programs their data."""

    @wraps(original)
    def _get_backend_uncached(platform: Any = None) -> Any:
        if platform == CPU:
            backends = bridge.backends()
            if CPU not in backends and HILO in backends:
                return backends[HILO]
        return original(platform)

    return _get_backend_uncached


@place("compilation_cache", "is_cache_used")
def _persistent_cache(cache: Any, original: Any) -> Any:
    """JAX's persistent cache is for platforms of a list of names."""

    class Named:
        platform = CPU
        supports_executable_serialization = True

    @wraps(original)
    def is_cache_used(backend: Any) -> bool:
        return original(Named if backend.platform == HILO else backend)

    return is_cache_used


@place("export._export", "default_export_platform")
def _exported_for_cpu(export: Any, original: Any) -> Any:
    """A program that is exported is for cpu, as it is lowered: it also runs where there is no hilo."""

    @wraps(original)
    def default_export_platform() -> str:
        name = original()
        return CPU if name == HILO else name

    export.default_lowering_platform = default_export_platform
    public: Any = import_module("jax.export")
    public.default_export_platform = default_export_platform
    return default_export_platform


@place("export._export", "_export_internal")
def _exported_for_hilo(export: Any, original: Any) -> Any:
    """`platforms=["hilo"]` asks for the same."""

    @wraps(original)
    def _export_internal(fun_jit: Any, *, platforms: Sequence[str] | None = None, **kwargs: Any) -> Any:
        platforms = None if platforms is None or isinstance(platforms, str) else _as_cpu(platforms)
        return original(fun_jit, platforms=platforms, **kwargs)

    return _export_internal


@place("numpy.array_constructors", "_get_platform")
def _without_copies(constructors: Any, original: Any) -> Any:
    """`jnp.asarray(x, copy=False)` is possible: hilo's memory is the host's."""

    @wraps(original)
    def _get_platform(device: Any) -> str:
        name = original(device)
        return CPU if name == HILO else name

    return _get_platform


PLACES.extend((f"jax._src.{module}", path, replacement) for module, path, replacement in exchange.PLACES)
