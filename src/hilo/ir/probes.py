"""What `interpreter.probe` writes down of values while a program is interpreted. Imports errors, ir.dtypes.

A directory gets a file `probe<n>.npy` for each value, and `index.csv` with a line `id,type,file` for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from os import PathLike
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np

from hilo.errors import Error
from hilo.ir.dtypes import from_mlir, from_numpy

INDEX: Final = "index.csv"
_ELEMENT: Final = re.compile(r"tensor<(?:\d+x)*(.+)>")


class Probes:
    """The values of probes by id, in the order in which they came. `directory`: written to files there too."""

    def __init__(self, directory: str | PathLike[str] | None = None) -> None:
        if not isinstance(directory, str | PathLike | None):
            raise Error(f"the directory of probes is a text or a Path, not {directory!r}")
        self.directory = Path(directory) if directory is not None else None
        self.values: dict[str, list[np.ndarray]] = {}
        self._count = 0
        self._lock = Lock()
        if self.directory is not None and not self.directory.is_dir():
            raise Error(f"there is no directory {self.directory} for probes")

    def record(self, probe_id: str, value: np.ndarray) -> None:
        """Keep a value of the probe `probe_id`."""
        with self._lock:
            self.values.setdefault(probe_id, []).append(value)
            if self.directory is not None:
                self._write(self.directory, probe_id, value)

    def _write(self, directory: Path, probe_id: str, value: np.ndarray) -> None:
        self._count += 1
        shape = "".join(f"{n}x" for n in value.shape)
        type_text = f"tensor<{shape}{from_numpy(value.dtype).mlir}>"
        path = directory / f"probe{self._count}.npy"
        try:
            own = value.dtype.isbuiltin == 1  # files know numpy's own types; others are as many bytes
            np.save(path, value if own else value.view(f"V{value.dtype.itemsize}"), allow_pickle=False)
            import csv

            with (directory / INDEX).open("a", encoding="utf-8", newline="") as f:
                csv.writer(f, lineterminator="\n").writerow((probe_id, type_text, path))
        except OSError as e:
            raise Error(f"a probe cannot be written: {e}") from None

    def value(self, probe_id: str, iteration: int = 0) -> np.ndarray:
        """Value number `iteration` of a probe; `Error` if it did not come."""
        found = self.values.get(probe_id, [])
        if not 0 <= iteration < len(found):
            raise Error(f"probe {probe_id!r} has {len(found)} values, so that there is no number {iteration}")
        return found[iteration]


def read(directory: Path, probe_id: str, iteration: int = 0) -> np.ndarray:
    """Value number `iteration` of a probe out of the files in `directory`; `Error` if it is not there."""
    import csv

    try:
        with (directory / INDEX).open(encoding="utf-8", newline="") as f:
            rows = [row for row in csv.reader(f) if row[0] == probe_id]
    except FileNotFoundError:
        rows = []
    if not 0 <= iteration < len(rows):
        raise Error(f"probe {probe_id!r} has written {len(rows)} values, so that there is no number {iteration}")
    _, type_text, path = rows[iteration]
    element = from_mlir(_ELEMENT.sub(r"\1", type_text))
    assert element is not None, type_text
    value = np.load(path, allow_pickle=False)
    return value if value.dtype == element.np else value.view(element.np)


_PROBES: ContextVar[Probes | None] = ContextVar("hilo_probes", default=None)


def current() -> Probes | None:
    """Where probes write; None: nowhere."""
    return _PROBES.get()


@contextmanager
def recording(probes: Probes | None) -> Iterator[None]:
    """Probes write to `probes` inside of the `with` block."""
    token = _PROBES.set(probes)
    try:
        yield
    finally:
        _PROBES.reset(token)
