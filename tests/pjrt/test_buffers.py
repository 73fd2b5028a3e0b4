"""Buffers: what they are, whose memory they stand on, and what is left of them when they are deleted or donated."""

from __future__ import annotations

import ctypes
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from pjrt_client import CALLBACK, C, Host, PjrtError, a_host, build, numbers, text, tiled

X = np.arange(6, dtype="f4").reshape(2, 3)
LARGE = np.arange(1000, dtype="f8").reshape(10, 100)  # large enough to be worth no copy


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with a_host() as h:
        yield h


@pytest.fixture
def pending(host: Host) -> Iterator[tuple[int, Callable[..., None]]]:
    """A buffer (2x3 f32) that is not ready, and what makes it so: `finish()` with X, `finish(code, message)`."""
    spec = build("shape_spec", dims=(2, 3), num_dims=2, element_type=C["F32"])
    made = host.api.client_create_buffers_for_async_host_to_device(
        client=host.client, shape_specs=spec, num_shape_specs=1, memory=host.memory("device")
    )
    manager = made.transfer_manager

    def finish(code: int = 0, message: str = "") -> None:
        if code:
            host.api.transfer_manager_set_buffer_error(
                transfer_manager=manager, error_code=code, error_message=message.encode(),
                error_message_size=len(message),
            )  # fmt: skip
        else:
            host.api.transfer_manager_transfer_data(
                transfer_manager=manager, data=X, transfer_size=X.nbytes, is_last_transfer=True
            )

    buffer = host.api.transfer_manager_retrieve_buffer(transfer_manager=manager).buffer_out
    yield buffer, finish
    host.free(buffer)
    host.api.transfer_manager_destroy(transfer_manager=manager)


def _pointer(host: Host, buffer: int) -> int:
    return host.api.buffer_unsafe_pointer(buffer=buffer).buffer_pointer


def _over(event: int | None, host: Host) -> bool:
    return host.api.event_is_ready(event=event).is_ready


# What they are.


def test_getters_answer_also_for_deleted_buffers(host: Host) -> None:
    b = host.put(X)
    for deleted in (False, True):
        assert host.is_deleted(b) is deleted
        assert host.dims(b) == (2, 3)
        unpadded = host.api.buffer_unpadded_dimensions(buffer=b)
        assert numbers(unpadded.unpadded_dims, unpadded.num_dims) == (2, 3)
        assert host.api.buffer_dynamic_dimension_indices(buffer=b).num_dynamic_dims == 0
        assert host.api.buffer_element_type(buffer=b).type == C["F32"]
        layout = host.api.buffer_get_memory_layout(buffer=b).layout
        assert (layout.type, layout.tiled.num_tiles) == (C["TILED"], 0)
        assert layout.struct_size == ctypes.sizeof(layout)
        assert host.minor_to_major(b) == (1, 0)
        assert host.api.buffer_on_device_size_in_bytes(buffer=b).on_device_size_in_bytes == 24
        assert host.api.buffer_device(buffer=b).device == host.device
        assert host.api.buffer_memory(buffer=b).memory == host.memory("device")
        assert host.api.buffer_is_on_cpu(buffer=b).is_on_cpu is True
        assert host.is_ready(b)
        host.api.buffer_delete(buffer=b)
    host.api.buffer_delete(buffer=b)  # once more is nothing
    host.free(b)


def test_contents_of_deleted_buffers_are_gone(host: Host) -> None:
    b = host.put(X)
    host.api.buffer_delete(buffer=b)
    out = ctypes.create_string_buffer(24)
    calls: dict[str, dict[str, Any]] = {
        "buffer_to_host_buffer": {"src": b, "dst": out, "dst_size": 24},
        "buffer_copy_raw_to_host": {"buffer": b, "dst": out, "transfer_size": 24},
        "buffer_copy_raw_to_host_future": {"buffer": b, "transfer_size": 24},
        "buffer_copy_to_device": {"buffer": b, "dst_device": host.device},
        "buffer_copy_to_memory": {"buffer": b, "dst_memory": host.memory("pinned_host")},
        "buffer_unsafe_pointer": {"buffer": b},
        "buffer_opaque_device_memory_data_pointer": {"buffer": b},
        "buffer_increase_external_reference_count": {"buffer": b},
        "buffer_donate_with_control_dependency": {"buffer": b},
        "buffer_bitcast": {"buffer": b, "element_type": C["S32"], "dims": (6,), "num_dims": 1},
    }
    for name, fields in calls.items():
        with pytest.raises(PjrtError, match="Buffer has been deleted or donated") as caught:
            getattr(host.api, name)(**fields)
        assert caught.value.code == C["FAILED_PRECONDITION"]
    assert host.api.buffer_to_host_buffer(src=b).dst_size == 24  # the size is known all the same
    host.free(b)


