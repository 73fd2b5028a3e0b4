"""Floats: arithmetic of scalars and vectors, compares and conversions of scalars. Imports x86.select, x86.machine."""

from __future__ import annotations

from typing import Final

from hilo.backend.x86.integers import convert as convert_integer
from hilo.backend.x86.integers import extended
from hilo.backend.x86.integers import select as select_integer
from hilo.backend.x86.machine import MASK, NO, VECTOR
from hilo.backend.x86.select import Selector, Value, length, parts_of, selects
from hilo.loop.nodes import Node, VType

_BINARY: Final = {"fadd": "vadd", "fsub": "vsub", "fmul": "vmul", "fdiv": "vdiv"}
PREDICATES: Final = {"oeq": 0, "olt": 1, "ole": 2, "uno": 3, "une": 4, "ord": 7, "oge": 13, "ogt": 14}
_ABOVE: Final = {"ogt": ("a", False), "oge": ("ae", False), "olt": ("a", True), "ole": ("ae", True),
                 "uno": ("p", False), "ord": ("np", False)}  # fmt: skip
_SUFFIX: Final = {("f32", True): "ss", ("f64", True): "sd", ("f32", False): "ps", ("f64", False): "pd"}


def suffix(t: VType) -> str:
    """ss, sd, ps or pd."""
    return _SUFFIX[t.scalar, t.lanes == 1]


@selects("fadd", "fsub", "fmul", "fdiv")
def binary(s: Selector, node: Node) -> Value:
    t = node.type
    name, wide = _BINARY[node.kind] + suffix(t), length(t)
    x, y = node.args
    if parts_of(t) == 1:
        a = s.use(x)
        b, broadcast = s.source(y)
        r = s.result(node)
        s.v(name, wide, r, a, b, broadcast=broadcast)
        return r
    pairs = list(zip(s.parts(x), s.parts(y), strict=True))
    places = s.results(node)
    for r, (a, b) in zip(places, pairs, strict=True):
        s.v(name, wide, r, a, b)
    return places


@selects("fma")
def fma(s: Selector, node: Node) -> Value:
    t = node.type
    end, wide = suffix(t), length(t)
    if parts_of(t) > 1:
        triples = list(zip(*(s.parts(x) for x in node.args), strict=True))
        places = tuple([s.new(VECTOR) for _ in triples])
        for r, (a, b, c) in zip(places, triples, strict=True):
            s.move(r, c, 64)
            s.v("vfmadd231" + end, wide, r, a, b)
        return places
    x, y, z = node.args
    if x in s.lazy and s.env.get(x) is None:
        x, y = y, x
    a = s.use(x)
    c_lazy = z in s.lazy and s.env.get(z) is None
    if c_lazy:
        b = s.use(y)
        c, broadcast = s.source(z)
    else:
        c = s.use(z)
        b, broadcast = s.source(y)
    size = t.lanes * t.size
    wish = s.wish.get(node)
    if wish is not None and s.left[wish]:
        wish = None
    if c.__class__ is int and s.dies(c) and wish in (None, c):  # type: ignore[arg-type]
        s.v("vfmadd231" + end, wide, c, a, b, broadcast=broadcast)  # type: ignore[arg-type]
        return c  # type: ignore[return-value]
    if s.dies(a) and wish in (None, a) and b.__class__ is int:
        s.v("vfmadd213" + end, wide, a, b, c, broadcast=broadcast)  # type: ignore[arg-type]
        return a
    if b.__class__ is int and s.dies(b) and wish in (None, b):  # type: ignore[arg-type]
        s.v("vfmadd213" + end, wide, b, a, c, broadcast=broadcast)  # type: ignore[arg-type]
        return b  # type: ignore[return-value]
    if c.__class__ is int:
        r = s.result(node)
        if r in (a, b):
            r = s.new(VECTOR)
        s.move(r, c, size)  # type: ignore[arg-type]
        s.v("vfmadd231" + end, wide, r, a, b, broadcast=broadcast)
        return r
    r = s.result(node)
    if r == b:
        a, b = b, a  # type: ignore[assignment]
    s.move(r, a, size)
    s.v("vfmadd213" + end, wide, r, b, c, broadcast=broadcast)  # type: ignore[arg-type]
    return r


