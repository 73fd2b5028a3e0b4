"""Custom calls of JAX's programs: handlers that JAX and its users register for `cpu` or `hilo` run on hilo.

JAX hands registrations to one handler per platform, which is usually XLA's. Ours stands before it: XLA's own CPU client
still gets what it got, and hilo finds the code when a program names it (`registry.SOURCES`). Imports custom_calls,
runtime, callbacks; jaxlib when called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from threading import Lock
from typing import Any, Final

from hilo.custom_calls import registry
from hilo.custom_calls.registry import Target
from hilo.errors import Error
from hilo.jax import callbacks

HOST: Final = "Host"  # XLA's name for "cpu"
HILO: Final = "hilo"
UNTYPED: Final = 0  # api_version of XLA's older conventions; others are of its typed FFI
# What hilo has ops for stays native: these are faster than calls, and part of the program's own parallelism.
NATIVE: Final = ("potrf_ffi", "trsm_ffi")

Handler = Callable[..., None]

_given: Final[dict[str, dict[str, tuple[Any, int]]]] = {HILO: {}, HOST: {}}  # by platform and name: code, api_version
_made: Final[dict[tuple[str, str], Target]] = {}
_lock: Final = Lock()


def install() -> None:
    """Take part in registrations from now on, and know those that were made before."""
    client = import_module("jaxlib.xla_client")
    extension = import_module("jaxlib._jax")
    with client._custom_callback_lock:
        handlers = client._custom_callback_handler
        theirs = handlers.get(HOST, extension.register_custom_call_target)
        handlers[HOST] = _target_handler(HOST, theirs)
        handlers[HILO] = _target_handler(HILO, None)
        for platform in (HOST, HILO):
            for name, code, api_version, traits in client._custom_callback.pop(platform, ()):
                handlers[platform](name, code, platform, api_version, traits)
    with client._custom_type_id_lock:
        handlers = client._custom_type_id_handler
        theirs = handlers.get(HOST, extension.register_custom_type)
        for platform in (HOST, HILO):  # one number for a type in both, whichever comes first
            handlers[platform] = _type_handler(theirs)
            for name, registration in client._custom_type_id.pop(platform, ()):
                handlers[platform](name, registration)
    registry.SOURCES.append(find)


def _target_handler(platform: str, theirs: Handler | None) -> Handler:
    def handle(name: Any, code: Any, xla_platform: str, api_version: int = 0, traits: Any = 0) -> None:
        if theirs is not None:
            theirs(name, code, xla_platform, api_version, traits)
        text = name.decode() if isinstance(name, bytes) else name
        with _lock:
            _given[platform][text] = (code, int(api_version))
            _made.pop((platform, text), None)

    return handle


def _type_handler(theirs: Handler) -> Callable[[str, Any], None]:
    def handle(name: str, registration: Any) -> None:
        from hilo.runtime.foreign import register_ffi_type

        given = registration if isinstance(registration, Mapping) else {"type_id": registration}
        try:
            theirs(name, registration)
        finally:  # XLA refuses a type that it knows already, for which it has given a number
            register_ffi_type(name, given["type_id"], given.get("type_info"))

    return handle


def find(name: str) -> Target | None:
    """What JAX has for a target that a program names; None if nothing."""
    if name in callbacks.NAMES:
        return callbacks.target(name)
    if name.startswith("lapack_") and name.endswith(NATIVE):
        return None
    for platform in (HILO, HOST):
        with _lock:
            target = _made.get((platform, name))
            given = _given[platform].get(name)
        if target is None and given is not None:
            target = _target(name, *given)
            with _lock:
                _made[platform, name] = target
        if target is not None:
            return target
    found = import_module("jaxlib._jax").custom_call_targets(HOST).get(name)  # those that jaxlib brings
    return None if found is None else _target(name, found, 1 if isinstance(found, Mapping) else UNTYPED)


def _target(name: str, code: Any, api_version: int) -> Target:
    from hilo.runtime.foreign import native_target

    if name.startswith("lapack_"):  # its handlers find LAPACK itself when they are initialized
        import_module("jaxlib.lapack")._lapack.initialize()
    if api_version == UNTYPED:
        return native_target(name, code, "xla")
    if isinstance(code, Mapping) and not code.get("execute"):
        raise Error(f"custom call target {name!r} was registered without code for the stage 'execute'")
    return native_target(name, code, "xla-ffi")
