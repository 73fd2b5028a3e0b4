"""The extensions: layouts as texts, descriptions of memories, foreign functions, shardings, versions of the ABI."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pjrt_abi import HEADERS, abi
from pjrt_client import Api, C, Host, PjrtError, a_host, build, numbers, text, tiled
from runtime_entries import c_compiler  # pyright: ignore[reportMissingImports]

import hilo
from hilo.custom_calls import registry

_DELETE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
SLOTS = {
    "LAYOUTS": ["layouts_memory_layout_destroy", "layouts_memory_layout_serialize",
                "layouts_client_get_default_layout", "layouts_buffer_memory_layout",
                "layouts_topology_get_default_layout", "layouts_executable_get_output_layouts",
                "layouts_executable_get_parameter_layouts"],
    "FFI": ["ffi_type_register", "ffi_user_data_add", "ffi_register_handler"],
    "MEMORY_DESCRIPTIONS": ["device_description_memory_descriptions", "memory_description_kind"],
    "SHARDINGS": ["shardings_executable_parameter_shardings", "shardings_executable_output_shardings"],
    "ABI_VERSION": ["client_runtime_abi_version", "executable_get_abi_version", "runtime_abi_version_destroy",
                    "runtime_abi_version_is_compatible_with_runtime",
                    "runtime_abi_version_is_compatible_with_executable", "runtime_abi_version_to_proto",
                    "runtime_abi_version_platform_id", "executable_abi_version_destroy",
                    "executable_abi_version_to_proto", "executable_abi_version_platform_id",
                    "runtime_abi_version_from_proto", "executable_abi_version_from_proto"],
}  # fmt: skip

PROGRAM = """
func.func @main(%x: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}, %y: tensor<f32>) -> tensor<2x3xf32> {
  return %x : tensor<2x3xf32>
}"""


class Extensions:
    """The functions of all extensions as methods, like those of `Api`."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.found: dict[int, tuple[int, int]] = {}  # type: address, size
        (at,) = numbers(api.address + 8, 1, ctypes.c_size_t)
        while at:
            size, kind, after = numbers(at, 3, ctypes.c_size_t)
            self.found[kind & 0xFFFFFFFF] = (at, size)
            at = after

    def __getattr__(self, name: str) -> Callable[..., Any]:
        kind, slots = next((k, s) for k, s in SLOTS.items() if name in s)
        at, _ = self.found[C[f"EXTENSION_{kind}"]]
        (address,) = numbers(at + 24 + 8 * slots.index(name), 1, ctypes.c_size_t)
        function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(address)

        def call(**fields: Any) -> Any:
            args = build(f"{name}_args", **fields)
            if error := function(ctypes.addressof(args)):
                self.api.throw(error)
            return args

        return call

    def layout(self, layout: int, *, destroy: bool = True) -> str:
        """The text of a layout."""
        said = self.layouts_memory_layout_serialize(layout=layout)
        result = text(said.serialized_bytes, said.serialized_bytes_size)
        _DELETE(said.serialized_layout_deleter)(said.serialized_layout)
        if destroy:
            self.layouts_memory_layout_destroy(layout=layout)
        return result


@pytest.fixture
def host() -> Iterator[Host]:
    with a_host() as host:
        yield host


@pytest.fixture(name="ext")
def the_extensions() -> Extensions:
    return Extensions(Api())


@pytest.fixture
def executable(host: Host) -> Iterator[int]:
    loaded = host.compile(PROGRAM)
    found = host.api.loaded_executable_get_executable(loaded_executable=loaded).executable
    yield found
    host.api.executable_destroy(executable=found)
    host.api.loaded_executable_destroy(executable=loaded)


def test_the_chain(ext: Extensions) -> None:
    assert ext.found.keys() == {C[f"EXTENSION_{kind}"] for kind in SLOTS}
    for kind, slots in SLOTS.items():
        assert ext.found[C[f"EXTENSION_{kind}"]][1] == 24 + 8 * len(slots)


@pytest.mark.parametrize(("dims", "expected"), [((), "{}"), ((5,), "{0}"), ((2, 3, 0), "{2,1,0}")])
def test_default_layouts_are_row_major(ext: Extensions, host: Host, dims: tuple[int, ...], expected: str) -> None:
    given: dict[str, Any] = {"type": C["S4"], "dims": dims, "num_dims": len(dims)}
    made: Any = ext.layouts_client_get_default_layout(client=host.client, **given)
    assert ext.layout(made.layout) == expected
    topology = host.api.client_topology(client=host.client).topology
    made = ext.layouts_topology_get_default_layout(topology_description=topology, **given)
    assert ext.layout(made.layout) == expected


