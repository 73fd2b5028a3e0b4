"""A program as data: its code, its constants, and what the runtime must know of it. Imports backend, ir, record.

What `hilo.kept` puts into the cache. Programs that need more than that (calls out of them, run-time sizes, counters)
have no image.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hilo.ir.types import TensorType
from hilo.record import field, record
from hilo.runtime.executable import Executable

if TYPE_CHECKING:
    from hilo.runtime import _native

ALIGN = 64  # bytes, of constants


@record(eq=False)
class Image:
    """`objects` are object files that define `entry`; `aliases` the (result, argument) pairs that may be one place;
    `cost` the estimated nanoseconds of a call, `forms` what a call may bring (argument, bytes, layout in numbers)."""

    name: str
    arg_types: tuple[TensorType, ...]
    result_types: tuple[TensorType, ...]
    objects: list[bytes]
    constants: list[np.ndarray]
    arena_size: int
    aliases: list[tuple[int, int]]
    cost: float
    release_gil: bool
    forms: list[tuple[int, int, tuple[int, ...]]] = field(default_factory=list)

    @property
    def nbytes(self) -> int:
        return sum(map(len, self.objects)) + sum(c.nbytes for c in self.constants)

    def data(self) -> bytes:
        """The image as bytes for `read`: to be trusted as much as the code in it."""
        return pickle.dumps(vars(self), protocol=5)

    @staticmethod
    def read(data: bytes) -> Image | None:
        """The image in `data`; None if it is none, or one of another version of anything in it."""
        try:
            return Image(**pickle.loads(data))
        except Exception:  # whatever pickle and the classes that it names may raise
            return None

    def executable(self, threads: int, again: Callable[[], Executable]) -> Executable:
        """The program, loaded. `again` compiles it anew, when somebody asks for its texts or where its memory goes.

        Raises `Error` for code that cannot be loaded.
        """
        return Executable(
            self.native(threads),
            name=self.name,
            arg_types=self.arg_types,
            result_types=self.result_types,
            memory=lambda: again().memory(),
            texts=lambda phase: again().inspect(phase),
            cost=self.cost,
        )

    def native(self, threads: int) -> _native.Program:
        """The program's native part, loaded. Raises `Error` for code that cannot be loaded."""
        from hilo.backend import jit
        from hilo.runtime import _native

        loaded = jit.load(self.objects, ["entry"], _native.ready())
        return _native.Program(
            loaded.address["entry"],
            [(t.dtype.np, t.shape) for t in self.arg_types],
            [(t.dtype.np, t.shape) for t in self.result_types],
            name=self.name,
            arena_size=self.arena_size,
            constants=[_aligned(c) for c in self.constants],
            threads=threads,
            aliases=self.aliases,
            release_gil=self.release_gil,
            keep=loaded,
            forms=self.forms,
        )


def _aligned(a: np.ndarray) -> np.ndarray:
    """`a`, dense and aligned as kernels may take constants to be."""
    room = np.empty(a.nbytes + ALIGN, np.uint8)
    start = -room.ctypes.data % ALIGN
    out = room[start : start + a.nbytes].view(a.dtype).reshape(a.shape)
    out[...] = a
    return out
