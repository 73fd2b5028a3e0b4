"""One compilation in a process of its own: `python benchmarks/compile_once.py PEER FILE THREADS`; imports nothing but
numpy before the clock starts.

The first figure counts all that a fresh process must do: load the compiler (hilo: its Python modules and LLVM;
XLA: its shared library, through jaxlib alone, and a client, without importing JAX) and compile the text. What both need
alike, Python and numpy, is loaded before. The second is the same text once more in that process, nothing kept.
"""

# pyright: reportMissingImports=false
from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np


def hilo(text: str, threads: int) -> Callable[[], Any]:
    """hilo, ready to compile."""
    import hilo as compiler

    return lambda: compiler.compile(text, threads=threads)


def xla(text: str, threads: int) -> Callable[[], Any]:
    """XLA for the CPU, ready to compile. Its threads come from the process's affinity."""
    from jaxlib import xla_client

    client = xla_client.make_cpu_client()
    devices = xla_client.DeviceList(tuple(client.devices()[:1]))
    return lambda: client.compile_and_load(text, devices, xla_client.CompileOptions())


def spent() -> float:
    """CPU seconds of this process, its threads and its ended children."""
    return time.process_time() + sum(os.times()[2:4])


def main(peer: str, path: str, threads: str) -> None:
    """Print seconds of the first compilation, seconds of the second, and the peak memory of the first in MB."""
    with open(path) as file:
        text = file.read()
    np.zeros(1).sum()
    kept = []
    start = spent()
    compiled = {"hilo": hilo, "xla": xla}[peer](text, int(threads))
    kept.append(compiled())
    first = spent() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = spent()
    kept.append(compiled())
    print(first, spent() - start, peak)


if __name__ == "__main__":
    main(*sys.argv[1:])
