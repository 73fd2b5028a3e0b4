"""References of others to a buffer's memory, and donation: what others look at is never written over."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from pjrt_client import C, Host, PjrtError, a_host

LARGE = np.arange(1000, dtype="f8").reshape(10, 100)  # large enough to be worth no copy


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with a_host() as h:
        yield h


def _pointer(host: Host, buffer: int) -> int:
    return host.api.buffer_unsafe_pointer(buffer=buffer).buffer_pointer


def test_external_references_hold_the_memory(host: Host) -> None:
    b = host.put(LARGE)
    for _ in range(2):
        host.api.buffer_increase_external_reference_count(buffer=b)
    pointer = host.api.buffer_opaque_device_memory_data_pointer(buffer=b).device_memory_ptr
    assert pointer == _pointer(host, b)
    seen = np.ctypeslib.as_array((ctypes.c_double * 1000).from_address(pointer))
    host.api.buffer_delete(buffer=b)
    assert host.is_deleted(b)
    assert host.api.buffer_opaque_device_memory_data_pointer(buffer=b).device_memory_ptr == pointer
    others = [host.put(LARGE * 0) for _ in range(4)]  # would get the memory if it were free
    assert pointer not in {_pointer(host, o) for o in others}
    assert (seen == LARGE.reshape(-1)).all()
    with pytest.raises(PjrtError, match="deleted"):  # nobody new
        host.api.buffer_increase_external_reference_count(buffer=b)
    for _ in range(2):
        host.api.buffer_decrease_external_reference_count(buffer=b)
    with pytest.raises(PjrtError, match="no external references"):
        host.api.buffer_decrease_external_reference_count(buffer=b)
    with pytest.raises(PjrtError, match="deleted"):
        host.api.buffer_opaque_device_memory_data_pointer(buffer=b)
    host.free(b, *others)


DONATING = """
module @m {
  func.func public @main(%x: tensor<10x100xf64> {tf.aliasing_output = 0 : i32}) -> tensor<10x100xf64> {
    %0 = stablehlo.negate %x : tensor<10x100xf64>
    return %0 : tensor<10x100xf64>
  }
}
"""


@pytest.fixture(scope="module")
def negate(host: Host) -> Iterator[int]:
    loaded = host.compile(DONATING)
    yield loaded
    host.api.loaded_executable_destroy(executable=loaded)


def test_donated_memory_becomes_the_result(host: Host, negate: int) -> None:
    b = host.put(LARGE)
    pointer = _pointer(host, b)
    (y,) = host.run(negate, [b])
    assert host.is_deleted(b)
    host.await_buffer(y)
    assert _pointer(host, y) == pointer
    assert (host.get(y) == -LARGE).all()
    host.free(b, y)


@pytest.mark.parametrize("who", ["external", "pointer", "view", "zero copy", "foreign"])
def test_donated_memory_that_others_look_at_stays(host: Host, negate: int, who: str) -> None:
    a = LARGE.copy()
    extra: list[int] = []
    done = None
    if who == "zero copy":
        put = host.begin_put(a, "ZERO_COPY")
        b, done = put.buffer, put.done_with_host_buffer
    elif who == "foreign":
        b = host.api.client_create_view_of_device_buffer(
            client=host.client, device_buffer_ptr=a.ctypes.data, dims=a.shape, num_dims=2, element_type=C["F64"],
            device=host.device).buffer  # fmt: skip
    else:
        b = host.put(a)
    pointer = _pointer(host, b)
    seen = np.ctypeslib.as_array((ctypes.c_double * 1000).from_address(pointer))
    if who == "external":
        host.api.buffer_increase_external_reference_count(buffer=b)
    elif who == "pointer":  # with no word about how long
        host.api.buffer_opaque_device_memory_data_pointer(buffer=b)
    elif who == "view":
        extra = [host.api.buffer_bitcast(buffer=b, element_type=C["F64"], dims=(1000,), num_dims=1).out_buffer]
    (y,) = host.run(negate, [b])
    host.await_buffer(y)
    assert host.is_deleted(b)
    assert _pointer(host, y) != pointer
    assert (host.get(y) == -LARGE).all()
    if who != "pointer":
        assert (seen == LARGE.reshape(-1)).all()
    if who == "external":
        host.api.buffer_decrease_external_reference_count(buffer=b)
    host.free(b, y, *extra)
    host.api.wait(done)


def test_threads_share_buffers(host: Host, negate: int) -> None:
    """Copies, references and donation of one buffer at once: each copy is whole, or the buffer is gone."""
    wrong: list[object] = []
    won: list[int] = []

    def use(b: int, begin: threading.Barrier, kind: int) -> None:
        begin.wait()
        for _ in range(20):
            try:
                if kind == 0:
                    if not (host.get(b) == LARGE).all():
                        wrong.append("contents")
                elif kind == 1:
                    host.api.buffer_increase_external_reference_count(buffer=b)
                    p = host.api.buffer_opaque_device_memory_data_pointer(buffer=b).device_memory_ptr
                    if (ctypes.c_double * 1000).from_address(p)[999] != 999:
                        wrong.append("view")
                    host.api.buffer_decrease_external_reference_count(buffer=b)
                elif kind == 2:
                    host.free(host.api.buffer_copy_to_device(buffer=b, dst_device=host.device).dst_buffer)
                else:
                    (y,) = host.run(negate, [b])
                    won.append(y)
            except PjrtError as error:
                if "deleted" not in str(error) and "donate" not in str(error):
                    wrong.append(error)

    for _ in range(10):
        b = host.put(LARGE)
        begin = threading.Barrier(5)
        threads = [threading.Thread(target=use, args=(b, begin, kind)) for kind in (0, 1, 2, 3, 3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong
        (y,) = won
        assert (host.get(y) == -LARGE).all()
        won.clear()
        host.free(b, y)


HUGE = """
func.func @main(%x: tensor<4xf32> {tf.aliasing_output = 0 : i32}, %y: tensor<f32>)
    -> (tensor<4xf32>, tensor<70368744177664xf32>) {
  %0 = stablehlo.negate %x : tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [] : (tensor<f32>) -> tensor<70368744177664xf32>
  return %0, %1 : tensor<4xf32>, tensor<70368744177664xf32>
}
"""


def test_a_call_without_memory_for_its_results_uses_nothing_up(host: Host) -> None:
    loaded = host.compile(HUGE)
    x, y = host.put(np.arange(4, dtype="f4")), host.put(np.array(1, "f4"))
    before = host.api.device_memory_stats(device=host.device).bytes_in_use
    with pytest.raises(PjrtError, match="no memory for the results") as failure:
        host.run(loaded, [x, y])
    assert failure.value.code == C["RESOURCE_EXHAUSTED"]
    assert not host.is_deleted(x)
    assert host.get(x).tolist() == [0, 1, 2, 3]
    assert host.api.device_memory_stats(device=host.device).bytes_in_use == before
    host.free(x, y)
    host.api.loaded_executable_destroy(executable=loaded)
