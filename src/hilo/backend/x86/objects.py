"""ELF object files of one section of code. Imports nothing.

Constants lie behind the code, in the same section: it reaches them by distances that are known, so that only what is
called outside of the file leaves work to the loader.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Final

ABSOLUTE, PLT = 1, 4  # R_X86_64_64, R_X86_64_PLT32
_HEADER: Final = Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = Struct("<IIQQQQIIQQ")
_SYMBOL: Final = Struct("<IBBHQQ")
_RELOCATION: Final = Struct("<QIIq")
_IDENT: Final = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
_NAMES: Final = b"\0.rela.text\0.symtab\0.strtab\0.note.GNU-stack\0"  # .text is the end of .rela.text
_RELA, _TEXT, _SYMTAB, _STRTAB, _STACK = 1, 6, 12, 20, 28  # where names start
_FUNC, _GLOBAL = 2, 16

Function = tuple[str, int, int, bool]  # name, place, size, whether it is for this file alone
Outside = tuple[int, str, int, int]  # place in the code, symbol, kind of relocation, addend


def object_file(code: bytes | bytearray, align: int, functions: Sequence[Function],
                outside: Sequence[Outside]) -> bytes:  # fmt: skip
    """An object file for x86-64: `functions` of its `code`, and what that refers to `outside`."""
    ordered = sorted(functions, key=lambda f: not f[3])
    first = 1 + sum(f[3] for f in functions)
    names, symbols = bytearray(_NAMES), [_SYMBOL.pack(0, 0, 0, 0, 0, 0)]
    number: dict[str, int] = {}
    for name, start, size, private in ordered:
        number[name] = len(symbols)
        symbols.append(_SYMBOL.pack(len(names), _FUNC if private else _FUNC | _GLOBAL, 0, 1, start, size))
        names += name.encode() + b"\0"
    relocations = []
    for at, name, kind, addend in outside:
        if name not in number:
            number[name] = len(symbols)
            symbols.append(_SYMBOL.pack(len(names), _GLOBAL, 0, 0, 0, 0))
            names += name.encode() + b"\0"
        relocations.append(_RELOCATION.pack(at, kind, number[name], addend))
    padding = -len(code) % 8
    at_relocations = align + len(code) + padding
    at_symbols = at_relocations + len(relocations) * _RELOCATION.size
    at_names = at_symbols + len(symbols) * _SYMBOL.size
    end = at_names + len(names)
    headers = (
        bytes(_SECTION.size),
        _SECTION.pack(_TEXT, 1, 6, 0, align, len(code), 0, 0, align, 0),
        _SECTION.pack(_RELA, 4, 0x40, 0, at_relocations, at_symbols - at_relocations, 3, 1, 8, _RELOCATION.size),
        _SECTION.pack(_SYMTAB, 2, 0, 0, at_symbols, at_names - at_symbols, 4, first, 8, _SYMBOL.size),
        _SECTION.pack(_STRTAB, 3, 0, 0, at_names, len(names), 0, 0, 1, 0),
        _SECTION.pack(_STACK, 1, 0, 0, at_names, 0, 0, 0, 1, 0),
    )
    names += bytes(-end % 8)
    head = _HEADER.pack(_IDENT, 1, 62, 1, 0, 0, end + -end % 8, 0, _HEADER.size, 0, 0, _SECTION.size, len(headers), 4)
    return b"".join((head.ljust(align, b"\0"), code, bytes(padding), *relocations, *symbols, names, *headers))
