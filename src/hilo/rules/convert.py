"""Rules about conversions: chains whose first step loses nothing."""

from __future__ import annotations

from hilo.ir.dtypes import COMMON, DType
from hilo.ir.op import Op
from hilo.ir.types import TensorType
from hilo.rewrite import RuleSet, Var
from hilo.rewrite.ops import complex_, convert, imag, real
from hilo.rewrite.pattern import splat
from hilo.rewrite.rules import arg

x, y = Var("x"), Var("y")
CONVERT = RuleSet("convert")

#: Float types: significant bits, and the exponents of the largest and of the smallest (subnormal) number.
_FLOATS = {"bf16": (8, 127, -133), "f16": (11, 15, -24), "f32": (24, 127, -149), "f64": (53, 1023, -1074)}


def holds(a: DType, b: DType) -> bool:
    """Whether every value of `a` is exactly a value of `b` (NaN, infinities and -0.0 where `a` has them)."""
    if a is b:
        return True
    if b.is_complex:
        return holds(a.part, b.part)
    if a.kind == "b":
        return (b.is_int and b.bits > 1) or b.name in _FLOATS
    if a.is_int and b.is_int:
        return b.bits > a.bits and (b.kind == a.kind or a.kind == "u")
    if a.is_int:
        return b.name in _FLOATS and a.bits - (a.kind == "i") <= _FLOATS[b.name][0] and a.bits <= _FLOATS[b.name][1]
    if a.is_float and b.is_float and a.name in _FLOATS and b.name in _FLOATS:
        (p, high, low), (q, top, bottom) = _FLOATS[a.name], _FLOATS[b.name]
        return p <= q and high <= top and low >= bottom
    return False


@CONVERT.rule(convert(x), example=lambda t: [convert(arg(t, 5), type=TensorType(t, (5,)))])
def convert_to_same_type(op: Op, x: Op) -> Op | None:
    return x if x.type is op.type else None


@CONVERT.rule(
    convert(convert(x).named("y")),
    example=lambda t: [
        convert(convert(arg(t, 9), type=TensorType(middle, (9,))), type=TensorType(last, (9,)))
        for middle in COMMON
        for last in COMMON
    ],
)
def converts_merge(op: Op, x: Op, y: Op) -> Op | None:
    """a -> b -> c is a -> c if b holds every value of a.

    Not from integers through floats to integers: a float saturates where an integer wraps around.
    """
    if not holds(x.dtype, y.dtype) or (x.dtype.kind in "biu" and y.dtype.kind in "fc" and op.dtype.is_int):
        return None
    return convert(x, type=op.type)


@CONVERT.rule(
    real(complex_(x, y)),
    imag(complex_(x, y)),
    example=lambda t: [part(complex_(arg(t, 5), arg(t, 5))) for part in (real, imag)],
)
def part_of_complex(op: Op, x: Op, y: Op) -> Op:
    return x if op.kind.name == "real" else y


@CONVERT.rule(complex_(real(x), imag(x)), example=lambda t: [complex_(real(z), imag(z)) for z in (arg(t, 5),)])
def complex_of_parts(op: Op, x: Op) -> Op | None:
    return x if x.type is op.type else None


@CONVERT.rule(imag(x), example=lambda t: [imag(arg(t, 5))])
def imag_of_real(op: Op, x: Op) -> Op | None:
    """A real number's imaginary part is 0."""
    return None if x.dtype.is_complex or x.dtype.name == "f8E8M0FNU" else splat(0, op.tensor)  # which has no 0


@CONVERT.rule(real(x), example=lambda t: [real(arg(t, 5))])
def real_of_real(op: Op, x: Op) -> Op | None:
    return x if x.type is op.type else None
