"""Programs made of hand-written entry functions (entries.c), compiled once per test run."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable

import pytest
from runtime_entries import HERE, NATIVE, c_compiler

from hilo.runtime import _native


@pytest.fixture(scope="session")
def entries(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The entry functions as a loaded library."""
    compiler = c_compiler()
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("entries") / "entries.so"
    flags = ["-std=gnu11", "-O1", "-shared", "-fPIC", "-pthread", f"-I{NATIVE}"]
    subprocess.run([compiler, *flags, str(HERE / "entries.c"), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


@pytest.fixture
def program(entries: ctypes.CDLL) -> Callable[..., _native.Program]:
    """`program(entry_name, argument_specs, result_specs, **options)`."""

    def make(entry: str, arguments: list, results: list, **options: object) -> _native.Program:
        address = ctypes.cast(getattr(entries, entry), ctypes.c_void_p).value
        assert address is not None
        return _native.Program(address, arguments, results, **{"name": entry, **options})  # type: ignore[arg-type]

    return make
