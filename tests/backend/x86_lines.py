"""Assembly as LLVM's assembler understands it."""

from __future__ import annotations

import struct
from collections.abc import Iterable

from hilo.backend import cpu
from hilo.backend.target import Target


def by_llvm(lines: Iterable[str]) -> bytes:
    """The code that LLVM makes of lines."""
    quoted = "\\0A".join(lines).replace('"', "\\22")
    return code_of(cpu.compile(f'module asm "{quoted}"\n', Target.named("x86-avx512"), 0))


def code_of(file: bytes) -> bytes:
    """The section .text of an object file."""
    start, entry, count, names = struct.unpack_from("<Q10xHHH", file, 0x28)
    sections = [struct.unpack_from("<IIQQQQIIQQ", file, start + i * entry) for i in range(count)]
    texts = sections[names][4]
    (text,) = (s for s in sections if file.startswith(b".text\0", texts + s[0]))
    return file[text[4] : text[4] + text[5]]
