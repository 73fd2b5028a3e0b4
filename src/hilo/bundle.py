"""Modules of hilo from one file. Imports nothing of hilo.

A process that compiles one small program imports a hundred modules. To look each of them up, and to read its bytecode
from a file of its own, takes longer than to compile the program (6 ms of 38); one file with the bytecode of them all is
mapped once. It lies beside Python's own files of bytecode (`__pycache__`), and is trusted as they are: it counts for
the Python that wrote it, an entry while time and size of the module's source are those that it was made of. What is not
in it Python imports as ever. A process that has missed some modules writes it anew when it ends, unless Python is told
to write no bytecode.
"""

from __future__ import annotations

import atexit
import marshal
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from mmap import ACCESS_READ, mmap
from types import CodeType, ModuleType
from typing import Any, Final

FEW: Final = 8  # modules that are imported sooner than the file is written
_MAGIC: Final = b"hilo modules 2 %08x\n" % sys.hexversion
_HEADER: Final = 16  # bytes of a file of bytecode before the code: magic, flags, time and size of the source


class Loader(SourceFileLoader):
    """A loader as Python's own, but for where the bytecode comes from."""

    def __init__(self, name: str, path: str, code: memoryview) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return marshal.loads(self._code)


class Bundle:
    """A finder of the modules of package `name`, in `folder`, whose bytecode is in `file`; `tail` is what Python adds
    to the names of files of bytecode (".cpython-311.pyc")."""

    def __init__(self, name: str, folder: str, file: str, tail: str) -> None:
        self.name, self.folder, self.file, self._tail = name, folder, file, tail
        #: Begin and end of a module's code, is it a package, time and size of its source.
        self._entries: dict[str, tuple[int, int, bool, int, int]] = {}
        self._data = memoryview(b"")
        try:
            with open(file, "rb", buffering=0) as opened:
                data = memoryview(mmap(opened.fileno(), 0, access=ACCESS_READ))
            start = len(_MAGIC) + 8
            if data[: len(_MAGIC)] == _MAGIC:
                size = int.from_bytes(data[len(_MAGIC) : start], "little")
                self._entries = marshal.loads(data[start : start + size])
                self._data = data[start + size :]
        except (OSError, ValueError, EOFError, TypeError):
            pass  # there is none, or it is empty or damaged

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> ModuleSpec | None:  # fmt: skip
        """The module's specification, as Python's own finders make it; None for what is not in the file."""
        entry = self._entries.get(fullname)
        if entry is None:
            return None
        begin, end, is_package, time, size = entry
        place = self.folder + fullname[len(self.name) :].replace(".", os.sep)
        folder, _, stem = (place, "", "__init__") if is_package else place.rpartition(os.sep)
        source = f"{folder}{os.sep}{stem}.py"
        if _stamp(source) != (time, size):
            return None
        spec = ModuleSpec(fullname, Loader(fullname, source, self._data[begin:end]), origin=source)
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [folder]
        if sys.pycache_prefix is None:
            spec.cached = f"{folder}{os.sep}__pycache__{os.sep}{stem}{self._tail}"
        return spec

    def save(self) -> None:
        """Write the file anew if this process has imported more than a `FEW` modules that are not in it. Whatever is
        in the way leaves it as it is."""
        missed = [m for n, m in list(sys.modules.items()) if n.startswith(f"{self.name}.") and _is_python(m)]
        if len(missed) <= FEW:
            return
        new = {m.__name__: found for m in missed if (found := _bytecode(m)) is not None}
        with suppress(OSError):
            if len(new) > FEW:
                self._write({**self._kept(), **new})

    def _kept(self) -> dict[str, tuple[bytes, bool, int, int]]:
        """What is in the file and still true."""
        return {name: (bytes(self._data[begin:end]), is_package, time, size)
                for name, (begin, end, is_package, time, size) in self._entries.items()
                if self.find_spec(name) is not None}  # fmt: skip

    def _write(self, found: dict[str, tuple[bytes, bool, int, int]]) -> None:
        entries, at = {}, 0
        for name, (code, is_package, time, size) in found.items():
            entries[name] = at, at + len(code), is_package, time, size
            at += len(code)
        head = marshal.dumps(entries)
        temporary = f"{self.file}.{os.getpid()}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(b"".join([_MAGIC, len(head).to_bytes(8, "little"), head, *(c for c, *_ in found.values())]))
            os.replace(temporary, self.file)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise


def install(package: ModuleType) -> None:
    """Let the modules of a package come from its file, where Python keeps bytecode for it."""
    cached, source = getattr(package, "__cached__", None), getattr(package, "__file__", None)
    if not cached or not source or "__init__" not in cached:
        return
    head, _, tail = cached.rpartition("__init__")
    file = f"{head}modules{tail.removesuffix('.pyc')}.all"
    bundle = Bundle(package.__name__, os.path.dirname(source), file, tail)
    sys.meta_path.insert(0, bundle)
    if not sys.dont_write_bytecode and os.access(head, os.W_OK):
        atexit.register(bundle.save)


def _stamp(source: str) -> tuple[int, int] | None:
    """Time and size of a source, as files of bytecode have them."""
    try:
        status = os.stat(source)
    except OSError:
        return None
    return int(status.st_mtime) & 0xFFFFFFFF, status.st_size & 0xFFFFFFFF


def _is_python(module: Any) -> bool:
    """Whether Python has found a module itself, as source."""
    return type(getattr(getattr(module, "__spec__", None), "loader", None)) is SourceFileLoader


def _bytecode(module: ModuleType) -> tuple[bytes, bool, int, int] | None:
    """A module's bytecode, is it a package, time and size of the source that it was made of; None if Python keeps none,
    or keeps it by the source's hash."""
    try:
        with open(module.__cached__, "rb") as file:
            data = file.read()
    except OSError:
        return None
    flags, time, size = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8, 12))
    return None if flags else (data[_HEADER:], hasattr(module, "__path__"), time, size)
