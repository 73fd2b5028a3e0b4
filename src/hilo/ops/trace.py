"""Where a fused loop reads: run the closures of a function on symbolic indices and write down what is accessed.

Imports ir, loop and ops.fusion. Used to collapse dimensions, to find what may be computed in place, and to ask whether
a group of ops can be computed row by row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hilo.ir.op import Op
from hilo.loop import index
from hilo.loop.builder import I64, Builder, Func
from hilo.loop.element import Elem, held_type
from hilo.loop.index import Atom, Index
from hilo.loop.nodes import Block, Node
from hilo.ops.fusion import Elements, Indices, Source
from hilo.record import field, record


@record
class Access:
    """A read of `op`'s value (a parameter's, mostly) at `at`; `position` is the row-major one."""

    op: Op
    at: Indices
    position: Index

    @property
    def is_inside(self) -> bool:
        """Whether the indices are surely in range."""
        return all(index.is_inside(i, n) for i, n in zip(self.at, self.op.shape, strict=True))


@record
class Trace:
    """Loop variables over `shape`, one per dim (constant 0 where the size is 1), and what was read at them."""

    variables: tuple[Index, ...]
    accesses: list[Access] = field(default_factory=list)
    observed: set[int] = field(default_factory=set)  # dims whose number the computation uses, beyond addressing

    def atom(self, dim: int) -> Atom | None:
        """The variable of `dim`, or None if its size is 1."""
        return next(iter(self.variables[dim].terms), None)


class _Recorder(Elements):
    """Elements without arithmetic: elementwise ops visit their operands, leaves are recorded."""

    def _make(self, o: Op, index: Indices) -> Elem:
        if o not in self.sources and o.kind.scalar is not None:
            for x in o.operands:
                self(x, index if x.type.rank else ())  # type: ignore[attr-defined]
            return unknown(o)
        return super()._make(o, index)


def unknown(o: Op) -> Elem:
    """An element of `o` of which nothing is known."""
    t = held_type(o.dtype)
    value = Node("param", (), t, {"name": "x", "index": 0})
    return Elem(o.dtype, value, value if o.dtype.is_complex else None)


def trace(shape: Sequence[int], roots: Iterable[Op], leaves: Iterable[Op]) -> Trace:
    """Compute `roots` at symbolic indices over `shape` (roots of other shapes: at the same row-major position).

    Reads of `leaves` are recorded.
    """
    func = Func("trace", [(f"i{d}", I64) for d in range(len(shape))])
    b = Builder(func)
    out = Trace(tuple(index.loop_var(p, 0, 2 if n == 0 else n) for p, n in zip(func.params, shape, strict=True)))

    def leaf(o: Op) -> Source:
        def read(at: Indices) -> Elem:
            out.accesses.append(Access(o, at, index.linear(at, o.shape)))
            return unknown(o)

        return read

    elements = _Recorder(b, {o: leaf(o) for o in leaves})
    for r in roots:
        same = r.shape == tuple(shape)
        elements(r, out.variables if same else tuple(index.delinear(index.linear(out.variables, shape), r.shape)))
    number = {p: d for d, p in enumerate(func.params)}
    for x in _arguments(func.body):
        if x in number:
            out.observed.add(number[x])
    return out


def _arguments(body: Block) -> Iterable[Node]:
    stack = [body]
    while stack:
        block = stack.pop()
        for n in block.nodes:
            yield from n.args
            stack.extend(n.blocks)
