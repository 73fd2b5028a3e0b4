"""Integers in vectors, bit by bit: logic, shifts, counts; products of bytes, and sums of products of parts of lanes.
Imports x86.select and its neighbours.

Bytes have neither products nor shifts of their own: they go by way of 16 bits. Two operations of logic one behind the
other are one instruction, by the table of what they do to three bits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hilo.backend.x86 import constants
from hilo.backend.x86.machine import NO, VECTOR
from hilo.backend.x86.pieces import (
    INT,
    drop,
    everywhere,
    is_memory,
    join,
    known,
    last,
    lasts,
    length_of_part,
    parts,
    piece,
    value,
)
from hilo.backend.x86.select import Selector, Value, length, parts_of, selects
from hilo.backend.x86.uses import LOGIC
from hilo.backend.x86.vectors import binary, lanewise, overwritten
from hilo.loop.nodes import Node

_SHIFTS: Final = {"shl": "vpsll", "lshr": "vpsrl", "ashr": "vpsra"}
_TABLES: Final = (0xF0, 0xCC, 0xAA)  # of the three operands of vpternlog
_ALL: Final = 0xFF


# ---- logic
def logic(s: Selector, node: Node) -> Value:
    """and, or, xor; with one of the operands' if that waits for its use."""
    a, b = node.args
    for inner, other in ((a, b), (b, a)):
        if inner in s.lazy and inner.kind in LOGIC and parts_of(node.type) == 1:
            return logic_of_three(s, node, inner, other)
    return binary(s, node)


def applied(kind: str, x: int, y: int) -> int:
    """What an operation makes of tables."""
    return x & y if kind == "and" else x | y if kind == "or" else x ^ y


def logic_of_three(s: Selector, node: Node, inner: Node, other: Node) -> Value:
    """The operation of `node` on `other` and on what that of `inner` makes of two more."""
    t = node.type
    terms = (*inner.args, other)
    operands = list(dict.fromkeys(x for x in terms if x.const not in (0, -1)))
    memory = next((x for x in operands if is_memory(s, x) and t.size >= 4), None)
    if memory is not None and len(operands) == 1:
        memory = None
    held: dict[Node, int] = {}
    for x in sorted(operands, key=lambda x: x not in s.lazy):  # what waits first: it may be written over what dies
        if x is not memory:
            held[x] = s.use(x)
        for _ in range(terms.count(x) - 1):
            drop(s, x)
    rm, broadcast = (NO, False) if memory is None else last(s, memory)

    def result(tables: Mapping[Node, int]) -> int:
        x, y, z = (tables[v] if v in tables else v.const & _ALL for v in terms)
        return applied(node.kind, applied(inner.kind, x, y), z)

    end = "q" if t.size == 8 else "d"
    nodes = list(held)
    if len(operands) == 2:
        for x, y in (operands, operands[::-1]):
            if result({x: _TABLES[0], y: _TABLES[1]}) == ~_TABLES[0] & _TABLES[1] and x is not memory:
                r = s.result(node)
                s.v("vpandn" + end, length(t), r, held[x], rm if y is memory else held[y], broadcast=broadcast)
                return r
    if node in s.lazy:  # others may still want the operands
        r = s.new(VECTOR)
        s.move(r, held[nodes[0]], t.lanes * t.size)
    else:
        r = overwritten(s, node, t, tuple(held.values()))
    first = next((x for x in nodes if held[x] == r), nodes[0])
    rest = [x for x in nodes if x is not first]
    tables = dict(zip((first, *rest), _TABLES, strict=False))
    second = held[rest[0]] if rest else r
    if memory is not None:
        tables[memory] = _TABLES[2]
    else:
        rm = held[rest[1]] if len(rest) > 1 else second
    s.v("vpternlog" + end, length(t), r, second, rm, broadcast=broadcast, imm=result(tables))
    return r


# ---- products of bytes
@selects("mul", of="vector")
def multiply(s: Selector, node: Node) -> Value:
    return mul_bytes(s, node) if node.type.size == 1 else binary(s, node)


def mul_bytes(s: Selector, node: Node) -> Value:
    """Products of bytes: of the lower ones of words in the words' products, of the upper ones moved to the words'."""
    size, bytes_ = length_of_part(node.type), 16 << length_of_part(node.type)
    upper, lower = everywhere(s, 0xFF00, 2, bytes_), everywhere(s, 0xFF, 2, bytes_)
    xs, ys = (parts(s, a) for a in node.args)
    out = s.results(node)
    for r, x, y in zip(out, xs, ys, strict=True):
        even, odd, other = s.new(VECTOR), s.new(VECTOR), s.new(VECTOR)
        s.v("vpmullw", size, even, x, y)
        s.v("vpsrlw", size, odd, NO, x, imm=8)
        s.v("vpandd", size, other, y, upper)
        s.v("vpmullw", size, odd, odd, other)
        s.v("vpternlogd", size, even, odd, lower, imm=0xEC)  # even and lower, or odd
        s.move(r, even, bytes_)
    return value(out)


