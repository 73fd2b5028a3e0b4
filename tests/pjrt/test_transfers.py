"""Buffers that exist before their contents: transfers in pieces, aliases, and what runs on such buffers meanwhile."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from pjrt_abi import abi
from pjrt_client import CODES, C, Host, PjrtError, a_host, build, tiled

X = np.arange(6, dtype="f4").reshape(2, 3)


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with a_host() as h:
        yield h


class Transfers:
    """A transfer manager over arrays like the given ones."""

    def __init__(self, host: Host, like: Sequence[np.ndarray], orders: Sequence[tuple[int, ...] | None] = ()) -> None:
        self.host = host
        specs = [build("shape_spec", dims=a.shape, num_dims=a.ndim, element_type=CODES[a.dtype]) for a in like]
        array = (abi().structs["shape_spec"] * max(len(specs), 1))(*specs)
        layouts = [tiled(o) if o else None for o in orders]
        addresses = (ctypes.c_void_p * max(len(layouts), 1))(*[ctypes.addressof(i) if i else None for i in layouts])
        self.handle = host.api.client_create_buffers_for_async_host_to_device(
            client=host.client, shape_specs=array, num_shape_specs=len(specs), memory=host.memory("device"),
            device_layouts=addresses if orders else None, num_device_layouts=len(orders),
        ).transfer_manager  # fmt: skip

    def send(self, array: np.ndarray, *, index: int = 0, offset: int = 0, last: bool = False, **fields: Any) -> None:
        given: dict[str, Any] = {
            "transfer_manager": self.handle, "buffer_index": index, "data": array, "offset": offset,
            "transfer_size": array.nbytes, "is_last_transfer": last,
        }  # fmt: skip
        self.host.api.wait(self.host.api.transfer_manager_transfer_data(**(given | fields)).done_with_h2d_transfer)

    def literal(self, array: np.ndarray, index: int = 0, order: tuple[int, ...] | None = None) -> None:
        self.host.api.wait(self.host.api.transfer_manager_transfer_literal(
            transfer_manager=self.handle, buffer_index=index, data=array, shape_dims=array.shape,
            shape_num_dims=array.ndim, shape_element_type=CODES[array.dtype],
            shape_layout=tiled(order) if order else None,
        ).done_with_h2d_transfer)  # fmt: skip

    def buffer(self, index: int = 0) -> int:
        retrieve = self.host.api.transfer_manager_retrieve_buffer
        return retrieve(transfer_manager=self.handle, buffer_index=index).buffer_out

    def nbytes(self, index: int = 0) -> int:
        asked = self.host.api.transfer_manager_buffer_size(transfer_manager=self.handle, buffer_index=index)
        return asked.buffer_size

    def close(self) -> None:
        self.host.api.transfer_manager_destroy(transfer_manager=self.handle)


def test_pieces_in_any_order(host: Host) -> None:
    t = Transfers(host, [X, np.zeros((), "i8"), np.zeros((0, 4), "u1")])
    assert host.api.transfer_manager_buffer_count(transfer_manager=t.handle).buffer_count == 3
    assert host.api.transfer_manager_device(transfer_manager=t.handle).device_out == host.device
    assert [t.nbytes(i) for i in range(3)] == [24, 8, 0]
    b = t.buffer()
    host.api.transfer_manager_add_metadata(transfer_manager=t.handle)
    flat = X.reshape(-1)
    t.send(flat[4:], offset=16)
    t.send(flat[:1])
    assert not host.is_ready(b)
    t.send(flat[1:4].copy(), offset=4, last=True)
    assert host.is_ready(b)
    assert (host.get(b) == X).all()
    t.send(np.zeros(0), index=2, data=None, last=True)
    t.send(np.array(7, "i8"), index=1, last=True)
    late, empty = t.buffer(1), t.buffer(2)  # retrieved when all is there
    t.close()
    assert host.get(late) == 7
    assert host.get(empty).shape == (0, 4)
    host.free(b, late, empty)


def test_bytes_are_in_the_order_of_the_layout(host: Host) -> None:
    t = Transfers(host, [X, X], [(0, 1), None])
    t.send(np.ascontiguousarray(X.T), last=True)
    t.send(X, index=1, last=True)
    b, c = t.buffer(), t.buffer(1)
    assert (host.get(b) == X).all()
    assert (host.get(c) == X).all()
    assert host.minor_to_major(b) == (0, 1)
    host.free(b, c)
    t.close()


@pytest.mark.parametrize("order", [None, (0, 1), (1, 0)])
@pytest.mark.parametrize("device_order", [(0, 1), (1, 0)])
def test_literals(host: Host, order: tuple[int, ...] | None, device_order: tuple[int, ...]) -> None:
    t = Transfers(host, [X], [device_order])
    t.literal(X if order != (0, 1) else np.ascontiguousarray(X.T).reshape(2, 3), order=order)
    b = t.buffer()
    assert (host.get(b) == X).all()
    assert host.minor_to_major(b) == device_order
    host.free(b)
    t.close()


def test_what_cannot_be_transferred(host: Host) -> None:
    t = Transfers(host, [X])
    for offset, size in ((0, 25), (20, 8), (-4, 4), (0, -1), (1 << 62, 1 << 62)):
        with pytest.raises(PjrtError, match="of a buffer of 24"):
            t.send(X, offset=offset, transfer_size=size)
    with pytest.raises(PjrtError, match="have no address"):
        t.send(X, data=None)
    with pytest.raises(PjrtError, match="element type and the sizes"):
        t.literal(X.T.copy())
    with pytest.raises(PjrtError, match="element type and the sizes"):
        t.literal(X.view("i4"))
    for index in (-1, 1):
        for call in (lambda i=index: t.send(X, index=i), lambda i=index: t.literal(X, i), lambda i=index: t.buffer(i)):
            with pytest.raises(PjrtError, match=f"no buffer {index} among 1"):
                call()
        with pytest.raises(PjrtError, match=f"no buffer {index} among 1"):
            t.nbytes(index)
    b = t.buffer()
    with pytest.raises(PjrtError, match="buffer 0 was retrieved before"):
        t.buffer()
    t.send(X, last=True)
    for call in (lambda: t.send(X), lambda: t.literal(X)):
        with pytest.raises(PjrtError, match="the transfer to buffer 0 is over"):
            call()
    t.close()
    host.free(b)


def test_shapes_of_transfers_are_checked(host: Host) -> None:
    with pytest.raises(PjrtError, match="each of 2 dimensions once"):
        Transfers(host, [X, X], [None, (1, 1)])
    with pytest.raises(PjrtError, match="1 layouts for 2 buffers"):
        Transfers(host, [X, X], [None])
    Transfers(host, []).close()


def test_errors_of_transfers(host: Host) -> None:
    t = Transfers(host, [X, X, X])
    broken, given_up, unseen = t.buffer(0), t.buffer(1), 2
    host.api.transfer_manager_set_buffer_error(
        transfer_manager=t.handle, error_code=C["UNAVAILABLE"], error_message=b"unplugged", error_message_size=9
    )
    with pytest.raises(PjrtError, match="is over"):
        t.send(X)
    with pytest.raises(PjrtError, match="unplugged") as caught:
        host.get(broken)
    assert caught.value.code == C["UNAVAILABLE"]
    t.send(X[:1], index=unseen)
    t.close()
    with pytest.raises(PjrtError, match="transfer to buffer 1 was given up") as caught:
        host.get(given_up)
    assert caught.value.code == C["CANCELLED"]
    host.free(broken, given_up)


def test_buffers_may_go_before_the_transfer_ends(host: Host) -> None:
    t = Transfers(host, [X, X])
    b, c = t.buffer(0), t.buffer(1)
    host.free(b)
    host.api.buffer_delete(buffer=c)
    t.send(X, last=True)
    t.send(X, index=1, last=True)
    host.free(c)
    t.close()


PROGRAM = """
module @m {
  func.func public @main(%x: tensor<2x3xf32>, %y: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.add %x, %y : tensor<2x3xf32>
    return %0, %y : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
"""


@pytest.mark.parametrize("failing", [False, True])
def test_programs_wait_for_their_arguments(host: Host, failing: bool) -> None:
    loaded = host.compile(PROGRAM)
    t = Transfers(host, [X])
    b, c = t.buffer(), host.put(X)
    results = []
    # Whether the call waits or comes back at once is the plugin's choice: the contents come from another thread.
    running = threading.Thread(target=lambda: results.extend(host.run(loaded, [b, c])))
    running.start()
    if failing:
        host.api.transfer_manager_set_buffer_error(
            transfer_manager=t.handle, error_code=C["DATA_LOSS"], error_message=b"lost", error_message_size=4
        )
    else:
        t.send(X, last=True)
    running.join()
    if failing:
        with pytest.raises(PjrtError, match="lost"):
            host.get(results[0])
    else:
        assert (host.get(results[0]) == 2 * X).all()
        assert (host.get(results[1]) == X).all()
    host.free(b, c, *results)
    t.close()
    host.api.loaded_executable_destroy(executable=loaded)


# Aliases.


def _alias(host: Host, order: tuple[int, ...] = (1, 0)) -> tuple[int, int]:
    made = host.api.client_create_alias_buffer(
        client=host.client, memory=host.memory("device"), shape_dims=(2, 3), shape_num_dims=2,
        shape_element_type=C["F32"], shape_layout=tiled(order),
    )  # fmt: skip
    return made.alias_buffer, made.fulfill_alias_buffer_cb


def _fulfill(host: Host, callback: int | None, buffer: int | None, **fields: Any) -> None:
    host.api.client_fulfill_alias_buffer(
        client=host.client, buffer=buffer, fulfill_alias_buffer_cb=callback, **fields)  # fmt: skip


def test_aliases_get_the_contents_of_a_buffer(host: Host) -> None:
    for order in ((1, 0), (0, 1)):
        alias, callback = _alias(host, order)
        assert not host.is_ready(alias)
        assert host.dims(alias) == (2, 3)
        b = host.put(X)
        _fulfill(host, callback, b)
        host.free(b)
        assert (host.get(alias) == X).all()
        assert host.minor_to_major(alias) == order
        host.free(alias)


def test_aliases_of_what_is_not_ready(host: Host) -> None:
    t = Transfers(host, [X])
    b = t.buffer()
    alias, callback = _alias(host)
    _fulfill(host, callback, b)
    host.api.buffer_delete(buffer=alias)
    another, callback = _alias(host)
    _fulfill(host, callback, b)
    assert not host.is_ready(another)
    t.send(X, last=True)
    assert (host.get(another) == X).all()
    host.free(alias, another, b)
    t.close()


def test_aliases_that_fail(host: Host) -> None:
    alias, callback = _alias(host)
    _fulfill(host, callback, None, status_code=C["ABORTED"], error_message=b"stopped", error_message_size=7)
    with pytest.raises(PjrtError, match="stopped"):
        host.get(alias)
    host.free(alias)

    b = host.put(X.T.copy())
    gone = host.put(X)
    host.api.buffer_delete(buffer=gone)
    for buffer, message in ((None, "needs a buffer"), (b, "the sizes of its buffer"), (gone, "deleted or donated")):
        alias, callback = _alias(host)
        with pytest.raises(PjrtError, match=message):
            _fulfill(host, callback, buffer)
        with pytest.raises(PjrtError, match=message):
            host.get(alias)
        host.free(alias)
    host.free(b, gone)
    with pytest.raises(PjrtError, match="no alias to fulfill"):
        _fulfill(host, None, b)


# What a host has no use for.


def test_memory_is_mapped_already(host: Host) -> None:
    host.api.client_dma_map(client=host.client, data=X, size=X.nbytes)
    host.api.client_dma_unmap(client=host.client, data=X)


@pytest.mark.parametrize("name", ["add_chunk", "total_bytes", "granule_size", "current_bytes"])
def test_there_are_no_copy_streams(host: Host, name: str) -> None:
    with pytest.raises(PjrtError, match="no copy streams") as caught:
        getattr(host.api, f"copy_stream_{name}")()
    assert caught.value.code == C["UNIMPLEMENTED"]
    host.api.copy_stream_destroy()
