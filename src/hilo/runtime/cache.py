"""The cache of compiled code on disk: content-addressed, safe with several processes, and never a reason to fail.

    key = Key.of(llvm_text, cpu=..., features=..., llvm=..., options=...)
    data = cache.get(key)
    if data is None:
        data = compile(...)
        cache.put(key, data)

An entry is one file, named by the hash of the text and the hash of its circumstances, so that a miss can be explained
by looking at the text's other entries. Whatever is wrong with the directory or a file makes a miss, not an error.
Imports hashes, record and runtime.stores.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
import warnings
from _thread import allocate_lock
from collections.abc import Iterator
from itertools import count
from typing import TYPE_CHECKING

from hilo.hashes import sha256
from hilo.record import record
from hilo.runtime.stores import default_directory

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 2  # raise it when the meaning of entries changes
_MAGIC = b"hilo cache\n"
_HASH = 64  # characters of a hash
_SUFFIX = ".entry"
_TEMPORARY = ".tmp"
_STALE = 3600  # seconds after which a temporary file is a leftover of a process that died
_NUMBERS = count()  # of temporary files
_EVICTED_KEPT = 4096  # names of evicted entries that are remembered, to explain misses


@record(frozen=True)
class Key:
    """What compiled code depends on: a text, and named circumstances (CPU, features, LLVM version, options)."""

    text_hash: str
    circumstances: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, text: str | bytes, **circumstances: str) -> Key:
        data = text.encode() if isinstance(text, str) else text
        return cls(sha256(data).hexdigest(), tuple(sorted(circumstances.items())))

    @property
    def line(self) -> bytes:
        """The key in one line, which entries begin with: the text's hash, and `name=value` of each circumstance."""
        parts = (self.text_hash, *map("=".join, self.circumstances))
        return b"\0".join([p.encode("unicode_escape") for p in parts]) + b"\n"

    @property
    def name(self) -> str:
        """The entry's file name."""
        return f"{self.text_hash[:40]}-{sha256(b'%d ' % FORMAT + self.line).hexdigest()[:24]}{_SUFFIX}"