@selects("splat", of="vector")
def splat(s: Selector, node: Node) -> Value:
    t = node.type
    (x,) = node.args
    n = parts_of(t)
    if t.is_float:
        a, _ = s.source(x)
        name = "vbroadcastss" if t.size == 4 else "vbroadcastsd" if length(t) else "vmovddup"
    else:
        a, name = s.use(x), {1: "vpbroadcastb", 2: "vpbroadcastw", 4: "vpbroadcastd", 8: "vpbroadcastq"}[t.size]
        name += "_general"
    r = s.result(node) if n == 1 else s.new(VECTOR)
    s.v(name, length(t), r, NO, a)
    return r if n == 1 else (r,) * n


# ---- compares and selections of scalars
def compare(s: Selector, node: Node) -> str:
    """Set the flags by a compare of scalars; gives the condition."""
    x, y = node.args
    pred = node.attrs["pred"]
    end = suffix(x.type)
    if pred in _ABOVE:
        condition, swapped = _ABOVE[pred]
        if swapped:
            x, y = y, x
        a = s.use(x)
        s.v("vucomi" + end, 0, a, NO, s.source(y)[0])
        return condition
    a = s.use(x)
    m = s.new(MASK)
    s.v("vcmp" + end, 0, m, a, s.source(y)[0], imm=PREDICATES[pred])
    s.v("kortestb", 0, m, NO, m)
    return "ne"


@selects("select", of="scalar")
def select(s: Selector, node: Node) -> Value:
    t = node.type
    if not t.is_float:
        return select_integer(s, node)
    c, x, y = node.args
    m = s.new(MASK)
    if c.kind == "cmp" and c in s.lazy and c.args[0].type.is_float and s.env.get(c) is None:
        p, q = c.args
        s.v("vcmp" + suffix(p.type), 0, m, s.use(p), s.source(q)[0], imm=PREDICATES[c.attrs["pred"]])
    else:
        s.v("kmovd_to", 0, m, NO, s.use(c))
    a, b = s.use(x), s.use(y)
    r = s.result(node)
    s.v("vblendm" + suffix(t.with_lanes(2)), 0, r, b, a, mask=m)
    return r


# ---- conversions of scalars
@selects("convert", of="scalar")
def convert(s: Selector, node: Node) -> Value:
    (x,), how, t = node.args, node.attrs["how"], node.type
    f = x.type
    if not t.is_float and not f.is_float:
        return convert_integer(s, node)
    if how == "bitcast":
        a = s.use(x)
        r = s.result(node)
        s.v(("vmovd" if t.size == 4 else "vmovq") + ("" if t.is_float else "_general"), 0, r, NO, a)
        return r
    if how in ("fpext", "fptrunc"):
        a, _ = s.source(x)
        first = s.new(VECTOR)
        s.v("vxorps", 0, first, first, first)
        r = s.result(node)
        s.v("vcvtss2sd" if t.size == 8 else "vcvtsd2ss", 0, r, first, a)
        return r
    if how in ("sitofp", "uitofp"):
        signed = how == "sitofp"
        a = extended(s, x, signed)
        first = s.new(VECTOR)
        s.v("vxorps", 0, first, first, first)
        name = ("vcvtsi2" if signed or f.size < 4 else "vcvtusi2") + suffix(t) + ("q" if f.size == 8 else "")
        r = s.result(node)
        s.v(name, 0, r, first, a)
        return r
    a, _ = s.source(x)
    r = s.result(node)
    signed = how == "fptosi" or t.size < 4
    s.v("vcvtt" + suffix(f) + ("2si" if signed else "2usi") + ("q" if t.size == 8 else ""), 0, r, NO, a)
    if t.scalar == "i1":
        s.g("and", 4, r, imm=1)
    return r
