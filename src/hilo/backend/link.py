"""Custom calls that are LLVM IR: checked when they are registered, made part of the modules that call them.

Imports llvmlite, backend.cpu and backend.names. What is called how follows from the text, so that the same program
gives the same text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from hilo.backend.cpu import initialize
from hilo.backend.names import names
from hilo.backend.target import Target
from hilo.errors import Error

if TYPE_CHECKING:
    import llvmlite.binding as llvm

_KEPT: list[Any] = []  # code that was compiled for the interpreter


def custom_call_module(text: Any, name: str) -> tuple[str, str]:
    """The module of a custom call, and the name of its function in it: everything else becomes private to the module.

    The function is the one called `name`, or the only one that is not private; its type is `i32 (ptr)`.
    Raises `Error` for text that is no such module.
    """
    import llvmlite.binding as llvm

    what = f"custom call target {name!r}"
    if not isinstance(text, str):
        raise Error(f"{what}: LLVM IR is a text, not a {type(text).__name__}")
    initialize()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as e:
        raise Error(f"{what}: LLVM rejects the text: {str(e).strip()}") from None
    defined = [f for f in module.functions if not f.is_declaration]
    public = [f for f in defined if f.linkage not in (llvm.Linkage.internal, llvm.Linkage.private)]
    chosen = [f for f in public if f.name == name] or public
    if len(chosen) != 1:
        raise Error(f"{what}: the module must define one function that is not private, or one of this name; it has "
                    f"{', '.join(f.name for f in public) or 'none'}")  # fmt: skip
    if str(chosen[0].global_value_type) != "i32 (ptr)":
        raise Error(f"{what}: the function must be of type i32 (ptr), not {chosen[0].global_value_type}")
    symbol = f"hilo_call_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    for f in public:
        if f is not chosen[0]:
            f.linkage = llvm.Linkage.internal
    for v in module.global_variables:
        if not v.is_declaration:
            v.linkage = llvm.Linkage.internal
    chosen[0].name = symbol
    return str(module), symbol


def link(text: str, modules: Iterable[str], target: Target) -> str:
    """LLVM IR text together with the modules of custom calls that it needs, which are inlined where they are called."""
    import llvmlite.binding as llvm

    machine = _machine(target)
    whole = _parsed(text, target, machine)
    for m in modules:
        part = _parsed(m, target, machine)
        symbols = [f for f in part.functions if f.name.startswith("hilo_call_")]
        for f in symbols:
            f.add_function_attribute("alwaysinline")
        names = [f.name for f in symbols]
        whole.link_in(part)
        for n in names:
            whole.get_function(n).linkage = llvm.Linkage.internal
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.run(whole, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    return str(whole)


@cache
def _machine(target: Target) -> llvm.TargetMachine:
    import llvmlite.binding as llvm

    initialize()
    triple, cpu, features = names(target)
    found = llvm.Target.from_triple(triple)
    return found.create_target_machine(cpu=cpu, features=features, opt=1, reloc="pic", codemodel="small")


def _parsed(text: str, target: Target, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(text)
    module.triple = names(target).triple
    module.data_layout = str(machine.target_data)
    return module


@cache
def load_custom_call(text: str, symbol: str) -> int:
    """The address of the function `symbol` of a module, compiled for this machine. It stays for good."""
    from hilo.backend.cpu import compile as compile_text
    from hilo.backend.jit import load

    host = Target.host()
    module = _parsed(text, host, _machine(host))
    code = load([compile_text(str(module), host)], [symbol])
    _KEPT.append(code)
    return code.address[symbol]
