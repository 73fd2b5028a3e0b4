"""Scalar integers, pointers and bits: arithmetic, compares, selections, conversions between widths. Imports
x86.select, x86.machine.

Sums, and products by what an address can scale by, are addresses: nodes that only feed other such nodes and memory
operands are computed there. Bits of a register beyond the type's width are undefined (i1 has 8 bits, 0 or 1): what
depends on them extends first.
"""

from __future__ import annotations

from typing import Any, Final

from hilo.backend.x86.constants import label
from hilo.backend.x86.control import OPPOSITE
from hilo.backend.x86.machine import FIRST, FRAME, GENERAL, NO, Address
from hilo.backend.x86.select import CONDITIONS, Selector, Value, selects
from hilo.loop.nodes import Node, VType

_LOW, _HIGH = -(1 << 31), 1 << 31
LOW_PARTS: Final = {0xFF: "movzb", 0xFFFF: "movzw", 0xFFFFFFFF: "mov"}  # by the mask that leaves them
PREDICATES: Final = {"eq": "e", "ne": "ne", "slt": "l", "sle": "le", "sgt": "g", "sge": "ge", "ult": "b", "ule": "be",
                     "ugt": "a", "uge": "ae"}  # fmt: skip
_SWAPPED: Final = {"e": "e", "ne": "ne", "l": "g", "le": "ge", "g": "l", "ge": "le", "b": "a", "be": "ae", "a": "b",
                   "ae": "be"}  # fmt: skip


def width(t: VType) -> int:
    """The operand size for arithmetic on a type."""
    return 8 if t.size == 8 else 4


def small(node: Node) -> int | None:
    """The value of a constant that fits into an instruction."""
    c = node.const
    return c if c is not None and _LOW <= c < _HIGH else None


# ---- sums and products
def total(s: Selector, node: Node, a: Address) -> Value:
    """The value of a node that is an address: computed here, or where it is used."""
    if a.index == NO and not a.disp and a.base >= FIRST:
        return a.base
    if node in s.near or (node in s.far and (a.index == NO or a.base == NO)):
        return a
    r = s.result(node)
    s.compute(r, a)
    return r


def gep(s: Selector, node: Node) -> Value:
    return total(s, node, s.total(node))


def add(s: Selector, node: Node) -> Value:
    if node.type.size < 4:
        return two_operands(s, node, "add" if node.type.scalar != "i1" else "xor", True)
    return total(s, node, s.total(node))


def subtract(s: Selector, node: Node) -> Value:
    a, b = node.args
    c = small(b)
    if node.type.scalar == "i1":
        return two_operands(s, node, "xor", True)
    if c is not None and c != _LOW:
        return total(s, node, s.sum(s.affine(a), Address(NO, NO, 1, -c)))
    return two_operands(s, node, "sub", False)


def scaled(s: Selector, node: Node, by: int) -> Value:
    """The product with a constant that fits into an instruction."""
    a = s.affine(node.args[0])
    if a.base != NO and a.index != NO:
        a = Address(s.materialize(a))
    disp = a.disp * by
    if not _LOW <= disp < _HIGH:
        a, disp = Address(s.materialize(a)), 0
    register, scale = (a.base, 1) if a.base != NO else (a.index, a.scale)
    if register == NO:
        return total(s, node, Address(NO, NO, 1, disp))
    scale *= by
    if scale in (1, 2, 4, 8):
        return total(s, node, Address(register, NO, 1, disp) if scale == 1 else Address(NO, register, scale, disp))
    if scale in (3, 5, 9):
        a = Address(register, register, scale - 1, disp)
        if disp or node in s.near:
            return total(s, node, a)
        r = s.result(node)
        s.compute(r, a)
        return r
    inner = disp and (node in s.near or node in s.far)
    r = s.new(GENERAL) if disp else s.result(node)
    size = width(node.type)
    if scale > 0 and not scale & (scale - 1):
        s.move(r, register)
        s.g("shl", size, r, imm=scale.bit_length() - 1)
    elif _LOW <= scale < _HIGH:
        s.g("imul", size, r, register, imm=scale)
    else:
        t = s.new(GENERAL)
        s.g("mov", 8, t, imm=scale)
        s.g("imul", 8, t, register)
        r = t
    if not disp:
        return r
    return Address(r, NO, 1, disp) if inner else total(s, node, Address(r, NO, 1, disp))


