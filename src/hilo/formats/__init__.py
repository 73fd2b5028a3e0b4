"""File formats of programs: recognized by content, read into modules.

Imports ir and ops; each format is loaded when used.
"""

from __future__ import annotations

import os
import re
from typing import Final

from hilo.errors import Error
from hilo.ir.module import Module

_BYTECODE: Final = b"ML\xefR"
_LOOK: Final = 1 << 16  # characters of a text that are looked at
_WRAPPERS: Final = 3  # messages in each other, the innermost being a module
_NUMBER: Final = 10  # bytes of a number in a message
_BLANK_OR_COMMENT: Final = rb"(?:\s++|//[^\n]*+(?:\n|\Z))*+"


def sniff(data: bytes) -> str:
    """The format of content that begins like this: "mlir_text", "bytecode", "hlo_text", "hlo_proto" or "unknown"."""
    if data.startswith(_BYTECODE):
        return "bytecode"
    if data[:1] in (b"\n", b"\x12") and _is_module_message(data[:_LOOK]):  # a field's number may look like a line's end
        return "hlo_proto"
    start = data.lstrip()
    if start.startswith(b"//") and (m := re.match(_BLANK_OR_COMMENT, start)):
        start = start[m.end() :]
    if _begins(start, b"HloModule"):
        return "hlo_text"
    if _begins(start, b"module", b"builtin.module", b"func") or start.startswith((b"{-#", b'"builtin.', b'"func.')):
        return "mlir_text"
    alias = start[:1] in (b"#", b"!") and (start[1:2].isalnum() or start[1:2] in (b"_", b"$"))
    return "mlir_text" if alias else "unknown"


def _begins(data: bytes, *words: bytes) -> bool:
    """Whether `data` begins with one of the words, and there is no more to that word."""
    ends = [data[len(w) : len(w) + 1] for w in words if data.startswith(w)]
    return any(not end.isalnum() and end != b"_" for end in ends)


def _is_module_message(data: bytes) -> bool:
    """Whether a file that begins like this holds a module as a message: its name, that of its entry, computations."""
    for _ in range(_WRAPPERS):
        name, entry = _first_field(data, 0x0A), _first_field(data, 0x12)
        if entry is not None:  # a module without a name
            return data[entry[1] : entry[1] + 1] == b"\x1a"
        if name is None:
            return False
        start, end = name
        if data[end : end + 1] in (b"\x12", b"\x1a") and _is_name(data[start:end]):
            return True
        data = data[start:]
    return False


def _first_field(data: bytes, tag: int) -> tuple[int, int] | None:
    """Where the bytes of the first field are, if it has this tag."""
    if data[:1] != bytes((tag,)):
        return None
    size, at = 0, 1
    while at < min(len(data), _NUMBER):
        byte = data[at]
        size |= (byte & 127) << 7 * (at - 1)
        at += 1
        if byte < 128:
            return at, at + size
    return None


def _is_name(data: bytes) -> bool:
    return all(b >= 32 and b != 127 for b in data)


def load(path: str | os.PathLike[str]) -> Module:
    """The module in the file `path`. Raises `Error` for a file that cannot be read or holds no program."""
    return parse(read(path), os.fspath(path))


def read(path: str | os.PathLike[str]) -> bytes:
    """The content of a file. Raises `Error` if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except (OSError, ValueError) as e:  # ValueError: a name that no file can have
        raise Error(f"cannot read the file: {getattr(e, 'strerror', None) or e}", loc=os.fspath(path)) from None


def parse(program: str | bytes, filename: str = "<text>") -> Module:
    """The module in a text or a file's bytes, whose format is found by its content; `filename` is for messages."""
    start = program if isinstance(program, bytes) else program[:_LOOK].encode(errors="replace")
    kind = sniff(start)
    if kind == "bytecode":
        from hilo.formats.bytecode import parse as parse_bytecode

        assert isinstance(program, bytes)  # no text's UTF-8 starts like this
        return parse_bytecode(program, filename)
    if kind == "hlo_proto":
        from hilo.formats.hlo_text import parse_message

        return parse_message(program if isinstance(program, bytes) else program.encode(errors="replace"), filename)
    if kind == "hlo_text":
        from hilo.formats.hlo_text import parse as parse_hlo

        return parse_hlo(program, filename)
    if not program.strip():
        raise Error("the file is empty", loc=filename)
    if kind == "unknown" and b"\0" in start[:_LOOK]:
        raise Error("this is no program of a known format", loc=filename)
    from hilo.formats.mlir_text import parse as parse_mlir

    return parse_mlir(program, filename)
