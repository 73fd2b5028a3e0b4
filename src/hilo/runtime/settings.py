"""What a program is compiled for: the machine, and how many threads. Imports errors, options, backend.target and this
room."""

from __future__ import annotations

from typing import Final

from hilo.backend.target import Target
from hilo.errors import Error
from hilo.options import Options
from hilo.runtime.machine import default_threads

MOST_THREADS: Final = 4096


def settings(target: str, threads: int | None, options: Options) -> tuple[Target, int]:
    """The machine and the number of threads that are asked for. Raises `Error` if they cannot be had."""
    threads = threads or options.threads or default_threads()
    if not 1 <= threads <= MOST_THREADS:
        raise Error(f"threads must be from 1 to {MOST_THREADS}, not {threads}")
    machine = Target.named(target if target != "host" else options.target)
    if not Target.host().includes(machine):
        raise Error(f"this machine cannot run code for {machine.name}; hilo compile --emit object makes it for others")
    return machine, threads
