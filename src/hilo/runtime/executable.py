"""Executables: what `hilo.compile` returns. Imports errors and ir.types; the pipeline puts the pieces together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hilo.errors import Error
from hilo.ir.types import Type
from hilo.runtime import _native

if TYPE_CHECKING:
    from hilo.runtime.chain import Chain


class Executable:
    """A compiled program. Call it with arrays, get a list of numpy arrays.

    Arguments may be numpy arrays, anything with DLPack, the array interface or the buffer protocol, or a Python number
    whose numpy type is the expected one. Dtype and shape must be exactly those of `arg_types`; nothing is cast. Dense
    arrays are used in place, others are copied. May be called from several threads at once.

    name          of the entry function
    arg_types     types of the arguments
    result_types  types of the results
    """

    __slots__ = ("__weakref__", "_call", "_keep", "_memory", "_profile", "_program", "_texts", "arg_types", "cost",
                 "name", "result_types")  # fmt: skip

    def __init__(
        self,
        program: _native.Program | Chain,
        *,
        name: str,
        arg_types: Sequence[Type],
        result_types: Sequence[Type],
        memory: Any = None,
        texts: Callable[[str], str | bytes] | None = None,
        cost: Any = None,
        keep: tuple[object, ...] = (),
        profile: Sequence[Any] = (),
    ) -> None:
        """`texts(phase)` gives the program's text after a phase, `memory` is the plan's report, or makes it, `cost` the
        estimate that planning used (None: unknown), `keep` what must live as long as the code, `profile` its steps'
        counters."""
        self._program = self._call = program
        self.name = name
        self.arg_types = tuple(arg_types)
        self.result_types = tuple(result_types)
        self.cost = cost
        self._memory = memory
        self._texts = texts
        self._keep = keep
        self._profile = tuple(profile)

    def __call__(self, *arrays: Any) -> list[np.ndarray]:
        """Run the program. Raises `Error` for wrong arguments and for errors that the program reports."""
        try:
            return self._call(*arrays)
        except MemoryError:
            raise self._too_large() from None

    def consume(self, arrays: list[Any]) -> list[np.ndarray]:
        """Run the program on a list of arrays that are given up: the list is emptied, also by a call that fails.

        Results may take the memory of donated arguments (`hilo.compile(donate=...)`, or what the program itself says)
        of which nobody else has a reference or a view. A plain call never overwrites its arguments.
        """
        if not isinstance(arrays, list):
            raise Error(f"consume takes a list of arrays, which it empties, not a {type(arrays).__name__}")
        try:
            return self._program.consume(arrays)
        except MemoryError:
            raise self._too_large() from None

    def _too_large(self) -> Error:
        needs = "" if self._memory is None else f", which needs {self.memory().peak:,} bytes at its worst moment"
        return Error(f"there is not enough memory for a call of @{self.name}{needs}")

    @property
    def num_threads(self) -> int:
        """Threads that a call may use."""
        return self._program.threads

    def text(self, phase: str = "") -> str:
        """The program as text after `phase` (the pipeline's names, e.g. "input", "fuse", "schedule"), or a stage of
        `inspect`. `Error` for a phase that there is not, or that is no text."""
        shown = self.inspect(phase)
        if isinstance(shown, bytes):
            raise Error(f"{phase} is no text: inspect({phase!r}) gives its bytes")
        return shown

    def inspect(self, stage: str) -> str | bytes:
        """A stage of the compilation as `hilo.inspect` gives it: text, or the bytes of XLA's messages. `Error` for one
        that there is not, `Unsupported` for what HLO has no form for."""
        return self._texts(stage) if self._texts is not None else ""

    def memory(self) -> Any:
        """What a call needs: bytes of arguments, results, constants, temporaries, the peak, the largest buffers
        (`hilo.plan.report.MemoryReport`)."""
        if callable(self._memory):
            self._memory = self._memory()
        return self._memory

    def profile(self, counters: np.ndarray | None = None) -> list[Any]:
        """What each step took in all calls since the counters were taken, in the program's order
        (`hilo.plan.profile.StepTime`). `counters`: such as `take_counters` gives, instead of the present ones.

        Calls at the same time disturb each other's figures. Raises `Error` for a program made without
        `Options(profile=True)`.
        """
        counters = self._counters() if counters is None else counters
        times, first = [], 0
        for p in self._profile:
            times += p.times(counters[first : first + len(p.counters)], first)
            first += len(p.counters)
        return times

    def take_counters(self) -> np.ndarray:
        """Nanoseconds and runs of each step (i64[steps, 2]) since they were last taken."""
        taken = self._counters()
        for p in self._profile:
            p.counters[:] = 0
        return taken

    def _counters(self) -> np.ndarray:
        if not self._profile:
            raise Error(f"@{self.name} was not compiled with profile=True (HILO_PROFILE=1)")
        return np.concatenate([p.counters for p in self._profile])

    def __copy__(self) -> Executable:
        return self  # nothing about it ever changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Executable:
        return self

    def __reduce__(self) -> Any:
        raise Error(f"@{self.name} is machine code of this process and cannot be pickled: keep the program, and "
                    "compile it again (the cache makes that quick)")  # fmt: skip

    def __repr__(self) -> str:
        arguments = ", ".join(map(repr, self.arg_types))
        results = ", ".join(map(repr, self.result_types))
        return f"<Executable {self.name}({arguments}) -> ({results})>"
