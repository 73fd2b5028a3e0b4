"""Small files of the system, such as those in /proc and /sys. Imports nothing of hilo.

A first compilation reads some dozens of them; opening one as text takes five times as long as reading it.
"""

from __future__ import annotations

import os


def text(path: str) -> str:
    """What a file says, without the white space around it; empty if it cannot be read."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    data = b""
    try:
        while more := os.read(file, 1 << 16):
            data += more
        return data.decode().strip()
    except (OSError, UnicodeDecodeError):
        return ""
    finally:
        os.close(file)
