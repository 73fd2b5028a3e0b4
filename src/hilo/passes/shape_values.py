"""Small integer tensors whose elements are followed as sizes: the arithmetic that programs do with shapes.

Imports ir. A value is an object array of ints and `Size`s; None stands for an element of which nothing is known.
Integers are taken not to wrap: a size that does not fit its type is no size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

import numpy as np

from hilo.ir import dims
from hilo.ir.dims import Number, Size
from hilo.ir.op import Op
from hilo.ir.types import TensorType

MOST: Final = 256  # elements up to which a tensor is followed
LARGEST: Final = 1 << 64  # integers from here on are followed no more: they would grow without end
DEGREE: Final = 8  # sizes that are multiplied with each other, likewise
Values = Mapping[Op, np.ndarray]


def value_of(o: Op, values: Values) -> np.ndarray | None:
    """The elements of `o`, if it is a small integer tensor made from known ones; else None."""
    t = o.type
    if not isinstance(t, TensorType) or not t.is_static or t.size > MOST or t.dtype.kind not in "iub":
        return None
    name = o.kind.full_name
    if name == "stablehlo.constant":
        return np.array([int(x) for x in o.attrs["value"].data.flat], object).reshape(t.shape)
    if name == "stablehlo.get_dimension_size":
        n = o.operands[0].shape[o.attrs["dimension"]]
        return np.array(n, object)
    if name == "stablehlo.iota":
        return np.array(o.kind.evaluate(**o.attrs.own()), object) if o.kind.evaluate is not None else None
    if not o.operands or any(x not in values for x in o.operands):
        return None
    known = [values[x] for x in o.operands]
    if name in _MOVES:
        return np.array(_MOVES[name](o, *known), object).reshape(t.shape)
    function = _SCALARS.get(o.kind.name)
    if name == "stablehlo.compare":
        function = _COMPARE[o.attrs["comparison_direction"]]
    if name == "stablehlo.reduce":
        return _reduced(o, known)
    if function is None:
        return None
    spread = np.broadcast_arrays(*known) if len({x.shape for x in known}) > 1 else known
    out = [_apply(function, xs) for xs in zip(*(x.flat for x in spread), strict=True)]
    return np.array(out, object).reshape(t.shape)


def _apply(function: Callable[..., Any], xs: tuple[Any, ...]) -> Number | None:
    if any(x is None for x in xs):
        return None
    out = function(*xs)
    if isinstance(out, Size) or out is None:
        return out
    return int(out) if abs(out) < LARGEST else None


def _reduced(o: Op, known: list[np.ndarray]) -> np.ndarray | None:
    """A reduction of one input by one of the functions below."""
    body = o.attrs["body"]
    if len(o.operands) != 2 or len(body.ops) != 3 or (name := body.results[0].kind.name) not in _SCALARS:
        return None
    if body.results[0].operands != body.params:
        return None
    x, init = known
    dimensions = sorted(o.attrs["dimensions"])
    order = [*dimensions, *(d for d in range(x.ndim) if d not in dimensions)]
    kept = [n for d, n in enumerate(x.shape) if d not in dimensions]
    rows = np.transpose(x, order).reshape(prod(x.shape[d] for d in dimensions), *kept)
    out = np.broadcast_to(init, rows.shape[1:]).copy()
    for row in rows:
        both = zip(out.flat, np.broadcast_to(row, out.shape).flat, strict=True)
        out = np.array([_apply(_SCALARS[name], xs) for xs in both], object).reshape(out.shape)
    return out


def _broadcast(o: Op, x: np.ndarray) -> np.ndarray:
    shape = [1] * o.tensor.rank
    for d, at in enumerate(o.attrs["broadcast_dimensions"]):
        shape[at] = x.shape[d]
    return np.broadcast_to(x.reshape(shape), o.shape)


def _slice(o: Op, x: np.ndarray) -> np.ndarray:
    a = o.attrs
    return x[tuple(map(slice, a["start_indices"], a["limit_indices"], a["strides"]))]


_MOVES: Final[dict[str, Callable[..., Any]]] = {
    "stablehlo.reshape": lambda o, x: x.reshape(o.shape),
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.concatenate": lambda o, *xs: np.concatenate(xs, axis=o.attrs["dimension"]),
    "stablehlo.slice": _slice,
    "stablehlo.transpose": lambda o, x: np.transpose(x, o.attrs["permutation"]),
    "stablehlo.reverse": lambda o, x: np.flip(x, o.attrs["dimensions"]),
}


def _not(a: Number) -> Number | None:
    return dims.apply("xor", a, 1) if dims.lower(a) >= 0 and dims.upper(a) <= 1 else None


def _bits(name: str) -> Callable[[Number, Number], Number | None]:
    """`and`, `or`, `xor` of truth values; of other integers only where both are numbers."""

    def bits(a: Number, b: Number) -> Number | None:
        truth = all(dims.lower(x) >= 0 and dims.upper(x) <= 1 for x in (a, b))
        return dims.apply(name, a, b) if truth or (isinstance(a, int) and isinstance(b, int)) else None

    return bits


def _sign(a: Number) -> Number:
    return dims.apply("lt", 0, a) - dims.apply("lt", a, 0)


def _product(a: Number, b: Number) -> Number | None:
    degree = sum(max(map(len, dims.terms_of(x)), default=0) for x in (a, b))
    return a * b if degree <= DEGREE else None


def _power(a: Number, b: Number) -> Number | None:
    if not isinstance(a, int) or not isinstance(b, int) or b < 0:
        return None
    return a**b if b < LARGEST.bit_length() or abs(a) <= 1 else None


def _quotient(a: Number, b: Number) -> Number:
    return dims.apply("quotient", a, b)


_SCALARS: Final[dict[str, Callable[..., Any]]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": _product,
    "divide": _quotient,
    "remainder": lambda a, b: dims.apply("remainder", a, b),
    "maximum": dims.larger,
    "minimum": dims.smaller,
    "negate": lambda a: -a,
    "abs": lambda a: dims.larger(a, -a),
    "sign": _sign,
    "convert": lambda a: a,
    "clamp": lambda lo, x, hi: dims.smaller(dims.larger(x, lo), hi),
    "select": lambda c, a, b: dims.apply("select", c, a, b),
    "and": _bits("and"),
    "or": _bits("or"),
    "xor": _bits("xor"),
    "not": _not,
    "power": _power,
    "optimization_barrier": lambda a: a,
}
_COMPARE: Final[dict[str, Callable[[Number, Number], Number]]] = {
    "EQ": lambda a, b: dims.apply("eq", a, b),
    "NE": lambda a, b: dims.apply("xor", dims.apply("eq", a, b), 1),
    "LT": lambda a, b: dims.apply("lt", a, b),
    "LE": lambda a, b: dims.apply("le", a, b),
    "GT": lambda a, b: dims.apply("lt", b, a),
    "GE": lambda a, b: dims.apply("le", b, a),
}
