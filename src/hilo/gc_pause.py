"""Switching the cyclic garbage collector off while compiling: it costs two to four times the work itself. Imports
nothing of hilo."""

from __future__ import annotations

import gc
from _thread import allocate_lock  # `threading`, which takes half a millisecond to import, calls it Lock
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

MOST_UNSEEN: Final = 1_000_000  # objects that may live on without the collector having looked at them

_lock = allocate_lock()
_inside = 0
_was_enabled = False
_unseen = 0


@contextmanager
def gc_paused() -> Iterator[None]:
    """No cyclic collection inside, in whatever thread; on again when the last user leaves, if it was on before the
    first."""
    global _inside, _was_enabled
    with _lock:
        if _inside == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _was_enabled:
                _settle()
                gc.enable()


def _settle() -> None:
    """Spare the collector a walk through all that was made meanwhile, which would be its next step: what is still
    there are modules and programs, which stay. It goes to the oldest generation, and is looked at with that one: by
    Python's own rules, and here when there is much of it. Objects that somebody froze stay as they are."""
    global _unseen
    _unseen += gc.get_count()[0]
    if _unseen > MOST_UNSEEN:
        _unseen = 0
        gc.collect()
    elif not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
