"""Reading the symbols of 64-bit little-endian ELF object files. Imports nothing of hilo but errors."""

from __future__ import annotations

import struct

from hilo.errors import Error

_SYMTAB = 2


def symbols(data: bytes) -> tuple[set[str], set[str]]:
    """The names that an object file defines (global or local), and those that it leaves to others."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise Error("not a 64-bit little-endian ELF object")
    defined: set[str] = set()
    missing: set[str] = set()
    try:
        start, entry, count = struct.unpack_from("<Q10xHH", data, 0x28)
        headers = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * entry) for i in range(count)]
        for h in headers:
            if h[1] != _SYMTAB:
                continue
            names = headers[h[6]][4]  # the linked string table's offset
            for at in range(h[4], h[4] + h[5], 24):
                name, _, _, section = struct.unpack_from("<IBBH", data, at)
                end = data.index(b"\0", names + name)
                text = data[names + name : end].decode()
                if text:
                    (defined if section else missing).add(text)
    except (struct.error, IndexError, ValueError) as e:
        raise Error(f"damaged object file: {e}") from None
    return defined, missing
