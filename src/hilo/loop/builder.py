"""The builder of loop IR. Equal pure nodes are made once, constants fold, and what a loop does not change is placed
outside of it at once, so that backends need no middle-end passes. Everything is lane-agnostic: scalar operands are
splatted to the other operand's lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any

from hilo.ir.dims import Number, Size
from hilo.loop.nodes import F32, F64, I1, I8, I16, I32, I64, PTR, VOID, Block, Func, Node, VType

__all__ = ["F32", "F64", "I1", "I8", "I16", "I32", "I64", "PTR", "VOID", "Builder", "Func", "Node", "VType"]

Num = int | float | bool | Size
_INT_FOLD: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}
_QUOTIENTS: dict[str, Callable[[int, int], int]] = {  # of numbers that are not negative
    "sdiv": lambda a, b: a // b,
    "udiv": lambda a, b: a // b,
    "srem": lambda a, b: a % b,
    "urem": lambda a, b: a % b,
}
_PRED: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "slt": lambda a, b: a < b,
    "sle": lambda a, b: a <= b,
    "sgt": lambda a, b: a > b,
    "sge": lambda a, b: a >= b,
}


def wrap(value: int, bits: int) -> int:
    """`value` as a signed integer of `bits` bits (i1 stays 0 or 1)."""
    if bits == 1:
        return value & 1
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


class Builder:
    """Builds one `Func`. `block` is where effects go; pure nodes go to the outermost block that has their operands."""

    def __init__(self, func: Func) -> None:
        self.func = func
        self.block = func.body
        self._chain: list[Block] = [func.body]  # from the function's body to `block`
        self._floor = 0  # the level of the innermost branch of an `if`, which pure nodes do not leave
        self.sizes: Callable[[Any], Node] | None = None  # values of symbols, see loop/sizes.py
        # Of pieces of code by name, see loop/helpers.py: nodes of all and of one; where a function leaves its values.
        self.written: dict[str, tuple[int, int]] = {}
        self._constants: dict[tuple[VType, Any], Node] = {}  # all of the function's body itself
        self.places: dict[str, list[Node]] = {}

    # ---- making nodes
    def pure(self, kind: str, args: tuple[Node, ...], type: VType, **attrs: Any) -> Node:  # noqa: A002
        """A node without effects, shared with an equal earlier one, hoisted as far as its operands allow."""
        lowest = 0  # where the operands are known
        for a in args:
            if a.level > lowest:
                lowest = a.level
        level = self._floor if self._floor > lowest else lowest
        chain = self._chain
        home = chain[level]
        key = (kind, args, type, *attrs.items())
        found = home.known.get(key)
        while found is None and level > lowest:  # made before the branches around this place
            level -= 1
            found = chain[level].known.get(key)
        if found is None:
            found = home.known[key] = Node(kind, args, type, attrs, home.level)
            home.nodes.append(found)
        return found

    def effect(self, kind: str, args: tuple[Node, ...], type: VType = VOID, **attrs: Any) -> Node:  # noqa: A002
        """A node that stays where it is: loads, stores, calls."""
        node = Node(kind, args, type, attrs, self.block.level)
        self.block.nodes.append(node)
        return node

    def const(self, value: Num | tuple[Num, ...], type: VType) -> Node:  # noqa: A002
        """A constant; a number for a vector type is splatted."""
        key = (type, repr(value) if not value or isinstance(value, tuple) else value)  # zeros have signs
        return self._constants.get(key) or self._constant(key, value, type)

    def _constant(self, key: tuple[VType, Any], value: Any, type: VType) -> Node:  # noqa: A002
        """A constant that has not been asked for in this way yet. It costs nothing wherever it is used: the function's
        body has it."""
        if not isinstance(value, tuple):
            own = float(value) if type.is_float else wrap(int(value), type.bits)
            if own != own:  # NaN
                known = self._constants.get((type, "nan"))
                if known is not None:
                    return known
                key = (type, "nan")
            elif own.__class__ is not value.__class__ or own != value:  # the same number, written otherwise
                node = self._constants[key] = self.const(own, type)
                return node
            value = own
        if type.lanes > 1 and not isinstance(value, tuple):
            node = Node("splat", (self.const(value, type.with_lanes(1)),), type)
        else:
            node = Node("const", (), type, {"value": value})
        self.func.body.nodes.append(node)
        self._constants[key] = node
        return node

    def i64(self, value: Number) -> Node:
        """An i64 of this value: an int, or a size that is known only at run time."""
        if isinstance(value, int):
            return self._constants.get((I64, value or "0")) or self.const(value, I64)
        from hilo.loop import sizes

        return sizes.node(self, value)

    def _pair(self, a: Node | Num, b: Node | Num) -> tuple[Node, Node]:
        if not isinstance(a, Node):
            assert isinstance(b, Node)
            a = self.i64(a) if isinstance(a, Size) else self.const(a, b.type)
        elif not isinstance(b, Node):
            b = self.i64(b) if isinstance(b, Size) else self.const(b, a.type)
        if a.type.lanes != b.type.lanes:
            if a.type.lanes == 1:
                a = self.splat(a, b.type.lanes)
            else:
                b = self.splat(b, a.type.lanes)
        assert a.type is b.type, f"{a.type} and {b.type}"
        return a, b

    def binary(self, kind: str, a: Node | Num, b: Node | Num) -> Node:
        """One of the two-operand arithmetic kinds; numbers become constants of the other operand's type."""
        if not (isinstance(a, Node) and isinstance(b, Node) and a.type is b.type):
            a, b = self._pair(a, b)
        t = a.type
        if t.is_float or (a.const is None and b.const is None):
            return self.pure(kind, (a, b), t)
        return self._folded(kind, a, b) or self.pure(kind, (a, b), t)

    def _folded(self, kind: str, a: Node, b: Node) -> Node | None:
        """What an operation on integers gives, if that is one of them or a constant."""
        x, y = a.const, b.const
        if x is not None and y is not None:
            if kind in _INT_FOLD:
                return self.const(wrap(_INT_FOLD[kind](x, y), a.type.bits), a.type)
            if kind in _QUOTIENTS and x >= 0 < y:
                return self.const(_QUOTIENTS[kind](x, y), a.type)
        if y == 0 and kind in ("add", "sub", "or", "xor", "shl", "lshr", "ashr"):
            return a
        if x == 0 and kind in ("add", "or", "xor"):
            return b
        if kind == "and" and (x == 0 or y == 0):
            return self.const(0, a.type)
        if a.type.scalar == "i1" and kind in ("and", "or") and (x or y):
            one, other = (a, b) if x else (b, a)
            return other if kind == "and" else one
        if y == 1 and kind in ("mul", "sdiv", "udiv"):
            return a
        if x == 1 and kind == "mul":
            return b
        if y == 1 and kind in ("srem", "urem"):
            return self.const(0, a.type)
        return self.const(0, a.type) if kind == "mul" and (x == 0 or y == 0) else None

    def unary(self, kind: str, a: Node) -> Node:
        return self.pure(kind, (a,), a.type)

    # ---- integers and floats
    def add(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("add", a, b)  # fmt: skip

    def sub(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("sub", a, b)  # fmt: skip

    def mul(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("mul", a, b)  # fmt: skip

    def and_(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("and", a, b)  # fmt: skip

    def or_(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("or", a, b)  # fmt: skip

    def xor(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("xor", a, b)  # fmt: skip

    def shl(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("shl", a, b)  # fmt: skip

    def lshr(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("lshr", a, b)  # fmt: skip

    def ashr(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("ashr", a, b)  # fmt: skip

    def fadd(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("fadd", a, b)  # fmt: skip

    def fsub(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("fsub", a, b)  # fmt: skip

    def fmul(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("fmul", a, b)  # fmt: skip

    def fdiv(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("fdiv", a, b)  # fmt: skip

    def copysign(self, a: Node | Num, b: Node | Num) -> Node: return self.binary("copysign", a, b)  # fmt: skip

    def fma(self, a: Node | Num, b: Node | Num, c: Node | Num) -> Node:
        """a * b + c, rounded once."""
        types = [x.type for x in (a, b, c) if isinstance(x, Node)]
        t = types[0]
        for other in types:
            if other.lanes > t.lanes:
                t = other
        args = [self.const(x, t) if not isinstance(x, Node) else x if x.type is t else self.splat(x, t.lanes)
                for x in (a, b, c)]  # fmt: skip
        return self.pure("fma", tuple(args), t)

    def scale(self, x: Node, n: Node) -> Node: return self.pure("scale", (x, n), x.type)  # fmt: skip

    def dot(self, parts: int, acc: Node, a: Node, b: Node) -> Node:
        """acc + the products of the 4 bytes (a's unsigned, b's signed) or 2 halves (signed) of each i32 lane."""
        return self.pure(f"dot{parts}", (acc, a, b), acc.type)

    def dot_same(self, signed: bool, acc: Node, a: Node, b: Node) -> Node:
        """acc + the products of the 4 bytes of each i32 lane, all signed or all unsigned."""
        return self.pure("sdot4" if signed else "udot4", (acc, a, b), acc.type)

    def dot_bf16(self, acc: Node, a: Node, b: Node) -> Node:
        """acc (f32) + the products of the two bf16 in each i32 lane of a and b, in an order and with roundings that are
        the machine's; subnormals may count as 0."""
        return self.pure("dot_bf16", (acc, a, b), acc.type)

    def fneg(self, a: Node) -> Node: return self.unary("fneg", a)  # fmt: skip

    def fabs(self, a: Node) -> Node: return self.unary("fabs", a)  # fmt: skip

    def sqrt(self, a: Node) -> Node: return self.unary("sqrt", a)  # fmt: skip

    def floor(self, a: Node) -> Node: return self.unary("floor", a)  # fmt: skip

    def ceil(self, a: Node) -> Node: return self.unary("ceil", a)  # fmt: skip

    def rint(self, a: Node) -> Node: return self.unary("rint", a)  # fmt: skip

    def ftrunc(self, a: Node) -> Node: return self.unary("trunc", a)  # fmt: skip

    def cmp(self, pred: str, a: Node | Num, b: Node | Num) -> Node:
        """Compare; the predicate's name says integer (slt, ult, eq ...) or float (olt, oeq, une, uno ...)."""
        a, b = self._pair(a, b)
        x, y = a.const, b.const
        if pred in _PRED and x is not None and y is not None:
            return self.const(int(_PRED[pred](x, y)), a.type.with_scalar("i1"))
        if (pred == "uno" or pred == "ord") and x is not None and y is not None:
            return self.const(int((x == x and y == y) == (pred == "ord")), a.type.with_scalar("i1"))
        return self.pure("cmp", (a, b), a.type.with_scalar("i1"), pred=pred)

    def select(self, c: Node, a: Node | Num, b: Node | Num) -> Node:
        """a where c, else b; c may be one bit for whole vectors, or a mask."""
        a, b = self._pair(a, b)
        if a is b:
            return a
        if c.const is not None:
            lanes = max(c.type.lanes, a.type.lanes)
            return self.splat(a if c.const else b, lanes)
        if c.type.lanes > 1 and a.type.lanes == 1:
            a, b = self.splat(a, c.type.lanes), self.splat(b, c.type.lanes)
        return self.pure("select", (c, a, b), a.type)

    def smin(self, a: Node | Num, b: Node | Num) -> Node:
        a, b = self._pair(a, b)
        chosen = a.kind == "select" and a.args[2] is b and a.args[0].args == a.args[1:]
        if chosen and a.args[0].attrs.get("pred") == "slt":
            return a  # the less of something and b already
        return self.select(self.cmp("slt", a, b), a, b)

    def smax(self, a: Node | Num, b: Node | Num) -> Node:
        a, b = self._pair(a, b)
        return self.select(self.cmp("sgt", a, b), a, b)

    def not_(self, a: Node) -> Node:
        return self.xor(a, -1 if a.type.scalar != "i1" else 1)

    # ---- conversions and lanes
    def convert(self, how: str, a: Node, scalar: str) -> Node:
        """Convert to the scalar type named `scalar`, keeping the lanes (see `how` in loop/nodes.py)."""
        t = a.type.with_scalar(scalar)
        if t is a.type and how != "bitcast":
            return a
        c = a.const
        if c is not None and how in ("sext", "itrunc"):
            return self.const(c, t)
        if c is not None and how == "zext":
            return self.const(c & ((1 << a.type.bits) - 1), t)
        return self.pure("convert", (a,), t, how=how)

    def bitcast(self, a: Node, scalar: str) -> Node:
        """Reinterpret each lane's bits as `scalar`, of the same width."""
        if a.const in (inf, -inf) and a.type.scalar == "f32":  # where a reduction begins
            return self.const(0x7F800000 if a.const > 0 else -0x800000, a.type.with_scalar(scalar))
        return a if a.type.scalar == scalar else self.pure("convert", (a,), a.type.with_scalar(scalar), how="bitcast")

    def splat(self, a: Node, lanes: int) -> Node:
        if a.type.lanes == lanes:
            return a
        assert a.type.lanes == 1
        t = a.type.with_lanes(lanes)
        return self.pure("splat", (a,), t) if a.const is None else self.const(a.const, t)

    def lane(self, v: Node, index: int) -> Node:
        if v.kind == "splat":
            return v.args[0]
        return v if v.type.lanes == 1 else self.pure("lane", (v,), v.type.with_lanes(1), index=index)

    def across(self, how: str, v: Node) -> Node:
        """All lanes combined into one, halves with halves (see `across` in loop/nodes.py)."""
        return v if v.type.lanes == 1 else self.pure("across", (v,), v.type.with_lanes(1), how=how)

    def insert(self, v: Node, a: Node, index: int) -> Node:
        return self.pure("insert", (v, a), v.type, index=index)

    def iota(self, type: VType) -> Node:  # noqa: A002
        """0, 1, 2 ... in the lanes of an integer vector type (0 for a scalar)."""
        return self.const(0, type) if type.lanes == 1 else self.pure("iota", (), type)

    def shuffle(self, a: Node, b: Node, mask: Iterable[int]) -> Node:
        mask = tuple(mask)
        return self.pure("shuffle", (a, b), a.type.with_lanes(len(mask)), mask=mask)

    # ---- memory
    def gep(self, ptr: Node, offset: Node | Number) -> Node:
        """`ptr` plus a number of bytes."""
        if not isinstance(offset, Node):
            offset = self.i64(offset)
        return ptr if offset.const == 0 else self.pure("gep", (ptr, offset), PTR)

    def load(self, ptr: Node, type: VType, *, mask: Node | None = None, align: int = 0, nontemporal: bool = False,  # noqa: A002
             invariant: bool = False) -> Node:  # fmt: skip
        """`invariant`: memory does not change and may be read once its address is known; the load may be hoisted."""
        args = (ptr,) if mask is None else (ptr, mask)
        attrs = {"align": align or type.size, "nontemporal": nontemporal}
        if invariant:
            return self.pure("load", args, type, **attrs, invariant=True)
        return self.effect("load", args, type, **attrs, invariant=False)

    def store(
        self, ptr: Node, value: Node, *, mask: Node | None = None, align: int = 0, nontemporal: bool = False
    ) -> Node:
        args = (ptr, value) if mask is None else (ptr, value, mask)
        return self.effect("store", args, align=align or value.type.size, nontemporal=nontemporal)

    def gather(self, ptr: Node, offsets: Node, type: VType, *, mask: Node | None = None) -> Node:  # noqa: A002
        """Lane l: the element at `ptr` + `offsets[l]` bytes (i64 vector)."""
        return self.effect("gather", (ptr, offsets) if mask is None else (ptr, offsets, mask), type)

    def scatter(self, ptr: Node, offsets: Node, value: Node, *, mask: Node | None = None) -> Node:
        return self.effect("scatter", (ptr, offsets, value) if mask is None else (ptr, offsets, value, mask))

    def alloca(self, size: int, align: int = 64) -> Node:
        """`size` bytes of stack, allocated once at the function's start."""
        node = Node("alloca", (), PTR, {"size": size, "align": align}, 0)
        self.func.body.nodes.insert(0, node)
        return node

    def prefetch(self, ptr: Node, *, write: bool = False, locality: int = 3) -> Node:
        return self.effect("prefetch", (ptr,), write=write, locality=locality)

    def memcpy(self, dst: Node, src: Node, size: Node | Number) -> Node:
        return self.effect("memcpy", (dst, src, size if isinstance(size, Node) else self.i64(size)))

    def memset(self, dst: Node, byte: int, size: Node | Number) -> Node:
        return self.effect("memset", (dst, self.const(byte, I8), size if isinstance(size, Node) else self.i64(size)))

    def fence(self) -> Node:
        """Order non-temporal stores before what follows (sfence)."""
        return self.effect("fence", ())

    def call(self, callee: str, args: Iterable[Node], type: VType = VOID) -> Node:  # noqa: A002
        return self.effect("call", tuple(args), type, callee=callee)

    def callptr(self, fn: Node, args: Iterable[Node], type: VType = VOID) -> Node:  # noqa: A002
        return self.effect("callptr", (fn, *args), type)

    def funcptr(self, name: str) -> Node:
        """The address of the function `name`."""
        return self.pure("funcptr", (), PTR, name=name)

    def size(self) -> int:
        """How many nodes there are in the blocks that are being built."""
        return sum([len(block.nodes) for block in self._chain])

    def ret(self, value: Node | None = None) -> None:
        self.effect("ret", () if value is None else (value,))

    # ---- structured control flow
    def _fill(self, block: Block, build: Callable[..., Iterable[Node] | None], params: Iterable[Node] = ()) -> None:
        """Let `build` make the nodes of a block inside of this one; what it gives is what the block yields."""
        outer, floor = self.block, self._floor
        self.block = block
        self._chain.append(block)
        if block.barrier:
            self._floor = block.level
        block.yields = tuple(build(*params) or ())
        self._floor = floor
        self._chain.pop()
        self.block = outer

    def _params(self, block: Block, types: Iterable[VType]) -> tuple[Node, ...]:
        block.params = tuple([Node("param", (), t, {"index": i}, block.level) for i, t in enumerate(types)])
        return block.params

    def _results(self, node: Node, types: Iterable[VType]) -> tuple[Node, ...]:
        out = []
        for i, t in enumerate(types):
            r = Node("result", (node,), t, {"index": i}, self.block.level)
            self.block.nodes.append(r)
            out.append(r)
        return tuple(out)

    def for_(self, lo: Node | Number, hi: Node | Number, step: Node | Number,
             body: Callable[..., Iterable[Node] | None],
             init: Iterable[Node] = (), *, unroll: int = 1) -> tuple[Node, ...]:  # fmt: skip
        """for iv in range(lo, hi, step): carried = body(iv, *carried). Gives the last carried values."""
        lo, hi, step = (x if isinstance(x, Node) else self.i64(x) for x in (lo, hi, step))
        init = tuple(init)
        if lo.const is not None and hi.const is not None and step.const is not None:
            if lo.const >= hi.const:
                return init
            if lo.const + step.const >= hi.const:  # exactly one turn: no loop
                return tuple(body(lo, *init) or ())
        block = Block(self.block)
        self._fill(block, body, self._params(block, [lo.type, *[v.type for v in init]]))
        assert [y.type for y in block.yields] == [v.type for v in init], "a loop yields what it carries"
        node = Node("for", (lo, hi, step, *init), VOID, {"unroll": unroll}, self.block.level, (block,))
        self.block.nodes.append(node)
        return self._results(node, [v.type for v in init])

    def while_(
        self, init: Iterable[Node], cond: Callable[..., Node], body: Callable[..., Iterable[Node]]
    ) -> tuple[Node, ...]:
        """while cond(*carried): carried = body(*carried)."""
        init = tuple(init)
        test, block = Block(self.block), Block(self.block)
        types = [v.type for v in init]
        self._fill(test, lambda *carried: (cond(*carried),), self._params(test, types))
        self._fill(block, body, self._params(block, types))
        node = Node("while", init, VOID, None, self.block.level, (test, block))
        self.block.nodes.append(node)
        return self._results(node, types)

    def if_(self, cond: Node, then: Callable[[], Iterable[Node] | None],
            orelse: Callable[[], Iterable[Node] | None] | None = None, *,
            rare: bool = False) -> tuple[Node, ...]:  # fmt: skip
        """if cond: then() else: orelse(); both give values of the same types. A constant condition leaves no branch.

        `rare`: the condition hardly ever holds.
        """
        if cond.const is not None:
            chosen = then if cond.const else orelse
            return tuple((chosen() if chosen else None) or ())
        blocks = []
        for build in (then, orelse):
            block = Block(self.block, barrier=True)
            if build is not None:
                self._fill(block, build)
            blocks.append(block)
        node = Node("if", (cond,), VOID, {"rare": True} if rare else None, self.block.level, tuple(blocks))
        self.block.nodes.append(node)
        return self._results(node, [v.type for v in blocks[0].yields])
