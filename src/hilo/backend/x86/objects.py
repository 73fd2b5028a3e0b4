"""ELF object files of one section of code. Imports record alone.

Constants lie behind the code, in the same section: it reaches them by distances that are known, so that only what is
called outside of the file leaves work to the loader.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

from hilo.record import record

ABSOLUTE, PLT = 1, 4  # R_X86_64_64, R_X86_64_PLT32
_HEADER: Final = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_RELOCATION: Final = struct.Struct("<QIIq")
_IDENT: Final = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
_NAMES: Final = b"\0.text\0.rela.text\0.symtab\0.strtab\0.note.GNU-stack\0"
_FUNC, _GLOBAL = 2, 16


@record
class Symbol:
    """A function: where its code is. A private one is for this file alone."""

    name: str
    start: int
    size: int
    private: bool


def object_file(code: bytes, align: int, functions: Sequence[Symbol],
                outside: Sequence[tuple[int, str, int, int]]) -> bytes:  # fmt: skip
    """An object file for x86-64.

    outside   place in the code, symbol, kind of relocation, addend
    """
    ordered = sorted(functions, key=lambda f: not f.private)
    first = 1 + sum(f.private for f in functions)
    names, symbols = bytearray(_NAMES), [_SYMBOL.pack(0, 0, 0, 0, 0, 0)]
    for f in ordered:
        symbols.append(_SYMBOL.pack(len(names), _FUNC if f.private else _FUNC | _GLOBAL, 0, 1, f.start, f.size))
        names += f.name.encode() + b"\0"
    number: dict[str, int] = {f.name: i for i, f in enumerate(ordered, 1)}
    relocations = []
    for at, name, kind, addend in outside:
        if name not in number:
            number[name] = len(symbols)
            symbols.append(_SYMBOL.pack(len(names), _GLOBAL, 0, 0, 0, 0))
            names += name.encode() + b"\0"
        relocations.append(_RELOCATION.pack(at, kind, number[name], addend))
    parts = [code, b"".join(relocations), b"".join(symbols), bytes(names)]
    at, body, places = align, bytearray(), []
    for part in parts:
        places.append(at + len(body))
        body += part
        body += bytes(-len(body) % 8)
    texts = [_NAMES.index(n) for n in (b".text", b".rela.text", b".symtab", b".strtab", b".note.GNU-stack")]
    sizes = [len(p) for p in parts]
    headers = [
        bytes(_SECTION.size),
        _SECTION.pack(texts[0], 1, 6, 0, places[0], sizes[0], 0, 0, align, 0),
        _SECTION.pack(texts[1], 4, 0x40, 0, places[1], sizes[1], 3, 1, 8, _RELOCATION.size),
        _SECTION.pack(texts[2], 2, 0, 0, places[2], sizes[2], 4, first, 8, _SYMBOL.size),
        _SECTION.pack(texts[3], 3, 0, 0, places[3], sizes[3], 0, 0, 1, 0),
        _SECTION.pack(texts[4], 1, 0, 0, places[3], 0, 0, 0, 1, 0),
    ]
    head = _HEADER.pack(_IDENT, 1, 62, 1, 0, 0, align + len(body), 0, 64, 0, 0, 64, len(headers), 4)
    return b"".join([head.ljust(align, b"\0"), body, *headers])
