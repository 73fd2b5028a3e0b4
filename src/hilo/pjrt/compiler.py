"""What the native library calls, with the GIL, when a client compiles a program or loads a serialized executable.

Imports kept, pipeline, formats, runtime, and siblings, when used.
"""

from __future__ import annotations

import hashlib
import json
import math
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from hilo.errors import Error, Unsupported
from hilo.gc_pause import gc_paused

if TYPE_CHECKING:
    from hilo.backend.target import Target as Machine
    from hilo.custom_calls.registry import Target
    from hilo.ir.module import Module
    from hilo.options import Options
    from hilo.pjrt.artifact import Artifact
    from hilo.pjrt.request import Request
    from hilo.runtime import _native
    from hilo.runtime.cache import Key

FORMATS: Final = ("mlir", "hlo", "hlo_with_config")
MOST_KEPT: Final = 64 << 20  # bytes of an executable that goes into the cache whole


class Loaded:
    """A compiled program with all that PJRT asks about it.

    name                            of the program, for people
    native, cost                    the native program; estimated nanoseconds of a call (NaN: it has loops)
    arguments, results              (PJRT's element type, dims, minor to major) of each; `native` takes dense arrays
                                    whose dims stand in the order of memory
    argument_kinds, result_kinds    kinds of memory, as the program says
    donated                         numbers of arguments whose buffers a call uses up
    num_replicas, num_partitions    1
    device_ids                      the device that it is for
    fingerprint                     tells programs whose code may differ
    options                         as the client gave them
    """

    def __init__(self, artifact: Artifact, native: _native.Program, request: Request, cost: float,
                 calls_python: bool = False) -> None:  # fmt: skip
        b = artifact.boundary
        self.name = artifact.name
        self.native = native
        self.cost = cost
        self.arguments = b.arguments
        self.results = b.results
        self.argument_kinds = b.argument_kinds
        self.result_kinds = b.result_kinds
        self.donated = artifact.donated
        self.num_replicas = request.replicas
        self.num_partitions = request.partitions
        self.device_ids = list(request.devices)
        self.fingerprint = artifact.fingerprint
        self.options = artifact.options
        self._artifact = artifact
        self._calls_python = calls_python

    def optimized_program(self) -> tuple[str, bytes]:
        """The optimized program: its format ("hlo_with_config") and bytes."""
        return self._artifact.optimized

    def cost_analysis(self) -> dict[str, float]:
        """Operations, bytes and so on of a call, by XLA's names."""
        return self._artifact.costs

    def memory_stats(self) -> dict[str, int]:
        """Bytes, by the names of PJRT's PJRT_Executable_GetCompiledMemoryStats_Args."""
        return self._artifact.memory

    def code_size(self) -> int:
        """Bytes of machine code."""
        return self._artifact.memory["generated_code_size_in_bytes"]

    def serialize(self) -> bytes:
        """The executable for `load`. Raises `Unsupported` for one that calls Python functions of this process."""
        if self._calls_python:
            raise Unsupported(f"@{self.name} calls Python functions of this process, and cannot be serialized")
        from hilo.pjrt import artifact

        return artifact.write(self._artifact, artifact.circumstances())


@gc_paused()
def compile(format: str, program: bytes, options: bytes) -> Loaded:  # noqa: A001, A002
    """Compile a program: `format` "mlir" (StableHLO as text, bytecode, or a portable artifact), "hlo" or
    "hlo_with_config" (HLO as XLA's message or as text).

    `options` is a serialized CompileOptionsProto. Raises `Error` for an invalid program or option, `Unsupported` for
    what hilo does not have, `MemoryError`.
    """
    from hilo import kept
    from hilo.options import Options
    from hilo.pjrt import artifact, request
    from hilo.pjrt.dump import Dump
    from hilo.runtime.settings import settings
    from hilo.runtime.stores import cache_of

    if format not in FORMATS:
        raise Unsupported(f"hilo knows no program format {format!r:.40}; there are {', '.join(FORMATS)}")
    asked = request.read(options)
    chosen = request.own_options(asked, Options.from_env())
    machine, threads = settings("host", chosen.threads or _machine_threads(), chosen)
    dump = Dump(asked.overrides)
    key = _key(format, program, asked, chosen, machine)
    is_kept = kept.is_kept(chosen)
    if is_kept and (data := cache_of(chosen).get(key)) is not None:
        try:
            found = artifact.read(data, None)
            assert found.image is not None
            found.options = options
            dump.write(found.name, found.optimized, (format, program))
            return Loaded(found, found.image.native(threads), asked, found.image.cost)
        except Error:  # code that the process cannot load: made anew, and replaced
            pass
    made = _compiled(format, program, options, asked, chosen, machine, threads, _fingerprint(key))
    a = made._artifact
    dump.write(a.name, a.optimized, (format, program))
    if is_kept and a.image is not None and a.image.nbytes <= MOST_KEPT:
        cache_of(chosen).put(key, artifact.write(a, None))
    return made


