"""What outlives its client goes on as it was; hosts that wait for a compilation with Python's lock in their hands."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pjrt_client import C, Host, PjrtError, a_host, build

import hilo
from hilo.runtime import _native

ADD = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
X = np.arange(4, dtype=np.float32)


def test_everything_may_outlive_the_client() -> None:
    host = Host()
    x, loaded = host.put(X), host.compile(ADD)
    event = host.api.event_create().event
    alias = host.api.client_create_alias_buffer(
        client=host.client, shape_element_type=C["F32"], shape_dims=(4,), shape_num_dims=1)  # fmt: skip
    (later,) = host.run(loaded, [alias.alias_buffer])  # is waiting for its argument
    memory = host.api.buffer_memory(buffer=x).memory
    host.close()
    with a_host() as other:
        assert other.client != host.client
        y = other.put(X)
        host.api.client_fulfill_alias_buffer(fulfill_alias_buffer_cb=alias.fulfill_alias_buffer_cb, buffer=x)
        assert host.get(later).tolist() == [0, 2, 4, 6]
        (now,) = host.run(loaded, [x])
        assert host.get(now).tolist() == [0, 2, 4, 6]
        assert host.api.memory_id(memory=memory).id == 0
        assert host.api.buffer_device(buffer=x).device != other.device
        host.free(x, now, later, alias.alias_buffer)
        assert other.get(y).tolist() == X.tolist()
        other.free(y)
        host.api.event_set(event=event)
        host.api.event_destroy(event=event)
        host.api.loaded_executable_destroy(executable=loaded)
        assert other.api.device_memory_stats(device=other.device).bytes_in_use == 0


def test_structs_of_clients_are_used_again() -> None:
    seen = set()
    for _ in range(20):
        with a_host() as host:
            seen.add(host.client)
            host.free(host.put(X))
    assert len(seen) == 1


def test_clients_one_after_another_begin_anew() -> None:
    for platform in ("hilo", "cpu", "hilo", "cpu"):
        with a_host({"platform_name": platform}) as host:
            stats = host.api.device_memory_stats(device=host.device)
            assert (stats.bytes_in_use, stats.num_allocs, stats.peak_bytes_in_use) == (0, 0, 0)
            name = host.api.client_platform_name(client=host.client)
            assert ctypes.string_at(name.platform_name, name.platform_name_size).decode() == platform
            host.free(host.put(X))


def test_clients_at_the_same_time_are_different() -> None:
    with a_host() as one, a_host() as other:
        assert one.client != other.client
        x = one.put(X)
        assert other.api.device_memory_stats(device=other.device).bytes_in_use == 0
        one.free(x)


def compile_with_the_lock_held() -> None:
    """As jaxlib does: the thread that has Python's lock waits for another one, which compiles."""
    with a_host() as host:
        code = ADD.encode()
        program = build("program", code=code, code_size=len(code), format=b"mlir", format_size=4)
        topology = host.api.client_topology(client=host.client).topology
        args = build("compile_args", topology=topology, program=program, client=host.client)
        libc = ctypes.PyDLL(None)  # keeps the lock
        thread, result = ctypes.c_ulong(), ctypes.c_void_p()
        function: Any = host.api.function("compile")
        function = ctypes.cast(function, ctypes.c_void_p)
        assert libc.pthread_create(ctypes.byref(thread), None, function, ctypes.byref(args)) == 0
        assert libc.pthread_join(thread, ctypes.byref(result)) == 0
        if result.value:
            host.api.throw(result.value)


AT_THE_END = f"""
import atexit, ctypes
from pjrt_client import Api, Host, build
import hilo.pjrt

def last():  # after hilo's own, which is registered later
    libc, thread = ctypes.PyDLL(None), ctypes.c_ulong()  # the lock stays here, as while Python ends
    assert libc.pthread_create(ctypes.byref(thread), None, destroy, ctypes.byref(args)) == 0
    assert libc.pthread_join(thread, None) == 0
    print("over")

atexit.register(last)
host = Host(Api(hilo.pjrt.table()))
args = build("loaded_executable_destroy_args", executable=host.compile({ADD!r}))
destroy = ctypes.cast(host.api.function("loaded_executable_destroy"), ctypes.c_void_p)
"""


def test_threads_of_hosts_never_wait_for_python_when_it_ends() -> None:
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(hilo.__file__).parents[1])])
    done = subprocess.run([sys.executable, "-c", AT_THE_END], env={**os.environ, "PYTHONPATH": paths}, text=True,
                          capture_output=True, timeout=60, check=False)  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "over\n"), done.stderr


def test_a_host_that_waits_with_the_lock_gets_an_error() -> None:
    _native.pjrt_set_patience(1)
    try:
        with pytest.raises(PjrtError, match="for 1 seconds another thread has had Python's lock") as failure:
            compile_with_the_lock_held()
        assert failure.value.code == C["DEADLINE_EXCEEDED"]
    finally:
        _native.pjrt_set_patience(30)


def test_compiling_on_a_thread_of_the_host() -> None:
    with a_host() as host:
        code = ADD.encode()
        program = build("program", code=code, code_size=len(code), format=b"mlir", format_size=4)
        e = host.api.compile(topology=host.api.client_topology(client=host.client).topology, program=program).executable
        loaded = host.api.client_load(client=host.client, executable=e).loaded_executable
        x = host.put(X)
        (y,) = host.run(loaded, [x])
        assert host.get(y).tolist() == [0, 2, 4, 6]
        host.free(x, y)
        host.api.executable_destroy(executable=e)
        host.api.loaded_executable_destroy(executable=loaded)
