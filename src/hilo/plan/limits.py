"""What no machine can hold is refused before code is made for it. Imports ir."""

from __future__ import annotations

from typing import Final

from hilo.errors import Error
from hilo.ir.module import Function
from hilo.ir.types import TensorType, result_types

ADDRESSES: Final = 1 << 62  # bytes; offsets and counts in native code are 64-bit integers


def check_sizes(f: Function) -> None:
    """Raise `Error` for a value of more bytes than there are addresses, in `f` or in the body of one of its kernels."""
    fine: set[object] = set()
    pending = [f]
    while pending:
        for o in pending.pop().ops:
            body = o.attrs.get("body") if o.kind.full_name == "hilo.fusion" else None
            if isinstance(body, Function):
                pending.append(body)
            if o.type in fine:
                continue
            fine.add(o.type)
            for t in result_types(o.type):
                if isinstance(t, TensorType) and t.is_static and max(t.nbytes, t.size) >= ADDRESSES:
                    raise Error(f"a value of type {t} is larger than any memory", loc=o.loc, op=o.kind.full_name)


def check_arena(size: int) -> None:
    """Raise `Error` for temporaries that together take more bytes than there are addresses."""
    if size >= ADDRESSES:
        raise Error(f"the program's temporaries take {size:.3g} bytes: more than any memory")
