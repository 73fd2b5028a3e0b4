"""Each peer in a process of its own, which lives for all rows: thread pools, affinities and allocators stay apart.

`Server(peer, threads)` is the side that asks; `python -m benchmarks serve PEER THREADS` is the process. One command per
line of JSON, one answer per line. A process waits in a read while the others are timed. One that ends, or does not
answer in time, is started anew for the next row.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kept import PACKAGES, Kept
from benchmarks.modules import Case, cases
from benchmarks.peers import PEERS, Unsuitable

PAUSE = 0.06  # seconds: other peers' threads look for work after a call, ONNX Runtime's for 20 ms
ROUND = 0.03  # seconds of calls
LONG = 0.3  # seconds of a call beyond which it does not matter that threads slept before
SLOW = 5.0  # seconds of a call beyond which there is no second one
LIMIT = 300.0  # seconds in which a module must be built
CALL_LIMIT = 60.0  # seconds in which everything else must be answered


class Failed(Exception):
    """The peer could not do what it was asked for. Empty: it cannot express the module."""


class Server:
    """The process of one peer. What a peer that compiles for long could not load is remembered and not tried again,
    unless `retry` says so."""

    def __init__(self, peer: str, threads: int, limit: float = LIMIT, retry: bool = False) -> None:
        self.command = [sys.executable, "-m", "benchmarks", "serve", peer, str(threads)]
        self.limit, self.retry = limit, retry
        self.kept = Kept(peer, threads) if peer in PACKAGES else None
        self.process: subprocess.Popen[str] | None = None

    def load(self, case: Case) -> bool:
        """Build a module and call it a few times; whether it is so slow that one call was all.

        Raises `Failed`.
        """
        if self.kept and not self.retry and (why := self.kept.refusal(case.text)):
            raise Failed(why)
        try:
            self.ask(self.limit, do="build", name=case.name)
            once = self.ask(do="first_calls")
        except Failed as e:
            if self.kept:
                self.kept.refuse(case.text, str(e))
            raise
        if self.kept:
            self.kept.refuse(case.text, "")
        return once

    def time(self) -> float:
        """Seconds of one call, the mean of a round."""
        return self.ask(do="time")

    def results(self) -> list[np.ndarray]:
        """The last results."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "results.npz"
            types = self.ask(do="results", path=str(path))
            with np.load(path) as found:
                return [found[f"arr_{i}"].view(_dtype(t)) for i, t in enumerate(types)]

    def ask(self, limit: float = CALL_LIMIT, **command: Any) -> Any:
        """The answer to a command. Raises `Failed`, also when there is none within `limit` seconds."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        line, what = "", command["do"].replace("_", " ")
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(command) + "\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], limit)[0]:
                self.close()
                raise Failed(f"{what}: no answer within {limit:g} s")
            line = process.stdout.readline()
        if not line:
            raise Failed(f"{what}: the process ended, {self._end()}")
        answer = json.loads(line)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer["value"]

    def close(self) -> None:
        """End the process, and those that it started: compilers."""
        if self.process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
            self.process = None

    def _started(self) -> subprocess.Popen[str]:
        if self.process is None:
            pipe = subprocess.PIPE
            self.process = subprocess.Popen(self.command, stdin=pipe, stdout=pipe, text=True, start_new_session=True)
        return self.process

    def _end(self) -> str:
        """In words how the process ended, which closed its output."""
        assert self.process is not None
        process = self.process
        with suppress(subprocess.TimeoutExpired):
            process.wait(5)
        self.close()
        code = process.returncode
        return signal.Signals(-code).name if code < 0 else f"status {code}"


def _dtype(name: str) -> np.dtype:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


class Peer:
    """The state of the process: the module that is loaded."""

    def __init__(self, peer: str, threads: int) -> None:
        self.peer, self.threads = peer, threads
        self.call: Callable[[], Any] = lambda: None
        self.read: Callable[[], list[np.ndarray]] = list
        self.repeat = 1  # calls of a round
        self.least = 0.0  # seconds of a call
        self.is_once = False

    def build(self, name: str) -> None:
        """Compile a module, whose predecessor is let go first."""
        (case,) = [c for c in cases([name]) if c.name == name]
        self.call = self.read = list
        self.call, self.read = PEERS[self.peer](case, self.threads)(case.inputs())

    def first_calls(self) -> bool:
        """Call it a few times, to know how many calls make a round; whether one call was all."""
        self.least = self._seconds(1)
        self.is_once = self.least > SLOW
        if not self.is_once:
            end = time.perf_counter() + ROUND
            for turn in range(20):  # the first ones wake threads and touch memory
                if turn and time.perf_counter() > end:
                    break
                self.least = min(self.least, self._seconds(1))
        self.repeat = max(1, min(2000, int(ROUND / max(self.least, 1e-7))))
        return self.is_once

    def time(self) -> float:
        """Seconds of one call, the mean of a round."""
        if self.is_once:
            return self.least
        time.sleep(PAUSE)
        if self.least < LONG:
            self.call()
        return self._seconds(self.repeat) / self.repeat / getattr(self.call, "calls", 1)

    def results(self, path: str) -> list[str]:
        found = [np.array(r) for r in self.read()]
        np.savez(path, *(r.view(f"u{r.dtype.itemsize}") if r.dtype.kind == "V" else r for r in found))
        return [r.dtype.name for r in found]

    def _seconds(self, calls: int) -> float:
        call = self.call
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return time.perf_counter() - start


def serve(peer: str, threads: int) -> None:
    """Answer commands until the input ends. What peers print goes to the standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    state = Peer(peer, threads)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = {"value": getattr(state, command.pop("do"))(**command)}
        except Unsuitable:
            answer = {"failed": ""}
        except Exception as e:
            answer = {"failed": reason(e)}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


def reason(error: Exception) -> str:
    """An exception in one line: of what a compiler says, its first error."""
    lines = str(error).splitlines() or [""]
    said = next((line for line in lines if " error: " in line), lines[0])
    return f"{type(error).__name__}: {said}"[:200]
