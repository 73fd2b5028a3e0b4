"""Arithmetic on floats, scalar and in vectors, and on integers in vectors. Imports x86.select and its neighbours.

Floats have the bits of the instruction that LLVM chooses: the result of two NaNs is the first one. What is not here, so
that functions with it go to LLVM: division of integers in vectors, `cttz` in vectors, dot products of scalars and of
vectors that are no whole registers.
"""

from __future__ import annotations

from typing import Final

from hilo.backend.x86 import constants
from hilo.backend.x86.machine import NO, VECTOR
from hilo.backend.x86.pieces import (
    INT,
    everywhere,
    is_memory,
    join,
    keep,
    known,
    last,
    lasts,
    length_of_part,
    parts,
    pattern,
    piece,
    suffix,
    value,
)
from hilo.backend.x86.select import Selector, Value, length, parts_of, selects
from hilo.loop.nodes import Node, VType

_FLOATS: Final = {"fadd": "vadd", "fsub": "vsub", "fmul": "vmul", "fdiv": "vdiv"}
_INTS: Final = {"add": "vpadd", "sub": "vpsub"}
_LOGIC: Final = {"and": "vpand", "or": "vpor", "xor": "vpxor"}
_MUL: Final = {2: "vpmullw", 4: "vpmulld", 8: "vpmullq"}
_ROUND: Final = {"rint": 4, "floor": 9, "ceil": 10, "trunc": 11}
_SHIFTS: Final = {"shl": "vpsll", "lshr": "vpsrl", "ashr": "vpsra"}
COMMUTE: Final = frozenset(("fadd", "fmul", "add", "mul", "and", "or", "xor"))


# ---- two operands
def name_of(kind: str, t: VType) -> str:
    """The instruction for two operands of a type, lane by lane; it has the last one in memory if need be."""
    if t.is_float:
        return _FLOATS[kind] + suffix(t)
    if kind in _INTS:
        return _INTS[kind] + INT[t.size]
    if kind in _LOGIC:
        return _LOGIC[kind] + ("q" if t.size == 8 else "d")
    return _MUL[t.size]


@selects("fadd", "fsub", "fmul", "fdiv")
@selects("add", "sub", "mul", of="vector")
def binary(s: Selector, node: Node) -> Value:
    """fadd, fsub, fmul, fdiv; add, sub, mul, and, or, xor of vectors."""
    t, kind = node.type, node.kind
    a, b = node.args
    if kind in COMMUTE and is_memory(s, a) and not (is_memory(s, b) and b.const is None):
        a, b = b, a
    if kind == "mul" and t.size == 1:
        return mul_bytes(s, node)
    name, size = name_of(kind, t), length_of_part(t)
    if parts_of(t) == 1:
        first = s.use(a)
        rm, broadcast = last(s, b)
        r = s.result(node)
        s.v(name, size, r, first, rm, broadcast=broadcast)
        return r
    return lanewise(s, node, name, a, b)


def lanewise(s: Selector, node: Node, name: str, a: Node, b: Node, imm: int | None = None) -> Value:
    """The parts of `a` with those of `b`."""
    firsts, seconds = parts(s, a), lasts(s, b)
    out = s.results(node)
    for r, first, (rm, broadcast) in zip(out, firsts, seconds, strict=True):
        s.v(name, length_of_part(node.type), r, first, rm, broadcast=broadcast, imm=imm)
    return value(out)


def mul_bytes(s: Selector, node: Node) -> Value:
    """Products of bytes, by way of 16 bits."""
    t = node.type
    wide = t.lanes * 2
    if wide > 64:
        return _mul_halves(s, node)
    size = 0 if wide <= 16 else 1 if wide == 32 else 2
    words = []
    for a in node.args:
        r = s.new(VECTOR)
        s.v("vpmovzxbw", size, r, NO, s.use(a))
        words.append(r)
    product = s.new(VECTOR)
    s.v("vpmullw", size, product, words[0], words[1])
    r = s.result(node)
    s.v("vpmovwb", size, r, NO, product)
    return r


def _mul_halves(s: Selector, node: Node) -> Value:
    """Products of 64 bytes."""
    a, b = (s.use(x) for x in node.args)
    halves = []
    for at in (0, 32):
        words = []
        for x in (a, b):
            r = s.new(VECTOR)
            s.v("vpmovzxbw", 2, r, NO, piece(s, x, at, 32))
            words.append(r)
        s.v("vpmullw", 2, words[0], words[0], words[1])
        r = s.new(VECTOR)
        s.v("vpmovwb", 2, r, NO, words[0])
        halves.append(r)
    return join(s, halves, 32)[0]


@selects("fma")
def fma(s: Selector, node: Node) -> Value:
    """a * b + c, written over an operand that is not read any more, if there is one."""
    t, negated = node.type, s.seen.negated
    x, y, z = node.args
    name = "n" if (x in negated) != (y in negated) else ""
    name = f"vf{name}m{'sub' if z in negated else 'add'}"
    x, y, z = (v.args[0] if v in negated else v for v in node.args)
    if parts_of(t) == 1:
        return _fma(s, node, name, x, y, z)
    a, b = parts(s, x), parts(s, y)
    c = lasts(s, z)
    out = []
    dead = all(map(s.dies, a)) and len({*a}) == len(a) and not {*a} & {*b, *[rm for rm, _ in c]}
    for first, second, (rm, broadcast) in zip(a, b, c, strict=True):
        r = first
        if not dead:
            r = s.new(VECTOR)
            s.move(r, first, 64)
        s.v(f"{name}213{suffix(t)}", 2, r, second, rm, broadcast=broadcast)
        out.append(r)
    return tuple(out)


