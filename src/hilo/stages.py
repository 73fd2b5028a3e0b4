"""The stages of a compilation that can be looked at, by name: one table, for the command line, `hilo.inspect` and the
front ends. Imports trace and formats; what comes of the machine's code is the pipeline's business.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hilo.errors import Error
from hilo.ir.module import Function, Module
from hilo.record import record
from hilo.trace import program_text

Shown = str | bytes


@record(frozen=True)
class Stage:
    """`what` it is, in a few words; `of`: the program that it shows, "source" (as it came), "optimized" (behind the
    passes) or "code" (compiled); `binary`: it is bytes, not a text."""

    what: str
    of: str
    binary: bool = False


STAGES: Final[dict[str, Stage]] = {
    "stablehlo": Stage("the program as StableHLO text", "source"),
    "hlo": Stage("the program as HLO text", "source"),
    "hlo_serialized": Stage("the program as XLA's message (HloModuleProto)", "source", binary=True),
    "optimized": Stage("our IR behind the passes, as text", "optimized"),
    "optimized_hlo": Stage("the optimized program as HLO text, whose fusions are our kernels", "optimized"),
    "optimized_hlo_serialized": Stage("the optimized program as XLA's message", "optimized", binary=True),
    "optimized_hlo_dot": Stage("the optimized program as a graph for Graphviz", "optimized"),
    "llvm": Stage("LLVM IR", "code"),
    "asm": Stage("assembly", "code"),
    "c": Stage("portable C", "code"),
    "object": Stage("an object file, whose entry the header declares", "code", binary=True),
    "header": Stage("the C header of the object file", "code"),
    "memory": Stage("what memory goes to, with a picture of letters", "code"),
    "memory.svg": Stage("a picture of the memory", "code"),
    "memory_before.svg": Stage("the same before buffers share memory", "code"),
}
OTHER_NAMES: Final = {"dot": "optimized_hlo_dot", "memory-svg": "memory.svg"}
NAMES: Final = (*STAGES, *OTHER_NAMES)


def named(name: str) -> str:
    """The name in `STAGES` that `name` stands for. Raises `Error` if it is none."""
    found = OTHER_NAMES.get(name, name)
    if found not in STAGES:
        raise Error(f"there is no stage {name!r:.40}; there are {', '.join(NAMES)}")
    return found


def show_source(name: str, module: Module, entry: str = "main", elide: int | None = None) -> Shown:
    """A stage of the program as it came. `elide`: leave constants of more elements out.

    Raises `Unsupported` for what HLO has no form for.
    """
    if name == "stablehlo":
        from hilo.formats import mlir_text

        return mlir_text.print_module(module, elide=elide)
    return _hlo(name, module, entry, elide)


def show_optimized(name: str, f: Function, program: str = "", elide: int | None = None) -> Shown:
    """A stage of the optimized program; `program` is its name. Raises `Unsupported` as `show_source` does."""
    return _OPTIMIZED[name](f, program, elide)


def _hlo(name: str, module: Module, entry: str, elide: int | None) -> Shown:
    from hilo.formats import hlo_text

    made = hlo_text.emit(module, entry if entry in module.functions else None)
    if name.endswith("_serialized"):
        from hilo.formats.hlo_text.proto import module_proto

        return module_proto(made, elide=elide)
    return hlo_text.write(made, locations=True, elide=elide)


def _text(f: Function, program: str, elide: int | None) -> str:
    if elide is None:
        return program_text(f)
    from hilo.formats import mlir_text

    return mlir_text.print_module(Module({f.name: f}), elide=elide)


def _dot(f: Function, program: str, elide: int | None) -> str:
    from hilo.formats.dot import print_function

    return print_function(f)


def _optimized_hlo(name: str) -> Callable[[Function, str, int | None], Shown]:
    return lambda f, program, elide: _hlo(name, Module({f.name: f}, name=program or f.name), f.name, elide)


_OPTIMIZED: Final[dict[str, Callable[[Function, str, int | None], Shown]]] = {
    "optimized": _text,
    "optimized_hlo": _optimized_hlo("hlo"),
    "optimized_hlo_serialized": _optimized_hlo("hlo_serialized"),
    "optimized_hlo_dot": _dot,
}
