"""Shapes and layouts of buffers, and copies between any two orders of elements in memory."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from pjrt_client import CODES, DTYPES, C, Host, PjrtError, a_host, strided, tiled


@pytest.fixture(scope="module")
def host() -> Iterator[Host]:
    with a_host() as h:
        yield h


def _random(dtype: Any, shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Bytes of all kinds (in types narrower than a byte: values that there are)."""
    dtype = np.dtype(dtype)
    raw = np.random.default_rng(seed).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    if dtype == np.bool_:
        raw &= 1
    elif dtype.name in ("int4", "uint4", "float4_e2m1fn"):
        raw &= 15
    elif dtype.name in ("int2", "uint2"):
        raw &= 3
    elif dtype.name.startswith("float6"):
        raw &= 63
    return np.ndarray(shape, dtype, raw.tobytes())


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("shape", [(), (1,), (2, 3), (0,), (3, 0, 2)])
@pytest.mark.parametrize("code", sorted(DTYPES), ids=lambda c: DTYPES[c].name)
def test_every_type_and_small_shape_comes_back(host: Host, code: int, shape: tuple[int, ...]) -> None:
    a = _random(DTYPES[code], shape)
    b = host.put(a)
    assert host.api.buffer_element_type(buffer=b).type == code
    assert host.dims(b) == shape
    assert host.minor_to_major(b) == tuple(range(len(shape)))[::-1]
    assert host.api.buffer_on_device_size_in_bytes(buffer=b).on_device_size_in_bytes == a.nbytes
    assert _same(host.get(b), a)
    assert host.raw(b) == a.tobytes()
    host.free(b)


@pytest.mark.parametrize("name", ["S1", "U1"])
def test_single_bits_take_a_byte(host: Host, name: str) -> None:
    b = host.put(np.arange(3, dtype=np.uint8) & 1, type=C[name])
    assert host.raw(b) == b"\0\1\0"
    host.free(b)


def test_tokens_have_no_bytes(host: Host) -> None:
    b = host.put(np.zeros((), np.uint8), type=C["TOKEN"], data=None)
    assert host.api.buffer_on_device_size_in_bytes(buffer=b).on_device_size_in_bytes == 0
    assert host.raw(b) == b""
    host.free(b)


@pytest.mark.parametrize("rank", [64, 65])
def test_ranks_have_a_bound(host: Host, rank: int) -> None:
    a = np.array([3], "f4")
    given = {"dims": (1,) * rank, "num_dims": rank, "byte_strides": None, "num_byte_strides": 0}
    if rank == 65:
        with pytest.raises(PjrtError, match="a rank of 65: at most 64"):
            host.put(a, **given)
        return
    b = host.put(a, **given)
    assert host.dims(b) == (1,) * 64
    assert host.raw(b) == a.tobytes()
    host.free(b)


VIEWS = {
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, :, ::-1],
    "stepped": lambda a: a[:, ::2, 1::2],
    "stepped back": lambda a: a[::-2, ::-1],
    "one row": lambda a: a[2:3],
    "turned": lambda a: a.transpose(1, 2, 0),
    "turned and stepped": lambda a: a.transpose(2, 0, 1)[::2, ::-1],
    "repeated": lambda a: np.broadcast_to(a[:, :1], a.shape),
    "one element": lambda a: np.broadcast_to(a[0, 0, 0], (3, 4)),
    "nothing": lambda a: a[:, 3:3].transpose(2, 1, 0),
    "inner part": lambda a: a[1:4, 1:, :3],
}


@pytest.mark.parametrize("dtype", ["i1", "i2", "f4", "f8", "c16"])
@pytest.mark.parametrize("view", VIEWS)
def test_arrays_of_the_host_may_have_any_strides(host: Host, view: str, dtype: str) -> None:
    a = VIEWS[view](_random(dtype, (5, 6, 7)))
    for semantics in ("DURING_CALL", "UNTIL_TRANSFERRED", "ZERO_COPY", "MUTABLE_ZERO_COPY"):
        put = host.begin_put(a, semantics)
        assert _same(host.get(put.buffer), np.ascontiguousarray(a))
        host.free(put.buffer)
        host.api.wait(put.done_with_host_buffer)


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_device_layouts(host: Host, order: tuple[int, ...], size: int) -> None:
    """Larger than the blocks of the transposes, and no multiple of them."""
    dtype = {1: "u1", 2: "f2", 4: "i4", 8: "f8", 16: "c16"}[size]
    a = _random(dtype, (67, 3, 41))
    b = host.put(a, device_layout=tiled(order))
    assert host.minor_to_major(b) == order
    assert host.raw(b) == a.transpose(order[::-1]).tobytes()
    assert _same(host.get(b), a)
    host.free(b)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))), ids=str)