def multiply(s: Selector, node: Node) -> Value:
    by = small(node.args[1])
    if by is not None and node.type.scalar != "i1":
        return scaled(s, node, by)
    return two_operands(s, node, "imul" if node.type.scalar != "i1" else "and", True)


# ---- two operands, of which the first one is overwritten
def two_operands(s: Selector, node: Node, name: str, commutes: bool) -> int:
    size = width(node.type)
    x, y = node.args
    imm = small(y)
    a = s.use(x)
    if imm is not None and name != "imul":
        r = in_place(s, node, a)
        s.g(name, size, r, imm=imm)
        return r
    b: Any = memory_or_register(s, y)
    if commutes and b.__class__ is int and not s.dies(a) and s.dies(b):
        a, b = b, a
    wish = s.wish.get(node)
    if wish == b and b != a:  # where a is to go, and b still is
        if not commutes:
            r = s.new(GENERAL)
            s.move(r, a)
        else:
            r, b = in_place(s, node, b), a
    else:
        r = in_place(s, node, a)
    s.g(name, size, r, b)
    return r


def in_place(s: Selector, node: Node, a: int) -> int:
    """The register for a result that begins as `a`, with `a` in it."""
    wish = s.wish.get(node)
    if s.dies(a) and (wish is None or s.left[wish]):
        return a
    r = s.result(node)
    s.move(r, a)
    return r


def memory_or_register(s: Selector, node: Node) -> int | Address:
    """An operand that may be in memory, of 4 or 8 bytes."""
    if node in s.lazy and node.kind == "load" and node.type.size >= 4 and s.env.get(node) is None:
        return s.affine(node.args[0])
    return s.use(node)


def logic(s: Selector, node: Node) -> Value:
    if node in s.seen.rotations:
        x, by = s.seen.rotations[node]
        r = in_place(s, node, s.use(x))
        s.g("rol", width(node.type), r, imm=by)
        return r
    low = LOW_PARTS.get(node.args[1].const) if node.kind == "and" and node.type.size >= 4 else None
    if low is not None:
        a = s.use(node.args[0])
        r = s.result(node)
        s.g(low, 4, r, a)
        return r
    return two_operands(s, node, node.kind, True)


# ---- shifts
def extended(s: Selector, node: Node, signed: bool) -> int:
    """A register with an operand, all of whose lower 32 bits are right."""
    r = s.use(node)
    bits = node.type.bits
    if bits >= 32:
        return r
    t = s.new(GENERAL)
    if bits == 1:
        s.g("movzb", 4, t, r)
        if signed:
            s.g("neg", 4, t)
    else:
        s.g(("movs" if signed else "movz") + ("b" if bits == 8 else "w"), 4, t, r)
    return t


def shift(s: Selector, node: Node) -> Value:
    x, y = node.args
    kind, t = node.kind, node.type
    c = y.const
    if t.scalar == "i1":
        s.use(y)
        return s.use(x)
    if kind == "shl" and c is not None and 0 <= c < min(t.bits, 31):
        return scaled(s, node, 1 << c)
    a = s.use(x) if kind == "shl" else extended(s, x, kind == "ashr")
    size = width(t)
    if c is not None:
        r = in_place(s, node, a)
        s.g({"shl": "shl", "lshr": "shr", "ashr": "sar"}[kind], size, r, imm=min(c & ((1 << t.bits) - 1), t.bits - 1))
        return r
    count = s.use(y) if t.bits >= 32 else extended(s, y, False)
    r = s.result(node)
    s.g({"shl": "shlx", "lshr": "shrx", "ashr": "sarx"}[kind], size, r, a, first=count)
    return r


# ---- compares and selections
def compare(s: Selector, node: Node) -> str:
    """Set the flags; gives the condition."""
    x, y = node.args
    size = 1 if x.type.scalar == "i1" else x.type.size
    condition = PREDICATES[node.attrs["pred"]]
    imm = small(y)
    if imm is None and small(x) is not None:
        x, y, condition, imm = y, x, _SWAPPED[condition], small(x)
    if x.type.scalar == "i1" and condition in ("l", "le", "g", "ge"):  # as a signed number it is 0 or -1
        condition = _SWAPPED[{"l": "b", "le": "be", "g": "a", "ge": "ae"}[condition]]
    if imm is not None:
        if size < 4:
            imm = imm & ((1 << 8 * size) - 1)
            imm -= (1 << 8 * size) if imm >> (8 * size - 1) else 0
        a = s.use(x)
        if not imm and condition in ("e", "ne", "l", "ge"):
            s.g("test", size, a, a)
            return {"l": "s", "ge": "ns"}.get(condition, condition)
        s.g("cmp", size, a, imm=imm)
        return condition
    a = s.use(x)
    s.g("cmp", size, a, memory_or_register(s, y))
    return condition


