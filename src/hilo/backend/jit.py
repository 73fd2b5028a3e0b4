"""Loading object code into this process and finding addresses in it. Imports llvmlite and backend.cpu."""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hilo.backend.cpu import initialize, new_target_machine
from hilo.errors import Error

if TYPE_CHECKING:
    import llvmlite.binding as llvm


class LoadedCode:
    """Object code in memory. `address` maps each symbol asked for to its address. The memory goes with this object."""

    def __init__(self, engine: llvm.ExecutionEngine, address: dict[str, int]) -> None:
        self._engine = engine
        self.address = address

    def function(self, symbol: str, *argtypes: Any, restype: Any = None) -> Any:
        """A ctypes function for `symbol`; valid as long as this object lives."""
        return ctypes.CFUNCTYPE(restype, *argtypes)(self.address[symbol])


def load(objects: Iterable[bytes], symbols: Iterable[str]) -> LoadedCode:
    """Load object files and resolve `symbols`. Raises `Error` for a symbol that is not there."""
    import llvmlite.binding as llvm

    initialize()
    triple = llvm.get_process_triple()
    machine = new_target_machine(triple, "", "")  # belongs to the engine from here on
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(f'target triple = "{triple}"'), machine)
    for data in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    address = {}
    for s in symbols:
        address[s] = engine.get_function_address(s)
        if not address[s]:
            raise Error(f"the compiled code has no symbol {s!r}")
    return LoadedCode(engine, address)
