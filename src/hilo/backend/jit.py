"""Loading object code into this process and finding addresses in it. Imports this room.

What the code calls outside itself (memcpy, memset; fma on machines without it) is looked up in the process, where the
C library and its libm are. glibc's and musl's fma round correctly, so the result is the same with and without hardware.
"""

from __future__ import annotations

import ctypes
from _ctypes import dlsym
from collections.abc import Callable, Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from hilo.backend.loader import Code
from hilo.backend.relocations import MACHINES
from hilo.backend.target import Target
from hilo.errors import Error

TABLE: Final = "_GLOBAL_OFFSET_TABLE_"


class LoadedCode:
    """Object code in memory. `address` maps each symbol asked for to its address. The memory goes with this object."""

    def __init__(self, code: Code, address: dict[str, int]) -> None:
        self._code = code
        self.address = address

    def function(self, symbol: str, *argtypes: Any, restype: Any = None) -> Callable[..., Any]:
        """A ctypes function for `symbol`; it keeps the code alive."""
        f = ctypes.CFUNCTYPE(restype, *argtypes)(self.address[symbol])
        f.code = self  # type: ignore[attr-defined]
        return f


def load(objects: Iterable[bytes], symbols: Iterable[str],
         ready: Mapping[str, int] = MappingProxyType({})) -> LoadedCode:  # fmt: skip
    """Load object files together and find the addresses of `symbols`. `ready`: addresses of functions that they may
    call, besides what the process has for all.

    Raises `Error` for an object that is damaged, for a symbol that no object defines, and for one that the code needs
    and the process does not have (LLVM itself would end the process).
    """
    objects, symbols = list(objects), list(symbols)
    machine = MACHINES[Target.host().arch]
    unknown: list[str] = []

    def find(symbol: str) -> int:
        address = ready.get(symbol) or address_in_process(symbol)
        if address is None:
            unknown.append(symbol)
        return address or 0

    code = Code(objects, find, machine)
    _check(symbols, code.symbols, unknown)
    return LoadedCode(code, {s: code.symbols[s] for s in symbols})


def _check(symbols: Iterable[str], defined: Collection[str], unknown: Iterable[str]) -> None:
    """Raise what `load` raises for symbols that are asked for, and for those that nobody has."""
    if absent := [s for s in symbols if s not in defined]:
        raise Error(f"the compiled code has no symbol {absent[0]!r}")
    if missing := sorted({*unknown}):
        raise Error(f"the compiled code needs symbols that this process does not have: {', '.join(missing)}")


def address_in_process(symbol: str) -> int | None:
    """The address of a symbol that the process has, from the C library, libm or another library that is loaded for
    all; 0 for what the loader makes, None for what there is not."""
    if symbol == TABLE:
        return 0
    try:
        return dlsym(ctypes.pythonapi._handle, symbol)  # of the process as a whole
    except OSError:
        return None
