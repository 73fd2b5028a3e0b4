"""Loop IR to instructions over virtual registers: the walk over a function's nodes, and what all kinds of nodes need.

How a kind of node is added: write a function `f(s: Selector, node: Node) -> Value` in the module of its theme, and
register it with `@selects("kind", ..., of="vector")`; list the module in `MODULES` or `OF_VECTORS`. Nodes of
`@selects("kind", covers=g)` for which `g(node)` is false are not done, and a function that has one goes to LLVM. The
function is called where the node stands in its block, once per copy of an unrolled body. It

  - takes its operands, each once per use in `node.args`:  `s.use(a)` a register with the value; `s.parts(a)` the
    registers of a vector wider than 64 bytes (a tuple, of one register for others, too); `s.source(a)` what may stand
    last in a vector instruction: a register, or memory and whether it is one element for all lanes; `s.affine(a)` an
    integer or pointer as an `Address`; `s.condition(a)` a scalar i1 as a condition code of the flags, which the next
    instruction reads;
  - takes the register for the result, `s.result(node)`, last: it may be one of an operand's that is not read any more.
    So it is written by the last instruction alone, or by one behind which no operand is read. `s.new(class)` gives
    registers for what comes between;
  - appends instructions (`s.v`, `s.g`, `s.move`, see `machine.Draft`);
  - returns the value: a register, a tuple of registers (a vector of more than 64 bytes), an `Address` (an integer that
    may be computed where it is used), or None for nodes without one.

Values in registers: floats, and vectors of up to 64 bytes in the low lanes of a vector register (the rest is
undefined); masks (i1 vectors) of up to 64 lanes in a mask register, bits beyond the lanes undefined; scalar integers
and pointers in general registers, bits beyond their width undefined; scalar i1 in the lowest byte of general registers,
0 or 1, bits beyond undefined.

Nodes that nobody uses are never asked for, constants neither. A load with one use in its block, with no store between,
waits for its use (`s.source` makes it the memory operand), and so does a scalar compare that feeds one select or `if`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any, Final

from hilo.backend.target import Target
from hilo.backend.x86.machine import FIRST, FOREVER, GENERAL, MASK, NO, VECTOR, Address, Draft
from hilo.backend.x86.uses import Uses
from hilo.loop.nodes import Block, Func, Node, VType

MODULES: Final = ("integers", "division", "floats", "memory", "calls")
#: Of vectors, and of floats that are scalars.
OF_VECTORS: Final = ("vectors", "bits", "masks", "selections", "conversions", "lanes", "moves")
Value = int | tuple[int, ...] | Address | None
Handler = Callable[["Selector", Node], Value]

SCALARS: dict[str, Handler] = {}  # nodes whose value is a scalar, or that have none
VECTORS: dict[str, Handler] = {}
COVERS: dict[Handler, Callable[[Node], bool]] = {}
CONDITIONS: dict[str, Callable[[Selector, Node], str]] = {}  # kinds that can set flags for what reads them at once
FARTHEST: Final = (1 << 31) - 4096  # displacements below leave room for the parts of a value, and for short copies
STRUCTURED: Final = frozenset(("for", "while", "if"))


def selects(*kinds: str, of: str = "both",
            covers: Callable[[Node], bool] | None = None) -> Callable[[Handler], Handler]:  # fmt: skip
    """Register a function as the one that selects instructions for nodes of some kinds: `of` "scalar" (or without a
    value), "vector" (of more than one lane) or "both"."""

    def register(f: Handler) -> Handler:
        for kind in kinds:
            if of != "vector":
                SCALARS[kind] = f
            if of != "scalar":
                VECTORS[kind] = f
        if covers is not None:
            COVERS[f] = covers
        return f

    return register


@cache
def load_kinds(modules: tuple[str, ...] = MODULES) -> None:
    """Import modules that register kinds. Those of vectors are there for functions that have some: loops around
    assembly do not."""
    for name in modules:
        import_module(f"hilo.backend.x86.{name}")


@cache
def length(t: VType) -> int:
    """0, 1 or 2 for vector registers of 16, 32 or 64 bytes, as encodings have it: what one part of a value takes."""
    size = t.lanes * t.size
    return 0 if size <= 16 else 1 if size == 32 else 2


@cache
def parts_of(t: VType) -> int:
    """How many registers a value takes."""
    return 1 if t.scalar == "i1" else max(1, t.lanes * t.size // 64)


@cache
def class_of(t: VType) -> int:
    if t.lanes > 1:
        return MASK if t.scalar == "i1" else VECTOR
    return VECTOR if t.is_float else GENERAL


def registers(value: Value) -> tuple[int, ...]:
    """The registers that a value is in, or follows from."""
    if isinstance(value, int):
        return (value,)
    return () if value is None else value[:2] if isinstance(value, Address) else value


class Selector(Draft):
    """Writes one function."""

    def __init__(self, func: Func, target: Target) -> None:
        super().__init__()
        self.func = func
        self.target = target
        load_kinds()
        self.seen = found = Uses(func)
        self.uses, self.lazy, self.near, self.far = found.uses, found.lazy, found.near, found.far
        self.env: dict[Node, Any] = {}
        self.wish: dict[Node, Any] = {}  # registers that values are going to be moved to
        self.held: dict[Any, int] = {}  # constants in registers
        self.facts: dict[Any, int] = {}  # what is found out about nodes once
        self.before: list[Any] | None = None  # instructions that go before the outermost structure
        self.constants: dict[int, tuple[Any, ...]] = {}  # registers that hold constants: how they are made
        self.structures: dict[Node, list[Any]] = {}  # the values of structured nodes

    # ---- the walk
    def block(self, block: Block) -> Iterator[Iterator]:
        """Select for a block's nodes. Yields the generators of nested structures, which `nesting.run` drives."""
        from hilo.backend.x86 import control

        uses, lazy, env, left, scalars, vectors = self.uses, self.lazy, self.env, self.left, SCALARS, VECTORS
        repeated = self.seen.repeated
        for node in block.nodes:
            kind = node.kind
            if kind in STRUCTURED:
                yield from control.structure(self, node)
            elif node in lazy:
                if node in repeated:
                    self.expect({a: node.args.count(a) for a in node.args}, uses[node] - 1)
            elif node in uses:
                value = (scalars if node.type.lanes == 1 else vectors)[kind](self, node)
                if value.__class__ is int:
                    env[node] = value
                    left[value] += uses[node]  # type: ignore[index]
                elif value is not None:
                    self.give(node, value)

    def select(self, node: Node) -> Value:
        return (SCALARS if node.type.lanes == 1 else VECTORS)[node.kind](self, node)

    def give(self, node: Node, value: Value) -> None:
        """Make `value` that of a node: its registers are read as often as the node is used."""
        self.env[node] = value
        count = self.uses.get(node, 0)
        for r in registers(value):
            self.left[r] += count

    def expect(self, outer: dict[Node, int], times: int) -> None:
        """Count on more uses of some nodes, or, if `times` is negative, on fewer."""
        for node, count in outer.items():
            for r in registers(self.env.get(node)):
                self.left[r] += count * times

    # ---- operands
    def use(self, node: Node) -> int:
        """A register that holds the value of an operand."""
        value: Any = self.env.get(node)
        if value.__class__ is int:
            self.left[value] -= 1
            return value
        return self.force(node, value)

    def force(self, node: Node, value: Value) -> int:
        if value is None:
            if node in self.lazy:
                value = self.select(node)
                return self.materialize(value) if isinstance(value, Address) else value  # type: ignore[return-value]
            return self.constant(node)
        if isinstance(value, Address):
            self.left[value.base] -= 1
            self.left[value.index] -= 1
            return self.materialize(value)
        raise AssertionError(f"{node} takes several registers")

    def parts(self, node: Node) -> tuple[int, ...]:
        """The registers that hold the value of an operand."""
        value: Any = self.env.get(node)
        if value.__class__ is tuple:
            for r in value:
                self.left[r] -= 1
            return value
        if value is None and node in self.lazy:
            value = self.select(node)
            return value if value.__class__ is tuple else (value,)
        return (self.use(node),) * parts_of(node.type)

    def affine(self, node: Node) -> Address:
        """An operand, an i64 or a pointer, as an address."""
        value: Any = self.env.get(node)
        if value.__class__ is int:
            self.left[value] -= 1
            return Address(value)
        if value.__class__ is Address:
            self.left[value[0]] -= 1  # type: ignore[index]
            self.left[value[1]] -= 1  # type: ignore[index]
            return value if value[3] < FARTHEST else Address(self.materialize(value))
        if (c := node.const) is not None and -(1 << 31) <= c < FARTHEST:
            return Address(NO, NO, 1, c)
        return Address(self.force(node, value))

    def source(self, node: Node) -> tuple[int | Address | str, bool]:
        """What may stand last in a vector instruction of a node's value in one part: a register or memory, and whether
        that is one element for all lanes (of 4 or 8 bytes)."""
        value: Any = self.env.get(node)
        if value.__class__ is int:
            self.left[value] -= 1
            return value, False
        if value is None:
            if node in self.lazy:
                if node.kind == "load" and len(node.args) == 1:
                    return self.affine(node.args[0]), False
            elif (c := node.const) is not None and self.before is None and c:
                return self.pool(node), node.type.lanes > 1
        return self.use(node), False

    # ---- results
    def result(self, node: Node) -> int:
        """The register for a node's value, to be written last."""
        wish = self.wish.get(node)
        if wish is not None and not self.left[wish]:
            return wish
        return self.new(class_of(node.type))

    def results(self, node: Node) -> tuple[int, ...]:
        """The registers for a node's value of any number of parts, to be written behind all reading of operands."""
        wish: Any = self.wish.get(node)
        if wish.__class__ is tuple and not any(self.left[r] for r in wish):
            return wish
        n = parts_of(node.type)
        return tuple([self.new(VECTOR) for _ in range(n)]) if n > 1 else (self.result(node),)

    def places(self, t: VType) -> Any:
        """Fresh registers for a value: one, or a tuple of several."""
        kind = class_of(t)
        n = parts_of(t)
        return self.new(kind) if n == 1 else tuple([self.new(kind) for _ in range(n)])

    def condition(self, node: Node) -> str:
        """A scalar i1 as a condition of the flags, which the next instruction reads."""
        if node in self.lazy and node.kind in CONDITIONS:
            return CONDITIONS[node.kind](self, node)
        r = self.use(node)
        self.g("test", 1, r, r)
        return "ne"

    # ---- integers that are sums
    def total(self, node: Node) -> Address:
        """The sum of a node's two operands, of which parts are computed if it is no address."""
        x, y = node.args
        a, b = self.affine(x), self.affine(y)
        if a.index != NO and (b.base != NO or b.index != NO):
            a = Address(self.settle(x, a, node.level))
        if b.index != NO and b.base != NO and a.base != NO:
            b = Address(self.settle(y, b, node.level))
        return self.sum(a, b)

    def settle(self, node: Node, a: Address, level: int) -> int:
        """A register with the value of a node that is `a`; the same one for its next uses in this block."""
        r = self.materialize(a)
        if node.level == level and self.uses.get(node, 0) > 1 and self.env.get(node).__class__ is Address:
            self.give(node, r)
        return r

    def sum(self, a: Address, b: Address) -> Address:
        """a + b, of which parts are computed if it is no address."""
        while True:
            disp = a.disp + b.disp
            terms = [(r, s) for r, s in ((a.base, 1), (a.index, a.scale), (b.base, 1), (b.index, b.scale)) if r != NO]
            scaled = [t for t in terms if t[1] != 1]
            if len(terms) <= 2 and len(scaled) <= 1 and -(1 << 31) <= disp < 1 << 31:
                if scaled:
                    base = next((r for r, s in terms if s == 1), NO)
                    return Address(base, *scaled[0], disp)
                base, index = [r for r, _ in terms] + [NO] * (2 - len(terms))
                return Address(base, index, 1, disp)
            if a.index != NO or (a.base != NO and a.disp and b.index == NO):
                a = Address(self.materialize(a))
            else:
                b = Address(self.materialize(b))

    def materialize(self, a: Address) -> int:
        """A register with the value of an address."""
        if a.index == NO and not a.disp and a.base >= FIRST:
            return a.base
        r = self.new(GENERAL)
        self.compute(r, a)
        return r

    def compute(self, r: int, a: Address) -> None:
        """Put the value of an address into a general register."""
        base, index, scale, disp = a
        if index == NO:
            if base == NO:
                self.g("mov", 8, r, imm=disp)
            elif base == r:
                self.g("add", 8, r, imm=disp)
            else:
                self.g("lea", 8, r, a)
        elif base == NO and scale in (1, 2):
            self.g("lea", 8, r, Address(index, index if scale == 2 else NO, 1, disp))
        else:
            self.g("lea", 8, r, a)

    # ---- constants
    def constant(self, node: Node) -> int:
        """A register with a constant."""
        from hilo.backend.x86 import constants

        key = constants.recipe(node)
        if key[0] == "number":  # at once, wherever it is needed
            register = self.new(GENERAL)
            constants.make(self, register, key)
            return register
        return self.keep(key)

    def keep(self, key: tuple[Any, ...]) -> int:
        """A register with a constant that is described by a recipe (x86.constants): made before the outermost loop or
        branch around the place, once for all of it."""
        from hilo.backend.x86 import constants

        register = self.held.get(key)
        if register is None:
            register = self.new(constants.class_of(key))
            self.left[register] = FOREVER
            if self.before is None:
                constants.make(self, register, key)
            else:
                code, self.code = self.code, self.before
                constants.make(self, register, key)
                self.code = code
                self.held[key] = register
            self.constants[register] = key
        return register

    def pool(self, node: Node) -> str:
        """The label of a scalar constant, or of the element of a splat, in memory."""
        from hilo.backend.x86 import constants

        return constants.element(node)

