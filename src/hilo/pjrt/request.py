"""What a client asks for beside the program: a serialized CompileOptionsProto, as far as it concerns one device.

Imports errors, formats.protobuf, options, record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hilo.errors import Error, Unsupported
from hilo.formats import protobuf as wire
from hilo.options import Options
from hilo.record import record

Layout = tuple[int, ...]  # dims from the innermost on: "minor to major"

# Switches of XLA that are on or off and make sense on a CPU. What is asked of XLA's own optimizer counts for nothing
# here, but a value that cannot be one is refused.
_SWITCHES: Final = """
    xla_allow_excess_precision xla_cpu_enable_concurrency_optimized_scheduler xla_cpu_enable_fast_math
    xla_cpu_enable_fast_min_max xla_cpu_enable_xprof_traceme xla_cpu_fast_math_honor_division
    xla_cpu_fast_math_honor_functions xla_cpu_fast_math_honor_infs xla_cpu_fast_math_honor_nans
    xla_cpu_multi_thread_eigen xla_cpu_strict_dot_conv_math xla_cpu_use_acl xla_cpu_use_mkl_dnn
    xla_cpu_use_thunk_runtime xla_cpu_use_xnnpack xla_detailed_logging xla_disable_all_hlo_passes
    xla_dump_compress_protos xla_dump_enable_mlir_pretty_form xla_dump_fusion_visualization xla_dump_hlo_as_dot
    xla_dump_hlo_as_html xla_dump_hlo_as_long_text xla_dump_hlo_as_proto xla_dump_hlo_as_text xla_dump_hlo_as_url
    xla_dump_hlo_snapshots xla_dump_include_timestamp xla_dump_latency_hiding_schedule xla_dump_module_metadata
    xla_embed_ir_in_executable xla_enable_dumping xla_hlo_profile xla_llvm_disable_expensive_passes
    xla_llvm_enable_alias_scope_metadata xla_llvm_enable_invariant_load_metadata xla_llvm_enable_noalias_metadata
"""
SWITCHES: Final = frozenset(_SWITCHES.split())


@record(frozen=True)
class Request:
    """`argument_layouts`: one for each argument, if any, and `result_layouts` likewise; None: as the program says.
    `overrides`: options by name, as texts, bools or numbers; `devices`: numbers of the devices to run on."""

    argument_layouts: tuple[Layout | None, ...] = ()
    result_layouts: tuple[Layout | None, ...] = ()
    overrides: Mapping[str, Any] = {}
    replicas: int = 1
    partitions: int = 1
    devices: tuple[int, ...] = (0,)


def read(data: bytes) -> Request:
    """The request in a serialized CompileOptionsProto. Raises `Error` for what is none, `Unsupported` if it asks for
    several devices or a layout that hilo does not have."""
    layouts: list[Layout | None] = []
    overrides: dict[str, Any] = {}
    build = b""
    for field, value in wire.fields(data):
        if field == 1:
            layouts += _shape_layouts(wire.message(value))
        elif field == 3:
            build = wire.message(value)
        elif field == 7:
            overrides.update(_override(wire.message(value)))
    counts = {4: 1, 5: 1}
    results: tuple[Layout | None, ...] = ()
    devices = [0]
    for field, value in wire.fields(build):
        if field in counts:
            counts[field] = wire.signed(value)
        elif field == 1:
            devices = [max(0, wire.signed(value))]
        elif field == 2:
            results = tuple(_shape_layouts(wire.message(value)))
        elif field == 9:
            devices = _devices(wire.message(value)) or devices
    replicas, partitions = counts[4], counts[5]
    if replicas * partitions != 1 or len(devices) != 1:
        raise Unsupported(f"the program is for {replicas} replicas and {partitions} partitions: hilo runs programs on "
                          "one device, several come in a later version")  # fmt: skip
    return Request(tuple(layouts), results, overrides, replicas, partitions, tuple(devices))


def own_options(request: Request, options: Options) -> Options:
    """`options`, changed by those of the request that are hilo's (`hilo_fast_math` ...); XLA's count for nothing.

    Raises `Error` for an option that neither has, or a value that it cannot have.
    """
    own: dict[str, str] = {}
    for name, value in request.overrides.items():
        if name.startswith("hilo_"):
            own[name.removeprefix("hilo_")] = str(int(value) if isinstance(value, bool) else value)
        elif name in SWITCHES:
            _check_switch(name, value)
        elif not name.startswith("xla_"):
            raise Error(f"No such compile option: '{name}'")
    if not own:
        return options
    for name in own:
        if callable(getattr(options, name, len)):  # what has no value, or is a method
            raise Error(f"No such compile option: 'hilo_{name}'")
    found = Options.from_env({f"HILO_{name.upper()}": text for name, text in own.items()})
    return options.replace(**{name: getattr(found, name) for name in own})


def _check_switch(name: str, value: Any) -> None:
    if not isinstance(value, bool) and str(value).lower() not in ("true", "false"):
        raise Error(f"While setting option {name}, '{value}' is not a valid bool value.")


def _override(entry: bytes) -> dict[str, Any]:
    """One entry of a map: its name, and the one value of four kinds."""
    name, value = "", b""
    for field, v in wire.fields(entry):
        if field == 1:
            name = wire.text(v)
        elif field == 2:
            value = wire.message(v)
    readers = {1: wire.text, 2: lambda v: bool(wire.number(v)), 3: wire.signed, 4: wire.double}
    for field, v in wire.fields(value):
        if field in readers:
            return {name: readers[field](v)}
    return {name: ""}


def _devices(assignment: bytes) -> list[int]:
    """The devices of a DeviceAssignmentProto, computation by computation."""
    devices: list[int] = []
    for field, value in wire.fields(assignment):
        if field == 3:
            for f, v in wire.fields(wire.message(value)):
                if f == 1:
                    devices += wire.numbers(v)
    return devices


def _shape_layouts(shape: bytes) -> list[Layout | None]:
    """The layout that a ShapeProto says, or those of a tuple's parts."""
    parts: list[Layout | None] = []
    layout: Layout | None = None
    for field, value in wire.fields(shape):
        if field == 4:
            parts += _shape_layouts(wire.message(value))
        elif field == 5:
            layout = _layout(wire.message(value))
    return parts or [layout]


def _layout(data: bytes) -> Layout:
    """A LayoutProto's order of dims. Tiles are `Unsupported`."""
    order: list[int] = []
    for field, value in wire.fields(data):
        if field == 1:
            order += wire.numbers(value)
        elif field == 6:
            raise Unsupported("hilo has no layouts with tiles")
    return tuple(order)
