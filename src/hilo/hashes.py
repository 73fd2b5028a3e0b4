"""SHA-256 without `hashlib`, which loads OpenSSL: that takes longer than to compile a small program. Imports nothing
of hilo."""

from __future__ import annotations

import sys
from typing import Any, Final

try:  # Python's own code for it, found as its module `random` finds it
    from _sha2 import sha256 as _sha256  # type: ignore[import-not-found]
except ImportError:
    try:
        from _sha256 import sha256 as _sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256 as _sha256

LARGE: Final = 1 << 19  # bytes for which OpenSSL, several times as fast, is worth loading


def sha256(data: bytes = b"") -> Any:
    """The hash of `data`, with the methods of such objects of `hashlib` (`update`, `hexdigest` ...)."""
    if len(data) < LARGE and "hashlib" not in sys.modules:
        return _sha256(data)
    from hashlib import sha256

    return sha256(data)
