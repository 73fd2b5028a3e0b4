"""Each peer in a process of its own, which lives for all rows: thread pools, affinities and allocators stay apart.

`Server(peer, threads)` is the side that asks; `python -m benchmarks serve PEER THREADS` is the process. One command per
line of JSON, one answer per line. A process waits in a read while the others are timed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.modules import cases
from benchmarks.peers import PEERS, Unsuitable

PAUSE = 0.06  # seconds: other peers' threads look for work after a call, ONNX Runtime's for 20 ms
ROUND = 0.03  # seconds of calls


class Failed(Exception):
    """The peer could not do what it was asked for. Empty: it cannot express the module."""


class Server:
    """The process of one peer."""

    def __init__(self, peer: str, threads: int) -> None:
        command = [sys.executable, "-m", "benchmarks", "serve", peer, str(threads)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **command: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Failed("the process ended")
        answer = json.loads(line)
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer["value"]

    def load(self, name: str) -> None:
        """Build a module and run it once."""
        self.ask(do="load", name=name)

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

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


def _dtype(name: str) -> np.dtype:
    import ml_dtypes

    return np.dtype(getattr(ml_dtypes, name, name))


class _Peer:
    """The state of the process: the module that is loaded."""

    def __init__(self, peer: str, threads: int) -> None:
        self.peer, self.threads = peer, threads
        self.call: Callable[[], Any] = lambda: None
        self.read: Callable[[], list[np.ndarray]] = list
        self.repeat = 1

    def load(self, name: str) -> None:
        (case,) = [c for c in cases([name]) if c.name == name]
        self.call = self.read = list
        self.call, self.read = PEERS[self.peer](case, self.threads)(case.inputs())
        self.call()
        start = time.perf_counter()
        self.call()
        self.repeat = max(1, min(2000, int(ROUND / max(time.perf_counter() - start, 1e-7))))

    def time(self) -> float:
        time.sleep(PAUSE)
        self.call()
        start = time.perf_counter()
        for _ in range(self.repeat):
            self.call()
        return (time.perf_counter() - start) / self.repeat / getattr(self.call, "calls", 1)

    def results(self, path: str) -> list[str]:
        found = [np.array(r) for r in self.read()]
        np.savez(path, *(r.view(f"u{r.dtype.itemsize}") if r.dtype.kind == "V" else r for r in found))
        return [r.dtype.name for r in found]


def serve(peer: str, threads: int) -> None:
    """Answer commands until the input ends. What peers print goes to the standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    state = _Peer(peer, threads)
    for line in sys.stdin:
        command = json.loads(line)
        try:
            answer = {"value": getattr(state, command.pop("do"))(**command)}
        except Unsuitable:
            answer = {"failed": ""}
        except Exception as e:
            answer = {"failed": f"{type(e).__name__}: {str(e).splitlines()[0] if str(e) else ''}"[:200]}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
