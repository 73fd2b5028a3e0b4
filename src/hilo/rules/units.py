"""Dims of size 1: reshapes that only put in or take out such dims move towards their users, past ops that do not
care, until they meet another reshape, a broadcast or a product, and vanish there."""

from __future__ import annotations

from hilo.ir.dtypes import DType
from hilo.ir.module import region
from hilo.ir.op import Attrs, Op
from hilo.ir.types import TensorType
from hilo.rewrite import RuleSet, Var
from hilo.rewrite.ops import add, maximum, multiply, negate, reduce, reshape, symbol, transpose
from hilo.rewrite.pattern import splat
from hilo.rewrite.rules import arg
from hilo.rules.fold import EXACT

x, p = Var("x"), Var("p")
UNITS = RuleSet("units")

_ELEMENTWISE = (
    *EXACT, "atan2", "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic",
    "power", "reduce_precision", "rsqrt", "sine", "tan", "tanh", "chlo_acos", "chlo_acosh", "chlo_asin", "chlo_asinh",
    "chlo_atan", "chlo_atanh", "chlo_conj", "chlo_cosh", "chlo_digamma", "chlo_erf", "chlo_erf_inv", "chlo_erfc",
    "chlo_is_inf", "chlo_lgamma", "chlo_next_after", "chlo_sinh", "chlo_square", "chlo_tan",
)  # fmt: skip


def inserted_units(inner: tuple[int, ...], outer: tuple[int, ...]) -> tuple[int, ...] | None:
    """Where each dim of `inner` is in `outer` if `outer` is `inner` with dims of size 1 put in; else None."""
    where: list[int] = []
    for d, n in enumerate(outer):
        if len(where) < len(inner) and n == inner[len(where)]:
            where.append(d)
        elif n != 1:
            return None
    return tuple(where) if len(where) == len(inner) else None


def _only_units(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return [n for n in a if n != 1] == [n for n in b if n != 1]


def _elementwise(t: DType) -> list[Op]:
    a, b = (reshape(arg(t, 3, 2), type=TensorType(t, (3, 1, 2))) for _ in range(2))
    one = splat(1, TensorType(t, (3, 1, 2)))
    scalar = add(reshape(arg(t, 1), type=TensorType(t)), arg(t))  # not a case for the rule
    return [add(a, b), multiply(one, a), scalar] + ([negate(a)] if t.kind in "if" else [])


@UNITS.rule(*[symbol(name) for name in _ELEMENTWISE], among=("reshape",), example=_elementwise)
def elementwise_of_units(op: Op) -> Op | None:
    """An elementwise op of reshaped values is the reshaped op, if all come from one shape (splats have any shape)."""
    source: tuple[int, ...] | None = None
    for o in op.operands:
        if o.kind.name == "reshape":
            shape = o.operands[0].shape
            if source is None and _only_units(shape, o.shape):
                source = shape
            elif shape != source:
                return None
        elif not (o.kind.name == "constant" and o.attrs["value"].is_splat):
            return None
    if (
        source is None
        or not isinstance(op.type, TensorType)
        or any(not o.tensor.rank and op.type.rank for o in op.operands)
    ):
        return None
    operands = [
        o.operands[0] if o.kind.name == "reshape" else splat(o.attrs["value"].scalar, o.tensor.with_shape(source))
        for o in op.operands
    ]
    attrs = Attrs(op.attrs, type=op.type.with_shape(source)) if op.kind.typed else op.attrs
    return reshape(op.kind.make(operands, attrs), type=op.type)


@UNITS.rule(
    transpose(reshape(x).named("r"), permutation=p),
    example=lambda t: [transpose(reshape(arg(t, 3, 2, 4), type=TensorType(t, (1, 3, 2, 4))), permutation=(0, 3, 1, 2))],
)
def transpose_of_units(op: Op, x: Op, r: Op, p: tuple[int, ...]) -> Op | None:
    """A transpose of a value with dims of size 1 put in moves only the others."""
    where = inserted_units(x.shape, r.shape)
    if where is None:
        return None
    return reshape(transpose(x, permutation=tuple(where.index(d) for d in p if d in where)), type=op.type)


def _reduced(t: DType) -> list[Op]:
    s = TensorType(t)
    r = reshape(arg(t, 3, 4), type=TensorType(t, (1, 3, 1, 4)))
    return [
        reduce(r, arg(t), dimensions=d, body=region([s, s], lambda a, b: maximum(a, b)))
        for d in ((3,), (0, 3), (1, 3), (1,))
    ]


@UNITS.rule(reduce, example=_reduced)
def reduce_of_units(op: Op) -> Op | None:
    """A reduction of a value with dims of size 1 put in is the reduction of the value itself."""
    if len(op.operands) != 2 or op.operands[0].kind.name != "reshape":
        return None
    r, init = op.operands
    x = r.operands[0]
    where = inserted_units(x.shape, r.shape)
    if where is None:
        return None
    dims = tuple(i for i, d in enumerate(where) if d in op.attrs["dimensions"])
    return reshape(op.kind.make((x, init), op.attrs.replace(dimensions=dims)), type=op.type) if dims else None
