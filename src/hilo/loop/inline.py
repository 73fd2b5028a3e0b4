"""Inlining: the body of one function, made anew where another one is being built. Imports loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hilo.loop.builder import Builder
from hilo.loop.nodes import PTR, Block, Func, Node

_EFFECTS: Final = frozenset(
    "load store gather scatter prefetch memcpy memset fence call callptr atomic_add".split()  # noqa: SIM905
)
_PAIRS: Final = frozenset("add sub mul sdiv udiv and or xor shl lshr ashr".split())  # noqa: SIM905


def size(func: Func, most: int) -> int:
    """How many nodes `func` has; counting ends soon after `most`.

    More than `most` where it computes which of its array's pointers to take: that cannot be inlined.
    """
    count = 0
    stack = [func.body]
    while stack and count <= most:
        block = stack.pop()
        count += len(block.nodes)
        if any(n.kind == "gep" and n.args[0] in func.params[:1] and n.args[1].const is None for n in block.nodes):
            return most + 1
        stack.extend(inner for n in block.nodes for inner in n.blocks)
    return count


def inline(b: Builder, func: Func, pointers: Sequence[Node], args: Sequence[Node]) -> None:
    """Make the body of `func` at the builder's place, for a function that gives no value.

    The first parameter is an array of pointers that nothing writes to: it becomes `pointers`, the others become `args`.
    Memory that does not change while `func` runs may change around it: its loads stay where the call was.
    """
    known = dict(zip(func.params[1:], args, strict=True))
    if b.func.helpers is not None:
        b.func.helpers.update(func.helpers or {})
    _Inliner(b, func.params[0], pointers, known).block(func.body)


class _Inliner:
    """Knows the new node of every old one; structured nodes stand for all of their values."""

    def __init__(self, b: Builder, array: Node, pointers: Sequence[Node], known: dict[Node, Node]) -> None:
        self.b = b
        self.array = array
        self.pointers = pointers
        self.known = known
        self.values: dict[Node, tuple[Node, ...]] = {}

    def block(self, block: Block) -> tuple[Node, ...]:
        """Make the nodes of a block; gives what it yields."""
        for node in block.nodes:
            if node.blocks:
                self.values[node] = self.structured(node)
            elif node.kind == "result":
                self.known[node] = self.values[node.args[0]][node.attrs["index"]]
            elif node.kind != "ret" and (new := self.plain(node)) is not None:
                self.known[node] = new
        return tuple([self.known[y] for y in block.yields])

    def inner(self, block: Block, params: Sequence[Node]) -> tuple[Node, ...]:
        self.known.update(zip(block.params, params, strict=True))
        return self.block(block)

    def structured(self, node: Node) -> tuple[Node, ...]:
        args = [self.known[a] for a in node.args]
        first, second = node.blocks[0], node.blocks[-1]
        assert first is not None
        assert second is not None
        if node.kind == "for":
            lo, hi, step, *init = args
            unroll = node.attrs["unroll"]
            return self.b.for_(lo, hi, step, lambda *values: self.inner(first, values), init, unroll=unroll)
        if node.kind == "while":
            return self.b.while_(
                args, lambda *values: self.inner(first, values)[0], lambda *values: self.inner(second, values)
            )
        rare = "rare" in node.attrs
        return self.b.if_(args[0], lambda: self.block(first), lambda: self.block(second), rare=rare)

    def plain(self, node: Node) -> Node | None:
        b, kind, attrs = self.b, node.kind, node.attrs
        if kind == "const":
            return b.const(attrs["value"], node.type)
        if kind == "alloca":
            return b.alloca(attrs["size"], attrs["align"])
        if kind == "gep" and node.args[0] is self.array:
            return None  # only a pointer's place in the array
        if kind == "load" and (at := self.place(node.args[0])) is not None:
            return self.pointers[at]
        args = tuple([self.known[a] if a is not self.array else self.stored() for a in node.args])
        if kind in _PAIRS:
            return b.binary(kind, *args)
        if kind == "gep":
            return b.gep(*args)
        if kind == "cmp":
            return b.cmp(attrs["pred"], *args)
        if kind == "select":
            return b.select(*args)
        if kind == "load":
            return b.effect(kind, args, node.type, **{**attrs, "invariant": False})
        if kind in _EFFECTS:
            return b.effect(kind, args, node.type, **attrs)
        return b.pure(kind, args, node.type, **attrs)

    def stored(self) -> Node:
        """The array in memory, for a function that is handed on to."""
        array = self.b.alloca(PTR.size * len(self.pointers))
        for i, p in enumerate(self.pointers):
            self.b.store(self.b.gep(array, PTR.size * i), p)
        return array

    def place(self, address: Node) -> int | None:
        """Which pointer of the array lies at `address`; None for an address elsewhere."""
        if address is self.array:
            return 0
        if address.kind == "gep" and address.args[0] is self.array:
            return address.args[1].const // PTR.size
        return None