def test_memories(host: Host) -> None:
    for kind in ("device", "pinned_host", "unpinned_host"):
        memory = host.memory(kind)
        b = host.put(X, memory=memory)
        assert host.api.buffer_memory(buffer=b).memory == memory
        moved = host.api.buffer_copy_to_memory(buffer=b, dst_memory=host.memory("device")).dst_buffer
        copied = host.api.buffer_copy_to_device(buffer=b, dst_device=host.device).dst_buffer
        assert host.api.buffer_memory(buffer=moved).memory == host.memory("device")
        assert host.api.buffer_memory(buffer=copied).memory == host.memory("device")
        assert len({_pointer(host, i) for i in (b, moved, copied)}) == 3
        host.free(b)
        assert (host.get(moved) == X).all()
        assert (host.get(copied) == X).all()
        host.free(moved, copied)


def test_copies_keep_the_layout(host: Host) -> None:
    b = host.put(X, device_layout=tiled((0, 1)))
    c = host.api.buffer_copy_to_device(buffer=b, dst_device=host.device).dst_buffer
    assert host.minor_to_major(c) == (0, 1)
    assert host.raw(c) == X.T.tobytes()
    host.free(b, c)


# Memory of the host.


@pytest.mark.parametrize("semantics", ["DURING_CALL", "UNTIL_TRANSFERRED"])
def test_copies_are_made_during_the_call(host: Host, semantics: str) -> None:
    a = LARGE.copy()
    args = host.begin_put(a, semantics)
    assert _over(args.done_with_host_buffer, host)
    host.api.wait(args.done_with_host_buffer)
    a[:] = -1
    assert (host.get(args.buffer) == LARGE).all()
    host.free(args.buffer)


@pytest.mark.parametrize("semantics", ["ZERO_COPY", "MUTABLE_ZERO_COPY"])
def test_zero_copy_uses_the_memory_until_the_last_holder_is_gone(host: Host, semantics: str) -> None:
    a = LARGE.copy()
    args = host.begin_put(a, semantics)
    b, done = args.buffer, args.done_with_host_buffer
    assert _pointer(host, b) == a.ctypes.data
    assert not _over(done, host)
    view = host.api.buffer_bitcast(buffer=b, element_type=C["S64"], dims=(1000,), num_dims=1).out_buffer
    host.free(b)
    assert not _over(done, host)
    assert (host.get(view) == a.view("i8").reshape(-1)).all()
    host.api.buffer_delete(buffer=view)
    assert _over(done, host)
    host.api.wait(done)
    host.free(view)


def test_zero_copy_where_it_cannot_be(host: Host) -> None:
    """Other strides than the buffer's, an address that is not aligned for an element, and few bytes: a copy."""
    shifted = np.frombuffer(bytearray(LARGE.nbytes + 4), np.uint8)[4:].view("f8")
    if shifted.ctypes.data % 8 == 0:
        shifted = np.frombuffer(bytearray(LARGE.nbytes + 8), np.uint8)[1:-7].view("f8")
    for array, fields in ((LARGE.T, {}), (shifted, {}), (X, {}), (LARGE, {"device_layout": tiled((0, 1))})):
        args = host.begin_put(array, "ZERO_COPY", **fields)
        assert _pointer(host, args.buffer) != array.ctypes.data
        assert _over(args.done_with_host_buffer, host)
        assert (host.get(args.buffer) == array).all()
        host.free(args.buffer)


def test_zero_copy_in_the_order_of_the_layout(host: Host) -> None:
    args = host.begin_put(LARGE.T, "ZERO_COPY", device_layout=tiled((0, 1)))
    assert _pointer(host, args.buffer) == LARGE.ctypes.data
    assert (host.get(args.buffer) == LARGE.T).all()
    host.free(args.buffer)
    host.api.wait(args.done_with_host_buffer)


