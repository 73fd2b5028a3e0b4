"""Executables through the table: compilation in all ways, its errors, what getters say, serialization, life."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pjrt_abi import abi
from pjrt_client import C, Host, PjrtError, a_host, build, numbers, text

import hilo
from hilo.custom_calls.registry import unregister
from hilo.pjrt import compiler

PROGRAM = """module @jit_f {
  func.func public @main(%x: tensor<2x3xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<3xi32>)
      -> (tensor<2x3xf32>, tensor<i32> {mhlo.memory_kind = "pinned_host"}, tensor<3xi32>) {
    %0 = stablehlo.add %x, %x : tensor<2x3xf32>
    %1 = stablehlo.constant dense<0> : tensor<i32>
    %2 = stablehlo.reduce(%y init: %1) applies stablehlo.add across dimensions = [0]
        : (tensor<3xi32>, tensor<i32>) -> tensor<i32>
    %3 = stablehlo.negate %y : tensor<3xi32>
    return %0, %2, %3 : tensor<2x3xf32>, tensor<i32>, tensor<3xi32>
  }
}"""
X, Y = np.arange(6, dtype="f4").reshape(2, 3), np.array([1, -2, 3], "i4")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    monkeypatch.setenv("HILO_CACHE_DIR", str(tmp_path))
    with a_host() as host:
        yield host


def executable_of(host: Host, loaded: int) -> int:
    return host.api.loaded_executable_get_executable(loaded_executable=loaded).executable


def call(deleter: int, holder: int) -> None:
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(deleter)(holder)


def check_runs(host: Host, loaded: int) -> None:
    a, b, c = host.run(loaded, [host.put(X), host.put(Y)])
    assert (host.get(a) == 2 * X).all()
    assert host.get(b) == 2
    assert (host.get(c) == -Y).all()
    said = host.api.memory_kind(memory=host.api.buffer_memory(buffer=b).memory)
    assert text(said.kind, said.kind_size) == "pinned_host"


def texts(address: int, sizes: int, count: int) -> list[str]:
    places = numbers(address, count, ctypes.c_size_t)
    return [text(p, n) for p, n in zip(places, numbers(sizes, count, ctypes.c_size_t), strict=True)]


def test_what_getters_say(host: Host) -> None:
    loaded = host.compile(PROGRAM)
    e, api = executable_of(host, loaded), host.api
    name = api.executable_name(executable=e)
    assert text(name.executable_name, name.executable_name_size) == "jit_f"
    assert api.executable_num_outputs(executable=e).num_outputs == 3
    assert api.executable_num_replicas(executable=e).num_replicas == 1
    assert api.executable_num_partitions(executable=e).num_partitions == 1
    assert api.executable_size_of_generated_code_in_bytes(executable=e).size_in_bytes > 0
    types = api.executable_output_element_types(executable=e)
    assert numbers(types.output_types, types.num_output_types, ctypes.c_uint32) == (C["F32"], C["S32"], C["S32"])
    dims = api.executable_output_dimensions(executable=e)
    assert numbers(dims.dim_sizes, dims.num_outputs, ctypes.c_size_t) == (2, 0, 1)
    assert numbers(dims.dims, 3) == (2, 3, 3)
    kinds = api.executable_output_memory_kinds(executable=e)
    assert texts(kinds.memory_kinds, kinds.memory_kind_sizes, kinds.num_outputs) == ["device", "pinned_host", "device"]
    kinds = api.executable_parameter_memory_kinds(executable=e)
    assert texts(kinds.memory_kinds, kinds.memory_kind_sizes, kinds.num_parameters) == ["device", "device"]
    ids = api.loaded_executable_addressable_device_logical_ids(executable=loaded)
    assert ids.num_addressable_device_logical_ids == 1
    assert numbers(ids.addressable_device_logical_ids, 2, ctypes.c_int32) == (0, 0)
    said = api.loaded_executable_get_device_assignment(executable=loaded)
    assert ctypes.string_at(said.serialized_bytes, said.serialized_bytes_size) == bytes([8, 1, 16, 1, 26, 3, 10, 1, 0])
    call(said.serialized_device_assignment_deleter, said.serialized_device_assignment)
    assert not api.loaded_executable_is_deleted(executable=loaded).is_deleted
    api.executable_destroy(executable=e)
    check_runs(host, loaded)


def test_fingerprints_tell_programs_apart(host: Host) -> None:
    def of(program: str) -> bytes:
        loaded = host.compile(program)
        a = host.api.loaded_executable_fingerprint(executable=loaded)
        b = host.api.executable_fingerprint(executable=executable_of(host, loaded))
        found = ctypes.string_at(a.executable_fingerprint, a.executable_fingerprint_size)
        assert found == ctypes.string_at(b.executable_fingerprint, b.executable_fingerprint_size)
        return found

    assert of(PROGRAM) == of(PROGRAM) != of(PROGRAM.replace("stablehlo.negate", "stablehlo.abs"))


def test_costs_and_memory(host: Host) -> None:
    e = executable_of(host, host.compile(PROGRAM))
    found = [host.api.executable_get_cost_analysis(executable=e) for _ in range(2)]
    assert found[0].properties == found[1].properties
    values = (abi().structs["named_value"] * found[0].num_properties).from_address(found[0].properties)
    costs = {text(v.name, v.name_size): v.value.real for v in values if v.type == C["REAL"]}
    assert costs["flops"] > 0
    assert costs["bytes accessed"] > 0
    stats = host.api.executable_get_compiled_memory_stats(executable=e)
    assert (stats.argument_size_in_bytes, stats.output_size_in_bytes) == (36, 40)
    assert stats.generated_code_size_in_bytes > 0


def test_older_callers_know_fewer_statistics(host: Host) -> None:
    e = executable_of(host, host.compile(PROGRAM))
    args = build("executable_get_compiled_memory_stats_args", executable=e, alias_size_in_bytes=-1)
    args.struct_size = type(args).alias_size_in_bytes.offset
    assert not host.api.function("executable_get_compiled_memory_stats")(ctypes.addressof(args))
    assert (args.output_size_in_bytes, args.alias_size_in_bytes) == (40, -1)


def test_the_optimized_program(host: Host) -> None:
    e = executable_of(host, host.compile(PROGRAM))
    program = build("program")
    host.api.executable_optimized_program(executable=e, program=program)
    assert text(program.format, program.format_size)
    room = ctypes.create_string_buffer(program.code_size)
    program.code = ctypes.addressof(room)
    host.api.executable_optimized_program(executable=e, program=program)
    assert room.raw == compiler.compile("mlir", PROGRAM.encode(), b"").optimized_program()[1]
    program.code_size = 3
    with pytest.raises(PjrtError, match="there is room for 3"):
        host.api.executable_optimized_program(executable=e, program=program)


def test_options_are_given_back(host: Host) -> None:
    options = bytes([26, 4, 32, 1, 40, 1])  # one replica, one partition
    e = executable_of(host, host.compile(PROGRAM, options))
    args = host.api.executable_get_compile_options(executable=e)
    assert ctypes.string_at(args.serialized_bytes, args.serialized_bytes_size) == options
    call(args.serialized_compile_options_deleter, args.serialized_compile_options)


def serialized(host: Host, loaded: int) -> bytes:
    args = host.api.executable_serialize(executable=executable_of(host, loaded))
    data = ctypes.string_at(args.serialized_bytes, args.serialized_bytes_size)
    call(args.serialized_executable_deleter, args.serialized_executable)
    return data


def test_serialized_executables_run(host: Host) -> None:
    data = serialized(host, host.compile(PROGRAM))
    check_runs(host, deserialize(host, data))
    with pytest.raises(PjrtError, match="damaged") as failure:
        deserialize(host, data[:-1] + bytes([data[-1] ^ 1]))
    assert failure.value.code == C["INVALID_ARGUMENT"]
    with pytest.raises(PjrtError, match="no executable that hilo serialized"):
        deserialize(host, b"")


def deserialize(host: Host, data: bytes) -> int:
    return host.api.executable_deserialize_and_load(client=host.client, serialized_executable=data,
                                                    serialized_executable_size=len(data)).loaded_executable  # fmt: skip


def test_compiled_without_a_client_and_loaded_then(host: Host) -> None:
    topology = host.api.client_topology(client=host.client).topology
    code = PROGRAM.encode()
    program = build("program", code=code, code_size=len(code), format=b"mlir", format_size=4)
    e = host.api.compile(topology=topology, program=program).executable
    loaded = [host.api.client_load(client=host.client, executable=e).loaded_executable for _ in range(2)]
    host.api.executable_destroy(executable=e)
    check_runs(host, loaded[0])
    host.api.loaded_executable_destroy(executable=loaded[0])
    check_runs(host, loaded[1])
    devices = host.api.loaded_executable_addressable_devices(executable=loaded[1])
    assert numbers(devices.addressable_devices, devices.num_addressable_devices) == (host.device,)


@pytest.mark.parametrize(
    ("program", "form", "code", "message"),
    [
        ("func.func @main(", "mlir", "INVALID_ARGUMENT", "<program>:1"),
        ("", "mlir", "INVALID_ARGUMENT", "program"),
        ("func.func @main() { return }", "onnx", "UNIMPLEMENTED", "no program format 'onnx'"),
        ("func.func @main(%x: tensor<?xf32>) { return }", "mlir", "UNIMPLEMENTED", "sizes are not known"),
    ],
)
def test_errors_of_compilation(host: Host, program: str, form: str, code: str, message: str) -> None:
    with pytest.raises(PjrtError, match=message) as failure:
        host.compile(program, form=form)
    assert failure.value.code == C[code]
    assert "Traceback" not in str(failure.value)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (MemoryError(), "RESOURCE_EXHAUSTED", "no memory"),
        (ZeroDivisionError("a mistake of ours"), "INTERNAL", "ZeroDivisionError: a mistake of ours"),
    ],
)
def test_exceptions_of_the_compiler(host: Host, monkeypatch: pytest.MonkeyPatch, error: Exception, code: str,
                                    message: str) -> None:  # fmt: skip
    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr(compiler, "compile", fail)
    with pytest.raises(PjrtError, match=message) as failure:
        host.compile(PROGRAM)
    assert failure.value.code == C[code]


def test_an_interrupt_reaches_the_program_too(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(compiler, "compile", interrupt)
    with pytest.raises(KeyboardInterrupt):
        host.compile(PROGRAM)


@pytest.mark.parametrize("change", ["cost", "arguments", "result_kinds", "native", "donated"])
def test_what_cannot_be_is_an_error(host: Host, monkeypatch: pytest.MonkeyPatch, change: str) -> None:
    made = compiler.compile("mlir", PROGRAM.encode(), b"")
    wrong = {"cost": "much", "arguments": made.results, "result_kinds": ["cloud"] * 3, "native": 5, "donated": [2]}
    setattr(made, change, wrong[change])
    monkeypatch.setattr(compiler, "compile", lambda *_: made)
    with pytest.raises(PjrtError) as failure:
        host.compile(PROGRAM)
    assert failure.value.code == C["INTERNAL"]


def test_executables_that_call_python_are_not_serialized(host: Host) -> None:
    hilo.register_custom_call("t_executables", lambda x: x)
    try:
        loaded = host.compile("""func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
          %0 = stablehlo.custom_call @t_executables(%x) {api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
          return %0 : tensor<4xf32> }""")
    finally:
        unregister("t_executables")
    with pytest.raises(PjrtError, match="cannot be serialized") as failure:
        serialized(host, loaded)
    assert failure.value.code == C["UNIMPLEMENTED"]


def test_getters_without_an_answer_are_empty(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    e = executable_of(host, host.compile(PROGRAM))

    def fail(_: Any) -> None:
        raise RuntimeError

    for name in "cost_analysis", "memory_stats", "optimized_program", "code_size":
        monkeypatch.setattr(compiler.Loaded, name, fail)
    assert host.api.executable_get_cost_analysis(executable=e).num_properties == 0
    assert host.api.executable_get_compiled_memory_stats(executable=e, temp_size_in_bytes=5).temp_size_in_bytes == 0
    assert host.api.executable_size_of_generated_code_in_bytes(executable=e).size_in_bytes == 0
    program = build("program")
    host.api.executable_optimized_program(executable=e, program=program)
    assert program.code_size == 0


def test_executables_end_with_their_last_owner(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[weakref.ref[Any]] = []
    compile = compiler.compile  # noqa: A001

    def watched(*args: Any) -> Any:
        loaded = compile(*args)
        made.append(weakref.ref(loaded))
        return loaded

    monkeypatch.setattr(compiler, "compile", watched)
    loaded = host.compile(PROGRAM)
    e = executable_of(host, loaded)
    host.api.executable_get_cost_analysis(executable=e)
    host.api.loaded_executable_destroy(executable=loaded)
    gc.collect()
    assert made[0]() is not None
    host.api.executable_destroy(executable=e)
    gc.collect()
    assert made[0]() is None
