"""Arithmetic on floats, scalar and in vectors, and sums of integers in vectors (more of these: x86.bits). Imports
x86.select and its neighbours.

Floats have the bits of the instruction that LLVM chooses: the result of two NaNs is the first one. What is nowhere
here, so that functions with it go to LLVM: dot products of scalars and of vectors that are no whole registers, shuffles
of lanes of more than two registers into one or of bytes all over more than 16, scatters of lanes of 1 and 2 bytes, all
lanes of single bytes combined, masked loads and stores of scalar integers.
"""

from __future__ import annotations

from typing import Final

from hilo.backend.x86.machine import NO, VECTOR
from hilo.backend.x86.pieces import (
    INT,
    is_memory,
    last,
    lasts,
    length_of_part,
    parts,
    pattern,
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
@selects("add", "sub", of="vector")
def binary(s: Selector, node: Node) -> Value:
    """fadd, fsub, fmul, fdiv; add, sub, mul, and, or, xor of vectors."""
    t, kind = node.type, node.kind
    a, b = node.args
    if kind in COMMUTE and is_memory(s, a) and not (is_memory(s, b) and b.const is None):
        a, b = b, a
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
        r = overwritten(s, node, t, (x, y))
        s.v(f"{name}213{end}", size, r, y if r != y else x, rm, broadcast=broadcast)
        return r
    z, x = s.use(c), s.use(a)
    rm, broadcast = last(s, b)
    if rm.__class__ is int:
        r = overwritten(s, node, t, (z, x, rm))  # type: ignore[arg-type]
        if r in (x, rm):
            s.v(f"{name}213{end}", size, r, rm if r == x else x, z)  # type: ignore[arg-type]
            return r
    else:
        r = overwritten(s, node, t, (z, x))
        if r == x:
            s.v(f"{name}132{end}", size, r, z, rm, broadcast=broadcast)
            return r
    s.v(f"{name}231{end}", size, r, x, rm, broadcast=broadcast)
    return r


def overwritten(s: Selector, node: Node, t: VType, operands: tuple[int, ...]) -> int:
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
