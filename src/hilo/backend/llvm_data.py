"""Arrays as data of an LLVM module. Imports backend.llvm_text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from hilo.backend.llvm_text import symbol

#: How a byte is written in a string of LLVM's.
_BYTES: Final = np.array([f"\\{i:02X}" for i in range(256)], "S3")


def arrays(name: str, values: Sequence[np.ndarray]) -> str:
    """The table `name` of pointers to `values` (each at an address that is a multiple of 64), as LLVM IR text."""
    if not values:
        return ""
    lines = []
    for i, v in enumerate(values):
        data = np.ascontiguousarray(v).reshape(-1).view(np.uint8)
        content = 'c"' + _BYTES[data].tobytes().decode() + '"' if data.any() else "zeroinitializer"
        lines.append(f"{symbol(f'{name}.{i}')} = internal constant [{data.size} x i8] {content}, align 64")
    pointers = ", ".join(f"ptr {symbol(f'{name}.{i}')}" for i in range(len(values)))
    lines.append(f"{symbol(name)} = constant [{len(values)} x ptr] [{pointers}], align 8")
    return "\n".join(lines) + "\n"
