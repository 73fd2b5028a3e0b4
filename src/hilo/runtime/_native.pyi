"""The native part of the runtime (sources in native/)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

Spec = tuple[np.dtype, Sequence[int]]

@final
class Program:
    """Compiled code at the address `entry` (ABI: docs/architecture.md), callable: `program(*arrays) -> list of arrays`.

    arguments, results  (numpy dtype, shape) of each
    name                used in messages
    arena_size          bytes of temporaries that each call gets
    constants           dense arrays behind `ctx.constants`, kept alive
    addresses           of code that somebody else keeps: they stand behind the constants
    threads             threads that a call may use (at least 1)
    host_calls          (function, operand specs, result specs[, fills]) or `Foreign`s: what `ctx.host_call` can call,
                        by index. The function gets read-only arrays, with `fills` then arrays over the results' places,
                        and returns an array or a sequence of arrays. A size of -1 is a run-time size
    failure             (index, status, message) -> the exception for a call of native code that failed
    aliases             (result, argument) pairs of equal size: the result may be written over the argument, which is
                        done in `consume` only
    release_gil         whether other Python threads may run during a call (worth it from some microseconds on)
    forms               (argument, bytes, layout in numbers) of arguments that PJRT's calls may bring in another layout
    errors              {error code of the entry function: message}
    keep                any object that must live as long as the code

    A call raises `hilo.errors.Error` for a wrong number of arguments, a wrong dtype or shape (nothing is ever cast),
    and if the code returns an error; `MemoryError` if there is no memory; and whatever a host call raises. Dense,
    aligned numpy arrays are used in place. May be called from several threads at once.
    """

    name: str
    arena_size: int
    threads: int
    keep: Any
    def __new__(
        cls,
        entry: int,
        arguments: Sequence[Spec],
        results: Sequence[Spec],
        *,
        name: str = ...,
        arena_size: int = ...,
        constants: Sequence[np.ndarray] = ...,
        threads: int = ...,
        host_calls: Sequence[Any] = ...,
        aliases: Sequence[tuple[int, int]] = ...,
        release_gil: bool = ...,
        errors: Mapping[int, str] | None = ...,
        keep: Any = ...,
        shapes: int = ...,
        symbols: Sequence[tuple[bool, int, int]] = ...,
        explain: Callable[[int, list[int]], str] | None = ...,
        failure: Callable[[int, int, str], Exception] | None = ...,
        addresses: Sequence[int] = ...,
        forms: Sequence[tuple[int, int, Sequence[int]]] = ...,
    ) -> Program: ...
    def __call__(self, *arrays: Any) -> list[np.ndarray]: ...
    def consume(self, arrays: list[Any]) -> list[np.ndarray]:
        """Call with a list of arrays that are given up: the list is emptied (also by a call that fails), and results
        may take the memory of those arguments of which there is neither another reference nor a view."""

@final
class Foreign:
    """One call of native code, callable with arrays of exactly the operands' dtypes and shapes.

    convention                     0 hilo's own, 1 to 3 XLA's older ones by `api_version`, 4 XLA's FFI
    code                           four addresses, by XLA's stages of execution; 0: none
    operands, results              (numpy dtype, shape) of each
    types                          numbers of the element types of operands, then results
    operand_values, result_values  for each value that the code sees, the number of the operand or result; -1: a token
    config                         text of the configuration
    aliases                        result, operand, result, operand ...: pairs at one place
    is_tuple                       whether `out` of the older conventions is an array of pointers
    attributes                     address of the attributes' struct, or 0
    keep                           what must live as long
    user_data                      address that handlers get who ask for user data of the execution, or 0

    Raises `hilo.errors.Error` with what the code says when it fails.
    """

    def __new__(
        cls,
        convention: int,
        code: tuple[int, int, int, int],
        operands: Sequence[Spec],
        results: Sequence[Spec],
        types: Sequence[int],
        operand_values: Sequence[int],
        result_values: Sequence[int],
        config: bytes,
        aliases: Sequence[int],
        is_tuple: bool,
        attributes: int,
        keep: Any,
        user_data: int = 0,
    ) -> Foreign: ...
    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]: ...

def empty(dtype: Any, shape: Sequence[int]) -> np.ndarray:
    """An array over pooled memory: 64-byte aligned, contents arbitrary."""

def from_dlpack(capsule: Any, dtypes: dict[tuple[int, int], np.dtype]) -> np.ndarray:
    """A read-only array over the memory behind a DLPack capsule, which is used up. `dtypes` maps DLPack's (type code,
    bits) to numpy's types. BufferError for what cannot be read."""

def pjrt_api() -> int:
    """The address of the PJRT C API's table of functions (native/pjrt/api.h)."""

def pjrt_end() -> None:
    """At the end of Python: waits for what clients of PJRT have queued, and for their threads that are in Python."""

def pjrt_set_patience(seconds: int) -> None:
    """How long a compilation for a topology waits for the GIL (native/pjrt/compile.c); for tests."""

def pjrt_settle() -> None:
    """Waits until all that clients of PJRT have queued is done."""

def register_ffi_type(name: str, type_id: int, type_info: int) -> None:
    """Registers a type of states of XLA's FFI: the addresses of its number and of its info (or 0)."""

def set_cores(n: int) -> None:
    """With more threads at work than `n` nobody spins."""

def set_memory_limit(nbytes: int) -> None:
    """Bounds the memory kept for reuse, and releases what is over it."""

def memory_stats() -> dict[str, int]:
    """The memory pool: bytes `in_use`, `kept`, `limit`; allocations that were `hits` and `misses`."""

def ready() -> dict[str, int]:
    """Addresses of the functions, by name, that programs of this process need not bring along (loop IR's `ready`)."""

def workers() -> int:
    """Number of worker threads alive."""
