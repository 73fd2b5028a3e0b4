"""Which queues connect a program with its host while it runs, or is compiled. Imports errors alone: every compilation
comes by here, few programs have queues (`ir.host`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

from hilo.errors import Unsupported

if TYPE_CHECKING:
    from hilo.ir.host import HostQueues

_QUEUES: Final[ContextVar[HostQueues | None]] = ContextVar("hilo_host_queues", default=None)


def connection() -> HostQueues | None:
    """The queues of the program that is running, or being compiled; None: it has none."""
    return _QUEUES.get()


def queues() -> HostQueues:
    """The queues of the program that is running. Raises `Unsupported` if it has none."""
    found = connection()
    if found is None:
        raise Unsupported("there is no queue to exchange data with the host: give the run a hilo.HostQueues (host=...)")
    return found


@contextmanager
def connected(host: HostQueues | None) -> Iterator[None]:
    """Programs that are interpreted, or compiled, inside of the `with` block use `host`."""
    token = _QUEUES.set(host)
    try:
        yield
    finally:
        _QUEUES.reset(token)
