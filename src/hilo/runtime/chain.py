"""Programs that run one after the other, each on arguments of the whole and results of those before.

Imports nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class Chain:
    """Stands for a native program: parts are callables of arrays, and the numbers of the values that they take.

    Values are numbered: arguments of the whole, then the results of the parts in order. The last part's results are the
    results of the whole.
    """

    def __init__(self, parts: Sequence[tuple[Callable[..., list[Any]], tuple[int, ...]]], threads: int) -> None:
        self.parts = parts
        self.threads = threads

    def __call__(self, *arrays: Any) -> list[Any]:
        (first, _), *others = self.parts
        out = first(*arrays)  # takes, and checks, all arguments
        values = [*arrays, *out]
        for part, inputs in others:
            out = part(*(values[i] for i in inputs))
            values += out
        return out

    def consume(self, arrays: list[Any]) -> list[Any]:
        """The same on a list of arrays that are given up: the list is emptied."""
        given = arrays[:]
        arrays.clear()
        return self(*given)
