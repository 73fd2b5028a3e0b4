"""A small client of the plugin's own table of functions, for tests.

    host = Host()                                  # a client of the platform "hilo"
    x = host.put(np.arange(6.0))                   # the address of a buffer
    host.get(x)                                    # its contents; waits
    host.api.buffer_delete(buffer=x)               # any function: fields of its arguments in, the struct back
    (y,) = host.run(host.compile(text), [x])

Errors are raised as `PjrtError`. Handles are plain addresses.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np
from pjrt_abi import abi

from hilo.runtime import _native

C = abi().constants
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

#: numpy's type for each of PJRT's.
DTYPES: dict[int, np.dtype] = {C[name]: np.dtype(t) for name, t in {
    "PRED": np.bool_, "S8": np.int8, "S16": np.int16, "S32": np.int32, "S64": np.int64, "U8": np.uint8,
    "U16": np.uint16, "U32": np.uint32, "U64": np.uint64, "F16": np.float16, "F32": np.float32, "F64": np.float64,
    "BF16": ml_dtypes.bfloat16, "C64": np.complex64, "C128": np.complex128, "F8E5M2": ml_dtypes.float8_e5m2,
    "F8E4M3FN": ml_dtypes.float8_e4m3fn, "F8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "F8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "F8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz, "S4": ml_dtypes.int4,
    "U4": ml_dtypes.uint4, "S2": ml_dtypes.int2, "U2": ml_dtypes.uint2, "F8E4M3": ml_dtypes.float8_e4m3,
    "F8E3M4": ml_dtypes.float8_e3m4, "F8E8M0FNU": ml_dtypes.float8_e8m0fnu, "F4E2M1FN": ml_dtypes.float4_e2m1fn,
    "F6E2M3FN": ml_dtypes.float6_e2m3fn, "F6E3M2FN": ml_dtypes.float6_e3m2fn,
}.items()}  # fmt: skip
CODES = {t: code for code, t in DTYPES.items()}


class PjrtError(Exception):
    """An error of the API; `code` as in api.h."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Api:
    """The functions of a table as methods: `api.buffer_device(buffer=b).device`.

    Values are numbers, handles, bytes, ctypes objects (passed by address where a pointer is wanted), or sequences of
    numbers (arrays of int64).
    """

    def __init__(self, address: int | None = None) -> None:
        self.address = address if address is not None else _native.pjrt_api()

    def function(self, name: str) -> Callable[[Any], int | None]:
        place = self.address + abi().table_offset + 8 * abi().slots[name]
        return _FUNCTION(ctypes.c_void_p.from_address(place).value or 0)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in abi().slots:
            raise AttributeError(name)
        function = self.function(name)

        def call(**fields: Any) -> Any:
            args = build(f"{name}_args", **fields)
            error = function(ctypes.addressof(args))
            if error and name not in ("error_destroy", "error_message"):  # which return nothing
                self.throw(error)
            return args

        setattr(self, name, call)
        return call

    def throw(self, error: int) -> None:
        """Raises what an error says, and destroys it."""
        code = self.error_get_code(error=error).code
        said = self.error_message(error=error)
        message = text(said.message, said.message_size)
        self.error_destroy(error=error)
        raise PjrtError(code, message)

    def wait(self, event: int | None) -> None:
        """Awaits an event and destroys it; raises its error."""
        if not event:
            return
        try:
            self.event_await(event=event)
        finally:
            self.event_destroy(event=event)


def build(name: str, /, **fields: Any) -> Any:
    """A struct of api.h with its own size, which keeps what it points to."""
    struct: Any = abi().structs[name]()
    kinds = dict(struct._fields_)
    for inner, aggregate in struct._fields_:
        if inner.startswith("union"):
            kinds.update(aggregate._fields_)
    if "struct_size" in kinds:
        struct.struct_size = ctypes.sizeof(struct)
    struct.kept = []
    for field, value in fields.items():
        if kinds[field] is ctypes.c_void_p:
            struct.kept.append(value)
            value = _address(value, struct.kept)
        setattr(struct, field, value)
    return struct


def _address(value: Any, kept: list[Any]) -> int | None:
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, bytes):
        value = ctypes.create_string_buffer(value, len(value) + 1)
    elif isinstance(value, Sequence):
        value = (ctypes.c_int64 * max(len(value), 1))(*value)
    elif isinstance(value, np.ndarray):
        return value.ctypes.data
    kept.append(value)
    if isinstance(value, (_FUNCTION, CALLBACK)):
        return ctypes.cast(value, ctypes.c_void_p).value
    return ctypes.addressof(value)


def text(address: int | None, size: int) -> str:
    return ctypes.string_at(address, size).decode() if address and size else ""


def numbers(address: int | None, count: int, kind: Any = ctypes.c_int64) -> tuple[int, ...]:
    return tuple((kind * count).from_address(address)) if address and count else ()


def tiled(minor_to_major: Sequence[int]) -> Any:
    """A memory layout by the order of dimensions."""
    inner = build("tiled", minor_to_major=tuple(minor_to_major), minor_to_major_size=len(minor_to_major))
    layout = build("memory_layout", tiled=inner, type=C["TILED"])
    layout.kept.append(inner)
    return layout


def strided(byte_strides: Sequence[int]) -> Any:
    """A memory layout by strides."""
    inner = build("strides", byte_strides=tuple(byte_strides), num_byte_strides=len(byte_strides))
    layout = build("memory_layout", strides=inner, type=C["STRIDES"])
    layout.kept.append(inner)
    return layout