@gc_paused()
def load(data: bytes, options: bytes) -> Loaded:
    """The executable that `Loaded.serialize` gave, for the client's `options` (b"": those that it was compiled with).

    Raises `Error` that says why it does not fit here.
    """
    from hilo.options import Options
    from hilo.pjrt import artifact, request
    from hilo.pjrt.dump import Dump
    from hilo.runtime.settings import settings

    a = artifact.read(data, artifact.circumstances())
    a.options = options or a.options
    asked = request.read(a.options)
    chosen = request.own_options(asked, Options.from_env())
    if a.image is None:
        return compile(a.format, a.program, a.options)
    _, threads = settings("host", chosen.threads or _machine_threads(), chosen)
    Dump(asked.overrides).write(a.name, a.optimized)
    return Loaded(a, a.image.native(threads), asked, a.image.cost)


@cache
def _machine_threads() -> int:
    """The threads that programs run with: found out once, as it takes long."""
    from hilo.runtime.machine import default_threads

    return default_threads()


def _key(format: str, program: bytes, asked: Request, options: Options, machine: Machine) -> Key:  # noqa: A002
    """What the code of a program depends on."""
    from hilo.kept import key_of
    from hilo.pjrt.artifact import FORMAT

    layouts = repr((asked.argument_layouts, asked.result_layouts))
    return key_of(program, machine, options, pjrt=f"{FORMAT} {format}", layouts=layouts)


def _fingerprint(key: Key) -> bytes:
    return hashlib.sha256(json.dumps([key.text_hash, key.circumstances]).encode()).digest()


def parse(format: str, program: bytes) -> Module:  # noqa: A002
    """The program that a client gives."""
    from hilo import formats

    kind = formats.sniff(program)
    if format != "mlir" and kind not in ("hlo_text", "hlo_proto"):
        raise Error(f"a program in the format {format!r} is HLO, as text or as a message, and this is neither")
    return formats.parse(program, "<program>")


def _compiled(format: str, program: bytes, options: bytes, asked: Request, chosen: Options, machine: Machine,  # noqa: A002
              threads: int, fingerprint: bytes) -> Loaded:  # fmt: skip
    from hilo.ir.connection import connected
    from hilo.pipeline import compile_module
    from hilo.pjrt.analysis import costs, memory
    from hilo.pjrt.artifact import Artifact
    from hilo.pjrt.boundary import prepare
    from hilo.pjrt.optimized import optimized_program
    from hilo.runtime.chain import Chain
    from hilo.trace import Trace

    module, f, boundary = prepare(parse(format, program), asked)
    images: list[Any] = []
    trace = Trace(chosen)
    with connected(None):
        e = compile_module(module, entry=f.name, threads=threads, options=chosen, keep=images.append, trace=trace,
                           forms=chosen.pack_once)  # fmt: skip
    native = e._program
    if isinstance(native, Chain):
        raise Unsupported(f"@{f.name} computes sizes of arrays at run time, which does not run through PJRT")
    report, scheduled = e.memory(), trace.after("schedule")
    if report.program.symbols is not None:
        raise Unsupported(f"@{f.name} has sizes that are known only at run time, which do not run through PJRT")
    cost = math.nan if report.program.has_loops() else e.cost
    if images:
        images[0].cost = cost
    a = Artifact(
        module.name or f.name,
        fingerprint,
        format,
        b"" if images else program,
        options,
        machine,
        boundary,
        images[0] if images else None,
        sorted({*boundary.must_donate, *(argument for _, argument in report.aliases)}),
        memory(report),
        costs(scheduled, e.cost),
        optimized_program(module.name or f.name, scheduled, boundary),
    )
    return Loaded(a, native, asked, cost, any(_is_of_process(h.target) for h in report.program.hosts))


def _is_of_process(target: Target) -> bool:
    """Whether a target of custom calls is a Python function of this process, or (jaxlib's handlers) leads to one."""
    is_function = target.convention == "python" and not target.builtin
    return is_function or target.name.endswith("python_cpu_callback")
