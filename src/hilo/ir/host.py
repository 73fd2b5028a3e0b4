"""Queues between a program and its host: what infeed and recv take, and what outfeed and send give. Imports siblings.

The user owns them: they are handed to a run, kept, filled and emptied, from any thread.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Hashable, Sequence
from threading import Condition
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir.interpret import check_argument
from hilo.ir.process import current as process
from hilo.ir.types import Type

Key = tuple[str, Hashable]  # which of the kinds of queues, and its config or channel


class HostQueues:
    """Infeed, outfeed and channels of a program, from the host's side. Any thread may use it.

    Every entry is the list of arrays of one op: an `infeed` takes what one `put_infeed` put, one `take_outfeed` gives
    what one `outfeed` had. There is a queue for each config string, and one in each direction for each channel.

    An op whose queue is empty, and a `take` from an empty one, wait up to `timeout` seconds and then raise `Error`:
    nothing waits for ever. With `loopback` what is sent to a channel is what can be received from it.
    """

    def __init__(self, *, timeout: float = 0.0, loopback: bool = False) -> None:
        if not isinstance(timeout, int | float) or not 0 <= timeout < float("inf"):
            raise Error(f"a timeout must be a number of seconds, not {timeout!r}")
        self.timeout: Final = timeout
        self.loopback: Final = loopback
        self._queues: dict[Key, deque[list[np.ndarray]]] = {}
        self._changed = Condition()

    # -- the host's side ------------------------------------------------------------------------

    def put_infeed(self, *arrays: Any, config: str = "") -> None:
        """Append the arrays of one `infeed` with this `infeed_config`."""
        self.push(("infeed", _config(config)), arrays)

    def take_outfeed(self, config: str = "") -> list[np.ndarray]:
        """The arrays of the first `outfeed` with this `outfeed_config` that have not been taken."""
        return self._take(("outfeed", _config(config)))

    def put_channel(self, channel: int, *arrays: Any) -> None:
        """Append the arrays of one `recv` from the host on this channel."""
        self.push(self.incoming(_channel(channel)), arrays)

    def take_channel(self, channel: int) -> list[np.ndarray]:
        """The arrays of the first `send` to the host on this channel that have not been taken."""
        return self._take(self.outgoing(_channel(channel)))

    def waiting(self) -> dict[str, int]:
        """How many entries each queue that is not empty holds, by its name."""
        with self._changed:
            return {name(k): len(q) for k, q in self._queues.items() if q}

    def _take(self, key: Key) -> list[np.ndarray]:
        if not self.wait(key, time.monotonic() + self.timeout):
            raise Error(f"{name(key)} is empty")
        return self.pop(key)

    # -- the program's side ---------------------------------------------------------------------

    def incoming(self, channel: int) -> Key:
        """The queue that a recv from the host reads."""
        return ("" if self.loopback else "from the host", channel)

    def outgoing(self, channel: int) -> Key:
        """The queue that a send to the host writes."""
        return ("" if self.loopback else "to the host", channel)

    def push(self, key: Key, arrays: Sequence[Any]) -> None:
        """Append an entry: copies of the arrays."""
        entry = list(map(np.array, arrays))
        with self._changed:
            self._queues.setdefault(key, deque()).append(entry)
            self._changed.notify_all()

    def has(self, key: Key) -> bool:
        with self._changed:
            return bool(self._queues.get(key))

    def receive(self, op: str, key: Key, types: Sequence[Type]) -> list[np.ndarray]:
        """The first entry of a queue for an op that wants arrays of `types`: waits for it up to the timeout.

        In a grid of processes the others run on meanwhile.
        """
        until, me = time.monotonic() + self.timeout, process()
        if me is not None:
            me.wait(lambda: self.has(key), lambda: f"in {op}, as {name(key)} is empty", until)
        elif not self.wait(key, until):
            raise Error(f"{name(key)} is empty")
        return fitting(self.pop(key), types, name(key))

    def pop(self, key: Key) -> list[np.ndarray]:
        """The first entry; `Error` if there is none."""
        with self._changed:
            if not self._queues.get(key):
                raise Error(f"{name(key)} is empty")
            return self._queues[key].popleft()

    def wait(self, key: Key, until: float) -> bool:
        """Whether there is an entry by `until` (of `time.monotonic`)."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._queues.get(key)), max(until - time.monotonic(), 0.0))


def _config(config: Any) -> str:
    if not isinstance(config, str):
        raise Error(f"the config of an infeed or outfeed is a text, not {config!r}")
    return config


def _channel(channel: Any) -> int:
    if isinstance(channel, bool) or not isinstance(channel, int):
        raise Error(f"a channel is a number, not {channel!r}")
    return channel


def fitting(arrays: Sequence[np.ndarray], types: Sequence[Type], where: str) -> list[np.ndarray]:
    """`arrays`, from the queue or channel `where`; `Error` unless they have the types that an op wants."""
    if len(arrays) != len(types):
        raise Error(f"{where} has {len(arrays)} arrays, but {len(types)} are wanted")
    pairs = enumerate(zip(arrays, types, strict=True))
    return [check_argument(f"array {i} of {where}", a, t) for i, (a, t) in pairs]


def name(key: Key) -> str:
    """What a queue is called in messages."""
    kind, which = key
    if kind in ("infeed", "outfeed"):
        return f"the {kind}" + (f" {which!r}" if which else "")
    return f"channel {which} {kind}".rstrip()
