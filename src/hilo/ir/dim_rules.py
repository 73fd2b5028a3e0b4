"""What functions of run-time sizes simplify to where ranges and polynomials decide it. Imports ir.dims, which loads it
for programs that have such sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hilo.ir.dims import Number, atomic, divide, floordiv, lower, polynomial, terms_of, upper


def _floordiv(a: Number, b: Number) -> Number | None:
    if b == 1:
        return a
    if isinstance(a, int) and a == 0:
        return 0
    if isinstance(b, int):
        if b <= 0:
            return None
        exact = {m: c // b for m, c in terms_of(a).items() if c % b == 0}
        rest = polynomial({m: c for m, c in terms_of(a).items() if c % b})
        if lower(rest) // b == upper(rest) // b:
            return polynomial(exact) + lower(rest) // b
        return polynomial(exact) + atomic("floordiv", (rest, b), lower(rest) // b, upper(rest) // b) if exact else None
    quotient = divide(a, b)
    if quotient is not None:
        return quotient
    return 0 if lower(a) >= 0 and lower(b - a) > 0 else None


def _quotient(a: Number, b: Number) -> Number | None:
    exact = divide(a, b)
    if exact is not None:
        return exact
    return floordiv(a, b) if lower(a) >= 0 and lower(b) > 0 else None


def _remainder(a: Number, b: Number) -> Number | None:
    if divide(a, b) is not None:
        return 0
    return a if lower(a) >= 0 and lower(b - a) > 0 else None


def _pick(sign: int) -> Callable[..., Number | None]:
    def pick(a: Number, b: Number) -> Number | None:
        d = (a - b) * sign  # max: a if a - b >= 0
        return a if lower(d) >= 0 else b if upper(d) <= 0 else None

    return pick


def _select(c: Number, a: Number, b: Number) -> Number | None:
    if isinstance(c, int):
        return a if c else b
    return a if a == b else None


def _lt(a: Number, b: Number) -> int | None:
    d = a - b
    return 1 if upper(d) < 0 else 0 if lower(d) >= 0 else None


def _le(a: Number, b: Number) -> int | None:
    d = a - b
    return 1 if upper(d) <= 0 else 0 if lower(d) > 0 else None


def _eq(a: Number, b: Number) -> int | None:
    d = a - b
    return int(d == 0) if isinstance(d, int) else 0 if d.lo > 0 or d.hi < 0 else None


def _and(a: Number, b: Number) -> Number | None:
    """0 and 1 only: what comparisons give."""
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int) and x in (0, 1) and lower(y) >= 0 and upper(y) <= 1:
            return y if x else 0
    return a if a is b else None


def _or(a: Number, b: Number) -> Number | None:
    for x, y in ((a, b), (b, a)):
        if isinstance(x, int) and x in (0, 1) and lower(y) >= 0 and upper(y) <= 1:
            return 1 if x else y
    return a if a is b else None


SIMPLER: Final[dict[str, Callable[..., Number | None]]] = {
    "floordiv": _floordiv,
    "quotient": _quotient,
    "remainder": _remainder,
    "min": _pick(-1),
    "max": _pick(1),
    "select": _select,
    "lt": _lt,
    "le": _le,
    "eq": _eq,
    "and": _and,
    "or": _or,
}