# ---- shifts
@selects("shl", "lshr", "ashr", of="vector")
def shift(s: Selector, node: Node) -> Value:
    """shl, lshr, ashr of vectors."""
    t, kind = node.type, node.kind
    if t.size == 1:
        return shift_bytes(s, node)
    x, n = node.args
    name, by = _SHIFTS[kind], n.const
    if by is not None:
        xs = parts(s, x)
        out = s.results(node)
        for r, a in zip(out, xs, strict=True):
            s.v(name + INT[t.size], length_of_part(t), r, NO, a, imm=min(by & (1 << t.bits) - 1, 255))
        return value(out)
    return lanewise(s, node, name + "v" + INT[t.size], x, n)


def shift_bytes(s: Selector, node: Node) -> Value:
    """Shifts of bytes, by way of 16 bits."""
    t = node.type
    if (by := node.args[1].const) is not None:
        return shift_bytes_alike(s, node, by & 7)
    extend = "vpmovsxbw" if node.kind == "ashr" else "vpmovzxbw"
    xs, ns = (s.use(a) for a in node.args)
    size, step = (2, 32) if t.lanes > 16 else (t.lanes == 16, 16)
    out = []
    for at in range(0, t.lanes, 32):
        x, n = s.new(VECTOR), s.new(VECTOR)
        s.v(extend, size, x, NO, piece(s, xs, at, step))
        s.v("vpmovzxbw", size, n, NO, piece(s, ns, at, step))
        s.v(_SHIFTS[node.kind] + "vw", size, x, x, n)
        r = s.new(VECTOR)
        s.v("vpmovwb", size, r, NO, x)
        out.append(r)
    return join(s, out, 32)[0]


def shift_bytes_alike(s: Selector, node: Node, by: int) -> int:
    """All bytes by the same number: as words, without the bits that come from the neighbour."""
    size = length(node.type)
    bytes_ = 16 << size
    x, moved = s.use(node.args[0]), s.new(VECTOR)
    s.v("vpsllw" if node.kind == "shl" else "vpsrlw", size, moved, NO, x, imm=by)
    stays = everywhere(s, 255 << by & 255 if node.kind == "shl" else 255 >> by, 1, bytes_)
    if node.kind != "ashr":
        r = s.result(node)
        s.v("vpandd", size, r, moved, stays)
        return r
    sign = everywhere(s, 128 >> by, 1, bytes_)
    flipped = s.new(VECTOR)
    s.v("vpandd", size, flipped, moved, stays)
    s.v("vpxord", size, flipped, flipped, sign)
    r = s.result(node)
    s.v("vpsubb", size, r, flipped, sign)
    return r