def flags(s: Selector, node: Node) -> str:
    if node.args[0].type.is_float:
        from hilo.backend.x86 import floats

        return floats.compare(s, node)
    return compare(s, node)


def compared(s: Selector, node: Node) -> Value:
    if node.args[0].type.is_float:
        from hilo.backend.x86 import floats

        return floats.compared(s, node)
    condition = compare(s, node)
    r = s.result(node)
    s.g("set" + condition, 1, r)
    return r


def select(s: Selector, node: Node) -> Value:
    c, x, y = node.args
    a, b = s.use(x), s.use(y)
    condition = s.condition(c)
    size = width(node.type)
    wish = s.wish.get(node)
    free = wish is not None and not s.left[wish]
    if (s.dies(a) and not s.dies(b) and not (free and wish == b)) or (free and wish == a and wish != b):
        a, b, condition = b, a, OPPOSITE[condition]
    r = in_place(s, node, b)
    s.g("cmov" + condition, size, r, a)
    return r


# ---- bits
def count_bits(s: Selector, node: Node) -> Value:
    t, size = node.type, width(node.type)
    a = extended(s, node.args[0], False)
    if node.kind == "cttz" and t.bits < 32:
        a, x = s.new(GENERAL), a
        s.move(a, x)
        s.g("or", 4, a, imm=1 << t.bits)
    r = s.result(node)
    s.g({"ctpop": "popcnt", "ctlz": "lzcnt", "cttz": "tzcnt"}[node.kind], size, r, a)
    if node.kind == "ctlz" and t.bits < 32:
        s.g("sub", 4, r, imm=32 - t.bits)
    return r


def swap_bytes(s: Selector, node: Node) -> Value:
    a = s.use(node.args[0])
    bits = node.type.bits
    if bits == 8:
        return a
    r = in_place(s, node, a)
    s.g("bswap", width(node.type), r)
    if bits == 16:
        s.g("shr", 4, r, imm=16)
    return r


# ---- conversions
def convert(s: Selector, node: Node) -> Value:
    """Between integers of different widths; pointers are i64."""
    (x,), how, t = node.args, node.attrs["how"], node.type
    bits = x.type.bits
    if how in ("ptrtoint", "bitcast"):
        a = s.affine(x)
        return s.materialize(a) if a.base == FRAME else a  # which is no index, as a number may be
    if how == "itrunc":
        a = s.use(x)
        if t.scalar != "i1":
            return a
        r = in_place(s, node, a)
        s.g("and", 4, r, imm=1)
        return r
    a = s.use(x)
    if how == "zext":
        r = s.result(node)
        s.g({1: "movzb", 8: "movzb", 16: "movzw", 32: "mov"}[bits], 4, r, a)
        return r
    if bits == 1:
        r = s.result(node)
        s.g("movzb", 4, r, a)
        s.g("neg", 8, r)
        return r
    r = s.result(node)
    s.g({8: "movsb", 16: "movsw", 32: "movsl"}[bits], 8, r, a)
    return r


def result(s: Selector, node: Node) -> Value:
    return s.structures[node.args[0]][node.attrs["index"]]


def function_address(s: Selector, node: Node) -> Value:
    r = s.result(node)
    s.g("lea", 8, r, node.attrs["name"])
    return r


def data_address(s: Selector, node: Node) -> Value:
    r = s.result(node)
    s.g("lea", 8, r, label(b"".join((v & (1 << 64) - 1).to_bytes(8, "little") for v in node.attrs["value"])))
    return r


CONDITIONS["cmp"] = flags
selects("result")(result)
for kinds, function in (
    ("gep", gep), ("add", add), ("sub", subtract), ("mul", multiply), ("and or xor", logic), ("shl lshr ashr", shift),
    ("cmp", compared), ("ctpop ctlz cttz", count_bits), ("bswap", swap_bytes),
    ("funcptr", function_address), ("data", data_address),
):  # fmt: skip
    selects(*kinds.split(), of="scalar")(function)
