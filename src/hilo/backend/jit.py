"""Loading object code into this process and finding addresses in it. Imports this room.

What the code calls outside itself (memcpy, memset; fma on machines without it) is looked up in the process, where the
C library and its libm are. glibc's and musl's fma round correctly, so the result is the same with and without hardware.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final

from hilo.backend.cpu import new_target_machine
from hilo.backend.elf import symbols as elf_symbols
from hilo.backend.llvm_library import Engine, host
from hilo.backend.loader import Code
from hilo.backend.relocations import MACHINES
from hilo.errors import Error

TABLE: Final = "_GLOBAL_OFFSET_TABLE_"


class LoadedCode:
    """Object code in memory. `address` maps each symbol asked for to its address. The memory goes with this object."""

    def __init__(self, engine: Engine | Code, address: dict[str, int]) -> None:
        self._engine = engine
        self.address = address

    def function(self, symbol: str, *argtypes: Any, restype: Any = None) -> Callable[..., Any]:
        """A ctypes function for `symbol`; it keeps the code alive."""
        f = ctypes.CFUNCTYPE(restype, *argtypes)(self.address[symbol])
        f.code = self  # type: ignore[attr-defined]
        return f


def takes_addresses() -> bool:
    """Whether `load` can be told of functions by their addresses."""
    return host()[0].split("-")[0] in MACHINES


def load(objects: Iterable[bytes], symbols: Iterable[str],
         ready: Mapping[str, int] = MappingProxyType({})) -> LoadedCode:  # fmt: skip
    """Load object files together and find the addresses of `symbols`. `ready`: addresses of functions that they may
    call, besides what the process has for all, where `takes_addresses`.

    Raises `Error` for an object that is damaged, for a symbol that no object defines, and for one that the code needs
    and the process does not have (LLVM itself would end the process).
    """
    objects = list(objects)
    symbols = list(symbols)
    defined: set[str] = set()
    missing: set[str] = set()
    for data in objects:
        has, needs = elf_symbols(data)
        defined |= has
        missing |= needs
    if absent := [s for s in symbols if s not in defined]:
        raise Error(f"the compiled code has no symbol {absent[0]!r}")
    if unknown := sorted(s for s in missing - defined if s not in ready and not in_process(s)):
        raise Error(f"the compiled code needs symbols that this process does not have: {', '.join(unknown)}")
    triple, _, _ = host()
    machine = MACHINES.get(triple.split("-")[0])
    if machine is not None:
        code = Code(objects, lambda s: ready.get(s) or address_in_process(s), machine)
        if absent := [s for s in symbols if s not in code.symbols]:
            raise Error(f"the compiled code has no symbol {absent[0]!r} for others")
        return LoadedCode(code, {s: code.symbols[s] for s in symbols})
    engine = Engine(new_target_machine(triple, "", ""), triple, objects)
    return LoadedCode(engine, {s: engine.address(s) for s in symbols})


def address_in_process(symbol: str) -> int:
    """The address of a symbol that the process has."""
    if symbol == TABLE:
        return 0
    return ctypes.cast(getattr(ctypes.CDLL(None), symbol), ctypes.c_void_p).value or 0


@cache
def in_process(symbol: str) -> bool:
    """Whether the process has `symbol`, from the C library, libm or another library that is loaded for all."""
    if symbol == TABLE:  # made by the loader
        return True
    return hasattr(ctypes.CDLL(None), symbol)
