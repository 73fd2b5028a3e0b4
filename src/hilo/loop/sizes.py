"""Run-time sizes (`ir.dims.Size`) as values of loop IR. Imports ir.dims, loop.builder.

A kernel finds the symbols that it needs in memory before its array of pointers: symbol k of `func.attrs["sizes"]` at
`bufs - 8 * (k + 1)`. Other functions have them in `b.sizes`.
"""

from __future__ import annotations

from typing import Final

from hilo.ir.dims import Atom, Number, lower, upper
from hilo.loop.builder import F64, I64, Builder, Node

_COMPARED: Final = {"lt": "slt", "le": "sle", "eq": "eq"}


def node(b: Builder, n: Number) -> Node:
    """The i64 value of a size or an int."""
    if isinstance(n, int):
        return b.i64(n)
    total = b.i64(0)
    for m, c in n.terms.items():
        product = b.i64(c)
        for a in m:
            product = b.mul(atom(b, a), product)
        total = b.add(product, total)
    return total


def atom(b: Builder, a: Atom) -> Node:
    """The value of a symbol or of a function of sizes."""
    if a.source is not None:
        return _symbol(b, a)
    xs = [node(b, x) for x in a.args]
    if a.name in _COMPARED:
        return b.convert("zext", b.cmp(_COMPARED[a.name], *xs), "i64")
    if a.name == "min":
        return b.smin(*xs)
    if a.name == "max":
        return b.smax(*xs)
    if a.name == "select":
        return b.select(b.cmp("ne", xs[0], 0), xs[1], xs[2])
    if a.name in ("and", "or", "xor"):
        return b.binary(a.name, *xs)
    return _divided(b, a.name, a.args, *xs)


def magnitude(b: Builder, n: Number) -> Node:
    """An upper bound, as f64, of the magnitude of `n` and of all that is computed on the way to it."""
    if isinstance(n, int):
        return b.const(float(abs(n)), F64)
    total = b.const(0.0, F64)
    for m, c in n.terms.items():
        product = b.const(float(abs(c)), F64)
        for a in m:
            if a.source is not None:
                x = b.fabs(b.convert("sitofp", _symbol(b, a), "f64"))
            else:
                x = b.const(1.0, F64)
                for each in a.args:
                    x = b.fadd(x, magnitude(b, each))
            product = b.fmul(product, x)
        total = b.fadd(total, product)
    return total


def _divided(b: Builder, name: str, args: tuple[Number, ...], x: Node, y: Node) -> Node:
    """Division of any numbers; by zero it gives zero (and the number itself as the remainder)."""
    if name == "floordiv" and isinstance(args[1], int) and args[1] & (args[1] - 1) == 0 < args[1]:
        return b.ashr(x, args[1].bit_length() - 1)
    divisor = y if lower(args[1]) > 0 or upper(args[1]) < 0 else b.select(b.cmp("eq", y, 0), 1, y)
    q = b.binary("sdiv", x, divisor)
    if name == "floordiv" and (lower(args[0]) < 0 or lower(args[1]) < 0):
        rest = b.sub(x, b.mul(q, divisor))
        below = b.and_(b.cmp("ne", rest, 0), b.cmp("slt", b.xor(rest, divisor), 0))
        q = b.sub(q, b.convert("zext", below, "i64"))
    if divisor is not y:
        q = b.select(b.cmp("eq", y, 0), 0, q)
    return b.sub(x, b.mul(q, y)) if name == "remainder" else q


def _symbol(b: Builder, a: Atom) -> Node:
    if b.sizes is not None:
        return b.sizes(a)
    func = b.func
    known: list[Atom] = func.attrs.setdefault("sizes", [])
    if a not in known:
        known.append(a)
    if not func.params or func.params[0].attrs.get("name") != "bufs":  # nobody runs it: indices are only looked at
        return b.pure("param", (), I64, name=a.name, index=0)
    return b.load(b.gep(func.params[0], -8 * (known.index(a) + 1)), I64, invariant=True)
