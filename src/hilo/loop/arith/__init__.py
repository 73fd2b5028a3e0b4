"""What elementwise ops without transcendental functions mean, on elements with any number of lanes. Imports loop, ir.

One function per op, `add(b, x, y) -> Elem`; each result is rounded to the elements' type. Operands may have one lane
where others have many. Transcendental functions are in `loop.math`. Nothing here traps, whatever the values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hilo.errors import Unsupported
from hilo.ir import dtypes
from hilo.ir.types import TensorType
from hilo.later import Later
from hilo.loop.arith.memory import gather_elem, load_elem, scatter_elem, spaced_elem, store_elem
from hilo.loop.arith.rounding import (
    container,
    from_bits,
    from_memory,
    number,
    round_result,
    to_bits,
    to_memory,
    wrap_int,
    zero,
)
from hilo.loop.builder import Builder
from hilo.loop.element import Elem
from hilo.loop.index import Index, constant
from hilo.loop.index import node as index_node
from hilo.loop.nodes import Node

if TYPE_CHECKING:
    from hilo.loop.arith import complexes, conversions, floats, ints
    from hilo.loop.arith.conversions import bitcast, convert, next_after, reduce_precision
else:
    complexes, conversions, floats, ints = (
        Later(f"{__name__}.{file}") for file in ("complexes", "conversions", "floats", "ints")
    )
    bitcast, convert, next_after, reduce_precision = (
        getattr(conversions, name) for name in ("bitcast", "convert", "next_after", "reduce_precision")
    )

__all__ = [
    "bitcast",
    "convert",
    "from_bits",
    "from_memory",
    "gather_elem",
    "load_elem",
    "next_after",
    "number",
    "reduce_precision",
    "round_result",
    "scatter_elem",
    "spaced_elem",
    "store_elem",
    "to_bits",
    "to_memory",
    "zero",
]  # fmt: skip


def _float(b: Builder, x: Elem, value: Node) -> Elem:
    """`value`, rounded to x's float type."""
    return Elem(x.dtype, value if x.dtype.bits >= 32 else round_result(b, value, x.dtype))


def _in_range(b: Builder, kind: str, x: Elem, y: Elem) -> Node:
    """A product or quotient; of f8E8M0FNU, which has f32's whole range but no zero, in f64."""
    if x.dtype.format is not None and x.dtype.format.special == "e8m0":
        return b.binary(kind, b.convert("fpext", x.re, "f64"), b.convert("fpext", y.re, "f64"))
    return b.binary(kind, x.re, y.re)


def _exact(b: Builder, x: Elem, value: Node) -> Elem:
    """`value`, which x's float type holds; those below 16 bits may lack it (zero, -0, the next integer): rounded."""
    return Elem(x.dtype, value if x.dtype.bits >= 16 else round_result(b, value, x.dtype))


def _int(b: Builder, x: Elem, value: Node) -> Elem:
    """`value` modulo 2**bits of x's integer type."""
    return Elem(x.dtype, wrap_int(b, value, x.dtype))


def _signed(x: Elem) -> bool:
    return x.dtype.kind == "i"


def _parts(b: Builder, kind: str, x: Elem, y: Elem) -> Elem:
    (p, q), (r, s) = complexes.parts(x), complexes.parts(y)
    return Elem(x.dtype, b.binary(kind, p, r), b.binary(kind, q, s))


# ---- arithmetic
def add(b: Builder, x: Elem, y: Elem) -> Elem:
    t = x.dtype
    if t.is_complex:
        return _parts(b, "fadd", x, y)
    if t.is_float:
        return _float(b, x, b.fadd(x.re, y.re))
    return Elem(t, b.or_(x.re, y.re)) if t.kind == "b" else _int(b, x, b.add(x.re, y.re))


def subtract(b: Builder, x: Elem, y: Elem) -> Elem:
    t = x.dtype
    if t.is_complex:
        return _parts(b, "fsub", x, y)
    return _float(b, x, b.fsub(x.re, y.re)) if t.is_float else _int(b, x, b.sub(x.re, y.re))


def multiply(b: Builder, x: Elem, y: Elem) -> Elem:
    t = x.dtype
    if t.is_complex:
        return complexes.multiply(b, x, y)
    if t.is_float:
        return _float(b, x, _in_range(b, "fmul", x, y))
    return Elem(t, b.and_(x.re, y.re)) if t.kind == "b" else _int(b, x, b.mul(x.re, y.re))


def divide(b: Builder, x: Elem, y: Elem) -> Elem:
    t = x.dtype
    if t.is_complex:
        return complexes.divide(b, x, y)
    if t.is_float:
        return _float(b, x, _in_range(b, "fdiv", x, y))
    return _int(b, x, ints.divide(b, x.re, y.re, _signed(x)))


