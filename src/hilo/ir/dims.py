"""Sizes that are known only when a program runs: integer expressions over symbols. Imports errors, ir.types.

A `Size` is a polynomial with integer coefficients over atoms; an atom is a `Symbol` (the size of an argument's axis, or
an element of an integer argument) or a function of other sizes (floor division, min, a comparison ...). Sizes are
interned: equal expressions are one object, so that types hold them like numbers. Arithmetic whose outcome is known
gives an int. Comparisons give a bool where the ranges decide it, and raise `Undecided` where they do not: no code can
take a decision about a size by accident. `==` asks whether two are the same expression.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from math import gcd
from typing import TYPE_CHECKING, Any, Final

from hilo.errors import Unsupported
from hilo.ir.types import Dim
from hilo.record import record

if TYPE_CHECKING:
    from hilo.ir.op import Op

HUGE: Final = 1 << 40  # no size of a symbol is larger
TYPICAL: Final = 64  # what a symbol is taken for where only speed depends on it
Number = Any  # int | Size


class Undecided(Unsupported):
    """Something depends on how large a run-time size is."""


class ComputedSize(Unsupported):
    """A size depends on integers that the program computes: the ops `causes`, of the function that was refined. It is
    compiled in stages then (passes/stages.py)."""

    def __init__(self, message: str, *, loc: object | None = None, op: str | None = None,
                 causes: Sequence[Op] = ()) -> None:  # fmt: skip
        super().__init__(message, loc=loc, op=op)
        self.causes = tuple(causes)

    def at(self, loc: object | None, op: str | None = None) -> ComputedSize:
        loc = self.loc if self.loc is not None else loc
        return ComputedSize(self.message, loc=loc, op=self.op or op, causes=self.causes)


class Atom:
    """A symbol, or a function `name` of `args`; its values lie in lo..hi. Interned; ordered by `order`, its text."""

    __slots__ = ("args", "hi", "lo", "name", "order", "source")

    def __init__(
        self, name: str, args: tuple[Number, ...], lo: int, hi: int, source: tuple[str, int, int] | None
    ) -> None:
        self.name = name
        self.args = args
        self.lo = lo
        self.hi = hi
        self.source = source
        self.order = name if source else f"{name}({', '.join(map(repr, args))})"

    def __repr__(self) -> str:
        return self.order


_ESTIMATING: ContextVar[bool] = ContextVar("hilo_estimating", default=False)


@contextmanager
def estimating() -> Iterator[None]:
    """Inside, comparisons that the ranges leave open are decided by typical sizes: for choices that are right whatever
    the sizes are, and only better or worse."""
    token = _ESTIMATING.set(True)
    try:
        yield
    finally:
        _ESTIMATING.reset(token)


Monomial = tuple[Atom, ...]  # atoms in order, repeated for powers; () is 1
_ATOMS: dict[Any, Atom] = {}
_SIZES: dict[Any, Size] = {}


class Size(Dim):
    """A size that varies from call to call; `terms` maps monomials to coefficients. Make them with arithmetic."""

    __slots__ = ("hi", "lo", "terms")
    is_known = True
    terms: Final[dict[Monomial, int]]
    lo: Final[int]
    hi: Final[int]

    def __init__(self, terms: dict[Monomial, int]) -> None:
        super().__init__("?", None)
        lo = hi = 0
        for m, c in terms.items():
            low, high = 1, 1
            for a in m:
                ends = [x * y for x in (low, high) for y in (a.lo, a.hi)]
                low, high = min(ends), max(ends)
            lo, hi = (lo + c * low, hi + c * high) if c > 0 else (lo + c * high, hi + c * low)
        self.terms = terms  # type: ignore[misc]
        self.lo = lo  # type: ignore[misc]
        self.hi = hi  # type: ignore[misc]

    @staticmethod
    def of(terms: Mapping[Monomial, int]) -> Number:
        """The size, or int, that this polynomial is."""
        return polynomial(terms)

    def __repr__(self) -> str:
        out = ""
        for m, c in self.terms.items():
            name = "*".join(map(repr, m))
            text = str(abs(c)) if not m else name if abs(c) == 1 else f"{abs(c)}*{name}"
            out += (" - " if c < 0 else " + ") + text if out else ("-" if c < 0 else "") + text
        return out

    def __reduce__(self) -> Any:
        return rebuild, (tuple((tuple(map(_atom_key, m)), c) for m, c in self.terms.items()),)

    # ---- arithmetic
    # With floats all of it is an estimate: they only occur in costs.
    def __add__(self, other: Any) -> Any:
        if isinstance(other, float):
            return typical(self) + other
        return _sum(self, other, 1) if isinstance(other, (int, Size)) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if isinstance(other, float):
            return typical(self) - other
        return _sum(self, other, -1) if isinstance(other, (int, Size)) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return _sum(-self, other, 1) if isinstance(other, (int, Size)) else NotImplemented

    def __neg__(self) -> Any:
        return self * -1

    def __mul__(self, other: Any) -> Any:
        if isinstance(other, float):
            return typical(self) * other
        if not isinstance(other, (int, Size)):
            return NotImplemented
        out: dict[Monomial, int] = {}
        for m, c in self.terms.items():
            for n, d in terms_of(other).items():
                key = tuple(sorted((*m, *n), key=lambda a: a.order))
                out[key] = out.get(key, 0) + c * d
        return polynomial(out)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> float:
        """An estimate, for costs."""
        return typical(self) / typical(other)

    def __rtruediv__(self, other: Any) -> float:
        return typical(other) / typical(self)

    def __floordiv__(self, other: Any) -> Any:
        return floordiv(self, other) if isinstance(other, (int, Size)) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return floordiv(other, self) if isinstance(other, (int, Size)) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return self - floordiv(self, other) * other if isinstance(other, (int, Size)) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return other - floordiv(other, self) * self if isinstance(other, (int, Size)) else NotImplemented

    # ---- comparisons
    def __lt__(self, other: Any) -> bool:
        return self._decide("<", self - other, lambda d: d.hi < 0, lambda d: d.lo >= 0, other)

    def __le__(self, other: Any) -> bool:
        return self._decide("<=", self - other, lambda d: d.hi <= 0, lambda d: d.lo > 0, other)

    def __gt__(self, other: Any) -> bool:
        return not self <= other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        if self.lo > 0 or self.hi < 0:
            return True
        if _ESTIMATING.get():
            return typical(self) != 0
        raise Undecided(f"the program must know whether the size {self!r} is zero when it is compiled")

    def __index__(self) -> int:
        raise Undecided(f"the program must know the size {self!r} when it is compiled")

    __int__ = __index__

    def bit_length(self) -> int:
        return self.__index__()

    def __float__(self) -> float:
        """An estimate, for costs."""
        return float(typical(self))

    def _decide(self, sign: str, difference: Any, yes: Callable[[Size], bool], no: Callable[[Size], bool],
                other: Any) -> bool:  # fmt: skip
        if isinstance(difference, (int, float)):
            return difference < 0 or (difference == 0 and sign == "<=")
        if yes(difference):
            return True
        if no(difference):
            return False
        if _ESTIMATING.get():
            d = typical(difference)
            return d < 0 or (d == 0 and sign == "<=")
        raise Undecided(f"the program must know whether the size {self!r} {sign} {other!r} when it is compiled")


def _sum(a: Size, b: Number, sign: int) -> Number:
    out = dict(a.terms)
    for m, c in terms_of(b).items():
        out[m] = out.get(m, 0) + sign * c
    return polynomial(out)


def terms_of(n: Number) -> dict[Monomial, int]:
    """The polynomial that `n` is."""
    return n.terms if isinstance(n, Size) else {(): n}


def polynomial(terms: Mapping[Monomial, int]) -> Number:
    """The one object for a polynomial; an int if it is one."""
    kept = sorted(((m, c) for m, c in terms.items() if c), key=lambda t: (-len(t[0]), [a.order for a in t[0]]))
    if not kept or (len(kept) == 1 and not kept[0][0]):
        return kept[0][1] if kept else 0
    key = tuple(kept)
    found = _SIZES.get(key)
    if found is None:
        made = Size(dict(kept))
        if made.lo == made.hi:
            return made.lo
        found = _SIZES.setdefault(key, made)
    return found


def atomic(name: str, args: tuple[Number, ...] = (), lo: int = -HUGE, hi: int = HUGE,
           source: tuple[str, int, int] | None = None) -> Size:  # fmt: skip
    """The size that is one atom: a symbol, if it has a source, or a function of other sizes."""
    key = (name, args, lo, hi, source)
    found = _ATOMS.get(key)
    if found is None:
        found = _ATOMS.setdefault(key, Atom(name, args, lo, hi, source))
    return polynomial({(found,): 1})


def _atom_key(a: Atom) -> Any:
    return (a.name, a.args, a.lo, a.hi, a.source)


def rebuild(terms: Iterable[Any]) -> Number:
    """A size from its pickled form."""
    return polynomial({tuple(next(iter(atomic(*k).terms))[0] for k in m): c for m, c in terms})


@record(frozen=True)
class Guard:
    """What must hold of sizes: `condition` is not zero; else `message` says what is wrong, with `values` where it has
    {0}, {1} ..."""

    condition: Number
    message: str
    values: tuple[Number, ...] = ()


# ---- symbols
def axis_size(argument: int, axis: int, bound: int | None = None) -> Size:
    """The symbol for the size of an axis of an argument, which is at most `bound`."""
    return atomic(f"n{argument}_{axis}", lo=0, hi=HUGE if bound is None else bound, source=("axis", argument, axis))


def element(argument: int, position: int) -> Size:
    """The symbol for an element (by its row-major position) of an integer argument."""
    return atomic(f"v{argument}_{position}", source=("value", argument, position))


def computed(number: int, position: int) -> Size:
    """The symbol for an integer that the program computes: no size, but what cancels it may be one."""
    return atomic(f"u{number}_{position}", source=("computed", number, position))


def is_computed(n: Number) -> bool:
    """Whether `n` depends on integers that the program computes."""
    return any(s.source is not None and s.source[0] == "computed" for s in symbols(n))


def symbols(n: Number) -> dict[Atom, None]:
    """The symbols in `n`, those in arguments of its functions too, in order."""
    out: dict[Atom, None] = {}
    stack = [n]
    while stack:
        for m in terms_of(stack.pop()):
            for a in m:
                if a.source is not None:
                    out[a] = None
                else:
                    stack.extend(a.args)
    return out


def symbol_of(n: Number) -> Atom | None:
    """The symbol that `n` is, if it is nothing else."""
    if isinstance(n, Size) and len(n.terms) == 1:
        (m, c), *_ = n.terms.items()
        if c == 1 and len(m) == 1 and m[0].source is not None:
            return m[0]
    return None


# ---- functions of sizes
def _truncated(a: int, b: int) -> int:
    q = abs(a) // abs(b) if b else 0
    return q if (a < 0) == (b < 0) else -q


EVALUATE: Final[dict[str, Callable[..., int]]] = {
    "floordiv": lambda a, b: a // b if b else 0,
    "quotient": _truncated,  # rounds to zero, as integer division of the programs does
    "remainder": lambda a, b: a - _truncated(a, b) * b if b else a,
    "min": min,
    "max": max,
    "select": lambda c, a, b: a if c else b,
    "lt": lambda a, b: int(a < b),
    "le": lambda a, b: int(a <= b),
    "eq": lambda a, b: int(a == b),
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def lower(n: Number) -> int:
    return n.lo if isinstance(n, Size) else n


def upper(n: Number) -> int:
    return n.hi if isinstance(n, Size) else n


def apply(name: str, *args: Number) -> Number:
    """The function `name` of `EVALUATE` on sizes and ints; simplified where ranges allow it."""
    if all(isinstance(a, int) for a in args):
        return EVALUATE[name](*args)
    from hilo.ir.dim_rules import SIMPLER  # few programs have run-time sizes

    simpler = SIMPLER[name](*args) if name in SIMPLER else None
    if simpler is not None:
        return simpler
    if name in ("lt", "le", "eq"):
        return atomic(name, args, 0, 1)
    if name in ("min", "max"):
        pick = min if name == "min" else max
        return atomic(name, args, pick(map(lower, args)), pick(map(upper, args)))
    if name == "select":
        return atomic(name, args, min(map(lower, args[1:])), max(map(upper, args[1:])))
    if name == "remainder" and isinstance(args[1], int) and args[1]:
        n = abs(args[1]) - 1
        return atomic(name, args, 0 if lower(args[0]) >= 0 else -n, n)
    if name in ("floordiv", "quotient") and isinstance(args[1], int) and args[1] > 0:
        return atomic(name, args, EVALUATE[name](lower(args[0]), args[1]), EVALUATE[name](upper(args[0]), args[1]))
    if name in ("and", "or", "xor") and all(lower(a) >= 0 and upper(a) <= 1 for a in args):
        return atomic(name, args, 0, 1)
    return atomic(name, args)


def floordiv(a: Number, b: Number) -> Number:
    return apply("floordiv", a, b)


def smaller(a: Number, b: Number) -> Number:
    return apply("min", a, b)


def larger(a: Number, b: Number) -> Number:
    return apply("max", a, b)


def divide(a: Number, b: Number) -> Number | None:
    """a / b as a polynomial, where b is one monomial (with a coefficient) that divides every term of a; else None."""
    if isinstance(b, int):
        fits = b != 0 and all(c % b == 0 for c in terms_of(a).values())
        return polynomial({m: c // b for m, c in terms_of(a).items()}) if fits else None
    if a is b:
        return 1
    if len(b.terms) != 1:
        return None
    (by, factor), *_ = b.terms.items()
    out: dict[Monomial, int] = {}
    for m, c in terms_of(a).items():
        left = list(m)
        for x in by:
            if x not in left:
                return None
            left.remove(x)
        if c % factor:
            return None
        out[tuple(left)] = c // factor
    return polynomial(out)


# ---- values
def evaluate(n: Number, values: Callable[[Atom], Number]) -> Number:
    """`n` with its symbols replaced by numbers or other sizes."""
    if isinstance(n, int):
        return n
    total: Number = 0
    for m, c in n.terms.items():
        product: Number = c
        for a in m:
            product = product * (
                values(a) if a.source is not None else apply(a.name, *[evaluate(x, values) for x in a.args])
            )
        total = total + product
    return total


def may_be_less(a: Number, b: Number) -> bool:
    """Whether a < b for some values of the symbols, as far as the ranges say."""
    return lower(a - b) < 0


def typical(n: Number) -> Any:
    """A number to stand for `n` in estimates."""
    if not isinstance(n, Size):
        return n
    return evaluate(n, lambda a: min(TYPICAL, a.hi))


def content(n: Number) -> tuple[int, Number]:
    """(c, p) with n = c * p and coefficients of p without a common factor; p is 1 for an int."""
    if isinstance(n, int):
        return n, 1
    c = gcd(*n.terms.values())
    return c, polynomial({m: x // c for m, x in n.terms.items()})