def test_done_events_tell_python(host: Host) -> None:
    """The way in which hosts give memory back: a callback on the event, which drops the array."""
    a = LARGE.copy()
    gone = weakref.ref(a)
    kept = [a]
    released = CALLBACK(lambda error, _: kept.clear())
    args = host.begin_put(a, "ZERO_COPY")
    host.api.event_on_ready(event=args.done_with_host_buffer, callback=released)
    host.api.event_destroy(event=args.done_with_host_buffer)
    del a
    gc.collect()
    assert gone() is not None
    host.free(args.buffer)
    assert not kept
    gc.collect()
    assert gone() is None


# Views of others' memory.


def test_views_give_the_memory_back(host: Host) -> None:
    a = LARGE.copy()
    back: list[tuple[int, int]] = []
    on_delete = CALLBACK(lambda data, argument: back.append((data, argument)))
    view = host.api.client_create_view_of_device_buffer(
        client=host.client, device_buffer_ptr=a.ctypes.data, dims=(100, 10), num_dims=2, element_type=C["F64"],
        layout=tiled((0, 1)), device=host.device, on_delete_callback=on_delete, on_delete_callback_arg=77,
    ).buffer  # fmt: skip
    assert _pointer(host, view) == a.ctypes.data
    assert (host.get(view) == a.T).all()
    a[0, 1] = 5.5
    assert host.get(view)[1, 0] == 5.5
    assert not back
    host.free(view)
    assert back == [(a.ctypes.data, 77)]


def test_views_that_cannot_be(host: Host) -> None:
    def view(**fields: Any) -> int:
        given: dict[str, Any] = {"client": host.client, "dims": (3,), "num_dims": 1, "element_type": C["F32"],
                                 "device": host.device}  # fmt: skip
        return host.api.client_create_view_of_device_buffer(**(given | fields)).buffer

    with pytest.raises(PjrtError, match="has no address"):
        view()
    with pytest.raises(PjrtError, match="not aligned for elements of f32"):
        view(device_buffer_ptr=LARGE.ctypes.data + 2)
    complexes = view(device_buffer_ptr=LARGE.ctypes.data + 8, element_type=C["C128"])  # aligned for their parts
    empty = view(dims=(0,))
    assert host.get(empty).size == 0
    host.free(complexes, empty)


def test_older_callers_have_shorter_structs(host: Host) -> None:
    """Fields that the caller does not know are not read."""
    a = LARGE.copy()
    args = build("client_create_view_of_device_buffer_args", client=host.client, device_buffer_ptr=a.ctypes.data,
                 dims=(1000,), num_dims=1, element_type=C["F64"], device=host.device, memory=1)  # fmt: skip
    args.struct_size = type(args).memory.offset
    assert not host.api.function("client_create_view_of_device_buffer")(ctypes.addressof(args))
    assert host.api.buffer_memory(buffer=args.buffer).memory == host.memory("device")
    host.free(args.buffer)


def test_bitcasts(host: Host) -> None:
    b = host.put(X)
    c = host.api.buffer_bitcast(buffer=b, element_type=C["U16"], dims=(3, 4), num_dims=2,
                                device_layout=tiled((0, 1))).out_buffer  # fmt: skip
    assert _pointer(host, b) == _pointer(host, c)
    assert (host.get(c) == X.view("u2").reshape(4, 3).T).all()
    assert not host.is_deleted(b)
    with pytest.raises(PjrtError, match="24 bytes cannot be seen as one of 40"):
        host.api.buffer_bitcast(buffer=b, element_type=C["F64"], dims=(5,), num_dims=1)
    with pytest.raises(PjrtError, match="no element type 88"):
        host.api.buffer_bitcast(buffer=b, element_type=88, dims=(5,), num_dims=1)
    host.free(b, c)


# Contents that come later, or never.