def remainder(b: Builder, x: Elem, y: Elem) -> Elem:
    t = x.dtype
    if t.is_complex:
        raise Unsupported("remainder of complex numbers has no defined meaning")
    if t.is_float:
        return _exact(b, x, floats.fmod(b, x.re, y.re))
    return Elem(t, ints.remainder(b, x.re, y.re, _signed(x)))


def int_power(b: Builder, x: Elem, y: Elem) -> Elem:
    return _int(b, x, ints.power(b, x.re, y.re, _signed(x)))


def negate(b: Builder, x: Elem) -> Elem:
    if x.im is not None:
        return Elem(x.dtype, b.fneg(x.re), b.fneg(x.im))
    return _exact(b, x, b.fneg(x.re)) if x.dtype.is_float else _int(b, x, b.sub(0, x.re))


def abs(b: Builder, x: Elem) -> Elem:  # noqa: A001
    t = x.dtype
    if t.is_complex:
        return complexes.modulus(b, x)
    if t.is_float:
        return Elem(t, b.fabs(x.re))
    return _int(b, x, b.select(b.cmp("slt", x.re, 0), b.sub(0, x.re), x.re)) if _signed(x) else x


def sign(b: Builder, x: Elem) -> Elem:
    t = x.dtype
    if t.is_complex:
        return complexes.sign(b, x)
    if t.is_float:
        return _exact(b, x, floats.sign(b, x.re))
    positive = b.convert("zext", b.cmp("ne" if not _signed(x) else "sgt", x.re, 0), x.re.type.scalar)
    return Elem(t, b.or_(positive, b.ashr(x.re, t.bits - 1)) if _signed(x) else positive)


def square(b: Builder, x: Elem) -> Elem:
    return complexes.square(b, x) if x.dtype.is_complex else multiply(b, x, x)


def maximum(b: Builder, x: Elem, y: Elem) -> Elem:
    return _extremum(b, x, y, largest=True)


def minimum(b: Builder, x: Elem, y: Elem) -> Elem:
    return _extremum(b, x, y, largest=False)


def _extremum(b: Builder, x: Elem, y: Elem, *, largest: bool) -> Elem:
    """NaN wins, -0 < +0; booleans OR and AND; complex lexicographic, numbers with a NaN in them winning."""
    t = x.dtype
    if t.is_complex:
        (p, q), (r, s) = complexes.parts(x), complexes.parts(y)
        first = complexes.before(b, x, y, *(("ogt", "oge") if largest else ("olt", "ole")))
        first = b.or_(b.cmp("uno", p, q), b.and_(first, b.cmp("ord", r, s)))
        return Elem(t, b.select(first, p, r), b.select(first, q, s))
    if t.is_float:
        return Elem(t, (floats.maximum if largest else floats.minimum)(b, x.re, y.re))
    if t.kind == "b":
        return Elem(t, (b.or_ if largest else b.and_)(x.re, y.re))
    if _signed(x):
        return Elem(t, (b.smax if largest else b.smin)(x.re, y.re))
    return Elem(t, b.select(b.cmp("ugt" if largest else "ult", x.re, y.re), x.re, y.re))


# ---- comparing and choosing
_FLOAT = {"EQ": "oeq", "NE": "une", "GE": "oge", "GT": "ogt", "LE": "ole", "LT": "olt"}
_INT = {"EQ": "eq", "NE": "ne", "GE": "ge", "GT": "gt", "LE": "le", "LT": "lt"}


def compare(b: Builder, x: Elem, y: Elem, direction: str, *, total_order: bool = False) -> Elem:
    """`direction`: EQ NE GE GT LE LT. Gives an i1 element."""
    t = x.dtype
    word = _INT[direction]
    if t.is_complex:
        (p, q), (r, s) = complexes.parts(x), complexes.parts(y)
        if direction in ("EQ", "NE"):
            joined = (b.and_ if direction == "EQ" else b.or_)(
                b.cmp(_FLOAT[direction], p, r), b.cmp(_FLOAT[direction], q, s)
            )
        else:
            joined = complexes.before(b, x, y, "ogt" if direction[0] == "G" else "olt", _FLOAT[direction])
        return Elem(dtypes.i1, joined)
    if t.is_float and not total_order:
        return Elem(dtypes.i1, b.cmp(_FLOAT[direction], x.re, y.re))
    p, q = (floats.total_order(b, v.re) for v in (x, y)) if t.is_float else (x.re, y.re)
    pred = word if direction in ("EQ", "NE") else ("s" if t.kind in "if" else "u") + word
    return Elem(dtypes.i1, b.cmp(pred, p, q))


def select(b: Builder, pred: Elem, x: Elem, y: Elem) -> Elem:
    if x.im is not None and y.im is not None:
        return Elem(x.dtype, b.select(pred.re, x.re, y.re), b.select(pred.re, x.im, y.im))
    return Elem(x.dtype, b.select(pred.re, x.re, y.re))