class Cache:
    """Compiled code in `directory` ("": the default one), at most `limit` bytes of it; what was not used for
    longest goes first.

    `enabled=False`: every `get` is a miss and `put` does nothing. `explain=True` says on stderr why a `get` missed.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] = "",
        *,
        enabled: bool = True,
        explain: bool = False,
        limit: int = 1 << 30,
    ) -> None:
        self.limit = limit
        self._explain = explain
        self._off = "" if enabled else "it is switched off"
        self._lock = allocate_lock()
        self._size: int | None = None  # bytes on disk, once counted
        self._warned = False
        root = os.path.expanduser(directory) if directory else default_directory()
        if enabled and root is None:
            self._off = "there is no home directory; set HILO_CACHE_DIR"
        self._folder = os.path.join(root or "", f"v{FORMAT}")
        if not self._off:
            self._off = self._why_unusable()
            if self._off:
                self._warn(self._off)

    @property
    def directory(self) -> Path:
        """Where the entries are."""
        from pathlib import Path

        return Path(self._folder)

    @property
    def is_silent(self) -> bool:
        """Whether it keeps nothing and says nothing of what it misses."""
        return bool(self._off) and not self._explain

    def get(self, key: Key) -> bytes | None:
        """The data put for `key`, or None."""
        if self._off:
            return self._miss(key, self._off)
        path = os.path.join(self._folder, key.name)
        try:
            raw = _read(path)
        except FileNotFoundError:
            return self._miss(key, self._why_missing(key) if self._explain else "")
        except OSError as error:
            return self._miss(key, f"it cannot be read: {error}")
        data = _unpack(raw, key)
        if data is None:
            with contextlib.suppress(OSError):
                os.unlink(path)
            return self._miss(key, "the entry was damaged and is dropped")
        with contextlib.suppress(OSError):
            os.utime(path)  # used now
        return data

    def put(self, key: Key, data: bytes) -> None:
        """Keep `data` for `key`. Another process may do the same at the same time: one of both wins, whole."""
        if self._off:
            return
        raw = _pack(data, key)
        if len(raw) > self.limit:
            return
        try:
            self._write(key.name, raw)
        except OSError as error:
            self._warn(f"cannot write to {self._folder}: {error.strerror or error}")
            return
        with self._lock:
            if self._size is not None:
                self._size += len(raw)
            if self._size is None or self._size > self.limit:
                self._size = self._prune(key.name)

    def _write(self, name: str, raw: bytes) -> None:
        handle, temporary = self._new_file(name)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(raw)
            os.replace(temporary, os.path.join(self._folder, name))
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise

    def _new_file(self, name: str) -> tuple[int, str]:
        """A file that nobody else has, open for writing, and its path."""
        while True:
            unique = f"{name[:16]}-{os.getpid()}-{time.time_ns():x}-{next(_NUMBERS)}{_TEMPORARY}"
            path = os.path.join(self._folder, unique)
            try:
                return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), path
            except FileExistsError:
                continue
            except FileNotFoundError:
                os.makedirs(self._folder, mode=0o700, exist_ok=True)

    def _entries(self) -> Iterator[tuple[float, int, str]]:
        """(time of last use, size, name) of each entry; leftovers of dead processes are removed on the way."""
        with os.scandir(self._folder) as files:
            for file in files:
                with contextlib.suppress(OSError):
                    status = file.stat()
                    if file.name.endswith(_SUFFIX):
                        yield status.st_mtime, status.st_size, file.name
                    elif file.name.endswith(_TEMPORARY) and time.time() - status.st_mtime > _STALE:
                        os.unlink(file.path)

    def _prune(self, newest: str) -> int:
        """Bring the directory below the limit, sparing `newest`; returns the bytes that are left."""
        try:
            entries = sorted(self._entries())
        except OSError:
            return 0
        total = sum(size for _, size, _ in entries)
        if total <= self.limit:
            return total
        evicted = []
        for _, size, name in entries:
            if total <= self.limit * 9 // 10:  # some room, so that not every put has to prune
                break
            if name == newest:
                continue
            with contextlib.suppress(FileNotFoundError, PermissionError):
                os.unlink(os.path.join(self._folder, name))
                evicted.append(name)
            total -= size
        names = (self._evicted() + evicted)[-_EVICTED_KEPT:]
        with contextlib.suppress(OSError):
            self._write("evicted", "\n".join(names).encode())
        return total

    def _evicted(self) -> list[str]:
        try:
            with open(os.path.join(self._folder, "evicted")) as file:
                return file.read().split()
        except (OSError, UnicodeDecodeError):
            return []

    def _why_unusable(self) -> str:
        """Why code from the directory must not be run, or "". A directory that is not there yet is fine."""
        try:
            status = os.stat(self._folder)
        except FileNotFoundError:
            return ""
        except (OSError, ValueError) as error:  # ValueError: a name that no file can have
            return f"{self._folder}: {getattr(error, 'strerror', None) or error}"
        if hasattr(os, "getuid") and status.st_uid not in (os.getuid(), 0):
            return f"{self._folder} belongs to another user"
        if os.name == "posix" and status.st_mode & 0o002:
            return f"anybody may write to {self._folder}"
        return ""

    def _why_missing(self, key: Key) -> str:
        if key.name in self._evicted():
            return "the entry was evicted to make room"
        given = dict(key.circumstances)
        best: list[str] | None = None
        for path in sorted(self.directory.glob(f"{key.text_hash[:40]}-*{_SUFFIX}")):
            other = _circumstances(path)
            names = sorted(given.keys() | other.keys())
            differences = [f"other {n}: {_difference(other.get(n, ''), given.get(n, ''))}" for n in names
                           if other.get(n) != given.get(n)]  # fmt: skip
            if best is None or len(differences) < len(best):
                best = differences
        return "; ".join(best) if best else "new text"

    def _miss(self, key: Key, why: str) -> None:
        if self._explain:
            print(f"hilo cache: miss {key.text_hash[:12]}: {why}", file=sys.stderr)

    def _warn(self, why: str) -> None:
        if not self._warned:
            self._warned = True
            warnings.warn(f"hilo works without its cache of compiled code: {why}", RuntimeWarning, stacklevel=3)


def _read(path: str | Path) -> bytes:
    """The bytes of a plain file. `OSError` for anything else: opening a pipe must not wait for its writer."""
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{path} is no plain file")
        return file.read()


def _pack(data: bytes, key: Key) -> bytes:
    return b"".join((_MAGIC, key.line, sha256(data).hexdigest().encode(), b"\n", data))


def _unpack(raw: bytes, key: Key) -> bytes | None:
    """The data of an entry's file, or None if it is damaged or not that of `key`."""
    head = _MAGIC + key.line
    start = len(head) + _HASH + 1
    data = raw[start:]
    whole = raw[len(head) : start] == sha256(data).hexdigest().encode() + b"\n"
    return data if whole and raw.startswith(head) else None


def _circumstances(path: Path) -> dict[str, str]:
    """Those of an entry's file; none if it is damaged."""
    try:
        raw = _read(path)
        line = raw[len(_MAGIC) :].partition(b"\n")[0] if raw.startswith(_MAGIC) else b""
        pairs = [part.decode("unicode_escape").partition("=") for part in line.split(b"\0")[1:]]
    except (OSError, UnicodeDecodeError):
        return {}
    return {name: value for name, _, value in pairs}


def _difference(before: str, now: str) -> str:
    """What changed from one list of features (or any text) to another, in few words."""
    if "," in before or "," in now:
        old, new = set(before.split(",")), set(now.split(","))
        more, less = ",".join(sorted(new - old)), ",".join(sorted(old - new))
        return f"now also {more or 'nothing'}, no longer {less or 'nothing'}"
    return f"was {before[:60] or 'unset'}, is {now[:60] or 'unset'}"