def test_a_layout_of_no_shape(ext: Extensions, host: Host) -> None:
    with pytest.raises(PjrtError) as e:
        ext.layouts_client_get_default_layout(client=host.client, type=99, dims=(2,), num_dims=1)
    assert e.value.code == C["INVALID_ARGUMENT"]


def test_layouts_of_buffers_live_longer(ext: Extensions, host: Host) -> None:
    x = host.put(np.zeros((2, 3, 4), np.float32), device_layout=tiled([0, 2, 1]))
    layout = ext.layouts_buffer_memory_layout(buffer=x).layout
    host.free(x)
    assert ext.layout(layout) == "{0,2,1}"


def test_layouts_of_executables_are_its_own(ext: Extensions, executable: int) -> None:
    found = ext.layouts_executable_get_parameter_layouts(executable=executable)
    layouts = numbers(found.layouts, found.num_parameters, ctypes.c_size_t)
    assert [ext.layout(at, destroy=False) for at in layouts] == ["{0,1}", "{}"]
    found = ext.layouts_executable_get_output_layouts(executable=executable)
    layouts = numbers(found.layouts, found.num_outputs, ctypes.c_size_t)
    assert [ext.layout(at, destroy=False) for at in layouts] == ["{1,0}"]


def test_descriptions_of_memories(ext: Extensions, host: Host) -> None:
    d = host.api.device_get_description(device=host.device).device_description
    found = ext.device_description_memory_descriptions(device_description=d)
    kinds = []
    for m in numbers(found.memory_descriptions, found.num_memory_descriptions, ctypes.c_size_t):
        said = ext.memory_description_kind(memory_description=m)
        kinds.append((text(said.kind, said.kind_size), said.kind_id))
    assert kinds == [("device", 0), ("pinned_host", 1), ("unpinned_host", 2)]
    assert found.default_memory_index == 0


def test_there_are_no_shardings(ext: Extensions, executable: int) -> None:
    found = ext.shardings_executable_parameter_shardings(executable=executable)
    assert (found.num_parameters, found.shardings) == (2, None)
    found = ext.shardings_executable_output_shardings(executable=executable)
    assert (found.num_outputs, found.shardings) == (1, None)


# Versions of the ABI.


def proto(found: Any) -> bytes:
    data = ctypes.string_at(found.serialized_proto, found.serialized_proto_size)
    _DELETE(found.serialized_proto_deleter)(found.serialized_proto_holder)
    return data


def test_an_executable_fits_to_its_runtime(ext: Extensions, host: Host, executable: int) -> None:
    runtime = ext.client_runtime_abi_version(client=host.client).abi_version
    version = ext.executable_get_abi_version(executable=executable).abi_version
    ext.runtime_abi_version_is_compatible_with_executable(abi_version=runtime, executable_abi_version=version)
    platform = ext.runtime_abi_version_platform_id(abi_version=runtime).platform_id
    assert ext.executable_abi_version_platform_id(abi_version=version).platform_id == platform
    data = proto(ext.executable_abi_version_to_proto(abi_version=version))
    assert f"hilo {hilo.__version__} ".encode() in data
    assert proto(ext.runtime_abi_version_to_proto(abi_version=runtime)) == data
    read = ext.executable_abi_version_from_proto(serialized_proto=data, serialized_proto_size=len(data)).abi_version
    ext.runtime_abi_version_is_compatible_with_executable(abi_version=runtime, executable_abi_version=read)
    for each in (version, read):
        ext.executable_abi_version_destroy(abi_version=each)
    ext.runtime_abi_version_destroy(abi_version=runtime)


def test_other_versions_do_not_fit(ext: Extensions, host: Host) -> None:
    runtime = ext.client_runtime_abi_version(client=host.client).abi_version
    data = proto(ext.runtime_abi_version_to_proto(abi_version=runtime))
    newer = data.replace(hilo.__version__.encode(), b"9" * len(hilo.__version__))
    other = ext.runtime_abi_version_from_proto(serialized_proto=newer, serialized_proto_size=len(newer)).abi_version
    with pytest.raises(PjrtError, match=r"the other runtime is of hilo 99999 .*, this runtime of hilo ") as e:
        ext.runtime_abi_version_is_compatible_with_runtime(abi_version=runtime, other_abi_version=other)
    assert e.value.code == C["FAILED_PRECONDITION"]
    with a_host({"platform_name": "cpu"}) as cpu:
        version = ext.client_runtime_abi_version(client=cpu.client).abi_version
        with pytest.raises(PjrtError, match="is of another platform"):
            ext.runtime_abi_version_is_compatible_with_runtime(abi_version=runtime, other_abi_version=version)
    for each in (runtime, other, version):
        ext.runtime_abi_version_destroy(abi_version=each)


