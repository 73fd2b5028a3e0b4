"""Python callbacks of JAX's programs: pure_callback, io_callback, debug.callback, debug.print, and buffer_callback.

JAX compiles a callback to a custom call with a number, and gives the compiler the list of functions that the numbers
mean. That list is passed on beside the program: one program with callbacks is compiled at a time (jaxlib does so on a
thread of its own), and the targets that its calls find are bound to its list. So a function lives exactly as long as
the programs that call it. Imports custom_calls, runtime, errors; JAX when called.
"""

from __future__ import annotations

import ctypes
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from importlib import import_module
from threading import Lock
from typing import Any, Final

import numpy as np

from hilo.custom_calls.registry import Target
from hilo.custom_calls.signature import Leaf
from hilo.custom_calls.site import CallSite
from hilo.errors import Error

ON_ARRAYS: Final = ("xla_ffi_python_cpu_callback", "xla_ffi_partitioned_python_cpu_callback")
ON_BUFFERS: Final = "xla_buffer_python_cpu_callback"
NAMES: Final = (*ON_ARRAYS, ON_BUFFERS)
PLATFORMS: Final = ("hilo", "cpu")

_lock: Final = Lock()  # held while a program with callbacks is compiled
_functions: tuple[Any, ...] | None = None  # of that program


def install() -> None:
    """Make JAX hand over the functions of programs that it compiles for hilo."""
    compiler: Any = import_module("jax._src.compiler")
    original = compiler.backend_compile_and_load

    @wraps(original)
    def backend_compile_and_load(backend: Any, module: Any, executable_devices: Any, options: Any,
                                 host_callbacks: Sequence[Any]) -> Any:  # fmt: skip
        if not host_callbacks or not is_ours(backend):
            return original(backend, module, executable_devices, options, host_callbacks)
        with functions(host_callbacks):
            return original(backend, module, executable_devices, options, ())

    compiler.backend_compile_and_load = backend_compile_and_load


def is_ours(backend: Any) -> bool:
    """Whether a client of JAX is hilo."""
    return backend.platform in PLATFORMS and "hilo" in backend.platform_version


@contextmanager
def functions(callbacks: Sequence[Any]) -> Iterator[None]:
    """The program that is compiled meanwhile calls these functions, by their number."""
    global _functions
    with _lock:
        _functions = tuple(callbacks)
        try:
            yield
        finally:
            _functions = None


def target(name: str) -> Target:
    """The target, one of `NAMES`, of a callback in the program that is being compiled."""
    callbacks = _functions
    if callbacks is None:
        raise Error("the program calls Python functions of the process that it was made in, which are not here")
    if name == ON_BUFFERS:
        return _on_buffers(callbacks)
    return Target(name, "python", Callbacks(callbacks), ("call",))


class Callbacks:
    """The Python function behind a program's callbacks: calls `functions[index]` on arrays of their own."""

    def __init__(self, functions: tuple[Any, ...]) -> None:
        self.functions: Final = functions

    def __call__(self, *operands: np.ndarray, call: CallSite) -> list[np.ndarray]:
        """Raises `Error` with the traceback, as text, of whatever the function raises."""
        arrays = iter(operands)
        try:
            given = [None if t is None else _own(next(arrays)) for t in call.signature.operands]
            out = self.functions[int(call.attributes["index"])](*given)
            return [_result(a, t) for a, t in zip(out, call.signature.results, strict=True) if t is not None]
        except BaseException as e:  # JAX reports what sys.exit and Ctrl-C raise as any other error
            text = "".join(traceback.format_exception(e)).rstrip()
            raise Error(f"CpuCallback error calling callback: {text}") from e


def _own(a: np.ndarray) -> np.ndarray:
    """A read-only copy: JAX may take over the memory of an array without telling it."""
    a = a.copy()
    a.flags.writeable = False
    return a


def _result(a: Any, t: Leaf) -> np.ndarray:
    """JAX has checked shapes and dtypes; extension types may come as plain bytes."""
    assert t is not None
    a = np.asarray(a)
    return a if a.dtype == t.dtype.np else a.view(t.dtype.np)


class _Loaded(ctypes.Structure):
    """The list of functions as jaxlib's handler of buffer callbacks takes it."""

    _fields_ = (("functions", ctypes.POINTER(ctypes.py_object)), ("count", ctypes.c_uint32))


def _on_buffers(callbacks: tuple[Any, ...]) -> Target:
    """jaxlib's own handler: the buffers that functions get are objects which only jaxlib can make."""
    from hilo.runtime.foreign import native_target

    code = import_module("jaxlib._jax").custom_call_targets("Host").get(ON_BUFFERS)
    if code is None:
        raise Error("this jaxlib has no buffer callbacks")
    array = (ctypes.py_object * len(callbacks))(*callbacks)
    loaded = _Loaded(ctypes.cast(array, ctypes.POINTER(ctypes.py_object)), len(callbacks))
    return native_target(ON_BUFFERS, code, "xla-ffi", ctypes.addressof(loaded), (callbacks, array, loaded))