def named_values(options: dict[str, str]) -> tuple[Any, list[Any]]:
    """An array of named texts, and what it points to."""
    array = (abi().structs["named_value"] * max(len(options), 1))()
    kept = []
    for i, (name, value) in enumerate(options.items()):
        held = ctypes.create_string_buffer(value.encode())
        option = build("named_value", name=name.encode(), name_size=len(name), type=C["STRING"], value_size=len(value))
        option.value.string = ctypes.addressof(held)
        array[i] = option
        kept.append((option, held))
    return array, kept


class Host:
    """A client, and buffers as numpy arrays."""

    def __init__(self, api: Api | None = None, options: dict[str, str] | None = None) -> None:
        self.api = api or Api()
        array, kept = named_values(options or {})
        self.client = self.api.client_create(create_options=array, num_options=len(kept)).client

    def close(self) -> None:
        self.api.client_destroy(client=self.client)

    @property
    def device(self) -> int:
        found = self.api.client_addressable_devices(client=self.client)
        return numbers(found.addressable_devices, 1, ctypes.c_size_t)[0]

    def memory(self, kind: str) -> int:
        found = self.api.client_addressable_memories(client=self.client)
        for m in numbers(found.addressable_memories, found.num_addressable_memories, ctypes.c_size_t):
            said = self.api.memory_kind(memory=m)
            if text(said.kind, said.kind_size) == kind:
                return m
        raise KeyError(kind)

    def begin_put(self, array: np.ndarray, semantics: str = "DURING_CALL", **fields: Any) -> Any:
        """The arguments of BufferFromHostBuffer after the call: `buffer`, and `done_with_host_buffer` (not awaited)."""
        given: dict[str, Any] = {
            "client": self.client, "data": array.ctypes.data, "type": CODES[array.dtype], "dims": array.shape,
            "num_dims": array.ndim, "byte_strides": array.strides, "num_byte_strides": array.ndim,
            "host_buffer_semantics": C[semantics],
        }  # fmt: skip
        return self.api.client_buffer_from_host_buffer(**(given | fields))

    def put(self, array: np.ndarray, **fields: Any) -> int:
        """A buffer with a copy of the array."""
        args = self.begin_put(array, **fields)
        self.api.wait(args.done_with_host_buffer)
        return args.buffer

    def dims(self, buffer: int) -> tuple[int, ...]:
        found = self.api.buffer_dimensions(buffer=buffer)
        return numbers(found.dims, found.num_dims)

    def minor_to_major(self, buffer: int) -> tuple[int, ...]:
        found = self.api.buffer_get_memory_layout(buffer=buffer).layout.tiled
        return numbers(found.minor_to_major, found.minor_to_major_size)

    def get(self, buffer: int) -> np.ndarray:
        """The contents, row-major; waits."""
        array = np.empty(self.dims(buffer), DTYPES[self.api.buffer_element_type(buffer=buffer).type])
        found = self.api.buffer_to_host_buffer(src=buffer, dst=array.ctypes.data, dst_size=array.nbytes)
        self.api.wait(found.event)
        return array

    def raw(self, buffer: int) -> bytes:
        """The bytes as they are; waits."""
        size = self.api.buffer_on_device_size_in_bytes(buffer=buffer).on_device_size_in_bytes
        place = ctypes.create_string_buffer(max(size, 1))
        self.api.wait(self.api.buffer_copy_raw_to_host(buffer=buffer, dst=place, transfer_size=size).event)
        return place.raw[:size]

    def is_deleted(self, buffer: int) -> bool:
        return self.api.buffer_is_deleted(buffer=buffer).is_deleted

    def is_ready(self, buffer: int) -> bool:
        event = self.api.buffer_ready_event(buffer=buffer).event
        ready = self.api.event_is_ready(event=event).is_ready
        self.api.event_destroy(event=event)
        return ready

    def await_buffer(self, buffer: int) -> None:
        """Waits until there are contents; raises the error if there will be none."""
        self.api.wait(self.api.buffer_ready_event(buffer=buffer).event)

    def free(self, *buffers: int) -> None:
        for buffer in buffers:
            self.api.buffer_destroy(buffer=buffer)

    def compile(self, program: str | bytes, options: bytes = b"", form: str = "mlir") -> int:
        """A loaded executable."""
        code = program.encode() if isinstance(program, str) else program
        given = build("program", code=code, code_size=len(code), format=form.encode(), format_size=len(form))
        return self.api.client_compile(client=self.client, program=given, compile_options=options,
                                       compile_options_size=len(options)).executable  # fmt: skip

    def num_outputs(self, loaded: int) -> int:
        executable = self.api.loaded_executable_get_executable(loaded_executable=loaded).executable
        count = self.api.executable_num_outputs(executable=executable).num_outputs
        self.api.executable_destroy(executable=executable)
        return count

    def run(self, loaded: int, buffers: Sequence[int], *, event: bool = False, **options: Any) -> Any:
        """The results' buffers (not awaited); with `event` also the event of the call's end."""
        count = self.num_outputs(loaded)
        inputs, outputs = (ctypes.c_size_t * max(len(buffers), 1))(*buffers), (ctypes.c_size_t * max(count, 1))()
        lists = (ctypes.c_size_t * 1)(ctypes.addressof(inputs)), (ctypes.c_size_t * 1)(ctypes.addressof(outputs))
        events = (ctypes.c_size_t * 1)()
        self.api.loaded_executable_execute(
            executable=loaded, options=build("execute_options", **options), argument_lists=lists[0], num_devices=1,
            num_args=len(buffers), output_lists=lists[1], device_complete_events=events if event else None,
        )  # fmt: skip
        results = list(outputs)[:count]
        return (results, events[0]) if event else results


@contextlib.contextmanager
def a_host(options: dict[str, str] | None = None) -> Iterator[Host]:
    """A client for a while."""
    host = Host(options=options)
    try:
        yield host
    finally:
        host.close()
