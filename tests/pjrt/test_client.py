"""Clients, devices, memories and topologies: what they say of themselves, and what they refuse."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from pjrt_abi import abi
from pjrt_client import Api, C, Host, PjrtError, a_host, build, named_values, numbers, text, tiled

import hilo
from hilo.formats.bytecode.opset import CURRENT, MINIMUM


@pytest.fixture(scope="module", name="api")
def the_api() -> Api:
    return Api()


@pytest.fixture(params=["hilo", "cpu"])
def host(request: pytest.FixtureRequest):
    with a_host({"platform_name": request.param}) as host:
        yield host


def named(address: int | None, count: int) -> dict[str, Any]:
    """Named values that a getter gave."""
    found = (abi().structs["named_value"] * count).from_address(address) if address and count else ()
    kinds = {C["STRING"]: "string", C["INTEGER"]: "integer", C["REAL"]: "real", C["BOOLEAN"]: "boolean"}
    values = {}
    for v in found:
        value: Any = getattr(v.value, kinds.get(v.type, "integers"))
        if v.type == C["INTEGERS"]:
            value = numbers(value, v.value_size)
        values[text(v.name, v.name_size)] = text(value, v.value_size) if v.type == C["STRING"] else value
    return values


def said(args: Any, field: str) -> str:
    return text(getattr(args, field), getattr(args, f"{field}_size"))


def test_attributes_of_the_plugin(api: Api) -> None:
    api.plugin_initialize()
    found = api.plugin_attributes()
    assert named(found.attributes, found.num_attributes) == {
        "xla_version": 2, "stablehlo_current_version": CURRENT, "stablehlo_minimum_version": MINIMUM,
        "supports_cross_host_transfers": False,
    }  # fmt: skip


def test_a_client_says_who_it_is(host: Host, request: pytest.FixtureRequest) -> None:
    api, client = host.api, host.client
    platform = request.node.callspec.params["host"]
    assert said(api.client_platform_name(client=client), "platform_name") == platform
    assert said(api.client_platform_version(client=client), "platform_version") == f"hilo {hilo.__version__}"
    assert api.client_process_index(client=client).process_index == 0
    api.client_update_global_process_info(client=client)


@pytest.mark.parametrize("variable", ["1", "0", "", None])
def test_the_environment_takes_over_cpu(monkeypatch: pytest.MonkeyPatch, variable: str | None) -> None:
    if variable is None:
        monkeypatch.delenv("HILO_JAX_AS_CPU", raising=False)
    else:
        monkeypatch.setenv("HILO_JAX_AS_CPU", variable)
    expected = "cpu" if variable == "1" else "hilo"
    with a_host() as host:
        assert said(host.api.client_platform_name(client=host.client), "platform_name") == expected
        found = host.api.topology_create(topology_name=b"", topology_name_size=0).topology
        assert said(host.api.topology_platform_name(topology=found), "platform_name") == expected
    with a_host({"platform_name": "cpu"}) as host:  # an option counts for more
        assert said(host.api.client_platform_name(client=host.client), "platform_name") == "cpu"


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        ({"platform_name": "tpu"}, "NOT_FOUND", 'no platform "tpu"; there are: hilo, cpu'),
        ({"platform_name": ""}, "NOT_FOUND", 'no platform ""'),
        ({"platform_name": "x" * 100}, "INVALID_ARGUMENT", "platform_name is the text"),
        ({"platform": "cpu"}, "INVALID_ARGUMENT", "no option platform of a client; there is: platform_name"),
    ],
)
def test_options_that_there_are_not(options: dict[str, str], code: str, words: str) -> None:
    with pytest.raises(PjrtError, match=words) as e:
        Host(options=options)
    assert e.value.code == C[code]


@pytest.mark.parametrize(
    ("name", "number", "fits"),
    [("node_id", 0, True), ("num_nodes", 1, True), ("node_id", 1, False), ("num_nodes", 2, False),
     ("platform_name", 1, False)],
)
def test_options_that_are_numbers(api: Api, name: str, number: int, fits: bool) -> None:
    option = build("named_value", name=name.encode(), name_size=len(name), type=C["INTEGER"], value_size=1)
    option.value.integer = number
    if fits:
        api.client_destroy(client=api.client_create(create_options=option, num_options=1).client)
    else:
        with pytest.raises(PjrtError):
            api.client_create(create_options=option, num_options=1)


def test_devices(host: Host) -> None:
    api, client = host.api, host.client
    everything = api.client_devices(client=client)
    assert numbers(everything.devices, everything.num_devices, ctypes.c_size_t) == (host.device,)
    assert api.client_lookup_device(client=client, id=0).device == host.device
    assert api.client_lookup_addressable_device(client=client, local_hardware_id=0).addressable_device == host.device
    for lookup in (
        lambda: api.client_lookup_device(client=client, id=1),
        lambda: api.client_lookup_device(client=client, id=-1),
        lambda: api.client_lookup_addressable_device(client=client, local_hardware_id=7),
    ):
        with pytest.raises(PjrtError, match="there is no device") as e:
            lookup()
        assert e.value.code == C["NOT_FOUND"]
    assert api.device_is_addressable(device=host.device).is_addressable
    assert api.device_local_hardware_id(device=host.device).local_hardware_id == 0
    assert api.device_get_attributes(device=host.device).num_attributes == 0


def test_names_of_devices_are_those_of_xla(host: Host, request: pytest.FixtureRequest) -> None:
    api = host.api
    cpu = request.node.callspec.params["host"] == "cpu"
    d = api.device_get_description(device=host.device).device_description
    assert api.device_description_id(device_description=d).id == 0
    assert api.device_description_process_index(device_description=d).process_index == 0
    assert api.device_description_attributes(device_description=d).num_attributes == 0
    assert said(api.device_description_kind(device_description=d), "device_kind") == "cpu"
    names = [said(api.device_description_debug_string(device_description=d), "debug_string"),
             said(api.device_description_to_string(device_description=d), "to_string")]  # fmt: skip
    assert names == (["cpu:0", "CpuDevice(id=0)"] if cpu else ["hilo:0", "HiloDevice(id=0)"])


def test_memories(host: Host, request: pytest.FixtureRequest) -> None:
    api = host.api
    platform = request.node.callspec.params["host"]
    found = api.client_addressable_memories(client=host.client)
    memories = numbers(found.addressable_memories, found.num_addressable_memories, ctypes.c_size_t)
    of_device = api.device_addressable_memories(device=host.device)
    assert numbers(of_device.memories, of_device.num_memories, ctypes.c_size_t) == memories
    assert api.device_default_memory(device=host.device).memory == memories[0]
    assert [said(api.memory_kind(memory=m), "kind") for m in memories] == ["device", "pinned_host", "unpinned_host"]
    assert [api.memory_id(memory=m).id for m in memories] == [0, 1, 2]
    kinds = [api.memory_kind_id(memory=m).kind_id for m in memories]
    assert len(set(kinds)) == 3
    topology = api.client_topology(client=host.client).topology
    ids = api.topology_get_memory_space_kind_ids(topology=topology)
    assert list(numbers(ids.memory_space_kind_ids, ids.num_memory_space_kind_ids, ctypes.c_int)) == kinds
    names = [said(api.memory_to_string(memory=m), "to_string") for m in memories]
    assert names == [f"{platform.upper()}_DEVICE_0", "PINNED_HOST_1", "UNPINNED_HOST_2"]
    long = [said(api.memory_debug_string(memory=m), "debug_string") for m in memories]
    assert long[0] == f"{platform.capitalize()}DeviceMemory(id=0, process_index=0, client={platform})"
    assert long[2] == f"UnpinnedHostMemorySpace(id=2, process_index=0, client={platform})"
    for m in memories:
        near = api.memory_addressable_by_devices(memory=m)
        assert numbers(near.devices, near.num_devices, ctypes.c_size_t) == (host.device,)


def test_default_assignments(host: Host) -> None:
    place = (ctypes.c_int * 2)(7, 7)
    host.api.client_default_device_assignment(
        client=host.client, num_replicas=1, num_partitions=1, default_assignment_size=1, default_assignment=place)
    assert list(place) == [0, 7]
    wrong = [(2, 1, 2, "UNIMPLEMENTED"), (1, 2, 2, "UNIMPLEMENTED"), (1, 1, 0, "INVALID_ARGUMENT")]
    for replicas, partitions, size, code in wrong:
        with pytest.raises(PjrtError) as e:
            host.api.client_default_device_assignment(
                client=host.client, num_replicas=replicas, num_partitions=partitions, default_assignment_size=size,
                default_assignment=place)  # fmt: skip
        assert e.value.code == C[code]


def test_memory_statistics_count_the_buffers_of_a_client(host: Host) -> None:
    api = host.api
    before = api.device_memory_stats(device=host.device)
    assert (before.bytes_in_use, before.num_allocs) == (0, 0)
    a = host.put(np.zeros(1 << 18, np.float32))
    b = host.put(np.zeros(1 << 10, np.float32))
    host.free(a)
    with a_host() as other:
        assert other.api.device_memory_stats(device=other.device).bytes_in_use == 0
    now = api.device_memory_stats(device=host.device)
    assert (now.bytes_in_use, now.peak_bytes_in_use) == (1 << 12, (1 << 20) + (1 << 12))
    assert (now.num_allocs, now.largest_alloc_size) == (2, 1 << 20)
    assert now.peak_bytes_in_use_is_set
    assert now.bytes_limit_is_set
    assert now.bytes_limit > 1 << 28
    assert now.pool_bytes_is_set
    assert now.pool_bytes >= 1 << 12
    assert (now.bytes_reserved, now.bytes_reserved_is_set) == (0, True)  # jaxlib shows what is not set as -1
    assert not now.largest_free_block_bytes_is_set
    api.device_clear_memory_stats(device=host.device)
    now = api.device_memory_stats(device=host.device)
    assert (now.bytes_in_use, now.peak_bytes_in_use, now.num_allocs) == (1 << 12, 1 << 12, 0)
    host.free(b)


def test_memory_statistics_for_an_older_caller(host: Host) -> None:
    """A caller whose struct ends behind peak_bytes_in_use: nothing beyond is touched."""
    args = build("device_memory_stats_args", device=host.device)
    kind = type(args)
    args.struct_size = kind.num_allocs.offset
    ctypes.memset(ctypes.addressof(args) + args.struct_size, 0xAB, ctypes.sizeof(args) - args.struct_size)
    assert host.api.function("device_memory_stats")(ctypes.addressof(args)) is None
    assert args.peak_bytes_in_use_is_set
    assert set(bytes(args)[args.struct_size :]) == {0xAB}


def test_executions_cannot_be_poisoned_and_tracking_is_only_named(host: Host) -> None:
    with pytest.raises(PjrtError, match="cannot be made to fail") as e:
        host.api.device_poison_execution(device=host.device, launch_id=1, error_code=C["INTERNAL"])
    assert e.value.code == C["UNIMPLEMENTED"]
    made = host.api.device_create_async_tracking_event(device=host.device, description=b"step", description_size=4)
    assert made.event
    host.api.async_tracking_event_destroy(event=made.event)


#: The table of functions that a memory begins with: size, extensions, size of an instance, and two functions.
_GET = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
_DESTROY = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_SET = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, _DESTROY)


def test_others_keep_data_with_a_memory() -> None:
    destroyed: list[int] = []
    destroy = _DESTROY(destroyed.append)
    with a_host() as host:
        memory, other = host.memory("device"), host.memory("pinned_host")
        size, _, instance, get, put = (ctypes.c_size_t * 5).from_address(ctypes.c_size_t.from_address(memory).value)
        assert (size, instance) == (40, 8)
        get, put = _GET(get), _SET(put)
        assert get(memory, 1) is None
        put(memory, 1, 100, destroy)
        put(memory, 2, 200, destroy)
        put(other, 1, 300, _DESTROY())
        assert (get(memory, 1), get(memory, 2), get(other, 1)) == (100, 200, 300)
        put(memory, 1, 101, destroy)
        assert get(memory, 1) == 101
        assert destroyed == [100]
    assert sorted(destroyed) == [100, 101, 200]


# Topologies.


def named_topology(api: Api, name: str) -> int:
    return api.topology_create(topology_name=name.encode(), topology_name_size=len(name)).topology


def fingerprint(api: Api, topology: int) -> int:
    return api.topology_fingerprint(topology=topology).fingerprint


@pytest.mark.parametrize("platform", ["hilo", "cpu"])
def test_topologies(api: Api, platform: str) -> None:
    t = named_topology(api, platform)
    assert said(api.topology_platform_name(topology=t), "platform_name") == platform
    assert said(api.topology_platform_version(topology=t), "platform_version") == f"hilo {hilo.__version__} (topology)"
    assert api.topology_attributes(topology=t).num_attributes == 0
    found = api.topology_get_device_descriptions(topology=t)
    (d,) = numbers(found.descriptions, found.num_descriptions, ctypes.c_size_t)
    assert api.device_description_id(device_description=d).id == 0
    written = api.topology_serialize(topology=t)
    data = ctypes.string_at(written.serialized_bytes, written.serialized_bytes_size)
    _DESTROY(written.serialized_topology_deleter)(written.serialized_topology)
    again = api.topology_deserialize(serialized_topology=data, serialized_topology_size=len(data)).topology
    assert said(api.topology_platform_name(topology=again), "platform_name") == platform
    assert fingerprint(api, again) == fingerprint(api, t)
    with a_host({"platform_name": platform}) as host:
        assert fingerprint(api, api.client_topology(client=host.client).topology) == fingerprint(api, t)
    for each in (t, again):
        api.topology_destroy(topology=each)


def test_topologies_differ(api: Api) -> None:
    assert fingerprint(api, named_topology(api, "hilo")) != fingerprint(api, named_topology(api, "cpu"))


@pytest.mark.parametrize("name", ["v5e:2x2", "hil", "hilo2", "x" * 1000])
def test_no_topology_of_that_name(api: Api, name: str) -> None:
    with pytest.raises(PjrtError, match="no topology") as e:
        named_topology(api, name)
    assert e.value.code == C["NOT_FOUND"]


def test_topologies_have_no_options(api: Api) -> None:
    array, kept = named_values({"chips": "4"})
    with pytest.raises(PjrtError, match="no options; there is chips"):
        api.topology_create(topology_name=b"hilo", topology_name_size=4, create_options=array, num_options=len(kept))


@pytest.mark.parametrize(
    "data", [b"", b"hilo topology 1 ", b"hilo topology 1 tpu", b"hilo topology 2 hilo", b"\0" * 99]
)
def test_bytes_that_are_no_topology(api: Api, data: bytes) -> None:
    with pytest.raises(PjrtError, match="no topology") as e:
        api.topology_deserialize(serialized_topology=data, serialized_topology_size=len(data))
    assert e.value.code == C["INVALID_ARGUMENT"]


def canonical(api: Api, kind: int, dims: tuple[int, ...], layout: Any = None, memory: int = 0) -> bytes:
    t = named_topology(api, "hilo")
    found = api.topology_make_canonical_shape_for_memory_space(
        topology=t, memory_space_kind_id=memory, dims=dims, num_dims=len(dims), element_type=kind, layout=layout)
    data = ctypes.string_at(found.serialized_shape, found.serialized_shape_size)
    _DESTROY(found.serialized_shape_deleter)(found.serialized_shape)
    return data


def test_canonical_shapes_are_messages_of_xla(api: Api) -> None:
    """ShapeProto: element_type 2, dimensions 3, layout 5 {minor_to_major 1}; XLA's number of bf16 is 16, of f32 11."""
    assert canonical(api, C["F32"], (2, 300)) == bytes([0x10, 11, 0x1A, 3, 2, 0xAC, 2, 0x2A, 4, 0x0A, 2, 1, 0])
    assert canonical(api, C["BF16"], (4, 5), tiled([0, 1]))[-4:] == bytes([0x0A, 2, 0, 1])
    assert canonical(api, C["BF16"], ()) == bytes([0x10, 16, 0x2A, 0])
    with pytest.raises(PjrtError, match="no kind 9 of memory"):
        canonical(api, C["F32"], (), memory=9)
    with pytest.raises(PjrtError, match="XLA has no number for"):
        canonical(api, C["F6E2M3FN"], (1,))
    with pytest.raises(PjrtError):
        canonical(api, 99, (1,))
    with pytest.raises(PjrtError):
        canonical(api, C["F32"], (-1,))
