"""Scalar floats: compares, selections, conversions. Imports x86.select, x86.machine."""

from __future__ import annotations

from typing import Final

from hilo.backend.x86.integers import convert as convert_integer
from hilo.backend.x86.integers import extended
from hilo.backend.x86.integers import select as select_integer
from hilo.backend.x86.machine import MASK, NO, VECTOR
from hilo.backend.x86.select import Selector, Value, selects
from hilo.loop.nodes import Node, VType

PREDICATES: Final = {"oeq": 0, "olt": 1, "ole": 2, "uno": 3, "une": 4, "ord": 7, "oge": 13, "ogt": 14}
_ABOVE: Final = {"ogt": ("a", False), "oge": ("ae", False), "olt": ("a", True), "ole": ("ae", True),
                 "uno": ("p", False), "ord": ("np", False)}  # fmt: skip
_SUFFIX: Final = {("f32", True): "ss", ("f64", True): "sd", ("f32", False): "ps", ("f64", False): "pd"}


def suffix(t: VType) -> str:
    """ss, sd, ps or pd."""
    return _SUFFIX[t.scalar, t.lanes == 1]


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
    m = as_mask(s, node)
    s.v("kortestb", 0, m, NO, m)
    return "ne"


def as_mask(s: Selector, node: Node) -> int:
    """A mask register with a compare of scalars in its lowest bit; the others are 0."""
    x, y = node.args
    a = s.use(x)
    b = s.source(y)[0]
    m = s.new(MASK)
    s.v("vcmp" + suffix(x.type), 0, m, a, b, imm=PREDICATES[node.attrs["pred"]])
    return m


def compared(s: Selector, node: Node) -> Value:
    """A compare of scalars as a value."""
    if node.attrs["pred"] not in _ABOVE:  # no condition of the flags
        m = as_mask(s, node)
        r = s.result(node)
        s.v("kmovd_from", 0, r, NO, m)
        return r
    condition = compare(s, node)
    r = s.result(node)
    s.g("set" + condition, 1, r)
    return r


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