def test_copies_wait_for_the_contents(host: Host, pending: tuple[int, Callable[..., None]]) -> None:
    b, finish = pending
    assert not host.is_ready(b)
    out, turned, raw = np.zeros((2, 3), "f4"), np.zeros((3, 2), "f4"), np.zeros(2, "f4")
    events = [
        host.api.buffer_to_host_buffer(src=b, dst=out, dst_size=24).event,
        host.api.buffer_to_host_buffer(src=b, dst=turned, dst_size=24, host_layout=tiled((0, 1))).event,
        host.api.buffer_copy_raw_to_host(buffer=b, dst=raw, offset=8, transfer_size=8).event,
    ]
    copy = host.api.buffer_copy_to_device(buffer=b, dst_device=host.device).dst_buffer
    view = host.api.buffer_bitcast(buffer=b, element_type=C["F32"], dims=(6,), num_dims=1).out_buffer
    assert not any(_over(e, host) for e in events)
    assert not host.is_ready(copy)
    assert not host.is_ready(view)
    host.api.buffer_delete(buffer=b)  # whoever copies holds the memory
    finish()
    for e in events:
        host.api.wait(e)
    assert (out == X).all()
    assert (turned == X.T).all()
    assert raw.tolist() == [2, 3]
    assert (host.get(copy) == X).all()
    assert (host.get(view) == X.reshape(-1)).all()
    host.free(copy, view)


def test_errors_reach_everything_that_waits(host: Host, pending: tuple[int, Callable[..., None]]) -> None:
    b, finish = pending
    out = np.zeros((2, 3), "f4")
    event = host.api.buffer_to_host_buffer(src=b, dst=out, dst_size=24).event
    copy = host.api.buffer_copy_to_device(buffer=b, dst_device=host.device).dst_buffer
    finish(C["DATA_LOSS"], "the wire broke")
    for wait in (lambda: host.api.wait(event), lambda: host.await_buffer(copy), lambda: host.await_buffer(b),
                 lambda: host.get(b), lambda: host.raw(copy)):  # fmt: skip
        with pytest.raises(PjrtError, match="the wire broke") as caught:
            wait()
        assert caught.value.code == C["DATA_LOSS"]
    assert (out == 0).all()
    host.free(copy)


def test_error_buffers(host: Host) -> None:
    given: dict[str, Any] = {
        "client": host.client, "error_message": b"never computed", "error_message_size": 14, "shape_dims": (1 << 40,),
        "shape_num_dims": 1, "shape_element_type": C["F32"], "memory": host.memory("device"),
    }  # fmt: skip
    b = host.api.client_create_error_buffer(error_code=C["ABORTED"], **given).buffer
    assert host.dims(b) == (1 << 40,)
    assert not host.is_deleted(b)
    with pytest.raises(PjrtError, match="never computed") as caught:
        host.await_buffer(b)
    assert caught.value.code == C["ABORTED"]
    with pytest.raises(PjrtError, match="never computed"):
        host.api.wait(host.api.buffer_copy_raw_to_host(buffer=b, dst=X.copy(), transfer_size=4).event)
    c = host.api.buffer_copy_to_device(buffer=b, dst_device=host.device).dst_buffer  # without terabytes for it
    for call in (lambda: host.await_buffer(c), lambda: _pointer(host, c),
                 lambda: host.api.buffer_opaque_device_memory_data_pointer(buffer=b)):  # fmt: skip
        with pytest.raises(PjrtError, match="never computed"):
            call()
    host.free(b, c)
    with pytest.raises(PjrtError, match="needs an error code"):
        host.api.client_create_error_buffer(error_code=0, **given)


def test_uninitialized_buffers(host: Host) -> None:
    b = host.api.client_create_uninitialized_buffer(
        client=host.client, shape_dims=(3, 5), shape_num_dims=2, shape_element_type=C["S16"],
        shape_layout=tiled((0, 1)), device=host.device,
    ).buffer  # fmt: skip
    assert host.is_ready(b)
    assert (host.dims(b), host.minor_to_major(b), len(host.raw(b))) == ((3, 5), (0, 1), 30)
    host.free(b)


# Promises.


def _callback_args(name: str, **fields: Any) -> Any:
    return build(f"{name}_callback_args", **fields)


@pytest.mark.parametrize("failing", [False, True])
def test_donation_with_a_dependency(host: Host, failing: bool) -> None:
    b = host.put(X)
    pointer = _pointer(host, b)
    given = host.api.buffer_donate_with_control_dependency(buffer=b)
    c = given.out_buffer
    assert host.is_deleted(b)
    assert not host.is_deleted(c)
    assert _pointer(host, c) == pointer
    assert not host.is_ready(c)
    said = {"error_code": C["ABORTED"], "error_message": b"no", "error_message_size": 2} if failing else {}
    args = _callback_args("buffer_donate_with_control_dependency", callback_data=given.callback_data, **said)
    CALLBACK(given.dependency_ready_callback)(ctypes.addressof(args), None)
    if failing:
        with pytest.raises(PjrtError, match="no"):
            host.get(c)
    else:
        assert (host.get(c) == X).all()
    host.free(b, c)