def _fma(s: Selector, node: Node, name: str, a: Node, b: Node, c: Node) -> int:
    """The instruction `name` for vectors of one part and scalars."""
    t = node.type
    end, size = suffix(t), length(t)
    if is_memory(s, a) and not is_memory(s, b):
        a, b = b, a
    if is_memory(s, c) and not (c.const is not None and b.const is None and is_memory(s, b)):
        x, y = s.use(a), s.use(b)
        rm, broadcast = last(s, c)
        r = _overwritten(s, node, t, (x, y))
        s.v(f"{name}213{end}", size, r, y if r != y else x, rm, broadcast=broadcast)
        return r
    z, x = s.use(c), s.use(a)
    rm, broadcast = last(s, b)
    if rm.__class__ is int:
        r = _overwritten(s, node, t, (z, x, rm))  # type: ignore[arg-type]
        if r in (x, rm):
            s.v(f"{name}213{end}", size, r, rm if r == x else x, z)  # type: ignore[arg-type]
            return r
    else:
        r = _overwritten(s, node, t, (z, x))
        if r == x:
            s.v(f"{name}132{end}", size, r, z, rm, broadcast=broadcast)
            return r
    s.v(f"{name}231{end}", size, r, x, rm, broadcast=broadcast)
    return r


def _overwritten(s: Selector, node: Node, t: VType, operands: tuple[int, ...]) -> int:
    """The register for a result that an instruction writes over one of its operands: the wished one, one that dies, or
    a copy of the first."""
    wish = s.wish.get(node)
    free = wish is not None and not s.left[wish]
    if free and wish in operands:
        return wish  # type: ignore[return-value]
    if not free:
        for r in operands:
            if s.dies(r):
                return r
    r = s.result(node)
    s.move(r, operands[0], t.lanes * t.size)
    return r


# ---- one operand
@selects("sqrt")
def sqrt(s: Selector, node: Node) -> Value:
    return of_one(s, node, "vsqrt")


@selects("floor", "ceil", "rint", "trunc")
def rounding(s: Selector, node: Node) -> Value:
    """floor, ceil, rint, trunc."""
    return of_one(s, node, "vrndscale", _ROUND[node.kind])


def of_one(s: Selector, node: Node, name: str, imm: int | None = None) -> Value:
    """An instruction on floats that has one operand; those for scalars take the other lanes from the operand, too."""
    t = node.type
    name += suffix(t)
    if t.lanes == 1:
        x = s.use(node.args[0])
        r = s.result(node)
        s.v(name, 0, r, x, x, imm=imm)
        return r
    sources = lasts(s, node.args[0])
    out = s.results(node)
    for r, (rm, broadcast) in zip(out, sources, strict=True):
        s.v(name, length_of_part(t), r, NO, rm, broadcast=broadcast, imm=imm)
    return value(out)


@selects("fneg", "fabs")
def signs(s: Selector, node: Node) -> Value:
    """fneg, fabs: the sign bit changed or cleared."""
    t = node.type
    sign = 1 << t.bits - 1
    name, mask = ("vpxor", sign) if node.kind == "fneg" else ("vpand", sign - 1)
    xs = parts(s, node.args[0])
    rm, broadcast = pattern(s, mask, t)
    out = s.results(node)
    for r, x in zip(out, xs, strict=True):
        s.v(name + "dq"[t.size == 8], length_of_part(t), r, x, rm, broadcast=broadcast)
    return value(out)


@selects("copysign")
def copysign(s: Selector, node: Node) -> Value:
    """The magnitude of the first with the sign of the second."""
    t = node.type
    xs, ys = (parts(s, a) for a in node.args)
    rm, broadcast = pattern(s, 1 << t.bits - 1, t)
    out = []
    for x, y in zip(xs, ys, strict=True):
        r = s.result(node) if len(xs) == 1 else s.new(VECTOR)
        if r == y:
            r = s.new(VECTOR)
        s.move(r, x, min(64, t.lanes * t.size))
        s.v("vpternlog" + "dq"[t.size == 8], length_of_part(t), r, y, rm, broadcast=broadcast, imm=0xD8)
        out.append(r)
    return value(out)


@selects("scale")
def scale(s: Selector, node: Node) -> Value:
    a, n = node.args
    if node.type.lanes > 1:
        return lanewise(s, node, "vscalef" + suffix(node.type), a, n)
    x = s.use(a)
    rm, _ = last(s, n)
    r = s.result(node)
    s.v("vscalef" + suffix(node.type), 0, r, x, rm)
    return r


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
    table = keep(s, ("load", size, constants.label(order * (1 << size))))
    out = s.results(node)
    for r, x in zip(out, xs, strict=True):
        s.v("vpshufb", size, r, x, table)
    return value(out)


@selects("ctpop", of="vector")
def ctpop(s: Selector, node: Node) -> Value:
    """Ones: of each half of a byte by a table, then summed up to the size of a lane."""
    t = node.type
    size, bytes_ = length_of_part(t), 16 << length_of_part(t)
    table = known(s, bytes(i.bit_count() for i in range(16)) * (bytes_ // 16))
    half = everywhere(s, 15, 1, bytes_)
    out = []
    for x in parts(s, node.args[0]):
        low, high, r = s.new(VECTOR), s.new(VECTOR), s.new(VECTOR)
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
        r = _overwritten(s, node, t, (total,))
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