def test_host_layouts(host: Host, order: tuple[int, ...]) -> None:
    """To the host in any order, from a buffer in any order; and with room between the rows."""
    a = _random("f4", (4, 5, 6))
    for device_order in itertools.permutations(range(3)):
        b = host.put(a, device_layout=tiled(device_order))
        out = np.empty(a.size, "f4")
        asked = host.api.buffer_to_host_buffer(src=b, host_layout=tiled(order))
        assert (asked.dst_size, asked.event) == (a.nbytes, None)
        host.api.wait(host.api.buffer_to_host_buffer(
            src=b, host_layout=tiled(order), dst=out.ctypes.data, dst_size=out.nbytes).event)  # fmt: skip
        assert out.tobytes() == a.transpose(order[::-1]).tobytes()

        room = np.zeros((8, 10, 12), "f4")
        part = room[::2, ::2, ::2].transpose(order)
        shaped = a.reshape(-1)[: part.size].reshape(part.shape)
        c = host.put(np.ascontiguousarray(shaped))
        needed = host.api.buffer_to_host_buffer(src=c, host_layout=strided(part.strides)).dst_size
        assert needed == sum((n - 1) * s for n, s in zip(part.shape, part.strides, strict=True)) + 4
        host.api.wait(host.api.buffer_to_host_buffer(
            src=c, host_layout=strided(part.strides), dst=room.ctypes.data, dst_size=needed).event)  # fmt: skip
        assert (part.view("u4") == shaped.view("u4")).all()
        assert (room[1::2] == 0).all()
        host.free(b, c)


