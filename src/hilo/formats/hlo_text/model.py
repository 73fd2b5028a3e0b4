"""HLO as data: shapes, instructions, computations, a module. A reader gives it, a writer takes it. Imports ir, errors.

The values of attributes are plain Python ones, by the kinds of `schema.ATTRIBUTES`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from hilo.errors import Error
from hilo.ir.module import Loc
from hilo.ir.op import Op
from hilo.ir.types import TensorType, TupleType, Type
from hilo.record import field, record


@record(frozen=True)
class Layout:
    """How an array lies in memory: its axes from minor to major, and further properties (tiles ...) as their text."""

    minor_to_major: tuple[int, ...]
    properties: str = ""

    @property
    def is_default(self) -> bool:
        """Row-major and nothing else."""
        n = len(self.minor_to_major)
        return not self.properties and self.minor_to_major == tuple(range(n - 1, -1, -1))


@record(frozen=True)
class Shape:
    """The type of an HLO value: an array (`layout` None: row-major), a token, or a tuple of `parts`."""

    type: Type
    layout: Layout | None = None
    parts: tuple[Shape, ...] = ()

    @property
    def is_tuple(self) -> bool:
        return isinstance(self.type, TupleType)

    def leaves(self) -> Iterator[Shape]:
        """The shapes of what is no tuple in it, in order."""
        if not self.is_tuple:
            yield self
        for part in self.parts:
            yield from part.leaves()

    def without_layouts(self) -> Shape:
        return shape_of(self.type)


def shape_of(t: Type) -> Shape:
    """The shape of a value of type `t`, with default layouts."""
    return Shape(t, None, tuple(map(shape_of, t.types)) if isinstance(t, TupleType) else ())


def tuple_of(parts: tuple[Shape, ...] | list[Shape]) -> Shape:
    """The shape of a tuple of these shapes."""
    return Shape(TupleType(p.type for p in parts), None, tuple(parts))


class Value(NamedTuple):
    """What an instruction gives in the IR: its shape, and the ops of what is no tuple in it."""

    shape: Shape
    leaves: tuple[Op, ...]


@record(eq=False)
class Instruction:
    """One instruction. `loc` is its place in the text, for errors. `shape` is None where the text leaves it out."""

    name: str
    opcode: str
    shape: Shape | None
    operands: list[Instruction] = field(default_factory=list)
    attrs: dict[str, Any] = field(default_factory=dict)
    loc: Loc | None = None

    def __getitem__(self, name: str) -> Any:
        """The attribute `name`; an `Error` if the instruction has none."""
        if name not in self.attrs:
            raise self.error(f"the attribute '{name}' is missing")
        return self.attrs[name]

    def get(self, name: str, default: Any = None) -> Any:
        return self.attrs.get(name, default)

    def error(self, message: str, kind: type[Error] = Error) -> Error:
        """An error about this instruction."""
        return kind(message, loc=self.loc, op=self.opcode)

    @property
    def declared(self) -> Shape:
        """The shape, which this instruction's opcode needs; an `Error` if the text leaves it out."""
        if self.shape is None:
            raise self.error("the shape of the result is missing, and cannot be inferred")
        return self.shape

    @property
    def tensor(self) -> TensorType:
        """The type of an array result."""
        t = self.declared.type
        if not isinstance(t, TensorType):
            raise self.error("the result must be an array")
        return t


@record(eq=False)
class Computation:
    """A function of HLO: instructions in order, one of which is the root."""

    name: str
    instructions: list[Instruction] = field(default_factory=list)
    root: Instruction | None = None
    loc: Loc | None = None


@record(eq=False)
class HloModule:
    """Computations, callees before callers; `attrs` of the header; tables of `Loc`s of stack frames by number."""

    name: str
    computations: dict[str, Computation] = field(default_factory=dict)
    entry: Computation | None = None
    attrs: dict[str, Any] = field(default_factory=dict)
    frames: dict[int, Loc] = field(default_factory=dict)
    loc: Loc | None = None
