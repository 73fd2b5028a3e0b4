"""What is raised for a program that computes its sizes: it is compiled in stages then. Imports ir and errors."""

from __future__ import annotations

from collections.abc import Sequence

from hilo.errors import Unsupported
from hilo.ir.op import Op


class ComputedSize(Unsupported):
    """A size depends on integers that the program computes: the ops `causes`, of the function that was refined."""

    def __init__(self, message: str, *, loc: object | None = None, op: str | None = None,
                 causes: Sequence[Op] = ()) -> None:  # fmt: skip
        super().__init__(message, loc=loc, op=op)
        self.causes = tuple(causes)

    def at(self, loc: object | None, op: str | None = None) -> ComputedSize:
        loc = self.loc if self.loc is not None else loc
        return ComputedSize(self.message, loc=loc, op=self.op or op, causes=self.causes)
