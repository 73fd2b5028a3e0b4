"""What is known of a function's nodes before it is written: how often each is used, and what may wait for its use.
Imports loop.

One walk from the last node to the first, so that the uses of a node have been seen when it is reached; what nobody uses
does not count as using anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hilo.loop.nodes import Block, Func, Node

EFFECTS: Final = frozenset(("store", "scatter", "call", "callptr", "prefetch", "fence", "memcpy", "memset",
                            "atomic_add", "ret", "for", "while", "if"))  # fmt: skip
_WRITES: Final = EFFECTS - {"prefetch", "ret"}  # what a load does not pass
_POINTS: Final = frozenset(("load", "store", "gather", "scatter", "prefetch", "atomic_add"))
_SUMS: Final = frozenset(("gep", "add"))
_SCALED: Final = frozenset(("sub", "mul", "shl"))
_CALLS: Final = frozenset(("call", "callptr", "memcpy", "memset"))
CHANGES: Final = frozenset(("add", "sub", "and", "or", "xor"))  # of a number in memory, by one instruction
SHORT_COPY, SHORT_FILL = 512, 1024  # bytes that are copied or filled without a call
_MERGE: Final = frozenset(("fadd", "fsub", "fmul", "fdiv", "add", "sub"))
LOGIC: Final = frozenset(("and", "or", "xor"))
#: Integers whose lower bits follow from those of what they are made of.
LOWER_BITS: Final = frozenset(("add", "sub", "mul", "and", "or", "xor", "splat", "convert"))


def is_constant(node: Node) -> bool:
    """Whether the value is made where it is used: a constant, in all lanes too, or `iota`."""
    kind = node.kind
    return kind == "const" or kind == "iota" or (kind == "splat" and node.args[0].kind == "const")


def is_short(node: Node) -> bool:
    """Whether a memcpy or memset is done without a call."""
    size = node.args[2].const
    most = SHORT_COPY if node.kind == "memcpy" else SHORT_FILL
    return size is not None and 0 <= size <= most and (node.kind == "memcpy" or node.args[1].const is not None)


def rotation(node: Node) -> tuple[Node, int] | None:
    """What an `or` of two shifts rotates to the left, and by how many bits."""
    left, right = node.args
    if left.kind == "lshr":
        left, right = right, left
    if left.kind != "shl" or right.kind != "lshr" or left.args[0] is not right.args[0] or node.type.bits < 32:
        return None
    by, back = left.args[1].const, right.args[1].const
    if by is None or back is None or not 0 < by < node.type.bits or by + back != node.type.bits:
        return None
    return left.args[0], by


def merges(node: Node) -> bool:
    """Whether an instruction computes a vector for some lanes and leaves the others alone."""
    t, kind = node.type, node.kind
    if t.scalar == "i1" or t.lanes * t.size > 64 or (kind == "or" and rotation(node)):
        return False
    return kind in _MERGE or (kind == "mul" and t.size > 1) or (kind in ("and", "or", "xor") and t.size >= 4)


def is_repeated(node: Node) -> bool:
    """Whether a shuffle puts 8, 16 or 32 bytes of memory into a register several times, as one instruction does."""
    a, mask = node.args[0], node.attrs["mask"]
    n = a.type.lanes
    return (a.kind == "load" and len(a.args) == 1 and n * a.type.size in (8, 16, 32) and a.type.scalar != "i1"
            and n < len(mask) <= 64 // a.type.size and mask == tuple(range(n)) * (len(mask) // n))  # fmt: skip


class Uses:
    """`uses`: of nodes with effects, and of all others that somebody uses, how often; without constants.

    `lazy`: loads that become an operand of the one node that uses them; compares that are asked for once, by a branch
    or a selection next to them, and those of vectors by `and` and `xor`, too; vectors of i64 of which one node wants
    the lower halves. `near`, `far`: integers and pointers that are only terms of sums and
    addresses: of their own block's nodes, of inner blocks' too.
    """

    def __init__(self, func: Func) -> None:
        self.uses: dict[Node, int] = {}
        self.lazy: set[Node] = set()
        self.near: set[Node] = set()
        self.far: set[Node] = set()
        self._terms: dict[Node, int] = {}  # uses as a term
        self._deep: set[Node] = set()  # terms in inner blocks
        self._seen_at: dict[Node, int] = {}  # loads: the stretch without stores that the last use is in
        self._asked: dict[Node, int] = {}  # what is best done where it is used: the stretch of that place
        self._often: dict[Node, int] = {}  # compares: how often in that stretch
        self._once: dict[Node, int] = {}  # loads: uses by one node that takes them twice
        self.results: dict[Node, dict[int, Node]] = {}  # of structured nodes, by number
        self.rotations: dict[Node, tuple[Node, int]] = {}  # what is rotated to the left, and by how much
        self.split: set[Node] = set()  # masks that lie in as many registers as the vectors that they are for
        self._parted: dict[Node, tuple[int, int]] = {}  # masks: for vectors of how many registers, and how often
        self.negated: set[Node] = set()  # negations that the products which use them do
        self._in_products: dict[Node, int] = {}  # negations: uses by products
        self.calls: set[Node] = set()  # structured nodes that call on their usual way
        self.repeated: set[Node] = set()  # compares of integers that are made where they are used, several times
        self._walk(func)

    def _walk(self, func: Func) -> None:
        uses, stretch = self.uses, 0
        stack: list[Iterator[Node]] = [reversed(func.body.nodes)]
        nest: list[Node | None] = [None]
        while stack:
            for node in stack[-1]:
                kind = node.kind
                if kind in EFFECTS:
                    uses.setdefault(node, 0)
                    if kind in _WRITES:
                        stretch += 1
                        if kind in _CALLS and not (kind[0] == "m" and is_short(node)):
                            self._call(nest)
                elif node not in uses:
                    continue
                elif is_constant(node):
                    del uses[node]
                    continue
                elif node in self._parted and self._is_split(node):
                    self.split.add(node)
                elif self._in_products.get(node) == uses[node]:
                    self.negated.add(node)
                    x = node.args[0]
                    uses[x] = uses.get(x, 0) + uses.pop(node)
                    continue
                elif kind == "load" or node in self._asked:
                    self._wait(node, stretch)
                elif self._terms.get(node) == uses[node]:
                    (self.far if node in self._deep else self.near).add(node)
                self._count(node, stretch)
                if node.blocks:
                    for block in node.blocks:
                        for y in block.yields:
                            uses[y] = uses.get(y, 0) + 1
                        stack.append(reversed(block.nodes))
                        nest.append(node if block is not node.blocks[0] or "rare" not in node.attrs else None)
                    if kind == "while":
                        self._ask_at_end(node.blocks[0])
                    break
            else:
                stack.pop()
                nest.pop()
                stretch += 1

    def _ask_at_end(self, test: Block) -> None:
        """A loop's test may wait for the jump, if nothing that it reads changes before that."""
        (y,) = test.yields
        if y.level == test.level and not any(n.kind in _WRITES for n in test.nodes):
            self._asked[y] = -1

    def _call(self, nest: list[Node | None]) -> None:
        for node in reversed(nest):
            if node is None or node in self.calls:
                return
            self.calls.add(node)

    def _wait(self, node: Node, stretch: int) -> None:
        if node.kind == "cmp" and self._often.get(node) == self.uses[node] > 1 and self._asked[node] == stretch:
            self._repeat(node)
        elif self.uses[node] == self._once.get(node, 1):
            if node.kind == "load":
                if self._seen_at.get(node) == stretch:
                    self.lazy.add(node)
            elif self._asked[node] in (stretch, -1):
                self.lazy.add(node)

    def _is_split(self, node: Node) -> bool:
        """Whether all that uses a mask wants it in parts, and it is made so."""
        n, count = self._parted[node]
        if count != self.uses[node]:
            return False
        t = node.args[0].type
        return node.kind in LOGIC or (node.kind == "cmp" and t.scalar != "i1" and t.lanes * t.size == 64 * n)

    def parts_of_mask(self, mask: Node) -> int:
        """How many registers a mask lies in that is split."""
        return self._parted[mask][0]

    def _part(self, mask: Node, n: int) -> None:
        """Count a use of a mask for a vector of `n` registers."""
        others, count = self._parted.get(mask, (n, 0))
        self._parted[mask] = n, count + 1 if others == n else 1 << 30

    def _repeat(self, node: Node) -> None:
        if node.type.lanes == 1 and not node.args[0].type.is_float:
            self.lazy.add(node)
            self.repeated.add(node)

    def _count(self, node: Node, stretch: int) -> None:
        uses, kind, level = self.uses, node.kind, node.level
        if kind == "or" and (found := rotation(node)) is not None:
            self.rotations[node] = found
            uses[found[0]] = uses.get(found[0], 0) + 1
            return
        if kind == "shuffle" and node.args[0] is node.args[1] and is_repeated(node):
            self._once[node.args[0]] = 2
        for i, a in enumerate(node.args):
            uses[a] = uses.get(a, 0) + 1
            if a.kind == "load":
                if a.level == level and not node.blocks and node not in self.repeated:
                    self._seen_at[a] = stretch
            elif kind in _SUMS or (kind in _SCALED and not i) or (kind in _POINTS and not i):
                self._terms[a] = self._terms.get(a, 0) + 1
                if a.level != level:
                    self._deep.add(a)
        if kind == "fma":
            for a in node.args:
                if a.kind == "fneg" and a.level == level and a.args[0].const is None:
                    self._in_products[a] = self._in_products.get(a, 0) + 1
        elif kind == "select" or kind == "if":
            c = node.args[0]
            if node.type.lanes > 1:
                if node.type.scalar != "i1" and (size := node.type.lanes * node.type.size) > 64 and c.type.lanes > 1:
                    self._part(c, size // 64)
                for a in node.args[1:]:
                    if a.level == level and merges(a):
                        self._asked[a] = stretch
            asked = c.level == level and (c.kind == "cmp" or c.kind == "any")
            if asked and self._asked.setdefault(c, stretch) == stretch:
                self._often[c] = self._often.get(c, 0) + 1
        elif kind == "store":
            v = node.args[1]
            if v.kind in CHANGES and v.level == level and v.type.lanes == 1 and len(node.args) == 2:
                x = v.args[0]
                if x.kind == "load" and x.args == node.args[:1] and v.type.scalar != "i1":
                    self._asked[v] = stretch
        elif node.type.lanes > 1:
            self._ask(node, stretch)

    def _ask(self, node: Node, stretch: int) -> None:
        """What of a vector's operands is best done with it."""
        kind, level = node.kind, node.level
        if node.type.scalar == "i1":
            if node in self.split:
                if kind in LOGIC:
                    for a in node.args:
                        self._part(a, self._parted[node][0])
            elif kind == "and" or kind == "xor":
                for a in node.args:
                    negated = kind == "and" and a.kind == "xor" and a.args[1].const
                    if a.level == level and (a.kind == "cmp" or negated):
                        self._asked[a] = stretch
            elif kind == "cmp" and (a := node.args[0]).kind == "and" and a.level == level and node.args[1].const == 0:
                if node.attrs["pred"] in ("eq", "ne") and a.type.lanes * a.type.size <= 64 and a.type.scalar != "i1":
                    self._asked[a] = stretch
            elif kind == "cmp" and node.args[0].kind == "iota":
                a = node.args[1]
                if a.kind == "splat" and a.level == level:
                    self._asked[a] = stretch
        elif kind == "splat":
            a = node.args[0]
            if a.kind == "lane" and a.level == level:
                self._asked[a] = stretch if a.args[0].kind == "load" else -1
        elif kind in LOGIC and node.type.lanes * node.type.size <= 64:
            for a in node.args:
                if a.kind in LOGIC and a.level == level and not (a.kind == "or" and rotation(a)):
                    self._asked[a] = stretch
        elif (kind == "convert" and node.attrs["how"] == "itrunc") or (node in self.lazy and kind != "load"):
            for a in node.args:
                turns = a.kind == "or" and rotation(a)
                if a.type.scalar == "i64" and a.kind in LOWER_BITS and a.level == level and not turns:
                    self._asked[a] = stretch

    def outer(self, block: Block) -> dict[Node, int]:
        """How often what lies outside of a block is used in it."""
        found: dict[Node, int] = {}
        uses, level = self.uses, block.level
        stack = [block]
        while stack:
            inner = stack.pop()
            for y in inner.yields:
                if y.level < level:
                    found[y] = found.get(y, 0) + 1
            for node in inner.nodes:
                if node in uses:
                    for a in node.args if node not in self.rotations else self.rotations[node][:1]:
                        if a in self.negated:
                            a = a.args[0]
                        if a.level < level:
                            found[a] = found.get(a, 0) + 1
                    stack.extend(node.blocks)
        return found
