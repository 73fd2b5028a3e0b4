"""Names of values and what regions capture. Imports ir.

A region is a closed `Function`. A value of an outer scope that is used inside becomes a parameter after the block's
own, and an operand of the region's op; a captured constant is made again inside instead. All regions of one op
take the same captures in the same order.
"""

from __future__ import annotations

from hilo.ir.module import Function, parameter
from hilo.ir.op import Op


class Captures:
    """The values that the regions of one op capture, in the order of their first use."""

    __slots__ = ("positions",)

    def __init__(self) -> None:
        self.positions: dict[Op, int] = {}


class Scope:
    """The values visible in one function or region, by name (`%x`, `%x#1`), and the ops collected so far."""

    __slots__ = ("captures", "inside", "names", "ops", "own", "parent")

    def __init__(self, parent: Scope | None = None, captures: Captures | None = None) -> None:
        self.parent = parent
        self.captures = captures
        self.names: dict[str, Op] = {}
        self.own: list[Op] = []  # the block's own parameters
        self.ops: list[Op] = []  # without parameters
        self.inside: dict[Op, Op] = {}  # outer values, and what stands for them in here

    def add_parameter(self, name: str, op: Op) -> None:
        self.names[name] = op
        self.own.append(op)

    def find(self, name: str) -> Op | None:
        """The value `name`, captured into this scope if it comes from outside; None if there is none."""
        scope: Scope | None = self
        chain: list[Scope] = []
        while scope is not None:
            value = scope.names.get(name)
            if value is None and "#" not in name:
                value = scope.names.get(f"{name}#0")
            elif value is None and name.endswith("#0"):
                value = scope.names.get(name[:-2])
            if value is not None:
                break
            chain.append(scope)
            scope = scope.parent
        else:
            return None
        if value.kind.name == "constant" and chain:
            value = chain[0]._clone(value)
        else:
            for inner in reversed(chain):
                value = inner._capture(value)
        self.names[name] = value
        return value

    def _clone(self, constant: Op) -> Op:
        known = self.inside.get(constant)
        if known is None:
            known = self.inside[constant] = constant.with_operands(())
            self.ops.append(known)
        return known

    def _capture(self, value: Op) -> Op:
        known = self.inside.get(value)
        if known is None:
            assert self.captures is not None
            positions = self.captures.positions
            position = positions.setdefault(value, len(positions))
            known = self.inside[value] = parameter(len(self.own) + position, value.type, value.loc)
        return known

    def close(self, results: list[Op], name: str) -> Function:
        """This scope as a region, once all regions of its op have been read (so that all captures are known)."""
        assert self.captures is not None
        n = len(self.own)
        params = [
            *self.own,
            *(self.inside.get(v) or parameter(n + i, v.type, v.loc) for v, i in self.captures.positions.items()),
        ]
        return Function(name, params, [*params, *self.ops], results)
