"""The registration of backends with JAX. Imports siblings, pjrt, errors; JAX when called."""

from __future__ import annotations

import logging
import os
from importlib import import_module
from threading import Lock
from typing import Any, Final

from hilo.errors import Error
from hilo.jax import analyses, callbacks, places, targets

NAME: Final = "hilo"
CPU: Final = "cpu"
AS_CPU: Final = "HILO_JAX_AS_CPU"
BELOW_CPU: Final = -1  # JAX takes the highest priority by default; its own CPU backend has 0, GPUs have more
OLDEST: Final = (0, 10)

_log = logging.getLogger(__name__)
_lock = Lock()
_registered = False


def takes_cpu() -> bool:
    """Whether hilo stands in for JAX's own CPU backend. Raises `Error` for a value that is neither yes nor no."""
    value = os.environ.get(AS_CPU, "0").strip().lower()
    if value in ("1", "true", "yes", "on"):
        return True
    if value in ("0", "false", "no", "off", ""):
        return False
    raise Error(f"{AS_CPU}={value}: it is 1 or 0")


def register() -> None:
    """Register the platform `hilo`, and `cpu` if it is to be taken over.

    Nobody gets hilo without asking: its priority is below that of JAX's own CPU backend. While `JAX_PLATFORMS` asks for
    other platforms only, not even the library is loaded.
    """
    global _registered
    with _lock:
        if _registered:
            return
        bridge = import_module("jax._src.xla_bridge")
        asked = [p.strip() for p in (bridge.config.jax_platforms.value or "").split(",") if p.strip()]
        as_cpu = takes_cpu()
        if asked and NAME not in asked and not (as_cpu and CPU in asked):
            _register_unused(bridge)
        else:
            _check_version()
            targets.install()
            callbacks.install()
            analyses.install()
            if as_cpu:
                _register(bridge, CPU, priority=0, quiet=False)
            if NAME in asked or not as_cpu:
                places.install()
                _register(bridge, NAME, priority=BELOW_CPU, quiet=NAME not in asked)
        _registered = True


def _check_version() -> None:
    version = import_module("jax").__version__
    if tuple(int(n) for n in version.split(".")[:2]) < OLDEST:
        raise Error(f"hilo's plugin is for JAX {'.'.join(map(str, OLDEST))} or newer, not {version}")


def _register(bridge: Any, name: str, priority: int, quiet: bool) -> None:
    from hilo.pjrt import library_path

    bridge._nonexperimental_plugins.add(name)  # no warning that it is experimental
    bridge.register_plugin(name, library_path=library_path(), options=lambda: _options(bridge, name), priority=priority)
    registration = bridge._backend_factories.get(name)
    if registration is None:
        raise Error(f"JAX did not take hilo as a backend named {name!r}")
    registration.fail_quietly = quiet  # whoever did not ask for hilo is not told that it failed


def _options(bridge: Any, name: str) -> dict[str, Any]:
    """What the client is made with; asked for when it is."""
    wanted = bridge.num_cpu_devices.value
    if wanted > 1 or "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", ""):
        _log.info("hilo has one device, however many CPU devices are asked for")
    return {"platform_name": name}


def _register_unused(bridge: Any) -> None:
    """Make the name known, so that asking for a device of it is answered by what platforms there are."""

    def refuse() -> Any:
        raise RuntimeError(f"{NAME} is not among the platforms that JAX_PLATFORMS allows")

    bridge.register_backend_factory(NAME, refuse, priority=BELOW_CPU, fail_quietly=True)