# ---- bits counted
@selects("ctlz", of="vector")
def ctlz(s: Selector, node: Node) -> Value:
    """Leading zeros; of 8 and 16 bits by way of 32."""
    t = node.type
    if t.size >= 4:
        return of_ints(s, node, "vplzcnt" + INT[t.size])
    xs = parts(s, node.args[0])
    wide, narrow = {1: ("vpmovzxbd", "vpmovdb"), 2: ("vpmovzxwd", "vpmovdw")}[t.size]
    per = min(t.lanes, 16)
    size = 0 if per <= 4 else 1 if per == 8 else 2
    less = everywhere(s, 32 - t.bits, 4, 16 << size)
    out = []
    for at in range(0, t.lanes, per):
        r = s.new(VECTOR)
        s.v(wide, size, r, NO, piece(s, xs[at * t.size // 64], at * t.size % 64, per * t.size))
        s.v("vplzcntd", size, r, NO, r)
        s.v("vpsubd", size, r, r, less)
        made = s.new(VECTOR)
        s.v(narrow, size, made, NO, r)
        out.append(made)
    at_once = 64 // (per * t.size)
    return value([join(s, out[i : i + at_once], per * t.size)[0] for i in range(0, len(out), at_once)])


def of_ints(s: Selector, node: Node, name: str) -> Value:
    """An instruction on integers that has one operand."""
    sources = lasts(s, node.args[0])
    out = s.results(node)
    for r, (rm, broadcast) in zip(out, sources, strict=True):
        s.v(name, length_of_part(node.type), r, NO, rm, broadcast=broadcast)
    return value(out)


@selects("bswap", of="vector")
def bswap(s: Selector, node: Node) -> Value:
    """Bytes of each lane reversed."""
    t = node.type
    if t.size == 1:
        return value(parts(s, node.args[0]))
    order = bytes(i ^ (t.size - 1) for i in range(16))
    xs = parts(s, node.args[0])
    size = length_of_part(t)
    table = s.keep(("load", size, constants.label(order * (1 << size))))
    out = s.results(node)
    for r, x in zip(out, xs, strict=True):
        s.v("vpshufb", size, r, x, table)
    return value(out)


@selects("ctpop", "cttz", of="vector")
def count(s: Selector, node: Node) -> Value:
    """Ones: of each half of a byte by a table, then summed up to the size of a lane. Zeros at the end are the ones of
    ~x & (x - 1)."""
    t = node.type
    size, bytes_ = length_of_part(t), 16 << length_of_part(t)
    table = known(s, bytes(i.bit_count() for i in range(16)) * (bytes_ // 16))
    half = everywhere(s, 15, 1, bytes_)
    out = []
    for x in parts(s, node.args[0]):
        low, high, r = s.new(VECTOR), s.new(VECTOR), s.new(VECTOR)
        if node.kind == "cttz":
            ends = s.new(VECTOR)
            s.v("vpadd" + INT[t.size], size, ends, x, everywhere(s, -1, t.size, bytes_))
            s.v("vpandnd", size, ends, x, ends)
            x = ends
        s.v("vpand", size, low, x, half)
        s.v("vpsrlw", size, high, NO, x, imm=4)
        s.v("vpand", size, high, high, half)
        s.v("vpshufb", size, low, table, low)
        s.v("vpshufb", size, high, table, high)
        s.v("vpaddb", size, r, low, high)
        if t.size == 8:
            s.v("vpsadbw", size, r, r, everywhere(s, 0, 8, bytes_))
        elif t.size > 1:
            s.v("vpmaddubsw", size, r, r, everywhere(s, 1, 1, bytes_))
            if t.size == 4:
                s.v("vpmaddwd", size, r, r, everywhere(s, 1, 2, bytes_))
        out.append(r)
    return value(out)


# ---- dot products of parts of 32-bit lanes
def whole(node: Node) -> bool:
    """Whether a dot product fills a register."""
    return node.type.lanes in (4, 8, 16)


@selects("dot4", "dot_bf16", of="vector", covers=whole)
def dot(s: Selector, node: Node) -> Value:
    """Products added to the first operand."""
    acc, a, b = node.args
    t = node.type
    if not (s.target.has_dot4 if node.kind == "dot4" else s.target.has_dot_bf16):
        return soft_dot(s, node)
    total, x = s.use(acc), s.use(a)
    rm, broadcast = last(s, b)
    if total in (x, rm) or s.wish.get(node) in (x, rm):
        r = s.new(VECTOR)
        s.move(r, total, t.lanes * 4)
    else:
        r = overwritten(s, node, t, (total,))
    s.v("vpdpbusd" if node.kind == "dot4" else "vdpbf16ps", length(t), r, x, rm, broadcast=broadcast)
    return r


@selects("dot2", of="vector", covers=whole)
def dot2(s: Selector, node: Node) -> Value:
    """Sums of two products of i16, added to the first operand."""
    acc, a, b = node.args
    t = node.type
    total, x = s.use(acc), s.use(a)
    rm, broadcast = last(s, b)
    if broadcast:
        rm = everywhere(s, b.const, 4, 16 << length(t))
    made = s.new(VECTOR)
    s.v("vpmaddwd", length(t), made, x, rm)
    r = s.result(node)
    s.v("vpaddd", length(t), r, total, made)
    return r


@selects("sdot4", "udot4", of="vector", covers=whole)
def soft_dot(s: Selector, node: Node) -> Value:
    """The same of parts that are cut out with shifts."""
    t, kind, size = node.type, node.kind, length(node.type)
    total, a, b = (s.use(x) for x in node.args)
    parts_ = []
    if kind == "dot_bf16":
        high = everywhere(s, -65536, 4, 16 << size)
        for x in (a, b):
            upper, lower = s.new(VECTOR), s.new(VECTOR)
            s.v("vpandd", size, upper, x, high)
            s.v("vpslld", size, lower, NO, x, imm=16)
            parts_.append((upper, lower))
        r = s.new(VECTOR)
        s.move(r, total, t.lanes * 4)
        for x, y in zip(*parts_, strict=True):
            s.v("vfmadd231ps", size, r, x, y)
        return r
    down = {"dot4": ("vpsrld", "vpsrad"), "udot4": ("vpsrld", "vpsrld")}.get(kind, ("vpsrad", "vpsrad"))
    for at in range(0, 32, 8):
        cut = []
        for x, name in zip((a, b), down, strict=True):
            v = s.new(VECTOR)
            s.v("vpslld", size, v, NO, x, imm=24 - at)
            s.v(name, size, v, NO, v, imm=24)
            cut.append(v)
        s.v("vpmulld", size, cut[0], *cut)
        r = s.new(VECTOR)
        s.v("vpaddd", size, r, total, cut[0])
        total = r
    return total