def test_donation_with_a_dependency_waits_for_contents(host: Host, pending: tuple[int, Callable[..., None]]) -> None:
    b, finish = pending
    given = host.api.buffer_donate_with_control_dependency(buffer=b)
    args = _callback_args("buffer_donate_with_control_dependency", callback_data=given.callback_data)
    CALLBACK(given.dependency_ready_callback)(ctypes.addressof(args), None)
    assert not host.is_ready(given.out_buffer)
    finish()
    assert (host.get(given.out_buffer) == X).all()
    host.free(given.out_buffer)


def test_raw_copies(host: Host) -> None:
    b = host.put(X)
    out = np.zeros(3, "f4")
    host.api.wait(host.api.buffer_copy_raw_to_host(buffer=b, dst=out, offset=12, transfer_size=12).event)
    assert out.tolist() == [3, 4, 5]
    for offset, size in ((-4, 4), (0, 25), (24, 1), (0, -1), (1 << 62, 1 << 62)):
        for name in ("buffer_copy_raw_to_host", "buffer_copy_raw_to_host_future"):
            fields = {"dst": out} if name == "buffer_copy_raw_to_host" else {}
            with pytest.raises(PjrtError, match="in a buffer of 24"):
                getattr(host.api, name)(buffer=b, offset=offset, transfer_size=size, **fields)
    with pytest.raises(PjrtError, match="has no address"):
        host.api.buffer_copy_raw_to_host(buffer=b, transfer_size=4)
    host.api.wait(host.api.buffer_copy_raw_to_host(buffer=b, offset=24).event)  # nothing, from the end
    host.free(b)


@pytest.mark.parametrize("way", ["ready", "error", "later"])
def test_raw_copies_to_a_place_told_later(host: Host, pending: tuple[int, Callable[..., None]], way: str) -> None:
    waiting, finish = pending
    b = waiting if way == "later" else host.put(X)
    given = host.api.buffer_copy_raw_to_host_future(buffer=b, offset=4, transfer_size=8)
    host.api.buffer_delete(buffer=b)
    assert not _over(given.event, host)
    out = np.zeros(2, "f4")
    said = {"error_code": C["ABORTED"], "error_message": b"no place", "error_message_size": 8} if way == "error" else {}
    args = _callback_args("buffer_copy_raw_to_host_future", callback_data=given.callback_data, dst=out, **said)
    CALLBACK(given.future_ready_callback)(ctypes.addressof(args), None)
    if way == "later":
        assert not _over(given.event, host)
        finish()
    if way == "error":
        with pytest.raises(PjrtError, match="no place"):
            host.api.wait(given.event)
    else:
        host.api.wait(given.event)
        assert out.tolist() == [1, 2]
    if b != waiting:
        host.free(b)


# Counts, and messages.


def _stats(host: Host) -> Any:
    return host.api.device_memory_stats(device=host.device)


def test_memory_is_counted() -> None:
    with a_host() as host:
        before = _stats(host)
        b, c = host.put(LARGE), host.put(X)
        lent = host.begin_put(LARGE, "ZERO_COPY")  # not ours
        now = _stats(host)
        assert now.bytes_in_use - before.bytes_in_use == LARGE.nbytes + X.nbytes
        assert now.num_allocs - before.num_allocs == 2
        assert now.largest_alloc_size == LARGE.nbytes
        host.api.buffer_delete(buffer=b)
        host.free(b, c, lent.buffer)
        host.api.wait(lent.done_with_host_buffer)
        after = _stats(host)
        assert after.bytes_in_use == before.bytes_in_use
        assert after.peak_bytes_in_use >= LARGE.nbytes + X.nbytes


def test_errors_have_messages_that_are_not_terminated(host: Host) -> None:
    b = host.put(X)
    host.api.buffer_delete(buffer=b)
    args = build("buffer_unsafe_pointer_args", buffer=b)
    error = host.api.function("buffer_unsafe_pointer")(ctypes.addressof(args))
    assert error
    said = host.api.error_message(error=error)
    assert text(said.message, said.message_size) == "Buffer has been deleted or donated"
    host.api.error_destroy(error=error)
    host.free(b)