@pytest.mark.parametrize("data", [b"", b"\x08", b"\x08\x01", b"\x12\x05hilo", b"\xff" * 20, b"\x08" + b"\xff" * 12])
def test_bytes_that_are_no_version(ext: Extensions, data: bytes) -> None:
    with pytest.raises(PjrtError, match="no version of an ABI") as e:
        ext.executable_abi_version_from_proto(serialized_proto=data, serialized_proto_size=len(data))
    assert e.value.code == C["INVALID_ARGUMENT"]


# Foreign functions.


@pytest.fixture(scope="module")
def handlers(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    compiler = c_compiler()
    if compiler is None:
        pytest.skip("needs a C compiler")
    path = tmp_path_factory.mktemp("handlers") / "handlers.so"
    source = Path(__file__).parent / "handlers.c"
    flags = ["-std=c11", "-O1", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", f"-I{HEADERS.parent}"]
    subprocess.run([compiler, *flags, str(source), "-o", str(path)], check=True)
    return ctypes.CDLL(str(path))


def register(ext: Extensions, name: str, handler: int | None, platform: str) -> None:
    ext.ffi_register_handler(target_name=name.encode(), target_name_size=len(name), handler=handler,
                             platform_name=platform.encode(), platform_name_size=len(platform))  # fmt: skip


def test_handlers_find_the_data_of_an_execution(ext: Extensions, host: Host, handlers: ctypes.CDLL) -> None:
    number_type = ctypes.c_int64.in_dll(handlers, "number_type")
    number_type.value = ext.ffi_type_register(type_name=b"pjrt.number", type_name_size=11).type_id
    assert number_type.value
    again = ext.ffi_type_register(type_name=b"pjrt.number", type_name_size=11, type_id=number_type.value)
    assert again.type_id == number_type.value
    with pytest.raises(PjrtError, match="another type of this name"):
        ext.ffi_type_register(type_name=b"pjrt.number", type_name_size=11, type_id=number_type.value + 1)

    name = "pjrt.add_number"
    try:
        register(ext, name, ctypes.cast(handlers.add_number, ctypes.c_void_p).value, "Host")
        loaded = host.compile(f"""func.func @main(%x: tensor<i64>) -> tensor<i64> {{
          %y = stablehlo.custom_call @{name}(%x) {{api_version = 4 : i32}} : (tensor<i64>) -> tensor<i64>
          return %y : tensor<i64> }}""")
    finally:
        registry.unregister(name)
    x = host.put(np.array(1))
    contexts, values = [], [ctypes.c_int64(10), ctypes.c_int64(20)]
    for value in values:
        context = host.api.execute_context_create().context
        data = abi().structs["ffi_user_data"](number_type.value, ctypes.addressof(value))
        ext.ffi_user_data_add(context=context, user_data=data)
        contexts.append(context)
    for context, expected in [(contexts[0], 11), (contexts[1], 21), (contexts[0], 11)]:
        (y,) = host.run(loaded, [x], context=context)
        assert host.get(y) == expected
        host.free(y)
    for context in contexts:
        host.api.execute_context_destroy(context=context)
    _, event = host.run(loaded, [x], event=True)
    with pytest.raises(PjrtError, match="the execution has no such user data"):
        host.api.wait(event)
    host.free(x)
    host.api.loaded_executable_destroy(executable=loaded)


def test_handlers_that_cannot_be_registered(ext: Extensions) -> None:
    with pytest.raises(PjrtError, match='no handlers of platform "CUDA"; there are: hilo, cpu, host') as e:
        register(ext, "pjrt.cuda", 4096, "CUDA")
    assert e.value.code == C["NOT_FOUND"]
    for name, handler in (("", 4096), ("pjrt.null", None)):
        with pytest.raises(PjrtError, match="a handler has an address and a name"):
            register(ext, name, handler, "cpu")
    with pytest.raises(PjrtError, match="user data needs the context of an execution"):
        ext.ffi_user_data_add()
    assert not {"pjrt.cuda", "pjrt.null"} & set(registry.known())
