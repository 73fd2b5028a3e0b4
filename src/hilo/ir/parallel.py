"""A program in a grid of simulated processes, each interpreting a function of it. Imports its siblings.

`ops/groups.py` says what collective ops do there, `ir/process.py` how processes take turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hilo.errors import Error
from hilo.ir.connection import connected
from hilo.ir.host import HostQueues
from hilo.ir.interpret import check_arguments, own, run
from hilo.ir.module import Function, Module
from hilo.ir.process import Grid, Process


def interpret_grid(module: Module | None, grid: Grid, entries: Sequence[Function], inputs: Sequence[Sequence[Any]],
                   host: HostQueues | Sequence[HostQueues] | None = None) -> list[list[Any]]:  # fmt: skip
    """The results of each process of `grid`: process n runs `entries[n]` of `module` on `inputs[n]`.

    `host`: queues that all processes share, or one for each. None: fresh ones, through which processes reach each
    other (what is sent to a channel of the host can be received from it). Raises `Error` if arguments do not fit, for
    whatever goes wrong in a process, and if all of them wait for each other.
    """
    count = len(grid.processes)
    for n, what in ((len(entries), "functions"), (len(inputs), "lists of arguments")):
        if n != count:
            raise Error(f"{n} {what} for {count} processes ({grid.replicas} replicas by {grid.partitions} partitions)")
    if host is None or isinstance(host, HostQueues):
        hosts = [host or HostQueues(loopback=True)] * count
    else:
        hosts = list(host)
    if len(hosts) != count:
        raise Error(f"{len(hosts)} queues of the host for {count} processes: give one for each, or one for all")
    arguments = []
    for p, f, arrays in zip(grid.processes, entries, inputs, strict=True):
        try:
            arguments.append(check_arguments(f, list(arrays)))
        except Error as e:
            raise type(e)(f"process {p.id}: {e.message}", loc=e.loc, op=e.op) from None

    def main(p: Process) -> list[Any]:
        with connected(hosts[p.number]):
            return own(run(entries[p.number], arguments[p.number], module))

    return grid.run(main)
