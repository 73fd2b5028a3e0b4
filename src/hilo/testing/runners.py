"""The ways to run a program that the conformance corpus goes through. Imports the public face, lazily."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hilo.errors import Error
from hilo.ir.interpret import interpret
from hilo.ir.module import Module


@dataclass(frozen=True)
class Runner:
    """`run(module, inputs)` gives the results of `main`. `constants`: inputs are part of the program, not arguments."""

    name: str
    run: Callable[[Module, list[np.ndarray]], list[Any]]
    constants: bool = False


def native(module: Module, inputs: list[np.ndarray]) -> list[Any]:
    """Compile for this machine and run."""
    import hilo

    return list(hilo.compile(module)(*inputs))


def native_threads(module: Module, inputs: list[np.ndarray]) -> list[Any]:
    """Run on one and on two threads; `Error` unless both give the same bits."""
    import hilo

    one, two = (list(hilo.compile(module, threads=n)(*inputs)) for n in (1, 2))
    for k, (a, b) in enumerate(zip(one, two, strict=True)):
        if np.asarray(a).tobytes() != np.asarray(b).tobytes():
            raise Error(f"result {k} is not the same on one and on two threads")
    return two


RUNNERS: Final = {
    r.name: r
    for r in (
        Runner("interpreter", interpret),
        Runner("native", native),
        Runner("native-constants", native, constants=True),
        Runner("native-threads", native_threads),
    )
}