def test_dense_strides_are_a_layout(host: Host) -> None:
    a = _random("i2", (3, 1, 4))
    b = host.put(a, device_layout=strided((2, 999, 6)))
    assert host.raw(b) == a.transpose(2, 1, 0).tobytes()
    c = host.put(a, device_layout=strided((8, -5, 2)))
    assert host.minor_to_major(c) == (2, 1, 0)
    empty = host.put(a[:0], device_layout=strided((7, 7, 7)))
    assert host.minor_to_major(empty) == (2, 1, 0)
    host.free(b, c, empty)


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "type": ({"type": 99}, "no element type 99"),
    "no type": ({"type": 0}, "no element type 0"),
    "size": ({"dims": (2, -3)}, "dimension 1 has the size -3"),
    "bytes": ({"dims": (1 << 40, 1 << 40)}, "more bytes than can be counted"),
    "bytes of elements": ({"dims": (1 << 31, 1 << 30)}, "more bytes than can be counted"),
    "strides": ({"num_byte_strides": 1}, "1 strides for an array of rank 2"),
    "semantics": ({"host_buffer_semantics": 4}, "no host buffer semantics 4"),
    "address": ({"data": None}, "has no address"),
    "order": ({"device_layout": tiled((0, 0))}, "each of 2 dimensions once"),
    "order beyond": ({"device_layout": tiled((0, 2))}, "each of 2 dimensions once"),
    "order before": ({"device_layout": tiled((0, -1))}, "each of 2 dimensions once"),
    "rank of the order": ({"device_layout": tiled((0,))}, "1 dimensions for an array of rank 2"),
    "rank of strides": ({"device_layout": strided((4, 4, 4))}, "3 dimensions for an array of rank 2"),
    "gaps": ({"device_layout": strided((32, 4))}, "not those of a dense array"),
    "negative strides": ({"device_layout": strided((-12, 4))}, "not those of a dense array"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_an_error(host: Host, case: str) -> None:
    fields, message = BAD[case]
    with pytest.raises(PjrtError, match=message) as caught:
        host.put(np.zeros((2, 3), "f8"), **fields)
    assert caught.value.code in (C["INVALID_ARGUMENT"], C["UNIMPLEMENTED"])


def test_layouts_of_other_kinds_are_errors(host: Host) -> None:
    odd = tiled((1, 0))
    odd.type = 7
    with pytest.raises(PjrtError, match="no memory layout of type 7"):
        host.put(np.zeros((2, 3)), device_layout=odd)
    tiles = tiled((1, 0))
    tiles.tiled.num_tiles = 1
    with pytest.raises(PjrtError, match="layouts with tiles are not supported"):
        host.put(np.zeros((2, 3)), device_layout=tiles)


def test_sizes_of_an_empty_array_need_not_fit(host: Host) -> None:
    """As in numpy and XLA: a size of 0 makes it empty, however large the others are."""
    b = host.put(np.zeros((0,), "f8"), dims=(1 << 40, 0, 1 << 40), num_dims=3, num_byte_strides=0)
    assert host.api.buffer_on_device_size_in_bytes(buffer=b).on_device_size_in_bytes == 0
    assert host.dims(b) == (1 << 40, 0, 1 << 40)
    for place in (ctypes.create_string_buffer(1), None):  # nothing needs no address
        copied = host.api.buffer_to_host_buffer(src=b, dst=place, dst_size=0)
        assert copied.dst_size == 0
        assert copied.event
        host.api.wait(copied.event)
    host.free(b)


def test_what_is_too_large_is_refused_by_its_size(host: Host) -> None:
    with pytest.raises(PjrtError, match=f"no memory for a buffer of {1 << 62} bytes") as caught:
        host.api.client_create_uninitialized_buffer(
            client=host.client, shape_dims=(1 << 60,), shape_num_dims=1, shape_element_type=C["F32"]
        )
    assert caught.value.code == C["RESOURCE_EXHAUSTED"]


def test_bad_places_on_the_host(host: Host) -> None:
    b = host.put(np.zeros((2, 3), "f4"))
    out = ctypes.create_string_buffer(64)
    for layout, size, message in (
        (None, 23, "23 bytes on the host for an array of 24"),
        (strided((32, 4)), 43, "43 bytes on the host for an array of 44"),
        (strided((-12, 4)), 64, "must not be negative"),
        (strided((4,)), 64, "1 strides for an array of rank 2"),
        (strided((1 << 62, 1 << 62)), 64, "farther than can be counted"),
        (tiled((1,)), 64, "1 dimensions for an array of rank 2"),
    ):
        with pytest.raises(PjrtError, match=message):
            host.api.buffer_to_host_buffer(src=b, host_layout=layout, dst=out, dst_size=size)
    host.free(b)


def test_random_layouts(host: Host) -> None:
    """Any rank up to 6, any order on either side, with dimensions of one element and none."""
    rng = np.random.default_rng(3)
    for seed in range(150):
        rank = int(rng.integers(0, 7))
        sizes = rng.choice([0, 1, 2, 3, 5], rank, p=[0.04, 0.24, 0.24, 0.24, 0.24])
        steps = tuple(slice(None, None, int(s)) for s in rng.choice([1, -1, 2], rank))
        a = _random(rng.choice(["u1", "f4", "c16"]), tuple(sizes), seed)
        view = a.transpose(rng.permutation(rank))[(*steps, ...)]
        order, out_order = tuple(map(int, rng.permutation(rank))), tuple(map(int, rng.permutation(rank)))
        b = host.put(view, device_layout=tiled(order))
        assert host.raw(b) == view.transpose(order[::-1]).tobytes()
        out = np.empty(view.size, view.dtype)
        host.api.wait(host.api.buffer_to_host_buffer(
            src=b, host_layout=tiled(out_order), dst=out.ctypes.data or 1, dst_size=out.nbytes).event)  # fmt: skip
        assert out.tobytes() == view.transpose(out_order[::-1]).tobytes()
        host.free(b)


def test_every_numpy_type_has_a_number() -> None:
    assert len(CODES) == len(DTYPES) == 30
