"""Compile options as clients give them: serialized protocol buffers."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from hilo.errors import Error, Unsupported
from hilo.formats.protobuf import put, put_bytes, put_numbers, varint
from hilo.options import Options
from hilo.pjrt import request


def shape(*order: int, tiles: bool = False) -> bytes:
    layout = put_numbers(1, order) + (put_bytes(6, put_numbers(1, (8, 128))) if tiles else b"")
    return put(2, 11) + put_numbers(3, (2, 3)) + put_bytes(5, layout)


def build(*fields: bytes) -> bytes:
    return put_bytes(3, b"".join(fields))


def override(name: str, value: bytes) -> bytes:
    return put_bytes(7, put_bytes(1, name) + put_bytes(2, value))


def flag(on: bool) -> bytes:
    return varint(2 << 3) + varint(on)  # a choice is written even when it is 0


def test_nothing_asked_for_is_one_device() -> None:
    r = request.read(b"")
    assert (r.replicas, r.partitions, r.devices, r.argument_layouts, r.overrides) == (1, 1, (0,), (), {})


def test_devices() -> None:
    assignment = put_bytes(9, put(1, 1) + put(2, 1) + put_bytes(3, put_numbers(1, (5,))))
    assert request.read(build(put(4, 1), put(5, 1), assignment)).devices == (5,)
    assert request.read(build(put(1, 3))).devices == (3,)
    assert request.read(build(put(1, -1))).devices == (0,)


@pytest.mark.parametrize("fields", [(put(4, 2),), (put(5, 8),), (put(4, 2), put(5, 2))])
def test_several_devices_come_later(fields: tuple[bytes, ...]) -> None:
    with pytest.raises(Unsupported, match="one device, several come in a later version"):
        request.read(build(*fields))


def test_layouts() -> None:
    r = request.read(put_bytes(1, shape(0, 1)) + put_bytes(1, put(2, 11)) + build(put_bytes(2, shape(1, 0))))
    assert r.argument_layouts == ((0, 1), None)
    assert r.result_layouts == ((1, 0),)
    both = put(2, 13) + put_bytes(4, shape(0, 1)) + put_bytes(4, shape(1, 0))
    assert request.read(build(put_bytes(2, both))).result_layouts == ((0, 1), (1, 0))
    with pytest.raises(Unsupported, match="tiles"):
        request.read(put_bytes(1, shape(1, 0, tiles=True)))


def test_overrides_of_every_kind() -> None:
    data = (override("s", put_bytes(1, "text")) + override("b", flag(False)) + override("i", put(3, -7))
            + override("d", varint(4 << 3 | 1) + b"\0\0\0\0\0\0\x04\x40") + override("none", b""))  # fmt: skip
    assert request.read(data).overrides == {"s": "text", "b": False, "i": -7, "d": 2.5, "none": ""}


def own(*pairs: tuple[str, bytes]) -> Options:
    return request.own_options(request.read(b"".join(override(n, v) for n, v in pairs)), Options())


def test_options_of_ours_and_of_xla() -> None:
    assert own() == Options()
    assert own(("hilo_fast_math", put_bytes(1, "reciprocal"))).fast_math == {"reciprocal"}
    assert own(("hilo_opt", varint(3 << 3) + b"\0")).opt == 0
    assert own(("hilo_fuse", flag(False))).fuse is False
    xla = ("xla_embed_ir_in_executable", flag(True)), ("xla_dump_to", put_bytes(1, "/x")), ("xla_llvm_x", put(3, 4))
    assert own(*xla) == Options()


def test_options_that_nobody_has() -> None:
    with pytest.raises(Error, match="No such compile option: 'invalid_key'"):
        own(("invalid_key", put_bytes(1, "x")))
    with pytest.raises(Error, match="No such compile option: 'hilo_speed'"):
        own(("hilo_speed", put_bytes(1, "x")))
    with pytest.raises(Error, match="While setting option xla_embed_ir_in_executable, 'x' is not a valid bool value"):
        own(("xla_embed_ir_in_executable", put_bytes(1, "x")))
    with pytest.raises(Error, match="fast_math"):
        own(("hilo_fast_math", put_bytes(1, "sloppy")))


def test_any_bytes_are_a_request_or_an_error() -> None:
    r = random.Random(5)
    good = put_bytes(1, shape(0, 1)) + build(put(4, 1), put_bytes(2, shape(1, 0))) + override("b", flag(True))
    for _ in range(3000):
        data = bytearray(good)
        for _ in range(r.randint(1, 4)):
            data[r.randrange(len(data))] = r.randrange(256)
        with suppress(Error):
            request.read(bytes(data[: r.randint(0, len(data))]))
