"""hilo as a plugin of PJRT, the interface through which JAX and others use compilers: what happens at compile time.

The native library (runtime/native/pjrt) calls `compiler.compile` and `compiler.load`; running programs needs no Python.
Knows no framework. Imports kept, pipeline and what is below; nothing at all when it is imported itself.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from hilo.errors import Error


def library_path() -> str:
    """The path of the library that hosts of PJRT load (it exports `GetPjrtApi`). It finds the Python of the process, or
    starts the one that hilo is installed in. Raises `Error` if it was not built."""
    path = Path(__file__).with_name("hilo_pjrt.so")
    if not path.exists():
        raise Error(f"{path} was not built: install hilo with a C compiler at hand (pip install .)")
    return str(path)


@cache
def table() -> int:
    """The address of PJRT's table of functions. When Python ends, what is in flight is waited for before: a thread that
    calls Python functions of a program, or gives one up, must not meet an interpreter that is gone."""
    import atexit

    from hilo.runtime import _native

    atexit.register(_native.pjrt_end)
    return _native.pjrt_api()
