"""The header that the plugin is built from against facts of the API, and against an independent description of it."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from pjrt_abi import abi
from pjrt_client import Api


def _layout(struct: Any) -> list[tuple[int, int]]:
    """Place and size of each field that says something (heads may be spelled out or not)."""
    return [(getattr(struct, name).offset, getattr(struct, name).size) for name, *_ in struct._fields_]


def test_every_function_has_a_struct_and_a_place() -> None:
    assert len(abi().slots) == 138
    assert not [name for name in abi().slots if f"{name}_args" not in abi().structs]
    assert abi().table_offset == 40
    head = ctypes.c_size_t.from_address(Api().address).value
    assert head == 40 + 8 * 138


def test_the_table_is_full() -> None:
    api = Api()
    for i in range(len(abi().slots)):
        assert ctypes.c_void_p.from_address(api.address + abi().table_offset + 8 * i).value


def test_constants() -> None:
    c = abi().constants
    assert (c["PRED"], c["C128"], c["TOKEN"], c["F6E3M2FN"], c["TYPES"]) == (1, 15, 23, 33, 34)
    assert (c["INVALID_ARGUMENT"], c["UNAUTHENTICATED"]) == (3, 16)
    assert (c["ZERO_COPY"], c["TILED"], c["STRIDES"], c["BOOLEAN"]) == (2, 0, 1, 4)


def test_layouts_of_all_structs_by_an_independent_description() -> None:
    pytest.importorskip("pypjrt", reason="pypjrt (a public package) describes the API; not installed")
    from pypjrt._abi import pjrt_0_114 as theirs  # pyright: ignore[reportMissingImports]

    mine = abi().structs
    pairs = [(f"{a}_args", f"{b}_Args") for a, b in zip(abi().slots, theirs.FUNCTIONS, strict=True)]
    pairs += [
        ("tiled", "PJRT_Buffer_MemoryLayout_Tiled"), ("strides", "PJRT_Buffer_MemoryLayout_Strides"),
        ("memory_layout", "PJRT_Buffer_MemoryLayout"), ("named_value", "PJRT_NamedValue"), ("program", "PJRT_Program"),
        ("shape_spec", "PJRT_ShapeSpec"), ("chunk", "PJRT_Chunk"), ("logical_ids", "PJRT_LogicalDeviceIds"),
        ("load_options", "PJRT_LoadOptions"), ("execute_options", "PJRT_ExecuteOptions"),
        ("buffer_copy_raw_to_host_future_callback_args", "PJRT_Buffer_CopyRawToHostFuture_Callback_Args"),
        ("buffer_donate_with_control_dependency_callback_args",
         "PJRT_Buffer_DonateWithControlDependency_Callback_Args"),
        ("ffi_register_handler_args", "PJRT_FFI_Register_Handler_Args"),
        ("ffi_type_register_args", "PJRT_FFI_Type_Register_Args"),
        ("ffi_user_data_add_args", "PJRT_FFI_UserData_Add_Args"),
        ("layouts_memory_layout_serialize_args", "PJRT_Layouts_MemoryLayout_Serialize_Args"),
        ("layouts_client_get_default_layout_args", "PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args"),
        ("memory_description_kind_args", "PJRT_MemoryDescription_Kind_Args"),
        ("executable_abi_version_to_proto_args", "PJRT_ExecutableAbiVersion_ToProto_Args"),
    ]  # fmt: skip
    differing = [a for a, b in pairs if _layout(mine[a]) != _layout(getattr(theirs, b))]
    assert not differing
