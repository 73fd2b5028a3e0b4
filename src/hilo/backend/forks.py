"""Forks wait for compilations: LLVM holds locks of its own while it makes code, and Python one for each module that is
being imported. A child that is made meanwhile would wait for ever for threads that it does not have.

Imports nothing of hilo. What forks without Python (`os.fork`, multiprocessing) knowing of it is not seen.
"""

from __future__ import annotations

import os
from _thread import LockType, RLock, allocate_lock, get_ident

_gate = RLock()  # held while a process forks, and for moments
_busy: dict[int, LockType] = {}  # by thread: held while it compiles


class Unforked:
    """A block during which no other thread forks this process. Blocks may lie inside of each other."""

    _lock: LockType | None = None

    def __enter__(self) -> None:
        if get_ident() in _busy:  # the outer block does it; to ask at the gate could be to wait for who waits for it
            return
        with _gate:
            self._lock = allocate_lock()
            self._lock.acquire()
            _busy[get_ident()] = self._lock

    def __exit__(self, *error: object) -> None:
        if self._lock is not None:
            _busy.pop(get_ident(), None)
            self._lock.release()


def _before() -> None:
    _gate.acquire()
    for thread, lock in list(_busy.items()):
        if thread != get_ident():
            with lock:
                pass


def _in_child() -> None:
    _busy.clear()  # those threads are not here
    _gate.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_gate.release, after_in_child=_in_child)