def clamp(b: Builder, low: Elem, x: Elem, high: Elem) -> Elem:
    return minimum(b, maximum(b, x, low), high)


def is_finite(b: Builder, x: Elem) -> Elem:
    return Elem(dtypes.i1, floats.is_finite(b, x.re))


def is_inf(b: Builder, x: Elem) -> Elem:
    return Elem(dtypes.i1, b.cmp("oeq", b.fabs(x.re), float("inf")))


def is_pos_inf(b: Builder, x: Elem) -> Elem:
    return Elem(dtypes.i1, b.cmp("oeq", x.re, float("inf")))


def is_neg_inf(b: Builder, x: Elem) -> Elem:
    return Elem(dtypes.i1, b.cmp("oeq", x.re, float("-inf")))


# ---- bits
_SIGNED = {2: dtypes.i2, 4: dtypes.i4}


def _bitwise(kind: str) -> Callable[[Builder, Elem, Elem], Elem]:
    def fn(b: Builder, x: Elem, y: Elem) -> Elem:
        return Elem(x.dtype, b.binary(kind, x.re, y.re))

    return fn


and_, or_, xor = _bitwise("and"), _bitwise("or"), _bitwise("xor")


def not_(b: Builder, x: Elem) -> Elem:
    return _int(b, x, b.not_(x.re))


def _shift(kind: str) -> Callable[[Builder, Elem, Elem], Elem]:
    def fn(b: Builder, x: Elem, y: Elem) -> Elem:
        value, amount = x.re, y.re
        if x.dtype.is_narrow:
            amount = to_bits(b, y)
            if kind == "lshr":
                value = to_bits(b, x)
            elif kind == "ashr":
                value = wrap_int(b, value, _SIGNED[x.dtype.bits])
        return _int(b, x, ints.shift(b, kind, value, amount, x.dtype.bits))

    return fn


shift_left, shift_right_logical, shift_right_arithmetic = _shift("shl"), _shift("lshr"), _shift("ashr")


def popcnt(b: Builder, x: Elem) -> Elem:
    return _int(b, x, b.unary("ctpop", to_bits(b, x)))


def count_leading_zeros(b: Builder, x: Elem) -> Elem:
    zeros = b.unary("ctlz", to_bits(b, x))
    return _int(b, x, b.sub(zeros, zeros.type.bits - x.dtype.bits))


# ---- rounding to integers (exact in every type)
def floor(b: Builder, x: Elem) -> Elem:
    return _exact(b, x, b.floor(x.re))


def ceil(b: Builder, x: Elem) -> Elem:
    return _exact(b, x, b.ceil(x.re))


def round_nearest_even(b: Builder, x: Elem) -> Elem:
    return _exact(b, x, b.rint(x.re))


def round_nearest_afz(b: Builder, x: Elem) -> Elem:
    return _exact(b, x, floats.round_afz(b, x.re))


# ---- complex numbers
def complex_(b: Builder, re: Elem, im: Elem) -> Elem:
    lanes = max(re.lanes, im.lanes)
    return Elem(dtypes.c64 if re.dtype is dtypes.f32 else dtypes.c128, b.splat(re.re, lanes), b.splat(im.re, lanes))


def real(b: Builder, x: Elem) -> Elem:
    return Elem(x.dtype.part, x.re)


def imag(b: Builder, x: Elem) -> Elem:
    return Elem(x.dtype.part, x.im if x.im is not None else b.const(0.0, x.re.type))


def conj(b: Builder, x: Elem) -> Elem:
    return x if x.im is None else Elem(x.dtype, x.re, b.fneg(x.im))


# ---- bits of other widths
def bitcast_element(b: Builder, out: TensorType, index: Sequence[Index], operand: Any) -> Elem:
    """bitcast_convert at `index` of `out`; pieces of other widths stand along the last axis, lowest bits first."""
    old, new = operand.type.dtype, out.dtype
    if old.bits == new.bits:
        return bitcast(b, operand(tuple(index)), new)
    if old.bits < new.bits:
        unit = min(old.part.bits, new.part.bits)
        elems = [operand((*index, constant(k))) for k in range(new.bits // old.bits)]
        return conversions.join(b, [p for e in elems for p in conversions.split(b, e, unit)], new)
    whole = operand(tuple(index[:-1]))
    at = index_node(b, index[-1])
    if new.is_complex:  # one part of c128 as a c64
        part = Elem(old.part, b.select(b.cmp("eq", at, 0), *complexes.parts(whole)))
        return conversions.join(b, conversions.split(b, part, 32), new)
    bits = to_bits(b, whole)
    amount = b.mul(at, new.bits)
    if amount.type is not bits.type:
        amount = b.convert("itrunc", amount, bits.type.scalar)
    piece = b.convert("itrunc", b.lshr(bits, amount), container(new.bits))
    return conversions.join(b, [conversions.low_bits(b, piece, new.bits)], new)
